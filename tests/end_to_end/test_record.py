"""`launchgap record`: any program's launches, in the program's own way."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from shipped import BUILD, LAUNCHGAP, NODES, ROOT, environment, launchgap, records, table

sys.path.insert(0, str(ROOT / "tests" / "experiments"))
import recorded_nights

PROGRAM = BUILD / "bin" / "launching_program"

# Buffers that are not full are written this often (kFlushNs of harness/injected/recorder.cpp).
FLUSHED_MS = 1000


def events(session):
    """Each event of a session's processes as (process, kind, values by column)."""
    for path in sorted((session / "events").iterdir()):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            head = json.loads(next(lines))
            for line in lines:
                block = json.loads(line)
                columns = [key for key, values in block.items() if isinstance(values, list)]
                for values in zip(*(block[key] for key in columns), strict=True):
                    event = dict(zip(columns, values, strict=True))
                    if "name" in event:
                        event["name"] = head["names"][event["name"]]
                    yield head, block["kind"], event


def launches_and_kernels(session):
    """Launch calls, without those into graphs that are captured, and kernels."""
    calls = kernels = 0
    for _, kind, event in events(session):
        kernels += kind == "kernel"
        calls += kind == "call" and event["purpose"] in (1, 2)
    return calls, kernels


def record(session, *words, options=(), node="one_a100", code=0, page=False, **extra):
    report = () if page else ("--no-report",)
    return launchgap(
        "record", *report, "-o", session, *options, "--", *words, node=NODES / f"{node}.json", code=code, **extra
    )


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def said_counts(text):
    """The sum of what the program's processes say that they did."""
    counts = [(int(calls), int(kernels)) for calls, kernels in re.findall(r"calls (\d+) kernels (\d+)", text)]
    return tuple(map(sum, zip(*counts, strict=True)))


@pytest.mark.parametrize(
    "words, node",
    [
        ("threads 16 4 50 graph 5 20 launch 100", "one_a100"),
        ("devices 30", "mixed_8_gpus"),
        ("fork launch 40 fork launch 10", "one_a100"),
    ],
)
def test_what_a_program_counts_is_recorded(tmp_path, words, node):
    """Threads, streams, graphs and contexts; a fork before CUDA, and one after it whose child ends."""
    done = record(tmp_path / "s", PROGRAM, *words.split(), node=node)
    assert launches_and_kernels(tmp_path / "s") == said_counts(done.stdout)


@pytest.mark.parametrize(
    "end, code",
    [("crash", 128 + signal.SIGSEGV), ("kill", 128 + signal.SIGKILL), ("_exit", 9)],
)
def test_what_was_written_before_a_program_dies_can_be_read(tmp_path, end, code):
    done = record(tmp_path / "s", PROGRAM, "launch", 300, "sleep", FLUSHED_MS, end, code=code, real_time=True)
    assert launches_and_kernels(tmp_path / "s") == said_counts(done.stdout) == (300, 300)
    assert "the program was killed, ended by _exit" in " ".join(done.stderr.split())


def test_a_program_that_becomes_another_is_recorded_as_both(tmp_path):
    words = ("launch", 200, "sleep", FLUSHED_MS, "exec", PROGRAM, "launch", 70)
    done = record(tmp_path / "s", PROGRAM, *words, real_time=True)
    assert said_counts(done.stdout) == (70, 70)
    assert launches_and_kernels(tmp_path / "s") == (270, 270)
    assert len(list((tmp_path / "s" / "events").iterdir())) == 2


def test_children_are_recorded_each_in_a_file_of_its_own_with_their_ranks(tmp_path):
    ranks = "for rank in 0 1 2 3 4 5 6 7; do RANK=$rank $0 launch $((10 + rank)) & done; wait"
    done = record(tmp_path / "s", "sh", "-c", ranks, PROGRAM)
    assert launches_and_kernels(tmp_path / "s") == said_counts(done.stdout) == (108, 108)
    assert sorted({head["rank"] for head, _, _ in events(tmp_path / "s")}) == list(range(8))
    assert len({head["pid"] for head, _, _ in events(tmp_path / "s")}) == 8


def test_streams_arguments_and_exit_code_are_the_programs_own(tmp_path):
    script = 'read line; echo "out $line $1"; echo "err" >&2; exit 7'
    done = launchgap("record", "-o", tmp_path / "s", "--", "sh", "-c", script, "sh", "[1,2]", code=7)
    assert done.stdout == "out  [1,2]\n"
    assert done.stderr.startswith("err\n")
    assert "did not initialise CUDA" in done.stderr
    assert not (tmp_path / "s").exists() and not (tmp_path / "s.raw").exists()


def test_ten_starts_are_ten_runs(tmp_path):
    record(tmp_path / "s", PROGRAM, "launch", 200, options=("--runs", 10))
    assert len(records(tmp_path / "s")) == 10
    rows = [row for row in table(tmp_path / "s" / "summary.csv") if row["metric"] == "api_record_ns"]
    assert rows and {row["runs"] for row in rows} == {"10"}
    assert all(row["source"] == "recorded" and row["simulated"] == "true" for row in rows)
    session = json.loads((tmp_path / "s" / "session.json").read_text(encoding="utf-8"))
    assert session["host"]["node"] == os.uname().nodename and session["host"]["cpu_model"]


def test_ranges_of_nvtx_are_steps(tmp_path):
    done = record(tmp_path / "s", PROGRAM, "ranges", 12, 20, options=("--step", "step"))
    ranges = [event for _, kind, event in events(tmp_path / "s") if kind == "range"]
    assert [event["name"] for event in ranges] == ["step"] * 12
    step_rows = [row for row in table(tmp_path / "s" / "summary.csv") if row["benchmark"] == "recorded/step"]
    assert {row["n"] for row in step_rows} == {"12"}
    assert "no range" not in done.stderr
    done = record(tmp_path / "t", PROGRAM, "ranges", 12, 20, options=("--step", "iteration"))
    assert "no range is named iteration" in done.stderr


@pytest.mark.parametrize("level", ["launches", "kernels", "all"])
def test_a_level_records_what_it_says(tmp_path, level):
    record(tmp_path / "s", PROGRAM, "launch", 20, "copies", 5, options=("--level", level))
    kinds = {kind for _, kind, _ in events(tmp_path / "s")}
    expected = {"launches": {"call"}, "kernels": {"call", "kernel", "transfer"}}
    assert kinds == expected.get(level, {"call", "kernel", "transfer", "wait", "memory"})


def with_cupti(tmp_path, **cupti):
    node = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    node["cupti"] = node.get("cupti", {}) | cupti
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "cupti, options, why",
    [
        ({"subscriber": "CUPTI for somebody"}, (), "another tool has CUPTI in the process"),
        ({}, ("--limit", "100"), "its limit of 100 bytes is reached"),
        ({"version": 12}, (), "is older than CUDA 11.0"),
    ],
)
def test_where_recording_fails_the_program_goes_on(tmp_path, cupti, options, why):
    words = ("record", "--no-report", "-o", tmp_path / "s", *options, "--", PROGRAM, "launch", 100)
    done = launchgap(*words, node=with_cupti(tmp_path, **cupti))
    assert done.stdout == "calls 100 kernels 100\n"
    assert why in " ".join(done.stderr.split())
    assert done.returncode == 0 and not (tmp_path / "s").exists() and not (tmp_path / "s.raw").exists()


def test_an_injection_that_is_set_is_kept(tmp_path):
    other = "/usr/lib/other_tool.so"
    done = record(tmp_path / "s", "sh", "-c", "echo $CUDA_INJECTION64_PATH", CUDA_INJECTION64_PATH=other)
    assert done.stdout == other + "\n"
    assert "two recorders cannot share a process" in done.stderr


def test_two_recordings_into_one_folder(tmp_path):
    (tmp_path / "s.raw").mkdir()
    done = record(tmp_path / "s", PROGRAM, "launch", 1, code=2)
    assert "another recording into this folder goes on, or was killed" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words, code, why",
    [
        (("no-such-program",), 127, "command not found"),
        (("/etc/passwd",), 126, "Permission denied"),
        ((), 2, "put `--` and the command behind the options"),
    ],
)
def test_a_command_that_is_none(tmp_path, words, code, why):
    done = record(tmp_path / "s", *words, code=code)
    assert why in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_a_recorder_that_is_killed_leaves_can_be_imported(tmp_path):
    words = [LAUNCHGAP, "record", "-o", tmp_path / "s", "--", PROGRAM, "launch", "50", "sleep", "60000"]
    env = environment(NODES / "one_a100.json", real_time=True)
    recorder = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)
    try:
        raw = tmp_path / "s.raw"
        wait_until(lambda: any(file.stat().st_size > 4096 for file in raw.glob("*/*.raw")))
        children = subprocess.run(["pgrep", "-P", str(recorder.pid)], capture_output=True, text=True, check=True)
    finally:
        recorder.kill()
        recorder.wait()
    os.kill(int(children.stdout), signal.SIGKILL)
    done = launchgap("import", *raw.glob("*/*.raw"), "-o", tmp_path / "t", code=0)
    assert "the program was killed, ended by _exit" in " ".join(done.stderr.split())
    assert launches_and_kernels(tmp_path / "t") == (50, 50)


def statistics(session, benchmark="recorded/"):
    rows = table(session / "summary.csv")
    columns = ("n", "p50", "p90", "p99", "mean")
    return {
        (row["benchmark"], row["params"], row["metric"]): tuple(row[column] for column in columns)
        for row in rows
        if row["benchmark"].startswith(benchmark)
    }


def test_the_exported_trace_has_the_same_statistics(tmp_path):
    words = "threads 3 2 200 graph 4 30 copies 20 launch 300".split()
    record(tmp_path / "s", PROGRAM, *words)
    launchgap("export", tmp_path / "s", "--format", "chrome-trace", "-o", tmp_path / "s.json.gz", code=0)
    launchgap("import", tmp_path / "s.json.gz", "-o", tmp_path / "t", code=0)
    assert statistics(tmp_path / "s") == statistics(tmp_path / "t")


def test_what_run_traces_and_what_is_recorded_are_the_same(tmp_path):
    """Of launchgap's own program: what its traced run has of a case, a recording of its plain run has."""
    steady = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    device = steady["devices"][0]
    device |= {"process_factor_sigma": 0, "idle": []}
    device |= {name: {"constant": ns} for name, ns in (("call_ns", 2500), ("launch_ns", 5000), ("kernel_ns", 1500))}
    node = tmp_path / "steady.json"
    node.write_text(json.dumps(steady), encoding="utf-8")
    case = ("--filter", "^launch/null/.*api:driver/mode:idle$", "--devices", "gpu", "--runs", 1, "--no-report")
    launchgap("run", *case, "--trace", "on", "-o", tmp_path / "run", node=node, code=0)
    own = [LAUNCHGAP, "run", *map(str, case), "--trace", "off", "-o", tmp_path / "plain"]
    launchgap("record", "--no-report", "-o", tmp_path / "recorded", "--", *own, node=node, code=0)
    traced = {row["metric"]: row for row in table(tmp_path / "run" / "summary.csv") if row["arm"] == "traced"}
    recorded = statistics(tmp_path / "recorded")
    for metric in ("api_record_ns", "launch_ns", "kernel_ns"):
        p50 = float(recorded["recorded/launch", "stream:idle", metric][1])
        assert p50 == pytest.approx(float(traced[metric]["p50"]), rel=0.02)


def test_what_recording_costs_is_measured_in_turns(tmp_path):
    """An API record that takes 3 µs is found in each level; a start takes at least as much longer."""
    node = with_cupti(tmp_path, api_overhead_ns={"constant": 3000})
    options = ("--cost", "--runs", 6, "-o", tmp_path / "s")
    done = launchgap("record", *options, "--", PROGRAM, "launch", 4000, node=node, real_time=True, code=0)
    rows = {row["level"]: row for row in table(tmp_path / "s" / "recording_costs.csv")}
    assert list(rows) == ["launches", "kernels", "all"]
    assert all(row["rounds"] == "6" and int(row["calls"]) >= 4000 for row in rows.values())
    # Others compute meanwhile, which adds to some.
    assert all(float(row["call_high_ns"]) > 2800 for row in rows.values())
    assert len(records(tmp_path / "s")) == 6
    assert "adds to a recorded call" in done.stderr
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "to each recorded call and" in page and "(6 rounds)" in page.replace("\u00a0", " ")


def test_a_page_says_that_the_cost_was_not_measured(tmp_path):
    record(tmp_path / "s", PROGRAM, "launch", 20, page=True)
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "What recording itself added was not measured: launchgap record --cost does." in page


def test_a_history_finds_a_launch_call_that_takes_longer_by_the_third_night(tmp_path):
    """The longest of it is tests/experiments/recorded_nights.py."""
    nodes = {slow: recorded_nights.describe_node(tmp_path / f"{slow}.json", 1 + 0.1 * slow) for slow in (False, True)}
    call = "api_record_ns of recorded/launch/stream:busy"
    found = []
    for number in range(25):
        slow = number >= 22
        recorded_nights.record_night(tmp_path / f"night-{number}", number, nodes[slow])
        code, slower = recorded_nights.check_night(tmp_path / f"night-{number}", tmp_path / "nights.db")
        found.append((code, call in slower))
    assert found[-1] == (4, True)
    assert not any(named for _, named in found[:-1])


@pytest.mark.parametrize(
    "words, options, launches, why",
    [
        (("launch", 300, "sleep", 900, "launch", 200), ("--for", 0.3), 300, "the time that it was asked for is over"),
        (("launch", 20000), ("--limit", "48KiB"), None, "its limit of 49152 bytes is reached"),
    ],
)
def test_recording_ends_before_the_program_where_it_was_asked_to(tmp_path, words, options, launches, why):
    done = record(tmp_path / "s", PROGRAM, *words, options=options, real_time=True)
    said, found = said_counts(done.stdout)[0], launches_and_kernels(tmp_path / "s")[0]
    assert found == launches or (launches is None and 100 < found < said)
    assert why in " ".join(done.stderr.split())


def test_many_threads_have_each_a_buffer(tmp_path):
    done = record(tmp_path / "s", PROGRAM, "threads", 120, 1, 5)
    assert launches_and_kernels(tmp_path / "s") == said_counts(done.stdout) == (600, 600)
    assert "missing" not in done.stderr


def test_a_clock_that_jumps_is_said(tmp_path):
    step = {"after": 500, "ns": -5_000_000_000}
    words = ("record", "--no-report", "-o", tmp_path / "s", "--", PROGRAM, "launch", 1000)
    done = launchgap(*words, node=with_cupti(tmp_path, clock_step=step), code=0)
    assert said_counts(done.stdout) == (1000, 1000)
    assert launches_and_kernels(tmp_path / "s") == (1000, 1000)
    assert "clock" in done.stderr


def test_a_program_with_the_rights_of_others_is_started_and_not_recorded(tmp_path):
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    done = record(tmp_path / "s", program)
    assert "runs with the rights of another user (setuid)" in done.stderr
    assert not (tmp_path / "s").exists()


def test_a_folder_that_cannot_be_made_is_said_before_the_program_starts(tmp_path):
    (tmp_path / "file").write_text("")
    done = record(tmp_path / "file" / "s", "echo", "started", code=2)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1


def test_signals_reach_the_program(tmp_path):
    script = "trap 'echo told; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
    words = [LAUNCHGAP, "record", "-o", tmp_path / "s", "--", "sh", "-c", script]
    recorder = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stdout.readline() == "ready\n"
    recorder.send_signal(signal.SIGUSR1)
    out, _ = recorder.communicate(timeout=30)
    assert out == "told\n" and recorder.returncode == 5


def test_its_allocations_can_be_replayed(tmp_path):
    record(tmp_path / "s", PROGRAM, "copies", 3)
    done = launchgap("replay", tmp_path / "s", "--over", "sim", "--allocator", "caching", code=0)
    assert "1 allocation and 1 free, of cupti" in done.stdout


def test_a_process_ends_with_its_last_thread(tmp_path):
    """Whose main thread left it to others by pthread_exit(): the recorder's own is not one of them."""
    done = record(tmp_path / "s", PROGRAM, "launch", 100, "leave", real_time=True, timeout=60)
    assert launches_and_kernels(tmp_path / "s") == said_counts(done.stdout) == (100, 100)


@pytest.mark.parametrize("words", [("limit", 100, "launch", 50), ("launch", 50, "limit", 100, "launch", 50)])
def test_a_limit_of_files_ends_the_recording_and_not_the_program(tmp_path, words):
    done = record(tmp_path / "s", PROGRAM, *words)
    assert said_counts(done.stdout)[0] == 50 * words.count("launch")
    assert "could" in done.stderr or "cannot" in done.stderr


def test_a_process_that_outlives_the_program_is_said_and_its_recording_kept(tmp_path):
    done = record(tmp_path / "s", PROGRAM, "outlive", 1500, "launch", 10, real_time=True)
    pid = int(re.search(r"process (\d+) of the program still runs", done.stderr)[1])
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    launchgap("import", *(tmp_path / "s.raw").glob(f"*/{pid}.*.raw"), "-o", tmp_path / "t", code=0)
    assert launches_and_kernels(tmp_path / "t") == (2, 2)
    assert launches_and_kernels(tmp_path / "s") == (10, 10)


def test_an_exit_code_is_no_signal(tmp_path):
    done = record(tmp_path / "s", "sh", "-c", "$0 launch 5; exit 255", PROGRAM, code=255)
    assert "start 1 of 1 ended with 255" in done.stderr


def test_signals_that_the_caller_ignores_stay_ignored(tmp_path):
    show = ["grep", "^Sig[BI]", "/proc/self/status"]
    words = [str(LAUNCHGAP), "record", "-o", str(tmp_path / "s"), "--", *show]
    for trap in ("", "trap '' PIPE; "):
        shell = [["sh", "-c", trap + 'exec "$@"', "sh", *command] for command in (show, words)]
        plain, recorded = (subprocess.run(s, env=environment(), capture_output=True, text=True) for s in shell)
        assert plain.stdout == recorded.stdout


def test_where_cupti_must_be_left_before_the_end_it_is(tmp_path):
    words = ("record", "--no-report", "-o", tmp_path / "s", "--", PROGRAM, "launch", 20)
    launchgap(*words, node=with_cupti(tmp_path, abort_at_exit=True), code=0)
    assert launches_and_kernels(tmp_path / "s") == (20, 20)
