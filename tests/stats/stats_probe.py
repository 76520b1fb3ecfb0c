"""What build/bin/stats_probe, and so harness/stats, makes of data; LAUNCHGAP_BUILD names another build folder."""

import json
import os
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
PROBE = ROOT / os.environ.get("LAUNCHGAP_BUILD", "build") / "bin" / "stats_probe"


def compute(name, groups):
    """The function's result for one data set: a list of groups of numbers."""
    [result] = compute_many(name, [len(group) for group in groups], [np.concatenate([*groups, []])])
    return result


def compute_many(name, sizes, data_sets):
    """The same for many data sets, each an array with the values of groups of these sizes one after the other."""
    values = np.ascontiguousarray(data_sets, dtype=np.float64)
    assert values.shape[1] == sum(sizes)
    request = json.dumps({"compute": name, "sizes": [int(size) for size in sizes], "times": len(values)})
    done = subprocess.run(
        [PROBE], input=request.encode() + b"\n" + values.tobytes(), capture_output=True, timeout=100, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
