"""Recordings of allocations: PyTorch's memory snapshots, logs of RMM, traces of PyTorch's profiler; and bad ones."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import pickletools
import resource
import subprocess
import time
from pathlib import Path

import pytest
from allocation_files import profiler_trace, rmm_log, snapshot, written
from shipped import LAUNCHGAP, NODES, environment, launchgap, table


@pytest.fixture
def imported(tmp_path):
    def made(file: Path, *arguments, page: bool = False) -> Path:
        session = tmp_path / f"{file.name}.session"
        done = launchgap("import", file, "-o", session, *arguments, page=page, code=0)
        (session / "stdout").write_text(done.stdout, encoding="utf-8")
        (session / "stderr").write_text(done.stderr, encoding="utf-8")
        return session

    return made


def recordings(session: Path) -> list[dict]:
    tables = session.with_suffix(".tables")
    launchgap("export", session, "--format", "csv", "-o", tables, code=0)
    return table(tables / "recordings.csv")


def trace_of(what: Path, device: int, tmp_path: Path) -> dict:
    out = tmp_path / "replay.json"
    launchgap("replay", what, "--allocator", "caching", "--trace-device", device, "--json", out, code=0)
    document = json.loads(out.read_text(encoding="utf-8"))
    (caching,) = document["allocators"]
    return {key: document["trace"][key] for key in ("allocations", "releases", "peak_live_bytes", "live_at_end")} | {
        key: caching[key] for key in ("operations", "completed", "reserved_peak_bytes")
    }


@pytest.mark.parametrize("form", ["snapshot", "rmm", "profiler"])
def test_what_is_exported_replays_as_the_session_does(form, imported, tmp_path):
    session = imported(written(form, tmp_path / form))
    (tmp_path / "out").mkdir()
    gmtrace = tmp_path / "out" / "x.gmtrace.csv"
    launchgap("export", session, "--format", "gmtrace", "-o", gmtrace, code=0)
    devices = 2 if form == "snapshot" else 1
    rows = recordings(session)
    assert [int(row["unseen_releases"]) for row in rows] == ([1, 1] if form == "snapshot" else [0])
    peaks = set()
    for device in range(devices):
        of_session = trace_of(session, device, tmp_path)
        assert of_session == trace_of(gmtrace, device, tmp_path)
        assert of_session["allocations"] == 60 and of_session["releases"] == 40 and of_session["completed"]
        peaks.add(of_session["peak_live_bytes"])
    assert [(int(row["allocations"]), int(row["releases"])) for row in rows] == [(60, 40)] * devices
    assert {int(row["most_live_bytes"]) for row in rows} == peaks and len(peaks) == devices
    lines = gmtrace.read_text(encoding="utf-8").splitlines()[3:]
    assert len({line.split(",")[6] for line in lines}) == devices


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("form", ["plain", "optimised", "compressed"])
def test_snapshots_of_all_protocols_are_the_same(protocol, form, imported, tmp_path):
    data = pickle.dumps(snapshot(), protocol=protocol)
    if form == "optimised":
        data = pickletools.optimize(data)
    file = tmp_path / "snapshot"
    file.write_bytes(gzip.compress(data) if form == "compressed" else data)
    rows = recordings(imported(file, "--no-report"))
    assert [(row["allocations"], row["releases"], row["unseen_releases"]) for row in rows] == [("60", "40", "1")] * 2
    assert {row["form"] for row in rows} == {
        f"pickle, protocol {protocol if protocol > 1 else 0}" + (", compressed" if form == "compressed" else "")
    }


def test_import_says_what_was_allocated(imported, tmp_path):
    session = imported(written("snapshot", tmp_path / "snapshot.pickle"), page=True)
    said = (session / "stdout").read_text(encoding="utf-8")
    assert "peak" in said and "a GPU (not recorded which)" in said and "launch call" not in said
    assert "allocations only" in said and len(said.splitlines()) <= 12
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "allocations of a recorded job" in page and "What was allocated" in page
    for wrong in ("On an idle stream", "no launches", "All cases", "has no devices"):
        assert wrong not in page


def test_an_older_snapshot_says_that_it_has_no_order(imported, tmp_path):
    old = snapshot()["segments"]
    old[0]["blocks"][0] |= {"history": [{"addr": 1, "real_size": 512, "frames": []}]}
    file = tmp_path / "old.pickle"
    file.write_bytes(pickle.dumps(old))
    session = imported(file, "--no-report")
    assert "no events in their order" in (session / "stderr").read_text(encoding="utf-8")
    assert [row["allocations"] for row in recordings(session)] == ["1"]


class Command:
    """What an attacker pickles."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


PROOF = Path("proof")  # in the folder where the command is run
TOUCH = f"touch {PROOF}".encode()
MEMO_BOMB = b"\x80\x04]\x94" + b"".join(b"(" + b"h%c" % i * 10 + b"l\x94" for i in range(200)) + b"."
HOSTILE: dict[str, tuple[bytes, str]] = {
    f"reduce {protocol}": (pickle.dumps(Command(PROOF), protocol=protocol), "system, by ")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
} | {
    "inside": (pickle.dumps({"segments": [Command(PROOF)]}), "posix.system, by STACK_GLOBAL at byte"),
    "inst": (b"(S'" + TOUCH + b"'\nios\nsystem\n.", "os.system, by INST at byte"),
    "global": (b"cos\nsystem\n(S'" + TOUCH + b"'\ntR.", "os.system, by GLOBAL at byte 0"),
    "object": (b"\x80\x02)\x81.", "it makes an object (NEWOBJ at byte 3)"),
    "set": (pickle.dumps({1, 2}), "it has a set (EMPTY_SET at byte"),
    "class": (pickle.dumps(Path("x")), "it names a function or class (pathlib"),
    "memo bomb": (MEMO_BOMB, "segments[0] is no dict"),
    "one event 10^6 times": (
        b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](](}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01uq\x00"
        + b"h\x00" * 10**6
        + b"eeu.",
        "is more than the bytes of the file have room for",
    ),
    "itself": (b"\x80\x04]\x94h\x00a.", "segments[0] is no dict"),
    "a text of 10^9 bytes": (b"\x80\x04X" + (10**9).to_bytes(4, "little") + b"abc.", "a text of 1000000000 bytes"),
    "a text of 2^62 bytes": (b"\x80\x04\x8d" + (2**62).to_bytes(8, "little") + b"abc.", "a text of 4611686018427387904"),
    "an int of 2^31 bytes": (
        b"\x80\x04\x8b" + (2**31 - 1).to_bytes(4, "little") + b"abc.",
        "an int of 2147483647 bytes",
    ),
    "memo 10^9": (b"\x80\x04]r" + (10**9).to_bytes(4, "little") + b".", "it gives out the number 1000000000"),
    "deep": (b"\x80\x04" + b"]" * 10**6 + b"a" * (10**6 - 1) + b".", "segments[0] is no dict"),
    "protocol 9": (b"\x80\x09N.", "it has the protocol 9"),
    "zeros": (gzip.compress(b"\x80\x04" + bytes(10**6)), "there is no opcode 0x00 (at byte 2)"),
}


def bomb(head: bytes, body: bytes, times: int) -> bytes:
    """Compressed once, and then as often as that."""
    return gzip.compress(head) + gzip.compress(body) * times


HOSTILE |= {
    "gzip bomb": (bomb(b"\x80\x04]", b"N0" * 10**6, 100), "unpacks to more than 100 times its size"),
    "gzip bomb of lists": (bomb(b"\x80\x04", b"]" * 10**6, 150), "what it holds takes more than 2 GiB (at byte"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_and_runs_nothing(name, tmp_path):
    data, says = HOSTILE[name]
    file = tmp_path / "hostile.pickle"
    file.write_bytes(data)
    begin = time.monotonic()
    done = subprocess.run(
        [LAUNCHGAP, "import", file, "-o", tmp_path / "session"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
    )
    assert done.returncode == 3, done.stderr
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / PROOF).exists() and not (tmp_path / "session").exists()
    assert time.monotonic() - begin < 60


def test_a_log_of_rmm_that_unpacks_to_gigabytes_is_refused(tmp_path):
    file = tmp_path / "rmm.csv"
    line = b"1,00:00:00.000000,allocate,0x10,1,0\n"
    file.write_bytes(bomb(b"Thread,Time,Action,Pointer,Size,Stream\n", line * 10**5, 100))
    done = launchgap("import", file, "-o", tmp_path / "session")
    assert done.returncode == 3 and "unpacks to more than 100 times its size (at byte" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,00:00:00.000000,allocate,0x10,-256,0\n", "line 2: '-256' is no size that can be"),
        ("1,00:00:00.000000,allocate,0x10,18446744073709551616,0\n", "line 2: '18446744073709551616' is no size"),
        ("1,00:00:00,allocate,0x10,1,0\n1,00:00:00,free,0x10,2,0\n", "line 3: 2 bytes are freed at 0x10"),
        ("1,00:00:00.000000,allocate,0x10\n1,1\n", "line 2: it has 4 fields, and its head 6"),
        ("1" * (1 << 20), "line 2 (byte 39) is longer than 65536 bytes"),
    ],
)
def test_a_bad_log_of_rmm_names_its_line(text, says, tmp_path):
    file = tmp_path / "rmm.csv"
    file.write_text("Thread,Time,Action,Pointer,Size,Stream\n" + text, encoding="utf-8")
    done = launchgap("import", file, "-o", tmp_path / "session")
    assert done.returncode == 3 and says in done.stderr, done.stderr


def test_a_session_without_allocations_says_what_records_them(tmp_path):
    event = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 5, "dur": 2}
    file = tmp_path / "trace.json"
    file.write_text(json.dumps([event | {"args": {"correlation": 1}}]), encoding="utf-8")
    session = tmp_path / "session"
    assert launchgap("import", file, "-o", session).returncode == 0
    done = launchgap("export", session, "--format", "gmtrace", "-o", tmp_path / "x.csv")
    assert done.returncode == 2 and "has no allocations: PyTorch's profiler records them" in done.stderr
    assert not (tmp_path / "x.csv").exists()


@pytest.mark.parametrize("node", [None, NODES / "one_a100.json"])
def test_what_launchgap_traced_is_exported_too(node, tmp_path):
    session = tmp_path / "session"
    devices = "host" if node is None else "gpu"
    options = ("--devices", devices, "--runs", 1, "--trace", "on", "--keep-events", "--no-report")
    launchgap("run", *options, "--filter", r"allocation/latency.*bytes:1048576$", "-o", session, node=node, code=0)
    out = tmp_path / "traces"
    done = launchgap("export", session, "--format", "gmtrace", "-o", out, code=0)
    files = sorted(out.glob("*.gmtrace.csv.gz"))
    assert files and [str(file) for file in files] == sorted(done.stdout.split())
    done = launchgap("replay", files[0], "--allocator", "bfc")
    assert done.returncode == 0 and "allocations and" in done.stdout + done.stderr, done.stderr


def launching_trace(pid: int) -> dict:
    launch = {"ph": "X", "name": "cudaLaunchKernel", "cat": "cuda_runtime", "pid": pid, "tid": pid, "dur": 5}
    kernel = {"ph": "X", "name": "k", "cat": "kernel", "pid": 0, "tid": 7, "dur": 3}
    events = []
    for i in range(20):
        events.append(launch | {"ts": 1000 + 50 * i, "args": {"correlation": i + 1, "cbid": 211}})
        events.append(kernel | {"ts": 1010 + 50 * i, "args": {"correlation": i + 1, "device": 0, "stream": 7}})
    return {"traceEvents": events}


def test_of_several_processes_the_one_that_allocates_is_played(tmp_path):
    allocating, launching, other = (tmp_path / f"{name}.json" for name in ("allocating", "launching", "other"))
    allocating.write_text(json.dumps(profiler_trace()), encoding="utf-8")
    launching.write_text(json.dumps(launching_trace(9)), encoding="utf-8")
    other.write_text(json.dumps(profiler_trace(30)), encoding="utf-8")

    def session(*files: Path) -> Path:
        folder = tmp_path / f"of-{len(files)}"
        launchgap("import", *files, "-o", folder, code=0)
        return folder

    two = session(allocating, launching)
    assert len(list((two / "events").iterdir())) == 2
    done = launchgap("replay", two, "--allocator", "bfc", code=0)
    assert "of 2 processes one allocates, " in done.stderr and "60 allocations and 40 frees" in done.stdout
    three = session(allocating, launching, other)
    done = launchgap("replay", three, "--allocator", "bfc")
    assert done.returncode == 2 and "has the allocations of 2 processes: name one by --run" in done.stderr
    named = [file.name for file in (three / "events").iterdir() if file.name in done.stderr]
    assert len(named) == 2, "files that are there, and of those that allocate"
    for name in named:
        assert launchgap("replay", three, "--allocator", "bfc", "--run", name).returncode == 0
    done = launchgap("replay", three, "--run", named[0].replace("l", "k", 1))
    assert done.returncode == 2 and f"did you mean '{named[0]}'?" in done.stderr


def test_a_problem_of_minimalloc_has_room_where_a_block_ends(imported, tmp_path):
    file = tmp_path / "A.csv"
    file.write_text("id,lower,upper,size\nb1,0,3,4096\nb2,3,9,4096\nb3,0,9,256\n", encoding="utf-8")
    session = imported(file, "--no-report")
    assert trace_of(session, 0, tmp_path)["peak_live_bytes"] == 4096 + 256
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "A.csv"
    other.write_text("buffer_id,start,end,size\r\nb1,0,3,4096\r\nb2,3,9,4096\r\nb3,0,9,256\r\n", encoding="utf-8")
    launchgap("import", other, "-o", tmp_path / "other" / "session", code=0)
    assert trace_of(tmp_path / "other" / "session", 0, tmp_path)["peak_live_bytes"] == 4096 + 256
    for line, says in (("b,3,3,1", "it ends before it begins"), ("b,-1,3,1", "it has no lower"), ("b,1,3,0", "a size")):
        file.write_text(f"id,lower,upper,size\n{line}\n", encoding="utf-8")
        done = launchgap("import", file, "-o", tmp_path / "bad")
        assert done.returncode == 3 and "line 2: " in done.stderr and says in done.stderr, done.stderr


def test_what_is_never_freed_is_played_too(imported, tmp_path):
    file = tmp_path / "log.csv"
    lines = [line for line in rmm_log().splitlines() if ",free," not in line]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    trace = trace_of(imported(file, "--no-report"), 0, tmp_path)
    assert (trace["allocations"], trace["releases"]) == (60, 0)


def test_a_gmtrace_is_named(tmp_path):
    file = tmp_path / "x.csv"
    assert launchgap("generate", "checkerboard/blocks:8", "-o", file).returncode == 0
    done = launchgap("import", file, "-o", tmp_path / "session")
    assert done.returncode == 3 and "it is a gmtrace, which `launchgap replay` plays as it is" in done.stderr
