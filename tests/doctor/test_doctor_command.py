"""`launchgap doctor` as users call it: programs that are watched, programs that run, questions, wrong usage, time."""

import contextlib
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from doctor_process import doctor, environment, started
from sick_machine import A100, BUILD, H100, K40M, LAUNCHGAP, NODES, causes

PROGRAMS = BUILD / "doctor_programs"
ACTS = PROGRAMS / "doctor_acts"
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def watched(machine, *command, options=(), **more):
    """(process, answer) of `doctor -- COMMAND`, the answer from a file of its own."""
    file = machine.root / "verdict.json"
    file.unlink(missing_ok=True)
    done = doctor(machine, "--json", "-o", file, *options, "--", *command, **more)
    return done, json.loads(file.read_text()) if file.exists() and file.stat().st_size else None


def codes(answer):
    return [finding["code"] for finding in answer["findings"]]


@contextlib.contextmanager
def running(machine, *acts, **variables):
    """A program that is running, with what it printed first."""
    process = subprocess.Popen(
        [ACTS, *acts, "await", str(signal.SIGUSR1)], env=environment(machine, **variables), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- a program passes through -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "exit 77"], 77),
        (["sh", "-c", "exit 255"], 255),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], 128 + signal.SIGKILL),
        ([ACTS, "signal", str(int(signal.SIGSEGV))], 128 + signal.SIGSEGV),
        (["no-such-command-at-all"], 127),
        (["/none/at/all"], 127),
        (["/"], 126),
        ([__file__], 126 if not os.access(__file__, os.X_OK) else 0),
    ],
)
def test_exit_code(machine, command, code):
    done = doctor(machine, "--", *command)
    assert done.code == code, done.err
    assert done.out == b""
    if code in (126, 127):
        assert done.err.count(b"\n") == 1 and done.err.startswith(b"launchgap: "), done.err
    else:
        assert done.err.startswith(b"\nlaunchgap doctor: "), done.err


def test_output_and_errors_are_untouched(machine):
    everything = bytes(range(256)) * 300
    done, answer = watched(machine, "cat", stdin=everything)
    assert done.out == everything and done.err == b"" and codes(answer) == ["program-never-asks"]
    done, _ = watched(machine, "sh", "-c", "cat >&2", stdin=everything)
    assert done.err == everything and done.out == b""
    done, _ = watched(machine, ACTS, "print", str(8 << 20))
    assert len(done.out) == 8 << 20 and done.err == b""


def test_arguments_are_untouched(machine):
    # CLI11 reads "[1,2]" as two words and "[]" as none.
    words = ["[1,2]", "[]", "[[a]]", "", " ", "a,b", "--", "--json", "-o", "'x'", '"y"', "{z}", "%%", "++", "é"]
    show = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    done, _ = watched(machine, sys.executable, "-c", show, *words)
    assert done.out.decode().split("\0") == words


def test_a_programs_options_are_its_own_behind_an_option_that_may_have_a_value(machine, tmp_path):
    # CLI11 takes the mark behind "--json" for that option's.
    for place in ((), (tmp_path / "answer.json",)):
        done = doctor(machine, "--json", *place, "--", sys.executable, "-c", "print('ran')")
        assert done.code == 0 and done.out == b"ran\n", done.err


def test_a_pipe_that_nobody_reads_ends_a_program_as_always(machine):
    done, _ = watched(machine, "sh", "-c", "yes | head -n 1")
    assert (done.code, done.out, done.err) == (0, b"y\n", b"")


def test_signals_are_as_the_caller_has_them(machine):
    # Python would change some of them before it looks.
    show = ["grep", "^Sig[BI]", "/proc/self/status"]
    plain = subprocess.run(show, capture_output=True, check=True).stdout
    done, _ = watched(machine, *show)
    assert done.out == plain


def test_a_program_that_lives_on_is_not_waited_for_and_not_disturbed(machine, tmp_path):
    late = tmp_path / "late"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = f"(sleep 0.7; /bin/echo late; /bin/echo later >&2) >{late} 2>&1 & exit 5"
    done, answer = watched(machine, "sh", "-c", script, TMPDIR=str(temporary))
    assert done.code == 5 and done.seconds < 0.6
    assert "still run" in " ".join(answer["program"]["limitations"])
    deadline = time.monotonic() + 10
    while "later" not in (late.read_text() if late.exists() else "") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert late.read_text() == "late\nlater\n"
    # What its loader writes to stays for it, and is named.
    (kept,) = temporary.iterdir()
    assert str(kept) in " ".join(answer["program"]["limitations"])
    shutil.rmtree(kept)


@needs_root
def test_a_program_that_becomes_another_user_is_not_disturbed(machine):
    done, _ = watched(machine, *AS_NOBODY, "/bin/echo", "hi")
    assert (done.code, done.out, done.err) == (0, b"hi\n", b"")


def test_ctrl_c_of_a_terminal_ends_the_program_and_not_the_verdict(machine):
    verdict = machine.root / "verdict.json"
    variables = environment(machine)
    pid, terminal = pty.fork()
    if pid == 0:
        command = [LAUNCHGAP, "doctor", "--json", "-o", verdict, "--", ACTS, "await", str(int(signal.SIGINT))]
        os.execve(command[0], list(map(os.fspath, command)), variables)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 40 + signal.SIGINT
    answer = json.loads(verdict.read_text())
    assert answer["program"]["exit_code"] == 40 + signal.SIGINT


@pytest.mark.parametrize("to_group", [False, True])
def test_a_signal_from_outside_reaches_the_program(machine, to_group):
    process = started(machine, "--", "sh", "-c", "echo ready; exec sleep 30", start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGINT
    assert b"launchgap doctor: " in err


# --- what a program did -------------------------------------------------------------------------


def without_driver(machine):
    machine.no_module()
    machine.no_driver_library()
    machine.gpu("0000:07:00.0", H100, bound=None)


def shadowed_by_a_stub(machine):
    machine.environment["LD_LIBRARY_PATH"] = f"{PROGRAMS / 'stubs'}:{machine.lib}"


def hidden(machine):
    machine.environment["CUDA_VISIBLE_DEVICES"] = ""


def mismatched(machine):
    machine.driver("575.51.03")
    machine.fault("cuda", "cuInit", 803)


def healthy(machine):
    pass


@pytest.mark.parametrize(
    ("breaks", "acts", "use", "code"),
    [
        (healthy, ["init", "context", "sleep", "1000"], "on-gpu", "program-uses-gpu"),
        (healthy, ["fork", "2", "init", "context", "sleep", "1000"], "on-gpu", "program-uses-gpu"),
        (healthy, ["open", "libcusolver.so.10"], "on-cpu-silently", "program-library-missing"),
        (healthy, ["need", "libcusolver.so.10"], "on-cpu", "program-library-missing"),
        (shadowed_by_a_stub, ["init", "context", "sleep", "1000"], "on-cpu-silently", "program-library-shadowed"),
        (healthy, ["sleep", "50"], "on-cpu", "program-never-asks"),
        (healthy, ["init", "sleep", "1000"], "on-cpu-silently", "program-has-no-context"),
        # What is wrong with the machine comes before what the program shows of it.
        (without_driver, ["init", "context", "sleep", "50"], "on-cpu-silently", "no-driver"),
        (without_driver, ["need", "libcuda.so.1"], "on-cpu", "no-driver"),
        (hidden, ["init", "context", "sleep", "1000"], "on-cpu-silently", "hidden-by-cuda-visible-devices"),
        (mismatched, ["init", "context", "sleep", "1000"], "on-cpu-silently", "driver-mismatch"),
        # And a program that never asked is not explained by it.
        (without_driver, ["sleep", "50"], "on-cpu", "program-never-asks"),
    ],
)
def test_one_finding_about_a_program(machine, breaks, acts, use, code):
    breaks(machine)
    done, answer = watched(machine, ACTS, *acts)
    assert (answer["use"], codes(answer)) == (use, [code]), answer
    assert done.code == (3 if acts[0] == "need" else 0)
    assert done.out == b""
    if use == "on-cpu-silently":
        assert answer["findings"][0]["severity"] != "note" and answer["findings"][0]["remedy"]


def test_the_answer_goes_to_standard_error(machine):
    done = doctor(machine, "--", ACTS, "init", "context", "sleep", "1000")
    assert done.out == b"" and b"It was on the GPU." in done.err and b"\x1b" not in done.err
    done = doctor(machine, "--json", "--", ACTS, "sleep", "1")
    assert done.out == b"" and json.loads(done.err)["use"] == "on-cpu"


def test_a_verdict_that_cannot_be_written_is_said_before_the_program_starts(machine, tmp_path):
    done = doctor(machine, "-o", "/none/at/all", "--", "touch", tmp_path / "began")
    assert done.code == 3 and done.err == b"launchgap: /none/at/all cannot be written: No such file or directory\n"
    assert not (tmp_path / "began").exists()
    # And what fails later does not change the program's exit code.
    done = doctor(machine, "-o", "/dev/full", "--", "sh", "-c", "exit 9")
    assert done.code == 9 and b"/dev/full cannot be written" in done.err


# --- a program that runs ------------------------------------------------------------------------


def test_a_running_program_on_the_gpu(machine):
    with running(machine, "init", "context") as process:
        done = doctor(machine, "--json", "--pid", process.pid)
        assert done.code == 0 and done.answer["use"] == "on-gpu" and codes(done.answer) == ["program-uses-gpu"]
        assert b"It is on the GPU." in doctor(machine, "--pid", process.pid).out


def test_a_running_program_is_asked_about_in_its_own_environment(machine, tmp_path):
    with running(machine, "init", CUDA_VISIBLE_DEVICES="") as process:
        done = doctor(machine, "--json", "--pid", process.pid)
        assert codes(done.answer) == ["hidden-by-cuda-visible-devices"] and done.code == 3
    with running(machine, "init") as process:
        done = doctor(machine, "--json", "--pid", process.pid, CUDA_VISIBLE_DEVICES="")
        assert codes(done.answer) == ["program-has-no-context"]
    # It took the stub, and the one who asks would not.
    with running(machine, "init", LD_LIBRARY_PATH=str(PROGRAMS / "stubs")) as process:
        assert codes(doctor(machine, "--json", "--pid", process.pid).answer) == ["program-library-shadowed"]
    # The other way round: the variables of the one who asks are not the program's.
    machine.fault("cuda", "cuInit", 803)
    with running(machine, "init") as process:
        done = doctor(machine, "--json", "--pid", process.pid, LD_LIBRARY_PATH=str(tmp_path))
        assert codes(done.answer) == ["driver-mismatch"], done.answer


def test_a_variable_of_the_one_who_asks_that_nobody_could_carry(machine):
    with running(machine, "init") as process:
        done = doctor(machine, "--json", "--pid", process.pid, **{"CUDA_\udcff\x1b": "1"})
        assert codes(done.answer) == ["program-has-no-context"], done.answer


def ended():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("pid", "code", "why"),
    [
        ("0", 2, "a positive number"),
        ("-5", 2, "a positive number"),
        ("python", 2, "a positive number"),
        ("", 2, "--pid"),
        ("99999999999999999999", 2, "4194304"),
        ("\x1b[31m1", 2, "\\x1b[31m1"),
        (ended, 3, "there is no process"),
    ],
)
def test_what_is_no_process(machine, pid, code, why):
    done = doctor(machine, f"--pid={pid() if callable(pid) else pid}")
    assert done.code == code and why in done.err.decode() and done.err.count(b"\n") == 1, done.err
    assert b"\x1b" not in done.err and done.out == b""


def test_a_zombie(machine):
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    done = doctor(machine, "--pid", process.pid)
    process.wait()
    assert done.code == 3 and b"zombie" in done.err


@needs_root
def test_another_users_process(machine, tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/" and folder != pathlib.Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    with running(machine, "init") as process:
        done = doctor(machine, "--pid", process.pid, command=AS_NOBODY)
    assert done.code == 3 and b"belongs to another user (uid 0)" in done.err, done.err


# --- questions ----------------------------------------------------------------------------------


def with_k40m(machine):
    machine.gpu("0000:07:00.0", K40M)
    machine.node["devices"][0] |= {"name": "Tesla K40m", "compute_capability": "3.5"}
    machine.node["driver_version"] = 11040
    machine.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu")
    machine.driver("470.256.02")


def without_gpu(machine):
    machine.no_gpu()
    machine.no_module()
    for file in machine.lib.iterdir():
        file.unlink()


def gpu_without_driver(machine):
    machine.no_module()
    machine.no_driver_library()
    (machine.lib / "libnvidia-ml.so.1").unlink()
    machine.gpu("0000:07:00.0", A100, bound=None)


@pytest.mark.parametrize(
    ("machine_is", "question", "code", "says"),
    [
        (with_k40m, ["--for", "tensorflow==2.18.0"], "framework-has-no-code-for-gpu", "on the CPU without an error"),
        (healthy, ["--for", "tensorflow==2.18.0", "--gpu", "K40m"], "framework-has-no-code-for-gpu", "on the CPU"),
        (healthy, ["--for", "tensorflow==1.7.0", "--gpu", "K40m"], "framework-cpu-only", "tensorflow-gpu has"),
        (healthy, ["--for", "tensorflow-gpu==1.7.0", "--gpu", "K40m"], None, ""),
        (healthy, ["--for", "tensorflow==2.4.0", "--gpu", "K40m"], None, ""),
        (healthy, ["--for", "tensorflow==2.4.0", "--gpu", "K20m"], None, ""),
        (healthy, ["--for", "tensorflow==2.4.0", "--cuda", "11.1"], "framework-library-missing", "libcusolver.so.10"),
        (healthy, ["--for", "tensorflow==1.7.0", "--cuda", "9.1"], "framework-library-missing", "libcublas.so.9.0"),
        (
            healthy,
            ["--for", "tensorflow==2.5.0", "--gpu", "V100", "--cuda", "11.2", "--cudnn", "8.0.5"],
            "framework-cudnn-mismatch",
            "cuDNN 8.1",
        ),
        (healthy, ["--for", "torch==2.3+cu121", "--driver", "none"], "framework-needs-driver", "no NVIDIA driver"),
        (healthy, ["--for", "torch==2.8+cu128", "--gpu", "V100"], None, ""),
        (healthy, ["--for", "torch==2.8+cu128", "--gpu", "K80"], "framework-has-no-code-for-gpu", "K80 (3.7)"),
        (without_gpu, ["--for", "tensorflow==2.4.0"], "no-gpu", "computes on the CPU"),
        (without_gpu, ["--for", "torch==2.3+cu121"], "no-gpu", "computes on the CPU"),
        (healthy, ["--for", "torch==99.0"], "framework-version-unknown", "is in no table"),
        (healthy, ["--gpu", "V100", "--gpu", "K80"], None, ""),
    ],
)
def test_would_a_framework_use_the_gpu(machine, machine_is, question, code, says):
    machine_is(machine)
    done = doctor(machine, "--json", *question)
    answer = done.answer
    assert codes(answer) == ([code] if code else []), answer["findings"]
    assert done.code == (3 if causes(answer) else 0)
    assert says in " ".join(finding["sentence"] for finding in answer["findings"]), answer["findings"]
    shown = doctor(machine, *question)
    assert shown.code == done.code and shown.out and b"\x1b" not in shown.out


def test_a_framework_on_a_machine_without_a_driver(machine):
    gpu_without_driver(machine)
    done = doctor(machine, "--json", "--for", "torch==2.3+cu121")
    assert causes(done.answer) == ["framework-needs-driver"] and done.code == 3, done.answer["findings"]


def test_installed_frameworks_are_read_and_not_imported(machine):
    for package, version in (("torch", "2.3.0+cu121"), ("tensorflow", "2.18.0")):
        folder = f"/venv/lib/python3.11/site-packages/{package}"
        machine.write(f"{folder}-{version}.dist-info/METADATA", f"Name: {package}\nVersion: {version}\n")
        machine.write(f"{folder}/__init__.py", "raise SystemExit('it was imported')")
    machine.write("/venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n")
    machine.write("/venv/bin/python3", "\x7fELF").chmod(0o755)
    venv = {"VIRTUAL_ENV": "/venv"}
    for framework, version in (("torch", "2.3"), ("tensorflow", "2.18.0")):
        done = doctor(machine, "--json", "--for", framework, **venv)
        assert version in done.answer["subject"] and "/venv/lib" in " ".join(done.answer["notes"]), done.answer
        assert b"imported" not in done.out + done.err
    done = doctor(machine, "--json", "--for", "torch", "--gpu", "K80", **venv)
    assert causes(done.answer) == ["framework-has-no-code-for-gpu"]


# --- the rest of the command line ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pid", "1", "--for", "torch"], "one at a time"),
        (["--pid", "1", "--session", "x"], "one at a time"),
        (["--explain", "no-gpu", "--session", "x"], "one at a time"),
        (["--explain", "no-gpu", "--", "true"], "one at a time"),
        (["--for", "torch", "--", "true"], "one at a time"),
        (["--for", "torch", "--no-prove"], "the machine as a whole"),
        (["--require-gpu", "--pid", "1"], "the machine as a whole"),
        (["--for", ""], "needs a value"),
        (["--explain", ""], "needs a value"),
        (["--session", ""], "needs a value"),
        (["-o", ""], "needs a value"),
        (["--gpu", ""], "needs a value"),
        (["--", ""], "launchgap doctor -- python train.py"),
        (["true"], "put `--` in front"),
        (["--explain", "no-such-code"], "no finding has the code 'no-such-code'"),
        (["--explain", "\x1b[2J"], "\\x1b[2J"),
        (["--for", "caffe"], "is no known framework"),
        (["--for", "torch==2.3+rocm6"], "torch"),
        (["--for", "torch==\x1b[2J"], "torch"),
        (["--for", "torch" * 5000], "is too long"),
        (["--gpu", "Quux 9000"], "no table has a GPU 'Quux 9000'"),
        (["--gpu", "\x1b[2J"], "no table has a GPU"),
        (["--driver", "470"], "--driver needs --for or --gpu"),
        (["--cudnn", "8"], "--cudnn needs --for or --gpu"),
        (["--for", "torch>=2.0,<2.0"], "no version meets all"),
        (["--gpu", "99.9"], "known are 2.0 to"),
        (["--cuda", "99.9"], "in no table"),
        (["--cuda", "1e9"], "no version"),
        (["--driver", "9" * 40], "no version"),
        (["--driver", "390", "--cuda", "12.4"], "do not go together"),
        (["--cudnn", "8.x"], "no version"),
        (["--unknown"], "--help"),
    ],
)
def test_wrong_usage_is_one_clear_line(machine, arguments, says):
    done = doctor(machine, *arguments)
    assert done.code == 2 and done.out == b"", done
    assert says in done.err.decode() and done.err.count(b"\n") == 1 and len(done.err) < 2000, done.err
    assert b"\x1b" not in done.err


def test_help_has_examples(machine):
    done = doctor(machine, "--help")
    assert done.code == 0 and b"doctor -- python train.py" in done.out and b"Exit codes" in done.out


def test_a_page_is_shown_written_and_given_as_json(machine, tmp_path):
    page = doctor(machine, "--explain", "no-driver").out
    assert page.startswith(b"# no-driver: ") and b"## What to do" in page
    file = tmp_path / "page"
    assert doctor(machine, "--explain", "no-driver", "-o", file).out == b"" and file.read_bytes() == page
    assert doctor(machine, "--explain", "no-driver", "--json").answer["page"].encode() == page


def test_a_session_that_is_none(machine, tmp_path):
    for session in (tmp_path, tmp_path / "none"):
        done = doctor(machine, "--session", session)
        assert done.code in (2, 3) and done.out == b"" and done.err.count(b"\n") == 1, done.err


def test_a_gpu_can_be_required(machine):
    assert doctor(machine, "--no-prove", "--require-gpu").code == 0
    hidden(machine)
    assert doctor(machine, "--no-prove", "--require-gpu").code == 77
    without_gpu(machine)
    assert doctor(machine, "--no-prove").code == 0
    assert doctor(machine, "--no-prove", "--require-gpu").code == 77


def test_an_answer_in_a_file(machine, tmp_path):
    file = tmp_path / "answer.json"
    done = doctor(machine, "--no-prove", "--json", "-o", file)
    assert done.out == b"" and json.loads(file.read_text())["usable_gpus"] == 1
    for nowhere, why in (
        ("/none/at/all", "No such file or directory"),
        (tmp_path, "Is a directory"),
        ("/dev/full", "No space left on device"),
    ):
        done = doctor(machine, "--no-prove", "-o", nowhere)
        assert done.code == 3 and done.err == f"launchgap: {nowhere} cannot be written: {why}\n".encode(), done


def test_an_answer_that_nobody_takes(machine):
    variables = environment(machine)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [LAUNCHGAP, "doctor", "--no-prove"], stdout=full, stderr=subprocess.PIPE, env=variables, timeout=30
        )
    assert done.returncode == 3 and b"cannot be written" in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [LAUNCHGAP, "doctor", "--no-prove"], stdout=write, stderr=subprocess.PIPE, env=variables, timeout=30
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def on_terminal(machine, *arguments, **variables):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(LAUNCHGAP, [str(LAUNCHGAP), "doctor", *arguments], environment(machine, **variables))
    shown = b""
    with contextlib.suppress(OSError):  # its end
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


def test_colours_are_for_terminals_that_want_them(machine):
    machine.fault("cuda", "cuInit", 999)
    assert b"\x1b[1;31m" in on_terminal(machine, "--no-prove")
    assert b"\x1b" not in on_terminal(machine, "--no-prove", NO_COLOR="1")
    assert b"\x1b" not in doctor(machine, "--no-prove").out
    # Others do not colour or move anything.
    machine.environment |= {"CUDA_VISIBLE_DEVICES": "\x1b[2J\x1b]0;title\x07", "CUDA_HOME": "/\x1b[2J"}
    assert b"\x1b[2J" not in on_terminal(machine, "--no-prove", "-v")


# --- time ---------------------------------------------------------------------------------------

NOISE = 2.0  # of two busy processors


def fake_node(machine):
    machine.node = json.loads((NODES / "mixed_8_gpus.json").read_text()) | {"faults": []}
    shutil.rmtree(machine.root / "sys")
    for i, device in enumerate(machine.node["devices"]):
        device.setdefault("pci", f"0000:{i + 1:02x}:00.0")
        machine.gpu(device["pci"], A100)
        machine.write(f"/dev/nvidia{i}", "")


def hanging_library(machine):
    source = "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { pause(); }"
    machine.make_library("libnccl.so.2", source)


@pytest.mark.compares_times
@pytest.mark.parametrize(("slow", "arguments", "limit"), [
    (fake_node, ["--no-prove"], 2),
    (fake_node, [], 12),
    (hanging_library, ["--no-prove"], 2),
    (hanging_library, [], 12),
])  # fmt: skip
def test_time(machine, slow, arguments, limit):
    slow(machine)
    done = doctor(machine, "--json", *arguments)
    answer = done.answer
    print(f"{slow.__name__} {arguments}: {done.seconds:.2f} s, by its own account {answer['seconds']:.2f} s")
    assert done.seconds < limit + NOISE
    assert answer["usable_gpus"] == (8 if slow is fake_node else 1)


@pytest.mark.compares_times
def test_ctrl_c_leaves_nothing_behind(machine, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    machine.fault("cuda", "cuInit", hang=True)
    process = started(machine, "--no-prove", variables={"TMPDIR": str(temporary)}, start_new_session=True)
    deadline = time.monotonic() + 10
    while not list(temporary.glob("*/*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    begin = time.monotonic()
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT and time.monotonic() - begin < 3
    assert list(temporary.iterdir()) == []


def test_few_descriptors_and_processes_are_no_crash(machine):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

    done = subprocess.run(
        [LAUNCHGAP, "doctor", "--json", "--no-prove"],
        env=environment(machine),
        capture_output=True,
        timeout=60,
        preexec_fn=limit,
    )
    assert done.returncode in (0, 3) and json.loads(done.stdout)
