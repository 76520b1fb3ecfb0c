"""Inputs that are drawn, the same ones each time: jobs of many kinds, recordings that are damaged, and samples."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from recording_files import CALL_NUMBERS, Call, Job, Work, write_nsys, write_nvprof, write_trace

NAMES = ("a_kernel", "another_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "cutlass::gemm")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize")
BESIDE = ("cudaMalloc", "cudaFree", "cudaMemcpyAsync", "cudaEventRecord", "cuModuleLoadData")


def job(number: int) -> Job:
    """One of a kind that follows from the number: who waits for whom, for how long, in how many threads and streams."""
    drawn = random.Random(number)
    threads, streams = drawn.randint(1, 3), drawn.randint(1, 3)
    kernel_ns, gap_ns = drawn.choice((2_000, 20_000, 200_000)), drawn.choice((500, 8_000, 150_000))
    blocks, waits_every = drawn.random() < 0.25, drawn.choice((0, 0, 1, 5, 40))
    rarely_long, copies = drawn.choice((0, 0, 0.01, 0.05)), drawn.random() < 0.4
    names = NAMES[: drawn.randint(1, len(NAMES))]
    ahead = drawn.choice((0, 0, 0, 0, 0, 40_000, 3_000_000_000))
    at, free = 1_700_000_000_000_000_000, dict.fromkeys(range(streams), 0)
    calls, work = [], []
    for i in range(drawn.randint(40, 260)):
        thread, stream, identifier = drawn.randint(1, threads), drawn.randrange(streams), 2 * i + 1
        takes = drawn.randint(2_000, 6_000) + (drawn.randint(100_000, 4_000_000) if drawn.random() < rarely_long else 0)
        begin = max(at + drawn.randint(1_000, 9_000), free[stream])
        end = begin + int(kernel_ns * drawn.uniform(0.8, 1.3))
        free[stream] = end
        if blocks:
            takes = max(takes, end + 2_000 - at)
        copy = copies and drawn.random() < 0.2
        kind = drawn.choice(("MEMCPY", "MEMSET")) if copy else "KERNEL"
        calls.append(Call(at, at + takes, identifier, "cudaMemcpyAsync" if copy else "cudaLaunchKernel", thread))
        work.append(Work(begin + ahead, end + ahead, identifier, 0, 7 + stream, kind, drawn.choice(names)))
        at += takes
        if waits_every and i % waits_every == 0:
            wait = drawn.choice(WAITS)
            until = max(at + 1_000, (free[stream] if wait == WAITS[0] else max(free.values())) + 3_000)
            calls.append(Call(at, until, identifier + 1, wait, thread))
            at = until
        elif drawn.random() < 0.1:
            calls.append(Call(at, at + drawn.randint(500, 90_000), identifier + 1, drawn.choice(BESIDE), thread))
            at = calls[-1].end
        at += int(gap_ns * drawn.uniform(0.3, 2.5))
    return Job(tuple(calls), tuple(work))


def job_files(folder: Path, count: int) -> Iterator[Path]:
    for number in range(count):
        one = job(number)
        if number % 5 == 4:
            one = replace(one, calls=tuple(call for call in one.calls if call.name in CALL_NUMBERS))
            yield write_nvprof(folder / f"job-{number:02}.sqlite", one)
        elif number % 2:
            yield write_nsys(folder / f"job-{number:02}.sqlite", one)
        else:
            yield write_trace(folder / f"job-{number:02}.json", one)


def damage(file: Path, number: int) -> None:
    """One place is another: a number, a byte, or all behind it is gone. Of a database it is a cell."""
    drawn = random.Random(f"{file.name} {number}")
    data = bytearray(file.read_bytes())
    if data.startswith(b"SQLite format 3"):
        database = sqlite3.connect(file)
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        table = drawn.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        value = drawn.choice((None, -1, 0, 1, 7, 1 << 40, (1 << 63) - 1, "x", 0.5))
        if rows:
            database.execute(f"UPDATE {table} SET {drawn.choice(columns)} = ? WHERE rowid = ?", (value, drawn.choice(rows)))
        database.commit()
        database.close()
        return
    digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
    way = drawn.randrange(4)
    if way == 0:
        del data[drawn.randrange(len(data)) :]
    elif way == 1 or not digits:
        data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
    elif way == 2:
        data[drawn.choice(digits)] = ord(drawn.choice("0123456789-."))
    else:
        at = drawn.choice(digits)
        data[at:at] = drawn.choice((b"9", b"00000", b"999999999999", b"-"))
    file.write_bytes(data)


VALUES = (-1, 0, 1, 2, 64, 65, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 64, 0.5, 1e300, "x", "", "1", None)


def with_other_values(file: Path, to: Path) -> Iterator[Path]:
    """The file with another value in one place: in turn of each number and word, or of a database of each cell. A value
    follows from the place."""
    drawn = random.Random(file.name)
    if file.read_bytes().startswith(b"SQLite format 3"):
        yield from with_other_cells(file, to, drawn)
        return
    text = file.read_text(encoding="latin-1")  # some are binary
    for place in re.finditer(r'"[^"]*"|[\w.-]+', text):
        value = drawn.choice(VALUES)
        as_text = json.dumps(value) if file.name.startswith(("chrome", "tuner")) else str(value)
        to.write_text(text[: place.start()] + as_text + text[place.end() :], encoding="latin-1")
        yield to


def with_other_cells(file: Path, to: Path, drawn: random.Random) -> Iterator[Path]:
    with contextlib.closing(sqlite3.connect(file)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        cells = [
            (table, column, row)
            for table in tables
            for (_, column, *_) in database.execute(f"PRAGMA table_info({table})").fetchall()
            for (row,) in database.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall()
        ]
    for table, column, row in cells:
        value = drawn.choice([value for value in VALUES if value != 1 << 64])
        shutil.copy(file, to)
        with contextlib.closing(sqlite3.connect(to)) as database:
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, row))
            database.commit()
        yield to


OTHER_GPU = "GPU-11111111-2222-3333-4444-555555555555"


def drawn_session(session: Path, to: Path, number: int) -> None:
    """The session as it might have been: cases take other times, of which some differ from run to run, and here and there a
    record is missing or has another number. Every other one has a second GPU, with times of its own."""
    shutil.copytree(session, to)
    identifier = json.loads((to / "session.json").read_text())["session_id"]
    for path in (to / "session.json", *(to / "records").iterdir()):
        path.write_text(path.read_text().replace(identifier, f"{identifier}-{number}"))
    for path in sorted((to / "records").iterdir()):
        lines = path.read_text().splitlines()
        uuid = path.name.split(".")[1]
        path.write_text("".join(changed_records(lines, f"{number} first", path.name)))
        if number % 2:
            others = changed_records([line.replace(uuid, OTHER_GPU) for line in lines], f"{number} second", path.name)
            path.with_name(path.name.replace(uuid, OTHER_GPU)).write_text("".join(others))


def changed_records(lines: list[str], key: str, name: str) -> Iterator[str]:
    drawn = random.Random(f"{key} {name}")
    for line in lines:
        record = json.loads(line)
        kind = record["record"]
        if kind not in ("run", "end") and drawn.random() < 0.02:
            continue
        if kind == "samples":
            of_case = random.Random(f"{key} {record['case']}")
            factor = of_case.choice((1, 1, 1, of_case.lognormvariate(0, 0.4)))
            if of_case.random() < 0.2:
                factor *= drawn.lognormvariate(0, 0.1)
            scattered = of_case.random() < 0.2
            record["values"] = [
                [value and round(value * factor * (drawn.lognormvariate(0, 0.3) if scattered else 1), 3) for value in values]
                for values in record["values"]
            ]
        elif kind == "summary" and drawn.random() < 0.03:
            record |= dict(status="failed", reason="CUDA error 700")
        elif kind not in ("run", "end"):
            numbers = [at for at, value in record.items() if isinstance(value, (int, float)) and not isinstance(value, bool)]
            if numbers and drawn.random() < 0.2:
                at = drawn.choice(numbers)
                record[at] = type(record[at])(record[at] * drawn.choice((0, 0.5, 2)))
        yield json.dumps(record) + "\n"


def samples(number: int, sizes: list[int]) -> np.ndarray:
    """Groups of positive values: of one mode or two, with a tail, with ticks, with ties."""
    drawn = np.random.Generator(np.random.PCG64(number))
    groups = []
    for size in sizes:
        values = 2_000 * np.exp(drawn.normal(0, 0.02, size) + drawn.normal(0, (0.01, 0.05, 0.25)[number % 3]))
        way = number % 5
        if way == 1:
            values = np.where(drawn.random(size) < 0.3, values * 1.4, values)
        elif way == 2:
            values *= 1 + drawn.pareto(3, size) / 10
        elif way == 3:
            values = np.round(values / 32) * 32
        elif way == 4:
            values = np.full(size, 2_000.0) + (np.arange(size) % 3 == 0)
        groups.append(values.round(3))  # CPUs' exponentials differ in the last digit
    return np.concatenate(groups)


def nights(number: int, count: int) -> np.ndarray:
    """Some in a row are slower or faster, a level is new, or it creeps."""
    change = np.ones(count)
    change[22 + number % 7 : 25 + number % 9] *= (1.08, 0.93, 1.2)[number % 3]
    change[40:] *= (1, 1.06, 0.92, 1)[number % 4]
    change[60 :: number % 3 + 1] *= 1.1
    if number % 4 == 3:
        change *= 1.003 ** np.arange(count)
    return (samples(number, [count]) * change).round(3)
