"""The shipped binary, run as a user runs it: on the host, and on nodes of fake GPUs."""

import csv
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
LAUNCHGAP = BUILD / "bin" / "launchgap"
NODES = ROOT / "tests" / "fake_cuda" / "nodes"

# Small enough for a fake GPU, which computes every verified result for real.
SMALL = r"launch/(null|flag|echo)/|matmul.*size:256|convolution.*conv5_1x1_2048/n:1/|allocation.*bytes:(256|1048576)$"

# Whether nvcc was there, to compile kernels for GPUs and the plugin around its runtime.
NATIVE = "LAUNCHGAP_NVCC-NOTFOUND" not in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")

# Variables that the tests set themselves: whoever runs the tests may have them, to measure with.
FOREIGN = ("CUDA_", "LAUNCHGAP_", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")

# The plain arm alone.
UNTRACED = ("--trace", "off")

# Tests that run side by side measure devices of the same names: each process of the tests locks in a folder of its own.
LOCKS = tempfile.TemporaryDirectory(prefix="launchgap-test-locks-")


def fake_libraries(real_time=False):
    """What a process needs to run on fake GPUs, and, if not in `real_time`, to wait for them in no time."""
    clock = {} if real_time else {"LD_PRELOAD": str(BUILD / "fake_cuda" / "libfake_clock.so")}
    return {"LD_LIBRARY_PATH": str(BUILD / "fake_cuda")} | clock


def environment(node=None, real_time=False, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    # What a process is worth that measures at once is for tests of what it measures to ask.
    env["LAUNCHGAP_WARM_UP"] = "off"
    env["LAUNCHGAP_LOCK_DIR"] = LOCKS.name
    if node is not None:
        env |= fake_libraries(real_time)
        env["LAUNCHGAP_FAKE_NODE"] = str(node)
        if kept := os.environ.get("LAUNCHGAP_TEST_RESULTS"):
            env["LAUNCHGAP_FAKE_RESULTS"] = kept
    return env | extra


def launchgap(*arguments, node=None, timeout=240, cwd=None, code=None, page=False, **extra):
    """Runs a command to its end, which must have this exit code where one is given; text, not bytes.

    An import draws its page only if `page`: that takes longer than the import."""
    words = [*map(str, arguments)]
    if words[:1] == ["import"] and not page:
        words.insert(1, "--no-report")
    done = subprocess.run(
        [LAUNCHGAP, *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env=environment(node, **extra),
        stdin=subprocess.DEVNULL,
    )
    assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def records(session):
    """Every whole record of a session, by file."""
    out = {}
    for path in sorted((session / "records").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").split("\n")
        out[path.name] = [json.loads(line) for line in lines[:-1]]
    return out
