"""Reads and validates the tables of a session.

A session may have been killed at any moment, so nothing but the files themselves must be there;
what is there must make sense. A table that does not is refused with its name and line, since
a page drawn from half-understood numbers is worse than none.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import details, registry
from .tables import Record, ReportError, clean_json, read_json, read_table
from .text import clean

MOST_DEVICES = 24
"""Of which there are figures; with more, nobody would look at them, and a browser could not. Tables have all."""
MOST_GENERATIONS = 4
"""Compute capabilities that are compared, whose GPUs all have figures"""
TRACE_LEVEL = "+trace_level="
"""In the text of a process configuration: traced, but not everything."""
PUBLISHED = "published"
"""The arm of what others have published, and the source of such a session."""
RECORDED = "recorded"
"""The arm of what somebody else recorded and launchgap imported."""


@dataclass
class Device:
    """A device of one session; the same GPU in two sessions is two of these."""

    session: Session
    record: Record
    order: int

    @property
    def id(self) -> str:
        return self.record["device_id"]

    @property
    def name(self) -> str:
        return self.record["device_name"] or self.id or "unnamed device"

    @property
    def backend(self) -> str:
        return self.record["backend"]

    @property
    def is_host(self) -> bool:
        return self.backend == "host"

    @property
    def label(self) -> str:
        """`NVIDIA H200 (0)`: the index tells equal devices apart; of sessions that are together node and PCI address do, in
        a recording the rank, and of published values the software."""
        if self.session.published:
            return self._published_label
        if self.session.details.tables.get("sessions") and not self.is_host:
            return f"{self.name} ({self.record['node']}, {self.record['pci_bus_id'] or self.id})"
        index = self.record.get("device_index")
        text = self.name if index is None or self.is_host else f"{self.name} ({index:.0f})"
        ranks = {rank for process in self.recordings if (rank := process.get("rank")) is not None}
        return f"{text}, rank {ranks.pop():.0f}" if len(ranks) == 1 else text

    @functools.cached_property
    def _published_label(self) -> str:
        """`Tesla K40`, or where there are values of several versions `Tesla K40, CUDA 7.5`."""
        text = self.name
        same = [d for d in self.session.devices if d.name == self.name]
        for key, word in (("cuda", "CUDA"), ("driver_version", "driver")):
            own = self._published_fact(key)
            others = [d._published_fact(key) for d in same]
            if len(set(others)) > 1 and own:
                text += f", {word} {own}"
            same = [d for d, other in zip(same, others, strict=True) if other == own]
        return text

    def _published_fact(self, key: str) -> str:
        """What its values were measured with; empty where that was not published."""
        for run in self.runs:
            try:
                facts = json.loads(run["fingerprint"] or "{}")
            except ValueError:
                continue
            if isinstance(facts, dict):
                return clean(str(facts.get(key) or ""))
        return ""

    @property
    def rows(self) -> list[Row]:
        """Its rows of the summary that count."""
        return self.session.rows_by_device.get(id(self), [])

    @property
    def impossible(self) -> list[Row]:
        """Its rows whose rate is above what the GPU can do: they are listed, and count nowhere."""
        return [row for row in self.session.impossible if row.device is self]

    @property
    def runs(self) -> list[Record]:
        return self.session.runs_by_device.get(self.id, [])

    @property
    def recordings(self) -> list[Record]:
        """The processes that somebody else recorded on it."""
        return self.session.details.of("recordings", self.id)

    @property
    def recorded(self) -> bool:
        """Whether somebody else recorded what it did, rather than launchgap measured it."""
        return any(run["arm"] == RECORDED for run in self.runs)

    @property
    def usable(self) -> bool:
        return self.record.flag("usable") is not False

    @property
    def simulated(self) -> bool:
        return self.record.flag("simulated") is True


def parse_params(params: str) -> dict[str, str]:
    """`size:1024/type:fp32` as a dictionary, in order; a value may hold colons."""
    pairs = (part.partition(":") for part in params.split("/") if part)
    return {key: value for key, _, value in pairs}


@dataclass
class Row:
    """One row of summary.csv."""

    device: Device
    record: Record
    params: dict[str, str]

    @property
    def case(self) -> str:
        params = self.record["params"]
        return self.record["benchmark"] + (f"/{params}" if params else "")

    @property
    def family(self) -> str:
        return self.record["benchmark"].partition("/")[0]

    @property
    def metric(self) -> str:
        return self.record["metric"]

    @property
    def unit(self) -> str:
        return self.record["unit"]

    @property
    def arm(self) -> str:
        return self.record["arm"]

    @property
    def process_config(self) -> str:
        return self.record["process_config"]

    @property
    def usual(self) -> bool:
        """Plain, with the default settings: what headlines and figures show."""
        return self.arm == "plain" and self.process_config in ("", self.family)

    @property
    def impossible(self) -> bool:
        return self.record.flag("impossible") is True

    @property
    def status(self) -> str:
        return "impossible" if self.impossible else self.record["status"]

    @property
    def reason(self) -> str:
        return "above what the GPU can do: see the findings" if self.impossible else self.record["reason"]

    def get(self, key: str) -> float | None:
        return self.record.get(key)


RunKey = tuple[str, str, str, str, str]
"""device_id, arm, process_config, case, metric"""


@dataclass
class Session:
    """Everything that the page needs of one session."""

    folder: Path
    info: dict[str, Any]
    devices: list[Device] = field(default_factory=list)
    runs: list[Record] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    impossible: list[Row] = field(default_factory=list)
    """Not among the rows, so that whoever chooses among those need not know of them"""
    run_quantiles: dict[RunKey, list[Record]] = field(default_factory=dict)
    registry: registry.Registry = field(default_factory=registry.Registry)
    details: details.Details = field(default_factory=details.Details)
    drawn: set[str] = field(default_factory=set)
    """Ids of the devices of which there are figures: those that differ from their kind, then the first"""

    @functools.cached_property
    def rows_by_device(self) -> dict[int, list[Row]]:
        """By the device's `id()`: whoever goes device by device is not to look at all rows for each."""
        found: dict[int, list[Row]] = {}
        for row in self.rows:
            found.setdefault(id(row.device), []).append(row)
        return found

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """Of the devices, by their ids."""
        return {device.id: device.label for device in self.devices}

    @functools.cached_property
    def runs_by_device(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        for run in self.runs:
            found.setdefault(run["device_id"], []).append(run)
        return found

    @property
    def id(self) -> str:
        return self.string("session_id") or clean(self.folder.name) or "unnamed session"

    @property
    def name(self) -> str:
        """What people call it: its folder, or where one file was imported, that file."""
        files = list(dict.fromkeys(clean(r["file"]) for r in self.details.tables.get("recordings", []) if r["file"]))
        if self.recorded and len(files) == 1:
            return Path(files[0]).name
        return clean(self.folder.resolve().name) or self.id

    @property
    def simulated(self) -> bool:
        return (
            any(device.simulated for device in self.devices)
            or any(row.record.flag("simulated") for row in self.rows)
            or any(run.flag("simulated") for run in self.runs)
            or any(replay.flag("simulated") for replay in self.details.tables.get("replays", []))
        )

    @functools.cached_property
    def recorded(self) -> bool:
        """Whether it was imported; then nothing in it was measured by launchgap."""
        return any(run["arm"] == RECORDED for run in self.runs)

    @property
    def published(self) -> bool:
        """Whether others have published what is in it; then nothing was measured or recorded."""
        return self.string("source") == PUBLISHED

    @property
    def only_replays(self) -> bool:
        """Whether nothing ran for it: allocators alone were asked."""
        return not self.devices and bool(self.details.tables.get("replays"))

    @property
    def only_memory(self) -> bool:
        """Whether it tells of memory alone: allocators were asked, or allocations recorded."""
        return self.only_replays or (self.recorded and not self.rows)

    @property
    def recorders(self) -> list[str]:
        """`Nsight Systems 2024.5.1`, each once."""
        return list(dict.fromkeys(r["recorder"] for r in self.details.tables.get("recordings", []) if r["recorder"]))

    def string(self, *path: str) -> str:
        """The text at `path` in session.json, or an empty string."""
        value: Any = self.info
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None or isinstance(value, (dict, list)):
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    def items(self, key: str) -> list[dict[str, Any]]:
        """The objects in the list `key` of session.json; anything else there is passed over."""
        value = self.info.get(key)
        return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []

    def quantiles_of(self, row: Row) -> list[Record]:
        """Of each run behind a row of the summary, in the order in which they ran."""
        return self.run_quantiles.get((row.device.id, row.arm, row.process_config, row.case, row.metric), [])

    def run_medians(self, row: Row) -> list[float]:
        medians = (run.get("p50") for run in self.quantiles_of(row))
        return [m for m in medians if m is not None]

    def runs_of(self, device_id: str, arm: str, process_config: str, replicate: int) -> list[Record]:
        return [
            run
            for run in self.runs_by_device.get(device_id, [])
            if run["arm"] == arm and run["process_config"] == process_config and run.get("replicate") == replicate
        ]


def load(session_dir: Path, tables_dir: Path) -> Session:
    """Reads one session; raises ReportError with the file, and the line where there is one."""
    info = read_json(session_dir / "session.json")
    if not isinstance(info, dict):
        raise ReportError(f"{session_dir / 'session.json'}: not a JSON object")
    schema = info.get("schema", "launchgap/1")
    if schema != "launchgap/1":
        raise ReportError(
            f"{session_dir / 'session.json'}: schema {clean(str(schema))!r} is not launchgap/1, "
            "the one that this version reads"
        )
    session = Session(session_dir, clean_json(info), registry=registry.load(tables_dir))
    _load_devices(session, tables_dir)
    session.runs = sorted(
        (record for _, record in _table(session, tables_dir / "runs.csv")),
        key=_began,
    )
    _load_rows(session, tables_dir)
    ends = _ends_of_generations(session.devices)
    session.details = details.load(tables_dir, session.registry, ends)
    session.drawn = _worth_drawing(session) if ends is None else ends
    _load_run_quantiles(session, tables_dir)
    return session


def _ends_of_generations(devices: list[Device]) -> set[str] | None:
    """Of many generations the oldest and the newest GPU, and hosts: tables have all. None where there are few."""
    gpus = sorted((d for d in devices if not d.is_host), key=lambda d: d.record["compute_capability"].rjust(5))
    if len({d.record["compute_capability"] for d in gpus}) <= MOST_GENERATIONS:
        return None
    return {gpus[0].id, gpus[-1].id, *(d.id for d in devices if d.is_host)}


def _worth_drawing(session: Session) -> set[str]:
    odd = session.details.of
    return {d.id for d in sorted(session.devices, key=lambda d: not odd("outlier_devices", d.id))[:MOST_DEVICES]}


def _table(session: Session, path: Path) -> list[tuple[int, Record]]:
    return read_table(path, session.registry.columns(path.name))


def _began(run: Record) -> tuple[str, float, float]:
    """When a run began: whole seconds of UTC tie, so the node's monotonic clock decides."""
    return (run["begin_utc"] or "~", run.get("begin_ns") or 0, run.get("replicate") or 0)


def _load_devices(session: Session, tables_dir: Path) -> None:
    records = [record for _, record in _table(session, tables_dir / "devices.csv")]
    session.devices = [Device(session, record, i) for i, record in enumerate(records)]


def _load_rows(session: Session, tables_dir: Path) -> None:
    path = tables_dir / "summary.csv"
    by_id = {device.id: device for device in session.devices}
    for line, record in _table(session, path):
        if record["status"] not in session.registry.statuses:
            raise ReportError(
                f"{path} line {line}: status {record['status']!r} is none of {', '.join(session.registry.statuses)}"
            )
        device = by_id.get(record["device_id"])
        if device is None:
            device = Device(session, record, len(session.devices))
            by_id[device.id] = device
            session.devices.append(device)
        row = Row(device, record, parse_params(record["params"]))
        (session.impossible if row.impossible else session.rows).append(row)


def _load_run_quantiles(session: Session, tables_dir: Path) -> None:
    started: dict[tuple[str, str, str, int], tuple[str, float, float]] = {}
    for run in session.runs:
        if (replicate := run.get("replicate")) is not None:
            started.setdefault((run["device_id"], run["arm"], run["process_config"], int(replicate)), _began(run))
    for _, run in _table(session, tables_dir / "run_quantiles.csv"):
        if all(run.get(key) is not None for key in ("replicate", "min", "p50", "max")):
            key = (run["device_id"], run["arm"], run["process_config"], run["case"], run["metric"])
            session.run_quantiles.setdefault(key, []).append(run)
    for key, runs in session.run_quantiles.items():
        runs.sort(key=lambda run, of=key[:3]: (started.get((*of, replicate_of(run)), ("~",)), replicate_of(run)))


def replicate_of(run: Record) -> int:
    """Of a row of run_quantiles.csv."""
    return int(run.get("replicate") or 0)
