"""Each way in which a GPU is not used: how a machine is broken, and the cause that the doctor must find.

test_root_causes.py asks it, and docs/sentences.md has what it says."""

from sick_machine import CUDNN, DRIVER, H100, K40M, V100

CASES = {}


def case(code, remedy, note=False, exit_code=None):
    """Registers how to break a machine, and what the doctor must find; `remedy` is a part of the remedy's text."""

    def register(breaks):
        assert breaks.__name__ not in CASES
        CASES[breaks.__name__] = (breaks, code, remedy, note, exit_code if exit_code is not None else (0 if note else 3))
        return breaks

    return register


# --- no driver, no GPU ---


@case("no-driver", "install NVIDIA's driver")
def gpu_without_a_driver(machine):
    machine.no_module()
    machine.gpu("0000:07:00.0", H100, bound=None)
    machine.no_driver_library()


@case("no-driver", "install NVIDIA's driver")
def gpu_that_nouveau_has_and_no_driver(machine):
    machine.no_module()
    machine.gpu("0000:07:00.0", H100, bound="nouveau")
    machine.no_driver_library()


@case("no-driver", "branch R470, the last for K40m")
def k40m_without_a_driver(machine):
    machine.write("/usr/local/cuda/version.json", '{"cuda": {"version": "13.0.1"}}')
    machine.no_module()
    machine.gpu("0000:07:00.0", K40M, bound=None)
    machine.no_driver_library()


@case("no-driver", "580 or newer for CUDA 13.0", note=True)
def toolkit_and_neither_driver_nor_gpu(machine):
    machine.no_module()
    machine.no_gpu()
    machine.no_driver_library()
    machine.write("/usr/local/cuda/version.json", '{"cuda": {"version": "13.0.1"}}')


@case("no-gpu", "lspci", note=True)
def machine_without_a_gpu(machine):
    machine.no_module()
    machine.no_gpu()
    for file in machine.lib.iterdir():
        file.unlink()


@case("no-gpu", "lspci", note=True)
def driver_library_and_no_gpu(machine):
    machine.no_module()
    machine.no_gpu()
    machine.fault("cuda", "cuInit", 100)


@case("driver-not-loaded", "modprobe nvidia")
def module_not_loaded(machine):
    machine.no_module()
    machine.gpu("0000:07:00.0", H100, bound=None)
    machine.fault("cuda", "cuInit", 100)


@case("gpu-bound-elsewhere", "nouveau")
def nouveau_has_the_gpu(machine):
    machine.no_module()
    machine.gpu("0000:07:00.0", H100, bound="nouveau")
    machine.fault("cuda", "cuInit", 100)


@case("driver-library-missing", "libcuda1")
def kernel_has_the_driver_and_libcuda_is_missing(machine):
    machine.no_driver_library()


@case("driver-library-broken", "loader's way")
def libcuda_is_a_text_file(machine):
    machine.no_driver_library()
    (machine.lib / "libcuda.so.1").write_text("#!/bin/sh\n")


@case("driver-library-broken", "loader's way")
def libcuda_is_something_else(machine):
    machine.no_driver_library()
    machine.make_library("libcuda.so.1", "int something;")


@case("driver-library-broken", "loader's way")
def libcuda_crashes_when_it_is_loaded(machine):
    machine.no_driver_library()
    machine.make_library("libcuda.so.1", "__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 1; }")


# --- codes of the driver ---


@case("driver-stub", "LD_LIBRARY_PATH")
def code_34(machine):
    machine.no_driver_library()
    machine.environment["LD_LIBRARY_PATH"] += f":{machine.driver('1.0', machine.root / 'usr/local/cuda/lib64/stubs')}"
    machine.fault("cuda", "cuInit", 34)


@case("driver-too-old", "525.60.13 or newer")
def code_35(machine):
    machine.node["driver_version"] = 11080
    machine.runtime(12040, 35, "CUDA driver version is insufficient for CUDA runtime version")


@case("driver-lacks-call", "minor-version compatibility")
def code_36(machine):
    machine.runtime(13000, 36, "API call is not supported in the installed CUDA driver")


@case("gpu-taken", "nvidia-smi -c DEFAULT")
def code_46(machine):
    machine.nvml(compute_mode="exclusive process")
    machine.fault("cuda", "cuDevicePrimaryCtxRetain", 46)


@case("hidden-by-cuda-visible-devices", "unset CUDA_VISIBLE_DEVICES")
def code_100_for_an_empty_list(machine):
    machine.environment["CUDA_VISIBLE_DEVICES"] = ""


@case("hidden-by-cuda-visible-devices", "unset CUDA_VISIBLE_DEVICES")
def code_100_for_minus_one(machine):
    machine.environment["CUDA_VISIBLE_DEVICES"] = "-1"


@case("cuda-visible-devices-invalid", "unset CUDA_VISIBLE_DEVICES")
def code_100_for_a_list_of_nobody(machine):
    machine.environment["CUDA_VISIBLE_DEVICES"] = "GPU-0000"


@case("device-nodes-missing", "nvidia-modprobe")
def code_100_without_nodes(machine):
    machine.remove("/dev")
    machine.fault("cuda", "cuInit", 100)


@case("cuda-visible-devices-invalid", "from 0 to 1")
def code_101(machine):
    machine.more_gpus(2)
    machine.environment["CUDA_VISIBLE_DEVICES"] = "0,7"


@case("jit-compiler-missing", "libnvidia-ptxjitcompiler")
def code_221(machine):
    machine.environment["LAUNCHGAP_KERNELS"] = "portable"
    machine.fault("cuda", "cuModuleLoadDataEx", 221)


@case("ptx-too-new", "ship machine code")
def code_222(machine):
    machine.environment["LAUNCHGAP_KERNELS"] = "portable"
    machine.fault("cuda", "cuModuleLoadDataEx", 222)


@case("jit-disabled", "unset CUDA_DISABLE_PTX_JIT")
def code_223(machine):
    machine.environment |= {"LAUNCHGAP_KERNELS": "portable", "CUDA_DISABLE_PTX_JIT": "1"}
    machine.fault("cuda", "cuModuleLoadDataEx", 223)


@case("fabric-manager", "nvidia-fabricmanager")
def code_802(machine):
    machine.nvml(fabric="in progress")
    machine.fault("cuda", "cuInit", 802)


@case("driver-mismatch", "restart the machine")
def code_803(machine):
    machine.driver("575.51.03")
    machine.fault("cuda", "cuInit", 803)
    machine.fault("nvml", "nvmlInit_v2", 18)


@case("driver-library-shadowed", "LD_LIBRARY_PATH entry")
def code_803_with_the_right_library_behind_the_wrong_one(machine):
    right = machine.driver(DRIVER, machine.root / "usr/lib/right")
    machine.driver("535.54.03")
    machine.environment["LD_LIBRARY_PATH"] += f":{right}"
    machine.fault("cuda", "cuInit", 803)


@case("driver-mismatch", "cuda-compat")
def code_803_of_a_compat_library(machine):
    machine.no_driver_library()
    machine.environment["LD_LIBRARY_PATH"] += f":{machine.driver('575.51.03', machine.root / 'usr/local/cuda/compat')}"
    machine.fault("cuda", "cuInit", 803)


@case("compat-not-supported", "cuda-compat out of LD_LIBRARY_PATH")
def code_804(machine):
    machine.no_driver_library()
    machine.environment["LD_LIBRARY_PATH"] += f":{machine.driver('575.51.03', machine.root / 'usr/local/cuda/compat')}"
    machine.fault("cuda", "cuInit", 804)


@case("uvm-unavailable", "nvidia-modprobe -u")
def code_999_without_uvm(machine):
    machine.remove("/dev/nvidia-uvm")
    machine.write("/proc/modules", "nvidia 1 0 - Live 0x0\n")
    machine.fault("cuda", "cuInit", 999)


# --- one GPU of several ---


@case("gpu-lost", "restart the machine")
def lost_gpu(machine):
    machine.fault("cuda", "cuInit", 999)
    machine.fault("nvml", "nvmlDeviceGetHandleByIndex_v2", 15)
    machine.write("/dev/kmsg", "4,1,1,-;NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.\n")


@case("gpu-lost", "restart the machine")
def one_lost_of_two(machine):
    machine.more_gpus(2)
    del machine.node["devices"][1]
    machine.write("/dev/kmsg", "4,1,1,-;NVRM: Xid (PCI:0000:08:00): 79, pid=1, GPU has fallen off the bus.\n")


@case("architecture-dropped-by-driver", "R470")
def kepler_beside_an_ampere(machine):
    machine.gpu("0000:82:00.0", K40M)


@case("architecture-dropped-by-driver", "R470")
def nothing_but_a_kepler_under_a_new_driver(machine):
    machine.gpu("0000:07:00.0", K40M)
    machine.node["devices"] = []


# --- libraries ---


@case("cudnn-has-no-code-for-gpu", "doctor --gpu")
def cudnn_8_has_no_code_for_the_gpu(machine):
    machine.node["cudnn_version"] = 8907
    machine.fault("cudnn", "cudnnConvolutionForward", 6)


@case("cudnn-mixed-versions", "leave one cuDNN")
def parts_of_cudnn_say_that_they_differ(machine):
    machine.make_library("libcudnn.so.9", CUDNN % (91900, "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", 1002))


@case("cudnn-prerequisite-missing", "NVRTC")
def a_part_of_cudnn_misses_something(machine):
    machine.make_library("libcudnn.so.8", CUDNN % (8907, "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING", 11))


@case("cudnn-mixed-versions", "leave one cuDNN")
def cudnn_8_says_that_its_parts_differ(machine):
    machine.node["cudnn_version"] = 8907
    machine.fault("cudnn", "cudnnConvolutionForward", 14)


@case("library-broken", "install it again")
def a_library_that_is_no_library(machine):
    (machine.lib / "libcudart.so.12").write_text("GROUP ( libcudart.so )\n")


@case("library-broken", "install it again")
def a_library_that_crashes(machine):
    machine.make_library("libcudart.so.12", "__attribute__((constructor)) static void f(void) { __builtin_trap(); }")


@case("library-broken", "install it again", note=True)
def a_library_that_hangs(machine):
    machine.make_library(
        "libcupti.so.13", "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { pause(); }"
    )


# --- containers ---


@case("container-without-gpu", "--gpus all")
def container_without_gpus(machine):
    machine.write("/.dockerenv", "")
    machine.remove("/dev")
    machine.no_driver_library()


@case("container-without-gpu", "NVIDIA_VISIBLE_DEVICES=all")
def container_with_libraries_alone(machine):
    machine.write("/.dockerenv", "")
    machine.remove("/dev")
    machine.environment["NVIDIA_VISIBLE_DEVICES"] = "none"
    machine.fault("cuda", "cuInit", 100)


@case("container-without-compute", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
def container_without_compute(machine):
    machine.write("/run/.containerenv", "")
    machine.no_driver_library()
    machine.environment |= {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}


@case("container-requirement", "NVIDIA_DISABLE_REQUIRE", note=True)
def container_that_wants_a_newer_driver(machine):
    machine.write("/.dockerenv", "")
    machine.node["driver_version"] = 12020
    machine.environment["NVIDIA_REQUIRE_CUDA"] = "cuda>=12.8 brand=unknown,driver>=535,driver<536"


# --- state ---


@case("hidden-by-cuda-visible-devices", "nothing, if that is meant", note=True)
def one_hidden_of_two(machine):
    machine.more_gpus(2)
    machine.environment["CUDA_VISIBLE_DEVICES"] = "1"


@case("toolkits-differ", "one toolkit", note=True)
def toolkits_that_differ(machine):
    machine.write("/opt/cuda-12.1/version.json", '{"cuda": {"version": "12.1.0"}}')
    machine.write("/opt/cuda-11.8/version.txt", "CUDA Version 11.8.89\n")
    machine.environment |= {"CUDA_HOME": "/opt/cuda-12.1", "CUDA_PATH": "/opt/cuda-11.8"}

    # A driver whose own library fits: only NVML's does not.


@case("nvml-mismatch", "libnvidia-ml.so.1", note=True)
def nvml_of_another_version(machine):
    machine.fault("nvml", "nvmlInit_v2", 18)  # the driver's own library fits


@case("nvml-unavailable", "driver's own version", note=True)
def no_nvml(machine):
    (machine.lib / "libnvidia-ml.so.1").unlink()


@case("duplicate-library", "leave one of each", note=True)
def two_copies_of_a_library(machine):
    machine.runtime(12040, 0)
    other = machine.root / "opt/lib"
    other.mkdir(parents=True)
    (other / "libcudart.so.12").write_bytes((machine.lib / "libcudart.so.12").read_bytes() + b"\0")
    machine.environment["LD_LIBRARY_PATH"] += f":{other}"


@case("gpus-of-others", "scheduler", note=True)
def container_with_one_gpu_of_two(machine):
    machine.write("/.dockerenv", "")
    machine.gpu("0000:82:00.0", H100)


@case("driver-too-old", "525.60.13 or newer", note=True)
def a_runtime_that_is_too_new_beside_one_that_works(machine):
    machine.node["driver_version"] = 11080
    machine.runtime(12040, 35, "CUDA driver version is insufficient for CUDA runtime version")
    machine.runtime(11080, 0, name="libcudart.so.11.0")


@case("library-broken", "install it again", note=True)
def a_library_that_is_not_measured_with(machine):
    (machine.lib / "libnccl.so.2").write_bytes(b"\x7fELF")


@case("gpu-bound-elsewhere", "virtual machine", note=True)
def a_display_card_of_nouveau_beside_a_gpu_that_works(machine):
    machine.gpu("0000:82:00.0", K40M, bound="nouveau")


@case("architecture-dropped-by-driver", "R470")
def a_kepler_whose_driver_will_not_stay_loaded(machine):
    machine.no_module()
    machine.gpu("0000:07:00.0", K40M, bound=None)
    machine.fault("cuda", "cuInit", 100)
    machine.node["devices"] = []


@case("kernel-modules-of-other-kind", "proprietary modules")
def open_modules_and_a_volta(machine):
    machine.write(
        "/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build"
    )
    machine.gpu("0000:07:00.0", V100)
    machine.node["devices"] = []


@case("hidden-by-cuda-visible-devices", "unset CUDA_VISIBLE_DEVICES")
def hidden_comes_before_an_nvml_that_does_not_fit(machine):
    machine.environment["CUDA_VISIBLE_DEVICES"] = ""
    machine.fault("nvml", "nvmlInit_v2", 18)


@case("no-driver", "install NVIDIA's driver in Windows", note=True)
def wsl_without_a_driver(machine):
    machine.no_module()
    machine.no_gpu()
    machine.no_driver_library()
    machine.write("/dev/dxg", "")


@case("container-without-gpu", "apptainer exec --nv")
def apptainer_without_nv(machine):
    (machine.root / ".singularity.d").mkdir()
    machine.remove("/dev")
    machine.no_driver_library()


@case("driver-library-missing", "/usr/local/nvidia/lib64")
def container_whose_nodes_are_there_and_whose_libcuda_is_not_found(machine):
    machine.write("/.dockerenv", "")
    machine.environment["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    machine.no_driver_library()


@case("gpu-memory-full", "end the processes")
def a_neighbour_that_has_all_the_memory(machine):
    machine.fault("cuda", "cuDevicePrimaryCtxRetain", 2)
    machine.nvml(processes=[1], memory_used_bytes=79 << 30)


@case("toolkit-has-no-code-for-gpu", "doctor --gpu 7.0", note=True)
def a_toolkit_that_has_dropped_the_gpu(machine):
    machine.node["devices"][0] |= {"name": "Tesla V100-SXM2-16GB", "compute_capability": "7.0"}
    machine.write("/usr/local/cuda/version.json", '{"cuda": {"version": "13.0.1"}}')


@case("compat-in-use", "older one", note=True)
def compat_library_that_works(machine):
    machine.no_driver_library()
    machine.environment["LD_LIBRARY_PATH"] += f":{machine.driver('590.44.01', machine.root / 'usr/local/cuda/compat')}"


@case("xid-reported", "Xid catalogue", note=True)
def an_xid_of_a_program(machine):
    machine.write("/dev/kmsg", "4,1,1,-;NVRM: Xid (PCI:0000:07:00): 31, pid=4711, name=python, MMU Fault\n")


# --- one call that fails with a code, or ends the process; or one thing that NVML tells ---


CONVOLVE = ("cudnn", "cudnnConvolutionForward")
FAULTS = {
    "cuinit_crashes": ("driver-crashes", "dmesg", "cuda", "cuInit", "abort"),
    "code_100_for_no_reason_that_is_seen": ("driver-lists-no-gpu", "dmesg", "cuda", "cuInit", 100),
    "code_209": ("no-code-for-gpu", "compute capability", "cuda", "cuModuleLoadDataEx", 209),
    "code_214": ("ecc-uncorrectable", "have it replaced", "cuda", "cuStreamSynchronize", 214),
    "code_218": ("ptx-invalid", "machine code", "cuda", "cuModuleLoadDataEx", 218),
    "code_999_with_everything_in_place": ("driver-unknown-error", "dmesg", "cuda", "cuInit", 999),
    "code_2_for_a_context": ("gpu-memory-full", "end the processes", "cuda", "cuDevicePrimaryCtxRetain", 2),
    "a_code_that_nobody_knows": ("driver-error", "CUDA Driver API", "cuda", "cuInit", 1234),
    "a_proof_that_crashes": ("proof-crashes", "Xid", "cuda", "cuLaunchKernelEx", "abort"),
    "cudnn_9_has_no_code_for_the_gpu": ("cudnn-has-no-code-for-gpu", "doctor --gpu", *CONVOLVE, 3007),
    "cudnn_misses_something_when_it_convolves": ("cudnn-prerequisite-missing", "libnvrtc", *CONVOLVE, 3008),
    "cudnn_does_not_start": ("cudnn-not-initialised", "memory is free", "cudnn", "cudnnCreate", 1001),
    "cublas_has_no_code_for_the_gpu": ("cublas-has-no-code-for-gpu", "doctor --gpu", "cublas", "cublasSgemm_v2", 8),
    "cublas_fails": ("cublas-fails", "cuBLASLt", "cublas", "cublasCreate_v2", 1),
    "code_805": ("mps-unavailable", "nvidia-cuda-mps-control", "cuda", "cuInit", 805),
    "listing_the_gpus_crashes": ("driver-crashes", "dmesg", "cuda", "cuDeviceGetCount", "abort"),
}
STATES = {
    "code_100_for_mig_without_an_instance": ("mig-without-instance", "nvidia-smi mig", dict(mig_instances=0)),
    "compute_mode_prohibited": ("compute-mode-prohibited", "nvidia-smi -c DEFAULT", dict(compute_mode="prohibited")),
    "somebody_else_is_on_the_gpu": ("gpu-in-use", "--devices", dict(processes=[1], memory_used_bytes=70 << 30)),
    "errors_of_memory": ("ecc-uncorrectable", "reset it", dict(uncorrected_ecc_errors=2)),
    "a_row_to_be_remapped": ("memory-remap-pending", "nvidia-smi -r", dict(remap_pending=True), True),
    "a_row_that_could_not_be_remapped": ("memory-remap-failed", "replaced", dict(remap_pending=True, remap_failed=True)),
    "clocks_held_down_by_heat": ("clocks-held-down", "cooling", dict(reasons=0x40)),
    "lowered_power_limit": ("power-limit-lowered", "nvidia-smi -pl 400", dict(power_limit_mw=250_000), True),
    "narrow_link": ("pcie-narrow", "seat the card", dict(pcie_width=8, max_pcie_width=16)),
    "slow_link_under_load": ("pcie-narrow", "seat the card", dict(pcie_generation=1, max_pcie_generation=4)),
    "fabric_not_ready": ("fabric-manager", "nvidia-fabricmanager", dict(fabric="not started")),
    "persistence_off": ("persistence-off", "nvidia-smi -pm 1", dict(persistence=False), True),
    "application_clocks": ("clocks-capped", "nvidia-smi -rac", dict(reasons=0x2, sm_clock_mhz=900), True),
    "exclusive_mode": ("exclusive-mode", "nvidia-smi -c DEFAULT", dict(compute_mode="exclusive process"), True),
}


def breaks_a_call(library, call, code):
    return lambda machine: machine.fault(library, call, **({"abort": True} if code == "abort" else {"code": code}))


def sets_a_state(state):
    return lambda machine: machine.nvml(**state)


CASES |= {name: (breaks_a_call(*fault), code, remedy, False, 3) for name, (code, remedy, *fault) in FAULTS.items()}
for _name, (_code, _remedy, _state, *_note) in STATES.items():
    CASES[_name] = (sets_a_state(_state), _code, _remedy, bool(_note), 0 if _note else 3)
