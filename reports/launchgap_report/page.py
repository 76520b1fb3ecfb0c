"""Puts the page together: what stands where, in which words.

The page must say everything without its script, and load nothing from anywhere: its content
security policy forbids all but the one style sheet and the one script that it carries.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field

from . import (
    allocations,
    beside,
    blocking,
    ceilings,
    cliffs,
    costs,
    fallback,
    findings,
    frame,
    gap,
    glossary,
    headlines,
    interference,
    kernels,
    ladder,
    levels,
    nights,
    observer,
    parts,
    patterns,
    plots,
    ranks,
    recorded,
    replays,
    sequence,
    skew,
    slow_causes,
    timelines,
)
from . import compare as cmp
from .compare import library_versions
from .registry import OF_METRIC, SHARE, Column
from .session import MOST_GENERATIONS, Device, Record, Row, Session
from .text import MISSING, about, count, join_and, percent, quantity, significant

SECTIONS = (
    recorded,
    parts,
    levels,
    timelines,
    slow_causes,
    costs,
    sequence,
    observer,
    blocking,
    interference,
    skew,
    ladder,
    patterns,
    cliffs,
    kernels,
)
"""What a drawing is enough for: each is known to the templates by its module's name."""


@dataclass
class CaseCell:
    text: str
    title: str = ""
    numeric: bool = True


@dataclass
class CaseLine:
    row: Row
    name: str
    note: str
    cells: list[CaseCell]
    reason: str


@dataclass
class DeviceCard:
    """One column of the table of devices: what was measured on what."""

    device: Device
    libraries: list[str]
    kernels: str
    runs: str
    facts: dict[str, str] = field(default_factory=dict)


def render(
    sessions: list[Session],
    compared: dict[str, list[Record]] | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> str:
    """The whole page; the same input gives the same bytes. What makes its comparison doubtful is told to `warn` too."""
    devices = cmp.order([d for s in sessions for d in s.devices])
    if len(sessions) == 1:
        # Within one session a device is looked for by its index.
        devices = sorted(
            devices,
            key=lambda d: (
                d.is_host,
                d.record.get("device_index") if d.record.get("device_index") is not None else 1e9,
                d.order,
            ),
        )
    several = len(sessions) > 1
    metrics = glossary.metrics(sessions)
    columns = glossary.case_columns(sessions[0])
    _draw_ends(sessions, devices)
    drawing = plots.Drawing(devices, sessions[0].registry)
    # What different jobs did is never put in relation; what launchgap measured is.
    measured = [s for s in sessions if not (s.recorded or s.published)]
    of_measured = [d for d in devices if d.session in measured]
    # What others have published stands beside it, and is never averaged with it.
    beside_each_other = [s for s in sessions if not s.recorded]
    compared = compared or {}
    # Of half of the cases nothing is compared here: the sentences and their tables are of all.
    cut = sorted({name for s in sessions for name in s.registry.cut})
    comparison = cmp.compare(beside_each_other, compared) if not cut else None
    doubts = comparison.warnings if comparison else []
    if compared.get("gap_devices") and cut:
        doubts = cmp.warnings_of([d for s in beside_each_other for d in s.devices if d.usable])
    for doubt in doubts:
        warn(doubt)
    all_rows = [row for d in devices for row in _rows_of(d)]
    most_cases = MOST_CASES_OF_MANY if comparison and cmp.generations(devices) > MOST_GENERATIONS else MOST_CASES
    return frame.filled(
        "page.html.j2",
        title=_title(sessions, devices),
        sessions=sessions,
        several=several,
        simulated=[s for s in sessions if s.simulated],
        label=drawing.label,
        provenance=_provenance(sessions),
        measured=bool(measured),
        only_replays=all(s.only_replays for s in sessions),
        only_published=all(s.published for s in sessions),
        published=[s for s in sessions if s.published],
        only_memory=all(s.only_memory for s in sessions),
        allocations=allocations.section(devices),
        compared=len(beside_each_other),
        recorded_headlines=recorded.headlines(devices),
        headlines=headlines.table(of_measured),
        nights=nights.section(drawing),
        beside=beside.section(drawing, compared.get("gap_recorded", [])),
        **{module.__name__.rpartition(".")[2]: module.section(drawing) for module in SECTIONS},
        ranks=ranks.section(sessions),
        replays=replays.section(drawing, sessions),
        found=findings.section(sessions),
        fallback=fallback.costs(drawing),
        cards=[device_card(d) for d in devices],
        hosts=[host_facts(s) for s in sessions],
        initialisation=[i for s in sessions for i in initialisation(s)],
        runs=[run_line(s, r) for s in sessions for r in s.runs],
        odd=levels.odd_table(drawing),
        drawn=_left_out(drawing),
        launch=drawing.launches(),
        checks=observer.checks(drawing),
        families=drawing.families(),
        shares={family: ceilings.shares(drawing, family) for family in ("matmul", "convolution")},
        library_code=costs.library_code(drawing),
        comparison=comparison,
        gap=gap.section(compared),
        ratios=drawing.ratios(comparison) if comparison else None,
        columns=columns,
        explained=dict.fromkeys((*columns, *sessions[0].registry.columns("summary.csv").values())),
        metrics={k: {**m, "title": glossary.metric_title(m)} for k, m in metrics.items()},
        registry=sessions[0].registry,
        arms=list(dict.fromkeys(row.arm for d in devices for row in _rows_of(d) if row.arm)),
        case_statuses=list(
            dict.fromkeys([*sessions[0].registry.statuses, *(r.status for s in sessions for r in s.impossible)])
        ),
        cases=[case_line(row, columns, several) for row in all_rows[:most_cases]],
        cut=cut,
        cases_left_out=len(all_rows[most_cases:]),
        missing=MISSING,
        library_versions_of=library_versions,
    )


def _rows_of(device: Device) -> list[Row]:
    return device.rows + device.impossible


def _title(sessions: list[Session], devices: list[Device]) -> str:
    if all(s.only_replays for s in sessions):
        traces = list(dict.fromkeys(r["trace"] for s in sessions for r in s.details.tables["replays"]))
        return f"Memory of {traces[0]}" if len(traces) == 1 else f"Memory of {count(len(traces), 'trace')}"
    names = list(dict.fromkeys(s.name for s in sessions))
    name = join_and(names) if len(names) <= MOST_NAMES else f"{names[0]} and {len(names) - 1} more"
    if all(s.published for s in sessions):
        return f"{name}: published values of {count(len({d.name for d in devices}), 'GPU')}"
    jobs = sum(s.recorded for s in sessions)
    if jobs:
        what = "a recorded job" if jobs == 1 else count(jobs, "recorded job")
        if all(s.only_memory for s in sessions):
            return f"{name}: allocations of {what}"
        return f"{name}: launches of {what}" + (", beside what was measured" if jobs < len(sessions) else "")
    if len(sessions) > 1:
        return f"{name}: generation gap of {count(len(devices), 'device')}"
    node = sessions[0].string("host", "node") or next((d.record["node"] for d in devices), "")
    return f"{name}: launches on {node}" if node else f"{name}: launches"


def _draw_ends(sessions: list[Session], devices: list[Device]) -> None:
    """Of many generations in several sessions the figures are of the oldest and the newest GPU, and of hosts."""
    gpus = [d for d in devices if not d.is_host]
    if len(sessions) == 1 or cmp.generations(gpus) <= MOST_GENERATIONS:
        return
    ordered = sorted(gpus, key=lambda d: d.record["compute_capability"].rjust(5))
    kept = {(id(d.session), d.id) for d in [ordered[0], ordered[-1], *(d for d in devices if d.is_host)]}
    for session in sessions:
        session.drawn = {i for i in session.drawn if (id(session), i) in kept}


def _left_out(drawing: plots.Drawing) -> str:
    """What to say of devices without figures; empty if there are none."""
    if len(drawing.shown) == len(drawing.devices):
        return ""
    if cmp.generations(drawing.devices) > MOST_GENERATIONS:
        return (
            f"Figures show {len(drawing.shown)} of {len(drawing.devices):,} devices: the oldest and the newest GPU, and "
            "hosts. Tables have all; `launchgap report` of each session draws its own."
        )
    odd = any(d.session.details.of("outlier_devices", d.id) for d in drawing.shown)
    which = "those that differ from their kind, and the first" if odd else "the first"
    return (
        f"Figures show {len(drawing.shown)} of {len(drawing.devices):,} devices: {which}. Tables have all; "
        "`launchgap export` writes the numbers of all of them."
    )


MOST_CASES, MOST_CASES_OF_MANY = 2000, 400
"""Rows in the table of all cases, of few devices and of many: with more nobody reads them, and a browser waits"""
MOST_NAMES = 3  # of sessions in the page's title


@dataclass
class Provenance:
    """How the section about the sessions is called, in the section and in the navigation."""

    heading: str
    short: str


def _provenance(sessions: list[Session]) -> Provenance:
    if all(s.published for s in sessions):
        return Provenance("What was published, of what", "What was published")
    if all(s.recorded for s in sessions):
        return Provenance("What was recorded, and by what", "What was recorded")
    if any(s.recorded for s in sessions):
        return Provenance("What was measured and recorded", "What was measured and recorded")
    return Provenance("What was measured, on what", "What was measured")


# What was measured on what


def device_card(device: Device) -> DeviceCard:
    record = device.record
    runs = device.runs
    forms = sorted({r["kernel_form"] for r in runs if r["kernel_form"]})
    jit = {r.flag("jit") for r in runs} - {None}
    compiled = (
        "compiled by the driver (JIT)"
        if jit == {True}
        else ("in some runs compiled by the driver (JIT)" if True in jit else "")
    )

    clock = [
        f"{record.get(k):.0f}\u00a0MHz{what}"
        for k, what in (("clock_mhz", ""), ("memory_clock_mhz", " memory"))
        if record.get(k) is not None
    ]
    bits = record.get("memory_bus_bits")
    facts = {
        "Recorded by": ", ".join(dict.fromkeys(r["recorder"] for r in device.recordings)),
        "Backend": record["backend"],
        "Compute capability": record["compute_capability"],
        "Released": record["released"] if record.flag("release_known") else "",
        "Memory": about(record.get("memory_bytes"), "B") + (f", {bits:.0f}\u00a0bit" if bits else ""),
        "Multiprocessors": about(record.get("multiprocessors"), ""),
        "Clocks": ", ".join(clock),
        "L2 cache": about(record.get("l2_bytes"), "B"),
        "Driver": record["driver_version"],
        "Host CPU": record["host_cpu"] or device.session.string("host", "cpu_model"),
        "PCI bus": record["pci_bus_id"],
        "UUID": record["uuid"],
        "Node": "" if device.recorded else record["node"],
    }
    return DeviceCard(
        device,
        cmp.libraries(device),
        ", ".join(forms) + (f", {compiled}" if compiled and forms else compiled),
        _runs_text(device, runs),
        dict(facts.items()),
    )


def _runs_text(device: Device, runs: list[Record]) -> str:
    if device.recorded:
        return f"{count(len(runs), 'process', 'processes')}, recorded"
    good = sum(r["status"] == "ok" for r in runs)
    return f"{good} of {len(runs)} ok" if runs else "no runs"


def host_facts(session: Session) -> dict[str, str]:
    """The session's own facts, with those that are missing left empty."""
    memory = session.info.get("host", {})
    memory = memory.get("memory_bytes") if isinstance(memory, dict) else None
    state = {
        "complete": "complete",
        "stopped": "stopped early; what was measured is kept",
        "running": "not ended: still running, or killed",
    }.get(session.string("state"), session.string("state"))
    system = " · ".join(t for t in (session.string("host", "os"), session.string("host", "kernel")) if t)
    recorded_by = join_and(session.recorders) if session.recorders else ""
    if session.recorded:
        # Of the machine on which it was recorded nothing is known, and no profile was run.
        return dict.fromkeys(("CPU", "Begin", "Profile"), "") | {
            "Session": session.id,
            "State": state,
            "Recorded by": recorded_by or "not known",
            "Imported": session.string("begin_utc"),
            "Command": _command(session),
            "launchgap": _version(session),
        }
    if session.only_replays:
        return dict.fromkeys(("Recorded by", "Imported", "CPU", "Profile"), "") | {
            "Session": session.id,
            "Begin": session.string("begin_utc"),
            "Command": _command(session),
            "launchgap": _version(session),
        }
    return {
        "Session": session.id,
        "Recorded by": "",
        "Imported": "",
        "State": state,
        "Begin": session.string("begin_utc"),
        "End": session.string("end_utc"),
        "Command": _command(session),
        "Profile": session.string("profile"),
        "Runs": session.string("runs") or session.string("replicates"),
        "Seed": session.string("seed"),
        "launchgap": _version(session),
        "Host": session.string("host", "node"),
        "CPU": session.string("host", "cpu_model"),
        "CPUs": session.string("host", "cores"),
        "CPU governor": session.string("host", "governor"),
        "NUMA nodes": session.string("host", "numa_nodes"),
        "Memory": about(float(memory), "B") if isinstance(memory, (int, float)) else "",
        "System": system,
    }


def _command(session: Session) -> str:
    command = session.info.get("command_line")
    return shlex.join(str(c) for c in command) if isinstance(command, list) else ""


def _version(session: Session) -> str:
    build = " · ".join(t for t in (session.string("build", k) for k in ("type", "compiler", "git")) if t)
    return session.string("launchgap_version") + (f" ({build})" if build else "")


def initialisation(session: Session) -> list[dict[str, str]]:
    labels = {d.id: d.label for d in session.devices}
    lines = []
    for item in session.items("initialisation"):

        def milliseconds(key: str, item: dict = item) -> str:
            value = item.get(key)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return quantity(float(value), "ms") if is_number else MISSING

        identifier = str(item.get("device_id") or "")
        keeper = item.get("keeper")
        lines.append(
            {
                "device": labels.get(identifier) or identifier or MISSING,
                "first": milliseconds("first_ms"),
                "again": milliseconds("again_ms"),
                "with_keeper": milliseconds("with_keeper_ms"),
                "keeper": {True: "yes", False: "no"}.get(keeper, MISSING) if isinstance(keeper, bool) else MISSING,
            }
        )
    return lines


def run_line(session: Session, run: Record) -> dict[str, str]:
    text = {
        key: run[key]
        for key in (
            "arm",
            "process_config",
            "status",
            "reason",
            "begin_utc",
            "cpus",
            "kernel_form",
            "records_file",
            "trace_state",
        )
    }

    def whole(key: str) -> str:
        value = run.get(key)
        return "" if value is None else f"{value:.0f}"

    yes_no = {True: "yes", False: "no", None: ""}
    duration = run.get("duration_s")
    return {
        **text,
        "device": session.labels.get(run["device_id"]) or run["device_name"] or run["device_id"],
        "replicate": whole("replicate"),
        "attempt": whole("attempt"),
        "cases_ok": whole("cases_ok"),
        "cases_failed": whole("cases_failed"),
        "duration": "" if duration is None else quantity(duration, "s"),
        "side_by_side": whole("side_by_side"),
        "jit": yes_no[run.flag("jit")],
    }


# The table of all cases


def case_line(row: Row, columns: list[Column], several: bool) -> CaseLine:
    notes = [row.device.label]
    if several:
        notes.append(row.device.session.id)
    if not row.usual:
        notes += [t for t in (row.arm, row.process_config) if t not in ("", row.family)]
    if row.device.simulated:
        notes.append("simulated")
    written = ("case", "metric", "status")  # by the template
    cells = [_case_cell(row, column) for column in columns if column.key not in written]
    return CaseLine(row, row.case, " · ".join(notes), cells, row.reason)


def _case_cell(row: Row, column: Column) -> CaseCell:
    raw = row.record[column.key]
    if not column.numeric:
        return CaseCell(raw or MISSING, numeric=False)
    value = row.get(column.key)
    if value is None:
        return CaseCell(MISSING)
    if column.kind == "count":
        return CaseCell(f"{value:.0f}")
    if column.unit == OF_METRIC:
        return CaseCell(quantity(value, row.unit), f"{raw} {row.unit}".strip())
    title = raw + _interval(row, column.key)
    return CaseCell(percent(value) if column.unit == SHARE else significant(value, 2), title)


def _interval(row: Row, key: str) -> str:
    low, high = row.get(f"{key}_lo"), row.get(f"{key}_hi")
    if low is None or high is None:
        return ""
    return f"; 95 %: {significant(low)} to {significant(high)}"
