"""At which level times vary: within a run, between runs, between devices of a kind."""

from __future__ import annotations

from .details import own_first, split_case
from .figures import log_ticks, series_key
from .intervals import IntervalRow, Mark, intervals
from .plots import Drawing, Drawn, Group, Key, Table
from .session import RECORDED, Device
from .tables import Record
from .text import MISSING, percent, significant

LEVELS = {
    "samples": "within a run",
    "runs": "between runs",
    "devices": "between devices of a kind",
    "launches": "within a step",
    "steps": "between steps",
}
METRICS = {
    ("launch/null", "idle", "api_ns", "plain"): "launch call",
    ("launch/null", "idle", "roundtrip_ns", "plain"): "round trip",
    ("launch/null", "burst", "per_launch_ns", "plain"): "burst, each",
    ("launch/null", "idle", "launch_ns", "traced"): "call to kernel",
    ("recorded/launch", "idle", "api_record_ns", "recorded"): "launch call",
    ("recorded/launch", "idle", "launch_ns", "recorded"): "call to kernel",
    ("recorded/step", "", "step_ns", "recorded"): "step",
}
"""Benchmark, mode or state of the stream, metric and arm of what the page leads with; the words for it in a figure"""
LEAST, MOST = 1e-4, 10.0
"""Ends of the scale at the widest, 0.01 % and 1000 %."""


def section(drawing: Drawing) -> tuple[Group, Table] | None:
    found = [(d, _of_device(d)) for d in drawing.devices]
    found = [(d, metrics) for d, metrics in found if metrics]
    if not found:
        return None
    records = [r for _, metrics in found for row in metrics.values() for r in row.values()]
    limits = _limits(records)
    ticks = [(t, f"{t * 100:g}\u00a0%") for t in log_ticks(*limits, 5)]
    figures, lines = [], []
    shown = {id(device) for device in drawing.shown}
    for device, metrics in found:
        rows = [
            IntervalRow(METRICS[key], [_mark(level, r) for level, r in of_level.items()])
            for key, of_level in metrics.items()
        ]
        text = f"{drawing.label(device)}, coefficients of variation: " + "; ".join(
            f"{METRICS[key]} " + ", ".join(f"{LEVELS[level]} {percent(r.get('cv'))}" for level, r in of_level.items())
            for key, of_level in metrics.items()
        )
        if id(device) not in shown:
            continue
        svg = intervals(rows, limits, ticks, True, drawing.id(), text)
        figures.append(Drawn(drawing.label(device), svg))
        lines += [
            [drawing.label(device), key[2], LEVELS[level], *_numbers(r)]
            for key, of_level in metrics.items()
            for level, r in of_level.items()
        ]
    present = {level for _, metrics in found for row in metrics.values() for level in row}
    keys = [
        Key(series_key(slot, drawing.id()), words) for slot, (level, words) in enumerate(LEVELS.items()) if level in present
    ]
    heads = ["device", "metric", "level", "variation", "95 % from", "to", "of the variance", "steps, runs or devices"]
    table = Table("Variation by level", heads, lines, 3)
    return Group("At which level it varies", "", "", figures, keys), table


def odd_table(drawing: Drawing) -> Table | None:
    """Every device that differs from its kind, and in what."""
    lines = [
        [
            drawing.label(device),
            record["case"],
            record["metric"],
            *(_ratio(record.get(key)) for key in ("ratio", "ratio_lo", "ratio_hi")),
        ]
        for device in drawing.devices
        for record in device.session.details.of("outlier_devices", device.id)
    ]
    if not lines:
        return None
    heads = ["device", "case", "metric", "to the others", "95 % from", "to"]
    return Table("Devices that differ from the others of their kind", heads, lines, 3)


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{significant(value, 3)}×"


def _of_device(device: Device) -> dict[tuple[str, str, str, str], dict[str, Record]]:
    """For each metric that has any, the levels in order."""
    chosen: dict[tuple[str, str, str, str], dict[str, Record]] = {}
    details = device.session.details
    rows = details.of("variation", device.id) + details.of("variation", "")  # and those of its kind
    for record in sorted(rows, key=lambda r: own_first(r["case"])):
        benchmark, params = split_case(record["case"])
        key = (benchmark, params.get("mode") or params.get("stream", ""), record["metric"], record["arm"])
        if (
            key not in METRICS
            or record["process_config"] not in ("launch", RECORDED)
            or record["level"] not in LEVELS
            or record.get("cv") is None
            or record["scope"] != (device.record["device_name"] if record["level"] == "devices" else device.id)
        ):
            continue
        chosen.setdefault(key, {}).setdefault(record["level"], record)
    for of_level in chosen.values():
        if "steps" in of_level:
            of_level.pop("samples", None)  # launches and steps are its parts
    return {key: {level: chosen[key][level] for level in LEVELS if level in chosen[key]} for key in METRICS if key in chosen}


def _limits(records: list[Record]) -> tuple[float, float]:
    values = [v for r in records for k in ("cv", "cv_lo", "cv_hi") if (v := r.get(k)) and v > 0]
    low, high = min(values, default=0.01), max(values, default=0.1)
    high = min(max(high, LEAST * 10), MOST)
    return max(min(low, high / 10), LEAST, high / 1e4) / 1.3, high * 1.3


def _mark(level: str, record: Record) -> Mark:
    value = record.get("cv") or 0.0
    slot = list(LEVELS).index(level)
    text = percent(value) if value > 0 else "0\u00a0%"
    return Mark(slot, value, record.get("cv_lo"), record.get("cv_hi"), text)


def _numbers(record: Record) -> list[str]:
    groups = record.get("groups")
    return [
        *(percent(record.get(key)) for key in ("cv", "cv_lo", "cv_hi", "variance_share")),
        MISSING if groups is None else f"{groups:.0f}",
    ]
