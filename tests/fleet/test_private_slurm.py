"""What the private Slurm does as a cluster does: what the tests of fleets rely on."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from private_slurm import Ended, PrivateSlurm, VirtualNode, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

NODES = [VirtualNode(f"n{i}", kind, gpus, {"NODE_SAYS": f"this is n{i}"}) for i, kind, gpus in [
    (1, "h100", 4), (2, "h100", 4), (3, "a100", 2), (4, "a100", 2)]]  # fmt: skip
SEEN = "SLURM_PROCID SLURMD_NODENAME CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS SLURM_GPUS_ON_NODE NODE_SAYS".split()
TASK = ["sh", "-c", "echo " + "/".join(f"${{{name}-unset}}" for name in SEEN)]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with PrivateSlurm(tmp_path_factory.mktemp("slurm"), NODES) as started:
        yield started


def tasks(said):
    """What each task of a step had of SEEN, by rank."""
    return [dict(zip(SEEN, line.split("/"), strict=True)) for line in sorted(said.splitlines())]


def step(slurm, *options):
    return tasks(slurm.run("srun", *options, *TASK).stdout)


def gpus(of):
    return [task["CUDA_VISIBLE_DEVICES"] for task in of]


def test_tasks_see_the_gpus_that_they_are_bound_to(slurm):
    assert gpus(step(slurm, "-N1", "-n2", "--gpus-per-task=1")) == ["0", "1"]
    assert gpus(step(slurm, "-N1", "-n4", "--gres=gpu:4")) == ["0,1,2,3"] * 4
    assert gpus(step(slurm, "-N1", "-n4", "--gres=gpu:4", "--gpu-bind=single:1")) == ["0", "1", "2", "3"]
    assert gpus(step(slurm, "-N1", "-n4", "--gres=gpu:1")) == ["0"] * 4
    assert {(t["CUDA_VISIBLE_DEVICES"], t["SLURM_GPUS_ON_NODE"]) for t in step(slurm, "-N1", "-n2")} == {("unset", "unset")}


def test_a_node_gives_its_environment_to_scripts_and_steps(slurm):
    assert [t["NODE_SAYS"] for t in step(slurm, "-N4", "-n4")] == ["this is n1", "this is n2", "this is n3", "this is n4"]

    script = slurm.folder / "of_nodes.sbatch"
    script.write_text('#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=1 --nodelist=n[2-3]\necho "$NODE_SAYS"\nsrun "$@"\n')
    job = slurm.submit("--output=of_nodes", script, *TASK)
    assert slurm.wait(job) == {job: Ended("COMPLETED", 0)}
    of_script, *of_steps = (slurm.folder / "of_nodes").read_text().splitlines()
    assert of_script == "this is n2"
    assert [t["NODE_SAYS"] for t in tasks("\n".join(of_steps))] == ["this is n2", "this is n3"]


def test_a_drained_node_gets_no_work(slurm):
    slurm.drain("n1", "fans")
    try:
        assert step(slurm, "-N1", "-n1", "--gres=gpu:h100:1")[0]["SLURMD_NODENAME"] == "n2"
        waits = slurm.submit("--nodelist=n1", "--output=/dev/null", "--wrap=true")
        time.sleep(1)
        assert slurm.jobs(waits)[waits]["JobState"] == "PENDING"
    finally:
        slurm.resume("n1")
    assert slurm.wait(waits) == {waits: Ended("COMPLETED", 0)}


def test_what_follows_an_array_runs_after_a_task_of_it_failed(slurm):
    array = slurm.submit(
        "--array=0-2%2", "--output=/dev/null", "--wrap=[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 3; echo >> of_array"
    )
    after = slurm.submit(f"--dependency=afterany:{array}", "--output=after", "--wrap=wc -l < of_array")
    assert slurm.wait(array, after) == {
        f"{array}_0": Ended("COMPLETED", 0),
        f"{array}_1": Ended("FAILED", 3),
        f"{array}_2": Ended("COMPLETED", 0),
        after: Ended("COMPLETED", 0),
    }
    assert (slurm.folder / "after").read_text() == "2\n"


def test_gpus_that_are_granted_and_not_shown(slurm, tmp_path):
    hidden = {"CUDA_VISIBLE_DEVICES": "unset", "SLURM_STEP_GPUS": "unset", "SLURM_GPUS_ON_NODE": "2"}
    # Slurm 22.05 binds to GPUs of a type only if told so twice; a newer one may do without.
    typed = step(slurm, "-N1", "-n2", "--gpus-per-task=h100:1")
    if slurm.run("srun", "--version").stdout.startswith("slurm-wlm 22.05"):
        assert all(hidden.items() <= task.items() for task in typed), typed
    assert gpus(step(slurm, "-N1", "-n2", "--gpus-per-task=h100:1", "--gpu-bind=single:1")) == ["0", "1"]

    with PrivateSlurm(tmp_path, NODES[:1], plain_files=True) as broken:
        for options in (["--gpus-per-task=1"], ["--gres=gpu:2", "--gpu-bind=single:1"]):
            of = step(broken, "-N1", "-n2", *options)
            assert all(hidden.items() <= task.items() for task in of), of


def test_nothing_is_left_when_the_tests_are_killed(tmp_path):
    program = """if True:
        import pathlib, sys
        from private_slurm import PrivateSlurm, VirtualNode
        with PrivateSlurm(pathlib.Path(sys.argv[1]), [VirtualNode("n1", "h100", 1)]) as slurm:
            job = slurm.submit("--output=/dev/null", "--wrap=trap '' TERM; touch begun; srun sleep 987")
            while not pathlib.Path(sys.argv[1], "begun").exists():
                pass
            print(slurm.environment["SLURM_CONF"], flush=True)
            input()
    """
    killed = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    own = Path(killed.stdout.readline().strip()).parent
    assert _processes_of(own)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    until = time.monotonic() + 10
    while (own.exists() or _processes_of(own)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not own.exists()
    assert not _processes_of(own)


def _processes_of(folder):
    """Those that name it in their arguments or their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and os.fsencode(folder) in b"".join(
                (process / name).read_bytes() for name in ("cmdline", "environ")
            ):
                found.append((process / "cmdline").read_bytes())
    return found
