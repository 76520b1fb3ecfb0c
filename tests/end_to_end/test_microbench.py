"""What the harness itself costs, held to the figures that docs/definitions.md gives."""

import json
import subprocess

import pytest
from shipped import BUILD, NODES, environment

pytestmark = pytest.mark.compares_times


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


def test_decoding_and_joining_a_trace(figures):
    million, ten, hundred = (figures[f"trace/decode_and_join/{n}000000"] for n in (1, 10, 100))
    assert ten["records"] >= 10e6 and hundred["records"] >= 10e6
    assert hundred["records"] >= 0.8 * ten["records"], "linear to 100 million"
    assert hundred["peak_MiB"] <= million["peak_MiB"] + 16, "memory is that of the buffers in flight"


def test_tracing_costs_no_more_than_the_least_that_it_can():
    """The launches of a process that launchgap traces, and of one with a bare client of CUPTI."""
    done = subprocess.run(
        [BUILD / "bin" / "launchgap-tracing-cost"],
        env=environment(NODES / "one_a100.json"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ratio" in done.stdout
