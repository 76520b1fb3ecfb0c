"""What `launchgap import` answers of each recording: verdict, idle share and where the launch time goes, on one screen.

The figures are compared with those of launch_time.py, which reads the files without launchgap."""

from __future__ import annotations

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
OWN = sorted(path for path in HERE.iterdir() if path.name.endswith((".sqlite", ".json", ".json.gz")))
RANKS = sorted((SHARED / "ranks").glob("*.*.*")) if SHARED.exists() else []
WHOLE = [*OWN, *(path for path in RANKS if path.name.endswith((".sqlite", ".gz")))]
IDLE_CAUSES = {
    "wait-stalls", "allocation-stalls", "context-creation", "program-pauses", "long-call", "late-kernels", "slow-host",
    "short-kernels", "launch-gaps", "queued-work-waits",
}  # fmt: skip


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
    assert len(lines) <= 11, "the page has a line too"
    assert all(len(line) <= 100 for line in lines if not line.startswith(("Tables:", "GPU ", "allocations")))
    found = answers(path)
    assert len(answer["jobs"]) == len(found)
    by_launches = {
        sum(n for (_, what), n in parts.items() if what == "launches"): (parts, idle) for parts, idle in found.values()
    }
    assert len(by_launches) == len(found)
    for job in answer["jobs"]:
        assert job["verdict"] in text and job["unknown_share"] < 0.01
        parts, idle = by_launches[job["launches"]]
        assert job["gpu_idle_share"] == pytest.approx(idle, abs=1e-9)
        assert sum(part["share"] for part in job["tail"]) == pytest.approx(1, abs=1e-9)
        assert sum(part["launches"] for part in job["tail"]) == job["launches"]
        said = {(part["cause"], what): part[what] for part in job["tail"] for what in ("launches", "time_ns")}
        assert said == dict(parts)
    idle_shares = [f"{100 * job['gpu_idle_share']:.2g} %" for job in answer["jobs"]]
    assert all(share in text for share in idle_shares)
    assert "usual calls" in text


# --- recordings that lost kernels ---


def without_kernels(path: Path, share: float, to: Path) -> Path:
    """The recording, less some of its kernels, chosen by chance."""
    lost = random.Random(f"{path.name} {share}")
    if path.suffix == ".sqlite":
        shutil.copy(path, to / path.name)
        with sqlite3.connect(to / path.name) as database:
            table = "CUPTI_ACTIVITY_KIND_KERNEL"
            ids = [row for row in database.execute(f"SELECT rowid FROM {table}") if lost.random() < share]
            database.executemany(f"DELETE FROM {table} WHERE rowid = ?", ids)
        return to / path.name
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data, strict=False)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    events[:] = [one for one in events if str(one.get("cat")).lower() != "kernel" or lost.random() >= share]
    written = to / path.name.removesuffix(".gz")
    written.write_text(json.dumps(trace))
    return written


LONG = [path for path in OWN if path.name != "a100-saxpy-double-rows.nsys.sqlite"]


@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_of_lost_kernels_no_idle_time_is_made(path, tmp_path):
    for share in (0.1, 0.45, 0.8):
        own = tmp_path / str(share)
        own.mkdir()
        text, answer = imported(own, without_kernels(path, share, own))
        (job,) = answer["jobs"]
        assert (job["verdict"], "gpu_idle_share" in job) == ("not known", False), share
        assert job["unknown_share"] == pytest.approx(share, rel=0.4) or job["unknown_share"] > share
        assert "lost or impossible" in " ".join(text.split()) and "larger buffers" in " ".join(text.split())
        assert not IDLE_CAUSES & {finding["code"] for finding in answer["findings"]}, share
