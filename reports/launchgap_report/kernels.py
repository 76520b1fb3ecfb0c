"""Which kernels the libraries, or a recorded job, really launched, from the trace."""

from __future__ import annotations

from collections.abc import Callable

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, count, percent, quantity

GATE = "launchgap_gate"
HEADS = ["case", "kernel", "grid", "block", "count", "mean time"]
RECORDED_HEADS = [
    "kernel",
    "grid",
    "block",
    "count",
    "of the time",
    "together",
    "median",
    "p99",
    "longest",
    "variation",
    "first call",
    "later calls",
]
MOST = 150
"""Rows of a device; a long session traces thousands of combinations."""


def section(drawing: Drawing) -> list[Table]:
    """A table per device that has any; of a recorded job per process."""
    return [table for device in drawing.shown for table in _tables(drawing, device)]


def _tables(drawing: Drawing, device: Device) -> list[Table]:
    found = device.session.details.of("kernels", device.id)
    if not device.recorded:
        records = [r for r in found if _is_shown(r)]
        return [_table(drawing.label(device), HEADS, records, _line)] if records else []
    processes: dict[float | None, list[Record]] = {}
    # The kernels of a job are of one case; what took longest is looked for first.
    for record in sorted(found, key=lambda r: -(r.get("total_ns") or 0)):
        processes.setdefault(record.get("replicate"), []).append(record)
    return [
        _table(
            drawing.label(device) + (f", r{replicate:.0f}" if len(processes) > 1 and replicate is not None else ""),
            RECORDED_HEADS,
            records,
            _recorded_line,
        )
        for replicate, records in processes.items()
    ]


def _table(label: str, heads: list[str], records: list[Record], line: Callable[[Record], list[str]]) -> Table:
    left_out = len(records) - MOST
    note = f"{count(left_out, 'more row')} not shown: launchgap export writes all to kernels.csv." if left_out > 0 else ""
    return Table(label, heads, [line(r) for r in records[:MOST]], heads.index("count"), note)


def _is_shown(record: Record) -> bool:
    return record["case"].startswith(("matmul/", "convolution/")) and record["kernel"] != GATE


def _line(record: Record) -> list[str]:
    return [record["case"], *_kernel(record), quantity(record.get("mean_ns"), "ns")]


def _recorded_line(record: Record) -> list[str]:
    times = (quantity(record.get(key), "ns") for key in ("total_ns", "p50_ns", "p99_ns", "longest_ns"))
    calls = (quantity(record.get(key), "ns") for key in ("first_call_ns", "later_call_ns"))
    return [*_kernel(record), percent(record.get("gpu_share")), *times, percent(record.get("cv")), *calls]


def _kernel(record: Record) -> list[str]:
    number = record.get("count")
    shape = (record[key].replace("x", "×") or MISSING for key in ("grid", "block"))
    return [record["kernel"] or MISSING, *shape, MISSING if number is None else f"{number:.0f}"]
