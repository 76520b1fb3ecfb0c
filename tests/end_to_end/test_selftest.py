"""`launchgap selftest`: noise, false alarms and slowdowns, on fake GPUs whose noise is known and on the host."""

import glob
import json
import signal
import subprocess
import time

import pytest
from night_sessions import IDLE, Session, launches, nights
from shipped import LAUNCHGAP, environment, launchgap

CASE = "allocation/latency/allocator:direct/bytes:256"
ONE_CASE = ("--filter", f"^{CASE}$", "--processes", 10)
STEADY = dict(alloc_ns={"constant": 50_000}, free_ns={"constant": 25_000}, process_factor_sigma=0)


def rows(path):
    document = json.loads(path.read_text())
    assert document["schema"] == "launchgap-selftest/1"
    return {row["metric"]: row for row in document["rows"]}


@pytest.mark.compares_times
def test_a_steady_gpu_has_little_noise_and_slowdowns_are_found(make_node, tmp_path):
    out = tmp_path / "found.json"
    done = launchgap(
        "selftest", "--devices", "gpu", *ONE_CASE, "--slowdown", "50%", "--tries", 1, "--noop", 1, "--json", out,
        node=make_node(**STEADY), code=0,
    )  # fmt: skip
    found = rows(out)
    call = found["call_ns"]
    assert call["processes"] == 10 and call["noise"] < 0.01 and not call["too_noisy"]
    assert call["false_alarm_rate"] <= 0.005 and 0.02 <= call["detectable"] <= 0.03
    assert call["comparisons"] == 1 and call["alarms"] == 0
    assert call["slowdown"]["found"] == call["slowdown"]["tries"] == 1
    assert call["slowdown"]["delay_ns"] == pytest.approx(25_000, rel=0.1)
    assert call["slowdown"]["change"] == pytest.approx(0.5, abs=0.1)
    assert found["free_ns"]["slowdown"]["problem"] == "no call that is delayed is within what it times"
    assert "SIMULATED" in done.stdout
    assert f"{CASE} call_ns: 50 % were asked for, " in done.stdout


def test_a_machine_that_is_too_noisy_is_said_to_prove_nothing(make_node, tmp_path):
    out = tmp_path / "found.json"
    node = make_node(call_ns={"constant": 4000}, process_factor_sigma=0.3)
    burst = ("--filter", "^launch/null/api:driver/mode:burst$", "--processes", 10)
    done = launchgap("selftest", "--devices", "gpu", *burst, "--json", out, node=node, code=0)
    launch = rows(out)["per_launch_ns"]
    assert launch["noise"] > 0.05 and launch["too_noisy"] and launch["lag1"] is not None
    assert "detectable" not in launch or launch["detectable"] > 0.1
    assert "the machine is too noisy" in done.stdout and "proves nothing" in done.stdout


def test_a_history_that_is_not_there_is_an_error_and_is_not_made(tmp_path):
    done = launchgap("selftest", "--processes", 0, "--history", tmp_path / "typo.db")
    assert done.returncode == 2 and "there is no history" in done.stderr
    assert not (tmp_path / "typo.db").exists()


def test_nights_have_rates_and_those_without_say_why(tmp_path):
    sessions = nights(tmp_path, 45)
    sessions += [Session(night=50, medians={IDLE: {"api_ns": [800.0] * 3}}, name="once").write(tmp_path)]
    assert launchgap("history", "add", tmp_path / "n.db", *sessions).returncode == 0
    done = launchgap("selftest", "--processes", 0, "--history", tmp_path / "n.db", "--json", tmp_path / "out.json", code=0)
    document = json.loads((tmp_path / "out.json").read_text())
    assert {night["metric"] for night in document["nights"]} == {"roundtrip_ns", "per_launch_ns"}
    assert document["nights_without_rate"] == {"fewer than 40 valid sessions": 1}
    assert "1 metric has no rate: fewer than 40 valid sessions" in done.stdout
    assert "0 false alarms are to be expected each night, of 2 metrics" in done.stdout
    tonight = Session(night=51, medians=launches(2300), name="tonight").write(tmp_path)
    checked = launchgap("check", "--history", tmp_path / "n.db", tonight)
    assert "2 tests; 0 false alarms are to be expected." in checked.stdout


def test_what_is_only_watched_has_no_rates(tmp_path):
    out = tmp_path / "found.json"
    done = launchgap("selftest", "--devices", "host", *ONE_CASE, "--json", out, code=0)
    assert "SIMULATED" not in done.stdout
    for row in rows(out).values():
        assert ("watched" in row) == ("false_alarm_rate" not in row)
        if "watched" in row:
            assert f"{CASE} {row['metric']} is only watched: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--slowdown", "much"), "--slowdown 'much'"),
        (("--slowdown", "0%"), "--slowdown '0%'"),
        (("--slowdown", "-5%"), "--slowdown"),
        (("--slowdown", "5%%"), "--slowdown '5%%'"),
        (("--slowdown", "nan"), "--slowdown 'nan'"),
        (("--processes", 9), "--processes"),
        (("--tries", 0), "--tries"),
        (("--pairs", 7), "--pairs"),
        (("--filter", "no/such/case"), "no case passes"),
        (("--profile", "slow"), "profile"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, said):
    done = launchgap("selftest", "--devices", "host", *arguments)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_file_that_cannot_be_written_is_known_before_anything_is_measured(tmp_path):
    done = launchgap("selftest", "--devices", "host", "--json", tmp_path / "nowhere" / "found.json")
    assert done.returncode == 3 and "cannot be written" in done.stderr and done.stdout == ""


def test_ctrl_c_ends_it_and_writes_what_it_found(tmp_path):
    out = tmp_path / "found.json"
    arguments = ["selftest", "--devices", "host", "--filter", f"^{CASE}$", "--processes", "10", "--noop", "10000"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    going = subprocess.Popen(
        [LAUNCHGAP, *arguments, "--json", out],
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not glob.glob(f"{temporary}/*/pair-*"):  # which goes on where a folder goes away meanwhile
        assert going.poll() is None
        time.sleep(0.02)
    going.send_signal(signal.SIGINT)
    answered, said = going.communicate(timeout=60)
    assert going.returncode == 5 and "Stopped early" in said
    assert rows(out)["call_ns"]["processes"] == 10 and "call_ns" in answered
    assert list(temporary.iterdir()) == [], "temporary folders are gone"
