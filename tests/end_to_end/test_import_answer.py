"""launchgap import: what is counted once, what is read whatever its wrapping, and what an interruption leaves."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from recording_files import (
    PID,
    Call,
    Job,
    Work,
    create,
    global_id,
    launches,
    trace_events,
    write_nsys,
    write_trace,
)  # fmt: skip
from shipped import LAUNCHGAP, environment, launchgap, table


def imported(folder: Path, *files: Path, options: tuple[object, ...] = ()) -> tuple[list[dict], str]:
    """The rows of recordings.csv, and what is said on standard error."""
    done = launchgap("import", *files, "-o", folder / "session", *options, code=0)
    assert launchgap("export", folder / "session", "-o", folder / "tables").returncode == 0
    return table(folder / "tables" / "recordings.csv"), done.stderr


# --- counted once ---


def twice(path: Path) -> Path:
    copy = path.with_name("copy" + "".join(path.suffixes))
    shutil.copy(path, copy)
    return copy


def linked(path: Path) -> Path:
    path.with_name("link.json").symlink_to(path)
    return path.with_name("link.json")


def compressed(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return packed


@pytest.mark.parametrize("again", [lambda path: path, twice, linked, compressed], ids=["itself", "copy", "link", "packed"])
def test_a_recording_that_is_given_twice_counts_once(again, tmp_path):
    path = write_trace(tmp_path / "a.json", launches(30))
    rows, says = imported(tmp_path, path, again(path))
    assert [row["launches"] for row in rows] == ["30"]
    assert "it is the same recording as" in says and "counted once" in says


def test_records_that_stand_in_a_file_three_times_count_once(tmp_path):
    path = write_trace(tmp_path / "a.json", launches(30))
    document = json.loads(path.read_text())
    document["traceEvents"] *= 3
    path.write_text(json.dumps(document))
    (row,), _ = imported(tmp_path, path)
    assert (row["launches"], row["kernels"]) == ("30", "30")
    assert "60 calls that are in the file more than once" in row["left_out"]
    assert "60 kernels that are in the file more than once" in row["left_out"]


# --- jobs as no recorder should write them, and as some are ---


def answer_of(folder: Path, job: Job) -> tuple[dict, list[dict], str]:
    """What is told of the only process: as JSON, its findings, and the text on the terminal."""
    path = write_nsys(folder / "a.sqlite", job)
    done = launchgap("import", path, "-o", folder / "session", "--json", folder / "a.json", code=0)
    answer = json.loads((folder / "a.json").read_text())
    (told,) = answer["jobs"]
    return told, answer["findings"], " ".join(done.stdout.split())


def one_late(job: Job, by: int) -> Job:
    """Its kernel in the middle is late by that."""
    late = replace(job.work[100], begin=job.work[100].begin + by, end=job.work[100].end + by)
    return replace(job, work=(*job.work[:100], late, *job.work[101:]))


def begun_by(ns: int) -> Job:
    """200 launches, of which the first takes so long."""
    job = launches(200)
    calls = tuple(replace(call, begin=call.begin + ns, end=call.end + ns) for call in job.calls[1:])
    work = tuple(replace(one, begin=one.begin + ns, end=one.end + ns) for one in job.work)
    return Job((replace(job.calls[0], end=job.calls[0].end + ns), *calls), work)


def in_threads(n: int) -> Job:
    """Of each thread a launch call goes on nearly always."""
    job = Job((), ())
    for thread in range(n):
        own = launches(100, begin=1_000_003 + 500 * thread)
        calls = tuple(replace(one, end=one.begin + 18_000, id=one.id + 1000 * thread, thread=thread) for one in own.calls)
        work = tuple(
            replace(one, begin=one.begin + 13_000, end=one.end + 11_500, id=one.id + 1000 * thread, stream=7 + thread)
            for one in own.work
        )
        job += Job(calls, work)
    return job


def of_graphs(n: int) -> Job:
    """Launches of graphs alone, of five kernels each."""
    calls, work = [], []
    for i in range(n):
        at = 1_000_003 + 60_000 * i
        calls.append(Call(at, at + 9_000, 100 + i, "cudaGraphLaunch"))
        work += [Work(at + 12_000 + 3_000 * k, at + 14_000 + 3_000 * k, 100 + i) for k in range(5)]
    return Job(tuple(calls), tuple(work))


def waiting_for_room(n: int) -> Job:
    """A kernel takes longer than a launch, and from the 1020th on each launch waits for one to begin."""
    calls, work, at = [], [], 1_000_003
    for i in range(n):
        begins = 1_020_003 + 51_000 * i
        end = at + 5_000 if i < 1020 else max(at + 5_000, work[i - 1020].begin + 3_000)
        calls.append(Call(at, end, 100 + i))
        work.append(Work(begins, begins + 50_000, 100 + i))
        at = end + 2_000
    return Job(tuple(calls), tuple(work))


DAY = 86_400 * 10**9
JOBS = {
    "one launch": launches(1),
    "one launch that takes a second": Job((Call(5, 10**9, 1),), (Work(10**9 + 6, 10**9 + 9, 1),)),
    "two launches": launches(2),
    "a giant first launch": begun_by(700_000_000),
    "kernels that take no time": Job(launches(200).calls, tuple(replace(one, end=one.begin) for one in launches(200).work)),
    "calls that take no time": Job(tuple(replace(one, end=one.begin) for one in launches(200).calls), launches(200).work),
    "a kernel of the next century": one_late(launches(200), 36_500 * DAY),
    "eight threads": in_threads(8),
    "graphs alone": of_graphs(300),
    "back-pressure": waiting_for_room(3000),
}


@pytest.mark.parametrize("name", JOBS)
def test_of_no_job_a_share_is_none(name, tmp_path):
    job, findings, text = answer_of(tmp_path, JOBS[name])
    assert sum(part["share"] for part in job["tail"]) == pytest.approx(1, abs=1e-9)
    assert sum(part["launches"] for part in job["tail"]) == job["launches"]
    shares = [job.get(key) for key in ("gpu_idle_share", "unknown_share", "launch_share")]
    shares += [finding.get("share") for finding in findings]
    assert all(share is None or 0 <= share <= 1 for share in shares), shares
    assert "nan" not in text and "inf" not in text and "1 launch call take " not in text


# --- wrappings ---


def test_a_report_of_nsys_may_be_compressed(tmp_path):
    path = compressed(write_nsys(tmp_path / "a.sqlite", launches(30)))
    (row,), says = imported(tmp_path, path)
    assert (row["launches"], row["file"], says) == ("30", "a.sqlite.gz", "")
    assert row["form"].endswith(", compressed")


def test_a_compressed_file_that_is_cut_off_is_named(tmp_path):
    path = compressed(write_nsys(tmp_path / "a.sqlite", launches(300)))
    os.truncate(path, path.stat().st_size // 2)
    done = launchgap("import", path, "-o", tmp_path / "session")
    assert done.returncode == 3 and done.stderr.startswith(f"launchgap: {path}: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "session").exists()


@pytest.mark.parametrize("pack", [False, True])
def test_a_byte_order_mark_is_no_part_of_a_text(pack, tmp_path):
    path = write_trace(tmp_path / "a.json", launches(30))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (row,), _ = imported(tmp_path, compressed(path) if pack else path)
    assert row["launches"] == "30"


def test_utf_16_is_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{}", encoding="utf-16")
    done = launchgap("import", path, "-o", tmp_path / "session")
    assert done.returncode == 3 and "UTF-16: save it as UTF-8" in done.stderr and str(path) in done.stderr


# --- advice ---


def test_a_trace_of_pytorch_without_kernels_is_told_of_pytorch(tmp_path):
    _, says = imported(tmp_path, write_trace(tmp_path / "a.json", Job(launches(20).calls, ())))
    assert "ProfilerActivity.CUDA" in says and "nsys" not in says and "WSL" not in says


def test_an_imported_session_is_not_joined(tmp_path):
    path = write_nsys(tmp_path / "a.sqlite", launches(20))
    imported(tmp_path, path)
    done = launchgap("join", path, tmp_path / "session")
    assert done.returncode in (2, 3) and "was imported" in done.stderr and "wrote none" not in done.stderr, done.stderr


def test_a_step_that_nothing_is_named_after_is_told(tmp_path):
    events = trace_events(launches(20))
    events.append(dict(ph="X", cat="user_annotation", name="forward", pid=PID, tid=1, ts=1, dur=9))
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events}).replace('"<', "").replace('>"', ""))
    _, says = imported(tmp_path, path, options=("--step", "NoSuchRange"))
    assert "no range is named NoSuchRange, so there are no steps; some of its ranges are forward" in says


def test_python_that_was_traced_is_counted(tmp_path):
    events = trace_events(launches(200))
    events += [dict(ph="X", cat="python_function", name="f", pid=PID, tid=1, ts=i, dur=1) for i in range(500)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events}).replace('"<', "").replace('>"', ""))
    imported(tmp_path, path)
    (cause,) = [row for row in table(tmp_path / "tables" / "findings.csv") if row["code"] == "slow-host"]
    assert cause["severity"] == "note" and "the recorder traced Python too" in cause["sentence"]
    assert "Python calls that were traced: 500" in cause["evidence"]


def test_a_thread_that_was_off_its_cpu_explains_a_long_launch(tmp_path):
    job = launches(200)
    calls = list(job.calls)
    calls[150] = replace(calls[150], end=calls[150].begin + 14_000)
    calls = [replace(call, thread=4711) for call in calls]
    path = write_nsys(tmp_path / "a.sqlite", Job(tuple(calls), job.work))
    begin = calls[150].begin
    rows = [
        dict(start=begin + 13_000, cpu=1, isSchedIn=1, globalTid=global_id(thread=4711)),
        dict(start=begin + 1_000, cpu=1, isSchedIn=0, globalTid=global_id(thread=4711)),
        dict(start=begin, cpu=1, isSchedIn=0, globalTid=global_id(pid=1, thread=4711)),
    ]
    with sqlite3.connect(path) as database:
        create(database, "SCHED_EVENTS", rows)
    done = launchgap("import", path, "-o", tmp_path / "session", "--json", "-")
    (job,) = json.loads(done.stdout)["jobs"]
    assert {part["cause"]: part["launches"] for part in job["tail"]} == {"host-pause": 1, "usual": 199}


def test_a_traced_session_says_where_its_launch_time_goes(tmp_path):
    options = ("--devices", "host", "--filter", "^launch/null", "--runs", 1, "--no-observer-effect", "--no-report")
    launchgap("run", *options, "-o", tmp_path / "session", code=0)
    launchgap("export", tmp_path / "session", "-o", tmp_path / "tables")
    rows = table(tmp_path / "tables" / "tail.csv")
    processes = {(row["device_id"], row["replicate"]) for row in rows}
    assert processes
    for process in processes:
        own = [row for row in rows if (row["device_id"], row["replicate"]) == process]
        assert sum(float(row["share"]) for row in own) == pytest.approx(1, abs=1e-6)
        assert "usual" in {row["cause"] for row in own} and "first-launch" not in {row["cause"] for row in own}


# --- JSON ---


def test_the_answer_may_be_json_on_standard_output(tmp_path):
    path = write_trace(tmp_path / "a.json", launches(200))
    done = launchgap("import", path, "-o", tmp_path / "session", "--json", "-", page=True)
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and (tmp_path / "session" / "report.html").is_file()
    (job,) = answer["jobs"]
    assert job["launches"] == 200 and sum(part["share"] for part in job["tail"]) == pytest.approx(1)
    done = launchgap("import", path, "-o", tmp_path / "other", "--json", tmp_path / "none" / "a.json")
    assert done.returncode != 0 and not (tmp_path / "other").exists()


# --- interruption ---


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    return write_trace(tmp_path_factory.mktemp("large") / "large.json", launches(40_000))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_an_import_that_is_interrupted_leaves_the_way_free(how, large, tmp_path):
    output = tmp_path / "session"
    for delay in (0.0, 0.15, 0.4):
        process = subprocess.Popen(
            [LAUNCHGAP, "import", large, "-o", output, "--no-report"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(None),
        )  # fmt: skip
        end = time.monotonic() + 10
        while not output.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(delay)
        process.send_signal(how)
        process.wait(timeout=60)
        whole = (output / "summary.csv").exists() and not (output / "unfinished-import").exists()
        if process.returncode == 0 or whole:
            shutil.rmtree(output)  # it was faster than the signal, if not than its own end
        elif how != signal.SIGKILL:
            assert not output.exists()
    small = write_trace(tmp_path / "small.json", launches(20))
    launchgap("import", small, "-o", output, code=0)
    assert not (output / "unfinished-import").exists() and len(list((output / "records").iterdir())) == 1


def test_a_folder_that_another_import_writes_to_is_left_alone(large, tmp_path):
    output = tmp_path / "session"
    process = subprocess.Popen([LAUNCHGAP, "import", large, "-o", output, "--no-report"], stdout=subprocess.DEVNULL)
    while not (output / "records").exists() and process.poll() is None:
        time.sleep(0.002)
    done = launchgap("import", write_trace(tmp_path / "small.json", launches(20)), "-o", output)
    assert process.wait(timeout=60) == 0
    assert done.returncode == 2 and ("another import writes to" in done.stderr or "is not an empty folder" in done.stderr)
    assert json.loads((output / "session.json").read_text())["state"] == "complete"
