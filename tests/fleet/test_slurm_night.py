"""A night by Slurm: the real files on real daemons, with virtual nodes of fake GPUs of several generations."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import private_slurm
import pytest
from private_slurm import PrivateSlurm, VirtualNode
from shipped import BUILD, LAUNCHGAP, NODES, launchgap

reason = private_slurm.why_not()
pytestmark = pytest.mark.skipif(reason is not None, reason=reason or "")

KINDS = {"h100": "NVIDIA H100 80GB HBM3", "a100": "NVIDIA A100-SXM4-80GB", "v100": "Tesla V100-SXM2-16GB"}
CASE = "^launch/null/api:driver/mode:idle$"


def uuid(node, gpu):
    return f"GPU-{node}00000{gpu}-fa4e-4000-8000-000000000001".replace("n", "a")


def slower(draw, times):
    """A distribution of the description whose values are so many times as large."""
    return {"lognormal": draw["lognormal"] | {"median": draw["lognormal"]["median"] * times}}


def virtual_node(folder, name, kind, gpus, slow=(), faults=()):
    """Its description, with GPUs that are alike but for the `slow` ones, by their place."""
    node = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    usual = node["devices"][0] | {"name": KINDS[kind], "process_factor_sigma": 0.005}
    node |= {"devices": [], "faults": list(faults)}
    for i in range(gpus):
        own = usual | {"uuid": uuid(name, i), "pci": f"0000:{i + 1:02x}:00.0"}
        if i in slow:
            own |= {key: slower(usual[key], 1.5) for key in ("call_ns", "launch_ns")}
        node["devices"].append(own)
    file = folder / f"{name}.json"
    file.write_text(json.dumps(node), encoding="utf-8")
    locks = folder / f"locks-{name}"
    locks.mkdir()
    environment = {
        "LAUNCHGAP_FAKE_NODE": file,
        "LAUNCHGAP_LOCK_DIR": locks,
        "LAUNCHGAP_WARM_UP": "off",
        "LD_LIBRARY_PATH": BUILD / "fake_cuda",
        "LD_PRELOAD": BUILD / "fake_cuda" / "libfake_clock.so",
    }
    return VirtualNode(name, kind, gpus, environment)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    nodes = [
        virtual_node(folder, "n1", "h100", 2),
        virtual_node(folder, "n2", "h100", 2),
        virtual_node(folder, "n3", "h100", 2, slow=[1]),
        virtual_node(folder, "n4", "a100", 2),
        virtual_node(folder, "n5", "v100", 1),
        virtual_node(
            folder, "n6", "v100", 1, faults=[{"library": "cuda", "call": "cuLaunchKernelEx", "after": 50, "hang": True}]
        ),
    ]
    with PrivateSlurm(folder, nodes) as slurm:
        yield slurm


def run(slurm, *srun, devices="gpu", case=CASE, out="out", **extra):
    """`launchgap run` as the tasks of a step."""
    return slurm.run(
        *("srun", *srun, LAUNCHGAP, "run", "--devices", devices, "--profile", "quick", "--runs", "1", "--trace", "off"),
        *("--filter", case, "--no-report", "-o", slurm.folder / out),
        check=False,
        **extra,
    )


def sessions(folder):
    return sorted(path.parent.name for path in folder.glob("*/session.json"))


# --- one process per GPU ---


def test_each_task_measures_its_own_gpu_into_a_folder_of_its_own(slurm):
    done = run(slurm, "-N2", "-n4", "--ntasks-per-node=2", "--gpus-per-task=1", "-w", "n1,n2", out="own")
    assert done.returncode == 0, done.stderr
    assert sessions(slurm.folder / "own") == [f"{n}.{uuid(n, i)}" for n in ("n1", "n2") for i in (0, 1)]
    of_last = json.loads((slurm.folder / "own" / f"n2.{uuid('n2', 1)}" / "session.json").read_text(encoding="utf-8"))
    assert of_last["rank"]["launcher"] == "Slurm"
    assert (of_last["rank"]["rank"], of_last["rank"]["ranks"], of_last["rank"]["local_ranks"]) == (3, 4, 2)
    assert of_last["host"]["node"] == "n2"
    merged = launchgap("merge", slurm.folder / "own", "-o", slurm.folder / "own-merged", code=0)
    assert "4 sessions of 4 devices on 2 nodes" in merged.stdout


@pytest.mark.parametrize(
    "step",
    [("--gres=gpu:2",), ("--gres=gpu:1",), ("--mpi=pmi2", "--gres=gpu:2")],
    ids=["all to all", "one to all", "all to all of an MPI"],
)
def test_tasks_that_see_the_same_gpus_are_refused_with_the_remedy(slurm, step):
    done = run(slurm, "-N1", "-n2", "-w", "n1", *step, out="shared")
    assert done.returncode == 2
    assert "--gpus-per-task=1" in done.stderr
    assert not (slurm.folder / "shared").exists()


def test_devices_rank_has_each_task_take_the_gpu_at_its_place(slurm):
    done = run(slurm, "-N1", "-n2", "-w", "n1", "--gres=gpu:2", devices="rank", out="rank")
    assert done.returncode == 0, done.stderr
    assert sessions(slurm.folder / "rank") == [f"n1.{uuid('n1', i)}" for i in (0, 1)]


@pytest.mark.parametrize("devices", ["gpu", "all"])
@pytest.mark.parametrize(
    "step", [(), ("--gpus-per-task=h100:1",), ("--gres=gpu:2", "--gpu-bind=none")], ids=["no GPU", "a type", "unbound"]
)
def test_tasks_that_are_shown_no_gpu_measure_neither_all_nor_nothing(slurm, step, devices, tmp_path):
    done = run(slurm, "-N1", "-n2", "-w", "n1", *step, devices=devices, out=tmp_path / "out")
    if step == ("--gpus-per-task=h100:1",) and done.returncode == 0:
        return  # later versions of Slurm show a task what it asks for by a type
    assert done.returncode == 77, done.stderr
    assert "CUDA_VISIBLE_DEVICES is not set" in done.stderr
    assert not (tmp_path / "out").exists()


def test_plain_files_in_gres_conf_are_named(tmp_path):
    with PrivateSlurm(tmp_path, [virtual_node(tmp_path, "n1", "h100", 2)], plain_files=True) as broken:
        done = run(broken, "-N1", "-n1", "--gpus-per-task=1")
        assert done.returncode == 77
        assert "gres.conf of n1" in done.stderr


def begun(slurm, folder, node, gpus, *options):
    """A job of what `fleet plan` writes that lasts, and its sessions, of which each has begun to measure."""
    plan = folder / "plan"
    what = ("--profile", "full", "--filter", "^launch/", "--run=--trace=off", *options)
    launchgap("fleet", "plan", f"{node}:{gpus}", "--results", folder, *what, "-o", plan, code=0)
    job = slurm.submit("-N1", f"-n{gpus}", "--gpus-per-task=1", "-w", node, plan / "nightly.sbatch", plan, folder)
    until = time.monotonic() + 60
    while len(list(folder.glob("sessions/*/records/*.jsonl"))) < gpus and time.monotonic() < until:
        time.sleep(0.1)
    return job, folder / "sessions"


def stopped(sessions_of_it, folder):
    """How many sessions there are; all of them were stopped, and `merge` says so."""
    states = [json.loads(path.read_text(encoding="utf-8"))["state"] for path in sessions_of_it.glob("*/session.json")]
    assert set(states) == {"stopped"}
    done = launchgap("merge", sessions_of_it, "-o", folder / "merged", code=3)
    assert done.stdout.count("it was stopped before its end") == len(states)
    return len(states)


def test_tasks_that_are_told_to_end_keep_what_they_have(slurm, tmp_path):
    job, sessions_of_it = begun(slurm, tmp_path, "n1", 2)
    slurm.run("scancel", "--signal=TERM", job)
    assert slurm.wait(job)[job].code == 5
    assert stopped(sessions_of_it, tmp_path) == 2


def test_a_task_whose_time_is_up_keeps_what_it_has(slurm, tmp_path):
    """Its GPU hangs, and so it needs no CPU until Slurm looks at limits, which takes a minute or more."""
    job, sessions_of_it = begun(slurm, tmp_path, "n6", 1, "--run=--timeout=1000")
    slurm.time_out(job)
    assert slurm.wait(job, timeout=240)[job].state == "TIMEOUT"
    assert stopped(sessions_of_it, tmp_path) == 1


# --- a night ---


def kill_task(folder, node, gpu):
    """Kills the first process that measures this GPU, once it has begun, as a crash of the machine would."""
    until = time.monotonic() + 120
    while (measuring := process_of(node, gpu)) is None and time.monotonic() < until:
        time.sleep(0.02)
    # Known beforehand: to look for it takes so long on a busy machine that its session may be over.
    records = f"*/sessions/{node}.{uuid(node, gpu)}/records/*.jsonl"
    while not any(file.stat().st_size for file in folder.glob(records)) and time.monotonic() < until:
        time.sleep(0.002)
    if measuring is not None:
        os.kill(measuring, signal.SIGKILL)


def process_of(node, gpu):
    """The process that measures this GPU; nothing before it is there."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if command[1:2] != [b"run"] or str(LAUNCHGAP).encode() not in command[0]:
                continue
            variables = (process / "environ").read_bytes().split(b"\0")
            if f"SLURMD_NODENAME={node}".encode() in variables and f"SLURM_LOCALID={gpu}".encode() in variables:
                return int(process.name)
    return None


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_night_with_a_dead_task_a_drained_node_and_a_slow_gpu(slurm):
    """What `fleet plan` writes, submitted as it is; the result names exactly these three."""
    results = slurm.folder / "results"
    plan = slurm.folder / "plan"
    launchgap(
        *("fleet", "plan", "n[1-4]:2,n5:1", "--results", results, "--sessions", "3", "--profile", "quick"),
        *("--filter", CASE, "--run=--trace=off", "--time", "5", "-o", plan),
        code=0,
    )
    for name in ("nightly.sbatch", "merge.sbatch", "submit", "health"):
        assert (plan / name).read_bytes() == (Path(__file__).parents[2] / "ci" / "slurm" / name).read_bytes()
    slurm.drain("n4", "bad fan")
    killer = threading.Thread(target=kill_task, args=(results, "n2", 0))
    killer.start()
    submitted = slurm.run(plan / "submit")
    assert "not submitted: n4: drained (bad fan)" in submitted.stderr
    night, job = submitted.stdout.split()
    ended = slurm.wait(job, timeout=300)
    killer.join()
    assert ended[job].code == 3, "something is missing"

    missing = [
        (m["node"], m["device"], m["reason"]) for m in json.loads((Path(night) / "merge.json").read_text())["missing"]
    ]
    assert missing == [
        ("n2", uuid("n2", 0), "it was killed before its end"),
        ("n4", "", "nothing of it is there: drained (bad fan)"),
    ]
    merged = Path(night) / "merged"
    page = (merged / "report.html").read_text(encoding="utf-8")
    assert "n4: nothing of it is there: drained (bad fan)" in page
    assert f"n2, {uuid('n2', 0)}: it was killed before its end" in page
    launchgap("export", merged, "-o", slurm.folder / "csv", code=0)
    assert {row["device_id"] for row in table(slurm.folder / "csv" / "outlier_devices.csv")} == {uuid("n3", 1)}
    assert "NVIDIA H100 80GB HBM3 (n3, 0000:02:00.0)" in page
    assert len(table(slurm.folder / "csv" / "sessions.csv")) == 21
    assert {row["node"] for row in table(merged / "runs.csv")} == {"n1", "n2", "n3", "n5"}
    # The fleet's page, which so few devices have for the asking, names the same three.
    fleet = slurm.folder / "fleet.html"
    launchgap("report", merged, "--fleet", "-o", fleet, "--json", slurm.folder / "fleet.json", code=0)
    said = json.loads((slurm.folder / "fleet.json").read_text())
    assert {f["subject"] for f in said["findings"] if f["code"].startswith("fleet-d")} == {uuid("n3", 1)}
    assert not [f for f in said["findings"] if f["code"].startswith("fleet-n")]
    assert [(m["node"], m["device_id"] or "", m["reason"]) for m in said["missing"]] == missing
    page = fleet.read_text(encoding="utf-8")
    assert "bad fan" in page and "it was killed before its end" in page


def test_the_health_check_drains_a_node_with_the_reason(tmp_path):
    """As HealthCheckProgram, which gets next to no environment: the test's wrapper adds that of the fake node."""
    plan = tmp_path / "plan"
    launchgap("fleet", "plan", "n1:2,n2:2", "--results", tmp_path, "-o", plan, code=0)
    nodes = [virtual_node(tmp_path, "n1", "h100", 2), virtual_node(tmp_path, "n2", "h100", 2)]
    sick = json.loads((tmp_path / "n2.json").read_text(encoding="utf-8"))
    sick["faults"] = [{"device": 1, "library": "cuda", "call": "cuDevicePrimaryCtxRetain", "code": 719}]
    (tmp_path / "n2.json").write_text(json.dumps(sick), encoding="utf-8")
    wrapper = tmp_path / "health"
    lines = (
        "#!/bin/bash",
        f"[ -e {tmp_path}/conf ] || exit 0",  # the daemons are starting
        f"export PATH={private_slurm.PATH} LAUNCHGAP_FAKE_NODE={tmp_path}/$SLURMD_NODENAME.json LAUNCHGAP_WARM_UP=off",
        f"export LD_LIBRARY_PATH={BUILD}/fake_cuda LAUNCHGAP_LOCK_DIR={tmp_path}/locks-$SLURMD_NODENAME",
        f"export SLURM_CONF=$(cat {tmp_path}/conf)",
        f"exec {plan}/health >>{tmp_path}/said-$SLURMD_NODENAME 2>&1",
    )
    wrapper.write_text("\n".join(lines) + "\n", encoding="utf-8")
    wrapper.chmod(0o755)
    settings = (f"HealthCheckProgram={wrapper}", "HealthCheckInterval=2")
    with PrivateSlurm(tmp_path, nodes, settings=settings) as slurm:
        (tmp_path / "conf").write_text(slurm.environment["SLURM_CONF"], encoding="utf-8")
        until = time.monotonic() + 60
        state, of_n1 = "", tmp_path / "said-n1"
        while time.monotonic() < until and not ("drain" in state and of_n1.exists() and of_n1.read_text()):
            time.sleep(0.2)
            state = slurm.run("sinfo", "--noheader", "--nodes=n2", "--format=%T %E").stdout
        assert "launchgap CRITICAL n2: GPU 1 (NVIDIA H100 80GB HBM3, " + uuid("n2", 1) in state
        assert slurm.run("sinfo", "--noheader", "--nodes=n1", "--format=%T").stdout.strip() == "idle"
    assert "launchgap OK n1: 2 GPUs well" in of_n1.read_text(encoding="utf-8")


def test_slurms_scripts_are_sound():
    for script in (Path(__file__).parents[2] / "ci" / "slurm").iterdir():
        subprocess.run(["bash", "-n", script], check=True)
