"""Sessions of many GPUs, made from one that was measured: the same cases, with values of their own.

Each session has its tables and its session.json. Its records are links to those of the session that it was made from:
what reads them finds the wrong values, and no test may.
"""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Fleet:
    """How the values lie: standard deviations of logarithms, and what is slower than that by how much."""

    nodes: int
    gpus: int
    sessions: int = 1  # of each GPU
    runs: int = 3  # of each session
    host_sd: float = 0.004
    device_sd: float = 0.003
    run_sd: float = 0.005
    slow_devices: dict[tuple[int, int], float] = field(default_factory=dict)  # by node and slot
    slow_nodes: dict[int, float] = field(default_factory=dict)
    worn: dict[tuple[int, int], float] = field(default_factory=dict)  # slower in its last session
    seed: int = 1

    def node(self, node: int) -> str:
        return f"n{node:04}"

    def uuid(self, node: int, slot: int) -> str:
        return f"GPU-{node:08x}-fa4e-4000-8000-{slot:012x}"


MEDIANS, SCALED = "run_medians", ("min", "q1", "p50", "q3", "p90", "p99", "p999", "max", "mean")


def write(base: Path, folder: Path, fleet: Fleet) -> list[Path]:
    """The sessions' folders, below `folder`."""
    rng = np.random.default_rng(fleet.seed)
    info = json.loads((base / "session.json").read_text())
    with open(base / "summary.csv", newline="") as file:
        header, *rows = csv.reader(file)
    column = {name: i for i, name in enumerate(header)}
    timed = [row for row in rows if row[column["p50"]]]
    without = [row for row in rows if not row[column["p50"]]]
    less_is_better = np.array([row[column["direction"]] == "lower" for row in timed])
    level = np.array([float(row[column["p50"]]) for row in timed])
    records = sorted((base / "records").iterdir())
    old_uuid, old_node = info["devices"][0]["uuid"], info["host"]["node"]
    made = []
    host_of = rng.normal(0, fleet.host_sd, (fleet.nodes, len(timed)))
    for node in range(fleet.nodes):
        for slot in range(fleet.gpus):
            device = host_of[node] + rng.normal(0, fleet.device_sd, len(timed))
            slower = fleet.slow_devices.get((node, slot), 1) * fleet.slow_nodes.get(node, 1)
            for session in range(fleet.sessions):
                last = session == fleet.sessions - 1
                times = slower * (fleet.worn.get((node, slot), 1) if last else 1)
                shift = device + np.where(less_is_better, np.log(times), -np.log(times))
                medians = level * np.exp(shift + rng.normal(0, fleet.run_sd, (fleet.runs, len(timed))))
                name, uuid = fleet.node(node), fleet.uuid(node, slot)
                session_id = f"2026112{session}T030000Z-{node:04x}{slot:02x}"
                own = folder / f"{name}.{uuid}.{session}"
                (own / "records").mkdir(parents=True)
                for file in records:
                    os.link(file, own / "records" / file.name.replace(old_uuid, uuid).replace(old_node, name, 1))
                out = dict(info)
                out["session_id"], out["begin_utc"] = session_id, f"2026-11-2{session}T03:00:00Z"
                out["end_utc"] = f"2026-11-2{session}T03:10:00Z"
                out["host"] = {**info["host"], "node": name, "machine_id": f"{node:032x}"}
                facts = {**info["devices"][0], "uuid": uuid, "pci_bus_id": f"0000:{16 * slot + 7:02x}:00.0"}
                out["devices"] = [facts]
                out["plan"] = [{**run, "device": uuid} for run in info["plan"]]
                (own / "session.json").write_text(json.dumps(out))
                _write_summary(own / "summary.csv", header, column, timed, without, medians, level, session_id, name, uuid)
                made.append(own)
    return made


def _write_summary(path, header, column, timed, without, medians, level, session_id, node, uuid) -> None:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(header)
    pooled = np.median(medians, axis=0)
    scaled = [column[name] for name in SCALED]
    for i, row in enumerate(timed):
        cells = [session_id, node, uuid, *row[3:]]
        ratio = pooled[i] / level[i]
        for at in scaled:
            if cells[at]:
                cells[at] = repr(float(float(cells[at]) * ratio))
        cells[column["runs"]] = str(len(medians))
        cells[column[MEDIANS]] = " ".join(map(repr, medians[:, i].tolist()))
        table.writerow(cells)
    for row in without:
        table.writerow([session_id, node, uuid, *row[3:]])
    path.write_text(text.getvalue(), newline="")
