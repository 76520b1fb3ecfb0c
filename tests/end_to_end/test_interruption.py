"""Whatever ends a session, what was measured before is there and can be reported."""

import gzip
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from shipped import LAUNCHGAP, UNTRACED, environment, launchgap, records, table


@pytest.fixture
def running(tmp_path, make_node):
    """A session that would take minutes, some blocks into it."""
    # A call of 100 us makes a block of 2,000 launches take half a second.
    node = make_node(call_ns={"constant": 100_000}, launch_ns={"constant": 150_000}, kernel_ns={"constant": 50_000})
    session = tmp_path / "session"
    process = subprocess.Popen(
        [LAUNCHGAP, "run", "--devices", "gpu", "--runs", "50", "--filter", "launch/null.*idle", *UNTRACED, "-o", session],
        env=environment(node, real_time=True, LAUNCHGAP_LOCK_DIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if session.exists() and any(p.stat().st_size > 30_000 for p in (session / "records").glob("*.jsonl")):
            break
        time.sleep(0.05)
    assert process.poll() is None, process.stderr.read()
    yield process, session
    process.kill()
    process.wait()


def workers_of(session):
    """Processes that have a records file of the session open."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            links = [os.readlink(fd) for fd in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(link.startswith(str(session / "records")) for link in links):
            found.append(int(process.name))
    return found


def wait_until(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.05)


def blocks(session):
    return sum(record["record"] == "samples" for file in records(session).values() for record in file)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_keeps_what_is_done(running, which):
    process, session = running
    process.send_signal(which)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 5
    assert "Stopped early" in err
    assert json.loads((session / "session.json").read_text())["state"] == "stopped"
    assert blocks(session) >= 1
    (row,) = [row for row in table(session / "summary.csv") if row["metric"] == "api_ns"]
    assert int(row["n"]) == 2000 * blocks(session)
    assert (session / "report.html").exists()
    assert workers_of(session) == []


def test_killing_the_parent_ends_the_workers_and_loses_no_block(running):
    process, session = running
    process.kill()
    process.wait()
    wait_until(lambda: workers_of(session) == [])
    whole = blocks(session)
    assert whole >= 1
    launchgap("report", session, code=0)
    (row,) = [row for row in table(session / "summary.csv") if row["metric"] == "api_ns"]
    assert int(row["n"]) == 2000 * whole
    page = (session / "report.html").read_text()
    assert "not finished" in page or "running" in page or "incomplete" in page


def test_killing_a_worker_fails_its_case_and_the_session_goes_on(running):
    process, session = running
    (worker,) = workers_of(session)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: any(r.get("event") == "worker-crashed" for f in records(session).values() for r in f))
    (event,) = [r for f in records(session).values() for r in f if r.get("event") == "worker-crashed"]
    assert "SIGKILL" in event["message"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert blocks(session) >= 1


def test_an_import_that_is_stopped_leaves_nothing(tmp_path):
    trace = tmp_path / "long.json.gz"
    # A list whose first event is far away: 4 GiB of blanks, in members of which each is the same.
    blanks = gzip.compress(b" " * (64 << 20), compresslevel=1)
    with trace.open("wb") as file:
        file.write(gzip.compress(b"["))
        for _ in range(64):
            file.write(blanks)
    session = tmp_path / "session"
    process = subprocess.Popen(
        [LAUNCHGAP, "import", trace, "-o", session],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(session.exists)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT, said
    assert not session.exists()
