"""The dip against the package diptest, and the limits against its table and against simulation."""

import diptest
import numpy as np
import pytest
from diptest.consts import Consts
from stats_probe import compute, compute_many

RANDOM = np.random.default_rng(1985)


def two_modes(n):
    return np.concatenate([RANDOM.normal(0, 1, n - n // 3), RANDOM.normal(6, 0.1, n // 3)])


SAMPLES = {
    "normal": lambda n: RANDOM.normal(size=n),
    "uniform": RANDOM.random,
    "two modes": two_modes,
    "heavy tail": lambda n: RANDOM.pareto(1, n),
    "whole numbers, some equal": lambda n: RANDOM.integers(0, max(2, n // 3), n),
    "a few steps": lambda n: RANDOM.integers(0, 3, n) * 32,
    "rounded, skewed": lambda n: np.round(RANDOM.exponential(5, n)),
    "at equal distances": lambda n: np.arange(n) * 0.1,
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("n", [*range(1, 31), 100, 333, 2000])
def test_it_is_that_of_diptest(name, n):
    samples = np.array([SAMPLES[name](n) for _ in range(30)], dtype=float)
    expected = [diptest.dipstat(sample, allow_zero=True) for sample in samples]
    assert compute_many("dip", [n], samples) == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    "values, dip",
    [
        ([], 0),
        ([7], 0),
        ([7, 7, 7, 7], 0),
        ([0] * 50 + [1] * 50, 0.25),  # two points: the largest there is
        ([0] * 90 + [1] * 10, 0.05),  # half of the smaller share
    ],
)
def test_known_dips(values, dip):
    assert compute("dip", [values]) == pytest.approx(dip, abs=1e-12)


def limit(n):
    return compute("dip_limit", [np.zeros(n)])


@pytest.mark.parametrize("n", [10, 20, 50, 100, 200, 500, 1000, 2000])
def test_limits_are_those_of_the_table_of_diptest(n):
    """Which others simulated, for R's package of this name."""
    assert Consts.compute_pval_interpolation(n, limit(n)) == pytest.approx(0.005, abs=4e-4)


@pytest.mark.parametrize("n", [10, 15, 30, 70, 150, 300, 700, 1500])
def test_half_a_percent_of_uniform_samples_exceed_the_limit(n):
    count = 3_000_000 // n
    exceed = np.mean(np.array(compute_many("dip", [n], RANDOM.random((count, n)))) > limit(n))
    assert exceed == pytest.approx(0.005, abs=4 * (0.005 / count) ** 0.5)


def test_nothing_exceeds_the_limit_of_nine_values():
    assert limit(9) == 0.25


def test_limits_go_on_above_the_table():
    assert limit(8000) == pytest.approx(limit(2000) / 2)
