#!/usr/bin/env python3
"""Prints what a validation came to, on one page: what was proven, what was not, and which of the questions of
evidence/PENDING.md it decides, by which figure.

    scripts/validation_verdict.py DIR [WORK]

DIR is what scripts/validate-gpu left; WORK its folder with whole sessions, while that is there. Needs nothing but
Python. A question is decided (yes, no) where its files say so, and is open where they do not.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import validation_allocation
from validation_result import NO, OPEN, YES, Answer, Result, all_of, number


def step(*names: str) -> Callable[[Result], Answer]:
    """Decided by the steps of these names, or that begin with them."""

    def decide(result: Result) -> Answer:
        found = {
            n: s
            for n, s in result.steps.items()
            if any(n == w or n.startswith(w + ".") or n.endswith("." + w) for w in names)
        }
        states = {state for state, _ in found.values()}
        figure = ", ".join(f"{n}: {state}{' (' + why + ')' if why else ''}" for n, (state, why) in found.items())
        if "FAIL" in states:
            return NO, figure
        return (YES if states == {"PASS"} else OPEN), figure or "not run"

    return decide


def doctor(result: Result) -> Answer:
    report = result.json("doctor.json")
    if not report:
        return OPEN, "no doctor.json"
    found = [f for f in report.get("findings", []) if f.get("severity") in ("prevents", "distorts")]
    return (NO if found else YES), "; ".join(
        f"{f.get('code')}: {f.get('sentence')}" for f in found
    ) or "nothing prevents or distorts"


def quick_rows(result: Result) -> Answer:
    rows = result.table("quick.summary") + result.table("launches.summary")
    cut = [r for r in rows if "not reached" in r["reason"] or "cut short" in r["reason"]]
    if cut and all(r["status"] in ("ok", "unsupported", "skipped") for r in rows):
        return OPEN, f"{len(cut)} of {len(rows)} rows were not reached or cut short"
    return all_of(
        rows,
        lambda r: r["status"] in ("ok", "unsupported", "skipped"),
        lambda r: f"{r['arm']} {r['benchmark']}/{r['params']}: {r['reason']}",
        "rows without failed or invalid",
    )


def ceilings(result: Result) -> Answer:
    rows = [r for r in result.table("quick.summary") if r["metric"] == "tflops" and r.get("impossible")]
    return all_of(
        rows,
        lambda r: r["impossible"] == "false",
        lambda r: f"{r['arm']} {r['benchmark']}/{r['params']}: {number(r['p50']) or 0:.3g} TFLOP/s",
        "rates within the GPU's ceiling",
    )


def native_form(result: Result) -> Answer:
    rows = [r for r in result.table("quick.runs") if r["kernel_form"] and "loading=jit" not in r["process_config"]]
    return all_of(
        rows,
        lambda r: r["kernel_form"] == "native" and r["jit"] == "false",
        lambda r: f"{r['process_config']}: {r['kernel_form']}, jit {r['jit']}",
        "runs native, without JIT",
    )


def steady(result: Result) -> Answer:
    rows = [r for r in result.table("quick.runs") + result.table("launches.runs") if r.get("steady")]
    return all_of(
        rows,
        lambda r: r["steady"] == "true",
        lambda r: f"{r['arm']} {r['process_config']} r{r['replicate']}",
        "runs steady when measuring began",
    )


def kept_warm(result: Result) -> Answer:
    """A GPU that cools down between cases is warmed up again for 0.5 s at most, and that suffices."""
    rows = [r for name in ("quick", "launches", "allocation") for r in result.table(f"{name}.runs")]
    return all_of(
        [r for r in rows if r.get("steady") and number(r.get("restless_cases")) is not None],
        lambda r: float(r["restless_cases"]) == 0,
        lambda r: f"{r['arm']} {r['process_config']} r{r['replicate']}: {r['restless_cases']} cases",
        "processes in which they were",
    )


def warm_up(result: Result) -> Answer:
    seconds = [r["warm_up"]["seconds"] for r in result.records("launches", "run") if r.get("warm_up")]
    clocks = [r["warm_up"].get("sm_clock_mhz") for r in result.records("launches", "run") if r.get("warm_up")]
    if not seconds:
        return OPEN, "no records of launches"
    shown = sorted(c for c in clocks if c)
    return (
        YES,
        f"{min(seconds):.2f} to {max(seconds):.2f} s; SM clock at its end {shown[0]:.0f} to {shown[-1]:.0f} MHz"
        if shown
        else f"{min(seconds):.2f} to {max(seconds):.2f} s; no clock",
    )


def traces(result: Result) -> Answer:
    rows = result.table("quick.traces") + result.table("launches.traces")
    return all_of(
        rows,
        lambda r: r["state"] == "ok",
        lambda r: f"{r['process_config']} {r['case']}: {r['reason'] or r['state']}",
        "traces ok",
    )


def impossible(result: Result) -> Answer:
    rows = [r for r in result.table("quick.traces") + result.table("launches.traces") if r["case"]]
    if not rows:
        return OPEN, "no traces"
    bad = sum(int(number(r.get("impossible")) or 0) for r in rows)
    records = sum(int(max(number(r["launches"]) or 0, number(r["kernels"]) or 0)) for r in rows)
    worst = max((number(r.get("conversion_error_ns")) or 0 for r in rows), default=0)
    return (YES if bad == 0 else NO), f"{bad} impossible of {records} records; conversion error at most {worst:.0f} ns"


def canaries(result: Result) -> Answer:
    tries = [
        int(number(r.get("canary_tries")) or 0)
        for r in result.table("quick.traces") + result.table("launches.traces")
        if not r["case"]
    ]
    if not tries:
        return OPEN, "no canaries"
    return (
        NO if max(tries) > 1 else YES
    ), f"{sum(t > 1 for t in tries)} of {len(tries)} processes met a corrupt beginning; at most {max(tries)} tries"


def late(result: Result) -> Answer:
    counts = [r.get("late_blocks", 0) for s in ("quick", "launches") for r in result.records(s, "trace") if "case" in r]
    if not counts:
        return OPEN, "no records"
    return (YES if sum(counts) == 0 else NO), f"{sum(counts)} late blocks in {len(counts)} cases"


def stale(result: Result) -> Answer:
    rows = [r for r in result.table("quick.kernels") if r["case"].startswith(("matmul", "convolution"))]
    ours = {"launchgap_gate", "launchgap_fill", "launchgap_null"}
    wrong = [r for r in rows if r["kernel"] in ours - {"launchgap_gate"}]
    if not rows:
        return OPEN, "no kernels of libraries were traced"
    return (NO if wrong else YES), "; ".join(
        f"{r['case']}: {r['kernel']}" for r in wrong[:3]
    ) or "no work has the name of a kernel of launchgap's"


def calls(result: Result) -> Answer:
    seen: dict[tuple, int] = {}
    for s in ("quick", "launches"):
        for record in result.records(s, "trace"):
            for call in record.get("calls", []):
                key = (call["domain"], call["id"])
                seen[key] = seen.get(key, 0) + call["count"]
    if not seen:
        return OPEN, "no records"
    return (YES if ("driver", 652) in seen else NO), ", ".join(f"{d} {i}: {n}" for (d, i), n in sorted(seen.items()))


def nested(result: Result) -> Answer:
    rows = [r for r in result.table("quick.traces") if r["case"].startswith("matmul") and r["state"] == "ok"]
    if not rows:
        return OPEN, "matmul was not traced"
    count = sum(int(number(r["nested"]) or 0) for r in rows)
    lost = sum(int(number(r["kernels_without_launch"]) or 0) for r in rows)
    return (YES if lost == 0 else NO), f"{lost} kernels without launch, {count} nested calls"


def flag(result: Result) -> Answer:
    rows = result.table("launches.flag_check") or result.table("quick.flag_check")
    return all_of(
        rows,
        lambda r: r.get("agrees") == "true",
        lambda r: (
            f"excess {r.get('excess_p50_ns')} ns against {r.get('limit_ns')} ns, {r.get('before_kernel')} before the kernel"
        ),
        "flags agree with the trace",
    )


def observer(result: Result) -> Answer:
    rows = [r for r in result.table("launches.observer") if r.get("level") == "all"]
    if not rows:
        return OPEN, "no observer.csv"

    def shown(row: dict[str, str]) -> str:
        if number(row["effect"]) is None:  # one run of each has no interval
            return f"{row['metric']} {float(row['plain']):.0f} ns, traced {float(row['traced']):.0f} ns"
        ends = " to ".join(f"{float(row[end]):.0f}" for end in ("effect_lo", "effect_hi"))
        return f"{row['metric']} {float(row['effect']):.0f} ns more ({ends})"

    return YES, "; ".join(map(shown, rows))


RECORDED_CALLS, RECORDED_KERNELS = 16 * 200 + 20 + 50 * 400, 16 * 200 + 5 * 20 + 50 * 400
"""Of what the step `record` starts"""


def recorded(result: Result) -> Answer:
    return all_of(
        result.table("record.recordings"),
        lambda r: number(r["launches"]) == RECORDED_CALLS and number(r["kernels"]) == RECORDED_KERNELS,
        lambda r: f"{r['launches']} launches, {r['kernels']} kernels, {r['remarks']}",
        f"starts with all {RECORDED_CALLS} launches and {RECORDED_KERNELS} kernels",
    )


def recording_cost(result: Result) -> Answer:
    rows = result.table("record.recording_costs")
    if not rows:
        return OPEN, "no recording_costs.csv"
    known = [r for r in rows if r["call_ns"]]
    ends = {r["level"]: " to ".join(f"{number(r[f'call_{end}_ns']) or 0:.0f}" for end in ("low", "high")) for r in known}
    shown = [f"{r['level']}: {number(r['call_ns']) or 0:.0f} ns ({ends[r['level']]})" for r in known]
    return YES if known else NO, "; ".join(shown) or "no process told its end"


def library_time(result: Result) -> Answer:
    by_case: dict[str, dict[str, float]] = {}
    for row in result.rows("quick", arm="traced"):
        if row["benchmark"] in ("matmul/library", "convolution/library") and number(row["p50"]) is not None:
            by_case.setdefault(row["benchmark"] + "/" + row["params"], {})[row["metric"]] = float(row["p50"])
    ratios = [
        (v["kernel_ns"] + v["device_idle_ns"]) / v["device_ns"]
        for v in by_case.values()
        if {"kernel_ns", "device_idle_ns", "device_ns"} <= v.keys()
    ]
    if not ratios:
        return OPEN, "matmul and convolution were not traced"
    good = all(0.9 <= ratio <= 1.1 for ratio in ratios)
    return (
        YES if good else NO
    ), f"(kernels + gaps) / device time: {min(ratios):.2f} to {max(ratios):.2f} over {len(ratios)} cases"


def allocations(result: Result) -> Answer:
    joined = [
        r.get("allocations_joined", 0)
        for r in result.records("quick", "trace")
        if r.get("case", "").startswith("allocation")
    ]
    if not joined:
        return OPEN, "allocation was not traced"
    return (YES if all(joined) else NO), f"{sum(map(bool, joined))} of {len(joined)} cases have joined MEMORY2 records"


def pool(result: Result) -> Answer:
    rows = [
        r
        for r in result.rows("quick", arm="plain", metric="call_ns")
        if "allocator:pool" in r["params"] and number(r["p50"])
    ]
    if not rows:
        return OPEN, "no pool"
    worst = max(float(r["p50"]) for r in rows)
    return (YES if worst < 10_000 else NO), f"slowest median {worst / 1000:.1f} us"


def published(result: Result) -> Answer:
    rows = [
        r for r in result.table("launches.published") if number(r.get("ratio")) is not None and r.get("same_model") == "true"
    ]
    return all_of(
        rows,
        lambda r: 1 / 1.5 <= float(r["ratio"]) <= 1.5,
        lambda r: f"{r['quantity']} {r['ratio']} x ({r['published_gpu']})",
        "values within 1.5 of those published",
    )


def telemetry(result: Result) -> Answer:
    keys = {key for record in result.records("quick", "telemetry") for key in record.get("values", {})}
    gpu = sorted(
        k for k in keys if k in ("sm_clock_mhz", "power_w", "temperature_c", "energy_j", "clock_reasons", "pcie_generation")
    )
    return (YES, ", ".join(gpu)) if gpu else ((NO, "NVML tells nothing") if keys else (OPEN, "no records"))


def tests(*ways: str) -> Callable[[Result], Answer]:
    """launchgap-gpu-test, run in these ways."""

    def answer(result: Result) -> Answer:
        found = {name: state for name, state in result.steps.items() if ".tests." in name and name.endswith(ways)}
        figure = ", ".join(f"{name}: {state}{' (' + why + ')' if why else ''}" for name, (state, why) in found.items())
        states = {state for state, _ in found.values()}
        if "FAIL" in states:
            return NO, figure
        return (YES if states == {"PASS"} else OPEN), figure or "not run"

    return answer


def under_nsys(result: Result) -> Answer:
    states = {r.get("trace_state", "") for r in result.records("under-nsys", "run") if r.get("arm") == "traced"}
    if not states:
        return (
            step("under-nsys")(result) if result.steps.get("under-nsys", ("SKIP",))[0] != "PASS" else (OPEN, "no traced run")
        )
    return (YES if all(s.startswith("degraded:subscriber_busy") for s in states) else NO), ", ".join(sorted(states))


def opening(result: Result) -> Answer:
    meta = {}
    if result.work and (result.work / "quick" / "session.json").exists():
        meta = json.loads((result.work / "quick" / "session.json").read_text()).get("initialisation", {})
    return (YES, json.dumps(meta)) if meta else (OPEN, "not recorded")


def queue(result: Result) -> Answer:
    rows = result.rows("launches", arm="plain", metric="queue_depth")
    if not rows or number(rows[0]["p50"]) is None:
        return OPEN, "not measured"
    row = rows[0]
    return (YES if row["min"] == row["max"] else NO), f"{row['min']} to {row['max']}, median {row['p50']}"


def median_of(result: Result, metric: str, **wanted: str) -> float | None:
    rows = [r for r in result.table("launches.summary") if r["metric"] == metric and r["arm"] == wanted.get("arm", "plain")]
    rows = [r for r in rows if all(w in f"{r['benchmark']}/{r['params']}" for k, w in wanted.items() if k != "arm")]
    values = [float(r["p50"]) for r in rows if number(r["p50"]) is not None]
    return statistics.median(values) if values else None


def runtime_api(result: Result) -> Answer:
    values = {
        api: median_of(result, "api_ns", benchmark="launch/api", api=f"api:{api}")
        for api in ("driver", "runtime", "chevron")
    }
    if any(value is None for value in values.values()):
        return OPEN, "launch/api was not measured"
    return (YES if all(value >= 0.9 * values["driver"] for value in values.values()) else NO), ", ".join(
        f"{k} {v:.0f} ns" for k, v in values.items()
    )


def priority(result: Result) -> Answer:
    same, higher = (
        median_of(result, "roundtrip_ns", benchmark="launch/priority", p=f"priority:{p}") for p in ("same", "higher")
    )
    if same is None or higher is None:
        return OPEN, "launch/priority was not measured"
    return (YES if higher < same / 2 else NO), f"higher {higher / 1000:.0f} us, same {same / 1000:.0f} us"


def first_use(result: Result) -> Answer:
    loading = {
        m: median_of(result, "module_ns", benchmark="launch/first", loading=f"loading:{m}")
        for m in ("lazy", "eager", "jit_cached", "jit_uncached")
    }
    shown = ", ".join(f"{k} {v / 1e6:.2f} ms" for k, v in loading.items() if v is not None)
    if loading["jit_cached"] is None or loading["jit_uncached"] is None:
        return OPEN, shown or "launch/first was not measured"
    return (YES if loading["jit_cached"] < loading["jit_uncached"] / 2 else NO), shown


def mix(result: Result) -> Answer:
    value = median_of(result, "kernel_ns", arm="traced", benchmark="launch/chain", mode="mode:eager/ops:512")
    if value is None:
        return OPEN, "the chain of 512 was not traced"
    return (YES if abs(value / 49_700 - 1) < 0.02 else NO), f"mean {value / 1000:.1f} us, 49.7 us wanted"


def sentences(result: Result) -> Answer:
    rows = [row for row in result.table("launches.findings") if row["source"] == "advice"]
    return OPEN, f"{len(rows)} lines of launches.findings.csv, to be read" if rows else "none"


QUESTIONS: list[tuple[str, str, Callable[[Result], Answer]]] = [
    ("0", "The doctor proves the GPU and finds nothing wrong with a machine that works", doctor),
    ("0w", "A program that uses the GPU is recognised by its device nodes", step("doctor-watch")),
    ("1", "Kernels, libraries and clocks are right, native and portable", tests("native", "portable")),
    ("1t", "What is traced is what ran, and all of it", tests("traced")),
    ("3", "Where nvcc knew the GPU, kernels are native and nothing is compiled", native_form),
    ("4", "What opening the device costs, with and without a keeper", opening),
    ("5", "No case failed or is invalid", quick_rows),
    ("5c", "No product or convolution is faster than the GPU can be", ceilings),
    ("6", "Launches are within 1.5 of what was published for this model", published),
    ("7", "An allocation from the pool takes microseconds", pool),
    ("8", "Every trace is ok", traces),
    ("8i", "No record is impossible", impossible),
    ("8c", "Tracing does not begin with corrupt records", canaries),
    ("8n", "No kernel of a library has a stale name", stale),
    ("9", "Launches are the driver's call 652", calls),
    ("9n", "Every kernel of cuBLAS has its launch", nested),
    ("10", "What tracing costs a launch", observer),
    ("11", "The flag agrees with the trace", flag),
    ("12", "Kernels and gaps make up the device's time", library_time),
    ("13", "Allocations have their memory records", allocations),
    ("14", "A flush after a wait delivers everything", late),
    ("15", "Tracing costs at most 1.05 of a bare client's", step("tracing-cost")),
    ("16", "NVML tells clocks and power", telemetry),
    ("17", "Under nsys traced runs say who has CUPTI", under_nsys),
    ("18", "compute-sanitizer finds nothing", step("compute-sanitizer")),
    ("21", "The runtime's launches cost what the driver's do, or more", runtime_api),
    ("22", "The launch queue has one depth", queue),
    ("23", "A higher priority overtakes", priority),
    ("24", "What was compiled before is loaded from the cache", first_use),
    ("25", "The chain's kernels last as long as they are told", mix),
    *validation_allocation.QUESTIONS,
    ("50", "All that a program launches is recorded", recorded),
    ("51", "What recording adds to a launch call", recording_cost),
    ("30", "Every process is steady within 2 s", steady),
    ("30c", "Before each case launches are as fast as after the warm-up", kept_warm),
    ("30w", "How long warming up takes, and at which clock it ends", warm_up),
    ("29", "The advice is true of this machine", sentences),
]


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2) or not Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    result = Result(Path(arguments[0]), Path(arguments[1]) if len(arguments) == 2 else None)
    print(page(result))
    return 0


def page(result: Result) -> str:
    listing = " ".join(result.lines("environment.txt"))
    names = sorted({part.split('"')[0] for part in listing.split('"name": "')[1:]})
    simulated = '"simulated": true' in listing
    date = next((line.removeprefix("date: ") for line in result.lines("environment.txt") if line.startswith("date: ")), "")
    states = [state for state, _ in result.steps.values()]
    lines = [
        f"# What the validation of {date} came to",
        "",
        f"On: {', '.join(names)}." + (" **Simulated: this says nothing about a GPU.**" if simulated else ""),
        "",
        f"{states.count('PASS')} steps passed, {states.count('FAIL')} failed, {states.count('SKIP')} were skipped.",
    ]
    for state, title in (("FAIL", "Failed"), ("SKIP", "Not proven")):
        found = [f"- {name}: {why}" for name, (status, why) in result.steps.items() if status == state]
        if found:
            lines += ["", f"## {title}", "", *found]
    lines += ["", "## The questions of PENDING.md", "", "| | question | answer | by |", "| --- | --- | --- | --- |"]
    for key, question, decide in QUESTIONS:
        try:
            verdict, figure = decide(result)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
            verdict, figure = OPEN, f"the files cannot be read for it: {problem!r}"
        figure = figure.replace("|", "/").replace("\n", " ")
        lines.append(f"| {key} | {question} | {verdict} | {figure[:400]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
