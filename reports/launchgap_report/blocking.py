"""Which calls that get memory, or give it back, wait for what the device does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, join_and, percent, quantity

# The relations with their headings: where the kernel runs.
RELATIONS = {
    "same_stream": "same stream",
    "other_stream": "other stream",
    "other_thread": "other thread",
    "other_device": "other GPU",
}


@dataclass
class Blocking:
    answers: list[str]
    table: Table


def section(drawing: Drawing) -> Blocking | None:
    rows = [(d, row) for d in drawing.devices for row in d.session.details.of("blocking", d.id)]
    if not rows:
        return None
    several = len({d.id for d, _ in rows}) > 1
    relations = [name for name in RELATIONS if any(row["relation"] == name for _, row in rows)]
    calls: dict[tuple[str, str], dict[str, Record]] = {}
    for device, row in rows:
        calls.setdefault((drawing.label(device), row["operation"]), {})[row["relation"]] = row
    lines = [
        ([label] if several else [])
        + [_words(operation)]
        + [_verdict(found.get(name)) for name in relations]
        + [quantity(_largest(found.values(), name), "ns") for name in ("launch_gap_ns", "quiet_gap_ns")]
        for (label, operation), found in calls.items()
    ]
    heads = [*(["device"] if several else []), "call", *(RELATIONS[name] for name in relations)]
    note = (
        "Each column is of a kernel that runs there: whether the call waits for it, and where in part, how much of what was "
        "left of the kernel the call took. longest gap: the longest time without a launch that another thread saw during "
        "any of these calls; without the call: the same shortly before."
    )
    table = Table("Blocking", [*heads, "longest gap", "without the call"], lines, len(heads), note)
    return Blocking([_answer(drawing, d, several) for d in drawing.devices if d.session.details.of("blocking", d.id)], table)


def _words(operation: str) -> str:
    return operation.replace("_", " ", 1)


def _verdict(row: Record | None) -> str:
    if row is None:
        return MISSING
    share = row.get("blocked_share")
    partial = "in part" if share is None else f"in part, {percent(share)}"
    return {"waits_for_device": "waits", "partial": partial, "no_wait": "no"}.get(row["verdict"], row["verdict"]) or MISSING


def _largest(rows: Iterable[Record], metric: str) -> float | None:
    return max((value for row in rows if (value := row.get(metric)) is not None), default=None)


def _answer(drawing: Drawing, device: Device, several: bool) -> str:
    begin = f"{drawing.label(device)}: " if several else ""
    rows = device.session.details.of("blocking", device.id)
    own = [row for row in rows if row["relation"] != "other_device"]
    others = [row for row in rows if row["relation"] == "other_device"]
    texts = ([_who_waits(own, "the device")] if own else []) + ([_who_waits(others, "another GPU")] if others else [])
    return f"{begin}{'; '.join(texts)}."


def _who_waits(rows: list[Record], what: str) -> str:
    calls = list(dict.fromkeys(_words(row["operation"]) for row in rows if row["verdict"] == "waits_for_device"))
    if not calls:
        return f"no call waits for {what}"
    return f"{join_and(calls)} {'waits' if len(calls) == 1 else 'wait'} for {what}"
