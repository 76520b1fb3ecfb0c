"""What recording a program adds to it, as `launchgap record --cost` measured it."""

from __future__ import annotations

from .session import Session
from .tables import Record
from .text import count, quantity


def cost_sentences(session: Session) -> list[str]:
    """Of the level that was recorded first, the others after it."""
    rows = session.details.tables.get("recording_costs", [])
    texts = []
    for row in rows:
        call, start = (_added(row, "call", "ns", 1), _added(row, "wall", "s", 1e9))
        what = f"{call} to each recorded call and {start} to a start" if call else f"{start} to a start"
        rounds, plain = count(int(row.get("rounds") or 0), "round"), quantity((row.get("plain_wall_s") or 0) * 1e9, "ns")
        texts.append(f"Recording {row['level']} adds {what} of {plain} ({rounds}).")
    if not rows and any(p["recorder"] == "launchgap" for device in session.devices for p in device.recordings):
        texts.append("What recording itself added was not measured: launchgap record --cost does.")
    return texts


def _added(row: Record, what: str, unit: str, factor: float) -> str:
    """The median of differences, with its interval where there is one."""
    value, low, high = (row.get(f"{what}_{part}{unit}") for part in ("", "low_", "high_"))
    if value is None:
        return ""
    text = quantity(value * factor, "ns")
    if low is None or high is None:
        return text
    return f"{text} ({quantity(low * factor, 'ns')} to {quantity(high * factor, 'ns')})"
