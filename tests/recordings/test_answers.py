"""What `launchgap import` answers of each recording: verdict, idle share and where the launch time goes, on one screen.

The figures are compared with those of launch_time.py, which reads the files without launchgap."""

from __future__ import annotations

import functools
import gzip
import json
import random
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from launch_time import answers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
SHARED = ROOT.parent / "shared" / "recordings"
# launch_time.py reads no XPlanes, and a timeline has no launches; tests/import has their figures.
OWN = sorted(
    path for path in HERE.iterdir() if path.name.endswith((".sqlite", ".json", ".json.gz")) and "tf1" not in path.name
)
RANKS = sorted((SHARED / "ranks").glob("*.*.*")) if SHARED.exists() else []
WHOLE = [*OWN, *(path for path in RANKS if path.name.endswith((".sqlite", ".gz")))]
IDLE_CAUSES = {
    "wait-stalls", "allocation-stalls", "context-creation", "program-pauses", "long-call", "late-kernels", "slow-host",
    "short-kernels", "launch-gaps", "blocking-launches", "queued-work-waits",
}  # fmt: skip


# Of each process of a whole recording, looked at by hand.
VERDICTS = {
    "a100-cloverleaf.nsys.sqlite": "device-bound",
    "a100-graphs.kineto.json.gz": "held up",
    "a100-saxpy-double-rows.nsys.sqlite": "program-bound",
    "gp100-steps.kineto.json": "program-bound",
    "h100-qwen-orphans.kineto.json.gz": "device-bound",
    "h100-vit.kineto.json.gz": "program-bound",
    "h200-graph-replays.kineto.json.gz": "launch-bound",
    "rtx2080ti-linear.kineto.json.gz": "program-bound",
    "rtx3090-gaussian.nsys.sqlite": "device-bound",
    "v100-nanoseconds.kineto.json.gz": "device-bound",
    "v100-resnet50-list-orphans.kineto.json.gz": "program-bound",
    "v100-resnet50.kineto.json.gz": "program-bound",
    "rtx4090-llama-rank0.kineto.json.gz": "launch-bound",
    "rtx4090-llama-rank1.kineto.json.gz": "launch-bound",
    "2gpu-mfu-before.nsys.sqlite": "device-bound",
}


def imported(folder: Path, *files: Path) -> tuple[str, dict]:
    """What is said on the terminal, and the same as JSON."""
    command = [LAUNCHGAP, "import", *files, "-o", folder / "session", "--no-report", "--json", folder / "answer.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "answer.json").read_text())


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.name)
def test_the_answer_stands_on_one_screen_and_its_shares_add_up(path, tmp_path):
    text, answer = imported(tmp_path, path)
    lines = text.splitlines()
    text = " ".join(text.split())
    assert len(lines) <= 13, "the page has a line too"
    assert all(len(line) <= 100 for line in lines if not line.startswith(("Tables:", "GPU ", "allocations")))
    found = answers(path)
    assert len(answer["jobs"]) == len(found)
    by_launches = {
        sum(n for (_, what), n in parts.items() if what == "launches"): (parts, idle) for parts, idle in found.values()
    }
    assert len(by_launches) == len(found)
    for job in answer["jobs"]:
        assert job["verdict"] == VERDICTS[path.name]
        assert job["verdict"] in text and job["unknown_share"] < 0.01
        parts, idle = by_launches[job["launches"]]
        assert job["gpu_idle_share"] == pytest.approx(idle, abs=1e-9)
        assert sum(part["share"] for part in job["tail"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["launches"] for part in job["tail"]) == job["launches"]
        said = {(part["cause"], what): part[what] for part in job["tail"] for what in ("launches", "time_ns")}
        assert said == dict(parts)
    shown = [finding for finding in answer["findings"] if f"[{finding['code']}]" in text]
    assert shown == answer["findings"][:3], "the gravest have room"
    left_out = len(answer["findings"]) - 3
    assert (f"and {left_out} more: findings.csv." in text) == (left_out > 0)
    idle_shares = [f"{100 * job['gpu_idle_share']:.2g} %" for job in answer["jobs"]]
    assert all(share in text for share in idle_shares)
    assert "usual calls" in text


# --- ranks without common steps ---

# By the i-th collective of one kind: who came last, how often, and for how long the other waited there; by a script of its
# own, and as recordings/ranks/README.md has it.
LAST = {"rtx4090-llama": ("rank 1", "13 of 19", "45.9 ms"), "2gpu-mfu": ("process 145", "22 of 33", "11.4 ms")}


@pytest.mark.skipif(not RANKS, reason="the recordings of ranks are not here")
@pytest.mark.parametrize("job", LAST)
def test_the_rank_that_comes_last_to_collectives_is_named(job, tmp_path):
    text, answer = imported(tmp_path, *(path for path in WHOLE if path.name.startswith(job)))
    name, times, waited = LAST[job]
    assert f"{name} comes last to {times} collectives, and the others wait there for {waited}" in " ".join(text.split())
    (found,) = [finding for finding in answer["findings"] if finding["code"] == "late-to-collectives"]
    assert found["subject"] == name and found["severity"] == "note", "so often one of two is last by chance too"
    assert len(text.splitlines()) <= 13, "one screen; why it is late has a line of its own"
    assert text.index(f"{name}: ") > text.index("rank 0: " if name == "rank 1" else "process 144: ")


# --- recordings that lost kernels ---


def without_kernels(path: Path, share: float, seed: int, to: Path) -> Path:
    """The recording, less some of its kernels, chosen by chance."""
    lost = random.Random(f"{path.name} {share} {seed}")
    if path.suffix == ".sqlite":
        shutil.copyfile(path, to / path.name)
        with sqlite3.connect(to / path.name) as database:
            table = "CUPTI_ACTIVITY_KIND_KERNEL"
            ids = [row for row in database.execute(f"SELECT rowid FROM {table}") if lost.random() < share]
            database.executemany(f"DELETE FROM {table} WHERE rowid = ?", ids)
        return to / path.name
    head, events, tail = pieces(path)
    kept = (text for is_kernel, text in events if not is_kernel or lost.random() >= share)
    written = to / path.name.removesuffix(".gz")
    written.write_text(head + ", ".join(kept) + tail)
    return written


@functools.lru_cache(maxsize=1)
def pieces(path: Path) -> tuple[str, list[tuple[bool, str]], str]:
    """A trace as JSON: what stands before its events, each of them and whether it is a kernel, and what stands behind."""
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data, strict=False)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    texts = [(str(one.get("cat")).lower() == "kernel", json.dumps(one)) for one in events]
    events[:] = ["the events"]
    head, tail = json.dumps(trace).split('"the events"')
    return head, texts, tail


# The rule is blind to graphs: a launch of 20 kernels that has lost some still has its kernels.
BLIND = "h200-graph-replays.kineto.json.gz"
LONG = [path for path in WHOLE if path.name not in ("a100-saxpy-double-rows.nsys.sqlite", BLIND)]
SEEDS = {0.1: (0, 1), 0.45: (0,), 0.8: (0,)}  # of few kernels that are lost, chance tells most


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_of_lost_kernels_no_idle_time_is_made(path, tmp_path):
    for share, seed in ((share, seed) for share, seeds in SEEDS.items() for seed in seeds):
        own = tmp_path / f"{share} {seed}"
        own.mkdir()
        text, answer = imported(own, without_kernels(path, share, seed, own))
        for job in answer["jobs"]:
            assert (job["verdict"], "gpu_idle_share" in job) == ("not known", False), (share, seed)
            assert job["unknown_share"] == pytest.approx(share, rel=0.4) or job["unknown_share"] > share
        said = " ".join(text.split())
        if len(answer["jobs"]) == 1:
            assert "lost or impossible" in said and "larger buffers" in said
        else:
            assert "GPU idle" not in said and "No cause is told that rests on idle time" in said
        assert not IDLE_CAUSES & {finding["code"] for finding in answer["findings"]}, (share, seed)
