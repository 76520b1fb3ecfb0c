"""The generation gap: devices of several sessions beside each other.

Cases meet by what they are, never by position: arm, setup, case and metric must be equal, where a
device's own launch path counts as one and the same (details.own_path). A simulated device is
never put in relation to a real one.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from . import generations as gen
from .details import own_path
from .session import TRACE_LEVEL, Device, Row, Session
from .text import clean, count, join_and, quantity, significant

CaseKey = tuple[str, str, str, tuple[tuple[str, str], ...], str]
"""arm, setup, benchmark, parameters, metric"""


@dataclass
class Column:
    """One device of the comparison."""

    device: Device
    title: str
    launched: str
    launched_known: bool
    slot: int
    is_reference: bool = False


@dataclass
class Cell:
    """What one device did in one case, against the reference."""

    row: Row | None
    value: str
    raw: str
    status: str
    reason: str
    verdict: str = ""
    tone: str = ""  # better, worse, same or empty
    speed: float | None = None  # above 1 is better than the reference
    speed_low: float | None = None
    speed_high: float | None = None


@dataclass
class Line:
    """One comparable case and metric, with a cell per column."""

    key: CaseKey
    family: str
    case: str
    metric: str
    unit: str
    direction: str
    cells: list[Cell]


@dataclass
class Digest:
    """A family in one number per device: the median ratio, with its range."""

    family: str
    metric: str
    cells: list[str]
    tells: float = 0
    """How far the devices are apart: the largest logarithm of a ratio"""


@dataclass
class Comparison:
    columns: list[Column]
    reference: Column
    families: dict[str, list[Line]]
    digests: list[Digest]
    warnings: list[str]
    answer: str
    """What the newest GPU gains in work and in launches; empty where one of them was not measured"""
    digested: list[Column]
    """The columns of the digests: without those of which none has a ratio"""
    estimated: list[str] = field(default_factory=list)


def case_key(row: Row) -> CaseKey:
    params = tuple(own_path(row.params).items())
    return (row.arm, row.setup, row.record["benchmark"], params, row.metric)


def case_text(key: CaseKey) -> str:
    """`launch/null/api:own/mode:idle`, with the setup and the arm where they are not the usual."""
    arm, setup, benchmark, params, _ = key
    text = "/".join([benchmark, *(f"{k}:{v}" for k, v in params)])
    extra = [
        e
        for e in (
            setup if setup != benchmark.partition("/")[0] else "",
            arm if arm != "plain" else "",
        )
        if e
    ]
    return f"{text} [{', '.join(extra)}]" if extra else text


def generations(devices: list[Device]) -> int:
    """How many generations of GPUs, by compute capability, have measured something."""
    measured = [d for d in devices if d.usable and not d.is_host and d.rows]
    return len({d.record["compute_capability"] for d in measured if d.record["compute_capability"]})


def order(devices: list[Device], table: list[gen.Generation]) -> list[Device]:
    return sorted(devices, key=lambda d: (gen.sort_key(d, table), d.order))


def compare(sessions: list[Session], table: list[gen.Generation]) -> Comparison | None:
    """None where there is no device to compare."""
    devices = order([d for s in sessions for d in s.devices if d.usable], table)
    if not devices:
        return None
    columns = _columns(devices, table)
    reference = next((c for c in columns if not c.device.is_host), columns[0])
    reference.is_reference = True
    lines = _lines(columns, reference)
    families: dict[str, list[Line]] = {}
    for line in lines:
        families.setdefault(line.family, []).append(line)
    digests = [d for family, group in families.items() for d in _digests(family, group, columns)]
    digests.sort(key=lambda d: -d.tells)
    return Comparison(
        columns,
        reference,
        families,
        digests,
        _warnings([c.device for c in columns]),
        _answer(columns, reference, lines),
        [c for c in columns if any(d.cells[c.slot] for d in digests)],
        [c.title for c in columns if not c.launched_known and not c.device.is_host],
    )


WORK = (("matmul", "products"), ("convolution", "convolutions"))
"""Families whose gain is set beside that of launches, the first that was measured"""

TYPES = ("fp32", "fp16", "bf16", "fp64")
"""Of whose work, in this order: the first that both have. A median over types would say nothing of any"""


def type_of(line: Line) -> str:
    """The axis `type` of its case; empty where it has none."""
    return dict(line.key[3]).get("type", "")


def _answer(columns: list[Column], reference: Column, lines: list[Line]) -> str:
    """The newest GPU against the reference: its work, its launches, and the kernels that gain no more than a launch."""
    newest = next((c for c in reversed(columns) if not c.device.is_host and c is not reference), None)
    burst = next((ln for ln in lines if ln.metric == "per_launch_ns" and ln.case.startswith("launch/null/")), None)
    if newest is None or burst is None or reference.device.is_host:
        return ""
    launch, cell = burst.cells[newest.slot].speed, burst.cells[newest.slot].row
    own = cell.get("p50") if cell is not None else None
    for (family, noun), type_ in ((work, of) for work in WORK for of in TYPES):
        group = [ln for ln in lines if (ln.family, ln.metric, type_of(ln)) == (family, "tflops", type_)]
        speeds = [s for ln in group if (s := ln.cells[newest.slot].speed)]
        if speeds and launch and own:
            gain = statistics.median(speeds)
            text = (
                f"{newest.title} against {reference.title}: {type_.upper()} {noun} {verdict(gain, 'TFLOP/s')[0]} (median of "
            )
            text += f"{count(len(speeds), 'case')}), launches in a burst {verdict(launch, 'ns')[0]}."
            if gain > launch:
                text += (
                    f" A kernel of less than {quantity(gain * own, 'ns')} on {reference.title} is bound by its launch on "
                    f"{newest.title}, and gains no more than launches do."
                )
            return text
    return ""


def _columns(devices: list[Device], table: list[gen.Generation]) -> list[Column]:
    labels = [d.label for d in devices]
    columns = []
    for slot, device in enumerate(devices):
        date, known = gen.launched(device, table)
        title = device.label
        if labels.count(title) > 1:
            # The same name in several sessions: another node, or another day.
            title += f" · {device.record['node'] or device.session.string('host', 'node')}"
            title += f" · {device.session.id}"
        columns.append(Column(device, title, date if known else "", known, slot))
    return columns


def _lines(columns: list[Column], reference: Column) -> list[Line]:
    found: dict[CaseKey, dict[int, Row]] = {}
    blocked: dict[tuple, dict[int, Row]] = {}
    comparable = _comparable([c.device.session for c in columns])
    for column in columns:
        for row in column.device.rows + column.device.impossible:
            if not comparable(row):
                continue
            if row.metric:
                found.setdefault(case_key(row), {}).setdefault(column.slot, row)
            else:
                # A case without a result has no metric: it answers for all metrics of the case.
                blocked.setdefault(case_key(row)[:4], {}).setdefault(column.slot, row)
    for key in blocked:
        if not any(known[:4] == key for known in found):
            found[(*key, "")] = {}
    lines = []
    for key, rows in found.items():
        everything = {**blocked.get(key[:4], {}), **rows}
        example = next(iter(rows.values()), None) or next(iter(everything.values()))
        base = everything.get(reference.slot)
        lines.append(
            Line(
                key,
                example.family,
                case_text(key),
                key[4],
                example.unit,
                example.record["direction"],
                [_cell(everything.get(c.slot), base) for c in columns],
            )
        )
    return sorted(lines, key=lambda line: (_family_rank(line.family), line.family))


def _comparable(sessions: list[Session]) -> Callable[[Row], bool]:
    """Which rows are compared: plain runs, and what only tracing sees, where all sessions do.

    Settings that are not the usual are compared where every session has them, too.
    """
    rows = {id(s): [r for r in s.rows if r.metric] for s in sessions}.values()
    shared = set.intersection(*({(r.arm, r.setup) for r in of_one} for of_one in rows))
    plain = {(r.case, r.metric) for of_one in rows for r in of_one if r.usual}

    def comparable(row: Row) -> bool:
        return row.usual or (
            (row.arm, row.setup) in shared
            and TRACE_LEVEL not in row.setup
            and not (row.arm == "traced" and (row.case, row.metric) in plain)
        )

    return comparable


def _family_rank(family: str) -> int:
    known = ["launch", "matmul", "convolution", "allocation"]
    return known.index(family) if family in known else len(known)


def _cell(row: Row | None, base: Row | None) -> Cell:
    if row is None:
        return Cell(None, "", "", "absent", "not measured on this device")
    median = row.get("p50")
    if row.status != "ok" or median is None:
        reason = row.reason or "no median recorded"
        return Cell(
            row,
            quantity(median, row.unit) if median is not None else "",
            _raw(row),
            row.status if row.status != "ok" else "missing",
            reason,
        )
    cell = Cell(row, quantity(median, row.unit), _raw(row), "ok", "")
    if base is None or base.status != "ok" or row is base:
        return cell
    if row.device.simulated != base.device.simulated:
        cell.verdict = "not compared: one is simulated"
        return cell
    if row.unit != base.unit:
        cell.verdict = "not compared: other unit"
        return cell
    _judge(cell, row, base)
    return cell


def _raw(row: Row) -> str:
    return f"{row.record['p50']} {row.unit}" if row.record["p50"] else ""


def _judge(cell: Cell, row: Row, base: Row) -> None:
    value, other = row.get("p50"), base.get("p50")
    direction = row.record["direction"]
    if value is None or other is None or value <= 0 or other <= 0:
        return
    if direction not in ("lower", "higher"):
        cell.verdict = f"{significant(value / other)}× the reference"
        return
    invert = direction == "lower"
    cell.speed = other / value if invert else value / other
    mine, theirs = row.device.session.run_medians(row), base.device.session.run_medians(base)
    if len(mine) > 1 and len(theirs) > 1 and min(mine + theirs) > 0:
        spread = [a / b for a in (min(mine), max(mine)) for b in (min(theirs), max(theirs))]
        spread = [1 / s for s in spread] if invert else spread
        cell.speed_low, cell.speed_high = min(spread), max(spread)
    cell.verdict, cell.tone = verdict(cell.speed, row.unit, cell.speed_low, cell.speed_high)


def verdict(speed: float, unit: str, low: float | None = None, high: float | None = None) -> tuple[str, str]:
    """Words for a ratio that is above 1 when better: ("2.1× faster", "better").

    Where the runs of both devices overlap, the words say so: then the ratio is no finding.
    """
    timed = unit in ("ns", "µs", "us", "ms", "s") or unit.endswith("/s")
    words = ("faster", "slower") if timed else ("better", "worse")
    factor = max(speed, 1 / speed)
    # Near 1, three digits tell 1.04 from 1.00; further off, two are what a reader keeps.
    number = significant(factor, 3 if factor < 2 else 2 if factor < 100 else 3)
    if float(number) == 1:
        return "equal", "same"
    if low is not None and high is not None and low <= 1 <= high:
        return f"{number}× {words[speed < 1]}, within the spread of runs", "same"
    return f"{number}× {words[speed < 1]}", "better" if speed > 1 else "worse"


def _digests(family: str, lines: list[Line], columns: list[Column]) -> list[Digest]:
    """One digest per metric and type, so that a time and the throughput derived from it never mix, and no types do."""
    digests = []
    metrics = dict.fromkeys((line.key[0], line.metric, type_of(line)) for line in lines if line.metric)
    for arm, metric, type_ in list(metrics):
        if metric == "device_ns" and (arm, "tflops", type_) in metrics and arm == "plain":
            metrics.pop((arm, metric, type_))  # of which it is derived
    for arm, metric, type_ in metrics:
        group = [line for line in lines if (line.key[0], line.metric, type_of(line)) == (arm, metric, type_)]
        cells = []
        tells = 0.0
        for column in columns:
            speeds = sorted(line.cells[column.slot].speed for line in group if line.cells[column.slot].speed is not None)
            if column.is_reference:
                cells.append("reference")
            elif not speeds:
                cells.append("")
            else:
                middle = statistics.median(speeds)
                tells = max(tells, abs(math.log(middle)))
                text, _ = verdict(middle, group[0].unit)
                if len(speeds) > 1:
                    text += f" ({_range(speeds, group[0].unit)})"
                cells.append(text)
        if any(c and c != "reference" for c in cells):
            name = metric + (f" in {type_}" if type_ else "") + (f" ({arm})" if arm != "plain" else "")
            digests.append(Digest(family, name, cells, tells))
    return digests


def _range(speeds: list[float], unit: str) -> str:
    """`1.8× to 2.4×, 12 cases`; with words where the ends lie on two sides of 1."""
    low, high = (verdict(s, unit)[0] for s in (speeds[0], speeds[-1]))
    cases = count(len(speeds), "case")
    if low == high:
        return f"{cases} alike"
    if low.partition(" ")[2] == high.partition(" ")[2]:
        ends = sorted((max(s, 1 / s), text) for s, text in zip((speeds[0], speeds[-1]), (low, high), strict=True))
        low, high = (text.partition(" ")[0] for _, text in ends)
    return f"{low} to {high}, {cases}"


def _warnings(devices: list[Device]) -> list[str]:
    """What differs beside the device, in the words of what it means for the numbers."""
    warnings = []

    def differ(what: str, values: list[str], consequence: str) -> None:
        kinds = sorted({v for v in values if v})
        if len(kinds) > 1:
            warnings.append(f"{what} differ ({join_and(kinds)}): {consequence}")

    def cpu(device: Device) -> str:
        return device.record["host_cpu"] or device.session.string("host", "cpu_model")

    differ(
        "Host CPUs",
        [cpu(d) for d in devices],
        "a ratio of launch or allocation times says as much about the host as about the GPU.",
    )
    gpus = [d for d in devices if not d.is_host]
    differ(
        "Drivers",
        [d.record["driver_version"] for d in gpus],
        "a ratio of launch or allocation times includes what the driver changed.",
    )
    for library in sorted({name for d in gpus for name in library_versions(d)}):
        differ(
            f"Versions of {library}",
            [library_versions(d).get(library, "") for d in gpus],
            "a ratio of its times includes what the library changed.",
        )
    kernels = [d.session.string("host", "kernel") for d in devices]
    differ("Operating system kernels", kernels, "waits and interrupts may differ too.")
    versions = [d.session.string("launchgap_version") for d in devices]
    differ("Versions of launchgap", versions, "definitions may have changed between them.")
    for key in sorted({key for d in devices for key in fingerprint(d)} - _NAMED_ELSEWHERE):
        values = ["/".join(sorted(fingerprint(d).get(key, {"not set"}))) for d in gpus]
        if key == "jit" and set(values) == {"false", "true"}:
            warnings.append(
                "The runs differ in more than the GPU: kernels were native on some and compiled by the driver on others. "
                "This affects every ratio."
            )
            continue
        differ(
            f"The runs differ in more than the GPU: their settings of {key!r}",
            values,
            "this affects every ratio.",
        )
    if len({d.simulated for d in devices}) > 1:
        warnings.append("Some devices are simulated: no ratio is formed between them and real ones.")
    return warnings


# Facts that differ between devices by nature, or that have a warning of their own.
_NAMED_ELSEWHERE = frozenset(
    (
        "device",
        "backend",
        "compute_capability",
        "cpu_model",
        "driver_version",
        "kernel",
        "kernel_form",  # native or portable: of that jit speaks
        "launchgap",
        "CUDA driver",
        "cuBLAS",
        "cuDNN",
        "OpenBLAS",
        "oneDNN",
    )
)


def fingerprint(device: Device) -> dict[str, set[str]]:
    """What the device's runs say must be equal to be comparable: each key with all its values."""
    values: dict[str, set[str]] = {}
    for run in device.runs:
        if not run["fingerprint"]:
            continue
        try:
            facts = json.loads(run["fingerprint"])
        except ValueError:
            continue
        if isinstance(facts, dict):
            for key, value in facts.items():
                text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
                values.setdefault(clean(key), set()).add(clean(text))
    return values


def libraries(device: Device) -> list[str]:
    """`cuBLAS 13.1.0 (/path)` for each library that was loaded."""
    return [part.strip() for part in device.record["libraries"].split(";") if part.strip()]


def library_versions(device: Device) -> dict[str, str]:
    pairs = (entry.partition(" (")[0].rpartition(" ") for entry in libraries(device))
    return {name or version: version if name else "" for name, _, version in pairs}
