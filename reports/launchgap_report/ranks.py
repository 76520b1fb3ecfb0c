"""The ranks of a recorded job beside each other: who comes last, what makes it late, and what that costs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from .plots import Table
from .recorded import Cell
from .session import Session
from .tables import Record
from .text import MISSING, count, percent, quantity, shorten, with_units

CODES = (
    "persistent-straggler",
    "rotating-straggler",
    "slow-rank",
    "late-to-collectives",
    "ranks-not-compared",
    "ranks-missing",
)
"""Findings about ranks; their sentences stand before the tables"""
PARTS = {
    "kernels": "kernels",
    "copies": "copies",
    "input": "input",
    "program": "program",
    "launches": "launches",
    "waits": "waits",
    "allocations": "allocations",
    "calls": "other calls",
    "queued": "queued",
    "unknown": "not known",
}
"""What a rank can be later by, with the head of its column"""
REASONS = PARTS | {"host": "host, several parts"}
UNITS = {"steps": ("step", "the steps that all ranks have"), "collectives": ("collective", "all collectives")}


LEAST_SHOWN = 0.001
"""Shares of what a job would gain that are shown"""


@dataclass
class Line:
    """A rank, and how late it is."""

    rank: str
    cells: list[Cell]


@dataclass
class Comparison:
    """The ranks by what they are matched by."""

    heading: str
    lines: list[Line]
    parts: Table | None
    cost: str


@dataclass
class Section:
    sentences: list[str]
    shown: list[Comparison] = field(default_factory=list)
    kinds: list[Comparison] = field(default_factory=list)
    """By one kernel's name each"""
    costs: bool = False
    """Whether some tell what a job would take without its differences"""


def section(sessions: list[Session]) -> Section | None:
    found = Section([])
    for session in sessions:
        of = f"{session.id}: " if len(sessions) > 1 else ""
        findings = session.details.tables.get("findings", [])
        found.sentences += [of + with_units(row["sentence"]) for row in findings if row["code"] in CODES]
        rows = session.details.tables.get("ranks", [])
        for compared, group in itertools.groupby(rows, key=lambda row: row["collective"]):
            comparison = _comparison(compared, list(group), of)
            (found.shown if compared in UNITS else found.kinds).append(comparison)
            found.costs = found.costs or bool(comparison.cost)
    return found if found.sentences or found.shown else None


def _comparison(compared: str, rows: list[Record], of: str) -> Comparison:
    one, what = UNITS.get(compared, ("collective", compared))
    matched = count(int(rows[0].get("matched") or 0), one)
    took, ideal = rows[0].get("took_ns"), rows[0].get("ideal_ns")
    cost = ""
    if took and ideal:
        times = f"{took / ideal:.3g} times as long"
        cost = f"{quantity(took, 'ns')}; if each rank took the median, {quantity(ideal, 'ns')}: {times}"
    heading = f"{of}By {shorten(what.partition('(')[0], 80)}: {matched}"
    return Comparison(heading, [_line(row, len(rows)) for row in rows], _parts(rows), cost)


def _line(row: Record, ranks: int) -> Line:
    times, matched = row.get("times_last") or 0, row.get("matched") or 0
    often = times * ranks > matched  # than where all ranks are alike
    late, most = row.get("late_ns"), row.get("most_late_ns")
    took, without = row.get("took_ns"), row.get("without_ns")
    less = 1 - without / took if took and without is not None else 0
    share = row.get("reason_share")
    reason = REASONS.get(row["reason"], row["reason"])
    return Line(
        row["rank"],
        [
            Cell(f"{times:.0f}", ["may be chance"] if often and not row.flag("beyond_chance") else []),
            Cell(quantity(late, "ns"), [f"at most {quantity(most, 'ns')}"] if most else []),
            Cell(quantity(row.get("waiting_ns"), "ns")),
            Cell(reason or MISSING, [f"{percent(share)} of it"] if share is not None else []),
            Cell(quantity(without, "ns"), [f"{percent(less)} less"] if less >= LEAST_SHOWN else []),
        ],
    )


def _parts(rows: list[Record]) -> Table | None:
    """What the ranks are later by that are late."""
    late = [row for row in rows if row["reason"]]
    shown = [part for part in PARTS if any(abs(row.get(f"longer_{part}_ns") or 0) >= 0.5 for row in late)]
    if not late or not shown:
        return None
    lines = [
        [row["rank"], quantity(row.get("longer_ns"), "ns"), *(_signed(row.get(f"longer_{part}_ns")) for part in shown)]
        for row in late
    ]
    return Table("What makes it late", ["rank", "later by", *(PARTS[part] for part in shown)], lines, 1)


def _signed(nanoseconds: float | None) -> str:
    return quantity(nanoseconds, "ns").replace("-", "−")
