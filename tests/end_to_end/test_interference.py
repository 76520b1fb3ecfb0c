"""launch/interference: each interference runs, or says why it cannot; a second process that dies takes its case along, and
no other; nothing is left behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from shipped import LAUNCHGAP, environment, table

FAST = dict(compute_capability="9.0", process_factor_sigma=0, call_ns=2000, launch_ns=3000, kernel_ns=1000)


def neighbours(lock_dir):
    """Second processes of sessions that lock in this folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            own = str(lock_dir).encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if b"--neighbour" in words and own:
            found.append(int(folder.name))
    return found


def outcomes(session):
    return {
        row["params"].removeprefix("beside:").partition("/")[0]: (row["status"], row["reason"])
        for row in table(session / "summary.csv")
        if row["benchmark"] == "launch/interference"
    }


def test_each_runs_on_a_gpu_or_says_why_not(run, make_node, export, lock_dir):
    _, session = run(
        "^launch/interference/.*idle", "--profile", "nightly", runs=1, node=make_node(**FAST), trace="on", timeout=300
    )
    found = outcomes(session)
    assert len(found) == 17
    problems = {name: reason for name, (status, reason) in found.items() if status != "ok"}
    assert "MPS does not run: start it by `nvidia-cuda-mps-control -d`" in problems.pop("process_mps")
    if "load_sibling" in problems:  # by this machine's cores
        assert "hardware thread" in problems["load_sibling"] or "share" in problems["load_sibling"]
        del problems["load_sibling"]
    assert not problems
    rows = [row for row in table(export(session) / "interference.csv") if row["statistic"] == "p50"]
    assert {row["metric"] for row in rows if row["arm"] == "traced"} == {"api_ns", "roundtrip_ns", "launch_ns"}
    assert {row["beside"] for row in rows} == set(found) - {"process_mps", "load_sibling"} | (
        {"load_sibling"} if found["load_sibling"][0] == "ok" else set()
    )
    # The neighbour is the session's own, and no stranger on the GPU.
    assert all(row["other_processes"] in ("", "0") for row in table(export(session) / "runs.csv"))
    assert not neighbours(lock_dir)


def test_the_host_has_what_means_something_there(run):
    _, session = run("^launch/interference")
    found = outcomes(session)
    for name in ("event", "sleep", "load_here"):
        assert found[name] == ("ok", "")
    assert "take turns" in found["default_stream"][1] or "default queue" in found["default_stream"][1]
    assert "part of the program" in found["first_use"][1]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_second_process_that_dies_or_hangs_fails_its_case(how, tmp_path, lock_dir, make_node):
    session = tmp_path / "session"
    command = [LAUNCHGAP, "run", "--devices", "gpu", "--trace", "off", "--runs", "1", "--profile", "full", "--no-report"]
    command += ["--filter", "launch/interference/beside:(event|process)/mode:idle", "-o", session]
    # So slow that the second process is there for seconds.
    node = make_node(**FAST | dict(kernel_ns=200_000))
    variables = environment(node=node, real_time=True, LAUNCHGAP_LOCK_DIR=str(lock_dir))
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        deadline = time.monotonic() + 60
        while not (pids := neighbours(lock_dir)) and time.monotonic() < deadline and running.poll() is None:
            time.sleep(0.005)
        assert pids, "no second process was seen"
        time.sleep(0.3)  # one that is stopped before it has opened its GPU is given a minute for that
        for pid in pids:
            os.kill(pid, how)
        output, _ = running.communicate(timeout=120)
    assert running.returncode == 3, output
    found = outcomes(session)
    status, reason = found["process"]
    assert status == "failed"
    assert ("killed by signal 9" if how == signal.SIGKILL else "does not answer") in reason
    assert found["event"][0] == "ok"
    assert not neighbours(lock_dir)
