"""What `launchgap import` says of each recording that is kept here, looked at by hand.

A finding that comes or goes must be looked at again: whether somebody who knows the job would agree.
"""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LAUNCHGAP = HERE.parents[1] / "build" / "bin" / "launchgap"

EXPECTED = {
    # Waits after each of its 1312 kernels. The GPU is idle 11 % of the time, half of that for the waits.
    "a100-cloverleaf.nsys.sqlite": {"wait-stalls"},
    # Idle 56 % of the time with work queued, nearly always before work of a graph, of which kernels may lack a record. 171
    # launches wait for room in the queue.
    "a100-graphs.kineto.json.gz": {"queue-full", "queued-work-waits"},
    # Five launches, with up to 195 ms of other work of the program between them.
    "a100-saxpy-double-rows.nsys.sqlite": {"program-pauses"},
    # Kernels of 2 µs, 41 µs apart.
    "gp100-steps.kineto.json": {"slow-host", "short-kernels"},
    # The GPU works 92 % of the time.
    "h100-qwen-orphans.kineto.json.gz": set(),
    # 38 kernels of one step of TensorFlow 1, the last after 112 ms; nothing tells who launched them.
    "gpu-perceptron.tf1-timeline.json": set(),
    # One inference: kernels of 8 µs, 50 µs apart. It does nothing twice, so no kernel can be compared with itself.
    "h100-vit.kineto.json.gz": {"slow-host"},
    # Graphs of 20 kernels of 1 µs, each replay waited for; the first one loads.
    "h200-graph-replays.kineto.json.gz": {"launch-gaps", "wait-stalls", "first-launches"},
    # Small layers; its matrix multiplications become 10 % faster on the way, as where clocks rise.
    "rtx2080ti-linear.kineto.json.gz": {"slow-host", "short-kernels", "kernel-changed"},
    # Gaussian elimination: each Fan2 has less to do than the one before. The first two launches load: 0.8 ms each.
    "rtx3090-gaussian.nsys.sqlite": {"kernel-changed", "first-launches"},
    # Copies of the input long before the step; names of Eigen's kernels that stand for several. Two first launches are slow.
    "v100-bert.xplane.pb.gz": ["program-pauses", "program-pauses", "kernel-changed", "first-launches"],
    # The GPU works 98 % of the time, and launches wait for room in its queue: 92 % of all launch time.
    "v100-nanoseconds.kineto.json.gz": {"queue-full"},
    # Without workers that load data: some 50 ms of the program before each step.
    "v100-resnet50-list-orphans.kineto.json.gz": {"program-pauses"},
    "v100-resnet50.kineto.json.gz": {"program-pauses"},
}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_said_of_a_recording_is_what_an_expert_would_say(name, tmp_path):
    for command in (["import", HERE / name, "-o", tmp_path / "session", "--no-report"], ["export", tmp_path / "session"]):
        if command[0] == "export":
            command += ["-o", tmp_path / "tables"]
        done = subprocess.run([LAUNCHGAP, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    findings = tmp_path / "tables" / "findings.csv"  # no table without rows is written
    causes = [row for row in rows(findings) if row["source"] == "cause"] if findings.exists() else []
    assert sorted(row["code"] for row in causes) == sorted(EXPECTED[name])
    for row in causes:
        assert row["sentence"].endswith(".") and row["evidence"] and row["remedy"].endswith(".")
        assert row["share"] == "" or 0 < float(row["share"]) < 1
    for recording in rows(tmp_path / "tables" / "recordings.csv"):
        assert (recording["clock_problem"], recording["clock_corrected"], recording["clock_offset_ns"]) == ("", "false", "")


def test_every_recording_is_expected_to_say_something_or_nothing():
    assert set(EXPECTED) == {row["file"] for row in rows(HERE / "figures.csv")}


def test_kernels_of_a_recording_have_their_variation(tmp_path):
    name = "rtx2080ti-linear.kineto.json.gz"
    for command in (
        ["import", HERE / name, "-o", tmp_path / "s", "--no-report"],
        ["export", tmp_path / "s", "-o", tmp_path / "t"],
    ):
        assert subprocess.run([LAUNCHGAP, *command], capture_output=True, timeout=120).returncode == 0
    kernels = rows(tmp_path / "t" / "kernels.csv")
    assert len(kernels) == 21 and sum(int(row["count"]) for row in kernels) == 8716
    (idle,) = [row for row in rows(tmp_path / "t" / "summary.csv") if row["metric"] == "gpu_idle_share"]
    # On one stream no kernels overlap.
    assert sum(float(row["gpu_share"]) for row in kernels) == pytest.approx(1 - float(idle["p50"]), abs=0.02)
    for row in kernels:
        assert float(row["shortest_ns"]) <= float(row["p50_ns"]) <= float(row["longest_ns"])
        assert (row["p99_ns"] == "") == (int(row["count"]) < 100)
        assert float(row["first_call_ns"]) > 0
