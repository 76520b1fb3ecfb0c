"""How long `merge` and `report` take for many devices, and Parquet of many samples, with the most memory of each.

    .venv/bin/python3 tests/experiments/fleet_scale.py [--devices 2500 5000 10000] [--samples 10 100] [--folder FOLDER]

A session of a fake A100 is measured once; the others are made from it (tests/fleet/make_fleet.py), each with its tables, its
session.json and its records. Samples are in millions, of one session with as many runs as that takes.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fleet"))

import make_fleet  # noqa: E402
import pyarrow.parquet  # noqa: E402

LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
GPUS = 8


def timed(*arguments) -> tuple[float, float]:
    """Seconds, and the most MiB of it and of each process that it started."""
    begin = time.perf_counter()
    done = subprocess.Popen([LAUNCHGAP, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(done.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def measured(folder: pathlib.Path) -> pathlib.Path:
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(ROOT / "build" / "fake_cuda"),
        "LAUNCHGAP_FAKE_NODE": str(ROOT / "tests" / "fake_cuda" / "nodes" / "one_a100.json"),
        "LAUNCHGAP_WARM_UP": "off",
    }
    command = [LAUNCHGAP, "run", "--devices", "gpu", "--profile", "quick", "--trace", "off", "--no-report", "-o", folder]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return folder


def fleet(base: pathlib.Path, place: pathlib.Path, devices: int) -> None:
    facts = make_fleet.Fleet(devices // GPUS, GPUS, slow_devices={(1, 2): 1.35}, slow_nodes={2: 1.05})
    sessions = make_fleet.write(base, place / "sessions", facts)
    rows = (sessions[0] / "summary.csv").read_text().count("\n") - 1
    size = (sessions[0] / "summary.csv").stat().st_size / 1000
    files = len(os.listdir(sessions[0] / "records"))
    print(f"{len(sessions)} sessions, each of {rows} rows, {size:.0f} kB, {files} records files")
    seconds, most = timed("merge", place / "sessions", "-o", place / "merged")
    print(f"  merge:  {seconds:5.1f} s  {most:5.0f} MiB")
    more, most = timed("report", place / "merged", "--json", place / "report.json")
    page = (place / "merged" / "report.html").stat().st_size / 1000
    print(f"  report: {more:5.1f} s  {most:5.0f} MiB, a page of {page:.0f} kB")
    print(f"  both:   {seconds + more:5.1f} s")
    codes = ("fleet-node", "fleet-device", "fleet-devices", "fleet-nodes")
    found = [f for f in json.loads((place / "report.json").read_text())["findings"] if f["code"] in codes]
    named = {f["subject"] for f in found}
    print(f"  named:  {'exactly what is slow' if named == {facts.uuid(1, 2), facts.node(2)} else sorted(named)}", flush=True)


def values_of(records: str) -> int:
    lines = [json.loads(line) for line in records.splitlines() if '"record":"samples"' in line]
    return sum(len(of_metric) for line in lines for of_metric in line["values"])


def samples(base: pathlib.Path, place: pathlib.Path, millions: float) -> None:
    """A session with the runs of `base`, and then its first again and again."""
    session = place / "session"
    shutil.copytree(base, session)
    records = {path.name: path.read_text() for path in (session / "records").iterdir()}
    first = {name: text for name, text in records.items() if ".r0." in name}
    runs = len({name.split(".r")[1].split(".")[0] for name in records})
    total, of_first = (sum(map(values_of, some.values())) for some in (records, first))
    while total < millions * 1e6:
        for name, text in first.items():
            other = text.replace('"replicate":0', f'"replicate":{runs}', 1)
            (session / "records" / name.replace(".r0.", f".r{runs}.")).write_text(other)
        runs += 1
        total += of_first
    seconds, most = timed("export", session, "--format", "parquet", "-o", place / "parquet")
    files = list((place / "parquet" / "samples").rglob("*.parquet"))
    rows = sum(pyarrow.parquet.read_metadata(path).num_rows for path in files)
    assert rows == total
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"Parquet of {rows / 1e6:.1f} million samples in {runs} runs: {seconds:.0f} s, {most:.0f} MiB, {size:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, nargs="*", default=[2500, 5000, 10000])
    parser.add_argument("--samples", type=float, nargs="*", default=[10, 100], help="in millions")
    parser.add_argument("--folder", default=None, help="where there is room for 5 GB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        base = measured(pathlib.Path(folder) / "base")
        for what, sizes in ((fleet, options.devices), (samples, options.samples)):
            for size in sizes:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    what(base, pathlib.Path(place), size)


if __name__ == "__main__":
    main()
