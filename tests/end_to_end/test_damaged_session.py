"""Records and session.json that somebody else has written: each fault is named, and nothing hangs or crashes."""

import copy
import json
import os
import shutil
import subprocess

import pytest
from shipped import LAUNCHGAP, environment, launchgap, table

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def the_records(session):
    (path,) = (session / "records").glob("*.jsonl")
    return path


def read(session, timeout=60):
    """`export`, which reads all that `report` does and draws no page."""
    output = session.parent / "tables"
    shutil.rmtree(output, ignore_errors=True)
    return launchgap("export", session, "-o", output, timeout=timeout)


def problems(done):
    """What is said of the session; `export` also says which tables have no rows."""
    return [line for line in done.stderr.splitlines() if "tables have no rows" not in line]


def samples(session):
    (row,) = [row for row in table(session.parent / "tables" / "summary.csv") if row["metric"] == "api_ns"]
    return int(row["n"])


def replace(session, kind, **changes):
    """Changes fields of the first record of a kind; the number of its line."""
    path = the_records(session)
    lines = path.read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if json.loads(line)["record"] == kind)
    lines[number] = json.dumps(json.loads(lines[number]) | changes)
    path.write_text("\n".join(lines) + "\n")
    return number + 1


def change_session(session, **changes):
    meta = json.loads((session / "session.json").read_text())
    (session / "session.json").write_text(json.dumps(meta | changes))


@pytest.mark.parametrize("records", ["missing", "a file"])
def test_a_session_without_its_records_is_a_failure(session, records):
    shutil.rmtree(session / "records")
    if records == "a file":
        (session / "records").write_text("")
    done = read(session)
    assert done.returncode == 3
    assert "records cannot be read" in done.stderr
    (row,) = table(session.parent / "tables" / "summary.csv")
    assert row["reason"] == "its records cannot be read", "and not that it was not reached"


@needs_root
@pytest.mark.parametrize("what", ["records", "session.json", "."])
def test_what_may_not_be_read_is_named(session, what):
    for folder in (session, *session.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/" and str(folder) != "/tmp":
            folder.chmod(0o755)
    path = session / what
    path.chmod(0o600 if path.is_file() else 0o700)
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", LAUNCHGAP, "report", session, "-o", "/dev/null"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert str(path if what != "." else session) in done.stderr and "Permission denied" in done.stderr


def test_truncated_records_are_read_up_to_the_tear(session):
    path = the_records(session)
    os.truncate(path, path.stat().st_size * 2 // 3)
    assert read(session).returncode == 0
    told = (session.parent / "tables" / "summary.csv").read_text()
    assert "cut short" in told or "not reached" in told


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("key", ["fingerprint", "libraries", "unknown"])
def test_a_record_that_is_too_deep_is_named(session, key):
    path = the_records(session)
    lines = path.read_text().splitlines()
    lines[0] = lines[0].replace('"record":"run"', f'"record":"run","{key}":{DEEP}', 1)
    path.write_text("\n".join(lines) + "\n")
    done = read(session)
    assert done.returncode == 3
    assert f"{path.name}, line 1: not a record: 200001 arrays" in done.stderr


@pytest.mark.parametrize("key", ["plan", "host", "doctor", "devices"])
def test_a_session_json_that_is_too_deep_is_named(session, key):
    text = (session / "session.json").read_text()
    (session / "session.json").write_text(text.replace('"record"', f'"{key}":{DEEP},"record"', 1))
    done = read(session)
    assert done.returncode == 3
    assert "session.json: 200001 arrays" in done.stderr and len(problems(done)) == 1


@pytest.mark.parametrize("kind, says", [("pipe", "a pipe"), ("device", "a device"), ("folder", "a folder")])
@pytest.mark.parametrize("where", ["records/a.jsonl", "session.json"])
def test_what_is_no_file_is_not_waited_for(session, kind, says, where):
    path = session / where
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    done = read(session, timeout=20)
    assert done.returncode == 3
    assert f"{path} cannot be read: it is {says} and not a file" in done.stderr
    assert where == "session.json" or samples(session) == 10_000


WRONG = [
    ("run", {"replicate": "x"}, '"replicate" is a string'),
    ("run", {"replicate": 2**31}, '"replicate" is 2147483648'),
    ("run", {"replicate": -1}, '"replicate" is -1'),
    ("run", {"device": []}, '"device" is an array'),
    ("run", {"device": None}, '"uuid" is missing'),
    ("run", {"jit": "yes"}, '"jit" is a string'),
    ("samples", {"block": 10**18}, '"block" is 1000000000000000000'),
    ("samples", {"first": -1}, '"first" is -1'),
    ("samples", {"begin_ns": 1e300}, '"begin_ns" is 1e+300'),
    ("samples", {"begin_ns": -5}, '"begin_ns" is -5'),
    ("samples", {"end_ns": 1}, "ends before it begins"),
    ("samples", {"t0_ns": ["a"]}, '"t0_ns" has a string'),
    ("samples", {"values": [["a"]]}, '"values" has a string'),
    ("samples", {"case": 7}, '"case" is 7'),
    ("telemetry", {"values": {"x": "y"}}, '"x" is a string'),
    ("summary", {"reason": {}}, '"reason" is an object'),
    ("end", {"duration_s": "long"}, '"duration_s" is a string'),
    ("end", {"schema": "launchgap/99999999999999999999"}, "is newer than launchgap/1"),
]  # fmt: skip


@pytest.mark.parametrize("kind, changes, says", WRONG, ids=lambda value: str(value)[:40])
def test_a_field_of_another_type_is_named_with_its_line(session, kind, changes, says):
    line = replace(session, kind, **changes)
    done = read(session)
    assert done.returncode == 3
    assert f"{the_records(session).name}, line {line}: " in done.stderr and says in done.stderr
    assert len(problems(done)) == 1, "and the rest is read"


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"plan": {"a": 1}}, '"plan" is an object, and must be an array'),
        ({"plan": [1]}, '"plan": an entry is a number and no object'),
        ({"host": []}, '"host" is an array, and must be an object'),
        ({"devices": [{"index": "x"}]}, '"devices"[0]: "index" is a string'),
        ({"session_id": 3}, '"session_id" is 3'),
        ({"schema": "launchgap/2"}, "its schema is 'launchgap/2'"),
    ],
)
def test_a_session_json_of_another_type_is_named(session, changes, says):
    change_session(session, **changes)
    done = read(session)
    assert done.returncode == 3
    assert f"{session / 'session.json'}: " in done.stderr and says in done.stderr and len(problems(done)) == 1


@pytest.mark.parametrize("how", ["a file with its content twice", "a block twice", "a copy beside it"])
def test_what_is_there_twice_counts_once_and_is_said(session, how):
    path = the_records(session)
    text = path.read_text()
    if how == "a file with its content twice":
        path.write_text(text + text)
    elif how == "a block twice":
        lines = text.splitlines(keepends=True)
        block = next(line for line in lines if '"record":"samples"' in line)
        path.write_text("".join(lines[:-1]) + block + lines[-1])
    else:
        shutil.copy(path, session / "records" / "copy.jsonl")
    done = read(session)
    assert done.returncode == 3
    assert len(problems(done)) == 1 and path.name in done.stderr
    assert any(word in done.stderr for word in ("counts once", "second run begins", "once more"))
    assert samples(session) == 10_000
    exported = [row for row in table(session.parent / "tables" / "samples.csv") if row["metric"] == "api_ns"]
    assert len(exported) == 10_000
    assert len(table(session.parent / "tables" / "runs.csv")) == 1


def test_of_many_faults_the_first_are_told_and_the_rest_counted(session):
    with open(session / "records" / "core.jsonl", "wb") as file:
        file.write(bytes(range(256)) * 800)
    done = read(session)
    assert done.returncode == 3
    assert len(problems(done)) == 11 and "and so 790 more" in problems(done)[-1]
    assert all(len(line) < 1000 for line in done.stderr.splitlines())
    assert "\x1b" not in done.stderr


def test_what_a_line_quotes_reaches_the_terminal_as_text(session):
    path = the_records(session)
    with open(path, "a") as file:
        file.write('{"schema":"launchgap/1","record":"summary","case":"\\u001b[2J","status":"\\u001b]0;title\\u0007"}\n')
    done = read(session)
    assert done.returncode == 3
    assert "\x1b" not in done.stderr and "\\x1b]0;title\\x07" in done.stderr


def test_many_files_are_opened_once_for_their_order(session, tmp_path):
    text = the_records(session).read_text().splitlines()
    run = json.loads(text[0])
    for replicate in range(1, 400):
        other = copy.deepcopy(run) | {"replicate": replicate}
        (session / "records" / f"r{replicate}.jsonl").write_text(json.dumps(other) + "\n")
    traced = tmp_path / "opened"
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    subprocess.run(
        ["strace", "-f", "-e", "trace=openat", "-o", traced, LAUNCHGAP, "export", session, "-o", tmp_path / "out"],
        env=environment(),
        capture_output=True,
        timeout=120,
    )
    opened = [line for line in traced.read_text().splitlines() if ".jsonl" in line]
    assert len(opened) <= 3 * 400, "for its order, for its records, for its samples"
