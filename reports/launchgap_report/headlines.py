"""Each device in one sentence, and what that means for the reader."""

from __future__ import annotations

from dataclasses import dataclass

from .details import is_idle_null, split_case
from .findings import own_path
from .session import Device, Row
from .tables import Record
from .text import count, join_and, percent, quantity, sentence, with_units

UNSTABLE = 0.2
"""Largest less smallest median of a run, as a share: then a single run is no measurement."""

_WORDS = {
    "api_ns": "launch calls",
    "roundtrip_ns": "round trips",
    "per_launch_ns": "bursts of launches",
}


@dataclass
class Headline:
    device: Device
    text: str
    advice: str
    tone: str  # ok, warning or bad
    odd: str = ""
    slower: bool = False


def headline(device: Device) -> Headline:
    if not device.usable:
        reason = sentence(device.record["reason"] or "no reason recorded")
        return Headline(device, f"not usable, nothing was measured: {reason}", "", "bad")
    row = _launch_row(device, "api_ns") or _launch_row(device, "roundtrip_ns")
    own = device.session.details.of("sentences", device.id)
    text = own[0]["sentence"] if own else ""
    if not text:
        if row is None:
            return Headline(device, _why_nothing(device), "", "bad")
        what = "A launch call" if row.metric == "api_ns" else "A round trip"
        text = f"{what} takes {quantity(row.get('p50'), row.unit)} (median)."
    advice, tone = ("", "ok") if row is None else _advice(device, row)
    odd, slower = _odd(device)
    tone = "warning" if slower else tone
    return Headline(device, with_units(text), advice, tone, odd, slower)


def _launch_row(device: Device, metric: str) -> Row | None:
    for row in device.session.rows:
        if (
            row.device is device
            and row.usual
            and is_idle_null(row.case)
            and row.metric == metric
            and row.get("p50") is not None
            and own_path(row.params).get("api", "own") == "own"
        ):
            return row
    return None


def _advice(device: Device, row: Row) -> tuple[str, str]:
    tools = {
        run["measured_under_tool"]
        for run in device.session.runs
        if run["device_id"] == device.id and run["measured_under_tool"]
    }
    if tools:
        return f"Measured under {join_and(sorted(tools))}: no baseline.", "warning"
    if (row.get("runs") or 0) < 2:
        text = "One run only: how far a fresh process shifts the median is not known."
        return text, "warning"
    spread = row.get("run_median_range")
    if spread is None:
        return "", "ok"
    if spread > UNSTABLE:
        text = (
            "Unstable between runs: a single run is no measurement here. "
            "Compare medians of several."
        )
        return text, "warning"
    bad = any(
        r.device is device and r.arm == "plain" and r.status in ("failed", "invalid")
        for r in device.session.rows
    )
    advice = f"A difference below {percent(spread)} between two single runs says nothing."
    return advice, "warning" if bad else "ok"


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
        (e - 1) * (1 if ratio > 1 else -1)
        for key in ("ratio_lo", "ratio_hi")
        if (e := record.get(key)) is not None
    )
    interval = f" ({percent(ends[0])} to {percent(ends[1])})" if len(ends) == 2 else ""
    text = f"{percent(abs(ratio - 1))} {word} than the others of its kind {where}{interval}"
    return text, slower


def _why_nothing(device: Device) -> str:
    own = [r for r in device.session.rows if r.device is device]
    rows = [r for r in own if r.status != "ok" and r.family == "launch"]
    if rows:
        reason = rows[0].record["reason"]
        return f"null launches {rows[0].status}" + (f": {sentence(reason)}" if reason else ".")
    runs = [r for r in device.session.runs if r["device_id"] == device.id and r["status"] != "ok"]
    if runs:
        reason = runs[0]["reason"]
        return f"no launch was measured; a run is marked {runs[0]['status']}" + (
            f": {sentence(reason)}" if reason else "."
        )
    if any(r.status == "ok" for r in own):
        return "launches were not part of this session."
    return "nothing was measured."
