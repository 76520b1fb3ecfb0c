"""Mistakes get one clear line, the right exit code, and leave nothing half written."""

import fcntl
import json
import shutil
import signal
import subprocess

import pytest
from shipped import LAUNCHGAP, NODES, environment, launchgap

USAGE = [
    (["measure"], "there is no command 'measure'. `launchgap --help`"),
    (["runn"], "there is no command 'runn': did you mean 'run'?"),
    (["help", "lsit"], "there is no command 'lsit': did you mean 'list'?"),
    ([""], "there is no command ''"),
    (["run", "--fast"], "there is no option '--fast'. `launchgap run --help`"),
    (["run", "--filtr", "x"], "there is no option '--filtr': did you mean '--filter'?"),
    (["run", "--filtr=x"], "there is no option '--filtr': did you mean '--filter'?"),
    (["run", "extra"], "'extra' is not expected"),
    (["run", "--runs"], "--runs needs a value"),
    (["run", "--verbose"], "--verbose goes with --dry-run"),
    (["history", "prun", "x"], "history has no command 'prun': did you mean 'prune'?"),
    (["run", "--under", "nsyss"], "there is no 'nsyss': did you mean 'nsys'?"),
    (["run", "--devices", "tpu"], "there is no device 'tpu'"),
    (["run", "--devices", ""], "there is no device ''"),
    (["run", "--devices", "0"], "there is no device '0': choose all, gpu or host; no GPU is found here"),
    (["run", "--devices", "hots"], "there is no device 'hots': did you mean 'host'?"),
    (["run", "--profile", "fast"], "choose quick, nightly or full"),
    (["run", "--profile", "nigthly"], "there is no profile 'nigthly': did you mean 'nightly'?"),
    (["run", "--filter", "^lanch/null"], "did you mean 'launch/null'? `launchgap list benchmarks`"),
    (["run", "--filter", "launch/null.*mode:idel"], "did you mean 'mode:idle'?"),
    (["run", "--filter", "^matmull.*fp32"], "did you mean 'matmul'?"),
    (["run", "--filter", "("], "not a regular expression"),
    (["run", "--filter", "nothing-has-this-name"], "launchgap list benchmarks"),
    (["run", "--runs", "0"], "--runs"),
    (["run", "--runs", "many"], "--runs: 'many' is no whole number from 1 to 10000"),
    (["run", "--trace", "maybe"], "choose auto, on or off"),
    (["run", "--timeout", "0"], "--timeout"),
    (["run", "--seed", "x"], "--seed"),
    (["run", "--seed", "-1"], "--seed: '-1' is no whole number from 0 to 18446744073709551615"),
    (["run", "--seed", "18446744073709551616"], "--seed: '18446744073709551616' is no whole number"),
    (["run", "--timeout", "nan"], "--timeout: 'nan' is no number from 0.1 to 1000000"),
    (["run", "--filter", "(" * 400 + ")" * 400 + "x" * 400], "longer than 1000 bytes"),
    (["run", "--filter", "(" * 50_000 + ")" * 50_000], "longer than 1000 bytes"),
    (["run", "--filter", "((a{100}){100}){100}"], "it repeats too much"),
    (["run", "--filter", r"(a)\1"], "not a regular expression"),
    (["run", "--devices", "host", "--filter", "(.*)*#"], "launchgap list benchmarks"),
    (["list", "gpus"], "there is no 'gpus': choose devices or benchmarks"),
    (["list", "device"], "there is no 'device': did you mean 'devices'?"),
    (["list", "--json", "device"], "there is no 'device': did you mean 'devices'?"),
    (["report"], "sessions"),
    (["doctor", "--explain", "nosuch"], "no finding has the code 'nosuch'. `launchgap doctor --explain list`"),
    (["doctor", "--explain", "no-gpus"], "did you mean 'no-gpu'?"),
    (["generate", "checkerbord/blocks:4", "-o", "x"], "did you mean 'checkerboard'?"),
    (["doctor", "--json", "x", "-o", "y"], "name one file, by --json or by -o"),
    (["report", "/nowhere"], "/nowhere is not a folder"),
    (["export", "/nowhere", "-o", "/tmp/x"], "/nowhere is not a folder"),
    (["export", "/nowhere"], "--output"),
    (["export", "/nowhere", "--format", "xlsx", "-o", "/tmp/x"], "xlsx"),
    (["worker", "--frobnicate"], "--frobnicate"),
    (["worker", "--job"], "internal"),
]


@pytest.mark.parametrize("arguments, says", USAGE, ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "")
def test_wrong_usage(arguments, says, tmp_path):
    done = launchgap(*arguments, cwd=tmp_path, code=2)
    assert says in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == "", "one line, on standard error"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["help"], ["help", "run"], ["version"], ["-V"]], ids=" ".join)
def test_who_asks_for_help_gets_it(words):
    done = launchgap(*words)
    same = launchgap(
        *{"help run": ["run", "--help"], "version": ["--version"], "-V": ["--version"]}.get(" ".join(words), ["--help"])
    )
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == same.stdout != ""


def test_a_gpu_that_is_there_is_named_where_another_is_asked_for():
    done = launchgap("run", "--devices", "7", node=NODES / "one_a100.json", code=2)
    assert "there is no device '7': choose all, gpu, host or a GPU: 0 (GPU-" in done.stderr


def test_a_gpu_that_is_asked_for_and_not_there(tmp_path):
    done = launchgap("run", "--devices", "gpu", cwd=tmp_path, code=77)
    assert "a GPU was asked for and none can be used" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["folder", "file"])
def test_an_output_that_exists_is_not_touched(what, tmp_path):
    output = tmp_path / "session"
    if what == "folder":
        output.mkdir()
        (output / "precious").write_text("keep")
    else:
        output.write_text("keep")
    done = launchgap("run", "--devices", "host", "-o", output, code=2)
    assert "exists already" in done.stderr
    assert (output / "precious" if what == "folder" else output).read_text() == "keep"


def test_an_output_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = launchgap("run", "--devices", "host", "-o", tmp_path / "file" / "session", code=2)
    assert "cannot be made" in done.stderr


def test_a_session_beside_itself_is_refused(session, tmp_path):
    done = launchgap("report", session, session, cwd=tmp_path, code=2)
    assert f"{session} is named twice: name two different sessions" in done.stderr
    shutil.copytree(session, tmp_path / "copy")
    done = launchgap("report", session, tmp_path / "copy", cwd=tmp_path, code=2)
    assert "hold the same session" in done.stderr
    assert not (tmp_path / "comparison.html").exists()


def test_a_page_that_cannot_be_written(session):
    done = launchgap("report", session, "-o", "/nowhere/report.html", code=3)
    assert "/nowhere" in done.stderr


def test_without_python_the_page_is_missing_and_the_tables_are_there(run):
    done, session = run("launch/null.*idle", page=True, LAUNCHGAP_PYTHON="/nowhere/python3")
    assert "launchgap report" in done.stderr, "it says how to make the page later"
    assert (session / "summary.csv").exists()


def test_a_node_description_that_is_wrong_is_named(tmp_path):
    node = tmp_path / "node.json"
    node.write_text('{"devices": [{"nme": "x"}]}')
    done = launchgap("list", "devices", node=node, code=0)
    assert "No GPU can be used" in done.stdout


def test_a_caller_that_ignores_its_children_changes_nothing(tmp_path):
    done = subprocess.run(
        [LAUNCHGAP, "list", "devices", "--json"],
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        capture_output=True,
        timeout=20,
        env=environment(),
    )
    assert done.returncode == 0 and json.loads(done.stdout)["devices"]


@pytest.mark.parametrize(
    "text, says", [("12345", "process 12345"), ("\x1b[31m%s{}", "process unknown"), ("", "process unknown")]
)
def test_a_device_that_another_session_measures_is_left_alone(text, says, run, lock_dir):
    listed = json.loads(launchgap("list", "devices", "--json").stdout)
    with open(lock_dir / f"launchgap-{listed['devices'][0]['uuid']}.lock", "w") as file:
        file.write(text)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        done, _ = run("launch/null.*idle", code=3)
    assert f"another session is measuring it ({says})" in done.stderr
