"""What docs/guide-investigation.md shows is what its commands say."""

import pytest
from shipped import ROOT, launchgap, table

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
