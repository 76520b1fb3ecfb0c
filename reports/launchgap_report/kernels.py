"""Which kernels the libraries, or a recorded job, really launched, from the trace."""

from __future__ import annotations

from .plots import Drawing, Table
from .tables import Record
from .text import MISSING, count, quantity

GATE = "launchgap_gate"
MOST = 150
"""Rows of a device; a long session traces thousands of combinations."""


def section(drawing: Drawing) -> list[Table]:
    """A table per device that has any."""
    tables = []
    for device in drawing.devices:
        found = device.session.details.of("kernels", device.id)
        if device.recorded:
            # The kernels of a job are of one case; what took longest is looked for first.
            records = sorted(found, key=lambda r: -(r.get("total_ns") or 0))
        else:
            records = [r for r in found if _is_shown(r)]
        if not records:
            continue
        left_out = len(records) - MOST
        note = (
            f"{count(left_out, 'more row')} not shown: launchgap export writes all to kernels.csv." if left_out > 0 else ""
        )
        if device.recorded:
            heads = ["kernel", "grid", "block", "count", "together", "mean time", "shortest", "longest"]
            rows = [_recorded_line(r) for r in records[:MOST]]
        else:
            heads = ["case", "kernel", "grid", "block", "count", "mean time"]
            rows = [_line(r) for r in records[:MOST]]
        tables.append(Table(drawing.label(device), heads, rows, heads.index("count"), note))
    return tables


def _is_shown(record: Record) -> bool:
    return record["case"].startswith(("matmul/", "convolution/")) and record["kernel"] != GATE


def _line(record: Record) -> list[str]:
    return [record["case"], *_kernel(record), quantity(_mean(record), "ns")]


def _recorded_line(record: Record) -> list[str]:
    times = (record.get("total_ns"), _mean(record), record.get("shortest_ns"), record.get("longest_ns"))
    return [*_kernel(record), *(quantity(time, "ns") for time in times)]


def _kernel(record: Record) -> list[str]:
    number = record.get("count")
    shape = (record[key].replace("x", "×") or MISSING for key in ("grid", "block"))
    return [record["kernel"] or MISSING, *shape, MISSING if number is None else f"{number:.0f}"]


def _mean(record: Record) -> float | None:
    number, total = record.get("count"), record.get("total_ns")
    return None if not number or total is None else total / number
