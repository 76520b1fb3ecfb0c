"""The binaries need no newer glibc than the package promises, and scripts/check-portable tells those that do."""

import platform
import subprocess

import pytest
from script_paths import BUILD, ROOT

SCRIPT = ROOT / "scripts" / "check-portable"
SHIPPED = ("launchgap", "launchgap-gpu-test", "launchgap-tracing-cost", "liblaunchgap_runtime.so")

# What a newer compiler's headers make of old functions (strtol) is newer there: the package is built on Debian 12.
NEW_SYSTEM = tuple(map(int, platform.libc_ver()[1].split("."))) > (2, 36)


def check(*arguments):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(NEW_SYSTEM, reason="a package is built where glibc is 2.36 or older")
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_needs_no_newer_glibc(name):
    file = BUILD / "bin" / name
    if name.endswith(".so") and not file.exists():
        pytest.skip("built without nvcc")
    done = check(file)
    assert done.returncode == 0, done.stderr


def compiled(tmp_path, source, *options):
    (tmp_path / "a.c").write_text(source)
    subprocess.run(["cc", "-O0", tmp_path / "a.c", "-o", tmp_path / "a", *options], check=True, timeout=60)
    return tmp_path / "a"


# hypot has a new version since 2.35.
HYPOT = "#include <math.h>\n#include <stdlib.h>\nint main(int n, char** v) { return (int)hypot(n, atof(v[0])); }\n"


def test_a_newer_symbol_is_named_with_its_glibc(tmp_path):
    file = compiled(tmp_path, HYPOT, "-lm")
    done = check(file)
    assert done.returncode == 3 and "a needs hypot of glibc 2.35, and has to do with 2.34" in done.stderr
    assert check("--newest-glibc", "99.0", file).returncode == 0


def test_another_library_is_named_where_that_is_asked(tmp_path):
    file = compiled(tmp_path, "#include <zlib.h>\nint main() { return zlibVersion()[0]; }\n", "-lz")
    assert check("--newest-glibc", "99.0", file).returncode == 0
    done = check("--newest-glibc", "99.0", "--linked", file)
    assert done.returncode == 3 and "a needs libz.so.1, which another machine may not have" in done.stderr


def test_what_is_no_binary_is_an_error(tmp_path):
    (tmp_path / "text").write_text("text")
    assert check(tmp_path / "text").returncode != 0
    assert check().returncode == 2
