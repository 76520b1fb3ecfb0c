"""Recordings that are drawn, with all that their forms have: ranks, GPUs, graphs, steps, collectives, allocations, what the
recorder and the scheduler did; and with holes. The same ones each time."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from recording_files import A100, as_json, create, global_id, microseconds

BEGIN = 1_700_000_000_000_000_000
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernelEx", "cudaLaunchKernelExC", "__cudaLaunchKernel_ptsz", "hipLaunchKernel")
OVERHEADS = ("Buffer Flush", "Lazy Function Loading", "Command Buffer Full", "Instrumentation", "Something Else")
COLLECTIVE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@dataclass
class Process:
    """What one recorded; each event is a row of a recorder's, in nanoseconds."""

    rank: int
    pid: int
    gpus: int
    calls: list[dict] = field(default_factory=list)
    kernels: list[dict] = field(default_factory=list)
    transfers: list[dict] = field(default_factory=list)
    graphs: list[dict] = field(default_factory=list)
    waits: list[dict] = field(default_factory=list)
    overheads: list[dict] = field(default_factory=list)
    ranges: list[dict] = field(default_factory=list)
    memory: list[dict] = field(default_factory=list)
    pauses: list[dict] = field(default_factory=list)
    python_calls: int = 0


class Drawn:
    """A program of steps, of which each launches, copies, allocates, waits and pauses as its number says."""

    def __init__(self, number: int, rank: int, ranks: int) -> None:
        self.kind = random.Random(number)  # alike in all ranks
        self.draw = random.Random(f"{number} {rank}")
        kind = self.kind
        self.kernel_ns, self.gap_ns = kind.choice((3_000, 30_000, 300_000)), kind.choice((400, 6_000, 90_000))
        self.streams, self.threads, self.graph_nodes = kind.randint(1, 3), kind.randint(1, 2), kind.choice((0, 0, 4, 9))
        self.whole_graphs, self.steps, self.per_step = kind.random() < 0.4, kind.randint(3, 14), kind.randint(3, 14)
        self.launch, self.named_steps = kind.choice(LAUNCHES), kind.random() < 0.7
        self.holes, self.changes = kind.choice((0, 0, 0.03)), kind.random() < 0.5
        self.rarely = {what: kind.choice((0, 0.04)) for what in ("overhead", "malloc", "pause", "slow", "module")}
        self.waits_at = kind.choice(("kernel", "step", "never"))
        self.gpu_ahead = kind.choice((0, 0, 0, 60_000, -9_000, 5_000_000_000))
        self.longer = 1 + (0.2 * (rank == 1) if kind.random() < 0.5 else 0.01 * rank)
        self.process = Process(rank, 4242 + rank, kind.randint(1, 2) if ranks == 1 else 1)
        if kind.random() < 0.3:
            self.process.python_calls = 5
        self.at, self.id, self.live = BEGIN + rank * 77_000, 1, []
        self.free: dict[tuple[int, int], int] = {}

    def took(self, ns: float) -> int:
        return max(1, int(ns * self.draw.lognormvariate(0, 0.15)))

    def happens(self, what: str) -> bool:
        return self.draw.random() < self.rarely[what]

    def call(self, name: str, ns: float, thread: int = 1, until: int = 0) -> int:
        """Returns its correlation number."""
        begin, self.id = self.at, self.id + 1
        self.at = max(begin + self.took(ns), until)
        self.process.calls.append(dict(begin=begin, end=self.at, id=self.id, name=name, thread=thread))
        return self.id

    def on_gpu(self, ns: float, gpu: int, stream: int) -> dict:
        """Where and when, after what is queued there."""
        begin = max(self.at + self.took(2_500), self.free.get((gpu, stream), 0) + self.draw.randint(200, 1_500))
        self.free[gpu, stream] = begin + self.took(ns)
        ahead = self.gpu_ahead
        return dict(begin=begin + ahead, end=self.free[gpu, stream] + ahead, gpu=gpu, stream=7 + stream)

    def kernel(self, step: int, place: int) -> None:
        gpu, stream, thread = (self.draw.randrange(n) for n in (self.process.gpus, self.streams, self.threads))
        before = self.at
        if self.happens("pause"):
            self.process.pauses.append(dict(begin=self.at + 500, end=self.at + 900_000, thread=1 + thread))
        slow = self.happens("slow") or self.happens("pause")
        if self.graph_nodes and place % 4 == 3:
            number = self.call("cudaGraphLaunch", 9_000, 1 + thread)
            times = [self.on_gpu(self.kernel_ns, gpu, stream) for _ in range(self.graph_nodes)]
            if self.whole_graphs:
                whole = times[0] | dict(end=times[-1]["end"], id=number, graph=1 + stream)
                self.process.graphs.append(whole)
                return
        else:
            number = self.call(self.launch, 900_000 if slow else 4_000, 1 + thread)
            times = [self.on_gpu(self.kernel_ns * self.longer, gpu, stream)]
        if self.happens("overhead"):
            name = self.draw.choice(OVERHEADS)
            self.process.overheads.append(dict(begin=before + 100, end=self.at - 100, id=number, name=name))
        for node, when in enumerate(times):
            changed = self.changes and step % 3 == 2 and place == 0
            name = "another_kernel" if changed else ("gemm", "softmax", "layer_norm")[(place + node) % 3]
            grid = [1 + place, 2 if changed else 1, 1]
            self.process.kernels.append(when | dict(id=number, name=name, grid=grid, block=[32 * (1 + place % 4), 1, 1]))

    def allocate(self) -> None:
        release = self.live and self.draw.random() < 0.5
        address, size = (
            self.live.pop(self.draw.randrange(len(self.live)))
            if release
            else (0x7F00_0000_0000 + 512 * self.id, 512 * self.draw.randint(1, 9_000))
        )
        number = self.call("cudaFree" if release else "cudaMalloc", 700_000 if self.happens("slow") else 40_000)
        if not release:
            self.live.append((address, size))
        self.process.memory.append(dict(begin=self.at, id=number, address=address, bytes=size, release=bool(release)))

    def wait(self, name: str) -> None:
        begin, until = self.at, max(self.free.values(), default=self.at) + self.took(3_000)
        number = self.call(name, 1_500, until=until)
        self.process.waits.append(dict(begin=begin + 300, end=self.at - 200, id=number, kind=1 + number % 4))

    def step(self, number: int) -> None:
        begin = self.at
        for place in range(self.per_step):
            self.at += self.took(self.gap_ns)
            self.kernel(number, place)
            if self.happens("malloc"):
                self.allocate()
            if self.happens("module"):
                self.call("cuModuleLoadData", 3_000_000)
            if self.waits_at == "kernel" and place % 2:
                self.wait("cudaStreamSynchronize")
        if self.kind.random() < 0.4:
            copy, fill = self.call("cudaMemcpyAsync", 5_000), self.call("cudaMemsetAsync", 4_000)
            for identifier, is_fill in ((copy, False), (fill, True)):
                when = self.on_gpu(20_000, 0, 0)
                self.process.transfers.append(when | dict(id=identifier, bytes=4096 * number, fill=is_fill))
        if self.kind.random() < 0.5:
            when = self.on_gpu(200_000 + (600_000 if self.draw.random() < 0.2 else 0), 0, 0)
            number_of_call = self.call("cudaLaunchKernelExC", 4_000)
            self.process.kernels.append(when | dict(id=number_of_call, name=COLLECTIVE, grid=[8, 1, 1], block=[512, 1, 1]))
        if self.waits_at != "never":
            self.wait("cudaDeviceSynchronize")
        name = f"ProfilerStep#{number}" if self.named_steps else "another range"
        self.process.ranges.append(dict(begin=begin, end=self.at, name=name, thread=1, payload=number))
        self.at += self.took(self.kind.choice((1_000, 1_000, 2_500_000)))

    def program(self) -> Process:
        for number in range(self.steps):
            self.step(number)
        return self.process


def without(rows: list[dict], holes: float, drawn: random.Random, but: tuple[str, ...] = ()) -> list[dict]:
    """Some values are missing."""
    keep = ("ph", "cat", "name", "pid", *but)
    return [{key: value for key, value in row.items() if key in keep or drawn.random() >= holes} for row in rows]


def trace_events(process: Process) -> list[dict]:
    def event(category: str, row: dict, tid: object, name: str = "", pid: int = process.pid, **arguments: object) -> dict:
        times = dict(ts=microseconds(row["begin"]), dur=microseconds(row["end"] - row["begin"]))
        return dict(ph="X", cat=category, name=name or row["name"], pid=pid, tid=tid, **times, args=arguments)

    def of_gpu(category: str, row: dict, name: str = "", **arguments: object) -> dict:
        where = dict(device=row["gpu"], context=1, stream=row["stream"], correlation=row["id"])
        return event(category, row, row["stream"], name, row["gpu"], **where, **arguments)

    calls = [
        event("cuda_driver" if row["name"].startswith("cuL") else "cuda_runtime", row, row["thread"], correlation=row["id"])
        for row in process.calls
    ]
    kernels = [of_gpu("kernel", row, grid=row["grid"], block=row["block"]) for row in process.kernels]
    transfers = [
        of_gpu("gpu_memset" if row["fill"] else "gpu_memcpy", row, "a transfer", bytes=row["bytes"])
        for row in process.transfers
    ]
    graphs = [of_gpu("launchgap_graph", row, "graph") for row in process.graphs]
    waits = [event("cuda_sync", row, 1, "a wait", correlation=row["id"]) for row in process.waits]
    overheads = [event("overhead", row, 1, correlation=row["id"]) for row in process.overheads]
    ranges = [event("user_annotation", row, row["thread"]) for row in process.ranges]
    on_gpu = [event("gpu_user_annotation", row, 7, pid=0) for row in process.ranges]
    of_allocator = dict(ph="i", cat="cpu_instant_event", name="[memory]", pid=process.pid, tid=1)
    memory = []
    for row in process.memory:
        bytes_given = -row["bytes"] if row["release"] else row["bytes"]
        told = {"Device Type": 1, "Device Id": 0, "Addr": row["address"], "Bytes": bytes_given}
        memory.append(of_allocator | dict(ts=microseconds(row["begin"]), args=told))
    python_call = dict(ph="X", cat="python_function", name="forward", pid=process.pid, tid=1, ts=1, dur=1)
    python = [python_call] * process.python_calls
    return calls + kernels + transfers + graphs + waits + overheads + ranges + on_gpu + memory + python


def write_trace(path: Path, process: Process, holes: float, drawn: random.Random) -> Path:
    gpus = [
        dict(id=i, name="NVIDIA H100", totalGlobalMem=85_000_000_000, computeMajor=9, computeMinor=0)
        for i in range(process.gpus)
    ]
    events = without(trace_events(process), holes, drawn)
    for event in events:
        event |= dict(args=without([event.get("args", {})], holes, drawn)[0])
    head = dict(schemaVersion=1, deviceProperties=gpus, distributedInfo=dict(rank=process.rank))
    path.write_text(as_json(head | dict(traceEvents=events)))
    return path


def write_nsys(path: Path, processes: list[Process], holes: float, drawn: random.Random) -> Path:
    strings: dict[str, int] = {}

    def string(text: str) -> int:
        return strings.setdefault(text, 1000 + len(strings))

    tables: dict[str, list[dict]] = {}

    def add(table: str, process: Process, row: dict, thread: int | None = None, **columns: object) -> None:
        times = dict(start=row["begin"], end=row.get("end", row["begin"]))
        owner = dict(globalPid=global_id(process.pid)) if thread is None else dict(globalTid=global_id(process.pid, thread))
        tables.setdefault(table, []).append(times | owner | columns)

    def add_of_gpu(kind: str, process: Process, row: dict, **columns: object) -> None:
        where = dict(deviceId=row["gpu"], contextId=1, streamId=row["stream"], correlationId=row["id"])
        add(f"CUPTI_ACTIVITY_KIND_{kind}", process, row, **where, **columns)

    for one in processes:
        for row in one.calls:
            name = string(f"{row['name']}_v7000")
            add("CUPTI_ACTIVITY_KIND_RUNTIME", one, row, row["thread"], eventClass=0, correlationId=row["id"], nameId=name)
        for row in one.kernels:
            extents = {f"{what}{axis}": row[what][i] for what in ("grid", "block") for i, axis in enumerate("XYZ")}
            add_of_gpu("KERNEL", one, row, demangledName=string(row["name"]), **extents)
        for row in one.transfers:
            add_of_gpu("MEMSET" if row["fill"] else "MEMCPY", one, row, bytes=row["bytes"])
        for row in one.graphs:
            add_of_gpu("GRAPH_TRACE", one, row, graphId=row["graph"])
        for row in one.waits:
            add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", one, row, correlationId=row["id"], syncType=row["kind"])
        for row in one.overheads:
            add("PROFILER_OVERHEAD", one, row, 1, nameId=string(row["name"]))
        for number, row in enumerate(one.ranges):
            name = dict(text=row["name"], textId=None) if number % 2 else dict(text=None, textId=string(row["name"]))
            values = dict(uint64Value=row["payload"], int64Value=None)
            add("NVTX_EVENTS", one, row, row["thread"], eventType=59 + number % 3 // 2, **name, **values)
        for row in one.memory:
            kind = dict(memKind=2, memoryOperationType=int(row["release"]), deviceId=0, correlationId=row["id"])
            add("CUDA_GPU_MEMORY_USAGE_EVENTS", one, row, address=row["address"], bytes=row["bytes"], **kind)
        for row in one.pauses:
            for begin, scheduled in ((row["begin"], 0), (row["end"], 1)):
                add("SCHED_EVENTS", one, dict(begin=begin), row["thread"], isSchedIn=scheduled)
    database = sqlite3.connect(path)
    for table, rows in tables.items():
        with_holes = [{key: value if drawn.random() >= holes else None for key, value in row.items()} for row in rows]
        create(database, table, with_holes)
    create(database, "StringIds", [dict(id=number, value=text) for text, number in strings.items()], ("id", "value"))
    gpus = [A100 | dict(id=i, uuid=f"cf6b97c0-0000-4000-8000-{i:012}") for i in range(max(one.gpus for one in processes))]
    create(database, "TARGET_INFO_GPU", gpus)
    if drawn.random() < 0.5:
        numbers = [dict(gpuId=gpu["id"], cudaId=gpu["id"], pid=one.pid) for one in processes for gpu in gpus]
        create(database, "TARGET_INFO_CUDA_DEVICE", numbers)
    create(database, "META_DATA_EXPORT", [dict(name="EXPORT_SCHEMA_VERSION", value="3.13.2")])
    create(database, "TARGET_INFO_SYSTEM_ENV", [dict(name="NvDriverVersion", value="550.54.15")])
    database.commit()
    database.close()
    return path


def files(folder: Path, number: int) -> list[Path]:
    """One recording, or one for each rank; every third is of Nsight Systems, which has all processes in one."""
    drawn = random.Random(f"files {number}")
    ranks = drawn.choice((1, 1, 1, 2, 3))
    programs = [Drawn(number, rank, ranks) for rank in range(ranks)]
    holes, processes = programs[0].holes, [one.program() for one in programs]
    if number % 3 == 2:
        return [write_nsys(folder / f"rich-{number:02}.sqlite", processes, holes, drawn)]
    return [write_trace(folder / f"rich-{number:02}-{one.rank}.json", one, holes, drawn) for one in processes]
