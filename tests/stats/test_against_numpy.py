"""harness/stats against numpy and scipy, to 1e-9, on generated data and on the smallest of all."""

import math

import numpy as np
import pytest
import scipy.stats
from stats_probe import compute

PROBABILITIES = [0.0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0]
UNSORTED = [0.0, 0.3, 0.5, 0.99, 1.0]


def reference(values):
    """The same statistics, by numpy and scipy or by the formula in the header."""
    x = np.array(values, dtype=np.float64)
    n = len(x)
    out = {
        "quantiles": [float(np.quantile(x, p)) if n else None for p in PROBABILITIES],
        "in_place": [float(np.quantile(x, p)) if n else None for p in UNSORTED],
        "in_place_of_whole": [float(np.quantile(np.trunc(np.clip(x, -9e15, 9e15)), p)) if n else None for p in UNSORTED],
        "median": float(np.median(x)) if n else None,
        "mean": math.fsum(x) / n if n else None,
        "sd": float(np.std(x.astype(np.longdouble), ddof=1)) if n >= 2 else None,
        "mad": float(scipy.stats.median_abs_deviation(x)) if n else None,
        "outlier_share": None,
        "lag1": None,
        "median_interval": None,
    }
    if n >= 4:
        q1, q3 = np.quantile(x, [0.25, 0.75])
        reach = 1.5 * (q3 - q1)
        out["outlier_share"] = float(np.mean((x < q1 - reach) | (x > q3 + reach)))
    if n >= 3:
        centred = x.astype(np.longdouble) - x.astype(np.longdouble).mean()
        if (centred**2).sum() > 0:
            out["lag1"] = float((centred[:-1] * centred[1:]).sum() / (centred**2).sum())
    if n >= 6:
        interval = scipy.stats.quantile_test(x, p=0.5).confidence_interval(0.95)
        out["median_interval"] = [float(interval.low), float(interval.high)]
    return out


def assert_same(ours, theirs, path=""):
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{path}[{i}]")
    elif theirs is None or ours is None:
        assert ours is None and theirs is None, f"{path}: {ours} and {theirs}"
    else:
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12), path


RANDOM = np.random.default_rng(20261120)

DATA = {
    "lognormal": RANDOM.lognormal(7.7, 0.1, 1500),
    "heavy tail": RANDOM.pareto(1.5, 5000) * 2000,
    "bimodal": np.tile(np.concatenate([RANDOM.normal(2000, 20, 300), RANDOM.normal(9000, 50, 40)]), 4),
    "whole nanoseconds, many ties": RANDOM.integers(2300, 2310, 2997),
    "a large offset (1e9) and a small spread": 1e9 + RANDOM.normal(0, 1e-2, 1200),
    "a random walk": np.cumsum(RANDOM.normal(0, 1, 600)) + 1000,
    "all equal": [5.0] * 17,
    "zeros": [0.0] * 10,
    "negative": RANDOM.normal(-50, 5, 60),
}


@pytest.mark.parametrize("name", DATA)
def test_generated_data(name):
    assert_same(compute("describe", [DATA[name]]), reference(DATA[name]))


@pytest.mark.parametrize("n", range(10))
def test_the_smallest_data(n):
    for _ in range(20):
        values = RANDOM.lognormal(0, 1, n)
        assert_same(compute("describe", [values]), reference(values))


@pytest.mark.parametrize("n", range(6, 41))
def test_the_interval_of_the_median_covers_it_in_at_least_95_percent(n):
    values = np.arange(1.0, n + 1)
    low, high = compute("describe", [values])["median_interval"]
    k = int(low)
    assert high == n + 1 - k, "the interval is symmetric in rank"
    below = scipy.stats.binom.cdf
    assert 1 - 2 * below(k - 1, n, 0.5) >= 0.95, "it covers"
    assert 1 - 2 * below(k, n, 0.5) < 0.95, "and no narrower one does"


def test_a_million_values():
    values = RANDOM.lognormal(7.7, 0.3, 1_000_000)
    assert_same(compute("describe", [values]), reference(values))
