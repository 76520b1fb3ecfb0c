"""What hardware does and plain nodes do not: the measurement holds, or says that it does not."""

import functools
import json
import os
import re
import sys

import pytest
from shipped import NODES, ROOT, records, table

IDLE = "launch/null.*idle"
BURST = "launch/null.*burst"


@pytest.fixture
def run(run):
    """As a user runs it: with the warm-up."""
    return functools.partial(run, LAUNCHGAP_WARM_UP="on")


def of_kind(session, kind, part=""):
    return [record for name, file in records(session).items() if part in name for record in file if record["record"] == kind]


@pytest.fixture
def harsh_node(tmp_path):
    """The harsh node, or one with other keys; without its slow starts, which only take time here."""

    def write(device=None, **cupti):
        node = json.loads((NODES / "harsh_gpu.json").read_text())
        node["devices"][0] |= {"init_ns": 0, "context_ns": 0, "library_ns": 0} | (device or {})
        node["cupti"] |= cupti
        path = tmp_path / "harsh.json"
        path.write_text(json.dumps(node))
        return path

    return write


@pytest.mark.compares_times
def test_every_family_is_measured_and_traced(run):
    """As it is, slow starts included: each kind of case once, graphs and captures too."""
    pattern = (
        "launch/null|launch/flag|launch/echo|launch/chain/mode:(eager/ops:64|graph)|launch/graph/.*nodes:8|launch/library"
        "|matmul.*size:256/type:(fp32|fp16)/cache:warm|convolution.*/n:1/type:fp16|allocation.*(pool|direct)/bytes:65536"
    )
    done, session = run(pattern, trace="on", code=None, node=NODES / "harsh_gpu.json")
    rows = table(session / "summary.csv")
    assert done.returncode == 0, [(row["benchmark"], row["params"], row["reason"]) for row in rows if row["status"] != "ok"]
    assert {row["status"] for row in rows} == {"ok"}
    traced = {row["params"] for row in rows if row["benchmark"] == "launch/chain" and row["metric"] == "starved_share"}
    assert {params.split("/")[0] for params in traced} == {
        "mode:eager",
        "mode:graph",
        "mode:graph_update",
        "mode:graph_recapture",
    }
    for trace in of_kind(session, "trace"):
        assert trace["state"] == "ok", trace
        assert trace.get("late_blocks", 0) == 0 or trace["impossible"] > 0, trace
    for warm_up in (record["warm_up"] for record in of_kind(session, "run")):
        assert warm_up["seconds"] <= 2.5 and warm_up["api_ns"] > 0


def test_tracing_that_begins_with_a_burst_is_asked_again(run, harsh_node):
    burst = {"ms_per_idle_s": 1e6, "most_ms": 40, "share": 0.5}
    _, session = run(IDLE, trace="on", node=harsh_node(start_burst=burst, impossible_share=0))
    canaries = [trace for trace in of_kind(session, "trace", "traced.launch.") if "case" not in trace]
    assert [canary["canary_tries"] for canary in canaries] == [2] and canaries[0]["canary_burst"]
    assert {row["status"] for row in table(session / "summary.csv")} == {"ok"}


def test_tracing_that_stays_corrupt_is_given_up(run, harsh_node):
    burst = {"ms_per_idle_s": 1e9, "most_ms": 1e6, "share": 0.5}
    _, session = run(IDLE, trace="on", code=3, node=harsh_node(start_burst=burst))
    canaries = [trace for trace in of_kind(session, "trace", "traced.launch.") if "case" not in trace]
    assert [canary["canary_tries"] for canary in canaries] == [3]
    status = {(row["arm"], row["status"]) for row in table(session / "summary.csv") if row["process_config"] == "launch"}
    assert status == {("plain", "ok"), ("traced", "invalid")}


@pytest.mark.parametrize(
    "share, status, doubtful", [(0, "ok", False), (1e-5, "ok", False), (4e-3, "ok", True), (3e-2, "invalid", False)]
)
def test_the_share_of_impossible_records_decides(run, harsh_node, share, status, doubtful):
    """Far enough from the limits that chance does not decide: 10,000 launches a case. Tries of the canary's have 100."""
    none = {"ms_per_idle_s": 0, "most_ms": 0, "share": 0}
    # With a seed, the canary's launches are the same every time.
    node = harsh_node(start_burst=none, impossible_share=share)
    done, session = run(IDLE, trace="on", code=None, node=node, LAUNCHGAP_FAKE_SEED="7")
    cases = [trace for trace in of_kind(session, "trace", "traced.launch.") if "case" in trace]
    if not cases:  # three canaries in a row met one
        assert share == 3e-2 and done.returncode == 3
        return
    (case,) = cases
    assert (case["state"] == "ok") == (status == "ok"), case
    assert case["doubtful"] == doubtful, case
    launch = [
        row
        for row in table(session / "summary.csv")
        if row["arm"] == "traced" and row["process_config"] == "launch" and row["metric"] in ("launch_ns", "api_ns", "")
    ]
    assert {row["status"] for row in launch} == {status}
    if status != "ok":
        assert done.returncode == 3
        return
    of = {row["metric"]: row for row in launch}
    missing = int(of["api_ns"]["n"]) - int(of["launch_ns"]["n"])
    # Samples that are not kept, at the start of each block, have records too.
    assert missing <= case["impossible"] == int(of["launch_ns"]["impossible_records"])
    assert (missing > 0) or share <= 1e-5
    assert float(of["launch_ns"]["p50"]) > 0


def test_a_few_lost_records_cost_their_samples_and_no_more(run, harsh_node):
    """Seven kernels of a case of 79,360; the warm-up has 2,000 to 20,000."""
    node = harsh_node(
        {"kernel_ns": 2000, "call_ns": 5000, "launch_ns": 100_000, "ramp": {"ms": 0, "factor": 1}},
        impossible_share=0,
        start_burst={"ms_per_idle_s": 0, "most_ms": 0},
        lost={"after": 30_000, "count": 7},
    )
    _, session = run(BURST, trace="on", node=node)
    (case,) = [trace for trace in of_kind(session, "trace", "traced.launch.") if "case" in trace]
    assert case["impossible"] == 7 and case["samples_without_records"] in (1, 2) and not case["doubtful"]


def test_a_gate_is_known_whatever_its_name(run, harsh_node):
    """One operation in a sample: a gate that passed for work would make two."""
    _, session = run("matmul/library/size:(512|2048)/type:fp32/cache:warm", trace="on", node=harsh_node(impossible_share=0))
    kernels = {row["params"]: float(row["p50"]) for row in table(session / "summary.csv") if row["metric"] == "kernels"}
    assert kernels and set(kernels.values()) == {1}


def test_a_full_queue_makes_fewer_operations(run, harsh_node):
    """A convolution is two kernels: 256 of them do not fit into a queue of 300."""
    node = harsh_node(
        {"queue_depth": 300, "kernel_ns": 1000, "tflops": {"fp32": 1e5, "fp16": 1e5}}, queue_depth=100, impossible_share=0
    )
    _, session = run("convolution.*conv5_1x1_2048/n:1/type:fp16", trace="on", node=node)
    operations = {row["arm"]: int(row["method"].rsplit(";", 1)[1].split()[0]) for row in table(session / "summary.csv")}
    assert 16 <= operations["plain"] <= 150 and 8 <= operations["traced"] <= 50


def test_variables_that_falsify_are_removed_and_said(run, harsh_node):
    falsifying = {
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUBLAS_EMULATE_SINGLE_PRECISION": "1",
        "CUBLAS_EMULATE_DOUBLE_PRECISION": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "CUDA_FORCE_PTX_JIT": "1",
    }
    done, session = run(IDLE + "|matmul.*size:256/type:fp32/cache:warm", node=harsh_node(), **falsifying)
    for name, value in falsifying.items():
        assert f"{name}={value} is set" in done.stderr
    for record in of_kind(session, "run"):
        assert record["environment_removed"] == falsifying
        assert not falsifying.keys() & record["environment"].keys()
    (call,) = [row for row in table(session / "summary.csv") if row["metric"] == "api_ns"]
    (round_trip,) = [row for row in table(session / "summary.csv") if row["metric"] == "roundtrip_ns"]
    assert float(call["p50"]) < 0.7 * float(round_trip["p50"]), "a call that waited would be the round trip"


@pytest.mark.compares_times
def test_no_effect_of_tracing_is_seen_where_there_is_none():
    """A few of the sessions of tests/experiments/observer_null.py, whose record is beside it."""
    sys.path.insert(0, str(ROOT / "tests/experiments"))
    import observer_null

    found = observer_null.all_sessions(ROOT / "build", sessions=2, runs=4, lanes=1)
    rows = [(key, row) for effects in found for key, row in effects.items()]
    assert len(rows) == 2 * 3 * 3, "three levels, three metrics"
    holds = [row["effect_lo"] <= 0 <= row["effect_hi"] for _, row in rows]
    assert sum(holds) >= 2 / 3 * len(holds), rows
    # Processes differ by 2 %, and a ramp that only one side sees makes tens of percent.
    assert all(abs(row["effect"]) < 0.06 * row["plain"] for _, row in rows), rows


@pytest.mark.compares_times
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU that is not near")
def test_the_context_is_made_near_the_gpu(run, harsh_node, tmp_path):
    """The driver's memory is on the node of the thread that makes the context."""
    near = max(os.sched_getaffinity(0))
    root = tmp_path / "system"
    (root / "sys/bus/pci/devices/0000:07:00.0").mkdir(parents=True)
    (root / "sys/bus/pci/devices/0000:07:00.0/numa_node").write_text("1\n")
    (root / "sys/devices/system/node/node1").mkdir(parents=True)
    (root / "sys/devices/system/node/node1/cpulist").write_text(f"{near}\n")
    calls = {}
    for name, extra in {"near": {"LAUNCHGAP_SYSTEM_ROOT": str(root)}, "unknown": {}}.items():
        node = harsh_node({"near": {"cpus": [near], "far_factor": 3}, "call_ns": 20_000, "process_factor_sigma": 0})
        _, session = run(IDLE, node=node, **extra)
        (calls[name],) = [float(row["p50"]) for row in table(session / "summary.csv") if row["metric"] == "api_ns"]
        (record,) = of_kind(session, "run")
        assert record["cpus"] == str(near)
        for file in session.rglob("*"):
            file.unlink() if file.is_file() else None
        for folder in sorted(session.rglob("*"), reverse=True):
            folder.rmdir()
    assert calls["near"] < 30_000, "made near the GPU"
    assert calls["unknown"] > 50_000, "and would be slow elsewhere: nothing tells what is near"


@pytest.mark.compares_times
def test_what_does_not_settle_is_said(run, harsh_node):
    """A ramp of 4 s is not over in 2."""
    node = harsh_node({"ramp": {"ms": 4_000, "factor": 20, "idle_ms": 1000}})
    _, session = run(IDLE, node=node, page=True)
    (record,) = of_kind(session, "run")
    assert record["warm_up"]["steady"] is False and 2 <= record["warm_up"]["seconds"] < 2.5
    (row,) = table(session / "runs.csv")
    assert row["steady"] == "false"
    assert re.search(r"After 2\ss of launches, call times or clocks still moved", (session / "report.html").read_text())


@pytest.mark.parametrize("method", ["cooperative", "persistent"])
def test_a_grid_barrier_that_does_not_hold_is_wrong_and_not_fast(run, make_node, method):
    pattern = f"launch/small_kernels/method:{method}"
    _, session = run(pattern, "--profile", "nightly", code=3, node=make_node(grid_barrier=False))
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows} == {"failed"}
    assert all("the grid's barrier does not hold" in row["reason"] for row in rows)


@pytest.mark.compares_times
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU for each of two threads")
def test_after_the_warm_up_the_hosts_worker_has_a_cpu_of_its_own(run):
    """A stream that the warm-up kept would have moved it to the launching thread's: milliseconds in place of nanoseconds."""
    _, session = run(IDLE)
    (record,), (end,) = of_kind(session, "run"), of_kind(session, "end")
    assert record["warm_up"]["rounds"] >= 10
    assert end["details"]["queue_cpu"] != record["cpus"]
