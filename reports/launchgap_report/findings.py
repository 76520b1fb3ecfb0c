"""What the reader must know before any number: what is missing, and why.

Equal reasons are one finding, so that a library missing on eight devices is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import traces
from .session import Device, Row, Session
from .text import count

_RANK = {
    "unusable": 0,
    "failed": 1,
    "invalid": 2,
    "incomplete": 3,
    "stopped": 4,
    "error": 5,
    "warning": 6,
    "skipped": 7,
    "unsupported": 8,
    "info": 9,
}


@dataclass
class Finding:
    """One reason, and everything that it applies to."""

    kind: str
    reason: str
    what: str
    details: list[str] = field(default_factory=list)
    lacking_on_host: bool = False  # unsupported, and on no GPU: of little interest, and often many

    @property
    def rank(self) -> int:
        return _RANK.get(self.kind, 10)


def own_path(params: dict[str, str]) -> dict[str, str]:
    """Names a device's own launch path alike on every backend, so that cases can meet.

    A host device calls it `queue`, a CUDA device `driver`.
    """
    if params.get("api") in ("queue", "driver"):
        return {**params, "api": "own"}
    return params


def collect(sessions: list[Session]) -> list[Finding]:
    """All findings, the gravest first."""
    findings: list[Finding] = []
    for session in sessions:
        findings += _of_state(session, len(sessions) > 1)
    findings += _of_devices([d for s in sessions for d in s.devices])
    findings += _of_runs(sessions)
    findings += _of_cases([r for s in sessions for r in s.rows if not _in_a_box(r)])
    for session in sessions:
        for note in session.items("notes"):
            if text := str(note.get("text") or ""):
                findings.append(Finding(_severity(note), text, ""))
    return sorted(findings, key=lambda f: f.rank)


def _in_a_box(row: Row) -> bool:
    """Whether a box says already why this traced case has no result."""
    if row.status == "ok" or row.arm != "traced":
        return False
    state = traces.state_in(row.record["reason"])
    return any(r["state"] == state for r in row.device.session.details.tables.get("traces", []))


def _severity(note: dict) -> str:
    severity = note.get("severity")
    return severity if severity in ("error", "warning") else "info"


def _of_state(session: Session, named: bool) -> list[Finding]:
    prefix = f"Session {session.id}: " if named else ""
    texts = {
        "stopped": "it was stopped early. What had been measured is shown.",
        "running": "it had not ended when this page was made: it still ran, or was killed. What had been measured is shown.",
    }
    text = texts.get(session.string("state"))
    if text is None:
        return []
    return [Finding("incomplete", prefix + text if prefix else text[0].upper() + text[1:], "the session")]


def _of_devices(devices: list[Device]) -> list[Finding]:
    groups: dict[str, list[Device]] = {}
    for device in devices:
        if not device.usable:
            groups.setdefault(device.record["reason"] or "no reason recorded", []).append(device)
    return [
        Finding("unusable", reason, count(len(group), "device"), [d.label for d in group])
        for reason, group in groups.items()
    ]


def _of_runs(sessions: list[Session]) -> list[Finding]:
    groups: dict[tuple[str, str], list[str]] = {}
    for session in sessions:
        labels = {d.id: d.label for d in session.devices}
        boxed = traces.covered(session)
        for run in session.runs:
            replicate = run.get("replicate")
            key = (run["device_id"], run["setup"], None if replicate is None else int(replicate))
            if run["arm"] == "traced" and key in boxed and run["reason"] == "a case failed":
                continue
            if run["status"] in ("failed", "stopped", "incomplete"):
                where = labels.get(run["device_id"]) or run["device_name"] or run["device_id"]
                named = "" if replicate is None else f", r{replicate:.0f}"
                reason = run["reason"] or "no reason recorded"
                groups.setdefault((run["status"], reason), []).append(f"{where}{named}, {run['setup']}, {run['arm']}")
    return [Finding(status, reason, count(len(details), "run"), details) for (status, reason), details in groups.items()]


def _of_cases(rows: list[Row]) -> list[Finding]:
    groups: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        if row.status != "ok":
            reason = row.record["reason"] or "no reason recorded"
            cases = groups.setdefault((row.status, reason), {})
            cases.setdefault((row.case, row.setup), []).append(row)
    findings = []
    for (status, reason), cases in groups.items():
        devices = {id(r.device): r.device.label for group in cases.values() for r in group}
        # Where one device is meant it stands in the heading, not behind each case.
        single = len(devices) == 1
        details = []
        for (case, setup), group in cases.items():
            labels = list(dict.fromkeys(r.device.label for r in group))
            family = case.partition("/")[0]
            shown = case if setup in ("", family) else f"{case} [{setup}]"
            details.append(shown if single else f"{shown}: {', '.join(labels)}")
        where = next(iter(devices.values())) if single else count(len(devices), "device")
        what = f"{count(len(cases), 'case')} on {where}"
        on_host = all(r.device.is_host for group in cases.values() for r in group)
        lacking = status == "unsupported" and on_host
        findings.append(Finding(status, reason, what, details, lacking))
    return findings
