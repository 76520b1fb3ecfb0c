"""What makes a recorded job's launches slow or uneven: each cause once, with where it shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .session import Device
from .tables import Record
from .text import percent, with_units

TONES = {"act": "warning", "note": "know", "open": "know"}
"""How a box looks, by how much its cause costs"""


@dataclass
class Cause:
    """A cause, as the process shows it that loses most by it."""

    code: str
    severity: str
    tone: str
    sentence: str
    evidence: list[str]
    remedy: str
    unknown: str
    where: str
    others: list[str]
    """The same in other processes, in a sentence each"""


def collect(devices: Iterable[Device]) -> list[Cause]:
    """What has to be acted on first, and of this what costs the largest share."""
    groups: dict[tuple[str, str], list[tuple[str, Record]]] = {}
    for device in devices:
        for record in device.session.details.of("causes", device.id):
            groups.setdefault((device.session.id, record["code"]), []).append((_where(device, record), record))
    for session in {device.session.id: device.session for device in devices}.values():
        for record in session.details.of("causes", ""):
            groups.setdefault((session.id, record["code"]), []).append(("", record))
    found = [_cause(sorted(group, key=lambda entry: _order(entry[1]))) for group in groups.values()]
    return [cause for _, cause in sorted(found, key=lambda entry: entry[0])]


def _order(record: Record) -> tuple[int, float]:
    severities = list(TONES)
    place = severities.index(record["severity"]) if record["severity"] in TONES else len(severities)
    return place, -(record.get("share") or 0)


def _cause(group: list[tuple[str, Record]]) -> tuple[tuple[int, float], Cause]:
    where, first = group[0]
    severity = first["severity"] if first["severity"] in TONES else "note"
    cause = Cause(
        first["code"],
        severity,
        TONES[severity],
        with_units(first["sentence"]),
        [with_units(part) for part in first["evidence"].split("; ") if part],
        with_units(first["remedy"]),
        with_units(first["unknown"]),
        where,
        [f"{place}: {with_units(record['sentence'])}" for place, record in group[1:]],
    )
    return _order(first), cause


def _where(device: Device, record: Record) -> str:
    """The device, and which process where it has several."""
    share = record.get("share")
    costs = [] if share is None else [f"{percent(share)} of the time"]
    replicate = record.get("replicate")
    process = [f"r{replicate:.0f}"] if replicate is not None and len(device.recordings) > 1 else []
    return ", ".join([device.label, *process, *costs])
