"""Why samples are slow: their causes, and what stays unexplained; and what differs between slow and fast runs."""

from __future__ import annotations

from dataclasses import dataclass

from .plots import Drawing, Table
from .session import TRACE_LEVEL, Device
from .tables import Record
from .text import join_and, percent, quantity, sentence

MOST_CASES = 12


@dataclass
class SlowCauses:
    answers: list[str]
    table: Table | None
    runs: Table | None


def section(drawing: Drawing) -> SlowCauses | None:
    devices = [d for d in drawing.devices if _rows(d)]
    runs = _runs_table(drawing)
    if not devices:
        return SlowCauses([], None, runs) if runs else None
    several = len(devices) > 1
    lines = [line for device in devices for line in _lines(drawing, device, several)]
    heads = [*(["device"] if several else []), "case", "arm", "slow samples", "above the median, in all", "causes"]
    note = (
        f"The {MOST_CASES} cases of each device whose slow samples cost most; slow_causes.csv has all. A cause is given on "
        "evidence of the sample's own time, or of its whole block. Shares are of the time above the median."
    )
    if missing := _not_counted(devices):
        note += f" Nothing is blamed on what the system does not count: {'; '.join(missing)}."
    numeric = len(heads)
    table = Table("Slow samples", heads, lines, numeric, note)
    return SlowCauses([sentence(_answer(drawing, d, several)) for d in devices], table, runs)


def _not_counted(devices: list[Device]) -> list[str]:
    """Each with its reason, once."""
    of = {device.id for device in devices}
    runs = [run for s in {d.session.id: d.session for d in devices}.values() for run in s.details.tables.get("runs", [])]
    return sorted({line for run in runs if run["device_id"] in of for line in run["telemetry_missing"].split("; ") if line})


def _runs_table(drawing: Drawing) -> Table | None:
    """What explains the difference between runs, and how many factors may only seem to."""
    rows = [(d, row) for d in drawing.devices for row in d.session.details.of("run_factors", d.id)]
    certain = [(d, row) for d, row in rows if row["verdict"] != "may-be-chance"]
    chance = len(rows) - len(certain)
    if not certain:
        return None
    several = len({d.id for d, _ in certain}) > 1
    lines = [
        ([drawing.label(d)] if several else [])
        + [row["case"], row["metric"], row["factor"], percent(row.get("variance_share")), row["slow"], row["fast"]]
        for d, row in sorted(certain, key=lambda entry: -(entry[1].get("variance_share") or 0))[:MOST_CASES]
    ]
    heads = [*(["device"] if several else []), "case", "metric", "what differs", "explains", "slowest run", "fastest run"]
    note = f"What differs between runs, by how much of the variance it explains; {chance} more may be chance."
    return Table("Runs", heads, lines, len(heads), note)


def _rows(device: Device) -> list[Record]:
    """Of each case, those of the metric whose slow samples cost most."""
    metrics: dict[tuple[str, str, str], dict[str, list[Record]]] = {}
    for row in device.session.details.of("slow_causes", device.id):
        if TRACE_LEVEL in row["process_config"]:
            continue  # the same cases once more, which show the observer effect alone
        case = (row["case"], row["arm"], row["process_config"])
        metrics.setdefault(case, {}).setdefault(row["metric"], []).append(row)
    return [row for of_case in metrics.values() for row in max(of_case.values(), key=_extra)]


def _extra(rows: list[Record]) -> float:
    return sum(row.get("extra_ns") or 0 for row in rows)


def _by_cause(rows: list[Record]) -> list[tuple[str, float]]:
    """Share of the time above the median, the largest first; what is unexplained last, and always."""
    whole = _extra(rows)
    causes: dict[str, float] = {"unexplained": 0}
    for row in rows:
        causes[row["cause"]] = causes.get(row["cause"], 0) + (row.get("extra_ns") or 0)
    return sorted(
        ((c, ns / whole if whole else 0) for c, ns in causes.items()), key=lambda e: (e[0] == "unexplained", -e[1])
    )


def _causes(rows: list[Record]) -> list[str]:
    return [f"{cause} {percent(share)}" for cause, share in _by_cause(rows)]


def _answer(drawing: Drawing, device: Device, several: bool) -> str:
    begin = f"{drawing.label(device)}: s" if several else "S"
    rows = [row for row in _rows(device) if row["arm"] == "plain"] or _rows(device)
    return f"{begin}low samples take {quantity(_extra(rows), 'ns')} above the medians: {join_and(_causes(rows))}"


def _lines(drawing: Drawing, device: Device, several: bool) -> list[list[str]]:
    cases: dict[tuple[str, str, str], list[Record]] = {}
    for row in _rows(device):
        cases.setdefault((row["case"], row["arm"], row["process_config"]), []).append(row)
    worst = sorted(cases.items(), key=lambda entry: -_extra(entry[1]))[:MOST_CASES]
    return [
        ([drawing.label(device)] if several else [])
        + [case, arm, _count(rows), quantity(_extra(rows), "ns"), join_and(_causes(rows))]
        for (case, arm, _), rows in worst
    ]


def _count(rows: list[Record]) -> str:
    slow = sum(row.get("samples") or 0 for row in rows)
    return f"{slow:.0f} of {rows[0].get('of_samples') or 0:.0f}"
