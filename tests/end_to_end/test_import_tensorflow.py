"""What the profilers of TensorFlow and JAX record: tests/recordings has two real files, and here are small ones."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shipped import LAUNCHGAP, environment, launchgap, table

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))

from seeds import message, plane  # noqa: E402

UNIX_NS = 1_780_000_000_000_000_000
STEP_NS = 1_000_000


@pytest.fixture
def tables(tmp_path):
    """`launchgap import` of a file, and its tables; what was said on standard error."""

    def made(file: Path, page: bool = False) -> tuple[Path, str]:
        session = tmp_path / f"{file.name}.session"
        done = launchgap("import", file, "-o", session, page=page, code=0)
        launchgap("export", session, "-o", session.with_suffix(".tables"), code=0)
        return session.with_suffix(".tables"), done.stderr

    return made


def p50(folder: Path, case: str, metric: str, params: str = "") -> dict[str, float]:
    """By device."""
    rows = [
        row
        for row in table(folder / "summary.csv")
        if (row["benchmark"], row["metric"], row["params"]) == (case, metric, params)
    ]
    return {row["device_id"]: float(row["p50"]) for row in rows}


# --- recordings ---


def test_an_xplane_of_tensorflow_has_its_figures(tables):
    """By tests/recordings/README.md. The first work of both GPUs are copies, 100 and 470 ms before the first kernel: from
    there on GPU 4 is idle for 0.2514 of 19.87 ms (tests/import/xplane_test.cpp), and from its first work on for these."""
    folder, said = tables(ROOT / "tests" / "recordings" / "v100-bert.xplane.pb.gz")
    one, four, six = table(folder / "recordings.csv")
    assert {row["launches"] for row in (one, four, six)} == {"1330"} and four["joined_share"] == "1"
    assert (four["idle_launches"], four["busy_launches"]) == ("36", "629")
    assert (six["idle_launches"], six["busy_launches"]) == ("39", "626")
    assert float(four["gpu_idle_share"]) == pytest.approx(0.874413, abs=1e-6)
    assert float(six["gpu_idle_share"]) == pytest.approx(0.969314, abs=1e-6)
    assert "a call: p50 7.88 µs" in four["launch_answer"] and "a call: p50 8.12 µs" in six["launch_answer"]
    assert p50(folder, "recorded/launch", "launch_ns", "stream:idle") == {
        four["device_id"]: 11260.5,
        six["device_id"]: 12200,
    }
    assert one["verdict"] == "not known" and one["gpu_idle_share"] == ""
    assert "GPU 1 has copies and no kernels: whether it was idle is not known" in said
    assert (four["allocations"], four["releases"]) == ("761", "208")
    assert four["clock"] == "from when the profile began" and four["clock_problem"] == ""


def test_a_timeline_of_tensorflow_1_has_no_launches_and_no_zeros(tables):
    folder, said = tables(ROOT / "tests" / "recordings" / "gpu-perceptron.tf1-timeline.json", page=True)
    (row,) = table(folder / "recordings.csv")
    empty = "launches joined_share kernels_without_launch launches_without_kernel overlap early idle_launches busy_launches"
    assert {name: row[name] for name in empty.split() if row[name]} == {}
    assert row["kernels"] == "38" and row["verdict"] == "no launches"
    assert float(row["gpu_idle_share"]) == pytest.approx(0.9932, abs=5e-5)
    metrics = {(line["benchmark"], line["metric"]) for line in table(folder / "summary.csv")}
    assert ("recorded/job", "gpu_idle_share") in metrics and ("recorded/job", "launches") not in metrics
    assert p50(folder, "recorded/job", "step_ns") == {row["device_id"]: 114_064_000}
    assert {(line["grid"], line["block"]) for line in table(folder / "kernels.csv")} == {("", "")}
    kernels = {line["kernel"]: int(line["count"]) for line in table(folder / "kernels.csv")}
    assert sum(kernels.values()) == 38 and kernels["MatMul"] == 9
    assert said.count("\n") == 2
    assert "it has kernels and no calls, so nothing tells when they were launched" in said
    assert "the first work of an op begins 187 µs after the op (p50 of 32 of its 80 ops)" in said


# --- small files ---


def jax(path: Path, steps: int = 3, launches: int = 20, kernels: bool = True) -> Path:
    """Launches of 4 µs, each with a kernel of 2 µs that begins 6 µs after the call, and an allocation; 50 µs apart."""
    host, gpu, number = [], [], 0
    for step in range(steps):
        begin = STEP_NS * (step + 1)
        host.append(("train", begin, 50_000 * launches, {"step_num": 7 + step}))
        for i in range(launches):
            number += 1
            at = begin + 50_000 * i
            address = {"addr": 512 * (1 + i % 2), "allocation_bytes": 512, "allocator_name": "GPU_0_bfc"}
            host.append(("MemoryAllocation", at + 500, 0, address))
            host.append(("cuLaunchKernel", at + 1_000, 4_000, {"correlation_id": number}))
            host.append(("MemoryDeallocation", at + 40_000, 0, address))
            # The line of a GPU begins 1 µs after that of the host.
            gpu.append(("loop_add_fusion", at + 6_000, 2_000, {"correlation_id": number, "kernel_details": "grid:8,1,1"}))
    gpu.append(("MemcpyD2H", STEP_NS * (steps + 2), 1_000, {"memcpy_details": "size:4 dest:0"}))
    lines = [("Stream #13(Compute,MemcpyD2H)", [one for one in gpu if kernels or one[0] == "MemcpyD2H"]), ("XLA Ops", gpu)]
    space = message(
        plane("/host:CPU", [("python", []), ("Host Threads/7", host)]),
        plane(
            "/device:GPU:0",
            [("XLA Modules", []), ("Steps", []), *lines],
            device_vendor="Nvidia",
            compute_cap_major=9,
            compute_cap_minor=0,
        ),
        plane("Task Environment", [], profile_start_time=UNIX_NS),
    )
    path.write_bytes(gzip.compress(space) if path.suffix == ".gz" else space)
    return path


@pytest.mark.parametrize("name", ["a.xplane.pb", "a.xplane.pb.gz"])
def test_an_xplane_of_jax_has_launches_steps_and_allocations(name, tables, tmp_path):
    folder, said = tables(jax(tmp_path / name), page=True)
    (row,) = table(folder / "recordings.csv")
    assert (row["launches"], row["kernels"], row["joined_share"], row["idle_launches"]) == ("60", "60", "1", "60")
    assert (row["recorder"], row["clock"]) == ("the profiler of TensorFlow and JAX", "Unix time")
    assert said == ""
    assert p50(folder, "recorded/launch", "api_record_ns", "stream:idle") == {row["device_id"]: 4_000}
    assert p50(folder, "recorded/launch", "launch_ns", "stream:idle") == {row["device_id"]: 6_000}
    steps = [
        line for line in table(folder / "samples.csv") if (line["case"], line["metric"]) == ("recorded/step", "launches")
    ]
    assert [line["value"] for line in steps] == ["20", "20", "20"]
    (device,) = table(folder / "devices.csv")
    assert device["compute_capability"] == "9.0"
    (run,) = table(folder / "runs.csv")
    assert run["begin_utc"].startswith("2026-05-28T")


def test_what_an_xplane_allocates_can_be_replayed_and_exported(tables, tmp_path):
    tables(jax(tmp_path / "a.xplane.pb"))
    session = tmp_path / "a.xplane.pb.session"
    launchgap("replay", session, "--allocator", "bfc", "--json", tmp_path / "replay.json", code=0)
    replay = json.loads((tmp_path / "replay.json").read_text(encoding="utf-8"))
    assert (replay["trace"]["allocations"], replay["trace"]["releases"]) == (60, 60)
    assert replay["trace"]["peak_live_bytes"] == 512
    trace = tmp_path / "again.json.gz"
    launchgap("export", session, "--format", "chrome-trace", "-o", trace, code=0)
    (again,) = table(tables(trace)[0] / "recordings.csv")
    (first,) = table(session.with_suffix(".tables") / "recordings.csv")
    for column in ("launches", "kernels", "idle_launches", "gpu_idle_share", "allocations", "launch_answer"):
        assert again[column] == first[column]


def tensorboard(path: Path, kernels: bool = True, calls: bool = True) -> Path:
    """The same as text; times are microseconds from the profile's begin on."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 13, "args": {"name": "Stream #13(Compute)"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 99, "args": {"name": "TensorFlow Ops"}},
        {"ph": "M", "name": "process_name", "pid": 701, "args": {"name": "/host:CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 701, "tid": 7, "args": {"name": "tf_gpu_private_0"}},
    ]
    for i in range(20):
        args = {"correlation_id": str(i + 1), "context_id": "$$1", "kernel_details": "grid:8,1,1 block:32,1,1"}
        at = 100 + 50 * i
        if calls:
            events.append({"ph": "X", "pid": 701, "tid": 7, "ts": at + 0.5, "dur": 4.25, "name": "a_kernel", "args": args})
        kernel = {"ph": "X", "pid": 1, "ts": at + 6.75, "dur": 2, "name": "a_kernel", "args": args}
        events += [kernel | {"tid": tid} for tid in (13, 99) if kernels]
        copy = {"ph": "X", "pid": 1, "tid": 13, "ts": at + 20, "dur": 1, "name": "MemcpyD2H"}
        events.append(copy | {"args": {"memcpy_details": "size:4 dest:0"}})
    path.write_bytes(gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]}).encode()))
    return path


def test_a_trace_of_tensorboard_has_launches_too(tables, tmp_path):
    folder, said = tables(tensorboard(tmp_path / "a.trace.json.gz"))
    (row,) = table(folder / "recordings.csv")
    assert (row["launches"], row["kernels"], row["idle_launches"], row["form"]) == (
        "20",
        "20",
        "20",
        "Chrome trace, compressed",
    )
    assert p50(folder, "recorded/launch", "api_record_ns", "stream:idle") == {row["device_id"]: 4_250}
    assert p50(folder, "recorded/launch", "launch_ns", "stream:idle") == {row["device_id"]: 6_250}
    # From 106.75 to 1071 µs, with kernels of 2 µs and copies of 1 µs.
    assert float(row["gpu_idle_share"]) == pytest.approx(1 - 20 * 3 / 964.25, abs=1e-9)
    assert said == ""


@pytest.mark.parametrize("calls", [True, False])
def test_of_copies_without_kernels_no_idle_time_is_told(calls, tables, tmp_path):
    folder, said = tables(tensorboard(tmp_path / "a.trace.json.gz", kernels=False, calls=calls))
    (row,) = table(folder / "recordings.csv")
    assert row["verdict"] == "no kernels" and row["gpu_idle_share"] == ""
    assert "GPU 0 has copies and no kernels: whether it was idle is not known" in said
    assert "no kernels: whether the GPU was idle is not known." in row["answer"]
    assert row["launches"] == ("20" if calls else "")
    summary = folder / "summary.csv"  # no table without rows is written
    assert not summary.exists() or "gpu_idle_share" not in {line["metric"] for line in table(summary)}
    if calls:
        assert "The profiler of TensorFlow and JAX records kernels where it finds CUPTI" in said


# --- files that are no good ---


def test_a_length_beyond_the_file_costs_nothing(tmp_path):
    """Neither time nor memory: 1 GiB is said to follow, of nothing."""
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(b"\x0a\xff\xff\xff\xff\x03\x12\x09/host:CPU" + bytes(100))
    before = time.monotonic()
    done = subprocess.run(
        [LAUNCHGAP, "import", path, "-o", tmp_path / "s"],
        capture_output=True,
        text=True,
        timeout=20,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20)),
    )
    assert done.returncode == 3 and "it is cut off or damaged: it ends at byte" in done.stderr
    assert time.monotonic() - before < 10


def test_every_cut_of_an_xplane_is_told_in_one_line(tmp_path):
    whole = jax(tmp_path / "whole.xplane.pb", steps=1, launches=2).read_bytes()
    for at in range(12, len(whole), 97):
        path = tmp_path / f"{at}.xplane.pb"
        path.write_bytes(whole[:at])
        done = launchgap("import", path, "-o", tmp_path / f"{at}.session")
        assert done.returncode in (0, 3), done.stderr
        assert done.returncode == 0 or done.stderr.count("\n") == 1
