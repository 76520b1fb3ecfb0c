"""launchgap export --format chrome-trace: what was imported comes out as Kineto writes it, and goes in again unchanged."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from recording_files import PID, Call, Job, global_id, launches, trace_events, write_nsys, write_trace
from shipped import ROOT, launchgap, table

FOLDER = ROOT / "tests" / "recordings"
RECORDINGS = sorted(path for path in FOLDER.iterdir() if path.name.endswith((".sqlite", ".json", ".json.gz")))


def imported(session: Path, *files: Path) -> Path:
    launchgap("import", *files, "-o", session, code=0)
    return session


def export(session: Path, output: Path):
    return launchgap("export", session, "--format", "chrome-trace", "-o", output)


def exported(session: Path, output: Path) -> Path:
    done = export(session, output)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{output}\n"
    assert done.stderr == ""
    return output


def samples(session: Path, folder: Path) -> list[tuple[str, ...]]:
    """Everything but which GPU it was: a trace has no place for its UUID."""
    launchgap("export", session, "-o", folder, code=0)
    return [
        tuple(value for key, value in row.items() if key not in ("device", "device_id", "session", "session_id"))
        for row in table(folder / "samples.csv")
    ]


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")


def trace_of(path: Path) -> dict:
    """Valid JSON, with numbers that keep all of their digits."""

    def refuse(constant: str):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text_of(path), parse_float=Decimal, parse_constant=refuse)


def slices(trace: dict, *categories: str) -> list[dict]:
    return [one for one in trace["traceEvents"] if one["ph"] == "X" and (not categories or one["cat"] in categories)]


GPU = ("kernel", "gpu_memcpy", "gpu_memset", "launchgap_graph")
CALLS = ("cuda_runtime", "cuda_driver")


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_what_is_exported_is_imported_again_to_the_nanosecond(recording, tmp_path):
    session = imported(tmp_path / "session", recording)
    trace = exported(session, tmp_path / "trace.json.gz")
    follows_kineto(trace)
    again = samples(imported(tmp_path / "again", trace), tmp_path / "tables-again")
    first = samples(session, tmp_path / "tables")
    assert len(first) > 0
    assert again == first


def follows_kineto(path: Path) -> None:
    text = text_of(path)
    assert re.search(r'"distributedInfo": \{"rank": \d+\}', text), "Holistic Trace Analysis looks for it with a blank"
    trace = trace_of(path)
    base = trace["baseTimeNanoseconds"]
    assert isinstance(base, int) and base >= 0
    for one in slices(trace):
        for key in ("ts", "dur"):
            assert isinstance(one[key], Decimal) and one[key] >= 0 and one[key].as_tuple().exponent == -3, one
        if one["cat"] in GPU:
            arguments = one["args"]
            assert (one["pid"], one["tid"]) == (arguments["device"], arguments["stream"]), one
            assert isinstance(arguments["correlation"], int) and isinstance(arguments["context"], int)
        else:
            assert "stream" not in one["args"], one
    calls, kernels = slices(trace, *CALLS), slices(trace, "kernel")
    assert all(isinstance(one["args"]["correlation"], int) for one in calls)
    flows = {ph: [one for one in trace["traceEvents"] if one["ph"] == ph] for ph in "sf"}
    assert all(one["cat"] == one["name"] == "ac2g" for ph in "sf" for one in flows[ph])
    assert all(one["bp"] == "e" for one in flows["f"])

    def ends(events, key):
        return Counter((key(one), one["pid"], one["tid"], one["ts"]) for one in events)

    assert ends(flows["f"], lambda one: one["id"]) == ends(kernels, lambda one: one["args"]["correlation"])
    begins = ends(flows["s"], lambda one: one["id"])
    assert begins <= ends(calls, lambda one: one["args"]["correlation"]), "each begins at a call"
    launching = {
        one["args"]["correlation"] for one in calls if re.match(r"cu(da)?Launch.*Kernel|cu(da)?GraphLaunch", one["name"])
    }
    assert {key[0] for key in begins} == launching
    metadata = [one for one in trace["traceEvents"] if one["ph"] == "M"]
    rows = {(one["name"], one["pid"], one["tid"]) for one in metadata}
    for one in slices(trace, *GPU):
        for name, tid in (
            ("process_name", 0),
            ("process_labels", 0),
            ("process_sort_index", 0),
            ("thread_name", one["tid"]),
        ):
            assert (name, one["pid"], tid) in rows
    for one in calls:
        assert ("process_name", one["pid"], 0) in rows
    assert {one["ph"] for one in trace["traceEvents"]} <= set("XsfMi")


def test_a_trace_is_what_was_recorded(tmp_path):
    session = imported(tmp_path / "session", write_trace(tmp_path / "a.json", launches(3, begin=5_000_000_007)))
    trace = trace_of(exported(session, tmp_path / "trace.json"))
    assert trace["baseTimeNanoseconds"] == 5_000_000_000
    assert trace["deviceProperties"] == [
        {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 84_990_623_744, "computeMajor": 8, "computeMinor": 0}
    ]
    found = [(one["name"], str(one["ts"]), str(one["dur"]), one["pid"], one["tid"], one["args"]) for one in slices(trace)]
    assert found == [
        *(("cudaLaunchKernel", f"{20 * i}.{7 + i:03}", "4.000", PID, 1, {"correlation": 100 + i}) for i in range(3)),
        *(
            ("a_kernel", f"{20 * i + 6}.{7 + i:03}", "2.000", 0, 7,
             dict(device=0, context=1, stream=7, correlation=100 + i, grid=[1, 1, 1], block=[1, 1, 1]))
            for i in range(3)
        ),
    ]  # fmt: skip


def test_graphs_as_a_whole_come_back(tmp_path):
    """In a category of launchgap's own; their times begin where all others do."""
    path = tmp_path / "a.sqlite"
    write_nsys(path, launches(5, name="cudaGraphLaunch"), version="_v10000")
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ADD COLUMN graphId INTEGER DEFAULT 3")
        # Beyond a whole second, from which a trace counts.
        for name in ("RUNTIME", "GRAPH_TRACE"):
            database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{name} SET start = start + 9000000000, end = end + 9000000000")
    session = imported(tmp_path / "session", path)
    trace = exported(session, tmp_path / "trace.json")
    assert len(slices(trace_of(trace), "launchgap_graph")) == 5
    first = samples(session, tmp_path / "tables")
    assert any("graph_ns" in row for row in first)
    assert samples(imported(tmp_path / "again", trace), tmp_path / "tables-again") == first


def with_threads(path: Path, *threads: tuple[object, object]) -> Path:
    """A launch of each thread, which is a number of process and thread."""
    job = launches(len(threads))
    events = trace_events(job)
    for event, (pid, tid) in zip(events, threads, strict=False):
        event |= dict(pid=pid, tid=tid)
    document = json.dumps(dict(schemaVersion=1, traceEvents=events))
    path.write_text(re.sub(r'"<([\d.]+)>"', r"\1", document))
    return path


@pytest.mark.parametrize(
    "threads",
    [
        [(5, 1), (6, 7), (5, 2), (5, 1), (6, 7)],  # of another process: no number of its own
        [(5, "main"), (5, 0), (5, 1), (5, 2), (5, "main")],
        [(5, "007"), (5, 7), (5, "007"), (5, -7), (5, 7)],
        [(5, 140_737_353_971_520), (5, 1), (5, 140_737_353_971_521), (5, 140_737_353_971_520), (5, 1)],
    ],
)
def test_threads_stay_apart(threads, tmp_path):
    session = imported(tmp_path / "session", with_threads(tmp_path / "a.json", *threads))
    trace = exported(session, tmp_path / "trace.json")
    tids = [one["tid"] for one in slices(trace_of(trace), *CALLS)]
    assert [tids.index(tid) for tid in tids] == [threads.index(thread) for thread in threads]
    first = samples(session, tmp_path / "tables")
    assert samples(imported(tmp_path / "again", trace), tmp_path / "tables-again") == first


def test_hostile_names_are_valid_json(tmp_path):
    name = 'a"\\\n\t</script>\u2028\x01é'
    path = tmp_path / "a.json"
    gpu = dict(id=0, name=name, totalGlobalMem=1, computeMajor='8"', computeMinor="}")
    document = dict(schemaVersion=1, deviceProperties=[gpu], traceEvents=trace_events(launches(3)))
    for event in document["traceEvents"][3:]:
        event["name"] = name
    document["traceEvents"].append(document["traceEvents"][0] | dict(cat="user_annotation", name=name, args={}))
    path.write_text(re.sub(r'"<([\d.]+)>"', r"\1", json.dumps(document)))
    trace = trace_of(exported(imported(tmp_path / "session", path), tmp_path / "trace.json"))
    assert {one["name"] for one in slices(trace, "kernel", "user_annotation")} == {name}
    assert trace["deviceProperties"] == [{"id": 0, "name": name, "totalGlobalMem": 1}]


def test_steps_are_told_once(tmp_path):
    """Kineto writes what the GPU did of a step beside the step, under the same name."""
    job = launches(20)
    events = trace_events(job)
    first, last = job.calls[0].begin, job.calls[-1].end
    step = events[0] | dict(cat="user_annotation", name="ProfilerStep#7", dur=f"<{(last - first) / 1000:.3f}>", args={})
    events += [step, step | dict(cat="gpu_user_annotation", pid=0, tid=7)]
    path = tmp_path / "a.json"
    path.write_text(re.sub(r'"<([\d.]+)>"', r"\1", json.dumps(dict(traceEvents=events))))
    session = imported(tmp_path / "session", path)
    assert launchgap("export", session, "-o", tmp_path / "tables").returncode == 0
    steps = [row for row in table(tmp_path / "tables" / "samples.csv") if row["case"] == "recorded/step"]
    assert [row["value"] for row in steps if row["metric"] == "step_ns"] == [str(last - first)]
    assert [row["value"] for row in steps if row["metric"] == "launches"] == ["20"]


# --- where it goes, and what it cannot ---


def two_processes(path: Path) -> Path:
    write_nsys(path, launches(20))
    with sqlite3.connect(path) as database:
        for name, column in (("RUNTIME", "globalTid"), ("KERNEL", "globalPid")):
            database.execute(
                f"UPDATE CUPTI_ACTIVITY_KIND_{name} SET {column} = {column} + {global_id(1) - global_id(0)}"
                " WHERE correlationId < 105"
            )
    return path


def test_several_processes_need_a_folder(tmp_path):
    session = imported(tmp_path / "session", two_processes(tmp_path / "a.sqlite"))
    for name in ("trace.json", "trace.json.gz"):
        done = export(session, tmp_path / name)
        assert done.returncode == 2
        assert "the events of 2 processes: name a folder with -o" in done.stderr
        assert not (tmp_path / name).exists()
    folder = tmp_path / "traces"
    done = export(session, folder)
    assert done.returncode == 0, done.stderr
    traces = sorted(folder.iterdir())
    assert done.stdout.splitlines() == [str(path) for path in traces]
    assert all(path.name.endswith(".json.gz") for path in traces)
    pids = {one["pid"]: path for path in traces for one in slices(trace_of(path), *CALLS)}
    assert sorted(pids) == [PID, PID + 1] and len(set(pids.values())) == 2
    assert len(slices(trace_of(pids[PID + 1]), *CALLS)) == 5


def test_one_process_may_go_to_a_folder_too_or_replaces_a_file_compressed_or_not(tmp_path):
    session = imported(tmp_path / "session", write_nsys(tmp_path / "a.sqlite", launches()))
    assert export(session, tmp_path / "traces").returncode == 0
    (path,) = (tmp_path / "traces").iterdir()
    follows_kineto(path)
    (tmp_path / "a.json").write_text("old")
    plain, compressed = exported(session, tmp_path / "a.json"), exported(session, tmp_path / "a.json.gz")
    assert plain.read_bytes()[:1] == b"{" and compressed.read_bytes()[:2] == b"\x1f\x8b"
    assert text_of(plain) == text_of(compressed)


def test_a_session_without_events_is_refused(session, tmp_path):
    done = export(session, tmp_path / "trace.json")
    assert done.returncode == 2
    assert "has kept no events" in done.stderr and "`launchgap import` keep them" in done.stderr
    assert not (tmp_path / "trace.json").exists()


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def cut_member(data: bytes) -> bytes:
    """Its last block is gone as a whole."""
    return data[: data.rindex(b"\x1f\x8b\x08\x00")]


def other_stream(data: bytes) -> bytes:
    lines = gzip.decompress(data).decode().splitlines(keepends=True)
    return gzip.compress("".join(re.sub(r'"stream":\[0', '"stream":[9', line) for line in lines).encode())


@pytest.mark.parametrize("damage", [cut, cut_member, other_stream, lambda data: b"", lambda data: b"text"])
@pytest.mark.parametrize("output", ["trace.json", "trace.json.gz", "traces"])
def test_damaged_events_make_no_trace(damage, output, tmp_path):
    session = imported(tmp_path / "session", write_nsys(tmp_path / "a.sqlite", launches()))
    (events,) = (session / "events").iterdir()
    events.write_bytes(damage(events.read_bytes()))
    (tmp_path / "out").mkdir()
    done = export(session, tmp_path / "out" / output)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and str(events) in done.stderr
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_full_disk_is_told_as_such(tmp_path):
    session = imported(tmp_path / "session", write_nsys(tmp_path / "a.sqlite", launches(20_000)))
    link = tmp_path / "trace.json"
    link.symlink_to("/dev/full")
    done = export(session, link)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "trace.json cannot be written: No space left on device" in done.stderr and "events" not in done.stderr


def test_events_without_a_time_are_left_out_and_counted(tmp_path):
    path = write_nsys(tmp_path / "a.sqlite", launches() + Job((Call(0, 0, 9, "cudaDeviceSynchronize"),), ()))
    session = imported(tmp_path / "session", path)
    done = export(session, tmp_path / "trace.json")
    assert done.returncode == 0
    assert done.stderr == f"{tmp_path / 'trace.json'}: 1 events have no time that a trace could show\n"
    follows_kineto(tmp_path / "trace.json")
