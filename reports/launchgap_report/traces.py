"""Boxes about traced runs that say nothing, and about runs that something else disturbed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .session import RECORDED, Session
from .tables import Record
from .text import count

_STATE = re.compile(r"(?:unavailable|degraded|invalid):[a-z_]+(?:\([^)]*\))?")

_HEADINGS = {
    "unavailable": "Not traced",
    "degraded": "Not traced",
    "invalid": "Trace not to be trusted",
}


@dataclass
class Box:
    """One state of tracing, or one disturbance, with everything that it befell."""

    tone: str  # bad or warning
    heading: str
    meaning: str
    advice: str
    details: list[str] = field(default_factory=list)
    words: str = ""
    """What was recorded, where it is the same everywhere."""


def state_in(reason: str) -> str:
    """The state of tracing that a case's reason names, or an empty string."""
    match = _STATE.search(reason)
    return match.group(0) if match else ""


def boxes(sessions: list[Session]) -> list[Box]:
    """The gravest first."""
    found = [
        *_states(sessions),
        *_doubts(sessions),
        *_restless(sessions),
        *_tools(sessions),
        *_company(sessions),
    ]
    return sorted(found, key=lambda box: box.tone != "bad")


def covered(session: Session) -> set[tuple[str, str, int | None]]:
    """Device, setup and replicate of each traced run that a box speaks of."""
    return {
        (record["device_id"], record["setup"], _replicate(record))
        for record in session.details.tables.get("traces", [])
        if _is_bad(record["state"])
    }


def _is_bad(state: str) -> bool:
    return state not in ("", "ok", "off", RECORDED)


def _replicate(record: Record) -> int | None:
    value = record.get("replicate")
    return None if value is None else int(value)


def _states(sessions: list[Session]) -> list[Box]:
    known = sessions[0].registry.trace_states
    runs: dict[str, set[tuple]] = {}
    cases: dict[str, int] = {}
    places: dict[str, dict[tuple, list[int]]] = {}
    for session in sessions:
        labels = {d.id: d.label for d in session.devices}
        for record in session.details.tables.get("traces", []):
            state = record["state"]
            if not _is_bad(state):
                continue
            device, setup, case = record["device_id"], record["setup"], record["case"]
            replicate = _replicate(record)
            runs.setdefault(state, set()).add((session.id, device, setup, replicate))
            cases[state] = cases.get(state, 0) + bool(case)
            reason = record["reason"].removeprefix(f"{state}: ")
            place = (labels.get(device) or device, setup, case, reason)
            found = places.setdefault(state, {}).setdefault(place, [])
            if replicate is not None:
                found.append(replicate)
        # Found out when the session was planned: then no run says it.
        state = session.string("tracing", "state")
        gpus = any(not d.is_host for d in session.devices)
        if gpus and _is_bad(state) and state not in places:
            place = ("the session", "", "", session.string("tracing", "reason"))
            places.setdefault(state, {})[place] = []
    result = []
    for state, found in places.items():
        kind = state.partition(":")[0]
        meaning, advice = known.get(state.partition("(")[0], ("", ""))
        of = count(len(runs.get(state, ())), "run") if state in runs else "no run was traced"
        if cases.get(state):
            of = f"{count(cases[state], 'case')} in {of}"
        reasons = {place[3] for place in found}
        words = reasons.pop() if len(reasons) == 1 else ""
        lines = [_line((*place[:3], "" if words else place[3]), replicates) for place, replicates in sorted(found.items())]
        heading = f"{_HEADINGS.get(kind, 'Tracing')}: {state}, {of}"
        tone = "bad" if kind == "invalid" else "warning"
        result.append(Box(tone, heading, meaning, advice, lines, words))
    return result


def _doubts(sessions: list[Session]) -> list[Box]:
    """Cases whose traces have more impossible records than usual, and fewer than make them invalid."""
    places: dict[tuple[str, str, str, str], list[int]] = {}
    for session in sessions:
        labels = {d.id: d.label for d in session.devices}
        for record in session.details.tables.get("traces", []):
            if not record.flag("doubtful"):
                continue
            label = labels.get(record["device_id"]) or record["device_id"]
            place = (label, record["setup"], record["case"], record["faults"])
            replicate = _replicate(record)
            places.setdefault(place, []).extend(() if replicate is None else (replicate,))
    if not places:
        return []
    cases = count(len({place[:3] for place in places}), "case")
    return [
        Box(
            "warning",
            f"Doubtful traces: {cases} with impossible records",
            "More than 1 in 1,000 of their records cannot be, and fewer than 1 in 100. The samples "
            "concerned lack the traced metrics; those of the host’s clock are not concerned.",
            "Take their traced metrics as an indication, and compare them with another run.",
            [_line(place, replicates) for place, replicates in sorted(places.items())],
        )
    ]


def _restless(sessions: list[Session]) -> list[Box]:
    restless = [run for steady, runs in _grouped(sessions, "steady").items() if steady == "false" for run in runs]
    if not restless:
        return []
    return [
        Box(
            "warning",
            f"Not steady: {count(len(restless), 'run')}",
            "After 2 s of launches, call times or clocks still moved by more than a few percent from "
            "round to round, and measuring began all the same.",
            "Look for what else runs on the machine, and for clocks that do not settle "
            "(the telemetry below); then run again.",
            _places(restless),
        )
    ]


def _line(place: tuple[str, str, str, str], replicates: list[int]) -> str:
    device, setup, case, reason = place
    which = " ".join(f"r{r}" for r in sorted(set(replicates)))
    where = ", ".join(t for t in (device, setup, case, which) if t)
    return f"{where}: {reason}" if reason else where


def _grouped(sessions: list[Session], column: str) -> dict[str, list[tuple[str, Record]]]:
    """Runs of which `column` says something, each with words for its device, arm and setup."""
    groups: dict[str, list[tuple[str, Record]]] = {}
    for session in sessions:
        labels = {d.id: d.label for d in session.devices}
        for run in session.runs:
            if run[column] not in ("", "0"):
                device = labels.get(run["device_id"]) or run["device_name"]
                place = ", ".join(t for t in (device, run["arm"], run["setup"]) if t)
                groups.setdefault(run[column], []).append((place, run))
    return groups


def _places(runs: list[tuple[str, Record]]) -> list[str]:
    places: dict[str, set[int]] = {}
    for place, run in runs:
        replicate = _replicate(run)
        places.setdefault(place, set()).update(() if replicate is None else (replicate,))
    return [
        f"{place}: {' '.join(f'r{r}' for r in sorted(found))}" if found else place for place, found in sorted(places.items())
    ]


def _tools(sessions: list[Session]) -> list[Box]:
    return [
        Box(
            "warning",
            f"Measured under {tool}: {count(len(runs), 'run')}",
            "A profiler or debugger changes what it watches, plain runs too.",
            "Take none of this as a baseline; run again without the tool.",
            _places(runs),
        )
        for tool, runs in _grouped(sessions, "measured_under_tool").items()
    ]


def _company(sessions: list[Session]) -> list[Box]:
    runs = [r for group in _grouped(sessions, "other_processes").values() for r in group]
    most = max((run.get("other_processes") or 0 for _, run in runs), default=0)
    if most <= 0:
        return []
    others = count(int(most), "other process", "other processes")
    return [
        Box(
            "warning",
            f"Not alone on the GPU: {count(len(runs), 'run')}, with up to {others}",
            "Launches then wait for others’ work, so times are longer and vary more.",
            "Stop the others, or ask the scheduler for the GPU alone, and run again.",
            _places(runs),
        )
    ]
