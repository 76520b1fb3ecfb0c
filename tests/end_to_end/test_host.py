"""The host is always there, so this is what any machine does."""

import json
import re
import shutil
import subprocess
import time

import pytest
from shipped import LAUNCHGAP, UNTRACED, launchgap, records, table

TINY = "launch/(null|flag|echo)/|matmul.*size:256|convolution.*conv5_1x1_2048/n:1/|allocation.*bytes:256$"
PLAN = ("run", "--devices", "host", "--runs", 2, "--seed", 7, "--filter", TINY, *UNTRACED)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    done = launchgap(*PLAN, "-o", folder / "session", LAUNCHGAP_LOCK_DIR=str(folder), code=0)
    assert "launch call" in done.stdout and str(folder / "session" / "report.html") in done.stdout
    return folder / "session"


def test_all_four_families_are_measured_and_verified(session):
    rows = table(session / "summary.csv")
    families = {
        *"allocation/latency convolution/library launch/echo launch/flag launch/null matmul/ladder matmul/library".split()
    }
    assert {row["benchmark"] for row in rows} == families
    assert {row["status"] for row in rows} == {"ok"}
    assert all(
        float(row["min"]) <= float(row["q1"]) <= float(row["p50"]) <= float(row["p999"]) <= float(row["max"]) for row in rows
    )
    assert {row["runs"] for row in rows} == {"2"}
    assert all(row["p50_ci_lo"] == "" for row in rows), "no interval below six runs"


def test_every_run_is_a_process_of_its_own(session):
    runs = table(session / "runs.csv")
    assert len(runs) == 8
    assert len({run["pid"] for run in runs}) == 8
    assert all(run["status"] == "ok" and run["cpus"] for run in runs)


def test_records_are_of_the_documented_shape(session):
    for name, file in records(session).items():
        assert re.fullmatch(r"[\w.-]+\.host\.r[01]\.plain\.\w+\.jsonl", name)
        assert [file[0]["record"], file[-1]["record"]] == ["run", "end"]
        fields = "session_id node device replicate arm process_config seed pid simulated fingerprint"
        assert {*fields.split()} <= file[0].keys()
        for record in file:
            assert record["schema"] == "launchgap/1"
            if record["record"] != "samples":
                continue
            lengths = {len(record["t0_ns"]), *map(len, record["values"])}
            assert len(lengths) == 1 and len(record["values"]) == len(record["metrics"])
            assert record["begin_ns"] <= record["begin_ns"] + record["t0_ns"][-1] <= record["end_ns"]
            assert record["t0_ns"] == sorted(record["t0_ns"])


def test_the_seed_gives_the_same_plan(session):
    plan = json.loads((session / "session.json").read_text())["plan"]
    again = launchgap(*PLAN, "--dry-run", "--verbose")
    order = re.findall(r"plain +(allocation|convolution|launch|matmul) +r(\d)", again.stdout)
    assert order == [(run["process_config"], str(run["replicate"])) for run in plan]


def test_the_export_has_every_sample(session, tmp_path):
    launchgap("export", session, "--format", "csv", "-o", tmp_path / "csv", code=0)
    samples = table(tmp_path / "csv" / "samples.csv")
    expected = sum(int(row["n"]) for row in table(session / "summary.csv"))
    assert len(samples) == expected
    assert table(tmp_path / "csv" / "summary.csv") == table(session / "summary.csv")


def test_an_export_has_no_table_of_a_header_alone(session, tmp_path):
    done = launchgap("export", session, "-o", tmp_path / "csv")
    tables = list((tmp_path / "csv").glob("*.csv"))
    assert tables and all(table(path) for path in tables)
    assert re.search(r"\d+ of \d+ tables have no rows and are left out: .*verdicts\.csv", done.stderr)


def test_the_report_of_several_sessions_is_one_page(session, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(session, other)
    for path in [other / "session.json", *(other / "records").iterdir()]:
        path.write_text(
            path.read_text().replace(json.loads((session / "session.json").read_text())["session_id"], "another")
        )
    done = launchgap("report", session, other, "-o", tmp_path / "gap.html", "--json", "-", code=0)
    said = json.loads(done.stdout)
    assert said["page"] == str(tmp_path / "gap.html") and said["page"] in done.stderr
    first, second = said["sessions"]
    assert second["session_id"] == "another" and first["folder"] == str(session)
    assert first["headlines"] == second["headlines"] != []
    assert "enerations" in (tmp_path / "gap.html").read_text() or "eneration gap" in (tmp_path / "gap.html").read_text()


def test_a_dry_run_measures_and_writes_nothing(tmp_path):
    done = launchgap("run", "--devices", "host", *UNTRACED, "--dry-run", "-o", tmp_path / "session", cwd=tmp_path, code=0)
    totals = r"51 runs in 51 steps, about .* MB of records; seed \d+; --verbose lists the runs"
    assert len([line for line in done.stdout.splitlines() if re.fullmatch(totals, line)]) == 1
    assert len(done.stdout.splitlines()) < 8
    left = " ".join(done.stdout.partition("Left to ")[2].split())
    assert re.match(r"--profile nightly, which takes about .*: \d+ more cases \(.*\), and more runs of each\.", left), left
    plan = launchgap("run", "--devices", "host", *UNTRACED, "--dry-run", "--verbose", cwd=tmp_path).stdout.splitlines()
    assert sum(line.lstrip()[0].isdigit() and " plain " in line for line in plan if line.strip()) == 51
    assert any(re.fullmatch(r"51 runs in 51 steps, about .* MB of records; seed \d+", line) for line in plan)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [["--json"], ["--json", "-"], ["--json", "FILE"]], ids=" ".join)
def test_json_goes_to_standard_output_or_to_a_file(options, tmp_path):
    file = tmp_path / "x.json"
    options = [str(file) if word == "FILE" else word for word in options]
    for command in (["list", "devices"], ["run", "--devices", "host", "--dry-run"], ["doctor", "--no-prove"]):
        done = launchgap(*command, *options, cwd=tmp_path)
        text = file.read_text() if file.exists() else done.stdout
        assert isinstance(json.loads(text), dict), command
        assert file.exists() == (options[-1] == str(file))
        assert done.stdout == "" or not file.exists()
        file.unlink(missing_ok=True)
    assert list(tmp_path.iterdir()) == [], "no file is named '-'"


def test_what_was_measured_is_said_to_programs_too(tmp_path):
    done = launchgap(
        "run", "--devices", "host", "--runs", 1, "--filter", "launch/null.*idle", *UNTRACED, "--no-report",
        "-o", tmp_path / "s", "--json", "-", code=0,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["folder"] == str(tmp_path / "s") and said["page"] == ""
    assert {row["heading"] for row in said["headlines"]} and "launch call" in done.stderr
    assert isinstance(said["findings"], list) and said["devices"][0]["device_name"]


def test_list_takes_its_kind_behind_json():
    assert "benchmarks" not in json.loads(launchgap("list", "--json", "devices").stdout)


def test_list_is_machine_readable():
    listed = json.loads(launchgap("list", "--json").stdout)
    assert listed["devices"][0]["backend"] == "host"
    assert {benchmark["name"] for benchmark in listed["benchmarks"]} >= {
        "allocation/latency",
        "convolution/library",
        "launch/null",
        "matmul/library",
    }
    assert any("No GPU can be used" in note for note in listed["notes"]) or len(listed["devices"]) > 1


def test_no_cuda_library_is_linked():
    linked = subprocess.run(["ldd", LAUNCHGAP], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"cuda|cublas|cudnn|cupti|nvidia|openblas|dnnl", linked)


@pytest.mark.compares_times
def test_help_is_there_at_once():
    times = []
    for _ in range(10):
        begin = time.monotonic()
        assert launchgap("--help").returncode == 0
        times.append(time.monotonic() - begin)
    assert min(times) < 0.020


@pytest.mark.parametrize("command", ["run", "list", "report", "export", "worker"])
def test_every_command_is_in_the_help_and_has_an_example(command):
    assert re.search(rf"^  {command} ", launchgap("--help").stdout, re.MULTILINE)
    assert "Example" in launchgap(command, "--help").stdout


def test_the_worker_is_a_plain_google_benchmark_program():
    listed = launchgap("worker", "--device", "host", "--benchmark_list_tests", code=0)
    assert "launch/null/api:queue/mode:idle/iterations:2000/manual_time" in listed.stdout
    done = launchgap("worker", "--benchmark_filter=launch/null.*idle", code=0)
    assert "api_ns=" in done.stdout and "roundtrip_ns=" in done.stdout
