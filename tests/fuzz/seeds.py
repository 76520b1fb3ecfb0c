"""Small inputs of one form for the fuzzer to begin with: `seeds.py FORM FOLDER`; without arguments the names of all."""

import functools
import json
import pathlib
import pickle
import sqlite3
import struct
import sys

NSYS = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'kernel'), (3, 'cudaDeviceSynchronize_v3020'), (4,
  'cudaGraphLaunch');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER,
  nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 200, 0, 16777217, 1, 1), (90, 210, 67, 16777217, 1, 1),
  (300, 400, 0, 16777217, 2, 1), (500, 900, 0, 16777218, 3, 3), (950, 990, 0, 16777217, 4, 4);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER, blockX INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (250, 290, 0, 1, 7, 1, 16777216, 2, 1, 1), (420, 600, 0, 1, 7, 2,
  16777216, 2, 1, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 20, 0, 1, 7, 9, 16777216, 64);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1000, 1200, 0, 1, 7, 4, 16777216, 1);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER,
  uint64Value INTEGER);
INSERT INTO NVTX_EVENTS VALUES (1, 999, 59, 'step', NULL, 16777217, 7);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, uuid TEXT, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100', 'x', 8, 0);
"""
NVPROF = """
CREATE TABLE StringTable (_id_ INTEGER, value TEXT);
INSERT INTO StringTable VALUES (1, 'kernel'), (2, 'Tesla P100');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (cbid INTEGER, start INTEGER, end INTEGER, processId INTEGER, threadId INTEGER,
  correlationId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (211, 100, 200, 1, 1, 1), (13, 300, 400, 1, 1, 2), (165, 500, 900, 1, 1, 3);
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER,
  correlationId INTEGER, name INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (250, 290, 0, 1, 7, 1, 1), (0, 600, 0, 1, 7, 2, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE (id INTEGER, name INTEGER, computeCapabilityMajor INTEGER,
  computeCapabilityMinor INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (0, 2, 6, 0);
"""
EVENTS = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1712195495505543.2, "dur": 4.5,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": "1712195495505550", "dur": 2,
     "args": {"correlation": "1", "device": 0, "context": 1, "stream": 7, "grid": [1, 2, 3], "block": [32, 1, 1]}},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 1, "dur": 1,
     "args": {"device": 0, "stream": 7, "correlation": 18446744073709551615, "bytes": 8}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 1, "dur": 1e3},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
     "args": {"Bytes": -512, "Addr": 1, "Device Type": 1}},
]  # fmt: skip
WHOLE = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "Tesla V100", "totalGlobalMem": 1, "computeMajor": 7, "computeMinor": 0}],
    "distributedInfo": {"rank": 0},
    "traceEvents": EVENTS,
    "baseTimeNanoseconds": 1751410836000000000,
}


ENTRY = {"action": "alloc", "addr": 4096, "size": 512, "stream": 1 << 47, "time_us": 1712195495505543, "frames": []}
SNAPSHOT = {
    "segments": [
        {"device": 0, "address": 4096, "stream": 0, "blocks": [{"address": 4096, "size": 512, "state": "active_allocated"}]}
    ],
    "device_traces": [
        [
            ENTRY | {"action": action}
            for action in ("alloc", "free_requested", "free_completed", "segment_alloc", "snapshot")
        ],
        [ENTRY | {"action": "oom", "device_free": 1}],
    ],
    "allocator_settings": {"garbage_collection_threshold": 0.5, "expandable_segments": False, "x": ("x", None, -1, 1 << 63)},
}
RMM = (
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,23:59:59.999999,allocate,0x7f0100,256,0x7f8a38001020\n"
    "2,00:00:00.000001,free,0x7f0100,256,0\n"
    "2,00:00:00.000001,allocate failure,(nil),256,0\n"
)
RMM_2019 = (
    "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,Location\n"
    'Alloc,0,0x10,0,64,0,0,1,1.5,2.5,1e-05,"a,b:1"\n'
    "Free,0,0x10,0,0,0,0,0,3,4,1,a:1\n"
)


TUNER = {
    "device_name": "A",
    "kernel_name": "k",
    "problem_size": [64, 1],
    "tune_params_keys": ["x", "y"],
    "tune_params": {"x": [1, 2]},
    "cache": {"1,2": {"time": 1.5, "times": [1.4, 1.6], "y": None}, "2,2": {"time": "RuntimeFailedConfig"}},
}


def write_chrome(folder: pathlib.Path) -> None:
    (folder / "seed-object").write_text(json.dumps(WHOLE))
    (folder / "seed-list").write_text(json.dumps(EVENTS))


def write_snapshot(folder: pathlib.Path) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (folder / f"seed-{protocol}").write_bytes(pickle.dumps(SNAPSHOT, protocol))


def write_rmm(folder: pathlib.Path) -> None:
    (folder / "seed-adaptor").write_text(RMM)
    (folder / "seed-colons").write_text(RMM.replace(".", ":"))
    (folder / "seed-2019").write_text(RMM_2019)
    (folder / "seed-minimalloc").write_text("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n")


def raw_recording() -> bytes:
    """As harness/injected/raw_recording.h has it."""
    head = struct.pack("<16sIIQqIIIIq", b"launchgap-raw 1\n", 2, 2, 4242, 0, 130001, 13000, 1, 0, 1 << 60)
    thread, stream, name = b"\x02\x11", b"\x03\x00\x01\x07", b"\x01\x01k"
    gpu, kernel = b"\x05\x00\x50\x00" + bytes(16) + b"\x01A", b"\x04\x00\x02\x02\x02\x40\x02\x02"
    call, run = b"\x06\x80\x80\x01\x20\x02\x00\xb3\x02", b"\x08\x20\x20\x00\x00\x00"
    others = b"\x09\x20\x20\x02\x00\x40\x0b\x20\x20\x00\x01\x0c\x20\x20\x00\x03\x0f\x20\x20\x00\x00"
    memory, graph = b"\x0d\x02\x40\x40\x00\x00\x03\x00\x00", b"\x0e\x02\x02\x00\x00\x01"
    block = thread + stream + name + gpu + kernel + call + run + others + memory + graph
    prime, most = 0x9E3779B97F4A7C15, 1 << 64
    checksum = len(block) * prime % most
    for (word,) in struct.iter_unpack("<Q", block.ljust(-(-len(block) // 8) * 8, b"\0")):
        checksum = (checksum ^ word) * prime % most
        checksum ^= checksum >> 29
    return head.ljust(4096, b"\0") + struct.pack("<IIQ", 0x42474C52, len(block), checksum) + block


def write_tuner(folder: pathlib.Path) -> None:
    (folder / "seed-raw").write_bytes(raw_recording())
    (folder / "seed-tuner").write_text(json.dumps(TUNER))


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A protobuf of numbers, and of texts and messages."""
    made = bytearray()
    for field, value in fields:
        if isinstance(value, int):
            made += varint(field << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            made += varint(field << 3 | 2) + varint(len(value)) + value
    return bytes(made)


STATS = (
    "correlation_id kernel_details memcpy_details Memset_details context_id group_id step_num addr allocation_bytes"
    " allocator_name device_vendor memory_size compute_cap_major compute_cap_minor profile_start_time grid:8,1,1"
).split()


def plane(name: str, lines: list[tuple[str, list[tuple[str, int, int, dict]]]], **own: int | str) -> tuple[int, bytes]:
    """Of lines with events: name, begin and duration in ns, stats."""
    names = sorted({event[0] for _, events in lines for event in events})

    def stats(values: dict) -> list[bytes]:
        def value(key: str, one: int | str) -> tuple[int, int | str]:
            if key == "kernel_details":
                return 7, 1 + STATS.index(one)
            return (3, one) if isinstance(one, int) else (5, one)

        return [message((1, 1 + STATS.index(key)), value(key, one)) for key, one in values.items()]

    fields: list[tuple[int, int | bytes | str]] = [(2, name)]
    for number, (line, events) in enumerate(lines):
        own_events = [
            (4, message((1, 1 + names.index(event)), (2, begin * 1000), (3, took * 1000), *((4, s) for s in stats(values))))
            for event, begin, took, values in events
        ]
        fields.append((3, message((1, number), (2, line), (3, 1000 * number), *own_events)))
    for field, all_names in ((4, names), (5, STATS)):
        fields += [(field, message((1, i + 1), (2, message((1, i + 1), (2, n))))) for i, n in enumerate(all_names)]
    return 1, message(*fields, *((6, stat) for stat in stats(own)))


CALLS = [
    ("cuLaunchKernel", 10, 5, {"correlation_id": 1, "group_id": 0}),
    ("a_kernel", 30, 5, {"correlation_id": 2, "group_id": 0}),
    ("MemcpyH2D", 50, 5, {"correlation_id": 3}),
    ("MemoryAllocation", 60, 0, {"addr": 64, "allocation_bytes": 256, "allocator_name": "GPU_0_bfc"}),
    ("MemoryDeallocation", 90, 0, {"addr": 64, "allocation_bytes": 256, "allocator_name": "GPU_0_bfc"}),
    ("train", 5, 90, {"step_num": 3}),
]
WORK = [
    ("a_kernel", 20, 5, {"correlation_id": 1, "kernel_details": "grid:8,1,1", "context_id": "$$2"}),
    ("a_kernel", 40, 5, {"correlation_id": 2}),
    ("MemcpyH2D", 60, 5, {"correlation_id": 3, "memcpy_details": "size:112 dest:4"}),
    ("Memset", 70, 5, {"correlation_id": 4, "Memset_details": "num_bytes:4"}),
    ("CudaGraph:1", 80, 5, {"correlation_id": 5}),
]


def write_xplane(folder: pathlib.Path) -> None:
    gpu = [("Steps", WORK[:1]), ("Stream #13(Compute)", WORK)]
    host = plane("/host:CPU", [("Host Threads/7", CALLS)])
    environment = plane("Task Environment", [], profile_start_time=1780000000000000000)
    capable = plane("/device:GPU:0", gpu, memory_size=1 << 34, compute_cap_major=7, compute_cap_minor=0)
    copies = plane("/device:GPU:1", [("Stream #5(MemcpyH2D)", WORK[2:3])], device_vendor="Nvidia")
    (folder / "seed-all").write_bytes(message(host, capable, copies, environment))
    (folder / "seed-host").write_bytes(message(host))
    (folder / "seed-gpu").write_bytes(message(plane("/device:GPU:0", gpu)))


def rows_of(names: dict[int, str]) -> list[dict]:
    return [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in names.items()]


def write_tensorboard(folder: pathlib.Path) -> None:
    rows = rows_of({1: "/device:GPU:0", 2: "/host:CPU"})
    rows += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 13, "args": {"name": "Stream #13(Compute)"}}]
    for pid, tid, events in ((2, 7, CALLS), (1, 13, WORK)):
        for name, begin, took, values in events:
            args = {key: str(one) for key, one in values.items()}
            rows.append({"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": begin, "dur": took / 2, "args": args})
    (folder / "seed-trace").write_text(json.dumps({"traceEvents": rows}))


def write_timeline(folder: pathlib.Path) -> None:
    rows = rows_of(
        {
            1: "/job:localhost/replica:0/task:0/device:GPU:0 Compute",
            2: "/device:GPU:0/stream:all Compute",
            3: "/gpu:0/stream:12 Compute",
            4: "/device:GPU:0/memcpy Compute",
        }
    )
    ops = [
        ("_SOURCE", "NoOp", 1, 5),
        ("a", "MatMul", 1, 6),
        ("a", "MatMul", 2, 9),
        ("a", "MatMul", 3, 9),
        ("e", "MEMCPYHtoD", 3, 15),
    ]
    for start in (1, 101):
        for name, kind, pid, begin in [*ops, ("b", "Add", 3, 20), ("b", "Add", 4, 20)]:
            args = {"name": name, "op": kind}
            rows.append(
                {"ph": "X", "cat": "Op", "pid": pid, "tid": 0, "name": kind, "ts": start + begin, "dur": 2, "args": args}
            )
    (folder / "seed-timeline").write_text(json.dumps({"traceEvents": rows}))


def write_database(script: str, folder: pathlib.Path) -> None:
    path = folder / "seed-sqlite"
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA page_size = 512")
        database.executescript(script)


FORMS = {
    "nsys": functools.partial(write_database, NSYS),
    "nvprof": functools.partial(write_database, NVPROF),
    "chrome": write_chrome,
    "snapshot": write_snapshot,
    "rmm": write_rmm,
    "tuner": write_tuner,
    "xplane": write_xplane,
    "tensorboard": write_tensorboard,
    "timeline": write_timeline,
}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(*FORMS)
    else:
        FORMS[sys.argv[1]](pathlib.Path(sys.argv[2]))
