"""A thousand small operations of CuPy, one by one or as a graph: what a launch costs from Python.

    launchgap record --runs 10 --step step -o results/eager -- python cupy_operations.py eager
    launchgap record --runs 10 --step step -o results/captured -- python cupy_operations.py captured
    launchgap report results/eager results/captured

CuPy launches by cuLaunchKernel, as launchgap's own launch/null does.
"""

import sys

try:
    import cupy
    from cupyx.profiler import time_range
except ImportError:
    sys.exit(print("CuPy is missing: pip install cupy-cuda13x", file=sys.stderr) or 77)
if not cupy.is_available():
    sys.exit(print("CuPy finds no GPU: launchgap doctor", file=sys.stderr) or 77)

STEPS, OPERATIONS = 50, 1000
values = cupy.ones(1024, dtype=cupy.float32)


def operations():
    for _ in range(OPERATIONS):
        cupy.multiply(values, 1.0001, out=values)


stream, graph = cupy.cuda.Stream(non_blocking=True), None
with stream:
    operations()  # what is slow once: context, compiling
    if sys.argv[1:] == ["captured"]:
        stream.begin_capture()
        operations()
        graph = stream.end_capture()
    for number in range(STEPS):
        with time_range(f"step#{number}"):
            graph.launch(stream) if graph else operations()
            stream.synchronize()
