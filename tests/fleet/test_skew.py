"""`device/skew` on fake nodes of eight GPUs, with one GPU, and on the host's own CPUs."""

import json
import os
import subprocess
import sys

import pytest
import skewed_nodes
from shipped import NODES, UNTRACED, launchgap, table

ONE_THREAD = "^device/skew/.*threads:one"
COPIES = "^device/skew/work:copy/threads:one/collective:none"
ALONE, WITH_SUM = (f"^device/skew/work:compute/threads:one/collective:{sum}" for sum in ("none", "nccl"))


def measured(folder, node, *more, filter=ONE_THREAD, devices="gpu", code=0, **environment):
    what = ("--devices", devices, "--profile", "quick", *UNTRACED, "--filter", filter, "--no-report", *more)
    launchgap("run", *what, "-o", folder, node=node, code=code, **environment)
    return table(folder / "skew.csv"), table(folder / "findings.csv")


def described(folder, node):
    (folder / "node.json").write_text(json.dumps(node))
    return folder / "node.json"


def of_cases(folder):
    return {f"{row['benchmark']}/{row['params']}": (row["status"], row["reason"]) for row in table(folder / "summary.csv")}


@pytest.mark.compares_times
@pytest.mark.parametrize("kind", ["quiet", "device", "turns", "host"])
def test_who_is_late_is_told(tmp_path, kind):
    """tests/experiments/skew_truth.py counts how often; once is a test."""
    node = described(tmp_path, skewed_nodes.node(kind))
    rows, findings = measured(tmp_path / "s", node, filter=ONE_THREAD.replace(".*", "work:compute/"))
    cases = 2
    if kind == "device":  # copies too, once: each fake GPU makes them for real
        copies = measured(tmp_path / "copies", node, "--runs", "1", filter=COPIES)
        rows, findings, cases = rows + copies[0], findings + copies[1], 3
    found = skewed_nodes.claims(rows)
    assert len(found) == cases and len(rows) == cases * skewed_nodes.GPUS
    for claim in found.values():
        assert claim == skewed_nodes.expected(kind)
    said = [f for f in findings if f["code"].startswith("skew-")]
    code = {"quiet": "skew-even", "device": "skew-late", "turns": "skew-turns", "host": "skew-late"}[kind]
    assert [f["code"] for f in said] == cases * [code]
    if kind == "host":
        assert all("its calls take longer" in f["sentence"] for f in said)


@pytest.mark.compares_times
def test_what_is_said_of_a_late_device_are_its_numbers(tmp_path):
    rows, _ = measured(tmp_path / "s", described(tmp_path, skewed_nodes.node("device")), filter=ALONE)
    late = next(row for row in rows if row["late"] == "true")
    assert float(late["late_ns"]) == pytest.approx(130_000, rel=0.5)
    assert float(late["uncertainty_ns"]) < 20_000
    assert float(late["relative_score"]) == pytest.approx(1.9 / 2.03, abs=0.05)
    assert float(late["together"]) == pytest.approx(1, abs=0.1)
    assert sum(int(row["last"]) for row in rows) == int(rows[0]["steps"])


@pytest.mark.compares_times
def test_in_a_sum_the_others_wait_for_the_late_device(tmp_path):
    rows, _ = measured(tmp_path / "s", described(tmp_path, skewed_nodes.node("device")), filter=WITH_SUM)
    waits = {row["member"]: float(row["waits_ns"]) for row in rows}
    assert waits.pop(skewed_nodes.uuid(skewed_nodes.LATE)) < 5_000
    assert all(wait == pytest.approx(130_000, rel=0.5) for wait in waits.values())
    late = next(row for row in rows if row["late"] == "true")
    assert float(late["late_ns"]) == pytest.approx(130_000, rel=0.5)
    # So long a sum takes by itself.
    assert float(late["uncertainty_ns"]) == pytest.approx(12_000, rel=0.5)


def test_without_nccl_a_case_says_what_brings_it(tmp_path):
    measured(tmp_path / "s", NODES / "one_a100.json", "--runs", "1", LAUNCHGAP_NCCL="/nowhere/libnccl.so.2")
    for case, (status, reason) in of_cases(tmp_path / "s").items():
        assert status == ("unsupported" if "nccl" in case else "ok")
        assert ("pip install nvidia-nccl-cu13" in reason) == ("nccl" in case)


def test_where_a_launch_waits_for_its_kernel_nothing_is_summed(tmp_path):
    node = skewed_nodes.node("quiet") | {"serialised": True}
    measured(tmp_path / "s", described(tmp_path, node), filter=WITH_SUM, NV_NSIGHT_INJECTION_PORT_BASE="1")
    [(status, reason)] = of_cases(tmp_path / "s").values()
    assert status == "unsupported" and "when its kernel has ended" in reason


@pytest.mark.parametrize("fault", [{"code": 3, "times": 1}, {"wrong_byte": 0}], ids=["fails", "is wrong"])
def test_a_sum_that_fails_or_is_wrong_is_told(tmp_path, fault):
    node = skewed_nodes.node("quiet")
    node["faults"] = [{"device": 5, "library": "nccl", "call": "ncclAllReduce", "after": 30} | fault]
    measured(
        tmp_path / "s", described(tmp_path, node), "--runs", "1", filter=ONE_THREAD.replace(".*", "work:compute/"), code=3
    )
    for case, (status, reason) in of_cases(tmp_path / "s").items():
        assert status == ("failed" if "nccl" in case else "ok")
        if "nccl" in case:
            assert "ncclAllReduce" in reason if "code" in fault else "the sum of all devices is" in reason


def test_a_thread_that_fails_keeps_no_other_waiting_in_the_sum(tmp_path):
    """What it does not give the others would wait for for ever."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU")
    node = skewed_nodes.node("quiet")
    node["devices"] = node["devices"][:2]
    node["faults"] = [{"device": 1, "library": "nccl", "call": "ncclAllReduce", "after": 30, "code": 3}]
    filter = "^device/skew/work:compute/threads:each/collective:nccl"
    measured(tmp_path / "s", described(tmp_path, node), "--runs", "1", "--timeout", "60", filter=filter, code=3)
    [(status, reason)] = of_cases(tmp_path / "s").values()
    assert status == "failed" and "ncclAllReduce" in reason


def test_one_gpu_runs_and_means_nothing(tmp_path):
    rows, findings = measured(tmp_path / "s", NODES / "one_a100.json", "--runs", "1")
    assert {row["skew_valid"] for row in rows} == {"false"}
    assert not any(row["cause"] or row["late"] == "true" for row in rows)
    assert "skew-one" in {f["code"] for f in findings}


def test_a_thread_for_each_gpu_needs_a_cpu_for_each(tmp_path):
    if len(os.sched_getaffinity(0)) >= skewed_nodes.GPUS:
        pytest.skip("there are enough CPUs")
    measured(tmp_path / "s", described(tmp_path, skewed_nodes.node("quiet")), filter="^device/skew/.*threads:each")
    cases = of_cases(tmp_path / "s").values()
    assert cases and all(status == "unsupported" and "need 8 CPUs" in reason for status, reason in cases)


def test_a_gpu_that_fails_costs_its_case_alone(tmp_path):
    node = skewed_nodes.node("quiet")
    node["faults"] = [{"device": 5, "library": "cuda", "call": "cuEventRecord", "after": 40, "code": 719}]
    described(tmp_path, node)
    what = ("--devices", "gpu", "--profile", "quick", "--runs", "1", *UNTRACED, "--no-report")
    done = launchgap(
        "run",
        *what,
        "--filter",
        f"{ALONE}|{WITH_SUM}|^launch/null/api:driver",
        "-o",
        tmp_path / "s",
        node=tmp_path / "node.json",
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
