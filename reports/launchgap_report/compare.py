"""The generation gap: devices of several sessions beside each other.

Cases meet by what they are, never by position: arm, process configuration, case and metric must be equal, where a
device's own launch path counts as one and the same (details.own_path). Which devices are compared,
with which, and each ratio with its verdict stands in gap_devices.csv and gap_ratios.csv.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .details import own_path
from .session import PUBLISHED, TRACE_LEVEL, Device, Row, Session
from .tables import Record
from .text import clean, join_and, quantity

CaseKey = tuple[str, str, str, tuple[tuple[str, str], ...], str]
"""arm, process configuration, benchmark, parameters, metric"""
RatioKey = tuple[str, str, str, str, str, str]
"""session, device, arm, process configuration, case, metric"""


@dataclass
class Column:
    """One device of the comparison."""

    device: Device
    title: str
    released: str
    """Empty where its name does not tell it"""
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
class Comparison:
    columns: list[Column]
    reference: Column
    families: dict[str, list[Line]]
    left_out: int
    """Lines that are not shown: those that tell least"""
    agreeing: dict[str, list[Line]]
    """By family: those in which no device differs from the reference beyond its noise"""
    warnings: list[str]
    undated: list[str] = field(default_factory=list)
    """Devices of which no release is known"""


MOST_LINES, MOST_COLUMNS, MOST_LINES_OF_MANY = 400, 4, 150
"""Cases and metrics that are shown one by one, of so many devices and of more"""


def case_key(row: Row) -> CaseKey:
    params = tuple(own_path(row.params).items())
    arm = "plain" if row.arm == PUBLISHED else row.arm
    return (arm, row.process_config, row.record["benchmark"], params, row.metric)


def case_text(key: CaseKey) -> str:
    """`launch/null/api:own/mode:idle`, with the process configuration and the arm where they are not the usual."""
    arm, process_config, benchmark, params, _ = key
    text = "/".join([benchmark, *(f"{k}:{v}" for k, v in params)])
    extra = [
        e
        for e in (
            process_config if process_config != benchmark.partition("/")[0] else "",
            arm if arm != "plain" else "",
        )
        if e
    ]
    return f"{text} [{', '.join(extra)}]" if extra else text


def generations(devices: list[Device]) -> int:
    """How many generations of GPUs, by compute capability, have measured something."""
    measured = [d for d in devices if d.usable and not d.is_host and d.rows]
    return len({d.record["compute_capability"] for d in measured if d.record["compute_capability"]})


def order(devices: list[Device]) -> list[Device]:
    """Hosts first, then by release, compute capability and name."""

    def key(device: Device) -> tuple:
        capability = device.record["compute_capability"].split(".")
        numbers = tuple(int(part) for part in capability) if all(part.isdigit() for part in capability) else (9999,)
        return (not device.is_host, device.record["released"] or "9999-99", numbers, device.name, device.order)

    return sorted(devices, key=key)


def compare(sessions: list[Session], tables: dict[str, list[Record]]) -> Comparison | None:
    """`tables`: those of the comparison. None where there is no device to compare."""
    known = {(s.string("session_id"), d.id): d for s in sessions for d in s.devices}
    compared = [(d, row) for row in tables.get("gap_devices", []) if (d := known.get(_device_key(row)))]
    if not compared:
        return None
    devices = [device for device, _ in compared]
    columns = _columns(devices)
    reference = next((c for c, (_, row) in zip(columns, compared, strict=True) if row.flag("reference")), columns[0])
    reference.is_reference = True
    lines = _lines(columns, reference, {_ratio_key(row): row for row in tables.get("gap_ratios", [])})
    most = MOST_LINES if len(columns) <= MOST_COLUMNS else MOST_LINES_OF_MANY
    left_out = max(0, len(lines) - most)
    # Those in which some device is farthest from the reference.
    lines = sorted(lines, key=apart, reverse=True)[:most] if left_out else lines
    families: dict[str, list[Line]] = {}
    agreeing: dict[str, list[Line]] = {}
    for line in lines:
        shown = families.setdefault(line.family, [])
        if _agrees(line, reference):
            agreeing.setdefault(line.family, []).append(line)
        else:
            shown.append(line)
    return Comparison(
        columns,
        reference,
        families,
        left_out,
        agreeing,
        warnings_of(devices),
        [c.title for c in columns if not c.released and not c.device.is_host],
    )


def _device_key(row: Record) -> tuple[str, str]:
    return row["session"], row["device_id"]


def _ratio_key(row: Record) -> RatioKey:
    return row["session"], row["device_id"], row["arm"], row["process_config"], row["case"], row["metric"]


def apart(line: Line) -> float:
    return max((abs(math.log(c.speed)) for c in line.cells if c.speed), default=0.0)


def _agrees(line: Line, reference: Column) -> bool:
    """Whether every device that has the case is as fast as the reference, as far as its noise tells, or says the same."""
    base = line.cells[reference.slot]
    others = [c for slot, c in enumerate(line.cells) if slot != reference.slot and c.status != "absent"]
    return bool(others) and all(
        c.tone == "same" or (not c.verdict and (c.status, c.raw) == (base.status, base.raw)) for c in others
    )


def _columns(devices: list[Device]) -> list[Column]:
    labels = [d.label for d in devices]
    columns = []
    for slot, device in enumerate(devices):
        title = device.label
        if labels.count(title) > 1:
            # The same name in several sessions: another node, or another day.
            title += f" · {device.record['node'] or device.session.string('host', 'node')}"
            title += f" · {device.session.id}"
        known = bool(device.record.flag("release_known"))
        columns.append(Column(device, title, device.record["released"] if known else "", slot))
    return columns


def _lines(columns: list[Column], reference: Column, ratios: dict[RatioKey, Record]) -> list[Line]:
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
        lines.append(
            Line(
                key,
                example.family,
                case_text(key),
                key[4],
                example.unit,
                example.record["direction"],
                [_cell(everything.get(c.slot), c is reference, ratios) for c in columns],
            )
        )
    return sorted(lines, key=lambda line: (_family_rank(line.family), line.family))


def _comparable(sessions: list[Session]) -> Callable[[Row], bool]:
    """Which rows are compared: plain runs, and what only tracing sees, where all sessions do.

    Settings that are not the usual are compared where every session has them, too.
    """
    rows = {id(s): [r for r in s.rows if r.metric] for s in sessions}.values()
    shared = set.intersection(*({(r.arm, r.process_config) for r in of_one} for of_one in rows)) if rows else set()
    plain = {(r.case, r.metric) for of_one in rows for r in of_one if r.usual}

    def comparable(row: Row) -> bool:
        return (row.usual or row.arm == PUBLISHED) or (
            (row.arm, row.process_config) in shared
            and TRACE_LEVEL not in row.process_config
            and not (row.arm == "traced" and (row.case, row.metric) in plain)
        )

    return comparable


def _family_rank(family: str) -> int:
    known = ["launch", "matmul", "convolution", "allocation"]
    return known.index(family) if family in known else len(known)


_TONES = {"faster": "better", "slower": "worse", "same": "same", "within the noise": "same"}


def _cell(row: Row | None, is_reference: bool, ratios: dict[RatioKey, Record]) -> Cell:
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
    key = (row.device.session.string("session_id"), row.device.id, row.arm, row.process_config, row.case, row.metric)
    ratio = None if is_reference else ratios.get(key)
    if ratio:
        cell.verdict, cell.tone = ratio["words"], _TONES.get(ratio["verdict"], "")
        cell.speed, cell.speed_low, cell.speed_high = (ratio.get(k) for k in ("times", "times_lower", "times_upper"))
    return cell


def _raw(row: Row) -> str:
    return f"{row.record['p50']} {row.unit}" if row.record["p50"] else ""


def warnings_of(devices: list[Device]) -> list[str]:
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
    # Of published values next to nothing is known, which is no difference from what was measured.
    for published in (False, True):
        settings = [fingerprint(d) for d in gpus if d.session.published == published]
        for key in sorted({key for own in settings for key in own} - _NAMED_ELSEWHERE):
            values = ["/".join(sorted(own.get(key, {"not set"}))) for own in settings]
            if key == "jit" and set(values) == {"false", "true"}:
                warnings.append(
                    "The runs differ in more than the GPU: kernels were native on some and compiled by the driver on "
                    "others. This affects every ratio."
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
