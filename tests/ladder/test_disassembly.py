"""What NVIDIA's assembler makes of the rungs: the instructions that each is about, and no spills."""

import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
WHEELS = pathlib.Path(sys.prefix) / "lib"


def tool(name):
    found = sorted(WHEELS.glob(f"python3*/site-packages/nvidia/*/bin/{name}"))
    if not found:
        pytest.skip(f"there is no {name}: scripts/setup --dev brings it")
    return found[0]


def portable(rung, folder, architecture, ptx):
    """As scripts/cmake/DeviceCode.cmake has it compiled by clang; inline assembly goes through it as it is."""
    what = ["-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={architecture}", "-nocudainc", "-nocudalib"]
    what += ["-Xclang", "-target-feature", "-Xclang", f"+{ptx}", "-Wno-unknown-cuda-version", "-std=c++17", "-O3"]
    output = folder / "rung.ptx"
    source = ROOT / "kernels" / f"{rung}.cu"
    subprocess.run(["clang++", *what, "-DLAUNCHGAP_DEVICE_CODE", "-S", "-o", output, source], check=True)
    return output


def code_of(cubin):
    """The machine code of the one kernel: the section .text.NAME of an ELF file of 64 bits."""
    data = cubin.read_bytes()
    sections, size, count, names = struct.unpack_from("<Q10xHHH", data, 0x28)
    rows = [struct.unpack_from("<IIQQQQ", data, sections + i * size) for i in range(count)]
    for row in rows:
        begin = rows[names][4] + row[0]
        if data[begin : data.index(b"\0", begin)].startswith(b".text.launchgap"):
            return data[row[4] : row[4] + row[5]]
    raise AssertionError(f"{cubin} has no kernel")


def assembled(ptx, architecture, folder):
    """Its instructions, by name; ptxas must not spill, nor find fault with it."""
    cubin = folder / "rung.cubin"
    done = subprocess.run(
        [tool("ptxas"), "-v", f"--gpu-name={architecture}", "-o", cubin, ptx], capture_output=True, text=True, check=True
    )
    said = done.stdout + done.stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in said, said
    assert "Potential Performance Loss" not in said, said
    what = [cubin]
    if architecture == "sm_70":
        # The disassembler is later than Volta, and Turing has the same encoding.
        (folder / "rung.bin").write_bytes(code_of(cubin))
        what = ["-b", "SM75", folder / "rung.bin"]
    text = subprocess.run([tool("nvdisasm"), *what], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text, re.MULTILINE))


EXPECTED = {
    ("matmul/naive", "sm_35", "ptx42", "sm_75"): {"FFMA", "LDG.E"},
    ("matmul/tiles", "sm_35", "ptx42", "sm_80"): {"FFMA", "LDS.128", "LDS.64", "STS", "BAR.SYNC"},
    ("matmul/tiles", "sm_35", "ptx42", "sm_90"): {"FFMA", "LDS.128", "LDS.64", "STS", "BAR.SYNC"},
    ("matmul/wmma", "sm_70", "ptx63", "sm_70"): {"HMMA.884", "LDG.E.128", "LDS", "STS.128"},
    ("matmul/wmma", "sm_70", "ptx63", "sm_80"): {
        "HMMA.16816.F32",
        "LDG.E.128",
        "LDSM.16.M88.4",
        "LDSM.16.MT88.4",
        "STS.128",
    },
    ("matmul/mma", "sm_80", "ptx70", "sm_80"): {
        "HMMA.16816.F32.BF16",
        "LDSM.16.M88.4",
        "LDSM.16.MT88.4",
        "LDGSTS.E.BYPASS.128",
    },
    ("matmul/mma", "sm_80", "ptx70", "sm_90"): {"HMMA.16816.F32.BF16", "LDSM.16.M88.4", "LDGSTS.E.BYPASS.128"},
    ("convolution/naive", "sm_35", "ptx42", "sm_75"): {"FFMA", "LDG.E"},
    ("convolution/tiles", "sm_35", "ptx42", "sm_80"): {"FFMA", "LDS.128", "LDS.64", "STS", "BAR.SYNC"},
    ("convolution/tiles", "sm_35", "ptx42", "sm_90"): {"FFMA", "LDS.128", "LDS.64", "STS", "BAR.SYNC"},
    ("convolution/mma", "sm_80", "ptx70", "sm_80"): {"HMMA.16816.F32.BF16", "LDSM.16.M88.4", "LDGSTS.E.BYPASS.128"},
    ("convolution/mma", "sm_80", "ptx70", "sm_90"): {"HMMA.16816.F32.BF16", "LDSM.16.M88.4", "LDGSTS.E.BYPASS.128"},
}


@pytest.mark.parametrize(("rung", "compiled_for", "ptx", "architecture"), EXPECTED)
def test_a_rung_is_made_of_the_instructions_of_its_time(tmp_path, rung, compiled_for, ptx, architecture):
    found = assembled(portable(rung, tmp_path, compiled_for, ptx), architecture, tmp_path)
    for expected in EXPECTED[rung, compiled_for, ptx, architecture]:
        assert any(name.startswith(expected) for name in found), sorted(found)
    # What does not know which memory it reads is slower.
    assert not any(name.startswith(("LD.", "ST.")) for name in found), sorted(found)


# By the least version of PTX that has the architecture: the assembler of the wheel is older than nvcc, whose PTX says more.
OF_ONE_ARCHITECTURE = {
    ("matmul/wgmma", "90a", "8.6"): ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D", "SYNCS.PHASECHK", "USETMAXREG"),
    ("matmul/tcgen05", "100f", "8.8"): ("UTCHMMA", "UTMALDG.2D", "UTCBAR", "UTCATOMSWS", "LDTM.x32", "STG.E.128"),
}


@pytest.mark.parametrize(("rung", "architecture", "ptx_version"), OF_ONE_ARCHITECTURE)
def test_a_rung_is_made_of_what_only_nvcc_compiles(tmp_path, rung, architecture, ptx_version):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip(f"there is no nvcc, and clang has no sm_{architecture}")
    ptx = tmp_path / "rung.ptx"
    what = ["-ptx", "-gencode", f"arch=compute_{architecture},code=compute_{architecture}", "-std=c++17"]
    subprocess.run([nvcc, *what, "-DLAUNCHGAP_DEVICE_CODE", "-o", ptx, ROOT / "kernels" / f"{rung}.cu"], check=True)
    ptx.write_text(re.sub(r"^\.version .*", f".version {ptx_version}", ptx.read_text(), flags=re.MULTILINE))
    found = assembled(ptx, f"sm_{architecture}", tmp_path)
    for expected in OF_ONE_ARCHITECTURE[rung, architecture, ptx_version]:
        assert any(name.startswith(expected) for name in found), sorted(found)


def test_an_older_rung_has_none_of_a_later_one(tmp_path):
    for rung in ("matmul/naive", "matmul/tiles", "convolution/naive", "convolution/tiles"):
        found = assembled(portable(rung, tmp_path, "sm_35", "ptx42"), "sm_80", tmp_path)
        assert not any(name.startswith(("HMMA", "LDSM", "LDGSTS")) for name in found)
