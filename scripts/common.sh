# shellcheck shell=bash
# Sourced by the other scripts: where things are, and how they speak.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$(basename "$0"): $*"
  exit 3
}

# The toolkit that scripts/setup --with-cuda put into .venv, or one that is installed, for the build to find.
find_nvcc() {
  local candidate
  for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-/nonexistent}/bin/nvcc" "${CUDA_PATH:-/nonexistent}/bin/nvcc" \
                   /usr/local/cuda/bin/nvcc "$root"/.venv/lib/python3*/site-packages/nvidia/*/bin/nvcc; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# For cmake to find it as any program.
nvcc_on_path() {
  local nvcc
  if nvcc=$(find_nvcc); then PATH=$(dirname "$nvcc"):$PATH; fi
}

find_clang() { command -v clang++-14 || command -v clang++; }

# prefer_clang FOLDER: to build there where nobody chose a compiler, since it takes three quarters of GCC's time, and half of
# it with sanitizers. A folder keeps the compiler that it was configured with.
prefer_clang() {
  local clang
  if [ -z "${CXX-}" ] && [ ! -f "$1/CMakeCache.txt" ] && clang=$(find_clang); then export CXX=$clang CC=${clang/clang++/clang}; fi
}

# The CUDA version that the installed driver serves, as 13000 for 13.0; fails without a driver. Asked in a
# process of its own with a limit: a driver in trouble can hang.
driver_cuda_version() {
  timeout 20 python3 - <<'PYTHON' 2>/dev/null
import ctypes
version = ctypes.c_int(0)
driver = ctypes.CDLL("libcuda.so.1")
if driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
    raise SystemExit(1)
print(version.value)
PYTHON
}

# The C++ tests that scripts/test-sanitized leaves out, beside those with ctest's label not_sanitized, as a filter of
# GoogleTest: simulations, which call a million times what other tests call; those tests of the doctor that watch programs
# with a fake library in them: the fakes are instrumented, the programs (Python among them) are not, and AddressSanitizer ends
# a process that loads it late; and one where C++'s operator new must throw, which AddressSanitizer's does not.
# shellcheck disable=SC2034
not_sanitized='*Nights.Rarely*:*Characteristics.LieWithin*:NightResampling.*:*PairedRule.KeepsIts*:*Spread.SeldomErrs*'\
':*Resampling.Finds*:*PaddingGainsOf.SeldomErr*:SmallestLimit.OfRandomTraces*:SmallestLimit.OneStep*:Creep.WhatOthers*'\
':GapByChance.NothingIs*:GapByChance.WhatIs*'\
':LoaderTrace.OfThisMachinesLoader:Watch.TellsProgramsApart:Watch.PythonByCtypes:RunningProcess.OfThisMachine'\
':*OverTheHost.SaysWhenThereIsNotSoMuchAndGoesOn/pool'

# The output of the C++ tests that failed, of a log of ctest, without the tests in it that passed.
failed_output() {
  awk '/Test +#[0-9]+: .*\*\*\*/ { failed = 1; print; next }
       /^ +Start +[0-9]+: |^ *[0-9]+\/[0-9]+ Test +#/ { failed = 0 }
       failed && !/^\[ RUN  |^\[       OK |^\[---|^$/' "$1" | tail -n 200
}
