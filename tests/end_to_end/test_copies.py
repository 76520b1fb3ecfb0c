"""`ceiling/copy`: how fast memory is copied, what is wrong with a copy, and the rate beside the published bandwidth."""

import pytest
from shipped import records, table

WITHIN = "ceiling/copy/direction:device_to_device"
SMALL = "^ceiling/copy/.*bytes:67108864"
STEADY = {"process_factor_sigma": 0, "kernel_ns": {"constant": 0}}


@pytest.fixture
def copy(run):
    def measure(node, filter_=SMALL, code=0):
        return run(filter_, "--profile", "nightly", code=code, node=node)[1]

    return measure


def rates(session):
    """By direction and memory."""
    return {
        tuple(part.partition(":")[2] for part in row["params"].split("/")[:2]): float(row["p50"])
        for row in table(session / "summary.csv")
        if row["metric"] == "copy_gbs"
    }


def test_a_copy_within_the_device_counts_twice_and_one_over_the_link_once(copy, make_node):
    session = copy(make_node(bandwidth_gbs=2000, link_gbs=20, **STEADY))
    found = rates(session)
    assert found["device_to_device", "device"] == pytest.approx(2000, rel=0.01)
    for direction in ("host_to_device", "device_to_host"):
        assert found[direction, "pinned"] == pytest.approx(20, rel=0.01)
    assert len(found) == 5


@pytest.mark.compares_times
def test_pageable_memory_is_as_slow_as_the_drivers_way_through_pinned_memory(copy, make_node):
    session = copy(make_node(link_gbs=20, pageable_gbs=1, **STEADY), filter_=SMALL.replace("/.*", "/.*pageable/"))
    found = rates(session)
    assert set(found) == {("host_to_device", "pageable"), ("device_to_host", "pageable")}
    assert all(0.8 < rate < 1.05 for rate in found.values()), found
    (method,) = {r["method"] for file in records(session).values() for r in file if r.get("method")}
    assert "not from behind a gate, since the call itself waits" in method


@pytest.mark.parametrize("copies", ["nothing", "half", "first only"])
def test_what_was_not_copied_is_a_wrong_result(copy, make_node, copies):
    session = copy(make_node(copies=copies), code=3)
    rows = table(session / "summary.csv")
    assert len({row["params"] for row in rows}) == 5
    for row in rows:
        assert row["status"] == "failed", row
        assert "that were copied is" in row["reason"] and row["reason"].endswith("is right"), row
    # Half of it leaves the other half as it was before: nothing is right from there on.
    if copies == "half":
        assert all("byte 33554432 of 67108864" in row["reason"] for row in rows)


def test_a_copy_that_fails_is_a_failed_case(copy, make_node):
    fault = {"library": "cuda", "call": "cuMemcpyDtoDAsync_v2", "code": 1, "after": 1, "times": 1}
    session = copy(make_node(faults=[fault]), code=3, filter_=WITHIN + ".*67108864")
    (row,) = table(session / "summary.csv")
    assert row["status"] == "failed" and "cuMemcpyDtoDAsync_v2" in row["reason"], row


def test_what_does_not_fit_is_skipped_with_what_it_needs_and_what_is_free(copy, make_node):
    session = copy(make_node(memory_bytes=400 << 20), filter_=WITHIN)
    status = {row["params"].rpartition(":")[2]: row for row in table(session / "summary.csv")}
    assert status["67108864"]["status"] == "ok"
    skipped = status["268435456"]
    assert skipped["status"] == "skipped" and "536870912 bytes" in skipped["reason"], skipped
    assert "are free" in skipped["reason"]


def test_the_rate_is_beside_the_published_bandwidth(copy, make_node):
    session = copy(make_node(bandwidth_gbs=1800, **STEADY), filter_=WITHIN)
    by_bytes = {row["case"].rpartition(":")[2]: row for row in table(session / "ceilings.csv")}
    large = by_bytes["268435456"]
    assert float(large["copy_gbs"]) == pytest.approx(1800, rel=0.01)
    assert large["published_gbs"] == "2039" and large["verdict"] == "possible"
    assert float(large["published_share"]) == pytest.approx(1800 / 2039, rel=0.01)
    assert large["tflops"] == "" and large["published_tflops"] == ""
    assert by_bytes["67108864"]["verdict"] == "no ceiling", "the cache of 40 MiB may hold a part of it"


def test_a_rate_above_the_published_bandwidth_is_impossible(copy, make_node):
    session = copy(make_node(bandwidth_gbs=2500, **STEADY), filter_=WITHIN + ".*268435456")
    (row,) = table(session / "ceilings.csv")
    assert row["verdict"] == "impossible" and "Less was copied than is counted" in row["causes"]
    assert {row["impossible"] for row in table(session / "summary.csv")} == {"true"}
    (finding,) = [row for row in table(session / "findings.csv") if row["code"] == "impossible-rate"]
    assert "times the published bandwidth of the memory, 2.04 TB/s" in finding["evidence"]


def test_a_quick_session_copies_nothing(run, make_node):
    done, _ = run("^ceiling/copy", runs=None, code=2, node=make_node())
    assert "no case passes" in done.stderr


def test_the_host_copies_within_its_one_memory(run):
    _, session = run(SMALL, "--profile", "nightly")
    assert set(rates(session)) == {("device_to_device", "device")}
    (row,) = table(session / "ceilings.csv")
    assert row["verdict"] == "no ceiling" and float(row["copy_gbs"]) > 0 and row["published_gbs"] == ""
