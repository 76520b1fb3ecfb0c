"""What the harness itself costs, held to the figures that docs/definitions.md gives."""

import json
import subprocess

import pytest
from shipped import BUILD


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    out = tmp_path_factory.mktemp("microbench") / "out.json"
    subprocess.run(
        [BUILD / "bin" / "launchgap-microbench", f"--benchmark_out={out}", "--benchmark_min_time=0.2"],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return {run["name"].split("/iterations")[0]: run for run in json.loads(out.read_text())["benchmarks"]}


@pytest.mark.parametrize("pair", ["clock_reads", "bare"])
def test_keeping_a_sample_of_three_metrics(figures, pair):
    kept = figures[f"loop/keep_three_metrics/{pair}"]["real_time"]
    google = figures[f"loop/google_manual_time/{pair}"]["real_time"]
    assert kept <= 1.5 * google


def test_writing_records(figures):
    assert figures["records/write"]["samples"] >= 5e6


def test_reading_and_summarising_ten_million_samples(figures):
    run = figures["records/read_and_summarise/10000000"]
    assert run["samples"] == 10e6
    assert run["real_time"] <= 10  # seconds
    assert run["peak_MiB"] <= 1024
