"""A thousand small operations of TensorFlow, one by one or as a function: what its executor does to launches.

    launchgap record --runs 10 --step step -o results/eager -- python tensorflow_operations.py eager
    launchgap record --runs 10 --step step -o results/captured -- python tensorflow_operations.py captured
    launchgap report results/eager results/captured

A traced function (tf.function) still launches kernel by kernel, from other threads and with less Python in between.
"""

import sys

try:
    import tensorflow as tf
except ImportError:
    sys.exit(print("TensorFlow is missing: pip install tensorflow", file=sys.stderr) or 77)
if not tf.config.list_physical_devices("GPU"):
    sys.exit(print("TensorFlow finds no GPU: launchgap doctor --for tensorflow", file=sys.stderr) or 77)
try:
    from nvtx import annotate  # pip install nvtx; without it there are no steps
except ImportError:
    from contextlib import nullcontext as annotate

STEPS, OPERATIONS = 50, 1000


def operations(values):
    for _ in range(OPERATIONS):
        values = values * 1.0001
    return values


step = tf.function(operations) if sys.argv[1:] == ["captured"] else operations
with tf.device("/GPU:0"):
    values = step(tf.ones([1024]))  # what is slow once: context, tracing
    for number in range(STEPS):
        with annotate(f"step#{number}"):
            values = step(values)
            values.numpy()
