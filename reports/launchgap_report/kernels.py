"""Which kernels the libraries really launched, from the trace."""

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
        records = [r for r in device.session.details.of("kernels", device.id) if _is_shown(r)]
        if not records:
            continue
        left_out = len(records) - MOST
        note = (
            f"{count(left_out, 'more row')} not shown: launchgap export writes all to kernels.csv." if left_out > 0 else ""
        )
        heads = ["case", "kernel", "grid", "block", "count", "mean time"]
        rows = [_line(r) for r in records[:MOST]]
        tables.append(Table(drawing.label(device), heads, rows, 4, note))
    return tables


def _is_shown(record: Record) -> bool:
    return record["case"].startswith(("matmul/", "convolution/")) and record["kernel"] != GATE


def _line(record: Record) -> list[str]:
    number, total = record.get("count"), record.get("total_ns")
    mean = None if not number or total is None else total / number
    return [
        record["case"],
        record["kernel"],
        *(record[key].replace("x", "×") or MISSING for key in ("grid", "block")),
        MISSING if number is None else f"{number:.0f}",
        quantity(mean, "ns"),
    ]
