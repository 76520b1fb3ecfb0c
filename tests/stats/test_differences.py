"""difference and deviations against scipy, and how often deviations names a device that is slow or one that is not."""

import numpy as np
import pytest
import scipy.stats
from stats_probe import compute, compute_many

RANDOM = np.random.default_rng(1947)

# --- difference ---

PAIRS = {
    "alike": (RANDOM.normal(100, 5, 20), RANDOM.normal(100, 5, 20)),
    "different means, variances and sizes": (RANDOM.normal(100, 5, 7), RANDOM.normal(90, 20, 200)),
    "two each": ([1.0, 2.0], [5.0, 9.0]),
    "one that hardly varies": ([3.0, 3.001, 3.0], RANDOM.normal(4, 1, 10)),
    "negative": (RANDOM.normal(-3, 1, 10), RANDOM.normal(-3, 1, 10)),
    "a large offset": (1e9 + RANDOM.integers(0, 9, 50), 1e9 + RANDOM.integers(0, 9, 40)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_difference_is_that_of_welch(name):
    a, b = PAIRS[name]
    result = compute("difference", [a, b])
    assert result["value"] == pytest.approx(np.mean(a) - np.mean(b), rel=1e-6)
    interval = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert result["interval"] == pytest.approx([interval.low, interval.high], rel=1e-6)


def test_a_difference_in_the_last_digits():
    """Neighbouring doubles are half a unit apart here, and the mean of `a` lies between two."""
    unit = 2.0**-22
    a, b = [3, 5, 7, 9, 10], [1, 2, 3, 4]
    result = compute("difference", [1e9 + unit * np.array(a), 1e9 + unit * np.array(b)])
    exact = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert result["value"] / unit == pytest.approx(6.8 - 2.5, rel=1e-12)
    assert np.array(result["interval"]) / unit == pytest.approx([exact.low, exact.high], rel=1e-9)


def test_what_does_not_vary_differs_exactly():
    assert compute("difference", [[5.0, 5.0], [3.0, 3.0, 3.0]]) == {"value": 2, "interval": [2, 2]}


def test_where_one_does_not_vary_the_other_decides():
    b = [2.0, 3.0, 5.0, 6.0]
    reach = scipy.stats.t.ppf(0.975, 3) * scipy.stats.sem(b)
    assert compute("difference", [[9.0, 9.0], b])["interval"] == pytest.approx([5 - reach, 5 + reach])


@pytest.mark.parametrize("a, b", [([], []), ([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([1.0, 2.0], [])])
def test_below_two_values_there_is_no_difference(a, b):
    assert compute("difference", [a, b]) is None


# --- deviations ---


def reference(groups):
    """Ratio and interval of each group, from the header; every group has at least three values."""
    logs = [np.log(group) for group in groups]
    k, n = len(logs), np.array([len(group) for group in logs])
    centers = np.array([group.mean() for group in logs])
    own = np.array([group.var(ddof=1) for group in logs])
    pooled = np.average(own, weights=n - 1)
    results = []
    for i in range(k):
        others = np.delete(np.arange(k), i)
        middle = np.sort(centers[others])[[(k - 2) // 2, (k - 1) // 2]]
        log_ratio = centers[i] - middle[np.argmin(abs(centers[i] - middle))]
        variance = max(pooled, own[i]) / n[i] + min(1, 2 / (k - 1)) * np.mean(pooled / n[others])
        reach = scipy.stats.t.ppf(1 - 0.025 / k, n.sum() - k) * variance**0.5
        results.append(np.exp([log_ratio, log_ratio - reach, log_ratio + reach]))
    return results


@pytest.mark.parametrize("k", [2, 3, 4, 8, 9])
def test_deviations_are_what_the_header_says(k):
    for sizes in (RANDOM.integers(3, 12, k) for _ in range(20)):
        groups = [2000 * np.exp(RANDOM.normal(0, 0.02) + RANDOM.normal(0, 0.02, n)) for n in sizes]
        for result, expected in zip(compute("deviations", groups), reference(groups), strict=True):
            assert [result["ratio"], *result["interval"]] == pytest.approx(expected, rel=1e-9)
            apart = result["interval"][0] > 1 or result["interval"][1] < 1
            assert result["deviates"] == (apart and not 1 / 1.02 <= result["ratio"] <= 1.02)


def steady(level, n=5):
    return [level * factor for factor in np.linspace(0.999, 1.001, n)]


NAMED = {
    "no groups": ([], []),
    "one group": ([steady(100)], [False]),
    "one group with values": ([steady(100), []], [False, False]),
    "alike": ([steady(100)] * 8, [False] * 8),
    "one slow": ([steady(100)] * 7 + [steady(110)], [False] * 7 + [True]),
    "one fast": ([steady(100)] * 7 + [steady(90)], [False] * 7 + [True]),
    "one very slow: the others do not look fast": ([steady(100)] * 3 + [steady(1000)], [False] * 3 + [True]),
    "two slow of five": ([steady(100)] * 3 + [steady(110)] * 2, [False] * 3 + [True] * 2),
    "two of three alike": ([steady(100), steady(110), steady(100)], [False, True, False]),
    "two groups: neither is known to be at fault": ([steady(100), steady(110)], [True, True]),
    "certain, but only 1 %": ([steady(100)] * 7 + [steady(101)], [False] * 8),
    "3 %": ([steady(100)] * 7 + [steady(103)], [False] * 7 + [True]),
    "two values are too few": ([steady(100)] * 7 + [steady(110, 2)], [False] * 8),
    "three values are enough": ([steady(100)] * 7 + [steady(110, 3)], [False] * 7 + [True]),
    "erratic": ([steady(100)] * 7 + [[80.0, 100.0, 130.0, 110.0, 140.0]], [False] * 8),
    "nothing varies": ([[100.0] * 3, [100.0] * 3, [110.0] * 3], [False, False, True]),
    "groups without values do not count": ([[], steady(100), [], steady(100), steady(110)], [False] * 4 + [True]),
}


@pytest.mark.parametrize("name", NAMED)
def test_who_is_named(name):
    groups, named = NAMED[name]
    assert [result["deviates"] for result in compute("deviations", groups)] == named


def test_the_ratios_of_two_groups_are_inverse():
    first, second = compute("deviations", [steady(100), steady(110)])
    assert second["ratio"] == pytest.approx(1.1)
    assert first["ratio"] == pytest.approx(1 / 1.1)
    assert first["interval"] == pytest.approx([1 / second["interval"][1], 1 / second["interval"][0]])


NOTHING = {"ratio": None, "interval": None, "deviates": False}
NO_INTERVAL = {
    "a group of two": ([steady(100)] * 2 + [steady(100, 2)], [True, True, False]),
    "a group of one": ([steady(100)] * 2 + [[100.0]], [True, True, False]),
    "groups of one": ([[100.0], [110.0], [120.0]], [False] * 3),
}


@pytest.mark.parametrize("name", NO_INTERVAL)
def test_groups_below_three_values_have_a_ratio_and_no_interval(name):
    groups, has_interval = NO_INTERVAL[name]
    results = compute("deviations", groups)
    assert all(result["ratio"] for result in results)
    assert [result["interval"] is not None for result in results] == has_interval


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_a_value_without_a_logarithm_leaves_nothing(value):
    assert compute("deviations", [steady(100), steady(100), [1.0, 2.0, value]]) == [NOTHING] * 3


# --- how often ---

SIMULATIONS = 2000


def named(sizes, sds, slow):
    """Which devices are named in which session; the first is `slow` times as slow as the others."""
    random = np.random.default_rng([*sizes, int(1000 * slow), *np.int64(np.multiply(sds, 1000))])
    logs = random.normal(scale=np.repeat(sds, sizes), size=(SIMULATIONS, sum(sizes)))
    logs[:, : sizes[0]] += np.log(slow)
    results = compute_many("deviations", sizes, np.exp(logs))
    return np.array([[result["deviates"] for result in session] for session in results])


MIXED = [5, 6, 7, 8, 9, 10, 5, 6]


@pytest.mark.parametrize("sd", [0.01, 0.02, 0.03])
@pytest.mark.parametrize("sizes", [[5] * 8, [10] * 8, MIXED], ids=["5 runs", "10 runs", "5 to 10 runs"])
def test_of_eight_devices_the_one_that_is_10_percent_slower_is_named(sizes, sd):
    names = named(sizes, [sd] * 8, 1.1)
    assert names[:, 0].mean() > 0.99
    assert names[:, 1:].mean(axis=0).max() < 0.02, "and each of the others is not"
    assert names[:, 1:].any(axis=1).mean() < 0.05, "nor is any of them"


@pytest.mark.parametrize("sd", [0.01, 0.02, 0.03, 0.1])
@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("k", [2, 3, 4, 8, 16])
def test_devices_that_are_alike_are_not_named(k, n, sd):
    assert named([n] * k, [sd] * k, 1.0).any(axis=1).mean() < 0.05


@pytest.mark.parametrize("times", [3, 10])
def test_an_erratic_device_is_not_named_for_its_noise(times):
    assert named([5] * 8, [0.01 * times] + [0.01] * 7, 1.0).any(axis=1).mean() < 0.05


@pytest.mark.parametrize("k", [3, 4, 5])
def test_among_few_devices_a_slow_one_does_not_make_the_others_look_fast(k):
    names = named([10] * k, [0.02] * k, 1.1)
    assert names[:, 0].mean() > 0.99
    assert names[:, 1:].any(axis=1).mean() < 0.05
