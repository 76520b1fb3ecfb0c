"""Why samples are slow: a fake driver whose launching calls are late at times, with a sign of the reason or without one."""

import itertools

import pytest
from shipped import table

# As definitions.md calls what a hiccup's sign shows.
CAUSES = {"sleep": "blocked", "fault": "page-fault", "move": "migration", "none": "unexplained"}
NODE = dict(compute_capability="9.0", process_factor_sigma=0, call_ns=8000, launch_ns=10000, kernel_ns=1000)
LATE = {"mixture": [{"weight": 1, "of": {"constant": ns}} for ns in (15000, 40000, 120000, 400000)]}
CASES = "^launch/(null|args)/.*idle"


def causes_of(run, make_node, export, *signs):
    """Slow samples by cause, of launches of which one in 60 is late for each sign."""
    hiccups = [{"every": 60, "ns": LATE, "sign": sign} for sign in signs]
    _, session = run(CASES, runs=3, node=make_node(**NODE, hiccups=hiccups))
    counts: dict[str, int] = {}
    for row in table(export(session) / "slow_causes.csv"):
        assert row["level"] == "sample"
        counts[row["cause"]] = counts.get(row["cause"], 0) + int(row["samples"])
    return counts


# Other tests run beside this one and take the CPU away: that is a cause too, and true.
@pytest.mark.compares_times
@pytest.mark.parametrize("sign", CAUSES)
def test_a_late_call_is_blamed_on_what_happened_within_it(sign, run, make_node, export):
    counts = causes_of(run, make_node, export, sign)
    beside = counts.pop("host-pause", 0) + counts.pop("after-pause", 0)
    right = counts.get(CAUSES[sign], 0)
    assert right >= 60, counts
    assert right >= 0.95 * sum(counts.values()), (counts, beside)


@pytest.mark.compares_times
@pytest.mark.parametrize("signs", [*itertools.combinations(CAUSES, 2)])
def test_two_reasons_are_told_apart(signs, run, make_node, export):
    counts = causes_of(run, make_node, export, *signs)
    counts.pop("host-pause", 0), counts.pop("after-pause", 0)
    each = [counts.pop(CAUSES[sign], 0) for sign in signs]
    assert min(each) >= 60, (each, counts)
    # Both are as frequent: what one of them is blamed for wrongly is missing from the other.
    assert max(each) <= 1.35 * min(each), each
    assert sum(counts.values()) <= 0.05 * sum(each), (each, counts)


def test_a_quiet_node_has_nothing_to_explain_and_a_counter_that_moves_explains_nothing(run, make_node, export):
    """Pages are touched in every second call, which makes none of them slower; one in 60 is late for no reason."""
    hiccups = [{"every": 2, "ns": 0, "sign": "fault"}, {"every": 60, "ns": {"constant": 200000}, "sign": "none"}]
    _, session = run(CASES, runs=3, node=make_node(**NODE, hiccups=hiccups))
    rows = table(export(session) / "slow_causes.csv")
    assert sum(int(row["samples"]) for row in rows if row["cause"] == "unexplained") >= 60
    assert sum(int(row["samples"]) for row in rows if row["cause"] == "page-fault") == 0
