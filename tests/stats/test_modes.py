"""How many modes harness/stats finds in data of which it is known: a table of distributions, each simulated often."""

import numpy as np
import pytest
from stats_probe import compute, compute_many

SAMPLES = 200


def mixture(*parts):
    """Of normal distributions: (share, mean, sd), …"""
    shares, means, sds = np.transpose(parts)

    def draw(random, n):
        part = random.choice(len(parts), size=n, p=shares)
        return random.normal(means[part], sds[part])

    return draw


def in_ticks(width, draw):
    return lambda random, n: np.floor(draw(random, n) / width) * width


def by_clock(period, draw):
    """Differences of two readings in whole nanoseconds of a clock whose period is not whole: 41, 42, 83, 84, …"""

    def measure(random, n):
        begin = random.uniform(0, 1e6, n)
        end = begin + draw(random, n)
        return np.diff([np.floor(np.floor(time / period) * period) for time in (begin, end)], axis=0)[0]

    return measure


def jittered(share, draw):
    """Some of the values a nanosecond off."""
    return lambda random, n: draw(random, n) + (random.random(n) < share) * random.integers(-1, 2, n)


def lognormal(sigma):
    return lambda random, n: random.lognormal(7.6, sigma, n)


def exponential(random, n):
    return 2000 + random.exponential(100, n)


NORMAL = mixture((1, 2000, 30))
WIDE = mixture((1, 2000, 60))

ONE_MODE = {
    "normal": NORMAL,
    "lognormal 0.05": lognormal(0.05),
    "lognormal 0.3": lognormal(0.3),
    "lognormal 1": lognormal(1),
    "exponential": exponential,
    "gamma": lambda random, n: 2000 + random.gamma(2, 50, n),
    "no variance": lambda random, n: 2000 + 20 * random.standard_cauchy(n),
    "power law": lambda random, n: 2000 * (1 + random.pareto(1.5, n)),
    "triangle": lambda random, n: random.triangular(0, 0, 1, n),
    "normal, ticks of 1 ns": in_ticks(1, mixture((1, 2000, 3))),
    "normal, ticks of 16 ns": in_ticks(16, NORMAL),
    "normal, ticks of 32 ns": in_ticks(32, NORMAL),
    "normal, ticks of 32 ns, on few of them": in_ticks(32, mixture((1, 2000, 10))),
    "lognormal, ticks of 1 µs": in_ticks(1000, lognormal(0.5)),
    "exponential, ticks of 16 ns": in_ticks(16, exponential),
    "normal, ticks of 32 ns, many a nanosecond off": jittered(0.5, in_ticks(32, WIDE)),
    "normal, ticks of 10 ns, some a nanosecond off": jittered(0.1, in_ticks(10, mixture((1, 40, 10)))),
    "clock of 24 MHz": by_clock(1e3 / 24, WIDE),
    "clock of 14.3 MHz": by_clock(1e3 / 14.318, mixture((1, 2000, 200))),
    "rates, of times in ticks of 32 ns": lambda random, n: 1e6 / in_ticks(32, WIDE)(random, n),
    "1 in 1000 far away": mixture((0.999, 2000, 30), (0.001, 20_000, 1000)),
    "1 in 100 far away": mixture((0.99, 2000, 30), (0.01, 20_000, 1000)),
    "2 in 100 far away": mixture((0.98, 2000, 30), (0.02, 20_000, 1000)),
    "a peak on a wide base": mixture((0.6, 2000, 5), (0.4, 2000, 300)),
}


@pytest.mark.parametrize("n", [100, 400, 2000])
@pytest.mark.parametrize("name", ONE_MODE)
def test_less_than_2_percent_of_samples_of_one_mode_show_more(name, n):
    random = np.random.default_rng([n, *name.encode()])
    samples = [ONE_MODE[name](random, n) for _ in range(3 * SAMPLES)]
    assert np.mean(np.array(compute_many("modes", [n], samples)) > 1) < 0.02


# Number of modes, distribution, and the share of samples in which it is found, of 400 and of 2,000 values.
SEVERAL_MODES = {
    "50/50": (2, mixture((0.5, 2000, 30), (0.5, 2200, 30)), 0.98, 0.98),
    "50/50, 4 standard deviations apart": (2, mixture((0.5, 2000, 30), (0.5, 2120, 30)), 0.98, 0.98),
    "50/50, ticks of 32 ns": (2, in_ticks(32, mixture((0.5, 2000, 30), (0.5, 2300, 30))), 0.98, 0.98),
    "70/30, the second wider": (2, mixture((0.7, 2000, 30), (0.3, 2300, 60)), 0.98, 0.98),
    "90/10": (2, mixture((0.9, 2000, 30), (0.1, 2600, 60)), 0.98, 0.98),
    "10/90": (2, mixture((0.1, 2000, 30), (0.9, 2600, 60)), 0.98, 0.98),
    "90/10, the second 10 times as wide": (2, mixture((0.9, 2000, 10), (0.1, 2500, 100)), 0.95, 0.98),
    "90/10, the second 50 times as wide": (2, mixture((0.9, 2000, 2), (0.1, 2500, 100)), 0.95, 0.98),
    "90/10, the first 10 times as wide": (2, mixture((0.9, 3000, 100), (0.1, 2500, 10)), 0.98, 0.98),
    "85/10 and a long tail over the second": (
        2,
        lambda random, n: (
            2000
            + random.permutation(
                np.concatenate(
                    [
                        random.normal(0, 2, n - n // 10 - n // 20),
                        random.exponential(300, n // 20),
                        random.normal(400, 20, n // 10),
                    ]
                )
            )
        ),
        0.95,
        0.98,
    ),
    "95/5": (2, mixture((0.95, 2000, 30), (0.05, 3000, 60)), 0.75, 0.94),
    "5/95": (2, mixture((0.05, 2000, 30), (0.95, 3000, 60)), 0.75, 0.94),
    "tens of nanoseconds in ticks of 1 ns": (2, in_ticks(1, mixture((0.9, 40, 1.5), (0.1, 60, 3))), 0.95, 0.98),
    "two skewed": (2, lambda random, n: random.choice([2000, 3500], n) * random.lognormal(0, 0.08, n), 0.95, 0.95),
    "50/49 and 1 in 100 far away": (2, mixture((0.5, 2000, 30), (0.49, 2300, 30), (0.01, 20_000, 3000)), 0.98, 0.98),
    "three alike": (3, mixture((1 / 3, 2000, 30), (1 / 3, 2300, 30), (1 / 3, 2600, 30)), 0.98, 0.98),
    "60/30/10": (3, mixture((0.6, 2000, 30), (0.3, 2300, 30), (0.1, 2900, 60)), 0.95, 0.98),
    "80/10/10": (3, mixture((0.8, 2000, 20), (0.1, 2300, 30), (0.1, 2900, 60)), 0.95, 0.98),
    "five alike": (5, mixture(*[(0.2, 2000 + 300 * i, 20) for i in range(5)]), 0.98, 0.98),
}


@pytest.mark.parametrize("n", [400, 2000])
@pytest.mark.parametrize("name", SEVERAL_MODES)
def test_several_modes_are_found(name, n):
    modes, draw, of_400, of_2000 = SEVERAL_MODES[name]
    random = np.random.default_rng([n, *name.encode()])
    found = compute_many("modes", [n], [draw(random, n) for _ in range(SAMPLES)])
    assert np.mean(np.array(found) == modes) >= (of_400 if n == 400 else of_2000)


RANDOM = np.random.default_rng(2016)

DATA = {
    "39 values": (np.repeat([1.0, 2.0, 9.0], 13), None),
    "40 values": (np.linspace(1, 2, 40), 1),
    "no values": ([], None),
    "one that is not finite": ([*range(99), np.inf], None),
    "one that is no number": ([*range(99), np.nan], None),
    "all equal": ([5.0] * 100, 1),
    "all equal but one": ([5.0] * 99 + [6.0], 1),
    "neighbouring ticks": (RANDOM.permutation([32.0] * 500 + [64.0] * 500), 1),
    "two modes of two values each look like ticks": (RANDOM.choice([100.0, 101.0, 200.0, 201.0], 1000), 1),
    "two modes of seven values each": (RANDOM.choice([100.0, 200.0], 1000) + RANDOM.binomial(6, 0.5, 1000), 2),
    "ticks with a gap between": (RANDOM.permutation([32.0] * 500 + [64.0] * 10 + [96.0] * 490), 2),
    "the first and the last tick are as wide as the others": (np.repeat([32.0, 64.0, 96.0], [500, 200, 300]), 2),
    "the same mirrored": (np.repeat([32.0, 64.0, 96.0], [300, 200, 500]), 2),
    "negative": (-exponential(RANDOM, 1000), 1),
    "a small spread on a large offset": (1e9 + 1e-3 * RANDOM.normal(size=1000), 1),
    "a million of one mode": (lognormal(0.3)(RANDOM, 1_000_000), 1),
    "a million, 90/10": (mixture((0.9, 2000, 30), (0.1, 2600, 60))(RANDOM, 1_000_000), 2),
    "the first half slow": (np.concatenate([RANDOM.normal(2300, 30, 50_000), RANDOM.normal(2000, 30, 50_000)]), 2),
    "every 16th slow, and every 16th of them is looked at": (
        RANDOM.normal(2000, 30, 32_000) + 1000 * (np.arange(32_000) % 16 == 3),
        2,
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_single_data_sets(name):
    values, modes = DATA[name]
    assert compute("modes", [values]) == modes


def test_the_same_data_have_the_same_modes_whatever_the_unit():
    for draw in (NORMAL, in_ticks(32, mixture((0.93, 2000, 60), (0.07, 2300, 60)))):
        values = draw(RANDOM, 20_000)
        found = [compute("modes", [values * unit]) for unit in (1, 1, 1e-9, 2**20)]
        assert len(set(found)) == 1


def test_a_million_values_take_less_than_a_tenth_of_a_second():
    values = lognormal(0.1)(RANDOM, (3, 1_000_000))
    assert min(compute_many("seconds of modes", [1_000_000], values)) < 0.1
