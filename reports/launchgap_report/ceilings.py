"""How much of what the GPU can do at most a library reaches, by the type of the elements."""

from __future__ import annotations

from .details import split_case
from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, percent, quantity

IMPOSSIBLE = "impossible"
HEADS = [
    "device",
    "type",
    "best case",
    "algorithm",
    "rate",
    "clock",
    "ceiling at it",
    "share",
    "published",
    "share",
    "verdict",
]


def shares(drawing: Drawing, family: str) -> Table | None:
    """A row per device and type, of the best case that can be; one more where some cannot. Nothing without a ceiling."""
    rows = []
    for device in drawing.devices:
        for of_type in _by_type(device, family).values():
            can_be = [r for r in of_type if r["verdict"] != IMPOSSIBLE]
            cannot = [r for r in of_type if r["verdict"] == IMPOSSIBLE]
            rows += [_line(drawing.label(device), max(some, key=_rate)) for some in (can_be, cannot) if some]
    if not rows:
        return None
    heads = HEADS
    if not any(row[3] for row in rows):
        heads, rows = _without(heads, 3), [_without(row, 3) for row in rows]
    note = "Ceilings are of dense work, at the highest clock that was read and as published. The definitions say which."
    return Table("Share of the ceiling", heads, rows, heads.index("rate"), note)


def _by_type(device: Device, family: str) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in device.session.details.of("ceilings", device.id):
        known = record.get("ceiling_tflops") or record.get("published_tflops")
        if record["arm"] == "plain" and record["case"].startswith(f"{family}/") and known:
            found.setdefault(record["type"], []).append(record)
    return found


def _rate(record: Record) -> float:
    return record.get("tflops") or 0


def _line(device: str, record: Record) -> list[str]:
    benchmark, params = split_case(record["case"])
    case = " ".join([benchmark.partition("/")[2], *(f"{k} {v}" for k, v in params.items() if k != "type")])

    def cell(key: str, unit: str) -> str:
        value = record.get(key)
        return MISSING if value is None else quantity(value, unit)

    return [
        device,
        record["type"],
        case,
        record["algorithm"],
        cell("tflops", "TFLOP/s"),
        MISSING if record.get("clock_mhz") is None else f"{record.get('clock_mhz'):.0f} MHz",
        cell("ceiling_tflops", "TFLOP/s"),
        percent(record.get("share")),
        cell("published_tflops", "TFLOP/s"),
        percent(record.get("published_share")),
        record["verdict"],
    ]


def _without(cells: list[str], place: int) -> list[str]:
    return [*cells[:place], *cells[place + 1 :]]
