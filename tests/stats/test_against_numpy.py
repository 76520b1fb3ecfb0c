"""harness/stats against numpy and scipy, to 1e-9, on generated data and on the smallest of all."""

import json
import math
import pathlib
import subprocess

import numpy as np
import pytest
import scipy.stats

PROBE = pathlib.Path(__file__).parents[2] / "build" / "bin" / "stats_probe"
PROBABILITIES = [0.0, 0.001, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0]


def probe(runs):
    line = json.dumps({"runs": [list(map(float, run)) for run in runs]}) + "\n"
    done = subprocess.run([PROBE], input=line, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def reference(runs):
    """The same statistics, by numpy and scipy or by the formula in the header."""
    x = np.array([value for run in runs for value in run], dtype=np.float64)
    n = len(x)
    out = {
        "quantiles": [float(np.quantile(x, p)) if n else None for p in PROBABILITIES],
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
    return out | variance_components(runs)


def variance_components(runs):
    groups = [np.array(run, dtype=np.longdouble) for run in runs if len(run)]
    out = {"within_cv": None, "between_cv": None, "icc": None}
    sizes = np.array([len(group) for group in groups])
    total, k = int(sizes.sum()), len(groups)
    if k == 0 or total <= k:
        return out
    grand = sum(group.sum() for group in groups) / total
    msw = sum(((group - group.mean()) ** 2).sum() for group in groups) / (total - k)
    if grand != 0:
        out["within_cv"] = float(np.sqrt(msw) / abs(grand))
    if k < 2:
        return out
    msb = sum(len(group) * (group.mean() - grand) ** 2 for group in groups) / (k - 1)
    n0 = (total - (sizes**2).sum() / total) / (k - 1)
    between = max(np.longdouble(0), (msb - msw) / n0)
    if grand != 0:
        out["between_cv"] = float(np.sqrt(between) / abs(grand))
    if msw + between > 0:
        out["icc"] = float(between / (msw + between))
    return out


def assert_same(ours, theirs, path=""):
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, f"{path}[{i}]")
    elif theirs is None or ours is None:
        assert ours is None and theirs is None, f"{path}: {ours} and {theirs}"
    else:
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12), path


RANDOM = np.random.default_rng(20261120)

DATA = {
    "lognormal, 3 runs": [RANDOM.lognormal(7.7, 0.1, 500) for _ in range(3)],
    "heavy tail": [RANDOM.pareto(1.5, 1000) * 2000 for _ in range(5)],
    "bimodal": [np.concatenate([RANDOM.normal(2000, 20, 300), RANDOM.normal(9000, 50, 40)]) for _ in range(4)],
    "runs that differ": [RANDOM.normal(2000 * f, 10, 200) for f in (1, 1.04, 0.97, 1.1, 1.02, 0.99, 1.3)],
    "runs of different length": [RANDOM.normal(100, 3, n) for n in (1, 2, 50, 3, 400)],
    "whole nanoseconds, many ties": [RANDOM.integers(2300, 2310, 999) for _ in range(3)],
    "a large offset (1e9) and a small spread": [1e9 + RANDOM.normal(0, 1e-2, 400) for _ in range(3)],
    "a random walk": [np.cumsum(RANDOM.normal(0, 1, 300)) + 1000 for _ in range(2)],
    "all equal": [[5.0] * 10, [5.0] * 7],
    "zeros": [[0.0] * 5, [0.0] * 5],
    "negative": [RANDOM.normal(-50, 5, 20) for _ in range(3)],
    "empty runs between": [[], [1.0, 2.0, 4.0], [], [8.0, 16.0]],
}


@pytest.mark.parametrize("name", DATA)
def test_generated_data(name):
    assert_same(probe(DATA[name]), reference(DATA[name]))


@pytest.mark.parametrize("n", range(6))
@pytest.mark.parametrize("runs", [1, 2])
def test_the_smallest_data(n, runs):
    for _ in range(20):
        data = [RANDOM.lognormal(0, 1, n) for _ in range(runs)]
        assert_same(probe(data), reference(data))


@pytest.mark.parametrize("n", range(6, 41))
def test_the_interval_of_the_median_covers_it_in_at_least_95_percent(n):
    values = np.arange(1.0, n + 1)
    low, high = probe([values])["median_interval"]
    k = int(low)
    assert high == n + 1 - k, "the interval is symmetric in rank"
    below = scipy.stats.binom.cdf
    assert 1 - 2 * below(k - 1, n, 0.5) >= 0.95, "it covers"
    assert 1 - 2 * below(k, n, 0.5) < 0.95, "and no narrower one does"


def test_a_million_values():
    data = [RANDOM.lognormal(7.7, 0.3, 250_000) for _ in range(4)]
    assert_same(probe(data), reference(data))
