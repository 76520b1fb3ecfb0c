"""`launchgap compare`: pairs of processes on fake GPUs, whose times are known, and on the host."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from shipped import LAUNCHGAP, NODES, environment, launchgap, records

CASE = "allocation/latency/allocator:direct/bytes:256"
ONE_CASE = ("--filter", f"^{CASE}$")
STEADY = dict(alloc_ns={"constant": 200_000}, free_ns={"constant": 100_000}, process_factor_sigma=0)


@pytest.fixture
def node(tmp_path):
    """Writes a node whose times are constant, but for the changes."""

    def write(name, **changes):
        node = json.loads((NODES / "one_a100.json").read_text())
        node["devices"][0] |= STEADY | changes
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(node))
        return path

    return write


def arm(path, binary=LAUNCHGAP):
    return f"{binary},LAUNCHGAP_FAKE_NODE={path}"


def compared(*arguments, **extra):
    """Its answer has `document`: what it wrote as JSON, if it did."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "compare.json"
        done = launchgap("compare", *arguments, "--json", out, **extra)
        done.document = json.loads(out.read_text()) if out.exists() else {"results": [], "notes": []}
    return done


def compare(*arguments, a, b, **extra):
    return compared("--a", a, "--b", b, *arguments, *ONE_CASE, **extra)


def verdicts(done):
    return {result["metric"]: result["verdict"] for result in done.document["results"]}


def said(done):
    """Without the ends of its lines."""
    return " ".join(done.stdout.split())


def of(done, metric):
    return next(result for result in done.document["results"] if result["metric"] == metric)


def fake_binary(tmp_path, name, script):
    """A program that says that it is launchgap, and then does what the script says."""
    path = tmp_path / name
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then exec {LAUNCHGAP} --version; fi\n{script}\n')
    path.chmod(0o755)
    return path


@pytest.mark.compares_times
def test_what_is_slower_is_found_and_fails_and_its_sessions_are_kept(node, tmp_path):
    """In pairs in the order AB, BA. How many it takes depends on the machine; when it may end, see paired_metrics_test."""
    kept = tmp_path / "kept"
    usual, slow = node("usual"), node("slow", alloc_ns={"constant": 220_000})
    done = compare("--devices", "gpu", "--pairs", 40, "-o", kept, a=arm(usual), b=arm(slow), node=usual)
    assert done.returncode == 4, done.stdout + done.stderr
    assert verdicts(done)["call_ns"] == "slower" and verdicts(done)["free_ns"] == "same"
    assert of(done, "call_ns")["change"] == pytest.approx(0.10, abs=0.01)
    assert "SIMULATED" in done.stdout
    assert "(launchgap " in done.stdout, "which build each side is"
    began = {}
    for folder in kept.glob("pair-*/"):
        session = json.loads((folder / "session.json").read_text())
        began[folder.name] = (session["begin_utc"], (folder / "session.json").stat().st_mtime_ns)
        assert session["filter"] == f"^{CASE}$" and session["runs"] == 1
    order = sorted(began, key=lambda name: began[name])
    assert len(order) >= 16, "eight pairs are the fewest"
    assert order[:4] == ["pair-001-1-a", "pair-001-1-b", "pair-002-1-b", "pair-002-1-a"]
    again = compare("--devices", "gpu", "-o", kept, a=arm(usual), b=arm(usual), node=usual)
    assert again.returncode == 2 and "not an empty folder" in again.stderr


@pytest.mark.compares_times
def test_what_is_erratic_is_said_and_fails_if_it_is_asked_to(node):
    usual = node("usual")
    erratic = node("erratic", alloc_ns={"lognormal": {"median": 200_000, "sigma": 1.0}})
    done = compare("--devices", "gpu", "--gate-spread", a=arm(usual), b=arm(erratic), node=usual)
    assert re.search(r"within-run CV [\d.]+ times as large", of(done, "call_ns")["steadiness_reason"])
    assert done.returncode == 4, done.stdout


def test_two_cases_are_compared_on_the_host():
    case = "allocation/latency/allocator:{}/bytes:65536"
    done = compared(
        "--a-case", case.format("direct"), "--b-case", case.format("mapped"), "--devices", "host"
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    assert case.format("mapped") in done.stdout and "allocator:direct" not in verdicts(done)
    assert verdicts(done)["first_touch_ns"] == "slower", "its pages are new, and malloc's are not"
    judged = [result for result in done.document["results"] if "interval" in result]
    assert judged
    for result in judged:  # however their processes vary
        assert result["change"] == pytest.approx(result["value"] / result["baseline"] - 1, abs=1e-9), result["metric"]


def test_two_cases_without_a_common_metric_cannot_be_compared():
    done = compared("--a-case", CASE, "--b-case", "launch/null/api:queue/mode:burst", "--devices", "host")
    assert done.returncode == 3
    assert "Nothing could be compared: the two cases have no metric in common" in said(done)


def test_a_simulated_gpu_beside_a_real_one_proves_nothing(node, tmp_path):
    """B's sessions are written over as if they were of a GPU that is there."""
    real = fake_binary(
        tmp_path,
        "real",
        f"""{LAUNCHGAP} "$@" || exit
        for last; do :; done
        sed -i 's/"simulated":true/"simulated":false/g' "$last"/session.json "$last"/records/*.jsonl""",
    )
    usual = node("usual")
    done = compare("--devices", "gpu", a=arm(usual), b=arm(usual, real), node=usual)
    assert done.returncode == 3, done.stdout
    assert "Nothing could be compared: A is simulated, and the other is not" in said(done)


def test_a_program_that_crashes_is_named_with_what_it_said_last(tmp_path):
    crashing = fake_binary(tmp_path, "crashing", "echo 'no such chip' >&2; kill -SEGV $$")
    done = compare("--devices", "host", a=LAUNCHGAP, b=crashing)
    assert done.returncode == 3
    assert "B, pair 1: it was killed by SIGSEGV, and said last: no such chip" in said(done)
    assert "after 3 failures in a row" in said(done) and "3 pairs failed" in said(done)


def test_a_pair_that_failed_is_made_up_for(tmp_path):
    once = fake_binary(
        tmp_path,
        "once",
        f'if [ -e {tmp_path}/done ]; then exec {LAUNCHGAP} "$@"; fi; touch {tmp_path}/done; echo oh; exit 7',
    )
    done = compare("--devices", "host", a=LAUNCHGAP, b=once)
    assert done.returncode in (0, 4), done.stdout
    assert "B, pair 1: it exited with 7, and said last: oh" in said(done) and "1 pair failed" in said(done)
    assert of(done, "call_ns")["runs"] == 8, "eight pairs all the same"


def test_a_device_that_another_session_has_is_said(lock_dir, node):
    usual = node("usual", alloc_ns={"constant": 3_000_000})
    env = environment(usual, real_time=True, LAUNCHGAP_LOCK_DIR=str(lock_dir))
    arguments = ["run", "--devices", "gpu", "--filter", f"^{CASE}$", "--runs", "50", "--no-report", "-o", lock_dir / "other"]
    other = subprocess.Popen([LAUNCHGAP, *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        records = lock_dir / "other" / "records"
        while not (records.exists() and list(records.iterdir())):
            assert other.poll() is None
            time.sleep(0.05)
        begin = time.monotonic()
        held = {"node": usual, "LAUNCHGAP_LOCK_DIR": str(lock_dir)}
        done = compare("--devices", "gpu", "--wait", "1", a=arm(usual), b=arm(usual), **held)
        assert 1 <= time.monotonic() - begin < 60
    finally:
        other.send_signal(signal.SIGINT)
        other.wait(60)
    assert done.returncode == 3, done.stdout
    assert f"another session is measuring it (process {other.pid})" in said(done), done.stdout
    assert "after 1 s compare gave up" in said(done)
    assert "waiting up to 1 s" in done.stderr


def test_a_device_that_another_session_gives_back_is_waited_for(lock_dir, node):
    usual = node("usual")
    holder = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); "
    holder += "print(flush=True); time.sleep(3)"
    (uuid,) = {d["uuid"] for d in json.loads(usual.read_text())["devices"]}
    lock = lock_dir / f"launchgap-{uuid}.lock"
    other = subprocess.Popen([sys.executable, "-c", holder, lock], stdout=subprocess.PIPE)
    other.stdout.readline()
    done = compare("--devices", "gpu", a=arm(usual), b=arm(usual), node=usual, LAUNCHGAP_LOCK_DIR=str(lock_dir))
    assert other.wait(10) == 0
    assert done.returncode == 0, said(done)
    assert "waiting up to 60 s" in done.stderr


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    kept = tmp_path / "kept"
    sides = ("--a", LAUNCHGAP, "--b", LAUNCHGAP, "--devices", "host")
    arguments = ("compare", *sides, *ONE_CASE, "--pairs", "1000", "-o", kept)
    going = subprocess.Popen(
        [LAUNCHGAP, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (kept / "pair-002-1-a").exists():
        assert going.poll() is None
        time.sleep(0.05)
    going.send_signal(signal.SIGINT)
    _, said = going.communicate(timeout=60)
    assert going.returncode == 5
    assert f"Stopped early; what was measured is in {kept}." in said
    assert (kept / "pair-001-1-b" / "session.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "compare needs --a and --b"),
        (("--a", LAUNCHGAP), "compare needs --a and --b"),
        (("--a-case", CASE), "--a-case and --b-case go together"),
        (("--a-case", CASE, "--b-case", CASE, "--filter", "x"), "--filter has nothing to choose"),
        (("--a-case", CASE, "--b-case", "allocation/latency"), "no case passes"),
        (("--a", LAUNCHGAP, "--b", "/nowhere/launchgap"), "there is no file /nowhere/launchgap"),
        (("--a", LAUNCHGAP, "--b", __file__), "may not be executed"),
        (("--a", LAUNCHGAP, "--b", "launchgap-of-nobody"), "there is no launchgap-of-nobody in PATH"),
        (("--a", LAUNCHGAP, "--b", "/bin/true"), "is not launchgap"),
        (("--a", LAUNCHGAP, "--b", ",X=1"), "it names no program"),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},X"), "'X' is no variable with a value"),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},=1"), "'=1' is no variable with a value"),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},X=1,X=2"), "X is set twice"),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},CUDA_LAUNCH_BLOCKING=1"), "CUDA_LAUNCH_BLOCKING would have no effect: "),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},OMP_NUM_THREADS=1"), "OMP_NUM_THREADS would have no effect: launchgap"),
        (("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},CUDA_VISIBLE_DEVICES=0"), "which --devices chooses"),
        (("--a", LAUNCHGAP, "--b", LAUNCHGAP, "--pairs", 7), "--pairs"),
        (("--a", LAUNCHGAP, "--b", LAUNCHGAP, "--devices", "GPU-none"), "GPU-none"),
        (("--a", LAUNCHGAP, "--b", LAUNCHGAP, "--filter", "("), "not a regular expression"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(arguments, said):
    done = compared(*arguments)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_gpu_that_was_asked_for_and_is_not_there():
    done = compare("--devices", "gpu", a=LAUNCHGAP, b=LAUNCHGAP)
    assert done.returncode == 77


def test_a_comma_in_a_value_and_a_variable_that_is_heeded():
    """OMP_PLACES is no variable of launchgap's; the difference is said, since the fingerprint has it."""
    done = compare("--devices", "host", a=LAUNCHGAP, b=f"{LAUNCHGAP},OMP_PLACES={{0}}\\,{{1}}")
    assert done.returncode in (0, 4), done.stderr
    assert "A and B differ: environment.OMP_PLACES unknown → {0},{1}" in said(done)


# --- a delay that is inserted on purpose ---

LAUNCHES = ("--devices", "host", "--filter", "^launch/null/api:queue/")


def delays(folder):
    return [
        (record.get("delay_ns"), record.get("delay_problem"))
        for path in sorted(folder.glob("*-b/records/*.jsonl"))
        for record in map(json.loads, path.read_text().splitlines())
        if record["record"] == "end"
    ]


@pytest.mark.compares_times
def test_a_delay_makes_each_launch_slower_and_is_measured(tmp_path):
    kept = tmp_path / "kept"
    done = compared("--a", LAUNCHGAP, "--b", f"{LAUNCHGAP},LAUNCHGAP_DELAY_NS=3000", *LAUNCHES, "-o", kept)
    assert done.returncode == 4, done.stdout + done.stderr
    found = verdicts(done)
    assert found["per_launch_ns"] == "slower" and found["roundtrip_ns"] == "slower"
    assert "A and B differ: environment.LAUNCHGAP_DELAY_NS unknown → 3000" in said(done)
    measured = delays(kept)
    assert len(measured) == 8 and not any(problem for _, problem in measured)
    assert sorted(ns for ns, _ in measured)[4] == pytest.approx(3000, rel=0.3)


def test_a_delay_that_is_too_short_is_said(run):
    _, session = run(f"^{CASE}$", LAUNCHGAP_DELAY_NS="0.001")
    (end,) = [r for lines in records(session).values() for r in lines if r["record"] == "end"]
    assert end["delay_problem"].startswith("0.001 ns were asked for") and end["delay_ns"] > 0.001


@pytest.mark.parametrize("value", ["soon", "-1", "nan", "1e10", "5ns"])
def test_a_delay_that_is_none_fails_the_run(run, value):
    done, _ = run(f"^{CASE}$", code=3, LAUNCHGAP_DELAY_NS=value)
    assert f"LAUNCHGAP_DELAY_NS is '{value}'" in done.stdout + done.stderr
