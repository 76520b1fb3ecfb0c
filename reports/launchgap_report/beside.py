"""A recorded job's launches beside what a machine does at best: an empty launch on an idle stream."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing
from .recorded import CALL, DELAY, P99, Cell, Job, time_cell
from .session import Device, Row
from .tables import Record
from .text import significant

WHAT = {
    (CALL, "plain"): "launch call",
    (CALL, "traced"): "launch call, both traced",
    (DELAY, "traced"): "call to kernel, both traced",
}
"""What is compared, by the recorded metric and the arm of the measured one"""


@dataclass
class Line:
    what: str
    cell: Cell
    best: Cell
    case: str
    ratio: str


@dataclass
class Pair:
    """A recorded device beside a measured one."""

    recorded: Device
    measured: Device
    alike: bool
    lines: list[Line]


def section(drawing: Drawing, rows: list[Record]) -> list[Pair]:
    """Of gap_recorded.csv what is drawn: recorded GPUs, each beside the measured ones of its name or beside all."""
    devices = {(d.session.id, d.id): d for d in drawing.devices}
    pairs: dict[tuple[str, ...], Pair] = {}
    for row in rows:
        ids = (row["session"], row["device_id"], row["measured_session"], row["measured_device"])
        recorded, measured = devices.get(ids[:2]), devices.get(ids[2:])
        if recorded is None or measured is None:
            continue
        ours = Job(recorded).row("idle", row["metric"])
        best = next((r for r in measured.rows if _is_of(r, row)), None)
        pair = pairs.setdefault(ids, Pair(recorded, measured, bool(row.flag("same_name")), []))
        what = WHAT[row["metric"], row["arm"]]
        ratio = f"{significant(row.get('times'))}×"
        pair.lines.append(Line(what, time_cell(ours, P99), time_cell(best, P99), row["case"], ratio))
    return list(pairs.values())


def _is_of(measured: Row, row: Record) -> bool:
    place = (measured.arm, measured.process_config, measured.case, measured.metric)
    return place == (row["arm"], measured.family, row["case"], row["measured_metric"])
