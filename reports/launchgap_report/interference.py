"""What makes launches slower: beside what, by how much, and for how long afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, count, join_and, quantity, scale_for, sentence, significant

METRICS = {"roundtrip_ns": "round trip", "api_ns": "launch call", "per_launch_ns": "burst", "launch_ns": "call to kernel"}
STATISTICS = ("p50", "mean", "p99", "p99.9")


@dataclass
class Interference:
    answers: list[str]
    tables: list[Table]


def section(drawing: Drawing) -> Interference | None:
    devices = [d for d in drawing.devices if d.session.details.of("interference", d.id)]
    if not devices:
        return None
    several = len(devices) > 1
    return Interference(
        [sentence(_answer(drawing, d, several)) for d in devices], [_table(drawing, d, several) for d in devices]
    )


def _rows(device: Device) -> list[Record]:
    return device.session.details.of("interference", device.id)


def _answer(drawing: Drawing, device: Device, several: bool) -> str:
    """By the round trips of plain runs, the worst first."""
    begin = f"{drawing.label(device)}: " if several else ""
    capital = str if several else str.capitalize
    medians = [r for r in _rows(device) if r["arm"] == "plain" and r["metric"] == "roundtrip_ns" and r["statistic"] == "p50"]
    slower = sorted((r for r in medians if r["verdict"] == "slower"), key=lambda r: -(r.get("times") or 0))
    if not medians:
        return f"{begin}{capital('plain')} runs did not measure it."
    unclear = sum(r["verdict"] == "cannot-tell" for r in medians)
    rest = f"; of {unclear} more these runs cannot tell" if unclear else ""
    if not slower:
        told = len(medians) - unclear
        if not told:
            return f"{begin}{capital('these')} runs cannot tell whether anything makes launches slower."
        return f"{begin}{capital('none')} of {told} that can be told makes launches slower at the median{rest}."
    words = [f"{_words(r['beside'])} ({significant(r.get('times') or 0)} times)" for r in slower]
    return f"{begin}{capital('slower')} at the median: {join_and(words)}{rest}."


def _table(drawing: Drawing, device: Device, several: bool) -> Table:
    """A line for each interference and metric that has a median; the slowest round trips first."""
    rows = _rows(device)
    of = {(r["beside"], r["mode"], r["arm"], r["metric"], r["statistic"]): r for r in rows}
    keys = [k[:4] for k in of if k[4] == "p50" and (k[2] == "plain" or k[3] == "launch_ns")]

    def worst(key: tuple[str, ...]) -> tuple[float, str]:
        roundtrip = of.get((key[0], "idle", "plain", "roundtrip_ns", "p50"), {})
        return (-(roundtrip.get("times") or 0), key[0])

    order = list(METRICS)
    keys.sort(key=lambda key: (worst(key), order.index(key[3]) if key[3] in order else len(order)))
    lines = []
    for key in keys:
        beside, _, arm, metric = key
        median = of[(*key, "p50")]
        name = METRICS.get(metric, metric) + (", traced" if arm != "plain" else "")
        cells = [_words(beside), name, _verdict(median), quantity(median.get("quiet_ns"), "ns")]
        cells += [_added(of.get((*key, statistic))) for statistic in STATISTICS]
        lines.append([*cells, _lasts(median)])
    label = f"Interference: {drawing.label(device)}" if several else "Interference"
    note = (
        "Each line compares launches with quiet ones of the same processes, measured shortly before. added: by how much the "
        "statistic is larger, with its 95 % interval by the runs in pairs. lasts: how many launches are slower once it is "
        "over, and how long they take."
    )
    heads = ["interference", "what is timed", "p50", "quiet p50", *(f"added, {s}" for s in STATISTICS), "lasts"]
    return Table(label, heads, lines, 3, note)


def _words(beside: str) -> str:
    return beside.replace("_", " ")


def _added(row: Record | None) -> str:
    """With the interval in the same unit."""
    if row is None or (value := row.get("added_ns")) is None:
        return MISSING
    low, high = row.get("added_lo_ns"), row.get("added_hi_ns")
    ends = [end for end in (low, high) if end is not None]
    factor, unit = scale_for(max(abs(value), *(abs(end) for end in ends), 1), "ns")
    text = _signed(value / factor)
    if low is not None and high is not None:
        text += f" ({_signed(low / factor)} to {_signed(high / factor)})"
    return f"{text} {unit}"


def _signed(value: float) -> str:
    digits = significant(abs(value)) if abs(value) >= 0.01 else "0"
    return digits if digits == "0" else f"{'−' if value < 0 else '+'}{digits}"


def _verdict(row: Record) -> str:
    return str(row["verdict"]).replace("-", " ")


def _lasts(row: Record) -> str:
    launches = row.get("lasts_launches")
    if launches is None:
        return MISSING
    if not launches:
        return "0"
    more = "> " if row.get("lasts_longer") else ""
    return f"{more}{count(int(launches), 'launch', 'launches')}, {quantity(row.get('lasts_ns'), 'ns')}"
