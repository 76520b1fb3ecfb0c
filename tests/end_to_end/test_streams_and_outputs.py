"""A terminal that is gone, a full disk, an output that is no file: what was measured stays, and what was lost is said."""

import contextlib
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

import pytest
from shipped import LAUNCHGAP, UNTRACED, environment, launchgap, records, table

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device node")
CASE = "launch/null.*idle"
ONE_RUN = ("run", "--devices", "host", "--runs", "1", "--filter", CASE, *UNTRACED)


def start(*arguments, node=None, real_time=False, locks="/tmp", **options):
    """With streams of the test's own; in real time a fake GPU takes the time that it says."""
    return subprocess.Popen(
        [LAUNCHGAP, *map(str, arguments)],
        env=environment(node, real_time, LAUNCHGAP_LOCK_DIR=str(locks)),
        stdin=subprocess.DEVNULL,
        **options,
    )


def state(session):
    return json.loads((session / "session.json").read_text())["state"]


def hidden(folder):
    return list(folder.rglob(".*"))


# --- standard error ---


def test_failures_that_nobody_can_hear_end_no_measurement(tmp_path, make_node):
    node = make_node(
        devices=2, faults=[{"device": 0, "library": "cuda", "call": "cuLaunchKernelEx", "after": 2000, "code": 700}]
    )
    session = tmp_path / "session"
    with open("/dev/full", "w") as full:
        process = start(
            "run", "--devices", "gpu", "--runs", 2, "--filter", CASE, *UNTRACED, "--no-report", "-o", session,
            node=node, locks=tmp_path, stderr=full, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 3
    assert state(session) == "complete" and "Tables:" in out
    status = {(row["device_id"][-1], row["status"]) for row in table(session / "summary.csv")}
    assert status == {("0", "failed"), ("1", "ok")}
    assert [row["status"] for row in table(session / "runs.csv") if row["device_id"].endswith("1")] == ["ok", "ok"]


def test_a_terminal_that_goes_away_ends_no_measurement(tmp_path, make_node):
    node = make_node(call_ns={"constant": 40_000}, launch_ns={"constant": 60_000}, kernel_ns={"constant": 20_000})
    session = tmp_path / "session"
    ours, theirs = pty.openpty()
    process = start(
        "run", "--devices", "gpu", "--runs", 2, "--filter", CASE, *UNTRACED, "--no-report", "-o", session,
        node=node, locks=tmp_path, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), real_time=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    until = time.monotonic() + 60
    while b"left" not in seen and time.monotonic() < until:
        seen += os.read(ours, 4096)
    os.close(ours)
    assert process.wait(timeout=120) == 3, "the tables on the terminal were lost"
    assert state(session) == "complete"
    assert [row["status"] for row in table(session / "runs.csv")] == ["ok", "ok"]


def test_a_note_that_nobody_reads_is_no_reason_not_to_measure(tmp_path):
    read, write = os.pipe()
    os.close(read)
    process = start(
        "run", "--runs", 1, "--filter", CASE, *UNTRACED, "--no-report", "-o", tmp_path / "s",
        locks=tmp_path, stdout=subprocess.DEVNULL, stderr=write,
    )  # fmt: skip
    os.close(write)
    assert process.wait(timeout=60) == 0
    assert state(tmp_path / "s") == "complete"


WRONG = ["report /nope", "list nope", "export /nope -o x", "run --profile x", "run --bad", "foo", "doctor --for bad"]
SILENT = {2: [*WRONG, "doctor --pid 99999999"], 127: ["doctor -- /nope"]}


@pytest.mark.parametrize("arguments, code", [(words, code) for code, commands in SILENT.items() for words in commands])
def test_a_message_that_is_lost_leaves_the_exit_code(arguments, code, tmp_path):
    with open("/dev/full", "w") as full:
        process = start(*arguments.split(), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=full)
        assert process.wait(timeout=60) == code


def test_a_report_with_faults_ends_with_3_where_they_cannot_be_told(session):
    (path,) = (session / "records").glob("*.jsonl")
    with open(path, "a") as file:
        file.write("garbage\n")
    with open("/dev/full", "w") as full:
        process = start("report", session, stdout=subprocess.DEVNULL, stderr=full)
        assert process.wait(timeout=120) == 3
    assert (session / "report.html").exists()


def test_no_message_goes_into_a_file_that_took_the_place_of_a_closed_stream(tmp_path, make_node):
    node = make_node(faults=[{"device": 0, "library": "cuda", "call": "cuLaunchKernelEx", "after": 2000, "code": 700}])
    process = start(
        "run", "--devices", "gpu", "--runs", 1, "--filter", CASE, *UNTRACED, "--no-report", "-o", tmp_path / "s",
        node=node, locks=tmp_path, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.close(2),
    )  # fmt: skip
    kept = tmp_path / "kept"  # the lock's file is gone at the end
    while process.poll() is None and not kept.exists():
        for lock in tmp_path.glob("*.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.link(lock, kept)
    assert process.wait(timeout=60) == 3
    lock = kept
    assert re.fullmatch(r"\d+", lock.read_text())


# --- standard output ---

ANSWERS = [
    ["list", "benchmarks"],
    ["list", "--json"],
    ["run", "--dry-run", "--devices", "host"],
    ["report", "SESSION"],
    ["export", "SESSION", "-o", "OUT"],
    ["doctor", "--explain", "no-gpu"],
    ["doctor", "--for", "torch==2.3", "--gpu", "K80", "--driver", "470.256.02", "--json"],
    ["--help"],
    ["run", "--help"],
    ["--version"],
]


def filled_in(arguments, session):
    return [{"SESSION": str(session), "OUT": str(session.parent / "out")}.get(word, word) for word in arguments]


@pytest.mark.parametrize("closed", [False, True], ids=["full", "closed"])
@pytest.mark.parametrize("arguments", ANSWERS, ids=" ".join)
def test_an_answer_that_is_lost_is_a_failure(arguments, closed, session):
    with open("/dev/full", "w") as full:
        process = start(
            *filled_in(arguments, session),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=(lambda: os.close(1)) if closed else None,
        )
        _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "the answer cannot be written: " in err


def test_a_measurement_of_which_the_tables_are_lost_is_a_failure(tmp_path):
    with open("/dev/full", "w") as full:
        process = start(
            *ONE_RUN, "--no-report", "-o", tmp_path / "s",
            locks=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "the answer cannot be written" in err
    assert (tmp_path / "s" / "summary.csv").exists()


@pytest.mark.parametrize("arguments", ANSWERS[:3], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_failure(arguments, session):
    read, write = os.pipe()
    os.close(read)
    process = start(*filled_in(arguments, session), stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


# --- what others wrote, on a terminal ---


def test_what_a_device_calls_itself_reaches_the_terminal_as_text(tmp_path, make_node):
    node = make_node(name="A100 \x1b[2J\x1b]0;title\x07\nGPU")
    done = launchgap("list", "devices", node=node, code=0)
    assert "A100 \\x1b[2J\\x1b]0;title\\x07" in done.stdout and not re.search(r"[\x00-\x09\x0b-\x1f]", done.stdout)
    listed = launchgap("list", "devices", "--json", node=node).stdout
    assert listed.isascii() and json.loads(listed)["devices"][1]["name"] == "A100 \x1b[2J\x1b]0;title\x07\nGPU"
    done = launchgap(
        "run", "--devices", "gpu", "--runs", 1, "--filter", CASE, *UNTRACED, "--no-report", "-o", tmp_path / "s",
        node=node, LAUNCHGAP_LOCK_DIR=str(tmp_path), code=0,
    )  # fmt: skip
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", done.stdout + done.stderr)


# --- outputs that are no files ---


@pytest.mark.parametrize("command", ["report", "doctor"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", pytest.param("device", marks=needs_root)])
def test_an_output_that_is_no_file_is_written_to_and_stays(command, kind, session, tmp_path):
    output = tmp_path / "output"
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    target.write_text("before")
    if kind == "device":
        os.mknod(output, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    elif kind == "pipe":
        os.mkfifo(output)
    else:
        output.symlink_to("folder/target")
        if kind == "dangling link":
            target.unlink()
    before = output.lstat()
    question = ["report", session] if command == "report" else ["doctor", "--explain", "no-gpu"]
    reader = subprocess.Popen(["cat", output], stdout=subprocess.PIPE, text=True) if kind == "pipe" else None
    launchgap(*question, "-o", output, code=0)
    after = output.lstat()
    assert (after.st_ino, stat.S_IFMT(after.st_mode)) == (before.st_ino, stat.S_IFMT(before.st_mode))
    says = "<html" if command == "report" else "GPU"
    if reader:
        assert says in reader.communicate(timeout=10)[0]
    elif kind != "device":
        assert says in target.read_text()
    assert hidden(tmp_path) == []


def test_an_output_of_the_longest_name_can_be_written(session, tmp_path):
    output = tmp_path / ("x" * 250 + ".html")
    assert launchgap("report", session, "-o", output).returncode == 0
    assert output.stat().st_size > 10_000


# --- names ---


def test_an_output_of_any_bytes_is_measured_into(tmp_path):
    folder = os.fsencode(tmp_path) + b"/bad\xff"
    process = start(*ONE_RUN, "-o", os.fsdecode(folder), locks=tmp_path, stdout=subprocess.PIPE)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert len(os.listdir(folder + b"/records")) == 1 and os.path.exists(folder + b"/report.html")
    assert b"bad\\xff" in out


@pytest.mark.parametrize("name", [b"../../evil", b"a/b", b"bad\xff", b"."])
def test_a_host_of_any_name_is_measured(name, tmp_path):
    script = 'printf "%b" "$1" >/proc/sys/kernel/hostname || exit 99; shift; exec "$@"'
    escaped = "".join(f"\\0{byte:o}" for byte in name)
    session = tmp_path / "deep" / "er" / "session"
    done = subprocess.run(
        ["unshare", "-r", "--uts", "sh", "-c", script, "sh", escaped, LAUNCHGAP, *ONE_RUN, "--no-report", "-o", session],
        capture_output=True,
        env=environment(LAUNCHGAP_LOCK_DIR=str(tmp_path)),
        timeout=120,
    )  # fmt: skip
    if done.returncode == 99 or b"unshare" in done.stderr:
        pytest.skip("this system gives no name of its own to a process")
    assert done.returncode == 0, done.stderr
    (file,) = records(session)
    assert re.fullmatch(r"[A-Za-z0-9_][\w.+=-]*\.host\.r0\.plain\.launch\.jsonl", file)
    node = json.loads((session / "session.json").read_text())["host"]["node"]
    assert node == name.decode("utf-8", "replace")


# --- a disk that is full ---


def on_small_disk(folder, size, *command):
    """Runs a command with a disk of `size` at `folder`, and tells what it left there."""
    script = (
        'mount -t tmpfs -o size="$1" none "$2" || exit 99; folder=$2; shift 2; "$@" >&2; code=$?; '
        'cd "$folder"; find . -name ".?*"; echo ==; cat session/session.json; echo ==; cat session/records/*; exit $code'
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", size, folder, *map(str, command)],
        capture_output=True,
        text=True,
        env=environment(LAUNCHGAP_LOCK_DIR=str(folder.parent)),
        timeout=120,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("no small disk can be mounted here")
    left, meta, written = done.stdout.split("==\n", 2)
    return done, left.split(), json.loads(meta), [json.loads(line) for line in written.splitlines() if line.endswith("}")]


@pytest.mark.parametrize("size", ["300k", "1m"])
def test_a_full_disk_ends_the_session_and_no_case_is_blamed(size, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    done, left, meta, written = on_small_disk(
        disk, size, LAUNCHGAP, "run", "--devices", "host", "--runs", 40, "--filter", "launch/null", *UNTRACED,
        "-o", disk / "session",
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr and str(disk) in done.stderr
    assert meta["state"] == "stopped"
    assert left == []
    assert not [r for r in written if r["record"] == "summary" and r["status"] != "ok"], "no case is at fault"
    assert any(r["record"] == "samples" for r in written)


def test_records_that_are_taken_away_end_the_session(tmp_path, make_node):
    node = make_node(call_ns={"constant": 100_000}, launch_ns={"constant": 150_000}, kernel_ns={"constant": 50_000})
    session = tmp_path / "session"
    process = start(
        "run", "--devices", "gpu", "--runs", 50, "--filter", CASE, *UNTRACED, "--no-report", "-o", session,
        node=node, locks=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not (session.exists() and list((session / "records").glob("*"))):
        assert time.monotonic() < until
        time.sleep(0.05)
    (session / "records").rename(tmp_path / "away")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "the session ends here: " in err and "No such file or directory" in err
    assert state(session) == "stopped"
    assert hidden(session) == []


def test_an_export_that_does_not_fit_leaves_nothing_half(session, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    shutil.copytree(session, tmp_path / "copy")
    done, left, _, _ = on_small_disk(
        disk, "480k", "sh", "-c",
        'cp -r "$1" "$2/session"; "$0" export "$1" -o "$2/out"; code=$?; ls -d "$2/out"; exit $code',
        LAUNCHGAP, tmp_path / "copy", disk,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert re.search(r"out/\w+\.(csv|json) cannot be written: No space left on device", done.stderr), done.stderr
    assert "cannot access" in done.stderr, "nothing is in the way of another export"
    assert left == []


# --- a signal while the page is drawn ---


@pytest.fixture
def slow_python(tmp_path):
    """A Python that never comes to draw a page; says that it began."""
    path = tmp_path / "python3"
    path.write_text(f'#!/bin/sh\necho $$ >"{tmp_path}/drawing"\nexec sleep 1000\n')
    path.chmod(0o755)
    return path


def wait_for(path):
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


def gone(pid):
    for _ in range(200):
        try:
            if "\nState:\tZ" in pathlib.Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("command", ["run", "report"])
def test_a_signal_while_the_page_is_drawn(command, which, session, tmp_path, slow_python, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    arguments = ["report", session] if command == "report" else [*ONE_RUN, "-o", tmp_path / "new"]
    process = subprocess.Popen(
        [LAUNCHGAP, *arguments],
        env=environment(LAUNCHGAP_LOCK_DIR=str(tmp_path), LAUNCHGAP_PYTHON=str(slow_python)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    drawing = wait_for(tmp_path / "drawing")
    process.send_signal(which)
    _, err = process.communicate(timeout=30)
    assert gone(drawing), "nobody draws on"
    if which == signal.SIGKILL:
        return
    assert process.returncode == (5 if command == "run" else -which)
    assert list(scratch.iterdir()) == [] and "Traceback" not in err
    if command == "run":
        assert "launchgap report" in err and state(tmp_path / "new") == "complete"


def test_a_page_for_which_there_is_no_memory_is_said(session):
    done = subprocess.run(
        [LAUNCHGAP, "report", session],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (100_000 << 10, 100_000 << 10)),
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 3
    assert "launchgap report: " in done.stderr and "Traceback" not in done.stderr


def test_a_home_that_cannot_be_written_to_is_nothing_to_the_page(session, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), "/proc/nowhere")
    done = launchgap("report", session, TMPDIR=str(scratch), **nowhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(scratch.iterdir()) == []


def test_a_page_that_is_never_drawn_is_given_up(session, tmp_path, slow_python):
    done = launchgap("report", session, LAUNCHGAP_PYTHON=str(slow_python), LAUNCHGAP_PAGE_TIMEOUT="0.5", code=3)
    assert "not drawn within 0.5 s" in done.stderr
    assert gone(wait_for(tmp_path / "drawing"))
