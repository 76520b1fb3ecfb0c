"""random_effects against statsmodels, scipy and its own definition, and how often its intervals hold the truth."""

import decimal
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from stats_probe import compute, compute_many

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from statsmodels.regression.mixed_linear_model import MixedLM

RANDOM = np.random.default_rng(1971)
PARTS = ("within_sd", "between_sd", "icc")
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def simulated(sizes, icc, sd=0.1):
    """Lognormal groups of these sizes; of the variance of the logarithms, `icc` is between them."""
    return [2000 * np.exp(sd * (np.sqrt(icc) * RANDOM.normal() + np.sqrt(1 - icc) * RANDOM.normal(size=n))) for n in sizes]


DATA = {
    "10 groups of 20": simulated([20] * 10, 0.3),
    "3 groups of 500": simulated([500] * 3, 0.1),
    "2 groups of 30": simulated([30] * 2, 0.8),
    "50 groups of 5": simulated([5] * 50, 0.5),
    "from 5 to 80": simulated([5, 10, 20, 40, 80], 0.5),
    "some tiny, some huge": simulated([3, 300, 30, 7, 50, 2, 1], 0.9),
    "one far larger": simulated([1000, 10, 12, 15], 0.4),
    "30 random sizes": simulated(RANDOM.integers(1, 60, 30), 0.3),
}
NOTHING_BETWEEN = {
    "4 groups of 20": [RANDOM.permutation(np.linspace(10, 11, 20)) for _ in range(4)],
    "of 10 to 40": [RANDOM.permutation(np.linspace(10, 11, n)) for n in (10, 20, 40)],
}


# --- the same, from the definition ---


class Reference:
    """The sufficient statistics of the logarithms, and what the header says of them; with 19 digits."""

    def __init__(self, groups):
        logs = [np.log(np.asarray(group, dtype=np.longdouble)) for group in groups]
        self.sizes = np.array([len(group) for group in logs], dtype=np.longdouble)
        self.means = np.array([group.mean() for group in logs])
        self.ssw = sum(((group - group.mean()) ** 2).sum() for group in logs)
        self.k, self.total = len(logs), sum(len(group) for group in logs)

    def squares(self, between, within):
        """Of the means about their weighted mean, with their inverse variances as weights."""
        weights = 1 / (between + within / self.sizes)
        return (weights * (self.means - weights @ self.means / weights.sum()) ** 2).sum()

    def deviance(self, ratio):
        weights = self.sizes / (1 + ratio * self.sizes)
        return (
            (self.total - 1) * np.log(self.ssw + self.squares(ratio, 1))
            + np.log1p(ratio * self.sizes).sum()
            + np.log(weights.sum())
        )

    def reml(self):
        """Within and between at the least deviance: on a grid of the ratio's logarithm, then within a step."""

        def deviance(t):
            return self.deviance(np.exp(np.longdouble(t)))

        found = [
            scipy.optimize.minimize_scalar(deviance, bounds=(t, t + 2), method="bounded", options={"xatol": 1e-12})
            for t in range(-24, 16)
        ]
        best = min(found, key=lambda result: result.fun)
        ratio = np.exp(best.x) if best.fun < self.deviance(0) else 0
        within = np.sqrt((self.ssw + self.squares(ratio, 1)) / (self.total - 1))
        return within, np.sqrt(ratio) * within

    def within_interval(self):
        return np.sqrt(float(self.ssw) / scipy.stats.chi2.ppf([0.975, 0.025], self.total - self.k))

    def icc_interval(self):
        msw = self.ssw / (self.total - self.k)
        ends = []
        for p in (0.975, 0.025):
            f = scipy.stats.f.ppf(p, self.k - 1, self.total - self.k)
            ends.append(decreasing_root(lambda r, f=f: self.squares(r, 1) / ((self.k - 1) * msw) - f))
        return np.array(ends) / (1 + np.array(ends))

    def between_interval(self):
        u, v = scipy.stats.chi2(self.k - 1), scipy.stats.chi2(self.total - self.k)
        # Over the logarithm of the value, where the density of few degrees of freedom has no pole.
        cuts = np.log(v.ppf([1e-13, 1e-6, 0.01, 0.5, 0.99, 1 - 1e-6, 1 - 1e-13]))
        halves = np.diff(cuts)[:, np.newaxis] / 2
        places = np.exp(cuts[:-1, np.newaxis] + halves * (1 + NODES)).ravel()
        masses = (halves * WEIGHTS).ravel() * v.pdf(places) * places
        within = (self.ssw / places)[:, np.newaxis]

        def less_probable(between, tail):  # the probability that a larger one solves the equation, less 1 - tail
            weights = 1 / (between + within / self.sizes)
            centres = ((weights * self.means).sum(axis=1) / weights.sum(axis=1))[:, np.newaxis]
            squares = (weights * (self.means - centres) ** 2).sum(axis=1)
            return masses @ u.cdf(squares.astype(float)) - (1 - tail)

        return np.sqrt([decreasing_root(lambda b, tail=tail: less_probable(b, tail)) for tail in (0.025, 0.975)])


def decreasing_root(function):
    """Where a decreasing function of a number that is not negative is 0; 0 if it is negative from there on."""
    if function(0) <= 0:
        return 0.0
    high = 1e-9
    while function(high) > 0:
        high *= 10
    return scipy.optimize.brentq(function, high / 10 if high > 1e-9 else 0, high, xtol=1e-300, rtol=1e-12)


# --- estimates ---


def values(result):
    return [result[part]["value"] for part in PARTS]


def with_icc(within, between):
    return [within, between, between**2 / (within**2 + between**2)]


def statsmodels_reml(groups):
    """The best of several optimisers' fits, since each stops early now and then. Of standardised logarithms."""
    logs = np.log(np.concatenate(groups))
    unit = logs.std()
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    model = MixedLM((logs - logs.mean()) / unit, np.ones_like(logs), groups=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [model.fit(reml=True, method=method, gtol=1e-10) for method in ("bfgs", "cg")]
        fits.append(model.fit(reml=True, method="powell", xtol=1e-12, ftol=1e-15))
    fit = max(fits, key=lambda result: result.llf)
    return with_icc(unit * fit.scale**0.5, unit * fit.cov_re[0, 0] ** 0.5)


@pytest.mark.parametrize("name", DATA)
def test_estimates_are_those_of_statsmodels(name):
    assert values(compute("random_effects", DATA[name])) == pytest.approx(statsmodels_reml(DATA[name]), rel=1e-6)


@pytest.mark.parametrize("name", DATA)
def test_estimates_have_the_greatest_restricted_likelihood(name):
    expected = with_icc(*Reference(DATA[name]).reml())
    assert values(compute("random_effects", DATA[name])) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", NOTHING_BETWEEN)
def test_what_would_be_negative_is_zero(name):
    groups = NOTHING_BETWEEN[name]
    within, between, icc = values(compute("random_effects", groups))
    assert (between, icc) == (0, 0)
    assert within == pytest.approx(np.log(np.concatenate(groups)).std(ddof=1), rel=1e-9), "all that varies is within"
    assert [within, 0, 0] == pytest.approx(statsmodels_reml(groups), rel=1e-6, abs=1e-6)
    assert [within, 0, 0] == pytest.approx(with_icc(*Reference(groups).reml()), rel=1e-6)


def with_means(sizes, means):
    """Groups whose logarithms have these means and a standard deviation of 1, all in units of 2 %."""
    spread = [np.linspace(-1, 1, n) for n in sizes]
    return [np.exp(0.02 * (mean + z / z.std(ddof=1))) for mean, z in zip(means, spread, strict=True)]


TWO_MAXIMA = {
    "one without anything between": ([200] * 4 + [2] * 7, [0, 0.01, 0, 0, -0.9, 2.6, 1.3, -1.5, 4.2, -2.6, 1.2]),
    "the greater one at more between": ([10_000] * 2 + [3] * 7, [0.02, -0.01, 0.93, -2.65, -1.55, 0.06, -2.05, 0.04, -0.08]),
    "the greater one at less between": (
        [10_000] * 4 + [3] * 8,
        [0.015, -0.059, 0.041, 0.02, 1.48, 0.93, 0.75, 0.07, 1.4, -1.88, -0.42, -1.23],
    ),
}


@pytest.mark.parametrize("name", TWO_MAXIMA)
def test_the_likelihood_can_have_two_maxima(name):
    """Large groups that agree and small ones that do not."""
    groups = with_means(*TWO_MAXIMA[name])
    reference = Reference(groups)
    deviances = np.array([np.inf, *map(reference.deviance, [0, *np.exp(np.arange(-12, 8, 0.1))])])
    assert sum((deviances[1:-1] < deviances[:-2]) & (deviances[1:-1] < deviances[2:])) == 2
    expected = with_icc(*reference.reml())
    assert values(compute("random_effects", groups)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in DATA if "groups of" in name])
def test_groups_of_one_size_give_the_analysis_of_variance(name):
    logs = np.log(DATA[name])
    k, n = logs.shape
    msw = logs.var(axis=1, ddof=1).mean()
    msb = n * logs.mean(axis=1).var(ddof=1)
    result = compute("random_effects", DATA[name])
    expected = with_icc(msw**0.5, ((msb - msw) / n) ** 0.5)
    assert values(result) == pytest.approx(expected, rel=1e-10)
    f = msb / msw / scipy.stats.f.ppf([0.975, 0.025], k - 1, k * (n - 1))
    assert result["icc"]["interval"] == pytest.approx(np.maximum(0, (f - 1) / (f - 1 + n)), rel=1e-10)


def test_a_spread_in_the_last_digits():
    """1e9 with a spread of 1e-6 against decimal arithmetic: doubles there are 1.2e-7 apart."""
    groups = [1e9 + 1e-6 * (RANDOM.normal() + RANDOM.normal(size=50)) for _ in range(6)]
    with decimal.localcontext() as context:
        context.prec = 60
        logs = [[decimal.Decimal(float(value)).ln() for value in group] for group in groups]
        means = [sum(group) / 50 for group in logs]
        msw = sum((value - mean) ** 2 for group, mean in zip(logs, means, strict=True) for value in group) / (6 * 49)
        msb = 50 * sum((mean - sum(means) / 6) ** 2 for mean in means) / 5
        expected = with_icc(float(msw.sqrt()), float(((msb - msw) / 50).sqrt()))
    assert values(compute("random_effects", groups)) == pytest.approx(expected, rel=1e-9)


def test_the_unit_does_not_matter():
    groups = DATA["from 5 to 80"]
    in_nanoseconds = compute("random_effects", groups)
    in_seconds = compute("random_effects", [group * 1e-9 for group in groups])
    for part in PARTS:
        assert in_seconds[part]["value"] == pytest.approx(in_nanoseconds[part]["value"], rel=1e-9)
        assert in_seconds[part]["interval"] == pytest.approx(in_nanoseconds[part]["interval"], rel=1e-9)


# --- intervals ---


@pytest.mark.parametrize("name", [*DATA, *NOTHING_BETWEEN])
def test_intervals_are_what_the_header_says(name):
    groups = (DATA | NOTHING_BETWEEN)[name]
    result, reference = compute("random_effects", groups), Reference(groups)
    assert result["within_sd"]["interval"] == pytest.approx(reference.within_interval(), rel=1e-9)
    assert result["icc"]["interval"] == pytest.approx(reference.icc_interval(), rel=1e-9)
    assert result["between_sd"]["interval"] == pytest.approx(reference.between_interval(), rel=1e-7)


@pytest.mark.parametrize("sizes, tolerance", [([2, 1, 1], 1e-3), ([2, 2], 1e-5), ([3, 1, 4], 1e-6)])
def test_the_interval_between_the_smallest_groups(sizes, tolerance):
    groups = [100 * np.exp(np.linspace(-0.01, 0.013, n) + shift) for n, shift in zip(sizes, (0, 0.5, 0.8), strict=False)]
    result = compute("random_effects", groups)["between_sd"]["interval"]
    assert result == pytest.approx(Reference(groups).between_interval(), rel=tolerance)


def sizes_of(k, n, equal):
    return [n] * k if equal else [int(n * share) for share in np.resize([0.25, 0.5, 1, 1.25, 2], k)]


SIMULATIONS = 1500


@pytest.mark.parametrize("icc", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "unequal"])
@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("k", [5, 10, 20])
def test_intervals_cover_the_truth_in_93_to_97_percent(k, n, equal, icc):
    random = np.random.default_rng([k, n, equal, int(10 * icc)])
    sizes = sizes_of(k, n, equal)
    truth = dict(zip(PARTS, with_icc(0.1 * (1 - icc) ** 0.5, 0.1 * icc**0.5), strict=True))
    logs = random.normal(scale=truth["within_sd"], size=(SIMULATIONS, sum(sizes)))
    logs += np.repeat(random.normal(scale=truth["between_sd"], size=(SIMULATIONS, k)), sizes, axis=1)
    results = compute_many("random_effects", sizes, np.exp(logs, out=logs))
    covered = {
        part: np.mean([r[part]["interval"][0] <= truth[part] <= r[part]["interval"][1] for r in results]) for part in PARTS
    }
    print(f"coverage k={k} n={n} {'equal' if equal else 'unequal'} icc={icc}: {covered}")
    assert all(0.93 <= share <= 0.97 for share in covered.values()), covered


# --- what is not defined ---

ALL, WITHIN, NO_ICC, NONE = set(PARTS), {"within_sd"}, {"within_sd", "between_sd"}, set()
DEFINED = {
    "no groups": ([], NONE),
    "no values": ([[], []], NONE),
    "one value": ([[5.0]], NONE),
    "one value per group: within and between are one": ([[5.0], [6.0], [7.0]], NONE),
    "one group": ([[5.0, 6.0, 7.0]], WITHIN),
    "one group with values": ([[], [5.0, 6.0, 7.0], []], WITHIN),
    "one group that varies": ([[5.0, 6.0], [7.0]], ALL),
    "all equal": ([[5.0, 5.0], [5.0, 5.0, 5.0]], NO_ICC),
    "equal within groups": ([[5.0, 5.0], [6.0, 6.0, 6.0], [8.0]], ALL),
    "equal means": ([[5.0, 6.0], [6.0, 5.0]], ALL),
    "a zero": ([[5.0, 6.0], [7.0, 0.0]], NONE),
    "a negative value": ([[5.0, 6.0], [7.0, -1.0]], NONE),
    "an infinite value": ([[5.0, 6.0], [7.0, np.inf]], NONE),
    "not a number": ([[5.0, 6.0], [7.0, np.nan]], NONE),
    "the largest and the smallest number": ([[1.7e308, 5e-324], [1.0, 2.0]], ALL),
}


@pytest.mark.parametrize("name", DEFINED)
def test_what_is_defined(name):
    groups, defined = DEFINED[name]
    result = compute("random_effects", groups)
    assert {part for part in PARTS if result[part]} == defined
    for part in defined:
        low, high = result[part]["interval"]
        assert 0 <= low <= high < np.inf


def test_what_does_not_vary_has_no_spread():
    result = compute("random_effects", [[5.0, 5.0], [5.0, 5.0, 5.0]])
    nothing = {"value": 0, "interval": [0, 0]}
    assert result == {"within_sd": nothing, "between_sd": nothing, "icc": None}


def test_groups_that_vary_only_between():
    result = compute("random_effects", [[5.0, 5.0], [6.0, 6.0, 6.0], [8.0]])
    logs = np.log([5, 6, 8])
    assert result["within_sd"] == {"value": 0, "interval": [0, 0]}
    assert result["icc"] == {"value": 1, "interval": [1, 1]}
    assert result["between_sd"]["value"] == pytest.approx(logs.std(ddof=1))
    interval = np.sqrt(2 * logs.var(ddof=1) / scipy.stats.chi2.ppf([0.975, 0.025], 2))
    assert result["between_sd"]["interval"] == pytest.approx(interval)


@pytest.mark.parametrize("sd", [1e-9, 0.05, 0.5, 1.0])
def test_the_coefficient_of_variation_of_a_lognormal(sd):
    expected = float(scipy.stats.lognorm(sd).std() / scipy.stats.lognorm(sd).mean()) if sd > 1e-6 else sd
    assert compute("lognormal_cv", [[sd]]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.compares_times
def test_ten_million_values_take_less_than_a_second():
    groups = np.exp(RANDOM.normal(size=(2, 10_000_000)))
    assert min(compute_many("seconds of random_effects", [1_000_000] * 10, groups)) < 1
