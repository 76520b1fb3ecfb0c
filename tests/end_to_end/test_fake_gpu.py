"""What a fake GPU was told to take is what comes out."""

import json

import pytest
from shipped import NATIVE, NODES, SMALL, launchgap, records, table

CONSTANT = dict(
    call_ns={"constant": 40000}, launch_ns={"constant": 70000}, kernel_ns={"constant": 30000}, process_factor_sigma=0
)


def rows_of(session, benchmark, metric, part=""):
    return [
        row
        for row in table(session / "summary.csv")
        if row["benchmark"] == benchmark and row["metric"] == metric and part in row["params"]
    ]


@pytest.mark.compares_times(alone=True)
def test_launch_times_are_the_ones_of_the_node(run, make_node):
    _, session = run("launch/null", node=make_node(**CONSTANT))
    (api,) = rows_of(session, "launch/null", "api_ns")
    (round_trip,) = rows_of(session, "launch/null", "roundtrip_ns")
    (burst,) = rows_of(session, "launch/null", "per_launch_ns")
    # The median within 3 %; this machine's own noise is in the tail.
    assert float(api["p50"]) == pytest.approx(40_000, rel=0.03)
    assert float(round_trip["p50"]) == pytest.approx(100_000, rel=0.03)
    assert float(burst["p50"]) == pytest.approx(40_000, rel=0.03), "the call is longer than the kernel: it is the rate"
    assert api["n"] == str(5 * 2000) and api["runs"] == "1"


@pytest.mark.compares_times
def test_device_time_follows_the_rate_of_the_node_and_not_the_launches(run, make_node):
    node = make_node(**(CONSTANT | {"kernel_ns": {"constant": 0}, "tflops": {"fp32": 1.0}, "call_ns": {"constant": 3000}}))
    _, session = run("matmul.*size:256/type:fp32", node=node)
    (row,) = rows_of(session, "matmul/library", "tflops")
    assert float(row["p50"]) == pytest.approx(1.0, rel=0.02)


def test_every_family_runs_and_says_how(run):
    _, session = run(SMALL, node=NODES / "one_a100.json")
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows} == {"ok"}
    methods = {row["benchmark"]: row["method"] for row in rows}
    by_type = {
        row["params"].split("type:")[1].split("/")[0]: row["method"] for row in rows if row["benchmark"] == "matmul/library"
    }
    assert "cublasSgemm" in by_type["fp32"] and all("cublasGemmEx" in by_type[t] for t in ("tf32", "fp16", "bf16"))
    assert "cudnnConvolutionForward" in methods["convolution/library"]
    assert "CUDA driver API" in methods["launch/null"]
    assert {row["kernel_form"] for row in table(session / "runs.csv")} <= {"native", "portable"}
    (device,) = table(session / "devices.csv")
    assert "libcublas.so.13" in device["libraries"] and "libcudnn.so.9" in device["libraries"]


def test_the_portable_form_runs_where_the_native_one_has_nothing(run, make_node):
    _, session = run("launch/null.*idle", node=make_node(compute_capability="3.5", memory_pools=False))
    (row,) = table(session / "runs.csv")
    assert (row["kernel_form"], row["jit"]) == ("portable", "true")


@pytest.mark.parametrize("form, code", [("portable", 0), ("native", 0), ("sideways", 3)])
def test_the_form_of_the_kernels_can_be_chosen(run, form, code):
    done, session = run("launch/null.*idle", code=None, node=NODES / "one_a100.json", LAUNCHGAP_KERNELS=form)
    (row,) = [row for row in table(session / "summary.csv") if row["metric"] in ("api_ns", "")]
    if row["status"] == "unsupported":
        pytest.skip(f"built without the {form} form: {row['reason']}")
    assert done.returncode == code, done.stderr
    if code == 0:
        assert {run["kernel_form"] for run in table(session / "runs.csv")} == {form}


@pytest.mark.skipif(not NATIVE, reason="built without the native form")
@pytest.mark.parametrize("code, form", [(200, "portable"), (209, "portable"), (221, None), (222, "portable"), (223, None)])
def test_the_portable_form_is_tried_where_it_can_help(run, make_node, code, form):
    """The native form is refused. The portable one is not tried where the compiler that it needs is missing."""
    refused = {"device": None, "library": "cuda", "call": "cuModuleLoadDataEx", "after": 0, "times": 1, "code": code}
    _, session = run("launch/null.*idle", code=0 if form else 3, node=make_node(faults=[refused]))
    (run_row,) = table(session / "runs.csv")
    reasons = {row["reason"] for row in table(session / "summary.csv") if row["benchmark"] == "launch/null"}
    assert run_row["kernel_form"] == form if form else all(f"({code})" in reason for reason in reasons), reasons


def test_kepler_multiplies_fp32(run):
    _, session = run("matmul.*size:256", devices="0", node=NODES / "mixed_8_gpus.json")
    status = {row["params"].split("type:")[1].split("/")[0]: row["status"] for row in table(session / "summary.csv")}
    assert status == {"fp32": "ok", "tf32": "unsupported", "fp16": "unsupported", "bf16": "unsupported"}


def test_a_worker_sees_its_own_device_only(run):
    _, session = run("launch/null.*idle", devices="3", node=NODES / "mixed_8_gpus.json")
    (file,) = records(session).values()
    assert file[0]["device"]["name"] == "Tesla T4"
    assert file[0]["device"]["index"] == 0, "the only one that the worker can see"


def test_without_cublas_and_cudnn_the_rest_is_measured(run, tmp_path):
    _, session = run(
        SMALL,
        node=NODES / "one_a100.json",
        LAUNCHGAP_CUBLAS="/nowhere/libcublas.so.13",
        LAUNCHGAP_CUDNN="/nowhere/libcudnn.so.9",
    )  # what is not there is unsupported, which is no failure
    status = {row["benchmark"]: row["status"] for row in table(session / "summary.csv")}
    assert status == {
        "launch/echo": "ok",
        "launch/flag": "ok",
        "launch/null": "ok",
        "allocation/latency": "ok",
        "matmul/library": "unsupported",
        "convolution/library": "unsupported",
    }
    reasons = {row["reason"] for row in table(session / "summary.csv") if row["benchmark"] == "matmul/library"}
    assert all("/nowhere/libcublas.so.13" in reason and "--with-cuda" in reason for reason in reasons)


def test_what_the_environment_changes_is_recorded_and_precision_is_not_changed(run):
    _, session = run(
        "launch/null.*idle", node=NODES / "one_a100.json", NVIDIA_TF32_OVERRIDE="0", CUDA_MODULE_LOADING="EAGER"
    )
    (file,) = records(session).values()
    assert file[0]["environment"]["CUDA_MODULE_LOADING"] == "EAGER"
    assert "NVIDIA_TF32_OVERRIDE" not in file[0]["environment"]
    assert file[0]["fingerprint"]["environment"] == file[0]["environment"]


def test_list_shows_every_device_and_what_is_wrong_with_it(make_node):
    node = make_node(
        devices=2, faults=[{"device": 1, "library": "cuda", "call": "cuDevicePrimaryCtxRetain", "after": 0, "code": 2}]
    )
    listed = json.loads(launchgap("list", "devices", "--json", node=node).stdout)
    host, good, bad = listed["devices"]
    assert host["backend"] == "host"
    assert good["usable"] and good["simulated"]
    assert not bad["usable"] and "OUT_OF_MEMORY" in bad["reason"]


def test_visible_devices_are_respected():
    listed = json.loads(
        launchgap("list", "devices", "--json", node=NODES / "mixed_8_gpus.json", CUDA_VISIBLE_DEVICES="7,0").stdout
    )
    assert [device["name"] for device in listed["devices"][1:]] == ["NVIDIA B200", "Tesla K40m"]
