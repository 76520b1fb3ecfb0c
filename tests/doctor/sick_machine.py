"""A machine for the doctor: its /proc, /sys and /dev in a folder, its libraries small real ELF files or the fakes.

It starts healthy, with one A100; each test breaks what it is about."""

import copy
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))

from shipped import BUILD, LAUNCHGAP, NODES  # noqa: E402

FAKES = BUILD / "fake_cuda"
DRIVER = "580.65.06"
A100 = 0x20B2
K40M = 0x1023
H100 = 0x2330
V100 = 0x1DB1


@functools.cache
def compiled(source, *flags):
    """A shared library from C source, as bytes: compiled once for all tests."""
    with tempfile.NamedTemporaryFile() as out:
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", out.name, *flags]
        subprocess.run(command, input=source.encode(), check=True)
        return pathlib.Path(out.name).read_bytes()


RUNTIME = """
int launchgap_fake_library;
int cudaRuntimeGetVersion(int *version) { *version = %d; return 0; }
int cudaGetDeviceCount(int *count) { *count = 0; return %d; }
const char *cudaGetErrorString(int code) { return "%s"; }
"""

CUDNN = """
int launchgap_fake_library;
unsigned long cudnnGetVersion(void) { return %d; }
const char *cudnnGetErrorString(int code) { return code ? "%s" : "CUDNN_STATUS_SUCCESS"; }
int cudnnCnnVersionCheck(void) { return %d; }
"""


class Machine:
    def __init__(self, folder):
        self.root = folder / "machine"
        self.lib = folder / "lib"  # what LD_LIBRARY_PATH names
        self.lib.mkdir(parents=True)
        self.environment = {"LD_LIBRARY_PATH": str(self.lib), "LAUNCHGAP_LOCK_DIR": str(folder)}
        self.node = json.loads((NODES / "one_a100.json").read_text())
        self.node["faults"] = []
        self.gpu("0000:07:00.0", A100)
        self.write("/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Sun Jul 27")
        self.write("/proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 1 1 nvidia_uvm, Live 0x0\n")
        for node in ("nvidiactl", "nvidia-uvm", "nvidia0"):
            self.write(f"/dev/{node}", "")
        self.driver(DRIVER)
        for name in ("libcublas.so.13", "libcudnn.so.9", "libnvidia-ml.so.1"):
            (self.lib / name).symlink_to(FAKES / name)

    # --- what there is ---

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def remove(self, path):
        target = self.root / path.lstrip("/")
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()

    def gpu(self, address, device, bound="nvidia", width=16, max_width=16):
        folder = f"/sys/bus/pci/devices/{address}"
        self.write(f"{folder}/vendor", "0x10de\n")
        self.write(f"{folder}/class", "0x030200\n")
        self.write(f"{folder}/device", f"0x{device:04x}\n")
        self.write(f"{folder}/current_link_width", f"{width}\n")
        self.write(f"{folder}/max_link_width", f"{max_width}\n")
        link = self.root / folder.lstrip("/") / "driver"
        link.unlink(missing_ok=True)
        if bound:
            link.symlink_to(f"../../../../bus/pci/drivers/{bound}")

    def no_gpu(self):
        shutil.rmtree(self.root / "sys")
        self.node["devices"] = []

    def no_module(self):
        self.remove("/proc/driver")
        self.write("/proc/modules", "")

    def driver(self, version, folder=None):
        """libcuda.so.1 of this version, in LD_LIBRARY_PATH or in another folder."""
        folder = folder or self.lib
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("libcuda.so*"):
            old.unlink()
        shutil.copy(FAKES / "libcuda.so.1", folder / f"libcuda.so.{version}")
        (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")
        return folder

    def no_driver_library(self):
        for file in self.lib.glob("libcuda.so*"):
            file.unlink()

    def make_library(self, name, source, *flags):
        (self.lib / name).unlink(missing_ok=True)
        (self.lib / name).write_bytes(compiled(source, f"-Wl,-soname,{name}", *flags))

    def runtime(self, version, code, text="", name=None):
        major = version // 1000
        self.make_library(name or f"libcudart.so.{major}", RUNTIME % (version, code, text))

    def fault(self, library, call, code=None, **more):
        self.node["faults"].append({"library": library, "call": call} | ({"code": code} if code is not None else {}) | more)

    def nvml(self, **state):
        self.node["devices"][0].setdefault("nvml", {}).update(state)

    def more_gpus(self, count):
        first = self.node["devices"][0]
        for i in range(1, count):
            other = copy.deepcopy(first)
            other |= {"uuid": first["uuid"][:-2] + f"{0x10 + i:02x}", "pci": f"0000:{7 + i:02x}:00.0"}
            self.node["devices"].append(other)
            self.gpu(other["pci"], A100)
            self.write(f"/dev/nvidia{i}", "")

    # --- asking ---

    def start(self, *arguments, command=(), timeout=60, **environment):
        path = self.root / "node.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.node))
        drop = ("CUDA_", "LAUNCHGAP_", "NVIDIA_", "LD_", "VIRTUAL_ENV")
        env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        env |= {"LAUNCHGAP_FAKE_NODE": str(path), "LAUNCHGAP_SYSTEM_ROOT": str(self.root)}
        env |= self.environment | environment
        return subprocess.run(
            [*command, LAUNCHGAP, "doctor", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={key: value for key, value in env.items() if value is not None},
            stdin=subprocess.DEVNULL,
        )

    def ask(self, *arguments, **more):
        """(answer, exit code) of `launchgap doctor --json`."""
        done = self.start("--json", *arguments, **more)
        assert done.stdout, done.stderr
        return json.loads(done.stdout), done.returncode


def causes(answer):
    """The codes of the findings that prevent or distort."""
    return [finding["code"] for finding in answer["findings"] if finding["severity"] != "note"]
