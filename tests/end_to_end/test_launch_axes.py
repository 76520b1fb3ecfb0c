"""Every axis of the launch family: a node on which it matters, and the advice that says so; and one on which
nothing does."""

import json
import os
import re
import subprocess

import pytest
from shipped import LAUNCHGAP, NATIVE, environment, table

# A node without noise of its own, and of a generation that has everything.
QUIET = dict(
    compute_capability="9.0", process_factor_sigma=0, call_ns=20000, launch_ns=30000, kernel_ns=5000, kernel_gap_ns=0
)

# Where no time is compared.
FAST = QUIET | dict(call_ns=2000, launch_ns=3000, kernel_ns=1000)

# The bounds are wide: this machine has noise of its own.
# What to run, what the node has besides, and what the advice on the axis must say.
MATTERS = {
    "api": ("launch/api/.*idle", {"runtime": {"chevron_ns": 8000, "ex_ns": 0}},
        r"Launch through the driver API .* 1\.4\d times as long with <<<>>>"),
    "args": ("launch/args/.*idle", {"argument_ns_per_byte": 3}, r"Keep arguments small .* from (1024|4096) bytes on"),
    "grid": ("launch/grid", {"wave_ns": 20000}, r"From \d+ blocks on the grid of an empty kernel costs time"),
    "streams": ("launch/streams/.*(10us|null)/with:nothing", {"call_ns": 3000},
        r"Spread independent kernels .* over (4|32) streams"),
    "streams-of-empty-kernels": ("launch/streams/.*null/with:nothing", {"stream_switch_ns": 15000},
        r"Keep kernels that do next to nothing in one stream"),
    "default-stream": ("launch/streams/streams:4/kernel:10us", {"call_ns": 1000, "launch_ns": 5000, "legacy_ns": 20000},
        r"Keep out of the legacy default stream"),
    "threads": ("launch/threads/threads:(1|2)/streams:own", {"call_ns": 60000},
        r"Launching from several threads pays: from 2 threads"),
    "threads-behind-a-lock": ("launch/threads/threads:(1|2)/", {"launch_lock": "stream", "call_ns": 60000},
        r"Give each launching thread a stream of its own"),
    "graph": (
        "launch/graph/shape:line/nodes:(1|4|16|64)/",
        {"graph": {"node_ns": 500, "capture_node_ns": 1000, "instantiate_ns": 100000, "upload_ns": 1000}},
        r"Use a graph from (4|16) kernels on"),
    "graph-update": ("launch/graph/shape:line/nodes:64/", {"graph": {"instantiate_ns": 2000000, "update_ns": 20000}},
        r"[Uu]pdat"),
    "graph-that-does-not-pay": (
        "launch/graph/shape:line/nodes:(4|64)/(mode:single|mode:replay)", {"graph": {"node_ns": 40000}},
        r"one by one"),
    "cooperative": ("launch/cooperative", {"cooperative_ns": 12000}, r"Launch cooperatively only where blocks must wait"),
    "dependent": ("launch/dependent", {"call_ns": 1000, "kernel_ns": 1000, "dependent_overlap_ns": 2000},
        r"programmatic dependents"),
    "priority": ("launch/priority", {"contended_ns": 200000}, r"priority"),
    "wait": ("launch/wait/wait:(spin|block)/by:stream", {"wake_ns": {"yield": 0, "block": 60000}}, r"sleep|block"),
    "first-jit": ("launch/first", {"jit_ns": 90000000, "lazy_ns": 500000}, r"compil|JIT"),
    "after-idle": ("launch/after_idle/idle_ms:(0|1|10|100)$", {"idle": [{"after_ms": 50, "ns": 400000}]}, r"idle"),
    "interference": ("launch/interference/beside:(default_stream|sleep|long_kernel|event)/mode:idle",
        {"legacy_ns": 50000, "contended_ns": 40000, "idle": [{"after_ms": 1, "ns": 150000}]},
        r"slower after the thread slept \(.* times the round trip\), behind a launch into the legacy default stream"),
    "queue": ("launch/queue", {"queue_depth": 300, "call_ns": 3000}, r"fewer than 299 launches"),
    "library": ("launch/library/call:(kernel|matmul)", {"library_call_ns": 30000}, r"librar"),
    "chain": (
        "launch/chain/mode:(eager|graph)/ops:64/gap_us:0",
        {"call_ns": 150000, "launch_ns": 160000, "graph": {"call_ns": 150000, "node_ns": 500}},
        r"graph"),
    "chain-allocations": ("launch/chain/mode:eager(_alloc|_pool)?/ops:64/gap_us:0", {"alloc_ns": 100000, "free_ns": 90000},
        r"pool"),
}  # fmt: skip


@pytest.mark.compares_times
@pytest.mark.parametrize("name", MATTERS)
def test_the_advice_names_what_matters_on_this_node(name, run, make_node):
    if name == "dependent" and not NATIVE:
        pytest.skip("built without the native form, and dependent launches have no other")
    filter_, changes, sentence = MATTERS[name]
    _, session = run(filter_, runs=3, node=make_node(**QUIET | changes), timeout=300)
    axis = "-".join(filter_.split("/")[:2])
    lines = [row for row in table(session / "findings.csv") if row["code"] == axis]
    claims = [row for row in lines if row["severity"] != "fine"]
    assert any(re.search(sentence, row["sentence"]) for row in claims), [(row["severity"], row["sentence"]) for row in lines]
    assert all(row["evidence"] and row["cases"] for row in claims), "every line has its evidence"


# Nothing here costs more than its plain sibling: no line may claim that it does.
@pytest.mark.compares_times
def test_no_advice_to_act_where_nothing_matters(run, make_node):
    filter_ = "launch/(api/.*idle|args/.*idle|grid|cooperative|after_idle/idle_ms:(0|1)$)"
    _, session = run(filter_, runs=3, node=make_node(**QUIET))
    lines = [row for row in table(session / "findings.csv") if row["source"] == "advice"]
    assert {row["code"] for row in lines} >= {"launch-api", "launch-args", "launch-grid", "launch-cooperative"}
    assert [row["sentence"] for row in lines if row["severity"] == "act"] == []


@pytest.mark.compares_times
def test_the_page_gives_the_advice_and_the_spread(run, make_node):
    node = make_node(**QUIET | MATTERS["args"][1])
    _, session = run(MATTERS["args"][0], runs=3, node=node, page=True)
    page = (session / "report.html").read_text(encoding="utf-8")
    assert re.search(MATTERS["args"][2], page)
    assert "What makes a launch cost" in page


# --- what can go wrong ---


def statuses(session):
    return {(row["benchmark"], row["params"]): (row["status"], row["reason"]) for row in table(session / "summary.csv")}


API, PLUGIN = "api/api:(chevron|runtime)", "LAUNCHGAP_RUNTIME_PLUGIN"
# What to run besides empty launches, what the device is and the environment has, and why which cases cannot be.
CANNOT = {
    "a plugin that is not there": (
        API, {}, {PLUGIN: "/nowhere/liblaunchgap_runtime.so"},
        {("launch/api", "api:chevron/mode:idle"): "which a build with nvcc makes"}),
    "a plugin that is something else": (
        API, {}, {PLUGIN: "libc.so.6"}, {("launch/api", "api:runtime/mode:burst"): "launchgap_runtime_plugin_1"}),
    "a driver that is too old for the runtime": (
        API, {"runtime": None}, {}, {("launch/api", "api:chevron/mode:idle"): "cudaErrorInsufficientDriver"}),
    "a GPU without graphs": (
        "graph|chain/mode:(eager|graph)/", {"graph": None}, {},
        {("launch/graph", "shape:line/nodes:4/mode:replay"): "no graphs",
         ("launch/chain", "mode:graph/ops:64/gap_us:0"): "no graphs"}),
    "a GPU of another generation": (
        "cooperative|dependent|args", {"compute_capability": "6.0", "cooperative": False}, {},
        {("launch/cooperative", "launch:cooperative"): "cooperative",
         ("launch/dependent", "launch:dependent"): "needs compute capability 9.0"}),
    "streams without priorities": (
        "priority", {"priorities": [0, 0]}, {}, {("launch/priority", "priority:higher"): "one priority for all streams"}),
    "a queue without an end": ("queue", QUIET, {}, {("launch/queue", ""): "no launch had to wait"}),
    "more threads than CPUs": (
        "threads", {}, {}, {("launch/threads", "threads:16/streams:own"): "16 launching threads need 16 CPUs"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CANNOT)
def test_what_a_device_cannot_is_unsupported_with_the_reason_and_the_rest_is_measured(name, run, make_node):
    cases, changes, environment, expected = CANNOT[name]
    if name == "more threads than CPUs" and len(os.sched_getaffinity(0)) >= 16:
        pytest.skip("this machine has 16 CPUs")
    _, session = run(f"launch/({cases}|null/.*idle)", node=make_node(**FAST | changes), **environment)
    found = statuses(session)
    for case, reason in expected.items():
        assert found[case][0] == "unsupported" and reason in found[case][1], found[case]
    assert all(status == "ok" for (case, _), (status, _) in found.items() if case == "launch/null")


GRAPH = "launch/(graph/shape:line/nodes:4|null/.*idle)"
FAULTS = {
    "a graph that the driver refuses": (GRAPH, "cuGraphInstantiateWithFlags", {"code": 1}),
    "a capture that is refused": (GRAPH, "cuStreamBeginCapture_v2", {"code": 900}),
    "a graph that kills the context": (GRAPH, "cuGraphLaunch", {"code": 700, "after": 9}),
    "a queue that never drains": ("launch/(queue|null/.*idle)", "cuStreamSynchronize", {"hang": True, "after": 3}),
}


@pytest.mark.compares_times
@pytest.mark.parametrize("name", FAULTS)
def test_what_fails_fails_alone(name, run, make_node):
    filter_, call, fault = FAULTS[name]
    node = make_node(faults=[{"device": None, "library": "cuda", "call": call} | fault], **FAST)
    _, session = run(filter_, "--timeout", 2, code=3, node=node, timeout=120)
    found = statuses(session)
    failed = {case for (case, _), (status, _) in found.items() if status == "failed"}
    assert failed
    if "hang" not in fault:
        assert all(status == "ok" for (case, _), (status, _) in found.items() if case == "launch/null")
        assert failed == {"launch/graph"}


def test_an_argument_that_gets_lost_is_a_wrong_result_and_not_a_time(run, make_node):
    # The kernel stores at an address of which the driver's allocator knows nothing.
    faults = [{"device": None, "library": "cuda", "call": "cuMemcpyDtoH_v2", "code": 1}]
    _, session = run("launch/args/bytes:4096", code=3, node=make_node(faults=faults, **QUIET))
    assert {status for status, _ in statuses(session).values()} == {"failed"}


# --- fresh processes, settings, early stops ---


def test_a_fresh_process_is_one_sample_and_they_have_a_number_of_their_own(run, make_node):
    _, session = run("launch/(first|wait)", runs=None, node=make_node(**FAST))
    rows = [row for row in table(session / "summary.csv") if row["benchmark"] == "launch/first"]
    assert {row["n"] for row in rows} == {row["runs"] for row in rows} == {"3"}
    runs = table(session / "runs.csv")
    assert {run["process_config"] for run in runs} == {
        "launch+wait=spin",
        "launch+wait=yield",
        "launch+wait=block",
        *(f"launch+loading={way}" for way in ("lazy", "eager", "jit_cached", "jit_uncached")),
    }
    by_process_config = {run["process_config"]: run for run in runs}
    assert by_process_config["launch+loading=jit_uncached"]["kernel_form"] == "portable"
    assert by_process_config["launch+loading=lazy"]["kernel_form"] in ("native", "portable")


@pytest.mark.compares_times(alone=True)
def test_first_launches_are_taken_apart(run, make_node):
    node = make_node(**QUIET | {"init_ns": 30e6, "context_ns": 50e6, "module_ns": 4e6, "lazy_ns": 7e6, "jit_ns": 90e6})
    _, session = run("launch/first", runs=3, node=node)
    found = {(row["params"].split(":")[1], row["metric"]): float(row["p50"]) / 1e6 for row in table(session / "summary.csv")}
    for way in ("lazy", "eager", "jit_cached", "jit_uncached"):
        assert found[way, "initialise_ns"] == pytest.approx(30, rel=0.3)
        assert found[way, "context_ns"] == pytest.approx(50, rel=0.2)
    assert found["jit_uncached", "module_ns"] == pytest.approx(94, rel=0.2), "module and compiling"
    assert 3 < found["jit_cached", "module_ns"] < 40, "an earlier process has compiled it"
    assert found["lazy", "first_call_ns"] == pytest.approx(7, rel=0.3), "the function is loaded when it is launched"
    if NATIVE:
        assert found["eager", "module_ns"] == pytest.approx(11, rel=0.3), "or with its module"
    else:
        assert ("eager", "module_ns") not in found, "it is compiled, or was by somebody before"
    assert found["eager", "first_call_ns"] < 1


@pytest.mark.compares_times
def test_a_case_stops_early_only_when_its_medians_are_known(run, make_node):
    def samples(**changes):
        _, session = run("launch/grid/blocks:1$", "--profile", "nightly", node=make_node(**QUIET | changes))
        return {int(row["n"]) for row in table(session / "summary.csv")}

    (steady,) = samples()
    assert steady in range(6 * 300, 10 * 300, 300), "at least six blocks, and not all ten"


def test_a_noisy_case_takes_all_of_its_blocks(run, make_node):
    # Medians of 300 samples then differ by percents from block to block, whatever is drawn.
    noise = {"lognormal": {"median": 30000, "sigma": 0.5}}
    node = make_node(**QUIET | {"call_ns": noise, "launch_ns": 90000})
    _, session = run("launch/grid/blocks:1$", "--profile", "nightly", node=node)
    assert {row["n"] for row in table(session / "summary.csv")} == {"3000"}


# --- the chain, as a trace sees it ---


@pytest.mark.compares_times
def test_the_chain_runs_what_it_claims(run, make_node, export):
    node = make_node(**QUIET | {"kernel_ns": 0, "call_ns": 3000, "launch_ns": 5000})
    _, session = run("launch/chain/mode:(eager|graph)/ops:64", trace="on", node=node)
    rows = {
        (row["params"].split("/")[0], row["metric"]): float(row["p50"])
        for row in table(session / "summary.csv")
        if row["arm"] == "traced" and row["process_config"] == "launch"
    }
    # The mean of the mix: 2 to 9, 9 to 140 and 140 to 500 us, evenly by the logarithm.
    mean_us = 0.5 * 7 / 1.504 + 0.4 * 131 / 2.744 + 0.1 * 360 / 1.273
    assert rows["mode:eager", "kernel_ns"] / 1e3 == pytest.approx(mean_us, rel=0.03)
    kernels = [row for row in table(export(session) / "kernels.csv") if row["kernel"] == "launchgap_spin"]
    assert kernels
    durations = [float(row["longest_ns"]) for row in kernels]
    assert max(durations) <= 500_500


def test_a_cache_in_which_the_driver_leaves_nothing_is_unsupported_and_not_a_time(make_node, tmp_path):
    """As where it cannot be written: the worker that is to find compiled code finds an empty folder."""
    node = make_node(**QUIET)
    empty = tmp_path / "cache"
    empty.mkdir()
    cpu = str(min(os.sched_getaffinity(0)))
    job = dict(
        task="run", parent=os.getpid(), backend="cuda", uuid=json.loads(node.read_text())["devices"][0]["uuid"],
        session_id="s", node="n", replicate=0, arm="plain", process_config="launch+loading=jit_cached", attempt=0,
        trace_required=False, keep_events=False, seed=1, profile="quick", side_by_side=1, cpus=cpu, near_cpus=cpu,
        records=str(tmp_path / "records.jsonl"), fingerprint={}, cases=["launch/first/loading:jit_cached"], skipped=[],
        jit_cache=str(empty),
    )  # fmt: skip
    subprocess.run(
        ["bash", "-c", 'exec "$0" worker --job 3>"$1"', LAUNCHGAP, tmp_path / "messages"],
        input=json.dumps(job),
        text=True,
        env=environment(node),
        timeout=60,
        check=True,
    )
    summaries = [
        record
        for record in map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
        if record["record"] == "summary"
    ]
    assert [record["status"] for record in summaries] == ["unsupported"]
    assert "kept nothing" in summaries[0]["reason"] and str(empty) in summaries[0]["reason"]


@pytest.mark.compares_times(alone=True)
def test_past_the_queues_limit_a_launch_takes_as_long_as_a_kernel(run, make_node):
    node = make_node(**QUIET | {"queue_depth": 300, "call_ns": 3000, "launch_ns": 5000, "kernel_ns": 5000})
    _, session = run("launch/queue", runs=2, node=node)
    found = {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv")}
    assert found["queue_depth"] == 299, "and the one that runs"
    assert found["full_launch_ns"] == pytest.approx(25_000, rel=0.1), "20 us of work in a kernel of 5 us"
