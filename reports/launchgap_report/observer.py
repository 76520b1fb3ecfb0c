"""What tracing itself costs, and whether the trace agrees with what the host saw."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from .details import own_first, split_case
from .figures import nice_ticks, series_key, tick_text
from .intervals import IntervalRow, Mark, intervals
from .plots import Drawing, Drawn, Group, Key, Table
from .session import Device
from .tables import Record
from .text import MISSING, count, quantity

LEVELS = {"launches": "launches recorded", "kernels": "launches and kernels", "all": "everything"}
WORDS = {"api_ns": "launch call", "roundtrip_ns": "round trip", "per_launch_ns": "burst, each"}


@dataclass
class Check:
    """Whether a device's trace agrees with the flag that its kernel raised."""

    device: Device
    agrees: bool | None
    text: str


def section(drawing: Drawing) -> tuple[Group, Table] | None:
    found = [(d, d.session.details.of("observer", d.id)) for d in drawing.shown]
    found = [(d, rows) for d, rows in found if rows]
    if not found:
        return None
    figures, lines, levels = [], [], set()
    for device, rows in found:
        rows = sorted(rows, key=lambda r: (own_first(r["case"])[0], _rank(WORDS, r["metric"])))
        label = drawing.label(device)
        several = len({r["case"] for r in rows if r["metric"] == rows[0]["metric"]}) > 1
        lines += [_line(label, group, several) for group in _groups(rows).values()]
        measured = [r for r in rows if r.get("effect") is not None and r["unit"] == "ns"]
        if measured:
            levels |= {r["level"] for r in measured}
            figures.append(Drawn(label, _draw(label, measured, drawing.id())))
    keys = [
        Key(series_key(slot, drawing.id()), words) for slot, (level, words) in enumerate(LEVELS.items()) if level in levels
    ]
    heads = ["device", "metric", "median, not traced", *(f"adds: {words}" for words in LEVELS.values())]
    table = Table("What tracing adds", heads, lines, 2)
    return Group("", "", "", figures, keys), table


def _rank(order: dict[str, str], key: str) -> int:
    return list(order).index(key) if key in order else len(order)


def _groups(rows: list[Record]) -> dict[tuple[str, str], list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        groups.setdefault((row["case"], row["metric"]), []).append(row)
    return groups


def _draw(label: str, rows: list[Record], identifier: str) -> Markup:
    ends = ("effect", "effect_lo", "effect_hi")
    values = [v for r in rows for k in ends if (v := r.get(k)) is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    margin = (high - low) * 0.06 or 1.0
    limits = (low - margin, high + margin)
    ticks = [(t, tick_text(t, "ns").replace("-", "−")) for t in nice_ticks(*limits, 6)]
    groups = _groups(rows)
    paths = {split_case(case)[1].get("api", "") for case, _ in groups}
    drawn = []
    for (case, metric), group in groups.items():
        words = WORDS.get(metric, metric)
        if len(paths) > 1 and own_first(case)[0]:
            words = f"{split_case(case)[1].get('api', '')}: {words}"
        group = sorted(group, key=lambda r: _rank(LEVELS, r["level"]))
        drawn.append(IntervalRow(words, [_mark(r) for r in group]))
    text = f"{label}, what tracing adds: " + "; ".join(
        f"{row.label} " + ", ".join(mark.text for mark in row.marks) for row in drawn
    )
    return intervals(drawn, limits, ticks, False, identifier, text)


def _mark(record: Record) -> Mark:
    value = record.get("effect") or 0.0
    slot = _rank(LEVELS, record["level"])
    return Mark(slot, value, record.get("effect_lo"), record.get("effect_hi"), signed(value, "ns"))


def signed(value: float | None, unit: str) -> str:
    """`+1.14 µs`, `−22 ns`."""
    if value is None:
        return MISSING
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{quantity(abs(value), unit)}"


def _line(label: str, group: list[Record], several: bool) -> list[str]:
    first = group[0]
    path = split_case(first["case"])[1].get("api", "")
    by_level = {r["level"]: r for r in group}
    return [
        label,
        first["metric"] + (f", api:{path}" if path and several else ""),
        quantity(first.get("plain"), first["unit"]),
        *(_effect(by_level.get(level)) for level in LEVELS),
    ]


def _effect(record: Record | None) -> str:
    """`+1.14 µs (+1.10 µs to +1.19 µs)`, or why there is none."""
    if record is None:
        return MISSING
    low, value, high = (
        None if (v := record.get(k)) is None else signed(v, record["unit"]) for k in ("effect_lo", "effect", "effect_hi")
    )
    if value is None:
        return "too few runs"
    return value if low is None or high is None else f"{value} ({low} to {high})"


def checks(drawing: Drawing) -> list[Check]:
    """A line per device that was checked."""
    return [
        Check(device, record.flag("agrees"), _check_text(record))
        for device in drawing.devices
        for record in device.session.details.of("flag_check", device.id)
    ]


def _check_text(record: Record) -> str:
    samples, before = record.get("samples"), record.get("before_kernel")
    parts = []
    if before is not None:
        of = "" if samples is None else f"of {count(int(samples), 'launch', 'launches')}, "
        saw = "no flag" if before == 0 else count(int(before), "flag")
        parts.append(f"{of}the host saw {saw} before the kernel began, as the trace has it")
    if (excess := record.get("excess_p50_ns")) is not None:
        text = f"the median flag came {quantity(excess, 'ns')} after that"
        if (limit := record.get("limit_ns")) is not None:
            text += f" (allowed: {quantity(limit, 'ns')}, a flag’s way there and back and 1\u00a0µs)"
        parts.append(text)
    return "; ".join(parts) + "." if parts else ""
