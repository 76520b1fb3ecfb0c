"""The traced arm: what a fake GPU drew is what comes out, whatever CUPTI does, and the plain arm is never touched."""

import json
import math

import pytest
from shipped import NODES, SMALL, records, table

IDLE = "launch/null.*idle"
BURST = "launch/null.*burst"
# Long against this machine's noise. The launch is what a test varies.
QUIET = dict(
    call_ns={"constant": 20_000}, launch_ns={"constant": 50_000}, kernel_ns={"constant": 10_000}, process_factor_sigma=0
)


def rows_of(session, arm, metric, *, benchmark="launch/null", part="mode:idle", process_config="launch", **more):
    wanted = {"arm": arm, "metric": metric, "benchmark": benchmark, "process_config": process_config} | more
    return [
        row
        for row in table(session / "summary.csv")
        if part in row["params"] and all(row[key] == value for key, value in wanted.items())
    ]


def of_kind(session, kind):
    return [(name, record) for name, file in records(session).items() for record in file if record["record"] == kind]


# --- what was drawn is what comes out ---

DISTRIBUTIONS = {
    "lognormal": ({"lognormal": {"median": 60_000, "sigma": 0.1}}, 60_000, 60_000 * math.exp(0.1 * 2.3263), 1),
    # The quantiles of the mixture are those of its parts: the median is the first part's 5/7, p99 the second's 29/30.
    "bimodal": (
        {
            "mixture": [
                {"weight": 0.7, "of": {"lognormal": {"median": 50_000, "sigma": 0.02}}},
                {"weight": 0.3, "of": {"lognormal": {"median": 80_000, "sigma": 0.02}}},
            ]
        },
        50_000 * math.exp(0.02 * 0.5659),
        80_000 * math.exp(0.02 * 1.8339),
        2,
    ),
}


@pytest.mark.compares_times
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_both_arms_recover_a_known_distribution(run, make_node, name):
    launch_ns, median, p99, modes = DISTRIBUTIONS[name]
    _, session = run(IDLE, runs=2, trace="on", node=make_node(**QUIET | {"launch_ns": launch_ns}))
    (launch,) = rows_of(session, "traced", "launch_ns")
    assert float(launch["p50"]) == pytest.approx(median, rel=0.01)
    assert float(launch["p99"]) == pytest.approx(p99, rel=0.01)
    assert launch["modes"] == str(modes)
    assert launch["n"] == str(2 * 5 * 2000)
    (kernel,) = rows_of(session, "traced", "kernel_ns")
    assert float(kernel["min"]) == float(kernel["max"]) == 10_000
    (queue,) = rows_of(session, "traced", "queue_ns")
    assert float(queue["p50"]) == pytest.approx(median - 20_000, rel=0.01), "the call's 20 us are over by then"
    (plain,) = rows_of(session, "plain", "roundtrip_ns")
    assert float(plain["p50"]) == pytest.approx(median + 10_000, rel=0.03)


@pytest.mark.compares_times
def test_a_factor_per_process_is_between_runs_and_no_mode(run, make_node):
    node = make_node(**QUIET | {"launch_ns": {"lognormal": {"median": 50_000, "sigma": 0.02}}, "process_factor_sigma": 0.1})
    _, session = run(IDLE, runs=8, trace="on", node=node)
    (row,) = rows_of(session, "traced", "launch_ns")
    assert row["modes"] == "1", "runs that differ are not modes"
    # With 8 runs the true 0.1 is in all but 5 % of the intervals; thrice that is beyond all doubt.
    assert float(row["between_run_cv_lo"]) / 2 < 0.1 < float(row["between_run_cv_hi"]) * 2
    assert float(row["within_run_cv"]) == pytest.approx(0.02, rel=0.05)
    assert float(row["icc"]) > 0.5
    (plain,) = rows_of(session, "plain", "roundtrip_ns")
    assert 0.02 < float(plain["between_run_cv"]) < 0.3
    assert float(plain["p50_ci_lo"]) < float(plain["p50"]) < float(plain["p50_ci_hi"]), "eight runs have an interval"


@pytest.mark.compares_times
def test_a_slow_device_is_named_and_no_other(run, make_node, export):
    node = make_node(devices=3, **QUIET | {"process_factor_sigma": 0.01})
    description = json.loads(node.read_text())
    description["devices"][1]["launch_ns"] = {"constant": 56_000}  # 66 us there and back, to 60
    node.write_text(json.dumps(description))
    done, session = run(IDLE, runs=3, node=node)
    odd = [row for row in table(export(session) / "outlier_devices.csv") if row["metric"] == "roundtrip_ns"]
    assert [row["device_id"] for row in odd] == [description["devices"][1]["uuid"]]
    assert float(odd[0]["ratio"]) == pytest.approx(1.1, abs=0.03)
    assert "10 % slower" in done.stdout or "slower than the others of its kind" in done.stdout


# --- every family, on both devices ---


@pytest.mark.parametrize("device", ["gpu", "host"])
def test_every_family_has_its_records(run, export, device):
    node = NODES / "one_a100.json" if device == "gpu" else None
    _, session = run(SMALL, devices=device, trace="on", node=node)
    rows = [row for row in table(session / "summary.csv") if row["arm"] == "traced" and "+" not in row["process_config"]]
    assert {row["status"] for row in rows} == {"ok"}
    metrics = {(row["benchmark"], row["metric"]) for row in rows}
    expected = {
        "launch/null": "launch_ns api_record_ns inter_kernel_gap_ns",
        "launch/flag": "flag_excess_ns",
        "matmul/library": "kernel_ns device_idle_ns",
        "convolution/library": "kernels",
        "allocation/latency": "api_record_ns free_record_ns",
    }
    assert metrics >= {(benchmark, metric) for benchmark, names in expected.items() for metric in names.split()}
    tables = export(session)
    kernels = {
        row["case"].split("/")[0]: row["kernel"] for row in table(tables / "kernels.csv") if "gate" not in row["kernel"]
    }
    assert set(kernels) == {"launch", "matmul", "convolution"}
    memory = table(tables / "memory.csv")
    sizes = {row["bytes"] for row in memory if row["case"].startswith("allocation")}
    assert sizes >= {"256", "1048576"} and {row["operation"] for row in memory} == {"allocate", "release"}
    traces = table(tables / "traces.csv")
    assert {row["state"] for row in traces} == {"ok"}
    canaries = [row for row in traces if not row["case"] and row["process_config"] != "launch+trace_level=launches"]
    assert canaries and {row["joined"] for row in canaries} == {"100"}
    joined = [
        record["allocations_joined"] for _, record in of_kind(session, "trace") if record.get("case", "").startswith("alloc")
    ]
    assert joined and all(count > 0 for count in joined)
    (check,) = table(tables / "flag_check.csv")
    assert check["before_kernel"] == "0"
    assert "telemetry" in {record["record"] for file in records(session).values() for record in file}


@pytest.mark.compares_times
def test_library_work_is_taken_apart(run, make_node, export):
    node = make_node(**QUIET | {"kernel_gap_ns": {"constant": 3000}, "tflops": {"fp32": 5.0}})
    _, session = run("convolution.*conv5_1x1_2048/n:1/type:fp32", trace="on", node=node)
    of = {"benchmark": "convolution/library", "process_config": "convolution", "part": ""}
    (kernels,) = rows_of(session, "traced", "kernels", **of)
    assert float(kernels["p50"]) == pytest.approx(2)
    (uncovered,) = rows_of(session, "traced", "device_idle_ns", **of)
    assert float(uncovered["p50"]) == pytest.approx(3000, rel=0.05)
    (time,) = rows_of(session, "traced", "kernel_ns", **of)
    (device,) = rows_of(session, "traced", "device_ns", **of)
    assert float(time["p50"]) + float(uncovered["p50"]) == pytest.approx(float(device["p50"]), rel=0.05)
    rows = {row["kernel"]: row for row in table(export(session) / "kernels.csv") if row["case"]}
    layout = rows["void cudnn::ops::nchwToNhwcKernel<fake_fp32>()"]
    assert (layout["only_layout"], rows["fake_convolution_fp32"]["only_layout"]) == ("yes", "no")
    (finding,) = [row for row in table(session / "findings.csv") if row["code"] == "layout-kernels"]
    assert float(finding["share"]) == pytest.approx(0.15, abs=0.02)
    assert "convolution/library/layer:conv5_1x1_2048/n:1/type:fp32/cache:warm" in finding["cases"]


def test_only_tensors_in_another_order_need_kernels_for_it(run, make_node, tmp_path):
    shapes = tmp_path / "shapes.csv"
    shapes.write_text("n,c,h,w,k,r,s\n4,64,28,28,64,3,3\n")
    case = "^convolution/shapes/.*direction:forward/layout:(nchw|nhwc)/type:fp32$"
    _, session = run(case, "--shapes", shapes, trace="on", node=make_node(**QUIET))
    (finding,) = [row for row in table(session / "findings.csv") if row["code"] == "layout-kernels"]
    assert finding["cases"] == "convolution/shapes/shape:4x64x28x28-64x3x3/direction:forward/layout:nchw/type:fp32"


def test_overheads_that_make_a_launch_slow_are_found(run, make_node):
    node = make_node(
        whole={"cupti": {"overheads": [{"kind": "command_buffer_full", "every": 50, "ns": {"constant": 40_000}}]}}, **QUIET
    )
    _, session = run(IDLE, trace="on", node=node)
    (overhead,) = rows_of(session, "traced", "overhead_ns")
    assert float(overhead["mean"]) == pytest.approx(40_000 / 50, rel=0.05)
    assert float(overhead["max"]) == 40_000
    (case,) = [r for name, r in of_kind(session, "trace") if "case" in r and "+" not in name]
    (use,) = case["overheads"]
    assert use["kind"] == "command buffer full" and use["count"] == pytest.approx(10_000 / 50, abs=2)


@pytest.mark.compares_times
def test_the_observer_effect_is_what_cupti_was_told_to_cost(run, make_node, export):
    node = make_node(
        whole={"cupti": {"api_overhead_ns": {"constant": 5000}, "kernel_overhead_ns": {"constant": 15_000}}}, **QUIET
    )
    _, session = run(IDLE, runs=3, trace="on", node=node, observer=True)
    effects = {row["level"]: row for row in table(export(session) / "observer.csv") if row["metric"] == "api_ns"}
    for level, expected in (("launches", 5000), ("kernels", 20_000), ("all", 20_000)):
        assert float(effects[level]["effect"]) == pytest.approx(expected, abs=1500), level
        assert float(effects[level]["effect_lo"]) <= float(effects[level]["effect"]) <= float(effects[level]["effect_hi"])
    (plain,) = rows_of(session, "plain", "api_ns")
    assert float(plain["p50"]) == pytest.approx(20_000, rel=0.03), "never part of the headline"


# --- whatever CUPTI does ---

OK = dict(status="ok", state="ok", code=0)


def unsupported(state):
    return dict(status="unsupported", state=state, code=0)


def invalid(state):
    return dict(status="invalid", state=state, code=3)


def refuses(call, code):
    return [{"library": "cupti", "call": call, "after": 0, "code": code}]


# One of each way from the library to the verdict. What each flaw of a trace comes to is tested in tests/trace, of Join,
# Canary and CaseTrace.
# Of a case with 79,360 launches, whose process has launched some thousands before.
MANY = {"after": 12_000, "count": 2_000}
FEW = {"after": 12_000, "count": 7}
WAYS = {
    "callback-from-another-thread": (dict(callback_thread=True), [], OK),
    "crash-at-exit": (dict(abort_at_exit=True), [], OK),
    "cuda-11.8": (dict(version=18), [], OK),
    "no-memory-records": ({}, [{"library": "cupti", "call": "cuptiActivityEnable", "after": 3, "code": 21}], OK),
    "whole-graphs-if-asked": (dict(whole_graphs=True), [], OK),
    "too-old": (dict(version=12), [], unsupported("unavailable:cupti_too_old")),
    "busy": (dict(subscriber="Nsight Systems"), [], unsupported("degraded:subscriber_busy(Nsight Systems)")),
    "no-rights": ({}, refuses("cuptiSubscribe", 35), unsupported("degraded:insufficient_privileges")),
    "driver-too-old": ({}, refuses("cuptiSubscribe", 15), unsupported("degraded:not_initialized")),
    "unknown-error": ({}, refuses("cuptiActivityEnable", 999), unsupported("degraded:unknown(999)")),
    "silent": (dict(silent=True), [], invalid("invalid:no_records")),
    "dropped-later": (dict(dropped=MANY), [], invalid("invalid:dropped")),
    "dropped-now-and-then": (dict(dropped=FEW), [], OK),
    "lost-later": (dict(lost=MANY), [], invalid("invalid:unjoined")),
    "zero-timestamps": (dict(zero_timestamps=MANY), [], invalid("invalid:bad_timestamps")),
    "zero-now-and-then": (dict(zero_timestamps=FEW), [], OK),
    "unknown-records": (dict(unknown_kind=MANY), [], invalid("invalid:bad_timestamps")),
    "clock-jumps-ahead": (dict(clock_step={"after": 12_000, "ns": 200_000}), [], invalid("invalid:clock_step")),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_cupti_does(run, make_node, way):
    cupti, faults, expected = WAYS[way]
    times = {"call_ns": {"constant": 5000}, "launch_ns": {"constant": 200_000}, "kernel_ns": {"constant": 2000}}
    node = make_node(whole={"cupti": cupti}, faults=faults, **QUIET | times)
    _, session = run(BURST, trace="auto", code=expected["code"], node=node)

    plain = [row for row in table(session / "summary.csv") if row["arm"] == "plain"]
    assert plain and {row["status"] for row in plain} == {"ok"}, "the plain arm is never touched"

    traced = [row for row in table(session / "summary.csv") if row["arm"] == "traced" and row["process_config"] == "launch"]
    assert {row["status"] for row in traced} == {expected["status"]}
    states = {record["state"] for name, record in of_kind(session, "trace") if ".traced.launch.jsonl" in name}
    assert expected["state"] in states, states
    if expected is OK:
        assert states == {"ok"}
        (kernel,) = rows_of(session, "traced", "kernel_ns", part="mode:burst")
        assert float(kernel["p50"]) == pytest.approx(2000, rel=0.01)
        (host,) = rows_of(session, "traced", "per_launch_ns", part="mode:burst")
        spoilt = int(host["n"]) - int(kernel["n"])
        assert (0 < spoilt <= 7) if "now-and-then" in way else spoilt == 0
    else:
        (row,) = traced
        assert row["n"] == "0", "what cannot be believed is in no statistic"
        assert row["reason"].removeprefix("in 1 of 1 runs: ").startswith(expected["state"])


@pytest.mark.parametrize("nesting", ["same", "different", "none"])
def test_launches_inside_a_library_have_one_owner(run, make_node, nesting):
    node = make_node(whole={"cupti": {"nested": nesting}}, **QUIET)
    _, session = run("matmul.*size:256/type:fp32", trace="on", node=node)
    (case,) = [record for _, record in of_kind(session, "trace") if "case" in record]
    counts = case["counts"]
    assert counts["joined"] == counts["kernels"] == counts["launches"]
    assert (counts["nested"] > 0) == (nesting != "none")
    domains = {call["domain"] for call in case["calls"]}
    assert domains == ({"driver"} if nesting == "none" else {"driver", "runtime"})


def test_without_cupti_auto_leaves_the_traced_arm_out_and_says_so(run, make_node):
    done, session = run(IDLE, trace="auto", node=make_node(**QUIET), LAUNCHGAP_LIBCUPTI="/nowhere/libcupti.so")
    assert "not traced" in done.stderr and "/nowhere/libcupti.so" in done.stderr
    meta = json.loads((session / "session.json").read_text())
    assert meta["tracing"]["state"] == "unavailable:cupti_not_found"
    assert {row["arm"] for row in table(session / "summary.csv")} == {"plain"}


def test_without_cupti_on_is_a_failure(run, make_node):
    _, session = run(IDLE, trace="on", code=3, node=make_node(**QUIET), LAUNCHGAP_LIBCUPTI="/nowhere/libcupti.so")
    status = {row["arm"]: row["status"] for row in table(session / "summary.csv")}
    assert status == {"plain": "ok", "traced": "failed"}


@pytest.mark.parametrize(
    "variable, tool",
    [
        ("NSYS_PROFILING_SESSION_ID", "nsys"),
        ("NV_NSIGHT_INJECTION_PORT_BASE", "ncu"),
        ("CUDA_INJECTION64_PATH", "an injected tool"),
    ],
)
def test_under_a_tool_cupti_is_left_alone_and_the_results_are_marked(run, make_node, variable, tool):
    # A call of CUPTI would end the process.
    faults = [{"library": "cupti", "call": "cuptiSubscribe", "after": 0, "abort": True}]
    _, session = run(IDLE, trace="auto", node=make_node(faults=faults, **QUIET), **{variable: "1"})
    runs = table(session / "runs.csv")
    assert {run["measured_under_tool"] for run in runs} == {tool}
    assert {run["trace_state"] for run in runs} == {"off", f"degraded:subscriber_busy({tool})"}
    assert {json.loads(run["fingerprint"])["measured_under_tool"] for run in runs} == {tool}


@pytest.mark.compares_times
@pytest.mark.parametrize("call, after", [("cuptiSubscribe", 0), ("cuptiActivityFlushAll", 4)])
def test_a_cupti_that_hangs_costs_one_time_out_and_the_plain_arm_nothing(run, make_node, call, after):
    faults = [{"library": "cupti", "call": call, "after": after, "hang": True}]
    node = make_node(faults=faults, **QUIET | {"launch_ns": {"constant": 22_000}, "kernel_ns": {"constant": 2000}})
    _, session = run(IDLE, "--timeout", 2, runs=3, trace="on", code=3, node=node, timeout=60, observer=True)
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows if row["arm"] == "plain"} == {"ok"}
    assert {row["runs"] for row in rows if row["arm"] == "plain"} == {"3"}
    traced = {row["status"] for row in rows if row["arm"] == "traced"}
    assert "failed" in traced and traced <= {"failed", "skipped"}
    reasons = [record["reason"] for _, record in of_kind(session, "summary") if record["status"] == "failed"]
    assert 1 <= len(reasons) <= 3 and all("hung" in reason for reason in reasons), "once per level, and not tried again"


def test_a_cupti_that_crashes_takes_only_its_own_arm_along(run, make_node):
    faults = [{"library": "cupti", "call": "cuptiActivityFlushAll", "after": 4, "abort": True}]
    done, session = run(IDLE, trace="on", code=3, node=make_node(faults=faults, **QUIET))
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows if row["arm"] == "plain"} == {"ok"}
    assert "SIGABRT" in done.stderr


def test_no_plain_process_has_cupti_in_it(run, make_node):
    """Whoever else brings it in is named."""
    _, session = run(IDLE, trace="on", node=make_node(**QUIET))
    for row in table(session / "runs.csv"):
        assert row["measured_under_tool"] == ""
    libraries = {name: {library["name"] for library in record["libraries"]} for name, record in of_kind(session, "end")}
    for name, loaded in libraries.items():
        assert ("CUPTI" in loaded) == (".traced." in name), name


# --- telemetry ---


@pytest.mark.compares_times
def test_telemetry_is_what_the_device_says(run, make_node, export):
    nvml = dict(pstate=0, sm_clock_mhz=1410, memory_clock_mhz=1593, temperature_c=41, power_mw=250_000, reasons=4)
    nvml |= dict(sw_power_cap_share=0.25, processes=[4711])
    _, session = run(IDLE, node=make_node(**QUIET, nvml=nvml))
    readings = table(export(session) / "telemetry.csv")
    last = {key: float(value) for key, value in list(readings[-1].items())[8:] if value}
    assert (last["sm_clock_mhz"], last["memory_clock_mhz"], last["temperature_c"]) == (1410, 1593, 41)
    assert (last["power_w"], last["clock_reasons"], last["performance_state"]) == (250, 4, 0)
    assert last["other_processes"] == 1
    assert "involuntary_switches" in last
    blocks = [row for row in table(export(session) / "sequence.csv") if row["metric"] == "api_ns"]
    held = [float(row["held_by_power_cap_ns"]) for row in readings if row["held_by_power_cap_ns"]]
    lengths = [int(row["end_ns"]) - int(row["begin_ns"]) for row in blocks]
    assert sum(held) == pytest.approx(0.25 * sum(lengths), rel=0.2), "the counter's change over each block"
    (row,) = table(session / "runs.csv")
    assert row["other_processes"] == "1"


@pytest.mark.parametrize(
    "nvml, faults, extra, missing",
    [
        (dict(missing=["nvmlDeviceGetPowerUsage", "field:74"]), [], {}, {"power_w", "held_by_power_cap_ns"}),
        (
            {},
            [{"library": "nvml", "call": "nvmlDeviceGetFieldValues", "after": 0, "code": 999}],
            {},
            {"held_by_power_cap_ns", "pcie_replays"},
        ),
        ({}, [{"library": "nvml", "call": "nvmlInit_v2", "after": 0, "code": 18}], {}, {"sm_clock_mhz", "power_w"}),
        ({}, [{"library": "nvml", "call": "nvmlDeviceGetHandleByUUID", "after": 0, "code": 6}], {}, set()),
        ({}, [], {"LAUNCHGAP_LIBNVML": "/nowhere/libnvidia-ml.so.1"}, {"sm_clock_mhz", "power_w"}),
    ],
    ids=["fields", "field-values", "driver-mismatch", "by-pci-address", "no-library"],
)
def test_what_nvml_lacks_is_missing_and_not_zero(run, make_node, export, nvml, faults, extra, missing):
    _, session = run(IDLE, node=make_node(faults=faults, **QUIET, nvml=nvml), **extra)
    quantities = {key for row in table(export(session) / "telemetry.csv") for key, value in row.items() if value}
    assert not quantities & missing
    if "sm_clock_mhz" not in missing:
        assert "sm_clock_mhz" in quantities
    else:
        ((_, end),) = of_kind(session, "end")
        assert "NVML" in end["telemetry_problem"]


# --- the flag's cross-check ---


@pytest.mark.compares_times(alone=True)
def test_the_flag_comes_after_the_kernel_begins(run, make_node, export):
    _, session = run("launch/(flag|echo)", runs=2, trace="on", node=make_node(**QUIET))
    (check,) = table(export(session) / "flag_check.csv")
    assert check["before_kernel"] == "0" and int(check["samples"]) == 5 * 200
    (flag,) = rows_of(session, "traced", "flag_ns", benchmark="launch/flag", part="")
    assert float(flag["p50"]) == pytest.approx(50_000, rel=0.3)
