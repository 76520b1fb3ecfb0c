"""Whether Holistic Trace Analysis reads a trace that launchgap exports as it reads the one that was imported.

    python3 tests/experiments/hta_agrees.py --hta PYTHON TRACE.json.gz…

PYTHON is one that has the package HolisticTraceAnalysis. Each trace is imported, exported, and both are given to HTA, whose
tables of launches are compared row by row. HTA rounds begin and end to whole microseconds. Of times since 1970 a double has
no room for fractions of one, and an export counts from a whole second; so each end may be rounded otherwise. What it said
once is in hta_agrees.txt.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

LAUNCHGAP = pathlib.Path(__file__).parents[2] / "build" / "bin" / "launchgap"
COMPARE = """
import sys
from hta.trace_analysis import TraceAnalysis

def launches(trace, folder):
    analysis = TraceAnalysis(trace_files={0: trace}, trace_dir=folder)
    return analysis.get_cuda_kernel_launch_stats(visualize=False)[0]

original, exported, folder = sys.argv[1:]
a, b = launches(original, folder), launches(exported, folder)
both = a.merge(b, on="correlation", suffixes=("_original", "_exported"), how="outer")
largest = missing = 0
for column in ("cpu_duration", "gpu_duration", "launch_delay"):
    difference = (both[column + "_original"] - both[column + "_exported"]).abs()
    missing += int(difference.isna().sum())
    largest = max(largest, difference.max())
print(f"{len(a)} launches of the original, {len(b)} of the export; {missing} values missing, "
      f"largest difference {largest:g} us")
sys.exit(1 if len(a) == 0 or missing > 0 or largest > 2.01 else 0)
"""


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("traces", nargs="+", type=pathlib.Path)
    arguments.add_argument("--hta", required=True)
    given = arguments.parse_args()
    worst = 0
    for trace in given.traces:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            run(LAUNCHGAP, "import", trace, "-o", place / "session", "--no-report")
            run(LAUNCHGAP, "export", place / "session", "--format", "chrome-trace", "-o", place / "trace.json.gz")
            command = [given.hta, "-P", "-c", COMPARE, str(trace.absolute()), str(place / "trace.json.gz"), folder]
            done = subprocess.run(command, capture_output=True, text=True)
            said = (done.stdout or done.stderr).strip().splitlines() or ["HTA said nothing"]
            print(f"{trace.name}: {said[-1]}")
            worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
