"""cuDNN's graph interface: which engine its heuristics offer first, what that costs, and what it refuses."""

import re

import pytest
from shipped import NODES, table

CASE = "shape:32x2048x7x7-512x1x1/direction:forward/layout:nhwc/type:fp32"
FIRST, SECOND = "engine 28, knobs 2=5 14=3", "engine 28, knobs 2=4 14=3"


@pytest.fixture
def engines(run, make_node):
    """A session of a case of convolution/engines on a fake GPU; changes are the node's."""

    def measure(benchmark="engines", case=CASE, runs=1, code=0, faults=(), **changes):
        node = make_node(faults=faults, whole=changes)
        return run(f"^convolution/{benchmark}/{case}$", "--profile", "full", runs=runs, code=code, node=node)[1]

    return measure


def medians(session):
    return {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv") if row["status"] == "ok"}


def candidates(session):
    return {row["algorithm"]: row for row in table(session / "choices.csv") if row["by"] == "candidate"}


def test_what_the_first_engine_costs_is_found_and_each_is_named_with_its_notes(engines):
    session = engines(runs=6, cudnn_engines=[1.3, 1, 1.5, 2, 2.5])
    values = medians(session)
    (regret,) = [row for row in table(session / "summary.csv") if row["metric"] == "regret"]
    assert 1.28 < float(regret["p50_ci_lo"]) <= values["regret"] <= float(regret["p50_ci_hi"]) < 1.32
    assert values["regret"] == pytest.approx(1.3, abs=0.02)
    assert values["selected_ns"] == pytest.approx(1.3 * values["best_ns"], rel=0.02)
    found = candidates(session)
    assert found[SECOND]["outcome"] == "chosen" and found[FIRST]["outcome"] == "slower"
    assert {row["engine"] for row in found.values()} == {"28", "34", "0"}
    assert found[FIRST]["notes"] == "" and int(found[FIRST]["workspace_bytes"]) == 512 * 2048 * 4
    assert found["engine 34"]["notes"] == "nondeterministic, compiled at run time"
    assert found["engine 0"]["notes"] == "strict NaN", "of what always works"
    (row,) = table(session / "selections.csv")
    assert (row["by"], row["algorithm"], row["engine"], row["selections"]) == ("CUDNN_HEUR_MODE_A", FIRST, "28", "120")
    assert float(row["flip_rate"]) == 0


@pytest.mark.parametrize("type_, notes", [("fp32", ""), ("fp16", "tensor cores"), ("tf32", "tensor cores")])
def test_an_engine_that_would_compute_in_another_type_is_not_taken(engines, type_, notes):
    """Of fp32 TF32, which the library offers first."""
    case = CASE.replace("fp32", type_)
    benchmark = "engines" if type_ != "tf32" else "graph"
    session = engines(benchmark, case, cudnn_engines=[1])
    (method, *_) = [row["method"] for row in table(session / "summary.csv") if row["status"] == "ok"]
    assert ("tensor cores" in method) == (notes != ""), method
    found = candidates(session)
    if found:
        assert all(("tensor cores" in row["notes"]) == (notes != "") for row in found.values() if row["engine"] == "28")


def test_every_third_answer_has_another_engine_first(engines):
    session = engines(runs=3, cudnn_flips_every=3)
    (row,) = table(session / "selections.csv")
    assert row["algorithm"] == FIRST and row["selections"] == "60"
    assert float(row["flip_rate"]) == pytest.approx(1 / 3, abs=0.05)
    assert float(row["others_times"]) == pytest.approx(1.2, abs=0.05)
    (finding,) = [row for row in table(session / "findings.csv") if row["code"] == "selection-differs"]
    assert finding["severity"] == "act" and finding["sentence"].startswith("CUDNN_HEUR_MODE_A ")


@pytest.mark.parametrize("direction", ["forward", "data", "filter"])
def test_an_engine_that_computes_wrongly_is_named_and_never_chosen(engines, direction):
    case = CASE.replace("direction:forward", f"direction:{direction}")
    session = engines(case=case, cudnn_engines=[1.3, 1, 1.5], cudnn_engine_wrong=1)
    found = candidates(session)
    assert (found[SECOND]["outcome"], found[SECOND]["median_ns"]) == ("wrong", "")
    assert "must be" in found[SECOND]["reason"]
    assert found[FIRST]["outcome"] == "chosen" and medians(session)["regret"] == pytest.approx(1, abs=0.02)


def test_the_engine_that_is_offered_first_must_be_right(engines):
    session = engines(code=3, cudnn_engine_wrong=0)
    (row, *_) = table(session / "summary.csv")
    assert row["status"] == "failed" and row["p50"] == ""
    assert f"CUDNN_HEUR_MODE_A selects algorithm {FIRST}: wrong result" in row["reason"], row


def test_what_the_library_has_no_engine_for_is_unsupported(engines):
    session = engines(case=CASE.replace("fp32", "fp8_e4m3"))
    (row, *_) = table(session / "summary.csv")
    assert row["status"] == "unsupported" and row["p50"] == ""
    assert "has no engine for this convolution in fp8_e4m3 and NHWC" in row["reason"], row


@pytest.mark.parametrize(
    "call, code, status, why",
    [
        ("cudnnBackendExecute", 3000, "unsupported", "cudnnBackendExecute answers CUDNN_STATUS_NOT_SUPPORTED"),
        ("cudnnBackendExecute", 5000, "failed", "cudnnBackendExecute failed with CUDNN_STATUS_EXECUTION_FAILED"),
        ("cudnnBackendCreateDescriptor", 4000, "failed", "CreateDescriptor of a graph failed with CUDNN_STATUS_INTERNAL"),
        ("cudnnBackendGetAttribute", 4000, "unsupported", "GetAttribute of heuristics failed with CUDNN_STATUS_INTERNAL"),
    ],
)
def test_a_call_that_fails_ends_the_case_in_the_librarys_words(engines, call, code, status, why):
    exits = 3 if status == "failed" else 0
    session = engines(faults=[{"device": 0, "library": "cudnn", "call": call, "code": code}], code=exits)
    (row, *_) = table(session / "summary.csv")
    assert row["status"] == status and row["p50"] == "" and why in row["reason"], row


@pytest.mark.parametrize(
    "version, type_, why",
    [
        (7605, "fp32", "cuDNN 7.6.5 has no graph interface: cuDNN 8.0 is the first that has it"),
        (8400, "fp8_e4m3", "cuDNN 8.4.0 has no FP8: 8.6 is the first that has it"),
    ],
)
def test_an_older_cudnn_says_which_has_it(engines, version, type_, why):
    session = engines(case=CASE.replace("fp32", type_), cudnn_version=version)
    (row, *_) = table(session / "summary.csv")
    assert row["status"] == "unsupported" and why in row["reason"], row


def test_the_first_versions_know_no_mode_a(engines):
    session = engines(cudnn_version=8100)
    assert [row["by"] for row in table(session / "selections.csv")] == ["CUDNN_HEUR_MODE_INSTANT"]


def test_fp8_and_int8_are_measured_where_the_library_has_them(run, make_node):
    node = make_node(compute_capability="9.0", tflops={"fp32": 60, "int8": 1900, "fp8": 1900})
    shape = "convolution/graph/shape:32x2048x7x7-512x1x1/direction:forward/layout:nhwc/type:(int8|fp8_e4m3|fp8_e5m2)$"
    _, session = run(shape, "--profile", "full", node=node)
    rows = [row for row in table(session / "summary.csv") if row["metric"] == "tflops"]
    assert {re.search("type:(.*)", row["params"])[1] for row in rows} == {"int8", "fp8_e4m3", "fp8_e5m2"}
    assert all(row["status"] == "ok" for row in rows), rows


def test_the_graph_interface_is_measured_in_both_layouts_and_traced(run, make_node, export):
    case = "convolution/graph/shape:32x2048x7x7-512x1x1/direction:forward/layout:n.*/type:fp16$"
    _, session = run(case, "--profile", "full", runs=2, trace="on", node=make_node())
    rows = [row for row in table(session / "summary.csv") if row["metric"] == "device_ns" and row["arm"] == "plain"]
    assert {row["status"] for row in rows} == {"ok"} and len({row["params"] for row in rows}) == 2
    assert all(" graph, engine 28, knobs 2=5 14=3, tensor cores, N" in row["method"] for row in rows), rows
    kernels = {row["kernel"] for row in table(export(session) / "kernels.csv")}
    assert any("fake_convolution_fp16" in name for name in kernels), kernels


def test_quick_has_none_of_it_and_nightly_a_few(run):
    def planned(profile, code):
        options = ("--profile", profile, "--dry-run")
        return run("^convolution/(graph|engines)/", *options, runs=None, code=code, node=NODES / "one_a100.json")[0]

    assert "no case passes" in planned("quick", 2).stderr
    assert planned("nightly", 0).stdout.splitlines()[1].split()[3] == "5"
