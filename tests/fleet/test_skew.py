"""`device/skew` on fake nodes of eight GPUs, with one GPU, and on the host's own CPUs."""

import json
import os
import subprocess
import sys

import pytest
import skewed_nodes
from shipped import NODES, UNTRACED, launchgap, table

ONE_THREAD = "^device/skew/.*threads:one"


def measured(folder, node, *more, filter=ONE_THREAD, devices="gpu", code=0):
    what = ("--devices", devices, "--profile", "quick", *UNTRACED, "--filter", filter, "--no-report", *more)
    launchgap("run", *what, "-o", folder, node=node, code=code)
    return table(folder / "skew.csv"), table(folder / "findings.csv")


@pytest.mark.compares_times
@pytest.mark.parametrize("kind", ["quiet", "device", "turns", "host"])
def test_who_is_late_is_told(tmp_path, kind):
    """tests/experiments/skew_truth.py counts how often; once is a test."""
    (tmp_path / "node.json").write_text(json.dumps(skewed_nodes.node(kind)))
    rows, findings = measured(tmp_path / "s", tmp_path / "node.json")
    found = skewed_nodes.claims(rows)
    assert len(found) == 2 and len(rows) == 16
    for claim in found.values():
        assert claim == skewed_nodes.expected(kind)
    said = [f for f in findings if f["code"].startswith("skew-")]
    code = {"quiet": "skew-even", "device": "skew-late", "turns": "skew-turns", "host": "skew-late"}[kind]
    assert [f["code"] for f in said] == [code, code]
    if kind == "host":
        assert all("its calls take longer" in f["sentence"] for f in said)


def test_what_is_said_of_a_late_device_are_its_numbers(tmp_path):
    (tmp_path / "node.json").write_text(json.dumps(skewed_nodes.node("device")))
    rows, _ = measured(tmp_path / "s", tmp_path / "node.json", filter="^device/skew/work:compute/threads:one")
    late = next(row for row in rows if row["late"] == "true")
    assert float(late["late_ns"]) == pytest.approx(130_000, rel=0.5)
    assert float(late["uncertainty_ns"]) < 20_000
    assert float(late["relative_score"]) == pytest.approx(1.9 / 2.03, abs=0.05)
    assert float(late["together"]) == pytest.approx(1, abs=0.1)
    assert sum(int(row["last"]) for row in rows) == int(rows[0]["steps"])


def test_one_gpu_runs_and_means_nothing(tmp_path):
    rows, findings = measured(tmp_path / "s", NODES / "one_a100.json")
    assert {row["skew_valid"] for row in rows} == {"false"}
    assert not any(row["cause"] or row["late"] == "true" for row in rows)
    assert "skew-one" in {f["code"] for f in findings}


def test_a_thread_for_each_gpu_needs_a_cpu_for_each(tmp_path):
    if len(os.sched_getaffinity(0)) >= skewed_nodes.GPUS:
        pytest.skip("there are enough CPUs")
    (tmp_path / "node.json").write_text(json.dumps(skewed_nodes.node("quiet")))
    what = ("--devices", "gpu", "--profile", "quick", *UNTRACED, "--no-report")
    launchgap("run", *what, "--filter", "^device/skew", "-o", tmp_path / "s", node=tmp_path / "node.json", code=0)
    reasons = {row["reason"] for row in table(tmp_path / "s" / "summary.csv") if row["status"] == "unsupported"}
    assert any("need 8 CPUs" in reason for reason in reasons)


def test_a_gpu_that_fails_costs_its_case_alone(tmp_path):
    node = skewed_nodes.node("quiet")
    node["faults"] = [{"device": 5, "library": "cuda", "call": "cuEventRecord", "after": 40, "code": 719}]
    (tmp_path / "node.json").write_text(json.dumps(node))
    what = ("--devices", "gpu", "--profile", "quick", "--runs", "1", *UNTRACED, "--no-report")
    done = launchgap(
        "run", *what, "--filter", f"{ONE_THREAD}|^launch/null/api:driver", "-o", tmp_path / "s", node=tmp_path / "node.json"
    )
    assert done.returncode in (0, 3)
    rows = table(tmp_path / "s" / "summary.csv")
    assert any(row["status"] == "ok" and row["benchmark"] == "launch/null" for row in rows)
    assert any(row["status"] == "failed" and row["benchmark"] == "device/skew" for row in rows)


@pytest.mark.compares_times
def test_a_busy_neighbour_of_a_cpu_is_named(tmp_path):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("there is one CPU")
    busy = cpus[-1]
    code = f"import os; os.sched_setaffinity(0, {{{busy}}})\nwhile True: pass"
    neighbours = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        rows, findings = measured(tmp_path / "s", None, filter="^device/skew", devices="host")
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    late = [row["member"] for row in rows if row["late"] == "true"]
    assert late == [f"cpu{busy}"]
    [said] = [f for f in findings if f["code"] == "skew-late"]
    assert f"CPU {busy}" in said["sentence"] and "something else has the CPU" in said["sentence"]
