"""launchgap export --format google-benchmark: Google Benchmark's own compare.py reads two exported sessions."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from recording_files import launches, write_trace
from shipped import launchgap, table

COMPARE = Path("/usr/share/benchmark/compare.py")  # of Debian's libbenchmark-tools


def exported(session, output):
    done = launchgap("export", session, "--format", "google-benchmark", "-o", output, code=0)
    assert (done.stdout, done.stderr) == (f"{output}\n", "")
    return json.loads(output.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Two of the host, three processes each."""
    folder = tmp_path_factory.mktemp("sessions")
    for name in "ab":
        launchgap(
            "run", "--devices", "host", "--runs", 3, "--filter", "launch/null.*idle|matmul/library/size:256/type:fp32",
            "--no-report", "--no-observer-effect", "-o", folder / name, LAUNCHGAP_LOCK_DIR=str(folder), code=0,
        )  # fmt: skip
    return folder / "a", folder / "b"


def test_each_process_is_a_repetition_with_its_median(sessions, tmp_path):
    document = exported(sessions[0], tmp_path / "a.json")
    launchgap("export", sessions[0], "-o", tmp_path / "csv")
    medians = {}
    for row in table(tmp_path / "csv" / "samples.csv"):
        if row["arm"] == "plain" and row["metric"].endswith("_ns"):
            name = f"{row['case']}/{row['metric']}"
            medians.setdefault(name, {}).setdefault(int(row["replicate"]), []).append(float(row["value"]))
    assert {"launch/null/api:queue/mode:idle/api_ns", "launch/null/api:queue/mode:idle/roundtrip_ns"} <= set(medians)
    runs = [b for b in document["benchmarks"] if b["run_type"] == "iteration"]
    assert {b["name"] for b in runs} == set(medians)
    assert not any("tflops" in name for name in medians), "only times"
    for name, by_run in medians.items():
        mine = [b for b in runs if b["name"] == name]
        assert [b["repetition_index"] for b in mine] == [0, 1, 2]
        for benchmark, samples in zip(mine, by_run.values(), strict=True):
            assert benchmark["real_time"] == benchmark["cpu_time"] == pytest.approx(statistics.median(samples))
            assert benchmark["iterations"] == len(samples) and benchmark["time_unit"] == "ns"
        own = [statistics.median(samples) for samples in by_run.values()]
        aggregates = {b["aggregate_name"]: b for b in document["benchmarks"] if b["run_name"] == name and b not in mine}
        assert {k: b["name"] for k, b in aggregates.items()} == {
            k: f"{name}_{k}" for k in ("mean", "median", "stddev", "cv")
        }
        assert aggregates["mean"]["real_time"] == pytest.approx(statistics.mean(own))
        assert aggregates["stddev"]["real_time"] == pytest.approx(statistics.stdev(own))
        assert aggregates["cv"]["real_time"] == pytest.approx(statistics.stdev(own) / statistics.mean(own))
        assert {b["repetitions"] for b in aggregates.values()} == {3}
    context = document["context"]
    assert context["executable"] == "launchgap" and context["num_cpus"] > 0 and context["caches"] == []
    assert context["launchgap_devices"][0]["uuid"].startswith("host-")


def test_compare_py_compares_two_sessions(sessions, tmp_path):
    if not COMPARE.exists():
        if os.environ.get("CI"):
            pytest.fail("libbenchmark-tools is required here; scripts/setup --dev installs it")
        pytest.skip("libbenchmark-tools is not installed")
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    medians = [
        {x["name"]: x["real_time"] for x in exported(session, path)["benchmarks"]}
        for session, path in zip(sessions, (a, b), strict=True)
    ]
    done = subprocess.run(
        [sys.executable, COMPARE, "--no-color", "benchmarks", a, b], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("launch", "matmul"))}
    name = "launch/null/api:queue/mode:idle/api_ns_median"
    change, _, old, new, *_ = map(float, rows[name])
    assert (old, new) == pytest.approx((medians[0][name], medians[1][name]), abs=1)
    assert change == pytest.approx(medians[1][name] / medians[0][name] - 1, abs=2e-4)
    assert re.search(r"api_ns_pvalue .*U Test, Repetitions: 3 vs 3", done.stdout)


def test_of_several_devices_each_name_says_which(run, make_node, tmp_path):
    _, session = run("launch/null.*idle", node=make_node(devices=2))
    document = exported(session, tmp_path / "a.json")
    devices = [device["uuid"] for device in document["context"]["launchgap_devices"]]
    names = [b["name"] for b in document["benchmarks"]]
    assert len(devices) == 2 and len(names) == len(set(names))
    assert {name.rpartition("/device:")[2] for name in names} == set(devices)
    assert {b["run_type"] for b in document["benchmarks"]} == {"iteration"}, "one process has no spread"


def test_a_recording_is_exported_too(tmp_path):
    launchgap("import", write_trace(tmp_path / "a.json", launches(30)), "-o", tmp_path / "s", code=0)
    document = exported(tmp_path / "s", tmp_path / "out.json")
    assert any(b["name"].startswith("recorded/launch/") for b in document["benchmarks"])


def test_what_cannot_be_exported_is_said(session, tmp_path):
    there = tmp_path / "there.json"
    there.write_text("mine")
    for path in (session / "records").iterdir():
        path.unlink()
    done = launchgap("export", session, "--format", "google-benchmark", "-o", there)
    assert done.returncode == 2 and "no times" in done.stderr
    assert there.read_text() == "mine"
    done = launchgap("export", session, "--format", "google-benchmark", "-o", tmp_path)
    assert done.returncode == 2 and "is a folder" in done.stderr
