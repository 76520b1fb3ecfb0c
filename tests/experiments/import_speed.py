"""How long `launchgap import` takes, in turns with Holistic Trace Analysis on the same trace, and of a large export of nsys.

    python3 tests/experiments/import_speed.py TRACE.json.gz --hta PYTHON [--rounds 5] [--launches 10000000]

PYTHON is one that has the package HolisticTraceAnalysis. HTA only loads the trace; launchgap reads it, computes
every statistic and writes its tables. What it said once is in import_speed.txt.
"""

import argparse
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

LAUNCHGAP = pathlib.Path(__file__).parents[2] / "build" / "bin" / "launchgap"
LOAD = """
import resource, sys, time
from hta.trace_analysis import TraceAnalysis
begin = time.perf_counter()
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=sys.argv[2])
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def hta(python: str, trace: pathlib.Path) -> tuple[float, int]:
    command = [python, "-P", "-c", LOAD, str(trace), str(trace.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, kilobytes = done.stdout.split()[-2:]
    return float(seconds), int(kilobytes)


def launchgap(recording: pathlib.Path, folder: pathlib.Path) -> tuple[float, int]:
    shutil.rmtree(folder, ignore_errors=True)
    begin = time.perf_counter()
    command = [str(LAUNCHGAP), "import", str(recording), "-o", str(folder), "--no-report"]
    timed = ["/usr/bin/time", "-f", "%M", *command]
    done = subprocess.run(timed, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, int(done.stderr.split()[-1])


def large_export(path: pathlib.Path, launches: int) -> None:
    """Launches 7 to 10 µs apart, a fifth of them on a busy stream."""
    thread, process = 282145931132933, 282145931132928
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = off")
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER, value TEXT);"
            "INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'kernel');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,"
            " nameId INTEGER);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
            " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
        )

        def at(i: int) -> int:
            return 1_000_000 + 8500 * i + (i * 7919) % 3000

        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)",
            ((at(i), at(i) + 3500 + i * 104729 % 900, thread, i + 1) for i in range(launches)),
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, 2)",
            (
                (at(i) + 5000 + i * 15485863 % 2000, at(i) + 8500 + i * 15485863 % 2000, i + 1, process)
                for i in range(launches)
            ),
        )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("trace", type=pathlib.Path)
    arguments.add_argument("--hta", required=True)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--launches", type=int, default=10_000_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        theirs, ours = [], []
        for _ in range(given.rounds):
            theirs.append(hta(given.hta, given.trace.absolute()))
            ours.append(launchgap(given.trace, place / "session"))
        for name, took in (("HTA loads", theirs), ("launchgap imports", ours)):
            seconds, memory = statistics.median(t[0] for t in took), max(t[1] for t in took)
            print(f"{name} {given.trace.name}: {seconds:.2f} s, {memory / 1024:.0f} MiB (median of {len(took)})")
        ratios = [a[0] / b[0] for a, b in zip(theirs, ours, strict=True)]
        print(f"HTA takes {statistics.median(ratios):.1f} times as long (median of pairs)")
        large_export(place / "large.sqlite", given.launches)
        seconds, memory = launchgap(place / "large.sqlite", place / "session")
        print(f"launchgap imports {given.launches} launches of nsys: {seconds:.1f} s, {memory / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
