"""Simulates the table of dip_limit in harness/stats/modes.cpp: sqrt(n) times the dip that 0.5 % of uniform samples of n
values exceed, with its standard error. Takes about ten minutes.

    LAUNCHGAP_BUILD=build .venv/bin/python3 tests/stats/dip_limits.py
"""

import numpy as np
from stats_probe import compute_many

SAMPLES = 1_000_000
AT_ONCE = 2_000_000  # values
TAIL = 0.005

random = np.random.default_rng(1985)
for n in (10, 20, 50, 100, 200, 500, 1000, 2000):
    dips = []
    while len(dips) < SAMPLES:
        dips += compute_many("dip", [n], random.random((AT_ONCE // n, n)))
    limit = np.quantile(dips, 1 - TAIL)
    reach = np.sqrt(TAIL * (1 - TAIL) / len(dips))
    error = np.subtract(*np.quantile(dips, [1 - TAIL + reach, 1 - TAIL - reach])) / 2
    print(f"{{{n}, {limit * n**0.5:.4f}}},  +- {error * n**0.5:.4f}", flush=True)
