"""The first table: each device's launches in a line, with the verdict that answers.csv has."""

from __future__ import annotations

from dataclasses import dataclass, field

from .details import split_case
from .session import Device
from .tables import Record
from .text import MISSING, percent, quantity, sentence, with_units


@dataclass
class Verdict:
    word: str
    note: str
    tone: str
    """ok, warning or bad"""


@dataclass
class Line:
    """One device; `numbers` stand under the heads of the table."""

    device: Device
    numbers: list[str]
    verdict: Verdict
    odd: str = ""
    sentence: str = ""


@dataclass
class Headlines:
    heads: list[str]
    lines: list[Line] = field(default_factory=list)


VARIATION = ("within_run_cv", "between_run_cv")


def table(devices: list[Device]) -> Headlines:
    """The numbers of launches; where none was measured, the first ones of what was."""
    found = {id(d): d.session.details.of("headlines", d.id) for d in devices if d.usable}
    known = {r["heading"]: r for records in found.values() for r in records}
    ordered = sorted(known.values(), key=lambda r: r.get("place") or 0)
    # Numbers of one case and metric belong together: its median, and its p99.9.
    first = [r for r in ordered if _of(r) == _of(ordered[0])] if ordered else []
    chosen = [r["heading"] for r in (first if len(first) > 1 else ordered[:3])]
    heads = [*chosen, "varies within a run", "between runs"] if chosen else []
    return Headlines(heads, [_line(d, chosen, found.get(id(d), [])) for d in devices])


def _of(record: Record) -> tuple[str, str]:
    benchmark, params = split_case(record["case"])
    return f"{benchmark} {params.get('mode', '')}", record["metric"]


def _line(device: Device, heads: list[str], records: list[Record]) -> Line:
    answers = device.session.details.of("answers", device.id)
    if not answers:
        return Line(device, [], Verdict("not measured", "", "bad"))
    answer = answers[0]
    verdict = Verdict(answer["verdict"], with_units(sentence(answer["note"])) if answer["note"] else "", answer["tone"])
    by_heading = {r["heading"]: r for r in records}
    chosen = [by_heading.get(head) for head in heads]
    if not any(chosen):
        return Line(device, [], verdict)
    numbers = [quantity(r.get("value"), r["unit"]) if r else MISSING for r in chosen]
    numbers += [percent(answer.get(key)) for key in VARIATION]
    return Line(device, numbers, verdict, with_units(answer["kind"]), with_units(answer["sentence"]))
