"""What was found, from every source: draws findings.csv, which has the order, the severities and the sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup, escape

from .session import Session
from .tables import Record
from .text import count, percent, with_units

OPEN = 5
"""Findings that stand open, the rest is folded"""


class _Look(NamedTuple):
    tone: str
    one: str
    """What the heading calls one that is folded, and several"""
    several: str


_LOOKS = {
    "prevents": _Look("bad", "more that keeps work from the GPU", "more that keep work from the GPU"),
    "distorts": _Look("warning", "more that distorts results", "more that distort results"),
    "act": _Look("warning", "more to act on", "more to act on"),
    "note": _Look("know", "note", "notes"),
    "open": _Look("know", "question that these runs do not answer", "questions that these runs do not answer"),
    "fine": _Look("know", "that needs no action", "that need no action"),
}
"""By severity; which is graver, the registry says"""

_GROUPED = ("advice", "cause", "fallback", "gate")
"""Sources of which a code is one thing to do; elsewhere a code has many reasons"""


@dataclass
class Finding:
    """A sentence with what stands behind it."""

    severity: str
    tone: str
    code: str
    source: str
    subjects: list[str]
    sentence: Markup
    remedy: Markup
    evidence: list[str]
    effects: list[str]
    unknown: str
    share: str
    cases: str
    others: list[Markup] = field(default_factory=list)
    """What else was found by the same code, a sentence each."""


@dataclass
class Folded:
    heading: str
    findings: list[Finding]


@dataclass
class Section:
    top: list[Finding]
    folded: list[Folded]
    advised: bool
    """Whether there is advice, whose rule for a difference is said."""
    clean: str
    """What the check before measuring came to, where it found nothing."""


def section(sessions: list[Session]) -> Section:
    groups = _grouped(sessions)
    top = [f for f in groups if f.severity in ("prevents", "distorts", "act")][:OPEN]
    shown = {id(f) for f in top}
    rest = [f for f in groups if id(f) not in shown]
    folded = []
    for severity, look in sorted(_LOOKS.items(), key=lambda item: sessions[0].registry.gravity(item[0])):
        of_severity = [f for f in rest if f.severity == severity]
        if of_severity:
            folded.append(Folded(count(len(of_severity), look.one, look.several), of_severity))
    examined = any(isinstance(s.info.get("doctor"), dict) for s in sessions)
    troubled = any(f.source == "doctor" and f.severity in ("prevents", "distorts") for f in groups)
    clean = "The check before measuring found no problem." if examined and not troubled else ""
    return Section(top, folded, any(f.source == "advice" for f in groups), clean)


def _grouped(sessions: list[Session]) -> list[Finding]:
    """The same sentence about several subjects once; of one thing to do the gravest, with the others below it."""
    several = len(sessions) > 1
    same: dict[tuple[str, ...], Finding] = {}
    for session in sessions:
        for record in session.details.tables.get("findings", []):
            found = _finding(record)
            subject = f"{record['subject']}, {session.id}" if several and record["subject"] else record["subject"]
            key = (found.source, found.code, found.severity, str(found.sentence))
            known = same.setdefault(key, found)
            if subject and subject not in known.subjects:
                known.subjects.append(subject)
            known.evidence += [line for line in found.evidence if line not in known.evidence]
    groups: dict[tuple[str, ...], Finding] = {}
    for finding in same.values():
        urgent = finding.severity in ("prevents", "distorts", "act")
        key = (finding.source, finding.code, "" if urgent else finding.severity)
        if finding.source not in _GROUPED:
            key = (*key, str(finding.sentence))
        first = groups.setdefault(key, finding)
        if first is not finding:
            where = f"{', '.join(finding.subjects)}: " if finding.subjects != first.subjects else ""
            first.others.append(Markup("{}{}").format(where, finding.sentence))
    gravity = sessions[0].registry.gravity
    return sorted(groups.values(), key=lambda f: gravity(f.severity)) if several else list(groups.values())


def _finding(record: Record) -> Finding:
    severity = record["severity"] if record["severity"] in _LOOKS else "note"
    share = record.get("share")
    return Finding(
        severity,
        _LOOKS[severity].tone,
        record["code"],
        record["source"],
        [],
        with_commands(record["sentence"]),
        with_commands(record["remedy"]),
        _lines(record["evidence"]),
        _lines(record["effects"]),
        with_units(record["unknown"]),
        "" if share is None else percent(share),
        record["cases"],
    )


def _lines(text: str) -> list[str]:
    return [with_units(part) for part in text.split("; ") if part]


def with_commands(text: str) -> Markup:
    """What stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(with_units(text)))))
