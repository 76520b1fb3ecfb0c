"""Builds a synthetic session of what somebody else recorded, as `launchgap import` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import make_timelines
from make_session import Builder, Spec

RECORDED = "recorded"
NSYS = ("Nsight Systems 2022.4.2", "SQLite, schema 3.0.0", "from the beginning of the recording")
KINETO = ("PyTorch's profiler", "Chrome trace, compressed", "Unix time")
CAUSES = ("queued", "launch", "waiting", "allocating", "calling", "program", "unknown")
CLOCKS = "the GPU's clock is ahead of the host's, by 133 s at most"


@dataclass
class Process:
    """A process on a GPU of its own, and how its launches met their streams."""

    name: str = "NVIDIA H200"
    idle: int = 900
    busy: int = 100
    unknown: int = 0
    graphs: int = 0
    recorder: tuple[str, str, str] = NSYS
    file: str = "report1.sqlite"
    rank: int | None = None
    tick_ns: int = 1
    kernels: int | None = None
    before: int = 0
    streams: int = 1
    clock_problem: str = ""
    left_out: str = ""
    remarks: str = ""
    verdict: str = "launch-bound"
    answer: str = "The GPU is idle 60 % of the time, 50 % between a launch call and the start of its work."
    launch_answer: str = "1,000 launch calls take 4 ms, 1 % of the recording: usual calls 60 %, first launches 40 % (2)."
    tail: dict[str, float] | None = None
    """Shares of the launch time, by cause"""
    waits: dict[str, float] | None = None
    """Shares of the time in which the GPU was idle, by cause; None: nothing is told of it"""
    steps: int = 0
    causes: tuple[dict[str, Any], ...] = ()
    """Rows of findings.csv, as cause() makes them"""
    levels: dict[str, float] | None = None
    """Coefficients of variation of the launch call on idle streams, by level"""
    clock: dict[str, Any] | None = None
    """Further columns of the clock"""

    @property
    def launches(self) -> int:
        return self.idle + self.busy + self.unknown + self.graphs


def cause(code: str, severity: str = "act", share: float | str = 0.12, **cells: Any) -> dict[str, Any]:
    row = {"source": "cause", "code": code, "severity": severity, "subject": "report1.sqlite", "share": share}
    row |= {"sentence": f"Something of {code} takes 12 ms.", "evidence": "cudaMalloc: 3 times; at most 4 ms"}
    return row | {"remedy": "Do it less often.", "unknown": ""} | cells


def recorded_session(*processes: Process, name: str = "recorded-5eed") -> Builder:
    """One device for each process."""
    specs = [Spec(p.name, capability="9.0", driver="", libraries="", form="", jitter=0) for p in processes]
    builder = Builder(name, specs, 1, node=RECORDED, cpu="", families=()).build()
    names = "recordings tail recorded_shares kernels traces slow_samples timelines"
    builder.tables.update({f"{name}.csv": [] for name in names.split()})
    for index, process in enumerate(processes):
        _add(builder, index, process)
    for row in builder.tables["devices.csv"]:
        row.update(multiprocessors="", clock_mhz="", memory_clock_mhz="", memory_bus_bits="", l2_bytes="")
    for row in builder.tables["summary.csv"]:
        row["source"] = RECORDED
    builder.info.update(profile="full", notes=[], initialisation=[], command_line=["launchgap", "import", "report1.sqlite"])
    builder.info["tracing"] = {"state": RECORDED, "reason": ""}
    builder.info["host"] = {"node": RECORDED, "os": "", "kernel": "", "cpu_model": "", "cores": 0, "memory_bytes": 0}
    return builder


def _add(builder: Builder, index: int, process: Process) -> None:
    spec = builder.specs[index]
    builder._run(index, spec, 0, RECORDED, RECORDED)
    builder.tables["runs.csv"][-1].update(cpus="", side_by_side="", trace_state=RECORDED, jit="")
    trusted = not process.clock_problem
    for benchmark, state, n in (
        ("launch", "idle", process.idle),
        ("launch", "busy", process.busy),
        ("launch", "unknown", process.unknown),
        ("graph", "idle", process.graphs),
    ):
        times = {"api_record_ns": 4000.0, "since_last_ns": 15_000.0}
        if state != "unknown":
            times["kernel_ns" if benchmark == "launch" else "graph_ns"] = 23_000.0
        if state != "unknown" and trusted:
            delay = 5600.0 if state == "idle" else 900_000.0
            times.update(launch_ns=delay, queue_ns=delay - 4000)
        for metric, value in times.items():
            if n:
                builder._case(spec, f"recorded/{benchmark}", f"stream:{state}", metric, value, n, arm=RECORDED)
    shares: dict[tuple[str, str], float] = {}
    for benchmark, n in (("recorded/job", 1), ("recorded/step", process.steps)):
        if process.waits is None or n == 0:
            continue
        length = 1e9 / max(n, 1)
        values = {"step_ns": length, "launches": 1000.0 / n, "gpu_idle_share": sum(process.waits.values())}
        values |= {f"idle_{cause}_ns": length * process.waits.get(cause, 0.0) for cause in CAUSES}
        for metric, value in values.items():
            builder._case(spec, benchmark, "", metric, value, max(n, 2), arm=RECORDED)
            builder.tables["summary.csv"][-1].update(dict.fromkeys(("min", "q1", "p50", "q3", "max", "mean"), value), n=n)
        shares |= {(benchmark, f"idle_{cause}_ns"): process.waits.get(cause, 0.0) for cause in CAUSES}
    known = process.idle + process.busy + process.graphs
    if trusted and known:
        shares["launches", "idle_stream"] = (process.idle + process.graphs) / known
    device = {"session_id": builder.session_id, "device_id": builder._id(spec)}
    builder.tables["recorded_shares.csv"] += [
        {"device_id": builder._id(spec), "of": of, "part": part, "share": share} for (of, part), share in shares.items()
    ]
    builder.tables["recordings.csv"].append({**device, "replicate": 0, **_quality(index, process)})
    place = {**device, "process_config": RECORDED, "replicate": 0, "case": "recorded/launch"}
    builder.tables["traces.csv"].append({**place, "state": RECORDED, "launches": process.launches})
    if process.idle:
        key = {"arm": RECORDED, "process_config": RECORDED, "case": "recorded/launch/stream:idle"}
        slow, around = make_timelines.slow_sample(key, 5600.0, longer_part="queue_ns", telemetry="")
        builder.tables["slow_samples.csv"].append({**device, **slow})
        builder.tables["timelines.csv"] += [{**device, **event} for event in around]
    for kernel, total in (("short_kernel", 1_000_000), ("void long_kernel<float>(float*)", 9_000_000)):
        builder.tables["kernels.csv"].append(
            {**device, "case": "recorded/launch", "kernel": kernel, "grid": "2x2x1", "block": "256x1x1"}
            | {
                "count": 100,
                "total_ns": total,
                "mean_ns": total / 100,
                "shortest_ns": 2300,
                "longest_ns": 290_000,
                "replicate": 0,
            }
            | {"gpu_share": total / 1e8, "p50_ns": total / 100, "p99_ns": 280_000, "cv": 0.25}
            | {"first_call_ns": 750_000, "later_call_ns": 4000}
        )
    for what, share in (process.tail or {}).items():
        builder.tables["tail.csv"].append(
            {**device, "replicate": 0, "cause": what, "launches": 2, "time_ns": int(1e7 * share), "share": share}
            | {"longest_ns": int(6e6 * share), "what": "gemm"}
        )
    for row in process.causes:
        builder.tables["findings.csv"].append(device | {"replicate": 0} | row)
    for level, cv in (process.levels or {}).items():
        case = "recorded/launch/stream:idle"
        scope = process.name if level == "devices" else device["device_id"]
        place = {
            **device,
            "scope": scope,
            "arm": RECORDED,
            "process_config": RECORDED,
            "case": case,
            "metric": "api_record_ns",
        }
        builder.tables.setdefault("variation.csv", []).append(
            {**place, "level": level, "groups": 5, "cv": cv, "cv_lo": cv / 2, "cv_hi": cv * 2, "variance_share": 0.5}
        )


def _quality(index: int, process: Process) -> dict[str, Any]:
    recorder, form, clock = process.recorder
    kernels = process.launches + process.before - process.unknown if process.kernels is None else process.kernels
    ahead = (133_000_000_000, 133_000_000_000) if process.clock_problem else (-977, 4961)
    joined = (kernels - process.before) / kernels if kernels else ""
    found = {"file": process.file, "recorder": recorder, "form": form, "clock": clock, "pid": 4000 + index}
    found |= {"rank": "" if process.rank is None else process.rank, "verdict": process.verdict, "answer": process.answer}
    found |= {"launch_answer": process.launch_answer, "tick_ns": process.tick_ns, "threads": 1, "streams": process.streams}
    found |= {"calls": 2 * process.launches, "launches": process.launches, "kernels": kernels, "joined_share": joined}
    found |= {"kernels_without_launch": process.before, "launches_without_kernel": process.unknown}
    found |= {"overlap": 15, "early": 0, "zero": 0, "idle_launches": process.idle, "busy_launches": process.busy}
    found |= {"unknown_launches": process.unknown, "graph_launches": process.graphs}
    found |= {"clock_ahead_least_ns": ahead[0], "clock_ahead_most_ns": ahead[1], "clock_problem": process.clock_problem}
    found |= {"clock_drift_ppm": 206 if process.clock_problem else ""}
    found |= {"left_out": process.left_out, "remarks": process.remarks}
    return found | (process.clock or {})


# fmt: off
def recorded() -> Builder:
    """Four ranks: one waits for its launches, one for its device, one has other clocks, one no kernels."""
    ranks = dict(recorder=KINETO, tick_ns=1000)
    return recorded_session(
        Process(rank=0, file="rank0.json.gz", graphs=70, before=436, streams=6, **ranks),
        Process(
            rank=1, file="rank1.json.gz", idle=40, busy=960, left_out="12 calls that are in two rows",
            verdict="device-bound", answer="The GPU works 96 % of the time and is idle 4 %.", **ranks,
        ),
        Process(
            clock_problem=CLOCKS, remarks="its driver is not known",
            verdict="clocks disagree", answer=f"Why the GPU is idle is not known: {CLOCKS}.",
        ),
        Process(
            "Quadro GP100", idle=0, busy=0, unknown=200, kernels=0,
            verdict="no kernels", answer="It has calls and no kernels: whether the GPU was idle is not known.",
        ),
    )


# fmt: on
def measured() -> Builder:
    """A session of launchgap's own, of a GPU of the same name, with what only tracing sees."""
    specs = [Spec("NVIDIA H200"), Spec("host", backend="host", capability="", call=900, trip=5200)]
    builder = Builder("20261120T093000Z-be57aa", specs, 2, traced=True, families=("launch",)).build()
    for metric, value in (("api_record_ns", 2000.0), ("launch_ns", 2800.0)):
        builder._case(builder.specs[0], "launch/null", "api:driver/mode:idle", metric, value, 500, arm="traced")
        builder._case(builder.specs[0], "launch/null", "api:runtime/mode:idle", metric, 1.0, 500, arm="traced")
    return builder
