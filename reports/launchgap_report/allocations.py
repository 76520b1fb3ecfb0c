"""What a recorded job did with its allocator."""

from __future__ import annotations

from dataclasses import dataclass

from .recorded import Head
from .session import Device
from .tables import Record
from .text import MISSING, quantity

COUNTS = {
    "allocations": "allocations",
    "releases": "releases",
    "releases from before the recording": "unseen_releases",
    "releases not seen": "missing_releases",
    "failed": "failed_allocations",
}
BYTES = {"most live": "most_live_bytes", "live at the end": "live_at_end_bytes"}
"""Heads of the columns, each with its column of recordings.csv"""
TEXTS = {"left out": "left_out", "remarks": "remarks"}


@dataclass
class Line:
    """One process on one GPU."""

    device: Device
    file: str
    process: str
    recorder: str
    numbers: list[str]
    texts: list[str]


@dataclass
class Section:
    heads: list[Head]
    texts: list[Head]
    lines: list[Line]


def section(devices: list[Device]) -> Section | None:
    lines = [
        _line(device, process)
        for device in devices
        for process in device.recordings
        if process.get("allocations") is not None
    ]
    if not lines:
        return None
    columns = lines[0].device.session.registry.columns("recordings.csv")

    def heads(table: dict[str, str]) -> list[Head]:
        return [Head(head, columns[key].meaning if key in columns else "") for head, key in table.items()]

    return Section(heads(COUNTS | BYTES), heads(TEXTS), lines)


def _line(device: Device, process: Record) -> Line:
    pid = process.get("pid")
    return Line(
        device,
        process["file"] or MISSING,
        f"process {pid:.0f}" if pid else "",
        process["recorder"] or MISSING,
        [_count(process.get(key)) for key in COUNTS.values()] + [quantity(process.get(key), "B") for key in BYTES.values()],
        [process[key] or "nothing" for key in TEXTS.values()],
    )


def _count(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"
