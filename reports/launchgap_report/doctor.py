"""The section of what the doctor found before measuring, and of what falling back to the CPU costs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from .plots import Drawing, Table
from .session import Session
from .text import quantity

_TONES = {"prevents": "bad", "distorts": "warn", "note": "note"}


@dataclass
class Finding:
    tone: str
    severity: str
    sentence: Markup
    remedy: Markup
    code: str
    evidence: list[str] = field(default_factory=list)


@dataclass
class Examination:
    """Of one session."""

    session: Session
    grave: list[Finding]
    notes: list[Finding]


@dataclass
class Section:
    examinations: list[Examination]
    sentences: list[str]
    costs: Table | None


def section(drawing: Drawing, sessions: list[Session]) -> Section | None:
    """Nothing where no session was examined and none has the host and a GPU on the same work."""
    examinations = [e for s in sessions if (e := _examination(s)) is not None]
    sentences = [row["sentence"] for s in sessions for row in s.details.tables.get("fallback_sentences", [])]
    costs = _costs(drawing)
    if not examinations and not costs:
        return None
    return Section(examinations, sentences, costs)


def _examination(session: Session) -> Examination | None:
    doctor = session.info.get("doctor")
    if not isinstance(doctor, dict) or not isinstance(doctor.get("findings"), list):
        return None
    found = [_finding(f) for f in doctor["findings"] if isinstance(f, dict)]
    return Examination(
        session,
        [f for f in found if f.severity != "note"],
        [f for f in found if f.severity == "note"],
    )


def _finding(record: dict[str, Any]) -> Finding:
    severity = str(record.get("severity", "note"))
    lines = [*_lines(record.get("evidence")), *_lines(record.get("symptoms"))]
    subject = str(record.get("subject", ""))
    if subject not in ("", "machine"):
        lines.insert(0, subject)
    return Finding(
        _TONES.get(severity, "note"),
        severity,
        _with_commands(record.get("sentence", "")),
        _with_commands(record.get("remedy", "")),
        str(record.get("code", "")),
        lines,
    )


def _with_commands(text: Any) -> Markup:
    """What stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(str(text)))))


def _lines(value: Any) -> list[str]:
    return [str(line) for line in value if line] if isinstance(value, list) else []


def _costs(drawing: Drawing) -> Table | None:
    rows = []
    for device in drawing.devices:
        for row in device.session.details.of("fallback", device.id):
            gpu, host, ratio = (row.get(k) for k in ("gpu_ns", "host_ns", "ratio"))
            if gpu is None or host is None or ratio is None:
                continue
            times = f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
            rows.append(
                [
                    row["case"],
                    drawing.label(device),
                    quantity(gpu, "ns"),
                    quantity(host, "ns"),
                    times,
                ]
            )
    if not rows:
        return None
    heads = ["case", "device", "there", "on the CPU", "times as long"]
    return Table("What falling back to the CPU costs", heads, rows, 2)
