#!/usr/bin/env python3
"""How often the interval of an observer effect that is not there holds 0, and how far the effect is from it.

    tests/experiments/observer_null.py [--sessions 100] [--runs 10] [--lanes 1] [--build build] [-o FILE]

Every session measures `launch/null` on the harsh fake node, whose tracing costs nothing here and whose processes start
at once: what is left is what launchgap's own way of measuring makes of ramps, drift, noise and corrupt records. With
`--lanes N`, N sessions run at once, each on a CPU of its own. For each level and metric, of 100 sessions at least 88 must
hold 0, and the mean effect must stay below 1 % of the metric; the exit code is 1 if not.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST_COVERAGE = 0.88
MOST_EFFECT = 0.01
Key = tuple[str, str]  # level, metric


def free_of_charge(folder: Path) -> Path:
    """The harsh node, without overheads of tracing and without start-up times."""
    node = json.loads((ROOT / "tests/fake_cuda/nodes/harsh_gpu.json").read_text())
    for key in ("api_overhead_ns", "kernel_overhead_ns", "other_overhead_ns"):
        node["cupti"][key] = 0
    for device in node["devices"]:
        device |= {"init_ns": 0, "context_ns": 0, "library_ns": 0}
        del device["near"]  # which CPUs are near is the machine's own affair
    path = folder / "node.json"
    path.write_text(json.dumps(node))
    return path


def one_session(build: Path, node: Path, folder: Path, runs: int, cpu: int) -> dict[Key, dict[str, float]]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LAUNCHGAP_", "CUDA_", "NVIDIA_"))}
    environment |= {
        "LAUNCHGAP_FAKE_NODE": str(node),
        "LD_LIBRARY_PATH": str(build / "fake_cuda"),
        "LD_PRELOAD": str(build / "fake_cuda/libfake_clock.so"),  # which waits for the GPU in no time
        "LAUNCHGAP_LOCK_DIR": str(folder),
    }
    program = str(build / "bin/launchgap")
    session, tables = folder / "session", folder / "tables"
    command = [program, "run", "--devices", "gpu", "--runs", str(runs), "--trace", "on", "--no-report"]
    command += ["--filter", "^launch/null", "-o", str(session)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
    )
    if done.returncode != 0:
        raise RuntimeError(f"a session ended with {done.returncode}: {done.stderr}")
    subprocess.run([program, "export", str(session), "-o", str(tables)], check=True, capture_output=True, env=environment)
    with (tables / "observer.csv").open(newline="") as file:
        return {
            (row["level"], row["metric"]): {k: float(row[k]) for k in ("effect", "effect_lo", "effect_hi", "plain")}
            for row in csv.DictReader(file)
        }


def all_sessions(build: Path, sessions: int, runs: int, lanes: int) -> list[dict[Key, dict[str, float]]]:
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        node = free_of_charge(Path(folder))
        places = [Path(folder) / f"{i:04d}" for i in range(sessions)]
        for place in places:
            place.mkdir()
        free = cpus[: max(1, min(lanes, len(cpus)))]

        def lane(cpu: int, own: list[Path]) -> list[dict[Key, dict[str, float]]]:
            return [one_session(build, node, place, runs, cpu) for place in own]

        with ThreadPoolExecutor(len(free)) as pool:
            jobs = [pool.submit(lane, cpu, places[i :: len(free)]) for i, cpu in enumerate(free)]
            return [effects for job in jobs for effects in job.result()]


def report(found: list[dict[Key, dict[str, float]]], runs: int) -> tuple[str, bool]:
    lines = [
        f"{len(found)} sessions of {runs} runs",
        f"{'level':<10}{'metric':<16}{'holds 0':>9}{'mean effect':>14}{'of metric':>11}",
    ]
    good = True
    for key in sorted({key for effects in found for key in effects}):
        rows = [effects[key] for effects in found if key in effects]
        covered = sum(row["effect_lo"] <= 0 <= row["effect_hi"] for row in rows)
        mean = sum(row["effect"] for row in rows) / len(rows)
        share = mean / (sum(row["plain"] for row in rows) / len(rows))
        good = good and covered >= LEAST_COVERAGE * len(rows) and abs(share) < MOST_EFFECT
        lines.append(f"{key[0]:<10}{key[1]:<16}{covered:>5}/{len(rows):<3}{mean:>11.1f} ns{100 * share:>9.2f} %")
    return "\n".join(lines), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-o", type=Path)
    options = parser.parse_args()
    text, good = report(all_sessions(options.build.resolve(), options.sessions, options.runs, options.lanes), options.runs)
    print(text)
    if options.o:
        options.o.write_text(text + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
