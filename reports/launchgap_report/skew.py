"""Devices that do the same step at once: who keeps the others waiting."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .tables import Record
from .text import MISSING, count, percent, quantity, significant

WORDS = {
    "one": "one thread launches on all in turn",
    "each": "every device has a thread",
}
SUMS = {"nccl": ", and NCCL sums a number of each"}


@dataclass
class Skew:
    valid: bool
    tables: list[tuple[str, Table]]
    """Each below what was done"""


def section(drawing: Drawing) -> Skew | None:
    rows = [(d, r) for d in drawing.devices for r in d.session.details.of("skew", d.id)]
    if not rows:
        return None
    cases: dict[tuple[str, str], list[Record]] = {}
    for device, row in rows:
        cases.setdefault((device.id, row["case"]), []).append(row)
    labels = {d.id: drawing.label(d) for d in drawing.devices}
    return Skew(
        any(r.flag("skew_valid") for _, r in rows),
        [(_heading(case, members), _table(members, labels)) for (_, case), members in cases.items()],
    )


def _heading(case: str, members: list[Record]) -> str:
    axes = dict(part.split(":", 1) for part in case.split("/") if ":" in part)
    what = "CPU" if members[0]["member"].startswith("cpu") else "device"
    done = WORDS.get(axes.get("threads", ""), "") + SUMS.get(axes.get("collective", ""), "")
    return f"{count(len(members), what)}, {axes.get('work', '')}: {done}"


def _table(members: list[Record], labels: dict[str, str]) -> Table:
    sums = any(m.get("waits_ns") is not None for m in members)
    lines = [
        [
            _label(m["member"], labels),
            f"{m.get('last') or 0:,.0f} of {m.get('steps') or 0:,.0f}",
            quantity(m.get("host_ns"), "ns"),
            quantity(m.get("work_ns"), "ns"),
            _signed(m.get("late_ns")),
            *([quantity(m.get("waits_ns"), "ns")] if sums else []),
            MISSING if m.get("together") is None else f"{significant(m.get('together') or 0)}×",
            MISSING if m.get("relative_score") is None else f"{m.get('relative_score') or 0:.2f}",
            f"late: {m['cause']}" if m.flag("late") else "",
        ]
        for m in members
    ]
    first = members[0]
    unseen = first.get("uncertainty_ns")
    note = f"No lateness below {quantity(unseen, 'ns')} is told: so much of a step is not seen." if unseen else ""
    if first["lateness"] == "at-times" and first.flag("skew_valid"):
        note = f"{note} In {percent(first.get('late_share'))} of the steps somebody is late ({first['cause']})."
    waits = ["waits for the last"] if sums else []
    heads = ["", "was the last", "host", "work", "later than the others", *waits, "beside them", "score", ""]
    return Table("Who keeps the others waiting", heads, lines, 1, note.strip())


def _label(member: str, labels: dict[str, str]) -> str:
    if member.startswith("cpu"):
        return f"CPU {member[3:]}"
    uuid, _, stream = member.partition(" stream ")
    return labels.get(uuid, uuid) + (f", stream {stream}" if stream else "")


def _signed(value: float | None) -> str:
    if value is None:
        return MISSING
    return quantity(value, "ns") if value >= 0 else f"−{quantity(-value, 'ns')}"
