"""What the library's own choice for a product costs against the best of its candidates."""

import pytest
from shipped import table


@pytest.fixture
def choose(run, make_node):
    def measure(**changes):
        return run("^matmul/choice/", runs=2, node=make_node(whole=changes))[1]

    return measure


def test_the_best_sound_candidate_is_chosen_and_the_wrong_one_never(choose):
    session = choose(cublaslt_candidates=[1.3, 1.1, 1.0, 1.2], cublaslt_wrong=1)
    values = {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv")}
    assert values["regret"] == pytest.approx(1.30, abs=0.02)
    assert values["first_regret"] == pytest.approx(1.30, abs=0.02)
    choices = table(session / "choices.csv")
    assert {row["replicate"] for row in choices} == {"0", "1"}
    for row in choices:
        assert row["outcome"] == {"1": "wrong", "2": "chosen"}.get(row["candidate"], "slower"), row
        assert bool(row["median_ns"]) == (row["outcome"] != "wrong")
        assert ("must be" in row["reason"]) == (row["outcome"] == "wrong")
    assert not any(row["code"] == "selection-differs" for row in table(session / "findings.csv"))


def test_a_wrong_candidate_is_not_chosen_though_it_is_the_fastest(choose):
    session = choose(cublaslt_candidates=[1.3, 1.0, 1.1], cublaslt_wrong=1)
    assert {row["candidate"]: row["outcome"] for row in table(session / "choices.csv")} == {
        "0": "slower",
        "1": "wrong",
        "2": "chosen",
    }
    values = {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv")}
    assert values["regret"] == pytest.approx(1.3 / 1.1, abs=0.02)
