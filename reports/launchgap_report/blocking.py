"""Which calls that get memory, or give it back, wait for what the device does."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .session import Device
from .tables import Record
from .text import MISSING, join_and, percent, quantity

VERDICTS = {"waits_for_device": "waits for the device", "partial": "in part", "no_wait": "no"}


@dataclass
class Blocking:
    answers: list[str]
    table: Table


def section(drawing: Drawing) -> Blocking | None:
    rows = [(d, row) for d in drawing.devices for row in d.session.details.of("blocking", d.id)]
    if not rows:
        return None
    several = len({d.id for d, _ in rows}) > 1
    lines = [
        ([drawing.label(device)] if several else [])
        + [
            row["operation"].replace("_", " ", 1),
            row["relation"].replace("_", " "),
            VERDICTS.get(row["verdict"], row["verdict"]) or MISSING,
            MISSING if (share := row.get("blocked_share")) is None else percent(share),
            f"{row.get('calls') or 0:.0f}",
            quantity(row.get("launch_gap_ns"), "ns"),
            quantity(row.get("quiet_gap_ns"), "ns"),
        ]
        for device, row in rows
    ]
    heads = (["device"] if several else []) + ["call", "kernel on", "does it wait?", "of the kernel", "calls"]
    note = (
        "of the kernel: the call's time, of what was left of a kernel that ran meanwhile; longest gap: the longest time "
        "without a launch that another thread saw during the call; without the call: the same shortly before."
    )
    table = Table("Blocking", [*heads, "longest gap", "without the call"], lines, 4 if several else 3, note)
    return Blocking([_answer(drawing, d, rows, several) for d in drawing.devices if any(of is d for of, _ in rows)], table)


def _answer(drawing: Drawing, device: Device, rows: list[tuple[Device, Record]], several: bool) -> str:
    waiting = [r["operation"].replace("_", " ", 1) for of, r in rows if of is device and r["verdict"] == "waits_for_device"]
    names = list(dict.fromkeys(waiting))
    begin = f"{drawing.label(device)}: " if several else ""
    if not names:
        return f"{begin}no call waits for the device."
    return f"{begin}{join_and(names)} {'waits' if len(names) == 1 else 'wait'} for the device."
