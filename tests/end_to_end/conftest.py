"""The shipped binary, run as a user runs it: on the host, and on nodes of fake GPUs."""

import csv
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
LAUNCHGAP = BUILD / "bin" / "launchgap"
NODES = ROOT / "tests" / "fake_cuda" / "nodes"

# Small enough for a fake GPU, which computes every verified result for real.
SMALL = r"launch|matmul.*size:256|convolution.*conv5_1x1_2048/n:1/|allocation.*bytes:(256|1048576)$"


def environment(node=None, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "LAUNCHGAP_"))}
    if node is not None:
        env["LD_LIBRARY_PATH"] = str(BUILD / "fake_cuda")
        env["LAUNCHGAP_FAKE_NODE"] = str(node)
    return env | extra


def launchgap(*arguments, node=None, timeout=240, cwd=None, **extra):
    """Runs a command to its end; text, not bytes."""
    return subprocess.run(
        [LAUNCHGAP, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env=environment(node, **extra),
        stdin=subprocess.DEVNULL,
    )


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


@pytest.fixture
def lock_dir(tmp_path):
    """Locks of a test's own, so that a session on this machine does not disturb it."""
    folder = tmp_path / "locks"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path, lock_dir):
    """`launchgap run` into a folder of the test's own: returns the finished process and the session."""

    def start(*arguments, node=None, timeout=240, **extra):
        session = tmp_path / "session"
        done = launchgap(
            "run", *arguments, "-o", session, node=node, timeout=timeout, LAUNCHGAP_LOCK_DIR=str(lock_dir), **extra
        )
        return done, session

    return start


@pytest.fixture
def make_node(tmp_path):
    """Writes a node description: `one_a100.json` with changes to its device, and faults."""

    def write(faults=(), devices=1, **changes):
        node = json.loads((NODES / "one_a100.json").read_text())
        first = node["devices"][0] | changes
        node["devices"] = [
            first | {"uuid": first["uuid"][:-2] + f"{i:02x}", "pci": f"0000:{7 + i:02x}:00.0"} for i in range(devices)
        ]
        node["faults"] = list(faults)
        path = tmp_path / "node.json"
        path.write_text(json.dumps(node))
        return path

    return write
