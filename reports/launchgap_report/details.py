"""The tables beyond the summary: variation by level, blocks in time, traced runs.

Each is optional, since sessions of older versions lack them: what is absent is empty here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .registry import Registry
from .tables import Record, cell_number, read_rows, read_table
from .text import clean

_READ_ELSEWHERE = ("devices.csv", "runs.csv", "summary.csv", "run_quantiles.csv")
_LONG = ("sequence.csv", "telemetry.csv")
"""Tables of which the page draws a part, and reads no more."""
HELD = "held_by_"
"""Counters of the time for which something held the clocks down, in nanoseconds."""
SHOWN = ("sm_clock_mhz power_w temperature_c involuntary_switches migrations cpu_mhz").split()
_WANTED = frozenset((*SHOWN, "clock_reasons"))


@dataclass
class Block:
    """One block of the round trip of an empty launch on an idle stream, by the host's clock."""

    replicate: int
    begin_ns: float
    end_ns: float
    p50: float
    p99: float | None


@dataclass
class Reading:
    """One value of telemetry, read after a block; a counter is its change over the block."""

    process_config: str
    replicate: int
    case: str
    at_ns: float
    value: float


@dataclass
class Details:
    """The rows of each table, in its order."""

    tables: dict[str, list[Record]] = field(default_factory=dict)
    blocks: dict[tuple[str, str], list[Block]] = field(default_factory=dict)
    """device_id and case, in the order of time"""
    readings: dict[tuple[str, str], list[Reading]] = field(default_factory=dict)
    """device_id and quantity of plain runs, in the order of time"""
    _by_device: dict[str, dict[str, list[Record]]] = field(default_factory=dict)
    """Of each table that was asked for by device"""

    def of(self, table: str, device_id: str) -> list[Record]:
        if table not in self._by_device:
            found = self._by_device[table] = {}
            for row in self.tables.get(table, []):
                found.setdefault(row["device_id"], []).append(row)
        return self._by_device[table].get(device_id, [])


def split_case(case: str) -> tuple[str, dict[str, str]]:
    """The benchmark and the parameters of a case's whole name."""
    parts = case.split("/")
    axes = [p for p in parts if ":" in p]
    pairs = (p.partition(":") for p in axes)
    return "/".join(p for p in parts if ":" not in p), {k: v for k, _, v in pairs}


def is_idle_null(case: str) -> bool:
    """Whether the case is the empty launch on an idle stream."""
    benchmark, params = split_case(case)
    return benchmark == "launch/null" and params.get("mode") == "idle"


def own_path(params: dict[str, str]) -> dict[str, str]:
    """Names a device's own launch path alike on every backend, so that cases can meet.

    A host device calls it `queue`, a CUDA device `driver`.
    """
    if params.get("api") in ("queue", "driver"):
        return {**params, "api": "own"}
    return params


def own_first(case: str) -> tuple[bool, str]:
    """Sorts a device's own launch path before others."""
    return (split_case(case)[1].get("api", "") not in ("", "driver", "queue"), case)


def load(folder: Path, registry: Registry, drawn: set[str] | None = None) -> Details:
    """Of the long tables the rows of devices that are drawn; of all where that is None."""
    found = Details()
    for name, columns in registry.tables.items():
        path = folder / name
        if path.exists() and name not in (*_READ_ELSEWHERE, *_LONG):
            found.tables[path.stem] = [row for _, row in read_table(path, columns)]
    _load_blocks(found, folder / "sequence.csv", drawn)
    _load_readings(found, folder / "telemetry.csv", drawn)
    return found


def _load_blocks(found: Details, path: Path, drawn: set[str] | None) -> None:
    # A long table of which the page draws one metric, so numbers are read of its rows alone.
    keys = "device_id arm process_config case metric replicate begin_ns end_ns p50 p99".split()
    if not path.exists():
        return
    places: list[int] = []
    for line, header, cells in read_rows(path, keys):
        if not places:
            places = [header.index(k) for k in keys]
        if drawn is not None and cells[places[0]] not in drawn:
            continue
        device, arm, process_config, case, metric, *rest = (cells[i] for i in places)
        if (arm, process_config, metric) != ("plain", "launch", "roundtrip_ns") or not is_idle_null(case):
            continue
        replicate, begin, end, p50, p99 = (cell_number(path, line, k, c) for k, c in zip(keys[5:], rest, strict=True))
        if replicate is None or begin is None or end is None or p50 is None:
            continue
        blocks = found.blocks.setdefault((clean(device), clean(case)), [])
        blocks.append(Block(int(replicate), begin, end, p50, p99))
    for blocks in found.blocks.values():
        blocks.sort(key=lambda b: (b.begin_ns, b.replicate))


def _load_readings(found: Details, path: Path, drawn: set[str] | None) -> None:
    keys = "device_id arm process_config replicate case at_ns".split()
    if not path.exists():
        return
    places: list[int] = []
    quantities: list[tuple[int, str]] = []
    cleaned: dict[str, str] = {}
    for line, header, cells in read_rows(path, keys):
        if not places:
            places = [header.index(k) for k in keys]
            quantities = [(i, k) for i, k in enumerate(header) if k in _WANTED or k.startswith(HELD)]
        if drawn is not None and cells[places[0]] not in drawn:
            continue
        device, arm, process_config, replicate, case, at = (cells[i] for i in places)
        if arm != "plain":
            continue
        for text in (device, process_config, case):
            if text not in cleaned:
                cleaned[text] = clean(text)
        run, when = cell_number(path, line, "replicate", replicate), cell_number(path, line, "at_ns", at)
        if run is None or when is None:
            continue
        for place, quantity in quantities:
            value = cell_number(path, line, quantity, cells[place])
            if value is not None:
                readings = found.readings.setdefault((cleaned[device], quantity), [])
                readings.append(Reading(cleaned[process_config], int(run), cleaned[case], when, value))
    for readings in found.readings.values():
        readings.sort(key=lambda r: (r.at_ns, r.replicate))
