"""`matmul/sustained`: two seconds of products without a pause, the first and the last 100 ms beside each other."""

import pytest
from shipped import table


def measured(run, node):
    _, session = run("matmul/sustained.*fp32", "--profile", "nightly", node=node)
    return {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv")}, session


@pytest.mark.compares_times
def test_the_rate_is_that_of_the_device_from_first_to_last(run, make_node):
    rates, _ = measured(run, make_node())
    assert rates["tflops"] == pytest.approx(15.6, rel=0.05)
    assert rates["first_tflops"] == pytest.approx(rates["last_tflops"], rel=0.05)


@pytest.mark.compares_times
def test_a_device_that_gets_faster_while_it_works_shows_it(run, make_node):
    rates, _ = measured(run, make_node(ramp={"ms": 4000, "factor": 2, "idle_ms": 1000}))
    assert rates["last_tflops"] > 1.2 * rates["first_tflops"]
