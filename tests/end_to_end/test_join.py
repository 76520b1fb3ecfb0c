"""launchgap join: reports in nsys's documented schema, made of a session's own records."""

import json
import shutil
import sqlite3

import pytest
from nsys_reports import PUSH_POP, Report, Times, samples_of, write_report
from recording_files import launches, write_nsys, write_nvprof, write_trace
from shipped import BUILD, launchgap, records, table

pytestmark = pytest.mark.skipif(
    not (BUILD / "nvtx" / "libnvtx_listener.so").exists(), reason="built without NVTX headers: samples have no keys"
)

CASE = "launch/null/api:queue/mode:idle"


@pytest.fixture(scope="module")
def spread(measured, tmp_path_factory):
    """A session one in twenty of whose samples took five times as long. Not to be changed."""
    session = shutil.copytree(measured, tmp_path_factory.mktemp("spread") / "session")
    for name, file in records(session).items():
        for record in file:
            if record["record"] == "samples":
                count = len(record["t0_ns"])
                slow = [(record["first"] + i) % 20 == 3 for i in range(count)]
                record["values"] = [[scale * (5000 if one else 1000) for one in slow] for scale in (1, 2)]
        lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in file]
        (session / "records" / name).write_text("".join(lines))
    return session


@pytest.fixture(scope="module")
def report(spread, tmp_path_factory):
    """A report of all of a session, whose slowest samples waited in the queue."""
    path = tmp_path_factory.mktemp("report") / "report.sqlite"
    return write_report(path, spread, times=lambda sample: Times().plus("queue", 9_000 if sample.slow else 0))


def join(*arguments):
    return launchgap("join", *arguments)


def test_every_sample_is_found_by_its_key(spread, report, tmp_path):
    done = join(report, spread, "-o", tmp_path / "joined.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nsight Systems 2024.5.1.113: 10000 of 10000 samples joined by their keys" in done.stdout
    rows = table(tmp_path / "joined.csv")
    samples = samples_of(spread, "roundtrip_ns")
    assert [(int(row["key"]), float(row["value"])) for row in rows] == [(one.key, one.value) for one in samples]
    assert [int(row["sample"]) for row in rows] == list(range(10_000))
    assert {(row["case"], row["metric"], row["launches"], row["kernels"]) for row in rows} == {
        (CASE, "roundtrip_ns", "1", "1")
    }
    slow = {one.key for one in samples if one.slow}
    for row in rows:
        queue = 12_000 if int(row["key"]) in slow else 3_000
        parts = {name: int(row[f"in_{name}_ns"]) for name in ("overhead", "call", "queue", "kernel", "wait", "program")}
        assert parts == dict(overhead=0, call=2_000, queue=queue, kernel=2_000, wait=800, program=300)
        assert int(row["range_ns"]) == sum(parts.values())
        assert int(row["launch_ns"]) == 2_000 + queue


@pytest.mark.parametrize("part, named", [("overhead", "the overhead"), ("before", "the program")])
def test_the_part_that_moved_is_named(spread, tmp_path, part, named):
    report = write_report(
        tmp_path / "report.sqlite", spread, times=lambda sample: Times().plus(part, 9_000 if sample.slow else 0)
    )
    done = join(report, spread)
    assert done.returncode == 0, done.stderr
    assert f"What moved is {named} (" in done.stdout
    assert "100 % of the difference, and the most in 500 of the 500 slowest samples." in " ".join(done.stdout.split())
    (line,) = [line for line in done.stdout.splitlines() if line.strip().startswith(named)]
    assert "+9.00 µs" in line and line.endswith("100 %")


def test_a_report_of_some_samples_says_how_many(spread, tmp_path):
    """As where the tool began to capture late."""
    report = write_report(tmp_path / "report.sqlite", spread, only=lambda index: index >= 4_000)
    done = join(report, spread, "-o", tmp_path / "joined.csv")
    assert done.returncode == 0, done.stderr
    assert f"{CASE}, " in done.stdout and "6000 of 10000 samples are in the report" in done.stdout
    assert [int(row["sample"]) for row in table(tmp_path / "joined.csv")] == list(range(4_000, 10_000))


def test_the_metric_can_be_chosen(spread, report, tmp_path):
    done = join(report, spread, "--metric", "api_ns", "-o", tmp_path / "joined.csv")
    assert done.returncode == 0, done.stderr
    assert {row["metric"] for row in table(tmp_path / "joined.csv")} == {"api_ns"}
    wrong = join(report, spread, "--metric", "nonsense")
    assert wrong.returncode == 2
    assert "no case of the session has the metric 'nonsense': choose one of api_ns, roundtrip_ns" in wrong.stderr


# --- what cannot be joined says why, and what would help ---


def refused(*arguments):
    done = join(*arguments)
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def another_session(spread, folder):
    """The same with other keys and another id, as the next run of the same case has."""
    session = shutil.copytree(spread, folder)
    (file,) = (session / "records").glob("*.jsonl")
    text = file.read_text()
    for record in records(session)[file.name]:
        if record["record"] == "samples":
            text = text.replace(f'"key":{record["key"]},', f'"key":{record["key"] ^ 1 << 40},')
    file.write_text(text)
    described = session / "session.json"
    known = json.loads(described.read_text())["session_id"]
    described.write_text(described.read_text().replace(known, "20300101T000000Z-000000"))
    return session


def test_a_report_of_another_run_names_that_run(spread, report, tmp_path):
    said = refused(report, another_session(spread, tmp_path / "other"))
    (run,) = [file[0] for file in records(spread).values()]
    assert "it is of another run" in said and f"it names {run['session_id']}/" in said


def test_a_report_without_marks_or_of_another_program_is_refused(spread, tmp_path):
    session = another_session(spread, tmp_path / "other")
    unmarked = write_report(tmp_path / "a.sqlite", spread, mark="", only=lambda index: index < 50)
    assert "of its 50 NVTX ranges 50 have a number, and none is that of a sample of" in refused(unmarked, session)
    strange = write_nsys(tmp_path / "b.sqlite", launches(20))
    assert "it has no NVTX ranges" in refused(strange, spread)
    assert "launchgap investigate" in refused(strange, spread)


def test_a_report_without_nvtx_or_without_cuda_says_what_to_record(spread, tmp_path):
    few = dict(only=lambda index: index < 50)
    without = write_report(tmp_path / "a.sqlite", spread, left_out=["NVTX_EVENTS"], **few)
    assert "--trace=cuda,nvtx" in refused(without, spread)
    ranges = Report()
    ranges.call("cuLaunchKernelEx", 1, 2)
    ranges.nvtx(PUSH_POP, 1_000, 2_000, textId=ranges.string("forward"))
    assert "its 1 NVTX ranges have no numbers" in refused(ranges.write(tmp_path / "b.sqlite"), spread)
    calls = write_report(
        tmp_path / "c.sqlite", spread, left_out=["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"], **few
    )
    assert "without calls of CUDA" in refused(calls, spread)


def test_samples_without_calls_are_joined_and_said(spread, tmp_path):
    """CUDA was traced in another process only."""
    report = Report()
    for sample in samples_of(spread, "roundtrip_ns")[:50]:
        report.nvtx(PUSH_POP, report.at, report.at + 5_000, textId=report.string("sample"), uint64Value=sample.key)
        report.at += 6_000
    report.call("cuLaunchKernelEx", report.at, report.at + 1_000)
    done = join(report.write(tmp_path / "a.sqlite"), spread)
    assert done.returncode == 0
    assert "its samples have no calls of CUDA" in done.stderr


def test_samples_without_kernels_are_joined_and_said(spread, tmp_path):
    few = dict(only=lambda index: index < 50)
    report = write_report(tmp_path / "a.sqlite", spread, left_out=["CUPTI_ACTIVITY_KIND_KERNEL"], **few)
    done = join(report, spread, "-o", tmp_path / "joined.csv")
    assert done.returncode == 0
    assert "its samples have no kernels" in done.stderr
    for row in table(tmp_path / "joined.csv"):
        assert (row["kernels"], row["launch_ns"], row["in_queue_ns"], row["in_kernel_ns"]) == ("0", "", "0", "0")


def test_clocks_that_disagree_leave_the_device_out(spread, tmp_path):
    """Kernels a second before their launches: no conversion is so wrong."""
    report = write_report(tmp_path / "a.sqlite", spread, only=lambda index: index < 50)
    with sqlite3.connect(report) as database:
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 900000000, end = end - 900000000")
    done = join(report, spread, "-o", tmp_path / "joined.csv")
    assert done.returncode == 0
    assert "no time reaches from a call to its kernel" in done.stderr
    assert {row["launch_ns"] for row in table(tmp_path / "joined.csv")} == {""}


@pytest.mark.parametrize("negative", [lambda key: -key, lambda key: (key | 1 << 63) - (1 << 64)])
def test_payloads_that_sqlite_shows_as_negative_match_nothing(spread, tmp_path, negative):
    report = write_report(tmp_path / "a.sqlite", spread, key=negative, only=lambda index: index < 20)
    assert "none is that of a sample" in refused(report, spread)


def test_a_range_that_is_there_twice_counts_once(spread, tmp_path):
    report = write_report(tmp_path / "a.sqlite", spread, only=lambda index: index < 100)
    with sqlite3.connect(report) as database:
        database.execute("INSERT INTO NVTX_EVENTS SELECT * FROM NVTX_EVENTS")
        database.execute("INSERT INTO NVTX_EVENTS SELECT * FROM NVTX_EVENTS WHERE eventType = 59 AND start > end")
    done = join(report, spread, "-o", tmp_path / "joined.csv")
    assert done.returncode == 0, done.stderr
    assert len(table(tmp_path / "joined.csv")) == 100


def test_a_report_that_is_cut_off_or_none_is_refused(spread, report, tmp_path):
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(report.read_bytes()[: report.stat().st_size // 2])
    assert str(cut) in refused(cut, spread)
    assert "nowhere.sqlite" in refused(tmp_path / "nowhere.sqlite", spread)
    (tmp_path / "text").write_text("no report")
    assert "no form that launchgap knows" in refused(tmp_path / "text", spread)
    for other in (write_nvprof(tmp_path / "a.nvvp", launches(20)), write_trace(tmp_path / "a.json", launches(20))):
        assert "it is no export of Nsight Systems" in refused(other, spread)


def test_a_session_without_keys_or_none_at_all_is_refused(session, report, tmp_path):
    (file,) = (session / "records").glob("*.jsonl")
    for record in records(session)[file.name]:
        if record["record"] == "samples":
            file.write_text(file.read_text().replace(f'"key":{record["key"]},', ""))
    assert "has no samples with keys" in refused(report, session)
    done = join(report, tmp_path)
    assert done.returncode == 2 and "no session.json" in done.stderr


def test_an_old_report_in_the_way_is_replaced_whole_or_not_at_all(spread, report, tmp_path):
    place = tmp_path / "joined.csv"
    place.write_text("old")
    assert join(report, spread, "--metric", "nonsense", "-o", place).returncode == 2
    assert place.read_text() == "old"
    assert join(report, spread, "-o", tmp_path / "no" / "folder.csv").returncode == 3
    assert join(report, spread, "-o", place).returncode == 0
    assert place.read_text().startswith("session_id,")
