"""A slow sample and what happened around it, as `launchgap export` writes them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

AROUND = (
    # row, kind, name, begin, end, bytes
    ("samples", "range", "sample", -90_000, 0, 0),
    ("samples", "range", "sample", 0, 61_000, 0),
    ("thread 4242", "call", "cuLaunchKernel", -88_000, -84_000, 0),
    ("stream 7", "kernel", "launchgap_noop", -82_000, -80_000, 0),
    ("thread 4242", "call", "cuLaunchKernel", 500, 48_500, 0),
    ("driver and recorder", "overhead", "command buffer full", 2_000, 45_000, 0),
    ("thread 99", "call", "cuMemAlloc", 10_000, 30_000, 0),
    ("memory", "allocate", "allocate", 12_000, 12_000, 1 << 20),
    ("waits", "wait", "wait", 49_000, 60_000, 0),
    ("stream 7", "kernel", "launchgap_noop", 52_000, 52_000, 0),
    ("stream 13", "copy", "copy", -20_000, 70_000, 4096),
    ("stream 13", "graph", "graph 3", 70_000, 79_000, 0),
)


def slow_sample(key: Row, median: float, *, ratio: float = 9.0, sample: int = 17, **more: Any) -> tuple[Row, list[Row]]:
    """Of the case in `key`: a row of slow_samples.csv, and those of timelines.csv."""
    key = {"replicate": 0, **key, "sample": sample}
    slow = {**key, "block": 0, "metric": "launch_ns", "unit": "ns", "value": median * ratio, "median": median}
    slow |= {"ratio": ratio, "odd": "true", "longer_part": "api_record_ns", "longer_by_ns": 43_000}
    slow |= {"telemetry": "involuntary_switches 2; page_faults 3; sm_clock_mhz 1980; power_w 127.7; held_by_power_cap_ns 7"}
    slow |= {"events": "events.jsonl.gz", "begin_ns": 1_700_000_000_000_000_000, "lasts_ns": 61_000, "left_out": 0}
    slow |= {"view_begin_ns": -122_000, "view_end_ns": 122_000, "quiet_ns": 1_000, "quiet_begin_ns": 60_000, "problem": ""}
    names = ("row", "kind", "name", "begin_ns", "end_ns", "bytes")
    return slow | more, [{**key, **dict(zip(names, event, strict=True))} for event in AROUND]
