"""nested_effects against the analysis of variance by numpy, and what it makes of simulated hosts."""

import numpy as np
import pytest
from stats_probe import compute, compute_many

RANDOM = np.random.default_rng(1992)


def nested(hosts):
    return compute("nested_effects", [[len(host) for host in hosts], *[device for host in hosts for device in host]])


def simulated(sizes, host_sd, device_sd, run_sd):
    """`sizes`: of each host, how many runs each of its devices has."""
    hosts = []
    for devices in sizes:
        level = RANDOM.normal(0, host_sd)
        hosts.append([2000 * np.exp(level + RANDOM.normal(0, device_sd) + RANDOM.normal(0, run_sd, n)) for n in devices])
    return hosts


def reference(hosts):
    """Variances of logarithms by sums of squares over all values, each with the expectation of its mean square found by
    working out what a unit of each variance adds to it."""
    values = np.concatenate([np.log(device) for host in hosts for device in host])
    values = values - values.mean()
    host_of = np.concatenate([np.full(len(d), i) for i, host in enumerate(hosts) for d in host])
    device_of = np.concatenate([np.full(len(d), i) for i, d in enumerate(d for host in hosts for d in host)])

    def projector(groups):
        one = (groups[:, None] == np.unique(groups)[None, :]).astype(float)
        return one @ np.linalg.pinv(one)

    everything, of_hosts, of_devices = np.full((len(values),) * 2, 1 / len(values)), projector(host_of), projector(device_of)
    squares = [of_hosts - everything, of_devices - of_hosts, np.eye(len(values)) - of_devices]
    same = [
        (host_of[:, None] == host_of).astype(float),
        (device_of[:, None] == device_of).astype(float),
        np.eye(len(values)),
    ]
    expected = np.array([[np.trace(q @ v) for v in same] for q in squares])
    return np.linalg.solve(expected, [values @ q @ values for q in squares])


@pytest.mark.parametrize(
    "sizes",
    [[[4] * 3] * 5, [[3, 5], [2, 2, 7], [4], [1, 6]], [[2, 1], [1, 1, 1], [3]], [[8] * 8] * 4],
    ids=["equal", "different", "few", "many"],
)
def test_it_is_the_analysis_of_variance(sizes):
    for _ in range(20):
        hosts = simulated(sizes, 0.03, 0.02, 0.01)
        found, expected = nested(hosts), reference(hosts)
        for key, value in zip(("host", "device", "run"), expected, strict=True):
            if (expected > 0).all():
                assert found[key] == pytest.approx(value, rel=1e-9, abs=1e-15)
            assert found[key] >= 0


def test_what_was_put_in_is_found():
    sums = np.zeros(3)
    for _ in range(60):
        found = nested(simulated([[4] * 8] * 30, 0.02, 0.01, 0.005))
        sums += [found["host"], found["device"], found["run"]]
    assert sums / 60 == pytest.approx([4e-4, 1e-4, 2.5e-5], rel=0.12)


def test_where_only_runs_differ_the_rest_is_small():
    found = nested(simulated([[6] * 8] * 50, 0, 0, 0.01))
    assert found["run"] == pytest.approx(1e-4, rel=0.1)
    assert found["host"] < 5e-6
    assert found["device"] < 5e-6


ABSENT = {
    "nothing": ([], (False, False, False)),
    "one value": ([[[5.0]]], (False, False, False)),
    "one device": ([[[5.0, 6.0]]], (False, False, True)),
    "one host": ([[[5.0, 6.0], [7.0, 8.0]]], (False, True, True)),
    "one run of each": ([[[5.0], [6.0]], [[7.0], [8.0]]], (True, True, False)),
    "one device of each host": ([[[5.0, 6.0]], [[7.0, 8.0]]], (True, False, True)),
    "a value without a logarithm": ([[[5.0, 0.0], [6.0, 7.0]], [[7.0, 8.0]]], (False, False, False)),
}


@pytest.mark.parametrize("name", ABSENT)
def test_what_cannot_be_told_is_absent(name):
    hosts, there = ABSENT[name]
    found = nested(hosts)
    assert tuple(found[key] is not None for key in ("host", "device", "run")) == there


def test_scale_makes_no_difference():
    hosts = simulated([[3, 4], [5, 2]], 0.03, 0.02, 0.01)
    larger = [[device * 1e6 for device in host] for host in hosts]
    assert nested(larger) == pytest.approx(nested(hosts), rel=1e-9)


def test_lists_without_values_do_not_count():
    hosts = simulated([[3, 4], [5, 2]], 0.03, 0.02, 0.01)
    assert nested([*hosts, [[]], []]) == pytest.approx(nested(hosts), rel=1e-12)


# --- the rule for groups that show how they spread ---


def named(k, sd, slow, at=0):
    logs = RANDOM.normal(0, sd, k)[:, None] + RANDOM.normal(0, 0.002, (k, 3))
    logs[at] += np.log(slow)
    [found] = compute_many("deviations", [3] * k, [np.exp(logs).ravel()])
    return [i for i, one in enumerate(found) if one["deviates"]]


def test_of_many_alike_none_is_named_for_lying_far_out():
    """With 2 % between devices a thousand have some at 6 %."""
    claims = sum(len(named(1000, 0.02, 1)) for _ in range(60))
    assert claims <= 6


def test_of_many_the_one_beyond_their_spread_is_named():
    for _ in range(20):
        assert 5 in named(1000, 0.02, 1.2, at=5)


def test_of_a_few_their_spread_is_not_known():
    assert 0 in named(19, 0.03, 1.12)


def test_of_many_an_erratic_one_does_not_hide_a_slow_one():
    for _ in range(20):
        logs = RANDOM.normal(0, 0.004, 24)[:, None] + RANDOM.normal(0, 0.005, (24, 6))
        logs[3] += np.log(1.06)
        logs[7, 3:] += np.log(1.5)
        [found] = compute_many("deviations", [6] * 24, [np.exp(logs).ravel()])
        assert [i for i, one in enumerate(found) if one["deviates"]] == [3]
