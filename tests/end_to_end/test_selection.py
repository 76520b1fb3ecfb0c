"""Which algorithm cuDNN selects for a convolution, how often that differs, and what that costs."""

import pytest
from shipped import table

BENCHMARK = "convolution/selection"
GET, FIND = "cudnnGetConvolutionForwardAlgorithm_v7", "cudnnFindConvolutionForwardAlgorithmEx"
FASTEST, OTHER = "1 (implicit precomputed GEMM, FMA)", "0 (implicit GEMM, FMA)"


@pytest.fixture
def select(run, make_node):
    """A session of the benchmark's quick case, or of others; changes are the node's."""

    def measure(*options, cases=f"^{BENCHMARK}/", runs=1, code=0, faults=(), **changes):
        return run(cases, *options, runs=runs, code=code, node=make_node(faults=faults, whole=changes))[1]

    return measure


def medians(session):
    return {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv") if row["status"] == "ok"}


def findings(session):
    return [row for row in table(session / "findings.csv") if row["code"] == "selection-differs"]


def test_a_library_that_always_selects_the_same_is_no_finding(select):
    session = select(runs=3)
    rows = {row["by"]: row for row in table(session / "selections.csv")}
    assert rows.keys() == {GET, FIND}
    for row in rows.values():
        assert (row["selections"], row["processes"], row["algorithm"]) == ("60", "3", FASTEST)
        assert float(row["flip_rate"]) == 0 and row["others_times"] == ""
    assert findings(session) == []
    values = medians(session)
    assert values["regret"] == pytest.approx(1, abs=0.03) and values["find_regret"] == pytest.approx(1, abs=0.03)


def test_every_third_selection_is_another_one_and_costs_what_that_takes(select):
    session = select(runs=3, cudnn_flips_every=3)
    choices = table(session / "choices.csv")
    for replicate in "012":
        of_run = [row for row in choices if row["replicate"] == replicate]
        time = {row["algorithm"]: float(row["median_ns"]) for row in of_run if row["by"] == "candidate"}
        for by in (GET, FIND):
            selected = {row["algorithm"]: int(row["times"]) for row in of_run if row["by"] == by}
            assert selected[OTHER] in (6, 7) and selected[FASTEST] == 20 - selected[OTHER]
        assert time[OTHER] > 1.5 * time[FASTEST]
    for row in table(session / "selections.csv"):
        assert row["algorithm"] == FASTEST and row["other_processes"] == "0"
        assert 0.3 <= float(row["flip_rate"]) == float(row["flip_rate_within"]) <= 0.35
        assert 1.5 < float(row["others_times"]) <= 2.1
    found = findings(session)
    assert len(found) == 2 and all(row["severity"] == "act" for row in found)
    assert {row["sentence"].split()[0] for row in found} == {GET, FIND}
    assert medians(session)["regret"] == pytest.approx(1, abs=0.03), "most selections have the fastest"


def test_a_wrong_choice_costs_its_regret(select):
    session = select(cudnn_flips_every=1)
    values = medians(session)
    assert values["regret"] > 1.5 and values["find_regret"] > 1.5
    assert values["selected_ns"] > 1.5 * values["best_ns"]
    (row, _) = table(session / "selections.csv")
    assert row["algorithm"] == OTHER and float(row["flip_rate"]) == 0
    assert findings(session) == [], "it is wrong, and always the same"


@pytest.mark.parametrize("direction, call", [("data", "BackwardData"), ("filter", "BackwardFilter"), ("forward", "Forward")])
def test_every_direction_has_its_calls(select, direction, call):
    case = f"^{BENCHMARK}/shape:32x2048x7x7-512x1x1/direction:{direction}/type:fp16$"
    session = select("--profile", "full", cases=case)
    by = {row["by"] for row in table(session / "selections.csv")}
    assert by == {f"cudnnGetConvolution{call}Algorithm_v7", f"cudnnFindConvolution{call}AlgorithmEx"}
    assert {"selected_ns", "found_ns", "best_ns", "regret", "find_regret"} <= medians(session).keys()


def test_a_library_that_cannot_find_is_measured_without(select):
    fault = {"device": 0, "library": "cudnn", "call": FIND, "code": 3000}
    session = select(faults=[fault])
    values = medians(session)
    assert "found_ns" not in values and values["regret"] == pytest.approx(1, abs=0.03)
    assert [row["by"] for row in table(session / "selections.csv")] == [GET]


def test_a_wrong_candidate_is_named_and_never_chosen(select):
    session = select(cudnn_flips_every=3, cudnn_wrong=0)
    wrong, right = sorted(
        (row for row in table(session / "choices.csv") if row["by"] == "candidate"), key=lambda r: r["algorithm"]
    )
    assert (wrong["algorithm"], wrong["outcome"], wrong["median_ns"]) == (OTHER, "wrong", "") and "must be" in wrong[
        "reason"
    ]
    assert (right["algorithm"], right["outcome"], right["reason"]) == (FASTEST, "chosen", "")
    assert [row["severity"] for row in findings(session)] == ["note", "note"], "what a wrong result takes is no cost"


def test_what_the_library_selects_must_be_right(select):
    """Though another candidate is."""
    session = select(code=3, cudnn_flips_every=3, cudnn_wrong=1)
    (row, *_) = table(session / "summary.csv")
    assert row["status"] == "failed" and row["p50"] == ""
    assert f"{GET} selects algorithm {FASTEST}: wrong result" in row["reason"], row
