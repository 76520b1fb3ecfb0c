"""What docs/guide-investigation.md shows is what its commands say."""

import json

import pytest
from shipped import ROOT, UNTRACED, launchgap, table

GUIDE = (ROOT / "docs/guide-investigation.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide") / "my-job"
    recording = ROOT / "tests/recordings/a100-graphs.kineto.json.gz"
    done = launchgap("import", recording, "-o", folder, code=0)
    return done, folder


def test_the_odd_number_is_there(job):
    done, _ = job
    answer, tables, _ = done.stdout.partition("Tables: ")
    assert answer.startswith("a100-graphs.kineto.json.gz: held up.") and tables
    assert answer in GUIDE


def test_the_slowest_samples_are_those_and_waited_behind_as_much(job, tmp_path):
    _, folder = job
    assert launchgap("export", folder, "-o", tmp_path / "csv").returncode == 0
    rows = [row for row in table(tmp_path / "csv/slow_samples.csv") if row["case"] == "recorded/launch/stream:busy"]
    assert "\n".join(f"{row['sample']} {row['value']} {row['waiting']}" for row in rows) in GUIDE


def test_the_gpu_is_idle_for_so_long_with_work_queued(job):
    _, folder = job
    values = {
        (row["benchmark"], row["metric"]): float(row["p50"])
        for row in table(folder / "summary.csv")
        if row["benchmark"] in ("recorded/job", "recorded/step")
    }
    job_ns = values["recorded/job", "step_ns"]
    assert f"idle for {values['recorded/job', 'gpu_idle_share']:.0%}".replace("%", " %") in GUIDE
    assert f"for {values['recorded/job', 'idle_queued_ns'] / job_ns:.0%} it has work".replace("%", " %") in GUIDE


def replayed(session, folder, filter="pattern.*eager$", runs=1):
    """The origin of the pattern, its operations, and its results."""
    launchgap(
        *("run", "--pattern", session, "--devices", "host", "--runs", str(runs), *UNTRACED, "--filter", filter),
        *("--no-report", "-o", folder),
        code=0,
    )
    (origin,) = json.loads((folder / "session.json").read_text())["patterns"]
    return origin, table(folder / "patterns" / f"{origin['name']}.csv"), table(folder / "patterns.csv")


def test_the_step_that_is_done_again_leaves_out_as_many_waits(job, tmp_path):
    """What is left out is said of the pattern; to do it takes the host seconds, and a graph, which it cannot make, none."""
    origin, _, _ = replayed(f"{job[1]}:552", tmp_path / "replay", filter="pattern.*graph$")
    assert "waits of streams for an event that is not told, left out: 85" in origin["remarks"]


@pytest.mark.compares_times
def test_the_step_of_resnet_is_bound_by_its_program_which_brings_the_batch(tmp_path):
    launchgap("import", ROOT / "tests/recordings/v100-resnet50.kineto.json.gz", "-o", tmp_path / "job", code=0)
    origin, operations, (row,) = replayed(tmp_path / "job", tmp_path / "replay", runs=3)
    assert not origin["remarks"]
    assert f"{len(operations):,} operations on one stream, {origin['recorded_ns'] / 1e6:.1f} ms when it" in GUIDE
    assert row["streams"] == "1"
    assert f"the GPU waits {int(operations[0]['gap_ns']) / 1e6:.1f} ms for the next batch" in GUIDE
    assert row["bound_by"] == "program"
