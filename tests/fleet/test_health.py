"""`launchgap health` on fake nodes: the code, the line, the time, and that nothing is left."""

import json
import subprocess
import time

import pytest
from shipped import LAUNCHGAP, NODES, environment, launchgap

pytestmark = pytest.mark.compares_times  # with the limit of 30 s

EIGHT = NODES / "mixed_8_gpus.json"
LIMIT_S = 30


def node_with(tmp_path, *faults):
    node = json.loads(EIGHT.read_text(encoding="utf-8")) | {"faults": list(faults)}
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node), encoding="utf-8")
    return path


def health(tmp_path, node, *options):
    """The exit code and the line; each look at the node leaves no file and no lock."""
    left = tmp_path / "left"
    left.mkdir(exist_ok=True)
    begin = time.monotonic()
    done = subprocess.run(
        [LAUNCHGAP, "health", *options],
        env=environment(node, TMPDIR=str(left), LAUNCHGAP_LOCK_DIR=str(left)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert time.monotonic() - begin < LIMIT_S
    assert list(left.iterdir()) == []
    assert done.stdout.count("\n") == 1
    return done.returncode, done.stdout


def test_eight_gpus_that_are_well(tmp_path):
    code, line = health(tmp_path, EIGHT)
    assert code == 0
    assert line.startswith("launchgap OK ")
    assert line.count("us ") + line.count("us\n") == 8


def test_a_driver_that_hangs(tmp_path):
    code, line = health(tmp_path, node_with(tmp_path, {"library": "cuda", "call": "cuInit", "hang": True}))
    assert code == 2
    assert "The CUDA driver does not answer. [driver-hangs]" in line


@pytest.mark.parametrize(
    "fault",
    [
        {"call": "cuDevicePrimaryCtxRetain", "hang": True},
        {"call": "cuLaunchKernelEx", "after": 50, "hang": True},
        {"call": "cuLaunchKernelEx", "code": 719},
    ],
    ids=["hangs when it is opened", "hangs at a launch", "fails"],
)
def test_one_of_eight_that_does_not_work_is_named_and_the_others_are_measured(tmp_path, fault):
    code, line = health(tmp_path, node_with(tmp_path, {"device": 5, "library": "cuda"} | fault))
    assert code == 2
    assert line.startswith("launchgap CRITICAL ")
    assert "GPU 5 (NVIDIA L4, GPU-a5051616-fa4e-4000-8000-000000000006, 0000:2f:00.0): " in line
    assert line.count("GPU 5 (") == 1
    assert line.count("'=") == 7


def test_nights_that_cannot_be_read_are_a_warning_and_hide_nothing(tmp_path):
    """Nights are never simulated; what a GPU is held to where there are some is in health_test.cpp."""
    none = ("--history", tmp_path / "none.db")
    code, line = health(tmp_path, NODES / "one_a100.json", *none)
    assert code == 1
    assert "its nights are not known: " in line
    assert "none.db" in line
    code, line = health(tmp_path, NODES / "one_a100.json", *none, "--gpus", "2")
    assert code == 2


def test_several_at_once_say_the_same(tmp_path):
    """A prolog and a health check, say; and what shows a job its own GPU alone hides none from them."""
    left = tmp_path / "left"
    left.mkdir()
    extra = {"LAUNCHGAP_LOCK_DIR": str(left), "TMPDIR": str(left), "CUDA_VISIBLE_DEVICES": "0"}
    env = environment(EIGHT, **extra)
    command = [LAUNCHGAP, "health", "--gpus", "8"]
    several = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    lines = [one.communicate(timeout=120)[0] for one in several]
    assert [one.returncode for one in several] == [0, 0, 0], lines


def one_gpu_with(tmp_path, **changes):
    node = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    node["devices"][0] |= changes
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node), encoding="utf-8")
    return path


def test_memory_that_is_broken(tmp_path):
    code, line = health(tmp_path, one_gpu_with(tmp_path, nvml={"remap_failed": True}))
    assert code == 2
    assert "[memory-remap-failed]" in line


def test_a_gpu_that_is_slower_than_what_is_published_of_its_model(tmp_path):
    slow = {"constant": 20000}
    code, line = health(tmp_path, one_gpu_with(tmp_path, call_ns=slow, launch_ns=slow))
    assert code == 1
    assert "times as fast as what is published of its model" in line


def test_by_srun_or_mpirun_it_is_the_same(tmp_path, monkeypatch):
    for key in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{key}", "1")
    for key in ("SIZE", "LOCAL_SIZE"):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{key}", "2")
    code, line = health(tmp_path, NODES / "one_a100.json")
    assert code == 0, line


def test_a_missing_gpu(tmp_path):
    code, line = health(tmp_path, NODES / "one_a100.json", "--gpus", "2")
    assert code == 2
    assert "1 of 2 GPUs are found" in line


def test_no_gpu():
    done = launchgap("health", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 3
    assert "UNKNOWN" in done.stdout
