"""launchgap investigate, with programs that stand in for nsys and ncu (stand_ins.py)."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shipped import BUILD, LAUNCHGAP, NODES, environment, launchgap, records, table

HERE = Path(__file__).parent
IDLE = "launch/null/api:driver/mode:idle"
MATMUL = "matmul/library/size:256/type:fp32/cache:warm"

pytestmark = pytest.mark.skipif(
    not (BUILD / "nvtx" / "libnvtx_listener.so").exists(), reason="built without NVTX headers: there are no ranges"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A session of one fake GPU, with a seed of its own, that raises questions. Not to be changed."""
    folder = tmp_path_factory.mktemp("base")
    launchgap(
        "run", "--devices", "gpu", "--runs", 1, "--seed", 77, "--trace", "off", "--no-report",
        "--filter", f"launch/null|{MATMUL}", "-o", folder / "session",
        node=NODES / "one_a100.json", LAUNCHGAP_LOCK_DIR=str(folder), code=0,
    )  # fmt: skip
    return folder / "session"


@pytest.fixture
def tools(tmp_path):
    """A folder for PATH with stand-ins of these names."""

    def make(*names):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in names:
            program = folder / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "stand_ins.py"} {name} "$@"\n')
            program.chmod(0o755)
        return str(folder)

    return make


@pytest.fixture
def investigate(base, tmp_path, lock_dir):
    """Runs the command into a folder of the test's own."""

    def start(case, *arguments, path="", session=base, node=NODES / "one_a100.json", **extra):
        folder = tmp_path / "investigation"
        done = launchgap(
            "investigate", session, case, *arguments, "-o", folder,
            node=node, PATH=f"{path}:/usr/bin:/bin", LAUNCHGAP_LOCK_DIR=str(lock_dir), **extra,
        )  # fmt: skip
        return done, folder

    return start


def session_json(session):
    return json.loads((session / "session.json").read_text())


def test_nsys_records_the_case_again_and_its_report_is_joined(investigate, tools, base):
    done, folder = investigate(IDLE, "--tool", "nsys", path=tools("nsys"))
    assert done.returncode == 0, done.stderr
    assert "10000 of 10000 samples joined by their keys" in done.stdout
    assert "What moved is the queue" in done.stdout
    assert len(table(folder / "joined.csv")) == 10_000
    session = folder / "nsys-session"
    made = session_json(session)
    assert made["investigates"] == {"session_id": session_json(base)["session_id"], "case": IDLE}
    assert (made["seed"], made["profile"]) == (77, "quick")
    assert [(run["arm"], run["process_config"], run["cases"]) for run in made["plan"]] == [("plain", "launch", [IDLE])]
    (run,) = table(session / "runs.csv")
    assert run["measured_under_tool"] == "nsys" and run["trace_state"] == "off"
    assert json.loads(run["fingerprint"])["measured_under_tool"] == "nsys"
    assert "Measured under nsys: nothing of this session serves as a baseline." in done.stderr
    launchgap("report", base, session, "-o", folder / "compared.html", code=0)
    assert "measured_under_tool" in (folder / "compared.html").read_text(), "what differs between sessions is said"
    # The same inputs as before: they come from seed and case.
    (before,) = [file[0] for file in records(base).values() if file[0]["process_config"] == "launch"]
    (after,) = [file[0] for file in records(session).values()]
    assert after["seed"] == before["seed"] and after["device"]["uuid"] == before["device"]["uuid"]


def test_a_tool_that_the_environment_does_not_show_is_named_all_the_same(investigate, tools):
    """nsys may set its variables only once its capture range has begun."""
    done, folder = investigate(MATMUL, "--tool", "nsys", path=tools("nsys"), STAND_IN="unseen")
    session = folder / "nsys-session"
    (run,) = table(session / "runs.csv")
    assert run["measured_under_tool"] == "nsys"
    (method,) = {row["method"] for row in table(session / "summary.csv")}
    assert method.endswith("not from behind a gate since a tool watches")
    assert done.returncode == 0, done.stderr
    assert f"{MATMUL}, NVIDIA A100-SXM4-80GB: 30 of 30 samples are in the report" in done.stdout


def test_ncu_profiles_it_and_no_kernel_waits_for_the_host(investigate, tools, tmp_path):
    """On a node that serialises as ncu does: a launch returns when its kernel is over."""
    node = json.loads((NODES / "one_a100.json").read_text()) | {"serialised": True}
    (tmp_path / "node.json").write_text(json.dumps(node))
    done, folder = investigate(MATMUL, "--tool", "ncu", path=tools("ncu"), node=tmp_path / "node.json")
    assert done.returncode == 0, done.stderr
    assert str(folder / "ncu.ncu-rep") in done.stdout
    rows = table(folder / "ncu-session" / "summary.csv")
    assert {(row["status"], row["metric"]) for row in rows} == {("ok", "device_ns"), ("ok", "tflops")}
    assert all("not from behind a gate" in row["method"] for row in rows)
    (run,) = table(folder / "ncu-session" / "runs.csv")
    assert run["measured_under_tool"] == "ncu"


def test_whichever_tool_is_there_is_taken(investigate, tools):
    done, folder = investigate(IDLE, path=tools("ncu"))
    assert done.returncode == 0, done.stderr
    assert (folder / "ncu.ncu-rep").exists() and not (folder / "nsys-session").exists()


# --- the command lines alone ---


@pytest.mark.parametrize("arguments", [["--tool", "none"], []], ids=["none", "no tool in PATH"])
def test_without_a_tool_the_command_lines_are_printed(investigate, tools, arguments):
    done, folder = investigate(IDLE, *arguments)
    assert done.returncode == 0, done.stderr
    assert not folder.exists()
    assert ("Neither nsys nor ncu is in PATH" in done.stderr) == (not arguments)
    lines = [shlex.split(line, comments=True) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines if line] == ["mkdir", "nsys", "nsys", str(LAUNCHGAP), "mkdir", "ncu"]


def test_the_printed_lines_do_what_the_command_does(investigate, tools, lock_dir):
    path = tools("nsys", "ncu")
    done, folder = investigate(IDLE, "--tool", "none", path=path)
    env = environment(NODES / "one_a100.json", PATH=f"{path}:/usr/bin:/bin", LAUNCHGAP_LOCK_DIR=str(lock_dir))
    pasted = subprocess.run(["sh", "-e", "-c", done.stdout], env=env, capture_output=True, text=True, timeout=240)
    assert pasted.returncode == 0, pasted.stderr
    assert "What moved is the queue" in pasted.stdout
    assert len(table(folder / "joined.csv")) == 10_000
    for tool in ("nsys", "ncu"):
        (run,) = table(folder / f"{tool}-session" / "runs.csv")
        assert run["measured_under_tool"] == tool


def test_the_lines_of_a_device_that_is_elsewhere_are_printed_and_not_run(investigate, tools, make_node):
    elsewhere = make_node(uuid="GPU-bbbb1111-fa4e-4000-8000-000000000001")
    path = tools("nsys")
    done, _ = investigate(IDLE, "--tool", "nsys", path=path, node=elsewhere)
    assert done.returncode == 2
    assert "is not on this machine; --tool none prints the command lines" in done.stderr
    done, _ = investigate(IDLE, "--tool", "none", path=path, node=elsewhere)
    assert done.returncode == 0 and "--devices GPU-a0001111-" in done.stdout


def test_a_tool_that_was_named_and_is_not_there(investigate, tools):
    done, folder = investigate(IDLE, "--tool", "ncu", path=tools("nsys"))
    assert done.returncode == 3
    assert "there is no ncu in PATH" in done.stderr
    assert "ncu --nvtx --nvtx-include launchgap@measure/" in done.stdout and "nsys" not in done.stdout
    assert not folder.exists()


# --- what cannot be investigated ---


@pytest.mark.parametrize(
    "case, said",
    [
        ("launch/null/api:driver/mode:idel", f"has no case 'launch/null/api:driver/mode:idel'. The nearest: {IDLE}, "),
        ("launch/null", f"The nearest: {IDLE.replace('idle', 'burst')}, {IDLE}, "),
        ("", "has no case ''"),
        ("\x1b[31m", r"has no case '\x1b[31m'"),
        ("x" * 100_000, "has no case 'xxx"),
    ],
)
def test_a_case_that_the_session_does_not_have(investigate, case, said):
    done, folder = investigate(case, "--tool", "none")
    assert done.returncode == 2 and said in done.stderr
    assert not folder.exists()


def test_a_case_of_several_devices_needs_a_choice(run, make_node, investigate):
    node = make_node(devices=2)
    _, session = run("launch/null.*idle", node=node)
    done, _ = investigate(IDLE, "--tool", "none", session=session)
    assert done.returncode == 2 and "2 devices have" in done.stderr and "choose one by --device" in done.stderr
    uuids = [device["uuid"] for device in session_json(session)["devices"]]
    for choice in ("1", uuids[1]):
        done, _ = investigate(IDLE, "--tool", "none", "--device", choice, session=session)
        assert done.returncode == 0, done.stderr
        assert f"--devices {uuids[1]} " in done.stdout and uuids[0] not in done.stdout
    done, _ = investigate(IDLE, "--tool", "none", "--device", "7", session=session)
    assert done.returncode == 2 and "there is no device '7'" in done.stderr


def test_what_the_host_or_somebody_else_did_is_not_for_these_tools(investigate, measured, tmp_path):
    done, _ = investigate("launch/null/api:queue/mode:idle", "--tool", "none", session=measured)
    assert done.returncode == 2 and "--trace on" in done.stderr
    from recording_files import launches, write_nsys

    session = tmp_path / "imported"
    launchgap("import", write_nsys(tmp_path / "a.sqlite", launches(20)), "-o", session, code=0)
    done, _ = investigate("recorded/launch/stream:idle", "--tool", "none", session=session)
    assert done.returncode == 2
    assert "what somebody recorded" in done.stderr and "--format chrome-trace" in done.stderr


def test_a_session_that_does_not_say_how_it_was_measured(investigate, session, base, tmp_path):
    import shutil

    copy = shutil.copytree(base, tmp_path / "copy")
    for field, value, said in (
        ("seed", None, "lacks the seed or the profile"),
        ("seed", "seven", '"seed" is a string'),
        ("profile", "yearly", "there is no profile 'yearly'"),
    ):
        (copy / "session.json").write_text(json.dumps(session_json(base) | {field: value}))
        done, _ = investigate(IDLE, "--tool", "none", session=copy)
        assert done.returncode == 3 and said in done.stderr, (field, done.stderr)
    done, _ = investigate(IDLE, "--tool", "none", session=tmp_path)
    assert done.returncode == 2 and "no session.json" in done.stderr


def test_a_folder_that_is_in_use_is_not_written_to(investigate, tools, tmp_path):
    (tmp_path / "investigation").mkdir()
    (tmp_path / "investigation" / "mine").touch()
    done, folder = investigate(IDLE, "--tool", "nsys", path=tools("nsys"))
    assert done.returncode == 2 and "is not an empty folder" in done.stderr
    assert [entry.name for entry in folder.iterdir()] == ["mine"]


# --- tools that fail ---


@pytest.mark.parametrize(
    "how, said",
    [
        ("fails", "nsys exited with 64, and launchgap measured nothing under it: what it said stands above."),
        ("no-report", "nsys exited with 0 and wrote no "),
        ("killed", "nsys was killed by SIGKILL and wrote no "),
        ("no-export", "`nsys export` exited with 64 and wrote no "),
    ],
)
def test_a_tool_that_fails_is_one_line(investigate, tools, how, said):
    done, folder = investigate(IDLE, "--tool", "nsys", path=tools("nsys"), STAND_IN=how)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("launchgap: ")]
    assert said in line
    assert done.stdout == ""
    measured = (folder / "nsys-session" / "session.json").exists()
    assert measured == (how != "fails"), "what was measured is kept"
    if how == "no-export":
        assert f"join {folder / 'nsys.sqlite'} {folder / 'nsys-session'}" in done.stderr


def test_a_program_of_that_name_that_cannot_be_executed(investigate, tools):
    path = tools("nsys")
    (Path(path) / "nsys").write_text("no program")
    done, _ = investigate(IDLE, "--tool", "nsys", path=path)
    assert done.returncode == 3
    assert "cannot be executed" in done.stderr or "exited with" in done.stderr


def test_a_case_that_fails_under_the_tool_is_a_failure(investigate, tools, make_node):
    faults = [{"library": "cuda", "call": "cuLaunchKernelEx", "after": 4000, "code": 700}]
    node = make_node(faults=faults, uuid="GPU-a0001111-fa4e-4000-8000-000000000001")
    description = json.loads(node.read_text())
    description["devices"][0]["uuid"] = json.loads((NODES / "one_a100.json").read_text())["devices"][0]["uuid"]
    node.write_text(json.dumps(description))
    done, folder = investigate(IDLE, "--tool", "nsys", path=tools("nsys"), node=node)
    assert done.returncode == 3
    assert "nsys exited with 3: it, or the run that it watched, failed and said why above" in done.stderr
    assert (folder / "nsys-session" / "summary.csv").exists()


def test_ctrl_c_ends_the_tool_and_what_was_measured_is_kept(base, tools, tmp_path, lock_dir):
    folder = tmp_path / "investigation"
    env = environment(
        NODES / "one_a100.json", PATH=f"{tools('nsys')}:/usr/bin:/bin", STAND_IN="waits", LAUNCHGAP_LOCK_DIR=str(lock_dir)
    )
    command = [LAUNCHGAP, "investigate", base, IDLE, "--tool", "nsys", "-o", folder]
    process = subprocess.Popen(
        [*map(str, command)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    until = time.monotonic() + 60
    while not (folder / "nsys.waits").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 5, err
    assert f"Stopped early; what was measured is in {folder}." in err and out == ""
    assert (folder / "nsys-session" / "summary.csv").exists()
    assert not still_running(str(folder))


def still_running(word):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


# --- under a tool, started by hand ---


def test_a_run_that_is_said_to_be_under_a_tool_is_not_traced(run, make_node):
    faults = [{"library": "cupti", "call": "cuptiSubscribe", "after": 0, "abort": True}]
    _, session = run("launch/null.*idle", "--under", "nsys", trace="auto", node=make_node(faults=faults))
    (row,) = table(session / "runs.csv")
    assert (row["measured_under_tool"], row["arm"]) == ("nsys", "plain")
    assert "investigates" not in session_json(session)
    for wrong in (["--under", "gdb"], ["--under", "ncu", "--trace", "on"]):
        assert launchgap("run", *wrong, "--dry-run").returncode == 2


@pytest.mark.parametrize("variables", [{"NV_NSIGHT_INJECTION_PORT_BASE": "1"}, {}], ids=["under ncu", "nobody watches"])
def test_where_kernels_are_serialised_nothing_waits_for_the_host_if_a_tool_is_seen(run, make_node, variables):
    """`ncu launchgap run …` by hand. Without a tool in sight a gate waits for its time-out: so the node does serialise."""
    node = make_node(whole={"serialised": True})
    done, session = run(f"launch/(echo|flag)|{MATMUL}|launch/chain.*mode:eager/", code=None, node=node, **variables)
    rows = table(session / "summary.csv")
    statuses = {row["benchmark"]: (row["status"], row["reason"], row["method"]) for row in rows}
    assert statuses["launch/flag"][0] == "ok"
    if not variables:
        assert done.returncode == 3
        assert {name for name, row in statuses.items() if row[0] == "invalid"} >= {"matmul/library", "launch/echo"}
        return
    assert done.returncode == 0, done.stderr
    assert statuses["launch/echo"][0] == "unsupported" and "its kernel waits for the host" in statuses["launch/echo"][1]
    for name in ("matmul/library", "launch/chain"):
        assert statuses[name][0] == "ok" and "not from behind a gate" in statuses[name][2]
    worker = launchgap(
        *("worker", "--device", table(session / "devices.csv")[0]["uuid"], f"--benchmark_filter={MATMUL}"),
        node=node,
        **variables,
    )
    assert worker.returncode == 0, "by hand, for a debugger or Nsight: " + worker.stdout
    (run_row,) = {row["measured_under_tool"] for row in table(session / "runs.csv")}
    assert run_row == "ncu"
