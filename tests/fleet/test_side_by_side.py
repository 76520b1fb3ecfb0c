"""Products on several GPUs of a machine go side by side, as many as there are CPUs, and the plan says what that takes."""

import json
import os
import re
import time

import pytest
import skewed_nodes
from shipped import UNTRACED, launchgap

CPUS = len(os.sched_getaffinity(0))
# 86 ms each at 0.2 TFLOP/s: what a session takes beside the work is little.
PRODUCTS = ("--filter", "^matmul/library/size:2048/type:fp32/cache:warm", "--profile", "nightly", *UNTRACED)


def node_of(folder, gpus):
    node = skewed_nodes.node("quiet")
    node["devices"] = node["devices"][:gpus]
    for device in node["devices"]:
        device["tflops"] = {"fp32": 0.2}
    (folder / f"{gpus}.json").write_text(json.dumps(node))
    return folder / f"{gpus}.json"


@pytest.mark.compares_times
def test_as_many_gpus_as_cpus_take_hardly_longer_than_one(tmp_path):
    took = []
    for gpus in (1, min(8, CPUS)):
        node, begin = node_of(tmp_path, gpus), time.monotonic()
        what = ("--devices", "gpu", "--runs", "1", "--no-report", *PRODUCTS)
        launchgap("run", *what, "-o", tmp_path / f"s{gpus}", node=node, code=0, real_time=True)
        took.append(time.monotonic() - begin)
    assert took[1] < 1.3 * took[0], took


def test_where_there_are_fewer_cpus_the_plan_says_so(tmp_path):
    gpus = 8
    if gpus <= CPUS:
        pytest.skip("each GPU has a CPU")
    said = {}
    for count in (1, gpus):
        node = node_of(tmp_path, count)
        done = launchgap("run", "--dry-run", "--json", "--devices", "gpu", "--runs", "1", *PRODUCTS, node=node, code=0)
        said[count] = json.loads(done.stdout)["seconds"]
    waves = -(-gpus // CPUS)
    assert said[gpus] == pytest.approx(waves * said[1], rel=0.01)
    text = launchgap("run", "--dry-run", "--devices", "gpu", "--runs", "1", *PRODUCTS, node=node, code=0).stdout
    assert re.search(rf"Of {gpus} GPUs that could be measured side by side, {CPUS} at a time are", text)
