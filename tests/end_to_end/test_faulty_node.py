"""Eight GPUs of mixed generations, one with a sticky error and one that hangs: the rest is measured whole."""

import json

import pytest
from shipped import NODES, launchgap, records, table

FAULTY = NODES / "mixed_8_gpus_two_faulty.json"
ONE_OF_EACH = r"launch/null/.*idle|matmul.*size:256/type:fp|convolution.*conv5_1x1_2048/n:1/type:fp32|allocation.*bytes:256$"


@pytest.mark.compares_times
def test_one_sticky_error_and_one_hang_leave_everything_else_measured(run):
    _, session = run(ONE_OF_EACH, "--timeout", 3, runs=2, code=3, node=FAULTY, timeout=400, page=True)
    assert json.loads((session / "session.json").read_text())["state"] == "complete"
    assert (session / "report.html").stat().st_size > 10_000

    rows = table(session / "summary.csv")
    devices = {row["device_id"]: int(row["device_index"]) for row in table(session / "devices.csv")}
    assert sorted(devices.values()) == list(range(8))
    by_device = {index: [row for row in rows if devices[row["device_id"]] == index] for index in range(8)}

    for index in (0, 1, 2, 4, 6, 7):
        assert {row["status"] for row in by_device[index]} <= {"ok", "unsupported"}, index
        for row in by_device[index]:
            assert row["status"] == "ok" or row["reason"], "unsupported says why"
            assert row["status"] != "ok" or row["runs"] == "2"
        assert {row["benchmark"] for row in by_device[index] if row["status"] == "ok"} >= {
            "launch/null",
            "matmul/library",
            "allocation/latency",
        }

    sticky = [row for row in by_device[3] if row["status"] == "failed"]
    assert sticky and all("allocator:pool" in row["params"] for row in sticky)
    assert all("cuMemAllocAsync" in row["reason"] and "700" in row["reason"] for row in sticky)
    assert all(
        (row["status"] in ("ok", "unsupported") and row["n"] != "0") or row["status"] == "unsupported"
        for row in by_device[3]
        if "allocator:pool" not in row["params"]
    )

    hung = [row for row in by_device[5] if row["status"] == "failed"]
    assert hung and all(row["benchmark"] == "matmul/library" and "hung" in row["reason"] for row in hung)
    assert {row["status"] for row in by_device[5] if row["benchmark"] != "matmul/library"} <= {"ok", "unsupported"}

    assert all(row["simulated"] == "true" for row in rows)
    events = [record for file in records(session).values() for record in file if record["record"] == "event"]
    sticky_event = next(event for event in events if event["event"] == "library-error" and event["sticky"])
    assert (sticky_event["library"], sticky_event["call"], sticky_event["code"]) == ("CUDA driver", "cuMemAllocAsync", 700)
    assert any(event["event"] == "worker-hung" for event in events)


def test_a_worker_that_crashes_while_it_ends_has_measured_all_the_same(run, make_node):
    node = make_node(
        faults=[{"device": 0, "library": "cuda", "call": "cuDevicePrimaryCtxRelease_v2", "after": 0, "abort": True}]
    )
    done, _ = run("launch/null.*idle", code=3, node=node)
    assert "SIGABRT" in done.stderr


def test_after_a_sticky_error_the_rest_is_measured_even_if_teardown_would_crash(run, make_node):
    node = make_node(
        faults=[
            {"device": 0, "library": "cuda", "call": "cuMemAllocAsync", "after": 3, "code": 700},
            {"device": 0, "library": "cuda", "call": "cuStreamDestroy_v2", "after": 400, "abort": True},
        ]
    )
    _, session = run("allocation.*bytes:(256|65536)$", code=3, node=node)
    status = {row["params"]: row["status"] for row in table(session / "summary.csv")}
    assert status == {
        "allocator:direct/bytes:256": "ok",
        "allocator:direct/bytes:65536": "ok",
        "allocator:pool/bytes:256": "failed",
        "allocator:pool/bytes:65536": "failed",
    }


def test_a_gpu_that_cannot_be_opened_is_listed_with_the_reason(run, make_node):
    node = make_node(
        devices=2, faults=[{"device": 1, "library": "cuda", "call": "cuDevicePrimaryCtxRetain", "after": 0, "code": 46}]
    )
    _, session = run("launch/null.*idle", code=3, node=node)
    good, bad = sorted(table(session / "devices.csv"), key=lambda row: row["device_index"])
    assert good["usable"] == "true" and bad["usable"] == "false"
    assert "cuDevicePrimaryCtxRetain" in bad["reason"] and "46" in bad["reason"]
    assert {row["device_id"] for row in table(session / "summary.csv") if row["status"] == "ok"} == {good["device_id"]}


def test_a_library_that_refuses_one_call_fails_one_case(run, make_node):
    node = make_node(faults=[{"device": 0, "library": "cublas", "call": "cublasGemmEx", "after": 0, "code": 14, "times": 1}])
    _, session = run("matmul.*size:256", code=3, node=node)
    rows = table(session / "summary.csv")
    failed = {row["params"] for row in rows if row["status"] == "failed"}
    assert len(failed) == 1
    assert all("cublasGemmEx" in row["reason"] and "cuBLAS" in row["reason"] for row in rows if row["status"] == "failed")


def test_a_driver_that_cannot_be_initialised_leaves_the_host(run, make_node):
    node = make_node(faults=[{"device": None, "library": "cuda", "call": "cuInit", "after": 0, "code": 803}])
    done, session = run("launch/null.*idle", devices="all", node=node)  # no GPU was asked for by name
    assert "does not match the kernel module" in done.stderr
    assert [row["backend"] for row in table(session / "devices.csv")] == ["host"]


@pytest.mark.parametrize("selection", ["all", "gpu"])
@pytest.mark.parametrize(
    "fault",
    [
        {"call": "cuDeviceGetName", "code": 2},
        {"call": "cuDeviceGetUuid_v2", "code": 2},
        {"call": "cuDeviceGet", "abort": True},
        {"call": "cuDeviceGetName", "abort": True},
        {"call": "cuDeviceGetAttribute", "abort": True},
        {"call": "cuDeviceTotalMem_v2", "abort": True},
    ],
    ids=lambda fault: " ".join(map(str, fault.values())),
)
def test_a_gpu_that_cannot_be_listed_hides_no_other(run, make_node, fault, selection):
    node = make_node(devices=2, faults=[{"device": 0, "library": "cuda", "after": 0} | fault])
    done, session = run("launch/null.*idle", devices=selection, code=3, node=node)
    gpus = {row["device_index"]: row for row in table(session / "devices.csv") if row["backend"] == "cuda"}
    assert (gpus["0"]["usable"], gpus["1"]["usable"]) == ("false", "true")
    call = fault["call"].removesuffix("_v2")
    assert call in gpus["0"]["reason"] and ("SIGABRT" in gpus["0"]["reason"]) == ("abort" in fault)
    assert "not measured: " in done.stderr and call in done.stderr
    rows = [row for row in table(session / "summary.csv") if row["device_id"] == gpus["1"]["device_id"]]
    assert {row["status"] for row in rows} == {"ok"}
    listed = launchgap("list", "devices", node=node)
    assert listed.returncode == 0 and call in listed.stdout


def test_gpus_that_are_there_and_cannot_be_listed_are_a_failure(run, make_node):
    node = make_node(faults=[{"device": 0, "library": "cuda", "call": "cuDeviceGetName", "after": 0, "code": 2}])
    run("launch/null.*idle", code=3, node=node)  # 77 is for a machine without a GPU
