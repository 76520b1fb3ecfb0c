"""run --pattern: recorded steps are done again on host and GPU, agree with what was recorded, and what cannot be done again
is refused before anything is measured."""

import json
import os
import re
import subprocess

import pytest
from shipped import LAUNCHGAP, NODES, ROOT, UNTRACED, launchgap, table

A100 = NODES / "one_a100.json"
HEAD = "action,stream,gap_ns,call_ns,device_ns,bytes,number,blocks\n"


def recorded(folder, launches, gap_us, call_us, kernel_us, waits_every=None, steps=1):
    """A recording of PyTorch's profiler in which each step launches so many kernels, and the session made of it."""
    events, at, device, correlation = [], 1000.0, 0.0, 0
    for step in range(1, steps + 1):
        begin = at
        for i in range(launches):
            at += gap_us
            correlation += 1
            call = {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": call_us,
            }
            events.append(call | {"args": {"correlation": correlation}})
            start = max(device, at + call_us + 1)
            device = start + kernel_us
            where = {"device": 0, "context": 1, "stream": 7, "correlation": correlation}
            kernel = {
                "ph": "X",
                "cat": "kernel",
                "name": "k",
                "pid": 0,
                "tid": 7,
                "ts": start,
                "dur": kernel_us,
                "args": where,
            }
            events.append(kernel)
            at += call_us
            if i == launches - 1 or (waits_every and i % waits_every == waits_every - 1):
                correlation += 1
                end = max(at, device) + 1
                wait = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": at}
                events.append(wait | {"dur": end - at, "args": {"correlation": correlation}})
                at = end
        name = f"ProfilerStep#{step}"
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": name,
                "pid": 1,
                "tid": 1,
                "ts": begin,
                "dur": at - begin,
                "args": {},
            }
        )
    gpu = {"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "made.json"
    file.write_text(json.dumps({"deviceProperties": [gpu], "traceEvents": events}))
    launchgap("import", file, "-o", folder / "job", code=0)
    return folder / "job"


def rows(session, **wanted):
    return [row for row in table(session / "patterns.csv") if all(row[key] == value for key, value in wanted.items())]


def test_a_step_is_done_again_on_every_device_in_every_mode(tmp_path):
    job = recorded(tmp_path, launches=40, gap_us=20, call_us=5, kernel_us=10, steps=3)
    session = tmp_path / "session"
    done = launchgap("run", "--pattern", f"{job}:2", "--devices", "all", "--runs", "1", "-o", session, node=A100, code=0)
    assert "launch/pattern/pattern:job.2" in done.stdout
    (origin,) = json.loads((session / "session.json").read_text())["patterns"]
    assert origin["source"] == "ProfilerStep#2 of job, recorded by PyTorch's profiler"
    assert (origin["gpu"], origin["recorded_ns"]) == ("Tesla V100-SXM2-16GB", 40 * 25_000 + 7_000 + 5_000)
    assert (session / "patterns" / "job.2.csv").read_text().startswith(HEAD)
    found = {(row["device_id"].partition("-")[0], row["arm"], row["mode"]) for row in rows(session)}
    modes = {("GPU", arm, mode) for arm in ("plain", "traced") for mode in ("eager", "graph", "graph_update")}
    assert found == modes | {("host", arm, "eager") for arm in ("plain", "traced")}
    summary = {
        row["params"]: row for row in table(session / "summary.csv") if row["backend"] == "host" and row["arm"] == "plain"
    }
    graph = summary["pattern:job.2/mode:graph"]
    assert (graph["status"], "no graphs" in graph["reason"]) == ("unsupported", True)
    assert {row["gpu"] for row in table(session / "predicted_patterns.csv")} >= {"K80 (per die)", "H100 SXM"}
    page = (session / "report.html").read_text()
    assert 'id="patterns"' in page and "ProfilerStep#2 of job" in page


def test_patterns_that_ship_have_their_names(tmp_path):
    session = tmp_path / "session"
    launchgap(
        *("run", "--pattern", "vit_inference", "--pattern", "qwen_decoder", "--devices", "host", "--runs", "1", *UNTRACED),
        *("--no-report", "-o", session),
        code=0,
    )
    assert {row["pattern"] for row in rows(session, mode="eager")} == {"vit_inference", "qwen_decoder"}
    listed = launchgap("list", "benchmarks", code=0).stdout
    assert "launch/pattern" in listed
    planned = ("run", "--filter", "^launch/pattern/", "--devices", "host", "--dry-run", "-v")
    assert "3 cases" in launchgap(*planned, "--profile", "full", code=0).stdout
    assert "no case passes" in launchgap(*planned, "--profile", "nightly", code=2).stderr


def test_the_patterns_that_ship_are_those_of_the_recordings():
    done = subprocess.run(
        [ROOT / "scripts" / "make-patterns", "--check"],
        env=os.environ | {"LAUNCHGAP": str(LAUNCHGAP), "LAUNCHGAP_WARM_UP": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_kernels_can_last_another_time(tmp_path):
    (tmp_path / "p.csv").write_text(HEAD + "kernel,,,,1000000,,,\n" * 20)
    session = tmp_path / "session"
    launchgap(
        *("run", "--pattern", tmp_path / "p.csv", "--kernel-time", "0.25", "--devices", "host", "--runs", "1", *UNTRACED),
        *("--no-report", "-o", session),
        code=0,
    )
    (row,) = rows(session, mode="eager")
    assert (row["pattern"], row["kernel_factor"], row["agreement"]) == ("p.x0.25", "0.25", "")
    assert float(row["p50_ns"]) >= 5e6


def test_blocks_events_copies_and_graphs_are_done_again(tmp_path):
    everything = (
        HEAD
        + "ahead,1,,,200000,,,\n"
        + "allocate,,1000,,,65536,1,\n"
        + "copy_to_device,,,,1000,4096,,\n"
        + "kernel,,,,10000,,,\n"
        + "record_event,,,,,,1,\n"
        + "wait_event,1,,,,,1,\n"
        + "kernel,1,,,10000,,,\n"
        + "kernel,1,5000,,10000,,1,\n"
        + "kernel,,,,10000,,1,\n"
        + "fill,,,,1000,8192,,\n"
        + "copy,,,,1000,8192,,\n"
        + "wait,,,,,,,\n"
        + "copy_to_host,,,,1000,4096,,1\n"
        + "allocate_pooled,,,,,1024,2,\n"
        + "wait,,,,,,,\n"
        + "release,,,,,,1,\n"
        + "wait_all,,,,,,,\n"
    )
    (tmp_path / "all.csv").write_text(everything)
    session = tmp_path / "session"
    launchgap(
        *("run", "--pattern", tmp_path / "all.csv", "--devices", "all", "--runs", "1", "--no-report", "-o", session),
        node=A100,
        code=0,
    )
    found = {(row["device_id"].partition("-")[0], row["arm"], row["mode"]) for row in rows(session)}
    modes = ("eager", "pool", "graph", "graph_update")
    assert found >= {("GPU", arm, mode) for arm in ("plain", "traced") for mode in modes}
    # Its streams cannot wait for each other's events.
    host = [row for row in table(session / "summary.csv") if row["backend"] == "host"]
    assert host and {row["status"] for row in host} == {"unsupported"}
    (tmp_path / "all.csv").write_text("".join(line for line in everything.splitlines(True) if "event" not in line))
    without = tmp_path / "without"
    launchgap(
        *("run", "--pattern", tmp_path / "all.csv", "--devices", "host", "--runs", "1", "--no-report", "-o", without), code=0
    )
    found = {(row["arm"], row["mode"]) for row in rows(without)}
    assert found == {(arm, mode) for arm in ("plain", "traced") for mode in ("eager", "pool")}


REFUSED = {
    "kernel,,-5,,1,,,\n": "operation 1: the gap before it lasts -5 ns, which is below zero",
    "kernel,,,,3600000000000,,,\n": "operation 1: the work lasts 3600 s; a pattern may last 60 s",
    "wait_event,,,,,,1,\nkernel,,,,1,,,\nrecord_event,,,,,,1,\n": "operation 1: it waits for event 1, which is not recorded",
    "".join(f"kernel,{i},,,1,,,\n" for i in range(2000)): "operation 129: its stream is number 128, and there may be 128",
    "wait,,,,,,,\n": "it has no kernel, copy or fill",
    "launch,,,,1,,,\n": "there is no action 'launch'",
    "copy,,,,1000,,,\n": "operation 1: it is of 0 bytes",
    "record_event,,,,,,4294967295,\nkernel,,,,1,,,\n": "operation 1: its number is 4294967295, and may be 200000",
}


@pytest.mark.parametrize("text, why", REFUSED.items(), ids=range(len(REFUSED)))
def test_what_cannot_be_done_again_is_refused_in_a_sentence(tmp_path, text, why):
    (tmp_path / "p.csv").write_text(HEAD + text)
    session = tmp_path / "session"
    done = launchgap("run", "--pattern", tmp_path / "p.csv", "--devices", "host", "-o", session, code=2)
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not session.exists()


def test_blocks_beyond_the_device_are_refused_before_it_starts(tmp_path):
    (tmp_path / "p.csv").write_text(HEAD + "allocate,,,,,200000000000,1,\nkernel,,,,1,,,\n")
    session = tmp_path / "session"
    done = launchgap("run", "--pattern", tmp_path / "p.csv", "--devices", "gpu", "-o", session, node=A100, code=2)
    assert re.search(r"p needs 186\.?\d* GiB of memory, and NVIDIA A100-SXM4-80GB has 79\.?\d* GiB", done.stderr), (
        done.stderr
    )
    assert not session.exists()


def test_graphs_that_fork_and_join_take_as_long_as_their_work(tmp_path):
    """Each graph's second branch is long, and what comes behind the graph waits for it."""
    fork = "kernel,,10000,,1000,,{0},\nkernel,{0},,,2000000,,{0},\n"
    (tmp_path / "p.csv").write_text(HEAD + fork.format(1) + fork.format(2) + "kernel,,,,2000000,,,\nwait_all,,,,,,,\n")
    session = tmp_path / "session"
    launchgap(
        *("run", "--pattern", tmp_path / "p.csv", "--devices", "gpu", "--runs", "3", *UNTRACED),
        *("--no-report", "-o", session),
        node=A100,
        code=0,
    )
    found = {row["mode"]: row for row in rows(session)}
    for mode in ("eager", "graph", "graph_update"):
        assert float(found[mode]["p50_ns"]) >= 6e6, mode
    assert found["eager"]["bound_by"] == "work"


def test_files_of_several_processes_and_steps_have_names_of_their_own(tmp_path):
    job = recorded(tmp_path, launches=5, gap_us=20, call_us=5, kernel_us=10, steps=3)
    long = tmp_path / ("x" * 80)
    job.rename(long)
    events = next((long / "events").iterdir())
    (long / "events" / f"z{events.name}").write_bytes(events.read_bytes())
    session = tmp_path / "session"
    patterns = [f"{long}:1", f"{long}:2", f"{long}/events/z{events.name}:1"]
    launchgap(
        *("run", *(word for pattern in patterns for word in ("--pattern", pattern)), "--devices", "host", "--runs", "1"),
        *(*UNTRACED, "--filter", "eager$", "--no-report", "-o", session),
        code=0,
    )
    names = {row["pattern"] for row in rows(session)}
    assert {name.lstrip("x") for name in names} == {".1", ".2", ".p2.1"}
    joined = tmp_path / "joined.jsonl.gz"
    joined.write_bytes(events.read_bytes() * 2)
    done = launchgap("run", "--pattern", joined, "--devices", "host", "-o", tmp_path / "no", code=2)
    assert "it has the events of several processes" in done.stderr


def test_what_is_no_pattern_is_named(tmp_path):
    job = recorded(tmp_path, launches=5, gap_us=20, call_us=5, kernel_us=10, steps=3)
    own = tmp_path / "own"
    launchgap(
        *("run", "--filter", "launch/null/.*idle", "--devices", "host", "--runs", "1", "--trace", "on", "--keep-events"),
        *("--no-observer-effect", "--no-report", "-o", own),
        code=0,
    )
    for pattern, why in {
        f"{job}:7": "it has no step 7: its steps are 1 to 3",
        f"{job}:train": "it has no steps named train; some of its ranges are ProfilerStep",
        "resnet": "'resnet' is no session, no file and no pattern that ships",
        "vit_inferenc": "vit_inference",
        str(tmp_path): "it has no folder `events` with files",
        str(own): "it has the events of launchgap's own cases",
        str(tmp_path / "made.json"): "made.json",
    }.items():
        done = launchgap("run", "--pattern", pattern, "--devices", "host", "-o", tmp_path / "no", code=2)
        assert why in done.stderr and len(done.stderr.strip().splitlines()) == 1, done.stderr
    done = launchgap("run", "--kernel-time", "2", "--devices", "host", "-o", tmp_path / "no", code=2)
    assert "--kernel-time goes with --pattern" in done.stderr
    done = launchgap("run", "--pattern", job, "--pattern", job, "--devices", "host", "-o", tmp_path / "no", code=2)
    assert "'job.2' is there twice" in done.stderr


SYNTHETIC = {
    # The device does 200 kernels of 100 us, whatever the host does.
    "bound by its work": dict(launches=200, gap_us=2, call_us=1, kernel_us=100),
    # The host works 100 us before each launch, and waits for each tenth.
    "bound by its program": dict(launches=200, gap_us=100, call_us=1, kernel_us=20, waits_every=10),
}


@pytest.mark.compares_times(alone=True)
@pytest.mark.parametrize("device", ["host", "gpu"])
@pytest.mark.parametrize("job", SYNTHETIC.values(), ids=SYNTHETIC)
def test_recordings_with_known_answers_are_replayed_within_5_percent(tmp_path, device, job):
    session = tmp_path / "session"
    pattern = recorded(tmp_path, **job)
    node = A100 if device == "gpu" else None
    launchgap(
        *("run", "--pattern", pattern, "--devices", device, "--runs", "5", "--filter", "pattern.*eager$", *UNTRACED),
        *("--no-report", "-o", session),
        node=node,
        real_time=True,
        code=0,
    )
    (row,) = rows(session)
    assert float(row["p50_ns"]) == pytest.approx(float(row["recorded_ns"]), rel=0.05)
    assert row["bound_by"] == ("work" if job["kernel_us"] > job["gap_us"] else "program")
