"""One product and one convolution in the idiom of each generation, beside the library's."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .tables import Record
from .text import MISSING, percent, quantity

IDIOMS = {
    "naive": "a thread for each element",
    "tiles": "Kepler: tiles in shared memory; on the host, blocks that caches hold",
    "wmma": "Volta: tensor cores, WMMA",
    "mma": "Ampere: mma.sync, cp.async",
    "wgmma": "Hopper: wgmma, TMA",
    "tcgen05": "Blackwell: tcgen05, sums in tensor memory",
    "library": "the device's library",
}


@dataclass
class Ladder:
    tables: list[Table]
    """Of each device, each benchmark and shape"""
    sentences: list[str]


def section(drawing: Drawing) -> Ladder | None:
    tables, sentences = [], []
    for device in drawing.devices:
        rows = device.session.details.of("ladder", device.id)
        for benchmark, shape in dict.fromkeys((row["benchmark"], row["shape"]) for row in rows):
            of_shape = [row for row in rows if (row["benchmark"], row["shape"]) == (benchmark, shape)]
            tables.append(_table(f"{drawing.label(device)}: {benchmark}, {shape}", of_shape))
        found = device.session.details.of("findings", device.id) if rows else []
        sentences += [f"{drawing.label(device)}: {f['sentence']}" for f in found if f["code"] == "ladder"]
    return Ladder(tables, sentences) if tables else None


def _table(title: str, rows: list[Record]) -> Table:
    lines = [
        [
            row["rung"],
            _idiom(row),
            row["type"].upper(),
            quantity(row.get("device_ns"), "ns"),
            quantity(row.get("tflops"), "TFLOP/s"),
            MISSING if row.get("of_library") is None else percent(row.get("of_library")),
            MISSING if row.get("of_best") is None else percent(row.get("of_best")),
        ]
        for row in rows
    ]
    heads = ["rung", "", "type", "time", "rate", "of the library in its type", "of the fastest"]
    return Table(title, heads, lines, 3)


def _idiom(row: Record) -> str:
    idiom = IDIOMS.get(row["rung"], "")
    if row["status"] == "ok":
        return idiom
    return f"{idiom}; {row['status']}: {row['reason']}" if row["reason"] else f"{idiom}; {row['status']}"
