"""Recorded steps that were done again: what they take here, what binds them, and what they would take elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, count, quantity, significant, with_units

CODES = ("pattern-bound", "pattern-graph", "pattern-agreement")
"""Findings about patterns; their sentences stand before the tables"""
MODES = {"eager": "as recorded", "pool": "memory from a pool", "graph": "graphs", "graph_update": "graphs, updated"}
BOUND = {
    "work": "the work",
    "program": "the program",
    "launches": "launches",
    "allocations": "allocations",
    "several": "nothing alone",
    "unknown": MISSING,
}


@dataclass
class Pattern:
    heading: str
    about: list[str]
    answers: list[str]
    tables: list[Table]


def section(drawing: Drawing) -> list[Pattern] | None:
    """In the order of the sessions, and of each in its own."""
    names: dict[str, list[tuple[Device, list[Record]]]] = {}
    for device in drawing.devices:
        of_device: dict[str, list[Record]] = {}
        for row in device.session.details.of("patterns", device.id):
            of_device.setdefault(row["pattern"], []).append(row)
        for name, rows in of_device.items():
            names.setdefault(name, []).append((device, rows))
    return [_pattern(drawing, name, found) for name, found in names.items()] or None


def _pattern(drawing: Drawing, name: str, found: list[tuple[Device, list[Record]]]) -> Pattern:
    first = found[0][1][0]
    on = f" on {first['gpu']}" if first["gpu"] else ""
    about = [
        f"{first['source']}{on}: {count(int(first['operations']), 'operation')}, of which "
        f"{first['launches']} launch, "
        f"on {count(int(first['streams']), 'stream')}."
    ]
    if (factor := first.get("kernel_factor")) not in (None, 1):
        about.append(f"Its kernels last {significant(factor)} times as long as they did.")
    if first["remarks"]:
        about.append(f"What is not as it was: {first['remarks']}.")
    return Pattern(name, about, _answers(drawing, name, found), [_times(drawing, found), *_elsewhere(found[0][0], name)])


def _answers(drawing: Drawing, name: str, found: list[tuple[Device, list[Record]]]) -> list[str]:
    """By device, and each device's in the order of findings."""
    lines = []
    for device, _ in found:
        of = f"{drawing.label(device)}: " if len(found) > 1 else ""
        own = [f for f in device.session.details.of("findings", device.id) if f["code"] in CODES]
        lines += [of + with_units(f["sentence"]) for f in own if f"/pattern:{name}/" in f["cases"]]
    return lines


def _times(drawing: Drawing, found: list[tuple[Device, list[Record]]]) -> Table:
    lines = []
    for device, rows in found:
        for row in sorted(rows, key=lambda r: (r["arm"], list(MODES).index(r["mode"]) if r["mode"] in MODES else 9)):
            mode = MODES.get(row["mode"], row["mode"]) + (", traced" if row["arm"] != "plain" else "")
            lines.append(
                [
                    drawing.label(device),
                    mode,
                    quantity(row.get("p50_ns"), "ns"),
                    _ratio(row, "agreement"),
                    *(
                        quantity(row.get(part), "ns")
                        for part in ("without_launches_ns", "without_program_ns", "without_work_ns")
                    ),
                    BOUND.get(row["bound_by"], row["bound_by"]),
                    _ratio(row, "by_eager"),
                ]
            )
    note = (
        "by the recording: the replay’s time by the recorded step’s. launching, program, work: by how much shorter the step "
        "would be if launching cost nothing, if the program’s own time between its calls were none, if the device’s work "
        "took no time; the largest binds it. by launches one by one: the time in this mode by that of each call as it was "
        "made. Both ratios have their 95 % interval by the runs’ medians."
    )
    parts = ["launching", "program", "work"]
    heads = ["device", "mode", "step", "by the recording", *parts, "bound by", "by launches one by one"]
    return Table("Replays", heads, lines, 2, note)


def _ratio(row: Record, key: str) -> str:
    value, low, high = row.get(key), row.get(f"{key}_lo"), row.get(f"{key}_hi")
    if value is None:
        return MISSING
    interval = f" ({low:.2f} to {high:.2f})" if low is not None and high is not None else ""
    return f"{value:.2f}{interval}"


def _elsewhere(device: Device, name: str) -> list[Table]:
    rows = [r for r in device.session.details.tables.get("predicted_patterns", []) if r["pattern"] == name]
    if not rows:
        return []
    lines = [
        [
            row["gpu"],
            quantity(row.get("launch_call_ns"), "ns"),
            f"{significant(row.get('kernel_factor_lo') or 0)} to {significant(row.get('kernel_factor_hi') or 0)}",
            f"{quantity(row.get('predicted_lo_ns'), 'ns')} to {quantity(row.get('predicted_hi_ns'), 'ns')}",
            _bound(row),
            row["costs_from"],
        ]
        for row in rows
    ]
    agreement = rows[0].get("model_agreement")
    error = (
        f"The same calculation with the recorded calls gives {agreement:.2f} times the recorded time: that is its error. "
        if agreement is not None
        else ""
    )
    note = (
        f"Nothing was measured for this table. {error}"
        "Assumed are the host’s own time as it was recorded, a launch call as published or recorded for that GPU, and "
        f"kernels whose time follows the memory’s bandwidth or the rate of FP32, compared with {rows[0]['recorded_on']}."
    )
    heads = ["as on", "launch call", "kernels, times as long", "the step", "bound by", "call from"]
    return [Table("With the launches and kernels of another generation", heads, lines, 1, note)]


def _bound(row: Record) -> str:
    ends = [BOUND.get(row[key], row[key]) for key in ("bound_by_lo", "bound_by_hi")]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]}, or {ends[1]}"
