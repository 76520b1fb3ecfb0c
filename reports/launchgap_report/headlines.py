"""The first table: each device's launches in a line, with a verdict in a word."""

from __future__ import annotations

from dataclasses import dataclass, field

from .details import split_case
from .session import Device, Row
from .tables import Record
from .text import MISSING, count, join_and, percent, quantity, sentence, with_units

UNSTABLE = 0.2
"""Largest less smallest median of a run, as a share: then a single run is no measurement."""

_WORDS = {
    "api_ns": "launch calls",
    "roundtrip_ns": "round trips",
    "per_launch_ns": "bursts of launches",
}


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
    shift: str
    verdict: Verdict
    odd: str = ""
    sentence: str = ""


@dataclass
class Headlines:
    heads: list[str]
    lines: list[Line] = field(default_factory=list)


def table(devices: list[Device]) -> Headlines:
    """The numbers of launches; where none was measured, the first ones of what was."""
    found = {id(d): d.session.details.of("headlines", d.id) for d in devices if d.usable}
    known = {r["heading"]: r for records in found.values() for r in records}
    ordered = sorted(known.values(), key=lambda r: r.get("place") or 0)
    # Numbers of one case and metric belong together: its median, and its one in a thousand.
    first = [r for r in ordered if _of(r) == _of(ordered[0])] if ordered else []
    heads = [r["heading"] for r in (first if len(first) > 1 else ordered[:3])]
    return Headlines(heads, [_line(d, heads, found.get(id(d), [])) for d in devices])


def _of(record: Record) -> tuple[str, str]:
    benchmark, params = split_case(record["case"])
    return f"{benchmark} {params.get('mode', '')}", record["metric"]


def _line(device: Device, heads: list[str], records: list[Record]) -> Line:
    if not device.usable:
        reason = sentence(device.record["reason"] or "no reason recorded")
        return Line(device, [], "", Verdict("not usable", reason, "bad"))
    by_heading = {r["heading"]: r for r in records}
    chosen = [by_heading.get(head) for head in heads]
    if not any(chosen):
        return Line(device, [], "", Verdict("not measured", _why_nothing(device), "bad"))
    numbers = [quantity(r.get("value"), r["unit"]) if r else MISSING for r in chosen]
    row = _row_of(device, next(r for r in chosen if r))
    odd, slower = _odd(device)
    verdict = _verdict(device, row)
    if slower and verdict.tone == "ok":
        verdict = Verdict("slower than its kind", "", "warning")
    own = device.session.details.of("sentences", device.id)
    text = with_units(own[0]["sentence"]) if own else ""
    shift = percent(row.get("run_median_range")) if row and (row.get("runs") or 0) > 1 else MISSING
    return Line(device, numbers, shift, verdict, odd, text)


def _row_of(device: Device, record: Record) -> Row | None:
    for row in device.rows:
        if row.usual and (row.case, row.metric) == (record["case"], record["metric"]):
            return row
    return None


def _verdict(device: Device, row: Row | None) -> Verdict:
    tools = {run["measured_under_tool"] for run in device.runs if run["measured_under_tool"]}
    if tools:
        return Verdict("no baseline", f"Measured under {join_and(sorted(tools))}.", "warning")
    if row is None or (row.get("runs") or 0) < 2:
        text = "How far a fresh process shifts the median is not known."
        return Verdict("one run only", text, "warning")
    spread = row.get("run_median_range")
    if spread is None:
        return Verdict("measured", "", "ok")
    if spread > UNSTABLE:
        text = "A single run is no measurement here: compare medians of several."
        return Verdict("unstable", text, "warning")
    bad = [r for r in device.rows if r.arm == "plain" and r.status in ("failed", "invalid")]
    if bad:
        return Verdict("steady, with failures", f"{count(len(bad), 'case')} failed.", "warning")
    return Verdict("steady", "", "ok")


def _odd(device: Device) -> tuple[str, bool]:
    """How the device differs from others of its kind, and whether it is slower."""
    found = [r for r in device.session.details.of("odd_devices", device.id) if r["arm"] == "plain"]
    found = [r for r in found if r.get("ratio")]
    launches = [r for r in found if split_case(r["case"])[0] == "launch/null"]
    shown = (launches or found)[:3]
    if not shown:
        return "", False
    parts, slower = [], False
    for record in shown:
        text, is_slower = _difference(device, record)
        parts.append(text)
        slower |= is_slower
    more = len(found) - len(shown)
    tail = f", and differs in {count(more, 'more case', 'more cases')}" if more else ""
    return f"{'; '.join(parts)}{tail}.", slower


def _difference(device: Device, record: Record) -> tuple[str, bool]:
    """`8 % slower than the others of its kind in round trips (6.0 % to 10 %)`."""
    better = next(
        (
            row.record["direction"]
            for row in device.session.rows
            if row.metric == record["metric"] and row.record["direction"]
        ),
        "lower",
    )
    ratio = record.get("ratio") or 1.0
    slower = (ratio > 1) == (better == "lower")
    word = "slower" if slower else "faster"
    metric = record["metric"]
    where = "in " + _WORDS.get(metric, f"{metric} of {record['case']}")
    ends = sorted(
        (e - 1) * (1 if ratio > 1 else -1) for key in ("ratio_lo", "ratio_hi") if (e := record.get(key)) is not None
    )
    interval = f" ({percent(ends[0])} to {percent(ends[1])})" if len(ends) == 2 else ""
    text = f"{percent(abs(ratio - 1))} {word} than the others of its kind {where}{interval}"
    return text, slower


def _why_nothing(device: Device) -> str:
    own = device.rows
    rows = [r for r in own if r.status != "ok" and r.family == "launch"]
    if rows:
        reason = rows[0].record["reason"]
        return f"null launches {rows[0].status}" + (f": {sentence(reason)}" if reason else ".")
    runs = [r for r in device.runs if r["status"] != "ok"]
    if runs:
        reason = runs[0]["reason"]
        return f"no launch was measured; a run is marked {runs[0]['status']}" + (f": {sentence(reason)}" if reason else ".")
    if any(r.status == "ok" for r in own):
        return "launches were not part of this session."
    return "nothing was measured."
