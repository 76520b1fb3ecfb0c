"""Inputs that are drawn, the same ones each time: jobs of many kinds, recordings that are damaged, and samples."""

from __future__ import annotations

import random
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


def samples(number: int, sizes: list[int]) -> np.ndarray:
    """Groups of positive values: of one mode or two, with a tail, with ticks, with ties."""
    drawn = np.random.Generator(np.random.PCG64(number))
    groups = []
    for size in sizes:
        values = 2_000 * np.exp(drawn.normal(0, 0.02, size) + drawn.normal(0, 0.01))
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
