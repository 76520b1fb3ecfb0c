#!/usr/bin/env python3
"""How long `launchgap check` takes against five years of nights, and how much memory.

    tests/experiments/check_speed.py [FOLDER]

A session of 8 GPUs with 200 metrics each and a million samples, and a history of 1,825 nights of them, with a new kernel
every month, are made in FOLDER (default: a temporary one), some 300 MB. Limits: 5 s and 512 MiB to check; 1 s to add,
beyond reading.
"""

import json
import pathlib
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
from night_sessions import FINGERPRINT, FIRST_NIGHT, Session  # noqa: E402

LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
DEVICES, CASES, PROCESSES, NIGHTS = 8, 200, 3, 5 * 365
SAMPLES = 1_000_000 // (DEVICES * CASES * PROCESSES)


def device(i):
    return f"GPU-{i:08x}-0000-0000-0000-000000000000"


def case(i):
    return f"launch/grid/blocks:{i + 1}"


def write_session(folder, night=1):
    """One folder with the records of all devices."""
    path = None
    for i in range(DEVICES):
        medians = {case(k): {"api_ns": [2000 * (1 + 0.001 * run) for run in range(PROCESSES)]} for k in range(CASES)}
        one = Session(night=night, medians=medians, device=device(i), samples=SAMPLES)
        part = one.write(folder / f"part-{i}")
        if path is None:
            path = part
            continue
        for file in (part / "records").iterdir():
            file.rename(path / "records" / f"{i}.{file.name}")
        info = json.loads((path / "session.json").read_text())
        info["devices"] += json.loads((part / "session.json").read_text())["devices"]
        (path / "session.json").write_text(json.dumps(info))
    return path


def flattened(fingerprint):
    return {key: value for key, value in fingerprint.items() if key != "environment"}


def write_history(file, session):
    """The tables are those of an empty history; what is in them is written directly."""
    small = Session(night=-10000, medians={case(0): {"api_ns": [2000, 2001, 2002]}}).write(file.parent)
    subprocess.run([LAUNCHGAP, "history", "add", file, small], check=True, stdout=subprocess.DEVNULL)
    draw = random.Random(1)
    database = sqlite3.connect(file)
    months = range(NIGHTS // 30 + 1)
    for month in months:
        kernel = FINGERPRINT["kernel"] if month == months[-1] else f"6.0.{month}"
        keys = json.dumps(dict(sorted((flattened(FINGERPRINT) | {"kernel": kernel}).items())), separators=(",", ":"))
        database.execute("INSERT OR IGNORE INTO fingerprints (id, keys) VALUES (?, ?)", (1000 + month, keys))
    for i in range(DEVICES):
        for k in range(CASES):
            number = 10_000 + i * CASES + k
            database.execute(
                "INSERT INTO series VALUES (?, ?, 'plain', 'launch', ?, 'api_ns', 'NVIDIA H100')",
                (number, device(i), case(k)),
            )
    begin = int(FIRST_NIGHT.timestamp()) - NIGHTS * 86400
    for night in range(NIGHTS):
        database.execute(
            "INSERT INTO sessions VALUES (?, ?, 'n1', ?, ?, NULL)",
            (10_000 + night, f"old-{night}", begin + night * 86400, begin + night * 86400),
        )
    known = {row[0] for row in database.execute("SELECT id FROM fingerprints")}
    last = next(row[0] for row in database.execute("SELECT id, keys FROM fingerprints") if '"6.1.0"' in row[1])

    def points():
        for series in range(10_000, 10_000 + DEVICES * CASES):
            for night in range(NIGHTS):
                fingerprint = 1000 + night // 30
                if fingerprint not in known or night >= NIGHTS - 70:
                    fingerprint = last
                value = 2000 * (1 + draw.gauss(0, 0.01))
                spread = (0.02 + draw.random() * 0.001, 0.01, 1.1, 1.0)
                where = (series, fingerprint, begin + night * 86400, 10_000 + night)
                yield (*where, value, 3, *spread, 2200.0, None, "same", 0, 40)

    database.executemany(f"INSERT INTO points VALUES ({','.join('?' * 15)})", sorted(points()))
    database.commit()
    database.close()


def measured(*arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    done = subprocess.run(["/usr/bin/env", "time", "-f", "%M", LAUNCHGAP, *arguments], capture_output=True, text=True)
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 4):
        sys.exit(done.stdout + done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, int(done.stderr.strip().splitlines()[-1]) / 1024, done.stdout


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        session = write_session(folder)
        history = folder / "nights.db"
        write_history(history, session)
        size = history.stat().st_size / 2**20
        samples = DEVICES * CASES * PROCESSES * SAMPLES
        print(f"{DEVICES * CASES} metrics, {samples:,} samples; {NIGHTS} nights, {size:.0f} MiB of history")
        seconds, cpu, memory, said = measured("check", "--history", str(history), str(session), "--no-add")
        print(f"check --no-add   {seconds:5.2f} s ({cpu:.2f} s of CPU), {memory:.0f} MiB: {said.splitlines()[0]}")
        reading, *_ = measured("check", str(session), str(write_session(folder / "other", night=2)))
        seconds, cpu, memory, _ = measured("history", "add", str(history), str(session))
        print(f"history add      {seconds:5.2f} s ({cpu:.2f} s of CPU), {memory:.0f} MiB")
        print(f"two sessions read and compared {reading:.2f} s, so one is read in less than {reading / 2:.2f} s")


if __name__ == "__main__":
    main()
