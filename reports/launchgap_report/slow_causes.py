"""Why samples are slow: their causes, and what stays unexplained."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import join_and, percent, quantity

MOST_CASES = 12


@dataclass
class SlowCauses:
    answers: list[str]
    table: Table


def section(drawing: Drawing) -> SlowCauses | None:
    devices = [d for d in drawing.devices if _rows(d)]
    if not devices:
        return None
    several = len(devices) > 1
    lines = [line for device in devices for line in _lines(drawing, device, several)]
    heads = [*(["device"] if several else []), "case", "arm", "slow samples", "above the median, in all", "causes"]
    note = (
        f"The {MOST_CASES} cases of each device whose slow samples cost most; slow_causes.csv has all. A cause is given on "
        "evidence of the sample's own time, or of its whole block. Shares are of the time above the median."
    )
    numeric = len(heads)
    return SlowCauses([_answer(drawing, d, several) for d in devices], Table("Slow samples", heads, lines, numeric, note))


def _rows(device: Device) -> list[Record]:
    return device.session.details.of("slow_causes", device.id)


def _extra(rows: list[Record]) -> float:
    return sum(row.get("extra_ns") or 0 for row in rows)


def _by_cause(rows: list[Record]) -> list[tuple[str, float]]:
    """Share of the time above the median, the largest first; what is unexplained last, and always."""
    whole = _extra(rows)
    causes: dict[str, float] = {"unexplained": 0}
    for row in rows:
        causes[row["cause"]] = causes.get(row["cause"], 0) + (row.get("extra_ns") or 0)
    return sorted(
        ((c, ns / whole if whole else 0) for c, ns in causes.items()), key=lambda e: (e[0] == "unexplained", -e[1])
    )


def _causes(rows: list[Record]) -> list[str]:
    return [f"{cause} {percent(share)}" for cause, share in _by_cause(rows)]


def _answer(drawing: Drawing, device: Device, several: bool) -> str:
    begin = f"{drawing.label(device)}: " if several else ""
    rows = [row for row in _rows(device) if row["arm"] == "plain"] or _rows(device)
    return f"{begin}slow samples take {quantity(_extra(rows), 'ns')} above the medians: {join_and(_causes(rows))}."


def _lines(drawing: Drawing, device: Device, several: bool) -> list[list[str]]:
    cases: dict[tuple[str, str, str], list[Record]] = {}
    for row in _rows(device):
        cases.setdefault((row["case"], row["arm"], row["process_config"]), []).append(row)
    worst = sorted(cases.items(), key=lambda entry: -_extra(entry[1]))[:MOST_CASES]
    return [
        ([drawing.label(device)] if several else [])
        + [case, arm, _count(rows), quantity(_extra(rows), "ns"), join_and(_causes(rows))]
        for (case, arm, _), rows in worst
    ]


def _count(rows: list[Record]) -> str:
    slow = sum(row.get("samples") or 0 for row in rows)
    return f"{slow:.0f} of {rows[0].get('of_samples') or 0:.0f}"
