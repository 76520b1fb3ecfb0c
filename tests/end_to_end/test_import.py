"""launchgap import: what real recordings do, in files as small as they can be. tests/recordings has real ones."""

from __future__ import annotations

import gzip
import html
import json
import os
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from recording_files import (
    A100,
    PID,
    Job,
    as_json,
    global_id,
    launches,
    trace_events,
    write_nsys,
    write_nvprof,
    write_trace,
)
from shipped import launchgap, table

UNIX_NS = 1_712_195_495_505_543_201  # beyond 2^53, so a double would lose its last digits


@dataclass
class Imported:
    answers: str  # on standard output
    says: str  # on standard error
    recordings: list[dict[str, str]]
    samples: list[dict[str, str]]
    devices: list[dict[str, str]]
    session: Path

    @property
    def recording(self) -> dict[str, str]:
        assert len(self.recordings) == 1
        return self.recordings[0]

    def counts(self) -> dict[str, int]:
        """Those that are not zero."""
        names = (
            "launches kernels kernels_without_launch launches_without_kernel overlap early zero idle_launches busy_launches"
            " unknown_launches graph_launches"
        ).split()
        return {name: int(self.recording[name]) for name in names if self.recording[name] != "0"}

    def of_launches(self) -> list[dict[str, str]]:
        return [row for row in self.samples if row["case"].startswith(("recorded/launch/", "recorded/graph/"))]

    def times(self, metric: str, state: str = "idle") -> list[int]:
        case = f"recorded/launch/stream:{state}"
        rows = [row for row in self.samples if (row["case"], row["metric"]) == (case, metric)]
        return [int(row["value"]) for row in rows if row["value"]]


@pytest.fixture
def imported(tmp_path):
    """`launchgap import` of files, then `launchgap export`."""

    def read(*files: Path, page: bool = False) -> Imported:
        session, tables = tmp_path / "session", tmp_path / "tables"
        done = launchgap("import", *files, "-o", session, page=page, code=0)
        launchgap("export", session, "-o", tables, code=0)
        of = {name: table(tables / f"{name}.csv") for name in ("recordings", "samples", "devices")}
        return Imported(done.stdout, done.stderr, session=session, **of)

    return read


# --- what all forms have ---

FORMS = {"nsys": (write_nsys, "a.sqlite"), "nvprof": (write_nvprof, "a.nvvp"), "trace": (write_trace, "a.json")}


@pytest.fixture(params=FORMS)
def write(request, tmp_path):
    writer, name = FORMS[request.param]
    return lambda job: writer(tmp_path / name, job)


def test_the_same_job_says_the_same_in_every_form(write, imported):
    got = imported(write(launches(20)))
    assert got.counts() == {"launches": 20, "kernels": 20, "idle_launches": 20}
    assert got.recording["joined_share"] == "1"
    assert got.recording["pid"] == str(PID)
    assert got.times("api_record_ns") == [4_000] * 20
    assert got.times("launch_ns") == [6_000] * 20
    assert got.times("queue_ns") == [2_000] * 20
    assert got.times("kernel_ns") == [2_000] * 20
    assert got.says == ""
    said = " ".join(got.answers.split())
    # Of 20 launches nobody knows a p99.
    assert "program-bound. The GPU is idle" in said and "(a call: p50 4.00 µs): usual calls 100 %." in said
    assert got.recording["verdict"] == "program-bound" and got.recording["unknown_share"] == "0"


def test_kernels_without_any_call_are_counted(write, imported):
    """As in profiles that nvprof made with --analysis-metrics."""
    got = imported(write(Job((), launches(20).work)))
    assert got.counts() == {"kernels": 20, "kernels_without_launch": 20}
    assert got.of_launches() == []
    assert "it has kernels and no calls" in got.says


def test_calls_without_any_kernel_tell_what_calls_cost(write, imported):
    got = imported(write(Job(launches(20).calls, ())))
    assert got.counts() == {"launches": 20, "launches_without_kernel": 20, "unknown_launches": 20}
    assert got.times("api_record_ns", "unknown") == [4_000] * 20
    assert "it has calls and no kernels" in got.says


def test_several_recordings_of_a_gpu_are_runs_of_it(tmp_path, imported):
    files = [write_nsys(tmp_path / f"{i}.sqlite", launches(n)) for i, n in enumerate((5, 7))]
    got = imported(*files)
    assert [(row["replicate"], row["launches"]) for row in got.recordings] == [("0", "5"), ("1", "7")]
    assert len(got.devices) == 1
    assert json.loads((got.session / "session.json").read_text(encoding="utf-8"))["runs"] == 2


def test_lost_kernels_are_told_and_their_launches_kept(write, imported):
    job = launches(100)
    got = imported(write(Job(job.calls, tuple(one for i, one in enumerate(job.work) if i % 20 >= 9))))
    assert got.counts() == {
        "launches": 100, "kernels": 55, "launches_without_kernel": 45, "idle_launches": 55, "unknown_launches": 45,
    }  # fmt: skip
    assert len(got.times("api_record_ns", "unknown")) == 45, "what a call cost is known"
    assert got.times("launch_ns", "unknown") == []
    assert "the kernels of 45 of 100 launches are lost" in got.says


def test_a_launch_whose_kernels_run_on_two_devices_is_one_launch(write, imported):
    """NCCL's, and those of cudaLaunchCooperativeKernelMultiDevice."""
    job = launches(10)
    more = tuple(replace(one, device=1, begin=one.begin + 500, end=one.end + 500) for one in job.work)
    got = imported(write(Job(job.calls, job.work + more)))
    assert len(got.recordings) == 2, "a run for each GPU"
    assert {row["launches"] for row in got.recordings} == {"10"} and {row["kernels"] for row in got.recordings} == {"20"}
    assert sorted(row["idle_launches"] for row in got.recordings) == ["0", "10"], "it is of the GPU that begins first"
    assert got.times("kernel_ns") == [4_000] * 10, "of both kernels"
    assert "10 launch calls started kernels on several GPUs; each counts for the GPU of its first kernel" in got.says


def test_a_kernel_may_begin_before_its_call_returns(write, imported):
    job = launches(10)
    got = imported(write(Job(tuple(replace(call, end=call.begin + 7_000) for call in job.calls), job.work)))
    assert got.counts() == {"launches": 10, "kernels": 10, "overlap": 10, "idle_launches": 10}
    assert got.times("launch_ns") == [6_000] * 10
    assert got.times("queue_ns") == [], "it waited for nothing"
    assert got.says == ""


def test_a_clock_that_is_ahead_gives_no_times_from_call_to_kernel(write, imported):
    got = imported(write(launches(200).device_clock(278_000_000_000)), page=True)
    assert got.counts() == {"launches": 200, "kernels": 200, "unknown_launches": 200}, "a stream's state needs both clocks"
    assert got.times("launch_ns", "unknown") == got.times("queue_ns", "unknown") == []
    assert got.times("api_record_ns", "unknown") == [4_000] * 200
    assert got.times("kernel_ns", "unknown") == [2_000] * 200
    problem = "the GPU's clock is ahead of the host's, by 278 s at most"
    assert got.recording["clock_problem"] == problem
    assert got.recording["clock_ahead_most_ns"] == "278000006000"
    assert f"{problem}, so there are no times from a call to its kernel" in got.says
    assert problem in html.unescape((got.session / "report.html").read_text(encoding="utf-8")).replace("\xa0", " ")


# --- nvprof ---


def test_nvprof_has_kernels_that_ran_alone_in_another_table(tmp_path, imported):
    """With --analysis-metrics."""
    path = write_nvprof(tmp_path / "a.nvvp", launches(10))
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
    assert imported(path).counts() == {"launches": 10, "kernels": 10, "idle_launches": 10}


def test_nvprof_tells_which_gpu(tmp_path, imported):
    got = imported(write_nvprof(tmp_path / "a.nvvp", launches(name="cuLaunchKernel")))
    (device,) = got.devices
    assert (got.recording["recorder"], got.recording["launches"]) == ("nvprof", "20"), "a call of the driver's API"
    assert device["device_name"] == "Tesla P100-PCIE-16GB"
    assert device["device_id"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_unix_nanoseconds_keep_every_digit(tmp_path, imported):
    """A double has no room for them."""
    job = launches(3, begin=UNIX_NS)
    odd = Job(tuple(replace(call, end=call.end + i) for i, call in enumerate(job.calls)), job.work)
    got = imported(write_nvprof(tmp_path / "a.nvvp", odd))
    assert got.times("api_record_ns") == [4_000, 4_001, 4_002]
    assert got.times("since_last_ns") == [16_001, 16_000]


# --- Nsight Systems ---


def test_calls_in_two_rows_are_one_call(tmp_path, imported):
    """nsys 2022.2 has each call once more as its call chain saw it, a little wider."""
    path = write_nsys(tmp_path / "a.sqlite", launches(20))
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT start - 300, end + 200, 67, globalTid, correlationId, nameId"
            " FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        )
    got = imported(path)
    assert got.counts() == {"launches": 20, "kernels": 20, "idle_launches": 20}
    assert got.times("api_record_ns") == [4_000] * 20
    assert got.recording["left_out"] == "20 calls that are in two rows"


def test_nsys_without_kernels_says_what_is_missing(tmp_path, imported):
    """As under WSL."""
    got = imported(write_nsys(tmp_path / "a.sqlite", launches(20), left_out=["KERNEL"]))
    assert got.counts() == {"launches": 20, "launches_without_kernel": 20, "unknown_launches": 20}
    assert got.times("api_record_ns", "unknown") == [4_000] * 20
    assert "it has calls and no kernels" in got.says and got.says.count("\n") == 1


@pytest.mark.parametrize(
    "meta, recorder, form",
    [
        (None, "Nsight Systems", "SQLite"),
        ("EXPORT_META_DATA", "Nsight Systems 2024.5.1.113", "SQLite, schema 3.13.2"),
        ("META_DATA_EXPORT", "Nsight Systems 2024.5.1.113", "SQLite, schema 3.13.2"),
    ],
)
def test_nsys_has_three_forms_of_meta_data(meta, recorder, form, tmp_path, imported):
    got = imported(write_nsys(tmp_path / "a.sqlite", launches(), meta=meta))
    assert (got.recording["recorder"], got.recording["form"]) == (recorder, form)


@pytest.mark.parametrize(
    "written, version",
    [
        ("550.127.05", "550.127.05"),
        ("52510517", "525.105.17"),
        ("5154304", "515.43.04"),
        ("55067", "550.67"),
        ("12", "12"),
        (None, ""),
    ],
)
def test_nsys_writes_drivers_in_two_ways(written, version, tmp_path, imported):
    (device,) = imported(write_nsys(tmp_path / "a.sqlite", launches(), driver=written)).devices
    assert device["driver_version"] == version


def test_gpus_of_other_makers_are_no_gpus_of_the_job(tmp_path, imported):
    intel = A100 | dict(id=0, name="Intel Arc A770", computeMajor=None, computeMinor=None)
    (device,) = imported(write_nsys(tmp_path / "a.sqlite", launches(), gpus=[intel, A100 | dict(id=1)])).devices
    assert device["device_name"] == "NVIDIA A100-SXM4-80GB"


def test_a_node_with_several_gpus_of_one_name_tells_the_name_alone(tmp_path, imported):
    gpus = [A100 | dict(id=i, uuid=f"cf6b97c0-0000-4000-8000-00000000000{i}") for i in range(4)]
    (device,) = imported(write_nsys(tmp_path / "a.sqlite", launches(), gpus=gpus)).devices
    assert device["device_name"] == "NVIDIA A100-SXM4-80GB"
    assert device["device_id"].startswith("recorded-"), "CUDA_VISIBLE_DEVICES may have renumbered them"


def test_processes_of_one_file_are_runs_of_their_own(tmp_path, imported):
    path = write_nsys(tmp_path / "a.sqlite", launches(20))
    with sqlite3.connect(path) as database:
        for tables, column in (("RUNTIME", "globalTid"), ("KERNEL", "globalPid")):
            database.execute(
                f"UPDATE CUPTI_ACTIVITY_KIND_{tables} SET {column} = {column} + {global_id(1) - global_id(0)}"
                " WHERE correlationId < 105"
            )
            database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{tables} SET correlationId = correlationId % 5")
    got = imported(path)
    assert sorted((row["pid"], row["launches"]) for row in got.recordings) == [(str(PID), "15"), (str(PID + 1), "5")]
    assert "a.sqlite: 2 processes use GPU 0: while it is idle for one, it may work for another" in got.says


@pytest.mark.parametrize(("processes", "kernels"), [(1, ["20"]), (2, ["19", "0"])])
def test_a_kernel_that_does_not_say_of_which_process_it_is_is_of_the_only_one(processes, kernels, tmp_path, imported):
    """Two may have calls of one correlation number."""
    path = write_nsys(tmp_path / "a.sqlite", launches(20))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL WHERE correlationId = 103")
        if processes == 2:
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT start + 500000, end + 500000,"
                " eventClass, ?, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME",
                (global_id(PID + 1, 1),),
            )
    found = imported(path)
    assert [row["kernels"] for row in found.recordings] == kernels
    left_out = "1 records that do not say of which process they are" if processes == 2 else ""
    assert {row["left_out"] for row in found.recordings} == {left_out}


# --- Chrome traces ---


def test_numbers_may_be_strings(tmp_path, imported):
    def strings(value):
        if isinstance(value, dict):
            return {key: strings(one) for key, one in value.items()}
        if isinstance(value, list):
            return [strings(one) for one in value]
        return str(value).strip("<>")

    path = tmp_path / "a.json"
    path.write_text(json.dumps(strings(trace_events(launches(20)))))
    got = imported(path)
    assert got.counts() == {"launches": 20, "kernels": 20, "idle_launches": 20}
    assert got.times("launch_ns") == [6_000] * 20


def test_times_may_be_counted_from_a_base(tmp_path, imported):
    base = 1_751_410_836_000_000_000
    got = imported(write_trace(tmp_path / "a.json", launches(10), baseTimeNanoseconds=base))
    assert got.times("launch_ns") == [6_000] * 10
    (run,) = table(got.session / ".." / "tables" / "runs.csv")
    assert run["begin_utc"] == "2025-07-01T23:00:36Z"


def test_ranks_of_a_job_are_gpus_of_their_own(tmp_path, imported):
    files = [
        write_trace(tmp_path / f"rank{rank}.json", launches(), distributedInfo=dict(rank=rank, world_size=2))
        for rank in range(2)
    ]
    got = imported(*files)
    assert [(row["file"], row["rank"]) for row in sorted(got.recordings, key=lambda row: row["file"])] == [
        ("rank0.json", "0"), ("rank1.json", "1"),
    ]  # fmt: skip
    assert len(got.devices) == 2


# --- names say nothing, content does ---


def test_a_file_is_known_by_its_content(tmp_path, imported):
    got = imported(write_nsys(tmp_path / "sqlite.json", launches(5)), write_trace(tmp_path / "json.sqlite", launches(7)))
    assert {row["file"]: row["launches"] for row in got.recordings} == {"sqlite.json": "5", "json.sqlite": "7"}


# --- bad input ---


def refused(path: Path, folder: Path, exit_code: int = 3, output: Path | None = None) -> str:
    """What is said of a file that cannot be imported: one line, and nothing is left."""
    output = output or folder / "refused"
    before = sorted(output.rglob("*")) if output.exists() else None
    done = launchgap("import", path, "-o", output, code=exit_code)
    assert done.stderr.count("\n") == 1 and done.stdout == "", done.stderr
    assert (sorted(output.rglob("*")) if output.exists() else None) == before
    return done.stderr


def truncated(path: Path) -> Path:
    os.truncate(path, path.stat().st_size * 2 // 3)
    return path


def text_file(name: str, text: str | bytes):
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def sqlite_file(name: str, *statements: str):
    def write(folder: Path) -> Path:
        database = sqlite3.connect(folder / name)
        for statement in statements:
            database.execute(statement)
        database.commit()
        database.close()
        return folder / name

    return write


def changed_nsys(*statements: str):
    def write(folder: Path) -> Path:
        write_nsys(folder / "a.sqlite", launches())
        return sqlite_file("a.sqlite", *statements)(folder)

    return write


def garbled(folder: Path) -> Path:
    """A page in the middle that is no page."""
    path = write_nsys(folder / "a.sqlite", launches(2000))
    with path.open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xa5" * 4096)
    return path


def long_text(folder: Path) -> Path:
    """100 MB of one letter, in 100 kB."""
    path = folder / "a.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [{"name": "')
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}]}')
    return path


def amd(folder: Path) -> Path:
    return write_trace(folder / "a.json", launches(name="hipLaunchKernel"))


def timeline(row: str):
    """Ops in a row of a GPU or a host, as TensorFlow's `timeline.Timeline` and the trace viewer write them."""
    head = dict(ph="M", name="process_name", pid=5, args=dict(name=row))
    op = dict(ph="X", cat="Op", name="MatMul", pid=5, tid=0, ts=1_500_000_000_000_000, dur=12, args=dict(name="a/MatMul"))
    return text_file("a.timeline.json", json.dumps({"traceEvents": [head, op]}))


# XSpace.planes is field 1; XPlane.id is field 1 and may be absent, XPlane.name field 2.
XPLANE = b"\x0a\xa6\xa1\x87\x01\x12\x09/host:CPU" + bytes(300)
XPLANE_OF_JAX = b"\x0a\x14\x08\x03\x12\x10Task Environment"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
BAD = {
    "no such file": (lambda folder: folder / "nothing.json", "nothing.json"),
    "a folder": (lambda folder: folder, "folder"),
    "empty": (text_file("a.json", ""), "it is empty"),
    "zeros": (text_file("a.sqlite", bytes(100_000)), "it begins with zeros only"),
    "noise": (text_file("a.json", bytes(range(1, 256)) * 100), "it has no form that launchgap knows"),
    "words that begin with a c": (text_file("a.txt", "calls of\nmy program\n"), "it has no form that launchgap knows"),
    "a table of figures": (text_file("a.csv", "Start (ns),Duration\n1,2\n"), "nsys export --type sqlite"),
    "XML": (text_file("a.nvvp", '<?xml version="1.0" encoding="UTF-8"?>\n<session/>'), "nvprof --export-profile"),
    "a pointer of git-lfs": (
        text_file("a.sqlite", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"), "git lfs pull",
    ),
    "truncated gzip": (lambda folder: truncated(trace_gz(folder)), "its compression ends too early or is damaged"),
    "damaged gzip": (lambda folder: damaged(trace_gz(folder)), "its compression ends too early or is damaged"),
    "truncated JSON": (lambda folder: truncated(write_trace(folder / "a.json", launches())), "it is no whole JSON"),
    "two documents": (text_file("a.json", '{"traceEvents": []} {"traceEvents": []}'), "it is no whole JSON"),
    "deep JSON": (text_file("a.json", '{"a": ' * 100_000), "it is nested more than 500 deep"),
    "deep lists": (text_file("a.json", "[" * 100_000), "it is nested more than 500 deep"),
    "a long text": (long_text, "it has a text of more than"),
    "other JSON": (text_file("a.json", '{"benchmarks": []}'), 'no list "traceEvents"'),
    "no CUDA": (text_file("a.json", '{"traceEvents": []}'), "neither calls of CUDA, kernels nor allocations"),
    "a GPU of AMD": (amd, "AMD GPU"),
    "a timeline of TensorFlow's host": (
        timeline("/job:localhost/replica:0/task:0/cpu:0 Compute"), "it is a timeline of TensorFlow's host alone",
    ),
    "a trace of JAX's host": (timeline("/host:CPU"), "import the *.xplane.pb beside it"),
    "an XPlane that is cut off": (text_file("a.xplane.pb", XPLANE), "it is cut off or damaged: it ends at byte 316"),
    "an XPlane of no GPU, compressed": (
        text_file("a.xplane.pb.gz", gzip.compress(XPLANE_OF_JAX)), "it is an XPlane of the host alone",
    ),
    "an event file of TensorBoard": (
        text_file("a.tfevents", b"\x18" + bytes(11) + b"\x09\0\0\0\0\x1a\x0dbrain.Event:2"), "plugins/profile",
    ),
    "a profile of pprof": (text_file("a.pb.gz", gzip.compress(b"\x0a\x04\x08\x01\x10\x02")), "a profile of pprof"),
    "truncated SQLite": (lambda folder: truncated(write_nsys(folder / "a.sqlite", launches(500))), "damaged SQLite"),
    "garbled SQLite": (garbled, "damaged SQLite"),
    "the beginning of SQLite": (text_file("a.sqlite", b"SQLite format 3\0" + b"\1" * 200), "SQLite"),
    "SQLite of others": (sqlite_file("a.sqlite", "CREATE TABLE songs (title)"), "no tables of Nsight Systems or nvprof"),
    "NVTX alone": (changed_nsys(f"DROP TABLE {KERNELS}", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"), "--trace=cuda"),
    "a schema to come": (changed_nsys(f"ALTER TABLE {KERNELS} RENAME COLUMN start TO beginNs"), "has no column start"),
    "no names": (changed_nsys("ALTER TABLE StringIds RENAME COLUMN value TO text"), "StringIds"),
    "a view": (
        changed_nsys(f"ALTER TABLE {KERNELS} RENAME TO hidden", f"CREATE VIEW {KERNELS} AS SELECT * FROM hidden"),
        f"{KERNELS} is a view",
    ),
    "tables without rows": (
        changed_nsys(f"DELETE FROM {KERNELS}", "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME"), "neither calls of CUDA",
    ),
}  # fmt: skip


def trace_gz(folder: Path) -> Path:
    """Of random numbers, so that it stays long."""
    job = launches(2000)
    path = folder / "a.json.gz"
    path.write_bytes(gzip.compress(as_json(trace_events(job)).encode()))
    return path


def damaged(path: Path) -> Path:
    data = bytearray(path.read_bytes())
    data[-8] ^= 0xFF  # of its check sum
    path.write_bytes(data)
    return path


NO_FILES = ("no such file", "a folder", "empty")
"""Wrong usage, wherever among the files it stands"""


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_imported_is_refused_in_one_line(case, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    write, says = BAD[case]
    path = write(folder)
    said = refused(path, tmp_path, exit_code=2 if case in NO_FILES else 3)
    assert says in said and str(path) in said


def test_a_database_that_somebody_writes_to_is_refused(tmp_path):
    path = write_nsys(tmp_path / "a.sqlite", launches())
    with sqlite3.connect(path, isolation_level=None) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert "another program is writing to it" in refused(path, tmp_path)


def test_one_bad_file_of_several_leaves_nothing(tmp_path):
    good, bad = write_trace(tmp_path / "good.json", launches()), tmp_path / "bad.json"
    bad.write_text("{")
    done = launchgap("import", good, bad, "-o", tmp_path / "session", code=3)
    assert str(bad) in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "session").exists()


def test_nothing_is_written_beside_a_recording(tmp_path, imported):
    folder = tmp_path / "read-only"
    folder.mkdir()
    path = write_nsys(folder / "a #1?.sqlite", launches())
    before = path.read_bytes()
    folder.chmod(0o555)
    try:
        assert imported(path).counts()["launches"] == 20
        assert list(folder.iterdir()) == [path] and path.read_bytes() == before
    finally:
        folder.chmod(0o755)


def test_a_database_that_was_written_through_a_log_gets_none_beside_it(tmp_path, imported):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = write_nsys(folder / "a.sqlite", launches())
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    assert imported(path).counts()["launches"] == 20
    assert list(folder.iterdir()) == [path]


def test_what_is_in_a_databases_log_alone_is_read_too(tmp_path, imported):
    path = write_nsys(tmp_path / "a.sqlite", launches())
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId < 105")
    writer.commit()
    assert imported(path).counts()["launches"] == 15
    writer.close()


def test_an_output_that_is_not_empty_is_left_alone(tmp_path):
    path = write_trace(tmp_path / "a.json", launches())
    output = tmp_path / "output"
    output.mkdir()
    (output / "mine.txt").write_text("mine")
    assert "is not an empty folder" in refused(path, tmp_path, exit_code=2, output=output)
    assert "is not an empty folder" in refused(path, tmp_path, exit_code=2, output=output / "mine.txt")


def test_an_empty_folder_is_taken_and_left_as_it_was(tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    refused(bad, tmp_path, output=output)
    assert output.is_dir()
    done = launchgap("import", write_trace(tmp_path / "a.json", launches()), "-o", output, page=True)
    assert done.returncode == 0 and (output / "report.html").is_file()


@pytest.mark.parametrize("arguments, says", [([], "files"), (["a.json"], "--output"), (["a.json", "-o"], "--output")])
def test_wrong_usage_of_import(arguments, says, tmp_path):
    done = launchgap("import", *arguments, cwd=tmp_path, code=2)
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- events that are not as they should be ---

HOSTILE = [
    {"ts": None}, {"ts": "abc"}, {"ts": "NaN"}, {"dur": None}, {"dur": "1e300"}, {"ts": 2**64}, {"ts": []}, {"ts": {}},
]  # fmt: skip


@pytest.mark.parametrize("change", HOSTILE, ids=str)
def test_an_event_without_a_time_is_left_out(change, tmp_path, imported):
    job = launches(10)
    events = trace_events(job)
    bad = {key: value for key, value in (events[0] | change).items() if value is not None}
    path = tmp_path / "a.json"
    path.write_text(as_json([bad, *events[1:]]))
    got = imported(path)
    assert got.recording["launches"] == "9" and got.recording["kernels_without_launch"] == "1"
    assert got.recording["left_out"] == "1 events without a time that can be"


@pytest.mark.parametrize("arguments", [None, [], 7, "text", {"correlation": {"a": 1}}, {"correlation": -1}], ids=str)
def test_an_event_without_its_arguments_is_a_launch_without_a_kernel(arguments, tmp_path, imported):
    events = trace_events(launches(10))
    path = tmp_path / "a.json"
    path.write_text(as_json([events[0] | {"args": arguments}, *events[1:]]))
    got = imported(path)
    assert got.recording["launches"] == "10" and got.recording["launches_without_kernel"] == "1"


@pytest.mark.parametrize("change", [dict(begin=0), dict(begin=0, end=0), dict(end=1)], ids=str)
def test_a_call_without_a_time_is_counted_and_makes_none_up(change, tmp_path, imported):
    job = launches(10)
    got = imported(
        write_nsys(tmp_path / "a.sqlite", Job((*job.calls[:5], replace(job.calls[5], **change), *job.calls[6:]), job.work))
    )
    times = [int(row["value"]) for row in got.of_launches() if row["value"]]
    assert min(times) >= 0 and max(times) < 1_000_000
    assert got.recording["kernels"] == "10"


@pytest.mark.parametrize("writer", [write_nsys, write_nvprof])
@pytest.mark.parametrize("value", [None, "text", -1, 2**63 - 1, -(2**63), b"\xff"], ids=str)
def test_no_value_in_a_column_stops_an_import(writer, value, tmp_path):
    """One row of each table has it, in one column after the other."""
    path = writer(tmp_path / "a.sqlite", launches())
    with sqlite3.connect(path) as database:
        for (recorded,) in database.execute("SELECT name FROM sqlite_master").fetchall():
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({recorded})")]
            for row, column in enumerate(columns, 1):
                database.execute(f"UPDATE {recorded} SET {column} = ? WHERE rowid = ?", (value, row))
    database.close()
    session = tmp_path / "session"
    launchgap("import", path, "-o", session, code=0)
    launchgap("export", session, "-o", tmp_path / "tables", code=0)
