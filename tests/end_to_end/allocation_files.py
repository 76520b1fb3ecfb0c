"""Recordings of allocations, as PyTorch, RMM and PyTorch's profiler write them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

MIB = 1 << 20
BEGIN_US = 1_712_195_495_505_543


def frames(n: int) -> list[dict]:
    return [{"name": f"f{i}", "filename": "train.py", "line": i} for i in range(n)]


def snapshot(events: int = 60, devices: int = 2) -> dict:
    """As PyTorch writes it: 2/3 of the allocations are freed again, and one free is of what was allocated before."""
    stack = frames(5)
    traces = []
    for device in range(devices):
        trace = []

        def add(action, address, size, trace=trace, stream=0):
            at = BEGIN_US + 7 * len(trace)
            trace.append({"action": action, "addr": address, "size": size, "stream": stream, "time_us": at, "frames": stack})

        add("free_completed", 0x7F0000000000, 512)
        add("segment_alloc", 0x7F1000000000, 20 * MIB)
        for i in range(events):
            address = 0x7F1000000000 + i * MIB
            add("alloc", address, 512 * (i + 1 + device), stream=0x7F8A38001020)
            if i % 3:
                add("free_requested", address, 512 * (i + 1 + device), stream=0x7F8A38001020)
                add("free_completed", address, 512 * (i + 1 + device), stream=0x7F8A38001020)
        traces.append(trace)
    segment = {
        "device": 0, "address": 0x7F1000000000, "total_size": 20 * MIB, "stream": 0, "segment_type": "large",
        "blocks": [{"address": 0x7F1000000000, "size": 512, "requested_size": 512, "state": "active_allocated"}],
    }  # fmt: skip
    return {"segments": [segment], "device_traces": traces, "allocator_settings": {"max_split_size": -1}}


def rmm_log(lines: int = 60) -> str:
    text = "Thread,Time,Action,Pointer,Size,Stream\n"
    for i in range(lines):
        at = f"{i // 30:02}:00:{i % 30:02}.{i:06}"
        text += f"{100 + i % 2},{at},allocate,{0x7F00 + 256 * i:#x},{256 * (i + 1)},{0x7F8A38001020 + i % 2:#x}\n"
        if i % 3:
            text += f"{100 + i % 2},{at},free,{0x7F00 + 256 * i:#x},{256 * (i + 1)},0x0\n"
    return text


def profiler_trace(allocations: int = 60) -> dict:
    events = []

    def add(at, size, address, device_type=1):
        args = {"Bytes": size, "Addr": address, "Device Type": device_type, "Device Id": 1 if device_type else -1}
        events.append(
            {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 8, "ts": at, "args": args}
        )

    for i in range(allocations):
        add(1000 + 10 * i, 512 * (i + 1), 4096 * i + 4096)
        add(1001 + 10 * i, 64, 4096 * i + 4096, device_type=0)  # of the host: not taken
        if i % 3:
            add(1005 + 10 * i, -512 * (i + 1), 4096 * i + 4096)
    return {"traceEvents": events}


def written(form: str, path: Path) -> Path:
    if form == "snapshot":
        path.write_bytes(pickle.dumps(snapshot()))
    elif form == "rmm":
        path.write_text(rmm_log(), encoding="utf-8")
    else:
        path.write_text(json.dumps(profiler_trace()), encoding="utf-8")
    return path
