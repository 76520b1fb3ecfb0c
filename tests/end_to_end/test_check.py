"""`launchgap check` and `launchgap history`: every verdict, every exit code, and what is no history."""

import html
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import pytest
from night_sessions import BURST, GPU, IDLE, NEW_DRIVER, OTHER_GPU, Session, launches, nights
from shipped import LAUNCHGAP, ROOT, launchgap


@pytest.fixture(scope="session")
def thirty_nights(tmp_path_factory):
    """A history with 30 nights. Not to be changed."""
    folder = tmp_path_factory.mktemp("nights")
    done = launchgap("history", "add", folder / "nights.db", *nights(folder, 30), code=0)
    assert done.stdout.count("added, 2 metrics") == 30
    return folder / "nights.db"


@pytest.fixture
def history(thirty_nights, tmp_path):
    return shutil.copy(thirty_nights, tmp_path / "nights.db")


@pytest.fixture
def check(history, tmp_path):
    """Checks a session against the history: returns the finished process, and its JSON by metric."""

    def start(session, *options, file=history):
        folder = session.write(tmp_path) if isinstance(session, Session) else session
        out = tmp_path / "check.json"
        done = launchgap("check", "--history", file, folder, "--json", out, *options)
        return done, json.loads(out.read_text()) if out.exists() else None

    return start


def of(document, metric="roundtrip_ns"):
    return next(result for result in document["results"] if result["metric"] == metric)


def verdicts(document):
    return {result["metric"]: result["verdict"] for result in document["results"]}


# --- verdicts and exit codes ---


def test_a_night_like_the_others_is_the_same(check):
    done, document = check(Session(night=30, medians=launches(2300)))
    assert done.returncode == 0
    assert verdicts(document) == {"roundtrip_ns": "same", "per_launch_ns": "same"}
    assert of(document)["compared_with"] == 30
    assert of(document)["baseline_p99"] == pytest.approx(of(document)["p99"], rel=0.01)  # reported, not judged
    assert "Nothing is slower: 2 measurements compared with 30 sessions each" in done.stdout


def test_three_slow_nights_in_a_row_are_slower(check):
    for night, verdict, code in ((30, "suspect", 0), (31, "suspect", 0), (32, "slower", 4), (33, "slower", 4)):
        done, document = check(Session(night=night, medians=launches(2500)))
        assert (of(document)["verdict"], done.returncode) == (verdict, code), night
        assert document["exit_code"] == code
        assert of(document, "per_launch_ns")["verdict"] == "same"
    assert of(document)["change"] == pytest.approx(2500 / 2305 - 1, abs=0.005)
    assert "slower" in done.stdout


def test_without_adding_the_night_does_not_count(check):
    for _ in range(2):
        for night in (30, 31, 32):
            session = Session(night=night, medians=launches(2500), name=f"again-{night}-{os.urandom(4).hex()}")
            done, document = check(session, "--no-add")
            assert (of(document)["verdict"], done.returncode) == ("suspect", 0)


def test_a_longer_tail_is_a_line_everywhere_and_fails_with_gate_spread_where_it_lasts(check, tmp_path):
    files = {form: tmp_path / form for form in ("markdown", "junit")}
    for night, steadiness, code in ((30, "same", 0), (31, "same", 0), (32, "erratic", 4)):
        options = [word for form, file in files.items() for word in (f"--{form}", file)]
        session = Session(night=night, medians=launches(2300), tail=30)
        done, document = check(session, "--gate-spread", *options)
        found = of(document)
        assert (found["verdict"], found["steadiness"], done.returncode) == ("same", steadiness, code)
        assert found["tail"] == pytest.approx(30, rel=0.05)
        said = f"p99 {found['tail']:.3g} times as long"
        assert said in " ".join(done.stdout.split()) and "medians equal" in " ".join(done.stdout.split())
        assert said in files["markdown"].read_text()
        assert 'name="tail"' in files["junit"].read_text()
    done, document = check(session.write(tmp_path / "again"))
    assert (of(document)["steadiness"], done.returncode) == ("erratic", 0), "only where that is asked for"


def test_what_a_product_computes_is_judged_once(check, tmp_path):
    case = "matmul/library/size:1024/type:fp32/cache:warm"
    both = {case: {"device_ns": [1e6] * 3, "tflops": [2.147] * 3}}
    done = launchgap(
        "check", *(Session(night=i, medians=both).write(tmp_path) for i in range(2)), "--json", tmp_path / "x.json"
    )
    found = {r["metric"]: r for r in json.loads((tmp_path / "x.json").read_text())["results"]}
    assert found["tflops"]["verdict"] == "watch" and "computed from device_ns" in found["tflops"]["reason"]
    assert found["device_ns"]["verdict"] == "same" and done.returncode == 0


@pytest.mark.parametrize("version, lacks", [(1, ("level_since_s", "anchor", "algorithms")), (2, ("algorithms",))])
def test_a_history_of_before_is_brought_up_to_date(history, check, version, lacks):
    with sqlite3.connect(history) as database:
        for column in lacks:
            database.execute(f"ALTER TABLE points DROP COLUMN {column}")
        database.execute(f"PRAGMA user_version = {version}")
    before = history.read_bytes()
    done, _ = check(Session(night=30, medians=launches(2500), name="reads"), "--no-add")
    assert done.returncode == 0 and history.read_bytes() == before, "what only reads changes nothing"
    for night, verdict in ((30, "suspect"), (31, "suspect"), (32, "slower")):
        _, document = check(Session(night=night, medians=launches(2500)))
        assert of(document)["verdict"] == verdict
    with sqlite3.connect(history) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (3,)
        anchors = [row[0] for row in database.execute("SELECT anchor FROM points WHERE anchor IS NOT NULL")]
    assert len(anchors) == 6 or version > 1


PRODUCT = "matmul/library/size:1024/type:fp32/cache:warm"


def products(night: int, ns: float, algorithms: list[str]) -> Session:
    medians = {PRODUCT: {"device_ns": [ns * (1 + 0.001 * i) for i in range(3)]}}
    return Session(night=night, medians=medians, algorithms={PRODUCT: algorithms})


@pytest.mark.parametrize("other_since", [33, 28], ids=["came later", "was there before"])
def test_an_algorithm_that_came_at_another_time_is_not_named(check, history, other_since):
    history.unlink()
    for night in range(35):
        algorithm = "tile 32" if night >= other_since else "tile 64"
        done, document = check(products(night, 2300 if night < 31 else 2500, [algorithm] * 3))
    assert of(document, "device_ns")["verdict"] == "slower"
    assert "algorithm" not in of(document, "device_ns") and "another algorithm" not in done.stdout


def test_a_product_that_became_slower_by_another_algorithm_names_both(check, tmp_path):
    file = tmp_path / "products.db"
    for night in range(20):
        assert launchgap("history", "add", file, products(night, 1e6, ["tile 64"] * 3).write(tmp_path)).returncode == 0
    outputs = [word for form in ("markdown", "junit") for word in (f"--{form}", tmp_path / form)]
    for night, verdict in ((20, "suspect"), (21, "suspect"), (22, "slower")):
        done, document = check(products(night, 1.3e6, ["tile 32"] * 3), *outputs, file=file)
        found = next(r for r in document["results"] if r["case"] == PRODUCT)
        assert (found["verdict"], found["algorithm"]) == (verdict, {"from": "tile 64", "to": "tile 32"})
        assert "another algorithm: tile 64 → tile 32" in " ".join(done.stdout.split())
        assert not any("at the same speed" in note for note in document["notes"])
    assert "another algorithm: tile 64 → tile 32" in (tmp_path / "markdown").read_text()
    assert 'name="algorithm" value="tile 64 → tile 32"' in (tmp_path / "junit").read_text()


def test_what_a_clock_can_hardly_tell_is_watched(tmp_path, check):
    file = tmp_path / "ticks.db"
    few_ticks = {IDLE: {"api_ns": [41.0, 41.0, 41.0]}}
    sessions = [Session(night=i, medians=few_ticks, spread=1 / 41, samples=3).write(tmp_path) for i in range(21)]
    assert launchgap("history", "add", file, *sessions).returncode == 0
    done, document = check(Session(night=30, medians=few_ticks, spread=1 / 41, samples=3), file=file)
    assert (of(document, "api_ns")["verdict"], done.returncode) == ("watch", 0)
    assert "ticks" in of(document, "api_ns")["reason"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": {"measured_under_tool": "Nsight Systems"}}, "run under a tool: Nsight Systems"),
        ({"end": {"other_processes": 2}}, "shared: 2 other processes on the device"),
        ({"telemetry": {"held_by_hw_thermal_ns": [0, 5e7]}}, "throttled: heat or a power brake"),
        ({"telemetry": {"clock_reasons": [0, 0x40]}}, "throttled: clock_reasons 0x40"),
        ({"status": {IDLE: ("failed", "the kernel crashed"), BURST: ("invalid", "a gate timed out")}}, "in run 0"),
        ({"simulated": True}, "simulated"),
        ({"night": 36500}, "in the future: the machine's clock is not set"),
        ({"night": -20000}, "before 2020: the machine's clock was not set"),
        ({"medians": launches(2300, processes=2)}, "2 of 3 processes"),
        ({"medians": {}}, "no results"),
    ],
)  # fmt: skip
def test_what_is_not_to_be_trusted_is_invalid(check, changes, reason):
    done, document = check(Session(**({"night": 30, "medians": launches(9000)} | changes)))
    assert done.returncode == 3, done.stdout + done.stderr
    assert {result["verdict"] for result in document["results"]} <= {"invalid"}
    assert reason in document["invalid"], document["invalid"]
    for night in (31, 32):  # and it does not count afterwards
        _, document = check(Session(night=night, medians=launches(2500)))
        assert of(document)["verdict"] == "suspect"


def test_one_case_that_failed_leaves_the_rest(check, tmp_path):
    done, document = check(Session(night=30, medians=launches(2300), status={IDLE: ("failed", "it crashed")}))
    assert done.returncode == 0
    assert [result["verdict"] for result in document["results"]].count("same") == 1
    assert check(tmp_path / "night-30", "--require-baseline")[0].returncode == 3


def test_what_is_missing_is_invalid(check):
    done, document = check(Session(night=30, medians={IDLE: launches(2300)[IDLE]}))
    assert done.returncode == 0
    assert of(document, "per_launch_ns")["verdict"] == "invalid"
    assert of(document, "per_launch_ns")["reason"] == "not measured, and the session of 2026-03-30T03:00:00Z has it"


def test_slower_outranks_invalid(check):
    for night in (30, 31, 32):
        session = Session(night=night, medians=launches(2500), status={BURST: ("failed", "it crashed")})
        done, _ = check(session, "--require-baseline")
    assert done.returncode == 4


def test_a_night_without_a_ratio_does_not_end_the_gate(check):
    broken = {**launches(2300), BURST: {"per_launch_ns": [0.0, 0.0, 0.0]}}
    _, document = check(Session(night=30, medians=broken))
    assert of(document, "per_launch_ns")["verdict"] == "watch"
    for night, verdict in ((31, "suspect"), (32, "suspect"), (33, "slower")):
        _, document = check(Session(night=night, medians=launches(2300, per_launch_ns=9000)))
        assert of(document, "per_launch_ns")["verdict"] == verdict


def test_a_row_of_sessions_of_one_night_is_not_absorbed(check, tmp_path):
    """Every 4 minutes for 4 hours: never two nights, and never the new normal."""
    folder = tmp_path / "often"
    sessions = [Session(night=30 + i / 360, medians=launches(2900), name=f"often-{i}").write(folder) for i in range(60)]
    history = tmp_path / "nights.db"
    assert launchgap("history", "add", history, *sessions).returncode == 0
    for night, verdict in ((31, "suspect"), (32, "slower")):
        _, document = check(Session(night=night, medians=launches(2900)))
        assert (of(document)["verdict"], of(document)["compared_with"]) == (verdict, 30)


def test_a_process_that_crashed_has_no_other_fingerprint(check, tmp_path):
    folder = Session(night=30, medians=launches(2300), fingerprint={"cuBLAS": "12.8"}).write(tmp_path)
    crashed = folder / "records" / "n1.gpu.r1.plain.launch.jsonl"
    lines = [json.loads(line) for line in crashed.read_text().splitlines()]
    del lines[0]["fingerprint"]["cuBLAS"]  # which only the end of a process tells
    crashed.write_text("".join(json.dumps(line) + "\n" for line in lines if line["record"] != "end"))
    done, document = check(folder)
    assert done.returncode == 0
    assert of(document)["verdict"] == "no-baseline", of(document)  # another series, since cuBLAS is new
    assert [change["key"] for change in of(document)["changed"]] == ["cuBLAS"]


def test_a_session_that_has_not_ended_is_invalid(check, tmp_path):
    folder = Session(night=30, medians=launches(2300)).write(tmp_path)
    info = json.loads((folder / "session.json").read_text()) | {"state": "running"}
    (folder / "session.json").write_text(json.dumps(info))
    done, document = check(folder)
    assert (of(document)["verdict"], done.returncode) == ("invalid", 3)
    assert "it has not ended" in document["invalid"]


# --- what changed ---


def test_a_new_driver_begins_a_series_and_is_compared_all_the_same(check):
    done, document = check(Session(night=30, medians=launches(2500), fingerprint=NEW_DRIVER))
    result = of(document)
    assert (result["verdict"], done.returncode) == ("no-baseline", 0)
    assert [change["from"] for change in result["changed"]] == ["570.12"]
    assert result["change"] == pytest.approx(2500 / 2306 - 1, abs=0.005)
    assert result["interval"]["low"] < result["change"] < result["interval"]["high"]
    first = done.stdout.split("\n\n")[1]
    assert first.startswith("Changed with"), done.stdout
    assert "570.12 → 575.08: 2 metrics, from +8." in first


def test_across_the_driver_it_gates(check, history, tmp_path):
    for night, code in ((30, 0), (31, 0), (32, 4)):
        session = Session(night=night, medians=launches(2500), fingerprint=NEW_DRIVER)
        done, document = check(session, "--across", "driver_version")
        assert done.returncode == code
        assert [change["to"] for change in of(document)["changed"]] == ["575.08"]
        assert "driver 570.12 → 575.08" in done.stdout
    assert of(document)["verdict"] == "slower"
    page = tmp_path / "page.html"
    launchgap("report", tmp_path / "night-32", "--history", history, "--across", "driver_version", "-o", page, code=0)
    answer = re.search(
        r"1 of 2 measurements is slower: roundtrip_ns of .*?\. Compared .*?\.(?= |$)", " ".join(done.stdout.split())
    )
    assert answer and html.escape(answer[0]) in page.read_text().replace("\xa0", " "), "the page says what the terminal said"


@pytest.mark.parametrize("slower_since, driver_since", [(30, 31), (32, 30)], ids=["before", "after"])
def test_a_driver_that_came_at_another_time_is_not_named(check, slower_since, driver_since):
    """Neither where it was slower already, nor where the driver had been there for two nights."""
    for night in range(30, 35):
        session = Session(
            night=night,
            medians=launches(2500 if night >= slower_since else 2200),
            fingerprint=NEW_DRIVER if night >= driver_since else {},
        )
        done, document = check(session, "--across", "driver_version")
    assert of(document)["verdict"] == "slower" and of(document)["hits"] == 35 - slower_since
    assert of(document)["changed"] == [] and "driver 570.12" not in done.stdout


def test_a_driver_that_came_with_the_first_of_four_slow_nights_is_named(check):
    for night in range(30, 36):
        slow = night not in (31, 34)
        session = Session(night=night, medians=launches(2500 if slow else 2200), fingerprint=NEW_DRIVER)
        _, document = check(session, "--across", "driver_version")
    assert (of(document)["verdict"], of(document)["hits"]) == ("slower", 1), "four of six, the last alone"
    assert [change["to"] for change in of(document)["changed"]] == ["575.08"]


def test_of_slow_times_only_the_last_counts(check):
    """The driver of the first one explains nothing of the second, which came with a kernel."""
    for night in range(30, 42):
        slow = night < 35 or night >= 39
        fingerprint = NEW_DRIVER | ({"kernel": "6.2.0"} if night >= 39 else {})
        session = Session(night=night, medians=launches(2500 if slow else 2200), fingerprint=fingerprint)
        done, document = check(session, "--across", "driver_version,kernel")
    assert of(document)["verdict"] == "slower" and of(document)["hits"] == 3
    assert [change["key"] for change in of(document)["changed"]] == ["kernel"]
    assert "as slow as in 5 earlier sessions; changed with kernel" in " ".join(done.stdout.split())


def test_what_creeps_began_with_nothing(check):
    for night in range(30, 110):
        ns = launches(2300 * 1.0009 ** (night - 30))
        _, document = check(Session(night=night, medians=ns), "--across", "driver_version")
        if of(document)["verdict"] == "slower":
            break
    assert "worse than what the level began with" in of(document)["reason"]
    done, document = check(Session(night=night + 1, medians=ns, fingerprint=NEW_DRIVER), "--across", "driver_version")
    assert of(document)["verdict"] == "slower" and of(document)["changed"] == []
    assert "as slow as" not in done.stdout and "roundtrip_ns of launch/null" in done.stdout


def test_a_series_that_begins_anew_is_compared_with_what_came_just_before(check):
    for night in range(30, 33):
        check(Session(night=night, medians=launches(3000), fingerprint=NEW_DRIVER))
    for night in range(33, 35):
        check(Session(night=night, medians=launches(2300)))
    _, document = check(Session(night=35, medians=launches(2300), fingerprint=NEW_DRIVER))
    assert abs(of(document)["change"]) < 0.01, "the slow nights with that driver were before"
    _, document = check(Session(night=36, medians=launches(2300), fingerprint=NEW_DRIVER))
    assert of(document)["reason"] == "needs 20 earlier sessions, has 4; the change is that of 2 sessions together"


def test_a_case_that_failed_is_said_once_and_its_metrics_are_not_missing(check, tmp_path):
    session = Session(night=30, medians=launches(2300) | {IDLE: {}}, status={IDLE: ("failed", "no memory")})
    session.medians[IDLE] = {}
    done, document = check(session, "--require-baseline", "--junit", tmp_path / "junit")
    invalid = [result["reason"] for result in document["results"] if result["verdict"] == "invalid"]
    assert len(invalid) == 1 and "no memory" in invalid[0], document["results"]
    assert done.returncode == 3


def test_a_history_that_is_made_anew_says_the_same(check, history, tmp_path):
    options = ("--across", "driver_version")
    for night in (30, 31):
        check(Session(night=night, medians=launches(2500), fingerprint=NEW_DRIVER), *options)
    anew = tmp_path / "anew.db"
    folders = [*nights(tmp_path / "again", 30), tmp_path / "night-30", tmp_path / "night-31"]
    assert launchgap("history", "add", anew, *folders, *options).returncode == 0
    for file in (history, anew):
        session = Session(night=32, medians=launches(2500), fingerprint=NEW_DRIVER, name=f"last-{file.stem}")
        done, document = check(session, *options, file=file)
        assert (of(document)["verdict"], of(document)["hits"], done.returncode) == ("slower", 3, 4)


def test_across_another_key_it_does_not(check):
    session = Session(night=30, medians=launches(2500), fingerprint=NEW_DRIVER)
    done, document = check(session, "--across", "kernel,nonsense")
    assert of(document)["verdict"] == "no-baseline"
    assert "--across nonsense: no fingerprint has this key" in done.stdout
    assert launchgap("check", "--history", "x", "y", "--across", "a,,b").returncode == 2


def test_a_level_that_was_accepted_is_the_baseline(check, history):
    for night in range(30, 55):
        done, document = check(Session(night=night, medians=launches(2500)))
    assert done.returncode == 4
    accept = launchgap("history", "accept", history, "--case", "*idle", "--since", "night-30", "--reason", "known", code=0)
    assert "1 series" in accept.stdout
    done, document = check(Session(night=55, medians=launches(2500)))
    assert (of(document)["verdict"], done.returncode) == ("same", 0)
    assert of(document)["compared_with"] == 25
    assert of(document, "per_launch_ns")["compared_with"] == 55


def test_a_level_can_be_accepted_in_a_text_file(check, tmp_path):
    for night in range(30, 55):
        check(Session(night=night, medians=launches(2500)))
    accepted = tmp_path / "accepted.txt"
    accepted.write_text("# device case metric since accepted reason\n* *idle * 2026-03-31 2100-01-01 known\n")
    done, document = check(Session(night=55, medians=launches(2500)), "--accepted", accepted)
    assert (of(document)["verdict"], done.returncode) == ("same", 0)
    for line in ("* * *", "* * * 2026-13-01 2026-01-01", "* * * 2026-02-01 2026-01-01"):
        accepted.write_text(line)
        done, _ = check(tmp_path / "night-55", "--accepted", accepted)
        assert done.returncode == 2
        assert "accepted.txt:1: " in done.stderr


def test_another_device_is_another_series(check):
    _, document = check(Session(night=30, medians=launches(9000), device=OTHER_GPU))
    assert verdicts(document) == {"roundtrip_ns": "no-baseline", "per_launch_ns": "no-baseline"}


# --- two sessions ---


def two(tmp_path, base, now, *options):
    out = tmp_path / "two.json"
    done = launchgap("check", base.write(tmp_path), now.write(tmp_path), "--json", out, *options)
    return done, json.loads(out.read_text()) if out.exists() else None


def test_two_sessions_are_suspect_at_most(tmp_path):
    done, document = two(tmp_path, Session(medians=launches(2300)), Session(night=1, medians=launches(4600)))
    assert (of(document)["verdict"], done.returncode) == ("suspect", 0)
    assert of(document)["change"] == pytest.approx(1, abs=0.01)
    assert "Two sessions cannot tell a change from the night" in done.stdout


@pytest.mark.parametrize(
    ("base", "now", "reason"),
    [
        ({}, {"fingerprint": NEW_DRIVER}, "its fingerprint differs: driver 570.12 → 575.08"),
        ({"device": OTHER_GPU}, {}, f"night-0 has another device: NVIDIA H100 ({OTHER_GPU})"),
        ({"medians": {BURST: launches(1)[BURST]}}, {"medians": {IDLE: launches(2300)[IDLE]}}, "night-0 has not measured it"),
        ({"simulated": True}, {}, "night-0: it is simulated"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_has_no_baseline(tmp_path, base, now, reason):
    default = {"medians": launches(2300)}
    done, document = two(tmp_path, Session(**(default | base)), Session(night=1, **(default | now)))
    assert done.returncode == 0
    assert of(document)["verdict"] == "no-baseline"
    assert reason in of(document)["reason"]


def test_a_session_is_not_compared_with_itself(tmp_path):
    folder = Session(medians=launches(2300)).write(tmp_path)
    done = launchgap("check", folder, folder, code=2)
    assert "both are the session night-0" in done.stderr


def test_values_that_are_no_numbers_are_no_baseline(tmp_path):
    for kind in ("null", "-5"):
        base = Session(medians=launches(2300), name=f"base{kind}").write(tmp_path)
        for file in (base / "records").iterdir():
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            for line in lines:
                if line["record"] == "samples":
                    line["values"] = [[json.loads(kind)] * len(values) for values in line["values"]]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        now = Session(night=1, medians=launches(2300), name=f"now{kind}").write(tmp_path)
        launchgap("check", base, now, "--json", tmp_path / "x.json", code=0)
        assert of(json.loads((tmp_path / "x.json").read_text()))["verdict"] == "no-baseline"


# --- the file ---


def test_a_session_is_added_once(check, history, tmp_path):
    session = Session(night=30, medians=launches(2300))
    check(session)
    done, _ = check(tmp_path / "night-30")
    assert done.returncode == 0
    assert "It is in the history already" in done.stdout
    added = launchgap("history", "add", history, tmp_path / "night-30")
    assert (added.returncode, added.stdout) == (0, "night-30: in it already\n")
    listed = launchgap("history", "list", history).stdout.splitlines()
    assert len([line for line in listed if line.startswith("night-30 ")]) == 1


def test_sessions_out_of_order_are_compared_with_those_before_them(check):
    _, document = check(Session(night=24.5, medians=launches(2300)))
    assert of(document)["compared_with"] == 25


@pytest.mark.parametrize("content", [b"", b"no database at all\n" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_history_stays_as_it_is(check, tmp_path, content):
    file = tmp_path / "other.db"
    file.write_bytes(content)
    for options in ([], ["--no-add"]):
        done, _ = check(Session(night=30, medians=launches(2300), name=f"s{len(options)}"), *options, file=file)
        assert done.returncode == 3
        assert "other.db" in done.stderr
        assert file.read_bytes() == content


def of_another_program(history):
    history.unlink()
    with sqlite3.connect(history) as database:
        database.execute("CREATE TABLE theirs (x)")


def cut_short(history):
    os.truncate(history, history.stat().st_size // 2)


def damaged_inside(history):
    with open(history, "r+b") as file:
        for page in range(1, history.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xa5" * 512)


def spoilt_by(statement):
    def spoil(history):
        with sqlite3.connect(history) as database:
            database.execute(statement)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (of_another_program, "another program's SQLite file"),
        (cut_short, r"cut short: it has \d+ of \d+ bytes"),
        (damaged_inside, "is damaged"),
        (spoilt_by("PRAGMA user_version = 7"), "has the form 7 of a history"),
        (spoilt_by("UPDATE fingerprints SET keys = '{'"), "nights.db is damaged: .*fingerprint 1"),
        (spoilt_by("UPDATE points SET verdict = 'slowish'"), "nights.db is damaged: .*in session night-29"),
    ],
)
def test_a_history_that_cannot_be_read_is_named_and_stays_as_it_is(check, history, spoil, said):
    spoil(history)
    before = history.read_bytes()
    done, document = check(Session(night=30, medians=launches(2300)))
    assert (done.returncode, document) == (3, None)
    assert re.search(said, done.stderr), done.stderr
    assert history.read_bytes() == before


def test_no_history_to_read(check, tmp_path):
    done, _ = check(Session(night=30, medians=launches(2300)), "--no-add", file=tmp_path / "none.db")
    assert done.returncode == 2
    assert not (tmp_path / "none.db").exists()
    done, _ = check(tmp_path / "night-30", file=tmp_path)
    assert done.returncode == 2


def test_what_cannot_be_written_still_has_its_verdict(history):
    with tempfile.TemporaryDirectory() as name:  # that every user may enter
        folder = pathlib.Path(name)
        shutil.copy(LAUNCHGAP, folder / "launchgap")
        shutil.copy(history, folder / "nights.db").chmod(0o444)
        session = Session(night=30, medians=launches(2300)).write(folder)
        for place in (folder, *session.rglob("*")):
            place.chmod(0o755)
        command = [folder / "launchgap", "check", "--history", folder / "nights.db", session]
        nobody = {"user": 65534} if os.geteuid() == 0 else {}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, **nobody)
        assert done.returncode == 3, done.stdout + done.stderr
        assert "Nothing is slower: 2 measurements compared" in done.stdout
        assert "cannot be written" in done.stderr
        assert "Nothing was changed" in done.stderr


def test_a_full_disk_loses_nothing(history, tmp_path):
    before = history.read_bytes()
    many = Session(night=30, medians={f"launch/null/api:driver/mode:x{i}": {"api_ns": [9000.0] * 3} for i in range(300)})
    folder = many.write(tmp_path)
    limit = history.stat().st_size // 512  # ulimit counts in 512 bytes here
    command = f'ulimit -f {limit // 2 + 1}; trap "" XFSZ; exec "$0" history add "$1" "$2"'
    done = subprocess.run(["bash", "-c", command, LAUNCHGAP, history, folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stdout + done.stderr
    assert str(history) in done.stderr
    listed = launchgap("history", "list", history, code=0)
    assert "night-30" not in listed.stdout
    assert history.read_bytes()[: len(before)] == before or "night-29" in listed.stdout


def test_a_locked_history_is_waited_for(check, history):
    held = sqlite3.connect(history, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    session = Session(night=30, medians=launches(2300))
    done, _ = check(session, "--no-add")  # to read it is enough
    assert done.returncode == 0
    held.execute("ROLLBACK")
    assert check(Session(night=31, medians=launches(2300)))[0].returncode == 0


def test_what_a_killed_writer_left_is_taken_back(check, history):
    writer = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 5")
database.execute("BEGIN IMMEDIATE")
for i in range(20000):
    database.execute("INSERT INTO sessions VALUES (?, ?, 'n', 0, 0, NULL)", (10**6 + i, f"killed-{i}"))
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", writer, history], check=False)
    assert pathlib.Path(f"{history}-journal").stat().st_size > 0
    assert "killed" not in launchgap("history", "list", history).stdout  # to read it is enough
    done, document = check(Session(night=30, medians=launches(2300)))
    assert (of(document)["verdict"], done.returncode) == ("same", 0)


@pytest.mark.parametrize("begun", [False, True])
def test_several_writers_do_not_lose_a_session(history, tmp_path, begun):
    file = history if begun else tmp_path / "new.db"
    sessions = [Session(night=40 + i, medians=launches(2300)).write(tmp_path) for i in range(8)]
    writers = [subprocess.Popen([LAUNCHGAP, "history", "add", file, session]) for session in sessions]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 8
    listed = launchgap("history", "list", file).stdout
    assert all(f"night-{40 + i} " in listed for i in range(8)) and listed.count("night-") == 8 + 30 * begun
    assert [path.name for path in tmp_path.glob(f"{file.name}*")] == [file.name]


# --- history's own commands ---


def test_prune_removes_the_oldest(history):
    dry = launchgap("history", "prune", history, "--before", "2026-03-11", "--dry-run")
    assert dry.stdout == "10 of 30 sessions began before 2026-03-11T00:00:00Z.\n"
    assert launchgap("history", "prune", history, "--before", "2026-03-11").stdout == "10 sessions removed.\n"
    listed = launchgap("history", "list", history).stdout
    assert "night-9 " not in listed
    assert "night-10 " in listed


def test_show_and_export_have_every_point(history, tmp_path):
    shown = launchgap("history", "show", history, "--case", "*idle", "--last", 3, code=0)
    assert shown.stdout.count("night-") == 3
    assert launchgap("history", "show", history, "--case", "none").returncode == 2
    assert launchgap("history", "export", history, "-o", tmp_path / "all.csv").returncode == 0
    rows = (tmp_path / "all.csv").read_text().splitlines()
    assert len(rows) == 1 + 60
    assert rows[0].startswith("session_id,node,begin_utc,device_id")


def test_accepting_what_is_not_there_is_refused(history):
    assert launchgap("history", "accept", history, "--case", "none", "--since", "2026-03-02").returncode == 2
    assert launchgap("history", "accept", history, "--since", "2100-01-01").returncode == 2
    assert launchgap("history", "accept", history, "--since", "yesterday").returncode == 2


def test_names_of_others_are_data(check, tmp_path):
    hostile = Session(night=30, medians=launches(2300), name="x'; DROP TABLE points; --\x1b[31m")
    hostile_folder = Session(night=30, medians=launches(2300), name="hostile").write(tmp_path)
    text = (hostile_folder / "session.json").read_text()
    (hostile_folder / "session.json").write_text(text.replace('"hostile"', json.dumps(hostile.name)))
    done, _ = check(hostile_folder)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert GPU in json.dumps(check(Session(night=31, medians=launches(2300)))[1])


# --- with real processes ---

BURST_OF_HOST = "launch/null/api:queue/mode:burst"


@pytest.fixture(scope="module")
def host_night(tmp_path_factory):
    """A real session of the host, and a history of 20 nights that are its copies with times of 60 %."""
    folder = tmp_path_factory.mktemp("host")
    only = ("--filter", f"^{BURST_OF_HOST}$", "--trace", "off", "--no-report")
    launchgap("run", "--devices", "host", "--runs", 3, *only, "-o", folder / "tonight", code=0)
    for night in range(20):
        copy = shutil.copytree(folder / "tonight", folder / f"night-{night}")
        info = json.loads((copy / "session.json").read_text()) | {"session_id": copy.name}
        (copy / "session.json").write_text(json.dumps(info))
        for file in (copy / "records").iterdir():
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            for line in lines:
                if line["record"] == "run":
                    line["begin_utc"] = f"2026-01-{night + 1:02}T03:00:00Z"
                if line["record"] == "samples":
                    line["values"] = [[0.6 * value for value in values] for values in line["values"]]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    nights = [folder / f"night-{night}" for night in range(20)]
    assert launchgap("history", "add", folder / "nights.db", *nights).returncode == 0
    return folder


@pytest.mark.compares_times
@pytest.mark.parametrize(
    ("delay", "verdict", "code", "words"), [("300", "slower", 4, "confirmed: +"), (None, "", 0, "not confirmed: ")]
)
def test_what_is_suspect_is_confirmed_in_pairs(host_night, tmp_path, delay, verdict, code, words):
    current = f"{LAUNCHGAP},LAUNCHGAP_DELAY_NS={delay}" if delay else LAUNCHGAP
    history = shutil.copy(host_night / "nights.db", tmp_path / "nights.db")
    confirm = ("--confirm", "--baseline", LAUNCHGAP, "--current", current)
    arguments = ("check", "--history", history, host_night / "tonight", *confirm, "--json", tmp_path / "check.json")
    done = launchgap(*arguments)
    result = of(json.loads((tmp_path / "check.json").read_text()), "per_launch_ns")
    assert words in result["reason"], done.stdout + done.stderr
    if delay is None and result["verdict"] == "slower":
        pytest.skip("this machine is too busy: equals were called slower")
    assert result["verdict"] == (verdict or "suspect")
    assert done.returncode == code
    shown = launchgap("history", "show", history, "--last", 1).stdout
    assert (verdict or "suspect") in shown  # what was confirmed is kept


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--confirm",), "--baseline"),
        (("--confirm", "--baseline", "/nonexistent/launchgap"), "/nonexistent/launchgap"),
        (("--confirm", "--baseline", "/bin/true"), "is not launchgap"),
    ],
)
def test_a_build_that_is_none_is_named(check, options, reason):
    done, _ = check(Session(night=30, medians=launches(2300)), *options)
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_gpu_that_is_not_here_stays_suspect(check):
    done, document = check(Session(night=30, medians=launches(2500)), "--confirm", "--baseline", LAUNCHGAP)
    assert (of(document)["verdict"], done.returncode) == ("suspect", 0)
    assert "What is suspect could not be compared with" in done.stdout


def test_the_selftest_of_a_history_says_how_often_check_is_wrong(tmp_path, check):
    file = tmp_path / "long.db"
    sessions = [
        Session(night=i, medians=launches(2300 + 7 * (i * 37 % 11)), name=f"n{i}").write(tmp_path) for i in range(60)
    ]
    assert launchgap("history", "add", file, *sessions).returncode == 0
    done = launchgap("selftest", "--history", file, "--processes", 0, code=0)
    assert "false alarms are to be expected each night, of 2 metrics" in done.stdout
    done, document = check(Session(night=61, medians=launches(2320)), file=file)
    power = of(document)["power"]
    assert power["false_alarm_rate"] <= 0.001
    assert 0.03 <= power["detectable"] <= 0.06
    assert document["expected_false_alarms"] <= 0.002
    launchgap("report", tmp_path / "night-61", "--history", file, "-o", tmp_path / "page.html", code=0)
    assert "false alarms are to be expected" in (tmp_path / "page.html").read_text()


def test_nothing_to_test_is_wrong_usage(tmp_path):
    assert launchgap("selftest", "--processes", 0).returncode == 2
    assert launchgap("selftest", "--processes", 0, "--noop", 3, "--history", tmp_path / "h.db").returncode == 2


def test_a_recorded_job_has_a_series_of_its_own_and_no_test(tmp_path, check):
    recording = ROOT / "tests" / "recordings" / "gp100-steps.kineto.json"
    launchgap("import", recording, "-o", tmp_path / "job", code=0)
    done, document = check(tmp_path / "job")
    assert done.returncode == 0, done.stderr
    assert {result["arm"] for result in document["results"]} == {"recorded"}
    assert {result["verdict"] for result in document["results"]} <= {"no-baseline", "watch"}
    _, document = check(Session(night=30, medians=launches(2300)))
    assert verdicts(document) == {"roundtrip_ns": "same", "per_launch_ns": "same"}
    other = shutil.copytree(tmp_path / "job", tmp_path / "other")
    info = json.loads((other / "session.json").read_text()) | {"session_id": "another"}
    (other / "session.json").write_text(json.dumps(info))
    launchgap("check", tmp_path / "job", other, "--json", tmp_path / "x.json", code=0)
    document = json.loads((tmp_path / "x.json").read_text())
    assert {result["verdict"] for result in document["results"]} == {"watch"}
    assert any("1 and 1 processes" in result["reason"] for result in document["results"])
