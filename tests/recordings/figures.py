#!/usr/bin/env python3
"""Figures of the launches in recordings, found without launchgap: what its import is compared with.

    tests/recordings/figures.py FILE…        prints them as CSV, a row for each file; times are in nanoseconds

SQLite exports of Nsight Systems, profiles of nvprof, Chrome traces of PyTorch's profiler, XPlanes of TensorFlow, and
timelines of TensorFlow 1, plain or by gzip. The rule:

- Times are whole nanoseconds. Chrome's microseconds are read as decimals, never as floats; half a nanosecond counts as one.
- An XPlane's time is that of its line and the event's offset. A call is an event of the host with a correlation_id; one with
  kernel_details is a launch. Work stands on lines "Stream #n". A timeline has no calls, and its work on numbered streams.
- A launch is a call whose name contains "aunch" (except cudaLaunchHostFunc, which starts nothing on the GPU). Rows with one
  correlation number in one process are one call; of these the one that begins last stands for it: the other is the same
  call as its call chain saw it, and wider.
- A kernel belongs to the launch with its number, in its process. Joined launches have a kernel, lost ones have no record of
  one; orphans are kernels with a time and without a launch.
- The work of a stream is its kernels, copies and fills, orphans too, in order of their start. A record with begin 0 or that
  ends before it begins has no time: it occupies nothing.
- A launch is idle if all work of its kernel's stream that came before the kernel had ended when its call began. Of a launch
  with several kernels the first one counts. Graph launches are left out, and a launch that has a kernel without a time or
  one that begins before its call by more than the recording's tick.
- The delay of a launch is from the start of its call to that of its kernel. Quantiles are of type 7.
"""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import gcd
from pathlib import Path

EXACT = Context(prec=80)
LARGEST_DOUBLE_IN_STEPS_OF_AN_EIGHTH = 2**50  # microseconds beyond it are multiples of 0.25 for whoever writes doubles

# nvprof keeps the numbers of calls and not their names; CUPTI's headers have these.
RUNTIME_LAUNCHES = {
    13: "cudaLaunch", 213: "cudaLaunch_ptsz", 211: "cudaLaunchKernel", 214: "cudaLaunchKernel_ptsz",
    269: "cudaLaunchCooperativeKernel", 270: "cudaLaunchCooperativeKernel_ptsz",
    272: "cudaLaunchCooperativeKernelMultiDevice", 311: "cudaGraphLaunch", 312: "cudaGraphLaunch_ptsz",
    430: "cudaLaunchKernelExC", 431: "cudaLaunchKernelExC_ptsz", 505: "__cudaLaunchKernel", 506: "__cudaLaunchKernel_ptsz",
}  # fmt: skip
DRIVER_LAUNCHES = {
    115: "cuLaunch", 116: "cuLaunchGrid", 117: "cuLaunchGridAsync", 307: "cuLaunchKernel", 442: "cuLaunchKernel_ptsz",
    477: "cuLaunchCooperativeKernel", 478: "cuLaunchCooperativeKernel_ptsz", 480: "cuLaunchCooperativeKernelMultiDevice",
    514: "cuGraphLaunch", 515: "cuGraphLaunch_ptsz", 652: "cuLaunchKernelEx", 653: "cuLaunchKernelEx_ptsz",
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    begin: int
    end: int
    name: str
    key: tuple  # process and correlation number


@dataclass(frozen=True)
class Work:
    """What a GPU did: a kernel, a copy or a fill."""

    begin: int
    end: int
    stream: tuple  # process, device, context and stream
    key: tuple
    is_kernel: bool

    @property
    def has_time(self) -> bool:
        return bool(self.begin) and self.end >= self.begin


@dataclass
class Recording:
    calls: list[Call]
    work: list[Work]
    in_steps: bool = False  # its times were doubles of microseconds since 1970: multiples of 0.25


@dataclass(frozen=True)
class Figures:
    """Times are nanoseconds; quantiles are exact, and None where there is nothing."""

    launches: int
    kernels: int
    joined: int
    orphans: int
    lost: int
    idle: int
    call_p50: Fraction | None
    call_p99: Fraction | None
    delay_p50: Fraction | None
    delay_p99: Fraction | None
    tick: int


NAMES = tuple(field.name for field in fields(Figures))


def printed(figure: int | Fraction | None) -> str:
    """Exact: a quantile of whole numbers has two digits after the point at most."""
    if figure is None:
        return ""
    return format(Decimal(figure.numerator) / Decimal(figure.denominator), "f")


# --- reading ---


def nanoseconds(microseconds: int | str | Decimal) -> int:
    return int((Decimal(microseconds, EXACT) * 1000).to_integral_value(ROUND_HALF_UP))


def number(value: int | str | None) -> int | str | None:
    """A number that may be written as a string; what is none stands for itself."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return value


def read_trace(path: Path) -> Recording:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    trace = json.loads(data.decode("utf-8", "replace"), parse_float=Decimal, strict=False)
    recording = Recording([], [])
    for event in trace if isinstance(trace, list) else trace["traceEvents"]:
        kind = str(event.get("cat")).lower().removeprefix("gpu_")
        if event.get("ph") != "X" or kind not in {"runtime", "cuda_runtime", "cuda_driver", "kernel", "memcpy", "memset"}:
            continue
        began, took = Decimal(event["ts"]), Decimal(event["dur"])
        begin = nanoseconds(began)
        end = begin + nanoseconds(took)
        fraction = began != began.to_integral_value()
        recording.in_steps = recording.in_steps or (fraction and began > LARGEST_DOUBLE_IN_STEPS_OF_AN_EIGHTH)
        arguments = event.get("args", {})
        key = (None, number(arguments.get("correlation")))
        if kind.endswith(("runtime", "driver")):
            recording.calls.append(Call(begin, end, event["name"], key))
            continue
        device = number(arguments.get("device", event.get("pid")))
        stream = (None, device, number(arguments.get("context")), number(arguments.get("stream")))
        recording.work.append(Work(begin, end, stream, key, kind == "kernel"))
    return recording


def rows(database: sqlite3.Connection, table: str, *columns: str) -> Iterator[tuple]:
    """The columns of a table, None where it has no such column; nothing if there is no such table."""
    table = f"CUPTI_ACTIVITY_KIND_{table}"
    have = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
    if not have:
        return iter(())
    chosen = ", ".join(f'"{column}"' if column in have else "NULL" for column in columns)
    return database.execute(f'SELECT {chosen} FROM "{table}"')


def process_of(global_id: int | None) -> int | None:
    return None if global_id is None else global_id >> 24


def read_sqlite(path: Path) -> Recording:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    recording = Recording([], [])
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if "StringIds" in tables:
        names = dict(database.execute("SELECT id, value FROM StringIds"))
        for begin, end, key, name, thread in rows(
            database, "RUNTIME", "start", "end", "correlationId", "nameId", "globalTid"
        ):
            if end is not None:
                recording.calls.append(Call(begin, end, names.get(name, ""), (process_of(thread), key)))
    else:
        for table, launches in (("RUNTIME", RUNTIME_LAUNCHES), ("DRIVER", DRIVER_LAUNCHES)):
            for begin, end, key, name in rows(database, table, "start", "end", "correlationId", "cbid"):
                recording.calls.append(Call(begin, end, launches.get(name, ""), (None, key)))
    for table in ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMSET"):
        columns = ("start", "end", "correlationId", "deviceId", "contextId", "streamId", "globalPid")
        for begin, end, key, *stream, process in rows(database, table, *columns):
            process = process_of(process)
            recording.work.append(Work(begin, end, (process, *stream), (process, key), table.endswith("KERNEL")))
    database.close()
    return recording


def protobuf(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Its fields: number and value."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        length = varint() if tag & 7 == 2 else 8 if tag & 7 == 1 else 4
        yield tag >> 3, data[at : at + length]
        at += length


def names_of(plane: bytes, which: int) -> dict[int, str]:
    """Of a plane's events (4) or stats (5)."""
    entries = [dict(protobuf(value)) for field, value in protobuf(plane) if field == which]
    return {entry[1]: dict(protobuf(entry[2])).get(2, b"").decode() for entry in entries}


def read_xplane(data: bytes) -> Recording:
    recording = Recording([], [])
    for _, plane in (one for one in protobuf(data) if one[0] == 1):
        name = next(value for field, value in protobuf(plane) if field == 2).decode()
        stats = names_of(plane, 5)
        for _, line in (one for one in protobuf(plane) if one[0] == 3):
            of_line = dict(protobuf(line))
            for event in (value for field, value in protobuf(line) if field == 4):
                fields = dict(protobuf(event))
                values = [dict(protobuf(value)) for field, value in protobuf(event) if field == 4]
                has = {stats[value[1]]: value for value in values}
                if "correlation_id" not in has:
                    continue
                begin = of_line[3] + fields[2] // 1000
                end = of_line[3] + (fields[2] + fields.get(3, 0)) // 1000
                key = (None, has["correlation_id"][3])
                is_kernel = "kernel_details" in has
                if name == "/host:CPU":
                    recording.calls.append(Call(begin, end, "cuLaunchKernel" if is_kernel else "cuMemcpy", key))
                elif of_line[2].startswith(b"Stream #"):
                    recording.work.append(Work(begin, end, (name, of_line[1]), key, is_kernel))
    return recording


def read_timeline(path: Path) -> Recording:
    events = json.loads(path.read_text())["traceEvents"]
    rows = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    copies = {event["ts"] for event in events if event["ph"] == "X" and "/memcpy" in rows[event["pid"]]}
    recording = Recording([], [])
    for event in events:
        row = rows[event["pid"]]
        if event["ph"] == "X" and "/stream:" in row and "stream:all" not in row:
            begin, end = event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000
            recording.work.append(Work(begin, end, (row,), (None, None), event["ts"] not in copies))
    return recording


def read(path: Path) -> Recording:
    with path.open("rb") as file:
        is_sqlite = file.read(15) == b"SQLite format 3"
    if path.name.endswith(".xplane.pb.gz"):
        return read_xplane(gzip.decompress(path.read_bytes()))
    if path.name.endswith(".tf1-timeline.json"):
        return read_timeline(path)
    return read_sqlite(path) if is_sqlite else read_trace(path)


# --- the rule ---


def quantile(values: list[int], share: Fraction) -> Fraction | None:
    """Of type 7: linear between neighbours."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def p50(values: list[int]) -> Fraction | None:
    return quantile(values, Fraction(1, 2))


def p99(values: list[int]) -> Fraction | None:
    return quantile(values, Fraction(99, 100))


def launches_of(calls: list[Call]) -> dict[tuple, Call]:
    launches: dict[tuple, Call] = {}
    for call in calls:
        if "aunch" not in call.name or "LaunchHostFunc" in call.name:
            continue
        known = launches.get(call.key)
        if known is None or call.begin > known.begin:
            launches[call.key] = call
    return launches


def tick_of(recording: Recording) -> int:
    """The largest step of which all times of calls and kernels are multiples, counted from one of them."""
    records = [*recording.calls, *(work for work in recording.work if work.is_kernel)]
    times = [time for record in records for time in (record.begin, record.end) if time]
    step = 0
    for time in times:
        step = gcd(step, time - times[0])
    return step if step and len(times) >= 10 else 1


def idle_delays(launches: dict[tuple, Call], kernels: dict[tuple, list[Work]], work: list[Work], tick: int) -> list[int]:
    first: set[Work] = set()
    for key, own in kernels.items():
        call = launches.get(key)
        if call is None or "GraphLaunch" in call.name or not all(kernel.has_time for kernel in own):
            continue
        earliest = min(own, key=lambda kernel: kernel.begin)
        if earliest.begin >= call.begin - tick:
            first.add(earliest)
    streams = defaultdict(list)
    for one in work:
        if one.has_time:
            streams[one.stream].append(one)
    delays = []
    for stream in streams.values():
        all_ended = 0
        for one in sorted(stream, key=lambda work: (work.begin, work.end)):
            if one in first and all_ended <= (begin := launches[one.key].begin):
                delays.append(one.begin - begin)
            all_ended = max(all_ended, one.end)
    return delays


def figures_of(recording: Recording) -> Figures:
    launches = launches_of(recording.calls)
    kernels = defaultdict(list)
    for work in recording.work:
        if work.is_kernel:
            kernels[work.key].append(work)
    durations = [call.end - call.begin for call in launches.values()]
    tick = tick_of(recording)
    delays = idle_delays(launches, kernels, recording.work, tick)
    return Figures(
        launches=len(launches),
        kernels=sum(map(len, kernels.values())),
        joined=sum(1 for key in launches if key in kernels),
        orphans=sum(1 for key, own in kernels.items() if key not in launches for kernel in own if kernel.has_time),
        lost=sum(1 for key in launches if key not in kernels),
        idle=len(delays),
        call_p50=p50(durations),
        call_p99=p99(durations),
        delay_p50=p50(delays),
        delay_p99=p99(delays),
        tick=tick,
    )


def main() -> None:
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(("file", *NAMES))
    for path in map(Path, sys.argv[1:]):
        figures = figures_of(read(path))
        write.writerow((path.name, *(printed(getattr(figures, name)) for name in NAMES)))


if __name__ == "__main__":
    main()
