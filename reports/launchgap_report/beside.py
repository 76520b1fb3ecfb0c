"""A recorded job's launches beside what a machine does at best: an empty launch on an idle stream."""

from __future__ import annotations

from dataclasses import dataclass

from .details import is_idle_null, own_first
from .plots import Drawing
from .recorded import CALL, DELAY, P99, Cell, Job, jobs_of, time_cell
from .session import Device, Row
from .text import significant

PAIRS = (
    ("launch call", CALL, "plain", "api_ns"),
    ("launch call, both traced", CALL, "traced", CALL),
    ("call to kernel, both traced", DELAY, "traced", DELAY),
)
"""What is compared: the recorded metric, and the arm and metric of the measured one"""


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


def section(drawing: Drawing) -> list[Pair]:
    """Each recorded device beside the measured ones of its name; if there is none, beside every measured GPU."""
    gpus = [d for d in drawing.devices if d.usable and not (d.is_host or d.simulated or d.recorded)]
    pairs = []
    for job in jobs_of(drawing.devices):
        alike = [d for d in gpus if d.name == job.device.name]
        found = [Pair(job.device, measured, bool(alike), _lines(job, measured)) for measured in alike or gpus]
        pairs += [pair for pair in found if pair.lines]
    return pairs


def _lines(job: Job, measured: Device) -> list[Line]:
    if job.idle_share() is None:  # then which streams were idle is not known
        return []
    lines = []
    for what, metric, arm, best_metric in PAIRS:
        row, best = job.row("idle", metric), _best(measured, arm, best_metric)
        if row is None or best is None or not row.get("p50") or not best.get("p50"):
            continue
        ratio = (row.get("p50") or 0) / (best.get("p50") or 1)
        lines.append(Line(what, time_cell(row, P99), time_cell(best, P99), best.case, f"{significant(ratio)}×"))
    return lines


def _best(device: Device, arm: str, metric: str) -> Row | None:
    """The empty launch by the device's own path, with the usual settings."""
    found = [
        row
        for row in device.session.rows
        if row.device is device
        and (row.arm, row.setup, row.metric) == (arm, "launch", metric)
        and is_idle_null(row.case)
        and row.status == "ok"
    ]
    return min(found, key=lambda row: own_first(row.case), default=None)
