"""Small recordings, written in the forms of the three recorders: calls and what the GPU did, as one likes to have them."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

PID = 4242


@dataclass(frozen=True)
class Call:
    begin: int
    end: int
    id: int
    name: str = "cudaLaunchKernel"
    thread: int = 1


@dataclass(frozen=True)
class Work:
    begin: int
    end: int
    id: int
    device: int = 0
    stream: int = 7
    kind: str = "KERNEL"  # or MEMCPY, MEMSET: the names of nsys's tables
    name: str = "a_kernel"  # in PyTorch's form alone


@dataclass(frozen=True)
class Job:
    calls: tuple[Call, ...]
    work: tuple[Work, ...]

    def __add__(self, other: Job) -> Job:
        return Job(self.calls + other.calls, self.work + other.work)

    def device_clock(self, ahead: int) -> Job:
        return replace(self, work=tuple(replace(one, begin=one.begin + ahead, end=one.end + ahead) for one in self.work))


def launches(n: int = 20, begin: int = 1_000_003, tick: int = 1, **of_call) -> Job:
    """One about every 20 µs, all on an idle stream: a call of 4 µs, and 6 µs after it began a kernel of 2 µs. All times are
    multiples of the tick after `begin`."""
    calls, work = [], []
    for i in range(n):
        at = begin + 20_000 // tick * tick * i + i % 7 * tick
        calls.append(Call(at, at + 4_000 // tick * tick, 100 + i, **of_call))
        work.append(Work(at + 6_000 // tick * tick, at + 8_000 // tick * tick, 100 + i))
    return Job(tuple(calls), tuple(work))


# --- Chrome traces, as PyTorch's profiler writes them ---


def microseconds(nanoseconds: int) -> str:
    """A decimal between marks, which as_json() takes off: a float has no room for it."""
    return f"<{nanoseconds // 1000}.{nanoseconds % 1000:03}>"


def as_json(document: object) -> str:
    return re.sub(r'"<([\d.]+)>"', r"\1", json.dumps(document))


CATEGORIES = {"KERNEL": "kernel", "MEMCPY": "gpu_memcpy", "MEMSET": "gpu_memset"}


def trace_events(job: Job) -> list[dict]:
    def event(category: str, name: str, tid: int, pid: int, begin: int, end: int, **arguments) -> dict:
        times = dict(ts=microseconds(begin), dur=microseconds(end - begin))
        return dict(ph="X", cat=category, name=name, pid=pid, tid=tid, **times, args=arguments)

    events = []
    for call in job.calls:
        category = "cuda_driver" if call.name.startswith("cu") and call.name[2].isupper() else "cuda_runtime"
        events.append(event(category, call.name, call.thread, PID, call.begin, call.end, correlation=call.id))
    for one in job.work:
        where = dict(device=one.device, context=1, stream=one.stream, correlation=one.id)
        events.append(event(CATEGORIES[one.kind], one.name, one.stream, one.device, one.begin, one.end, **where))
    return events


def write_trace(path: Path, job: Job, **head) -> Path:
    gpus = [dict(id=0, name="NVIDIA A100-SXM4-80GB", totalGlobalMem=84_990_623_744, computeMajor=8, computeMinor=0)]
    document = dict(schemaVersion=1, deviceProperties=gpus) | head | dict(traceEvents=trace_events(job))
    path.write_text(as_json(document))
    return path


# --- SQLite ---


def create(database: sqlite3.Connection, table: str, rows: Sequence[dict], columns: Iterable[str] = ()) -> None:
    """A table of these rows; one without rows has these columns."""
    names = list(rows[0] if rows else columns)
    database.execute(f"CREATE TABLE {table} ({', '.join(names)})")
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", [list(row.values()) for row in rows])


A100 = dict(id=0, name="NVIDIA A100-SXM4-80GB", uuid="cf6b97c0-0000-4000-8000-000000000000", computeMajor=8, computeMinor=0)


def global_id(pid: int = PID, thread: int = 0) -> int:
    """nsys's number of a thread: 8 bits of hardware, 8 of virtual machine, 24 of the process, 24 of the thread."""
    return 1 << 48 | pid << 24 | thread


def write_nsys(
    path: Path,
    job: Job,
    *,
    gpus: Sequence[dict] = (A100,),
    meta: str | None = "META_DATA_EXPORT",
    schema: str = "3.13.2",
    driver: str | None = None,
    version: str = "_v7000",  # at the end of a call's name
    left_out: Sequence[str] = (),  # tables
) -> Path:
    strings: dict[str, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, 1000 + len(strings))

    tables = {"RUNTIME": [
        dict(start=call.begin, end=call.end, eventClass=0, globalTid=global_id(thread=call.thread), correlationId=call.id,
             nameId=string(call.name + version))
        for call in job.calls
    ]}  # fmt: skip
    for one in job.work:
        row = dict(start=one.begin, end=one.end, deviceId=one.device, contextId=1, streamId=one.stream)
        row |= dict(correlationId=one.id, globalPid=global_id())
        row |= dict(demangledName=string("a_kernel(int)")) if one.kind == "KERNEL" else dict(bytes=1024)
        tables.setdefault(one.kind, []).append(row)
    database = sqlite3.connect(path)
    for name, rows in tables.items():
        if rows and name not in left_out:
            create(database, f"CUPTI_ACTIVITY_KIND_{name}", rows)
    create(database, "StringIds", [dict(id=number, value=text) for text, number in strings.items()], ("id", "value"))
    create(database, "TARGET_INFO_GPU", gpus, A100)
    if meta:
        told = dict(EXPORT_PRODUCT_VERSION="2024.5.1.113", EXPORT_SCHEMA_VERSION=schema)
        create(database, meta, [dict(name=name, value=value) for name, value in told.items()])
    if driver:
        create(database, "TARGET_INFO_SYSTEM_ENV", [dict(name="NvDriverVersion", value=driver)])
    database.commit()
    database.close()
    return path


CALL_NUMBERS = {
    "cudaLaunch": ("RUNTIME", 13), "cudaLaunchKernel": ("RUNTIME", 211), "cudaLaunchKernelExC": ("RUNTIME", 430),
    "cudaLaunchCooperativeKernelMultiDevice": ("RUNTIME", 272), "cuLaunchKernel": ("DRIVER", 307),
    "cudaDeviceSynchronize": ("RUNTIME", 165),
}  # fmt: skip


def write_nvprof(path: Path, job: Job) -> Path:
    tables: dict[str, list[dict]] = {"RUNTIME": [], "DRIVER": [], "CONCURRENT_KERNEL": []}
    for call in job.calls:
        table, number = CALL_NUMBERS[call.name]
        tables[table].append(
            dict(cbid=number, start=call.begin, end=call.end, processId=PID, threadId=call.thread, correlationId=call.id)
        )
    for one in job.work:
        tables["CONCURRENT_KERNEL"].append(
            dict(start=one.begin, end=one.end, deviceId=one.device, contextId=1, streamId=one.stream, correlationId=one.id)
            | dict(name=2)
        )
    database = sqlite3.connect(path)
    of_calls = ("cbid", "start", "end", "processId", "threadId", "correlationId")
    of_kernels = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "name")
    for name, rows in tables.items():
        create(database, f"CUPTI_ACTIVITY_KIND_{name}", rows, of_kernels if name == "CONCURRENT_KERNEL" else of_calls)
    create(database, "StringTable", [dict(_id_=1, value="Tesla P100-PCIE-16GB"), dict(_id_=2, value="_Z8a_kernelv")])
    gpu = dict(id=0, name=1, computeCapabilityMajor=6, computeCapabilityMinor=0, globalMemorySize=17_071_734_784)
    create(database, "CUPTI_ACTIVITY_KIND_DEVICE", [gpu | dict(uuid=bytes(range(16)))])
    database.commit()
    database.close()
    return path


def rank_file(
    path: Path,
    rank: int,
    steps: range,
    longer: float = 0,
    seed: int = 0,
    collective_ns: Sequence[int] = (),
    together_ns: int = 0,
) -> Path:
    """Steps of about 10 ms; all but what a step takes longer is 20 kernels that keep the GPU busy. With the times of
    collectives there is one at the end of each step, and the steps have no names; with `together_ns` each step has a name,
    and a collective at its end until it has taken so long."""
    scatter = random.Random(seed * 100 + rank)
    at, calls, work, ranges = 1_700_000_000_000_000_000, [], [], []
    for number in steps:
        begin = at
        for place in range(20):
            ns = int(500_000 * (1 + longer) * scatter.gauss(1, 0.01))
            identifier = number * 100 + place + 1
            calls.append(Call(at, at + 5_000, identifier))
            work.append(Work(at + 8_000, at + ns, identifier))
            at += ns + 1_000
        if collective_ns or together_ns:
            ns = collective_ns[number % len(collective_ns)] if collective_ns else begin + together_ns - at - 9_000
            calls.append(Call(at, at + 5_000, number * 100 + 99))
            work.append(Work(at + 8_000, at + 8_000 + ns, number * 100 + 99, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"))
            at += 9_000 + ns
        if not collective_ns:
            ranges.append((f"ProfilerStep#{number}", begin, at))
    events = trace_events(Job(tuple(calls), tuple(work)))
    for name, begin, end in ranges:
        times = dict(ts=microseconds(begin), dur=microseconds(end - begin))
        events.append(dict(ph="X", cat="user_annotation", name=name, pid=4242, tid=1, **times, args={}))
    document = dict(schemaVersion=1, distributedInfo=dict(rank=rank), traceEvents=events)
    path.write_text(as_json(document))
    return path


def waited_for(n: int = 500) -> Job:
    """Launches that are held up now and then, each waited for: so the clocks are known to some microseconds."""
    scatter = random.Random(3)
    calls, work = [], []
    for i in range(n):
        at = 1_700_000_000_000_000_000 + 1_000_000 * i
        begin = at + 3_000 + int(scatter.expovariate(1 / 100_000))
        end = begin + 20_000
        calls += [Call(at, at + 2_000, 2 * i + 1), Call(at + 3_000, end + 2_000, 2 * i + 2, "cudaDeviceSynchronize")]
        work.append(Work(begin, end, 2 * i + 1))
    return Job(tuple(calls), tuple(work))


def drifting(job: Job, ahead: int, ppm: float) -> Job:
    first = job.work[0].begin

    def moved(one: Work) -> Work:
        by = ahead + round((one.begin - first) * ppm * 1e-6)
        return replace(one, begin=one.begin + by, end=one.end + by)

    return replace(job, work=tuple(map(moved, job.work)))
