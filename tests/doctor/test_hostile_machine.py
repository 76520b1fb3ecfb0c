"""A machine that lies: whatever files, environment and libraries hold, the doctor answers in time."""

import json
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import time

import pytest
from doctor_process import doctor, environment
from sick_machine import DRIVER, LAUNCHGAP, Machine

GPU = "/sys/bus/pci/devices/0000:07:00.0"
SANITIZED = "sanitize" in str(LAUNCHGAP)
SECONDS = 20 if SANITIZED else 6  # for one answer, of a busy machine


def texts(value):
    """Every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)


def is_control(character):
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0


def check(machine, code, out, err):
    """What holds for every answer; the answer itself."""
    assert code in (0, 3, 77), (code, err[-2000:])
    # A sanitizer's words, of the doctor itself or as the end of one of its probes.
    assert not re.search(rb"runtime error|-overflow on|use-after|buffer-overflow", err + out), (err + out)[-4000:]
    text = out.decode()  # or it is no UTF-8
    assert not any(is_control(c) for c in text if c != "\n")
    answer = json.loads(text)
    assert not [t for t in texts(answer) if any(map(is_control, t))]
    assert list((machine.root.parent / "tmp").glob("*")) == []
    until = time.monotonic() + 2  # what was killed takes its time
    while left_running(machine) and time.monotonic() < until:
        time.sleep(0.02)
    assert left_running(machine) == []
    return answer


def left_running(machine):
    """The command lines of processes that still have this machine in their environment."""
    mark = b"LAUNCHGAP_SYSTEM_ROOT=" + os.fsencode(machine.root) + b"\0"
    left = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_bytes())
        except OSError:
            pass
    return left


def survives(machine, *arguments, seconds=SECONDS, **variables):
    temporary = machine.root.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    done = doctor(machine, "--json", *(arguments or ["--no-prove"]), **({"TMPDIR": str(temporary)} | variables))
    assert done.seconds < seconds, done.seconds
    return check(machine, done.code, done.out, done.err)


# --- lies in files ------------------------------------------------------------------------------


def replace(machine, path):
    """An empty place to put a lie; an earlier one can be in the way."""
    file = machine.root / path.lstrip("/")
    for folder in [*reversed(file.relative_to(machine.root).parents)][1:]:
        above = machine.root / folder
        if above.is_symlink() or (above.exists() and not above.is_dir()):
            above.unlink()
        above.mkdir(exist_ok=True)
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)
    return file


def content(data):
    return lambda file: file.write_bytes(data)


def sparse(file):
    with open(file, "wb") as huge:
        huge.truncate(1 << 40)


def folder_of_folders(file):
    (file / "deeper" / "deeper").mkdir(parents=True)


def unreadable(file):
    file.write_text("secret")
    file.chmod(0)


NUMBERS = (b"-1", b"0", b"255", b"99999999999999999999999999", b"1e308", b"0x", b"0xffffffffffffffffffff", b"NaN")
LIES = {
    "nothing": content(b""),
    "blanks": content(b" \t\n" * 20000),
    "zeros": content(bytes(5000)),
    "sparse": sparse,
    "long line": content(b"A" * 2_000_000),
    "escapes": content(b"\x1b[2J\x1b]0;title\x07\x9b31m\r\x08" * 20),
    "no UTF-8": content(b"\xff\xfe\xc0\x80\xed\xa0\x80" * 50),
    "right to left": content("\u202e\u2066gpj.exe\u200b".encode() * 50),
    "itself": lambda file: file.symlink_to(file.name),
    "nowhere": lambda file: file.symlink_to("/none/at/all"),
    "endless": lambda file: file.symlink_to("/dev/zero"),
    "random": lambda file: file.symlink_to("/dev/urandom"),
    "full": lambda file: file.symlink_to("/dev/full"),
    "up": lambda file: file.symlink_to("."),
    "pipe": os.mkfifo,
    "socket": lambda file: os.mknod(file, stat.S_IFSOCK | 0o666),
    "folder": folder_of_folders,
    "unreadable": unreadable,
    "brackets": content(b"[" * 60000),
    "json": content(b'{"cuda": {"version": "99999999999.1e9.\\u001b[2J"}}'),
    "library": content(b"\x7fELF" + b"\xff" * 200),
} | {f"number {n.decode()}": content(n + b"\n") for n in NUMBERS}

PLACES = [
    "/proc", "/proc/modules", "/proc/driver/nvidia", "/proc/driver/nvidia/version", "/proc/driver/nvidia/params",
    "/proc/driver/nvidia/gpus/0000:07:00.0/information", "/proc/1/cgroup", "/sys", "/sys/bus/pci/devices", GPU,
    f"{GPU}/vendor", f"{GPU}/class", f"{GPU}/device", f"{GPU}/driver", f"{GPU}/current_link_width",
    f"{GPU}/max_link_speed", "/dev", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia9999",
    "/dev/kmsg", "/dev/dxg", "/etc/ld.so.cache", "/.dockerenv", "/run/.containerenv", "/usr/local/cuda",
    "/usr/local/cuda/version.json", "/usr/local/cuda/version.txt", "/usr/local/cuda/include/cuda.h",
    "/venv/pyvenv.cfg", "/venv/bin/python3", "/venv/lib/python3.11/site-packages",
    "/venv/lib/python3.11/site-packages/x.pth", "/venv/lib/python3.11/site-packages/torch-2.3.0.dist-info/METADATA",
    "/venv/lib/python3.11/site-packages/torch/version.py",
]  # fmt: skip

TEXTS = [
    "", "-1", ",", "," * 50000, "0," * 20000, "99999999999999999999", "GPU-", "MIG-\x1b[2J",
    "\udcff\udcfe\x1b]0;x\x07", "/", ":" * 20000, ":".join(f"/none/{i}" for i in range(2000)),
    "/dev/null:/dev/zero:/proc/self/mem:.", "$ORIGIN:${LIB}:$PLATFORM", "\n\n\r", "A" * 60000, "\u202e\u2066",
    "../" * 1000, "'; exit 9; '", "%s%n{}{0}",
]  # fmt: skip
VARIABLES = [
    "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUDA_\x1b[2J", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_DEVICE_ORDER",
    "LD_LIBRARY_PATH", "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "HOME", "container", "LANG",
]  # fmt: skip

KINDS_OF_LIBRARY = ("libcudart.so.", "libcublas.so.", "libcudnn.so.", "libcupti.so.", "libnccl.so.")


@pytest.mark.parametrize("seed", range(24 if SANITIZED else 120))
def test_a_machine_of_random_lies(machine, seed):
    """Five places and two variables each, so a few hundred lies all in all."""
    chance = random.Random(seed)
    machine.write("/venv/bin/python3", "\x7fELF").chmod(0o755)
    machine.environment["VIRTUAL_ENV"] = "/venv"
    for _ in range(5):
        LIES[chance.choice(list(LIES))](replace(machine, chance.choice(PLACES)))
    if chance.random() < 0.5:
        name = chance.choice(KINDS_OF_LIBRARY) + chance.choice(["9", "12", "999999999", "1.2"])
        (machine.lib / name).unlink(missing_ok=True)
        LIES[chance.choice(list(LIES))](machine.lib / name)
    variables = {chance.choice(VARIABLES): chance.choice(TEXTS) for _ in range(2)}
    arguments = chance.choice([["--no-prove"], ["--no-prove"], ["--for", "torch"], ["--for", "tensorflow==2.4.0"]])
    survives(machine, *arguments, **variables)
    if seed % 4 == 0:
        shown = doctor(machine, *arguments, "-v", **variables)
        assert shown.code in (0, 3) and not any(is_control(c) for c in shown.out.decode() if c != "\n")


@pytest.mark.parametrize("lie", ["pipe", "socket", "folder", "itself", "sparse", "endless"])
def test_one_lie_everywhere(machine, lie):
    for place in reversed(PLACES):
        if not (machine.root / place.lstrip("/")).is_dir():
            LIES[lie](replace(machine, place))
    survives(machine)


def many_pci_devices(machine):
    for i in range(3000):
        machine.gpu(f"{i >> 8:04x}:{i & 255:02x}:00.0", 0x20B2)


def many_nodes(machine):
    for i in range(10_000):
        (machine.root / f"dev/nvidia{i}").touch()


def many_pipes_for_nodes(machine):
    for i in range(2000):
        os.mkfifo(machine.root / f"dev/nvidia{i + 1}")


def many_libraries(machine):
    for kind in KINDS_OF_LIBRARY:
        for i in range(400):
            (machine.lib / f"{kind}{i + 20}").symlink_to("/none")


def many_xids(machine):
    machine.write("/dev/kmsg", "NVRM: Xid (PCI:0000:07:00): 99999\n" * 200_000)


def much_of_nothing_after_a_name(machine):
    machine.write("/proc/driver/nvidia/gpus/0000:07:00.0/information", "Device Minor:" + " " * 65000 + "0")


def names_that_do_things(machine):
    for name in (b"\x1b[2J", b"\xff\xfe", b"0000:07:00.0\n\x1b[31m", b"..0000", b"%n%s"):
        folder = os.fsencode(machine.root) + b"/sys/bus/pci/devices/" + name
        os.mkdir(folder)
        for file, text in ((b"vendor", b"0x10de"), (b"class", b"0x030200"), (b"device", b"0x20b2")):
            with open(folder + b"/" + file, "wb") as out:
                out.write(text)
        os.symlink(b"../../drivers/\x1b[2J\xff", folder + b"/driver")
        os.symlink(b"/none", os.fsencode(machine.lib) + b"/libcudart.so." + name.replace(b"/", b""))
    machine.gpu("0000:08:00.0", 0x20B2, bound="\x1b[2J\udcff")
    machine.write("/dev/kmsg", "NVRM: Xid (PCI:0000:07:00): 13, \x1b[2J\x07 pid=1\n")


def versions_that_overflow(machine):
    machine.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA Kernel Module  99999999999.99999999999.1  x")
    machine.write("/usr/local/cuda/version.json", '{"cuda": {"version": "99999999999.99999999999"}}')
    machine.write("/usr/local/cuda/include/cuda.h", "#define CUDA_VERSION 99999999999999999999\n")
    shutil.move(machine.lib / f"libcuda.so.{DRIVER}", machine.lib / "libcuda.so.99999999999999999999.1")
    (machine.lib / "libcuda.so.1").unlink()
    (machine.lib / "libcuda.so.1").symlink_to("libcuda.so.99999999999999999999.1")
    machine.node |= {"driver_version": 2147483647, "cudnn_version": 2147483647, "cublas_version": 2147483647}


def everything_unreadable(machine):
    for path in (machine.root / "proc", machine.root / "sys", machine.root / "dev", machine.lib):
        path.chmod(0)


@pytest.mark.parametrize(
    "lie",
    [many_pci_devices, many_nodes, many_pipes_for_nodes, many_libraries, many_xids, much_of_nothing_after_a_name,
     names_that_do_things, versions_that_overflow],
)  # fmt: skip
def test_too_much_and_too_strange(machine, lie):
    lie(machine)
    survives(machine, seconds=4 * SECONDS if lie in (many_nodes, many_libraries) else SECONDS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folders_that_this_user_may_not_read(machine, tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/" and folder != pathlib.Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    everything_unreadable(machine)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o777)
    done = doctor(
        machine,
        "--json",
        "--no-prove",
        command=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        TMPDIR=str(tmp_path / "tmp"),
    )
    check(machine, done.code, done.out, done.err)


@pytest.mark.parametrize("root", ["/none/at/all", "/dev/null", "/dev/full", ".", "../..", "/proc/self/fd", "\x1b[2J\udcff"])
def test_a_root_that_is_none(machine, tmp_path, root):
    machine.environment["LAUNCHGAP_SYSTEM_ROOT"] = root
    survives(machine)


@pytest.mark.parametrize("kind", ["missing", "file", "not writable", "relative", "empty", "strange"])
def test_no_place_for_temporary_files(machine, tmp_path, kind):
    folder = tmp_path / "temporary"
    if kind == "file":
        folder.write_text("")
    elif kind == "not writable":
        folder.mkdir(mode=0o555)
    strange = {"relative": "not/there", "empty": "", "strange": "/\x1b[2J\udcff"}

    def folders():
        return set(pathlib.Path("/tmp").glob("launchgap-doctor-*"))

    before = folders()
    empty = tmp_path / "empty"
    empty.mkdir()
    done = doctor(machine, "--json", "--no-prove", cwd=empty, TMPDIR=strange.get(kind, str(folder)))
    answer = check(machine, done.code, done.out, done.err)
    assert answer["usable_gpus"] == 1
    assert list(empty.iterdir()) == []
    # Other tests make such folders at the same time; only what stays is left behind.
    left_behind = folders() - before
    deadline = time.monotonic() + 60
    while left_behind and time.monotonic() < deadline:
        time.sleep(0.2)
        left_behind &= folders()
    assert left_behind == set()


def test_no_space_for_temporary_files(machine, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    script = 'mount -t tmpfs -o size=4k none "$1" && head -c 4096 /dev/zero > "$1/x"; shift; exec "$@"'
    tried = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", folder, "true"], capture_output=True)
    if tried.returncode != 0 or b"mount" in tried.stderr:
        pytest.skip("a file system cannot be mounted here")
    mounted = ("unshare", "-rm", "sh", "-c", script, "sh", folder)
    done = doctor(machine, "--json", "--no-prove", command=mounted, TMPDIR=str(folder))
    assert check(machine, done.code, done.out, done.err)["usable_gpus"] == 1


# --- programs with strange names ----------------------------------------------------------------

STRANGE_WORDS = [b"\x1b[2J\xff", b"\n\r\x07", "\u202e".encode()]
STRANGE_VARIABLES = {"CUDA_HOME": "\x1b[2J\udcff", "PATH": "/bin:/\x1b"}


def test_a_strange_program_that_is_watched(machine, tmp_path):
    verdict = tmp_path / "verdict"
    command = ["sh", "-c", "sleep 0.1", *STRANGE_WORDS]
    done = doctor(machine, "--json", "-o", verdict, "--", *command, **STRANGE_VARIABLES)
    assert (done.code, done.out, done.err) == (0, b"", b"")
    check(machine, done.code, verdict.read_bytes(), done.err)
    shown = doctor(machine, "--", *command, **STRANGE_VARIABLES).err.decode()
    assert not any(is_control(c) for c in shown if c != "\n")


def test_a_strange_program_that_runs(machine):
    with subprocess.Popen(
        ["/bin/sleep", "60"], env={b"CUDA_VISIBLE_DEVICES": b"\x1b[2J\xff", b"LD_LIBRARY_PATH": b"/\xff\n:" * 5000}
    ) as process:
        try:
            survives(machine, "--pid", str(process.pid))
        finally:
            process.kill()


def test_no_place_for_what_the_loader_says_of_a_program(machine, tmp_path):
    for folder in ("/none/at/all", "/dev/null", "\x1b[2J"):
        done = doctor(machine, "--json", "--", "echo", "hi", cwd=tmp_path, TMPDIR=folder)
        assert done.code == 0 and done.out == b"hi\n", done
        check(machine, done.code, done.err, b"")


# --- libraries that do things -------------------------------------------------------------------

HEADER = """
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/wait.h>
static char words[4096];
#define LOADED __attribute__((constructor)) static void loaded(void)
"""
CUDA = """
int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cuInit(unsigned flags) { (void)flags; IN_INIT; return 0; }
"""

FORGED = '{"facts":{"devices":[5],"open_error":"x","path":[],"gpus":7,"code":0}}\n[]\n5\n{"at":9,"step":3}\nx\n'
AT_LOADING = {
    "exits": "exit(0);",
    "exits at once": "_exit(3);",
    "kills itself": "raise(SIGKILL);",
    "stops itself and goes on": "signal(SIGTERM, SIG_IGN);",
    "aborts": 'write(1, "\\033[2J\\377", 5); abort();',
    "closes everything": "for (int i = 0; i < 1024; ++i) close(i);",
    "closes everything and dies": "for (int i = 0; i < 1024; ++i) close(i); *(volatile int *)0 = 1;",
    "prints much": 'for (int i = 0; i < 20000; ++i) puts("\\033[2J words that nobody wants \\377"); fflush(stdout);',
    "leaves a process": "if (fork() == 0) { close(0); close(1); close(2); close(3); sleep(60); _exit(0); }",
    "leaves a process that prints": 'if (fork() == 0) { for (;;) { puts("x"); fflush(stdout); usleep(10000); } }',
    "overflows the stack": "volatile char big[16 << 20]; memset((char *)big, 1, sizeof big);",
    "forges messages": f"write(3, {json.dumps(FORGED)}, {len(FORGED)});",
    "forges a long message": "for (int i = 0; i < 4000; ++i) write(3, words, sizeof words);",
    "goes elsewhere": 'if (chdir("/")) {} clearenv();',
}


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnccl.so.2"])
@pytest.mark.parametrize("what", AT_LOADING)
def test_a_library_that_does_things_when_it_is_loaded(machine, what, name):
    if name == "libcuda.so.1":
        machine.no_driver_library()
    machine.make_library(name, f"{HEADER}LOADED {{ {AT_LOADING[what]} }}")
    answer = survives(machine)
    if what != "forges messages":  # who can do that is believed
        assert answer["usable_gpus"] == (0 if name == "libcuda.so.1" else 1)
    if what in ("exits", "exits at once", "kills itself", "closes everything and dies", "overflows the stack"):
        expected = "driver-library-broken" if name == "libcuda.so.1" else "library-broken"
        assert expected in [finding["code"] for finding in answer["findings"]], answer["findings"]


@pytest.mark.parametrize(
    ("version", "init", "code"),
    [
        ("-5", "return 0", None),
        ("2147483647", "return 999", None),
        ("13000", "exit(0)", "driver-crashes"),
        ("13000", "_exit(9)", "driver-crashes"),
        ("13000", "raise(SIGKILL)", "driver-crashes"),
        ("13000", "*(volatile int *)8 = 1", "driver-crashes"),
        ("(raise(SIGSEGV), 1)", "return 0", "driver-crashes"),
        ("13000", "return -2147483647", "driver-error"),
        ("13000", "for (int i = 3; i < 1024; ++i) close(i)", "driver-crashes"),
    ],
)
def test_a_driver_that_does_things(machine, version, init, code):
    machine.no_driver_library()
    source = HEADER + CUDA.replace("VERSION", version).replace("IN_INIT", init)
    source += 'int cuGetErrorString(int code, const char **text) { *text = "\\033[2J\\377"; return 0; }'
    machine.make_library("libcuda.so.1", source)
    answer = survives(machine)
    assert answer["usable_gpus"] == 0
    if code:
        assert code in [finding["code"] for finding in answer["findings"]], answer["findings"]


NVML = """
typedef void *Device;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 5 ? 0 : "\\033[2J\\377"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { memset(text, '9', size); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 4000000000u; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Device *device) {
  *device = (Device)(unsigned long)(i + 1);
  return i % 7 == 6 ? 5 : 0;
}
int nvmlDeviceGetName(Device d, char *text, unsigned size) {
  memset(text, "\\033\\377N"[(unsigned long)d % 3], size);
  return 0;
}
int nvmlDeviceGetUUID(Device d, char *text, unsigned size) {
  snprintf(text, size, "GPU-\\033%lu", (unsigned long)d);
  return 0;
}
int nvmlDeviceGetMinorNumber(Device d, unsigned *value) { *value = 4294967295u; return 0; }
int nvmlDeviceGetMemoryInfo(Device d, unsigned long long *m) { m[0] = m[1] = m[2] = ~0ull; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(Device d, unsigned *count, unsigned *info) {
  for (int i = 0; i < 256 * 6; ++i) info[i] = 4294967290u - i;
  *count = 4000000000u;
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(Device d, unsigned *value) { *value = 4294967295u; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(Device d, unsigned *value) { *value = 0; return 0; }
int nvmlDeviceGetComputeMode(Device d, int *value) { *value = 77; return 0; }
int nvmlDeviceGetPowerManagementLimit(Device d, unsigned *value) { *value = 4294967295u; return 0; }
"""


def test_an_nvml_that_lies(machine):
    machine.make_library("libnvidia-ml.so.1", HEADER + NVML)
    answer = survives(machine, seconds=4 * SECONDS)
    assert len(answer["gpus"]) < 2000


# --- what never ends ----------------------------------------------------------------------------

# The driver has half a minute; these wait at the same time, and while the other tests run.
ENDLESS = {
    "hangs when it is loaded": ("libcuda.so.1", "LOADED { for (;;) pause(); }"),
    "spins when it is loaded": ("libcuda.so.1", "LOADED { alarm(60); for (;;) usleep(1000); }"),
    "hangs in cuDriverGetVersion": ("libcuda.so.1", CUDA.replace("VERSION", "pause()").replace("IN_INIT", "")),
    "hangs in cuInit": ("libcuda.so.1", CUDA.replace("VERSION", "13000").replace("IN_INIT", "for (;;) pause()")),
    "does not let itself be ended": (
        "libcuda.so.1",
        "LOADED { sigset_t s; sigfillset(&s); sigprocmask(SIG_BLOCK, &s, 0); for (;;) usleep(10000); }",
    ),
    "hangs in NVML": ("libnvidia-ml.so.1", "int nvmlInit_v2(void) { for (;;) pause(); }"),
    "prints for ever": (
        "libcuda.so.1",
        "LOADED { alarm(60); for (;; usleep(200)) if (write(1, words, sizeof words) < 0) _exit(1); }",
    ),
    "leaves a process and hangs": ("libcuda.so.1", "LOADED { fork(); for (;;) pause(); }"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def endless(tmp_path_factory):
    """Each of them begun, with its machine."""
    begun = {}
    for name, (library, source) in ENDLESS.items():
        machine = Machine(tmp_path_factory.mktemp("endless"))
        if library == "libcuda.so.1":
            machine.no_driver_library()
        machine.make_library(library, HEADER + source)
        (machine.root.parent / "tmp").mkdir()
        process = subprocess.Popen(
            [LAUNCHGAP, "doctor", "--json", "--no-prove"],
            env=environment(machine, TMPDIR=str(machine.root.parent / "tmp")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        begun[name] = (machine, process)
    yield begun
    for _, process in begun.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_ended(endless, name):
    machine, process = endless[name]
    out, err = process.communicate(timeout=60)
    answer = check(machine, process.returncode, out, err)
    assert answer["seconds"] < 60  # by its own account, since other tests ran meanwhile
    if name == "hangs in NVML":
        assert answer["usable_gpus"] == 1
    else:
        assert answer["usable_gpus"] == 0
        (finding,) = [f for f in answer["findings"] if f["severity"] == "prevents"]
        assert "no answer within" in " ".join(finding["evidence"]), finding
