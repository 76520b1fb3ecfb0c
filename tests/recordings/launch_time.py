#!/usr/bin/env python3
"""Where the launch time of recordings goes, and how long their GPUs idle, found without launchgap.

    tests/recordings/launch_time.py FILE…     prints a row for each process, GPU and cause

Launches, their kernels and the form of files are those of figures.py. The rule, as docs/definitions.md has it:

- Long is a launch beyond the 99th percentile of 100 or more; one of more than ten times the median of all but the longest
  (an only one from 1 ms on); and one that finds a full queue and takes more than twice the median of 20 or more that do not.
- A long launch has the first cause of these that holds: it is the process's first or its kernel's (by name); its stream has
  900 items or more that were called for before it and begin after it; calls of other threads cover half of it; overheads of
  the recorder do; the median of its kernel's other calls (three or more, without the first) is half of it or more, and 1.5
  times the median of all. What overlaps a quarter of the usual launches too explains nothing.
- Idle is the time between a GPU's first work and its last in which nothing of the process ran.
"""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from figures import Call, Work, launches_of, nanoseconds, quantile, read, rows

LOADING = ("Runtime Triggered Module Loading", "Lazy Function Loading")
CAUSES = ("first-launch", "queue-full", "overlapping-call", "recorder", "slow-kernel", "unexplained", "usual")


class Extra:
    """What figures.py does not read: threads, names of kernels, overheads."""

    def __init__(self, path: Path) -> None:
        self.thread: dict[tuple, object] = {}  # of a call, by its start, end and name
        self.kernel: dict[tuple, str] = {}  # by begin, end and key
        self.loading: list[tuple[int, int]] = []
        self.overheads: list[tuple[int, int]] = []
        with path.open("rb") as file:
            is_sqlite = file.read(15) == b"SQLite format 3"
        self._sqlite(path) if is_sqlite else self._trace(path)

    def _trace(self, path: Path) -> None:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode("utf-8", "replace")
        trace = json.loads(text, parse_float=Decimal, strict=False)
        for event in trace if isinstance(trace, list) else trace["traceEvents"]:
            kind = str(event.get("cat")).lower()
            if event.get("ph") != "X" or kind not in {"runtime", "cuda_runtime", "cuda_driver", "kernel", "overhead"}:
                continue
            begin = nanoseconds(event["ts"])
            end = begin + nanoseconds(event["dur"])
            if kind == "kernel":
                correlation = event.get("args", {}).get("correlation")
                self.kernel[begin, end, correlation] = event["name"]
            elif kind == "overhead":
                loads = event["name"] in LOADING
                (self.loading if loads else self.overheads).append((begin, end))
            else:
                self.thread[begin, end, event["name"]] = event.get("tid")

    def _sqlite(self, path: Path) -> None:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        names = dict(database.execute("SELECT id, value FROM StringIds"))
        runtime = database.execute("SELECT start, end, nameId, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME")
        for begin, end, name, thread in runtime:
            self.thread[begin, end, names.get(name, "")] = thread
        columns = ("start", "end", "correlationId", "demangledName", "shortName")
        for begin, end, correlation, demangled, short in rows(database, "KERNEL", *columns):
            self.kernel[begin, end, correlation] = names.get(short if demangled is None else demangled, "")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if "PROFILER_OVERHEAD" in tables:
            self.overheads += database.execute("SELECT start, end FROM PROFILER_OVERHEAD").fetchall()
        database.close()


def covered(spans: list[tuple[int, int]], begin: int, end: int) -> int:
    """How much of a stretch of time spans cover that do not overlap each other."""
    first = bisect_right(spans, (begin, begin))
    first = max(0, first - 1)
    total = 0
    for span in spans[first:]:
        if span[0] >= end:
            break
        total += max(0, min(span[1], end) - max(span[0], begin))
    return total


def united(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        elif end > begin:
            result.append((begin, end))
    return result


def explains(spans: list[tuple[int, int]], usual: list[Call]):
    """Whether spans cover half of a call, and not of a quarter of the usual ones."""
    spans = united(spans)

    def half(call: Call) -> bool:
        return call.end > call.begin and 2 * covered(spans, call.begin, call.end) >= call.end - call.begin

    if not spans or 4 * sum(map(half, usual)) > len(usual):
        return lambda call: False
    return half


def tail(calls: list[Call], work: list[Work], extra: Extra) -> Counter:
    """Time of one process's launch calls by cause, with their number."""
    launches = sorted(launches_of(calls).values(), key=lambda call: call.begin)
    times = [call.end - call.begin for call in launches]
    p50 = quantile(times, Fraction(1, 2))
    p99 = quantile(times, Fraction(99, 100)) if len(times) >= 100 else None
    first_kernel: dict[tuple, Work] = {}
    for one in sorted((one for one in work if one.is_kernel and one.has_time), key=lambda one: one.begin):
        first_kernel.setdefault(one.key, one)
    called: dict[tuple, int] = {}
    for call in calls:
        called[call.key] = min(called.get(call.key, call.begin), call.begin)
    queues = defaultdict(lambda: ([], []))
    for one in work:
        if one.has_time:
            queues[one.stream][0].append(called.get(one.key, 0))
            queues[one.stream][1].append(one.begin)
    for queue in queues.values():
        queue[0].sort()
        queue[1].sort()
    full = []
    for call in launches:
        kernel = first_kernel.get(call.key)
        queue = queues[kernel.stream] if kernel else ([], [])
        full.append(bisect_left(queue[0], call.begin) - bisect_right(queue[1], call.begin) >= 900)
    giant = 10 * quantile(sorted(times)[:-1], Fraction(1, 2)) if len(times) > 1 else 1_000_000
    with_room = [ns for ns, waits in zip(times, full, strict=True) if not waits]
    waiting = 2 * quantile(with_room, Fraction(1, 2)) if len(with_room) >= 20 else None
    seen: set[tuple] = set()
    others = defaultdict(list)
    told = []
    for index, (call, ns) in enumerate(zip(launches, times, strict=True)):
        kernel = first_kernel.get(call.key)
        name = kernel and ("Graph" in call.name, extra.kernel[kernel.begin, kernel.end, kernel.key[1]])
        is_first = index == 0 or (name is not None and name not in seen)
        if name is not None and name in seen:
            others[name].append(ns)
        if name is not None:
            seen.add(name)
        long = ns > giant or (p99 is not None and ns > p99) or (full[index] and waiting is not None and ns > waiting)
        told.append((call, ns, full[index], name, is_first, long))
    usual = [call for call, *_, long in told if not long]
    loads, records = explains(extra.loading, usual), explains(extra.overheads, usual)
    thread = {call: extra.thread.get((call.begin, call.end, call.name)) for call in calls}
    beside = {}
    for own in {thread[call] for call, *_, long in told if long}:
        spans = [(call.begin, call.end) for call in calls if thread[call] != own and call.begin]
        beside[own] = explains(spans, [call for call in usual if thread[call] == own])
    result: Counter = Counter()
    for call, ns, finds_full_queue, name, is_first, long in told:
        cause = "usual"
        if long:
            cause = "unexplained"
            own = list(others.get(name, []))
            if ns in own:
                own.remove(ns)
            median = quantile(own, Fraction(1, 2)) if len(own) >= 5 else None
            if is_first or loads(call):
                cause = "first-launch"
            elif finds_full_queue:
                cause = "queue-full"
            elif beside[thread[call]](call):
                cause = "overlapping-call"
            elif records(call):
                cause = "recorder"
            elif median is not None and 2 * median >= ns and 2 * median >= 3 * p50:
                cause = "slow-kernel"
        result[cause, "launches"] += 1
        result[cause, "time_ns"] += ns
    return result


def idle_share(work: list[Work]) -> float | None:
    spans = united([(one.begin, one.end) for one in work if one.has_time])
    length = spans[-1][1] - spans[0][0] if spans else 0
    return 1 - sum(end - begin for begin, end in spans) / length if length else None


def answers(path: Path) -> dict[object, tuple[Counter, float | None]]:
    """By process, as nsys numbers it."""
    recording, extra = read(path), Extra(path)
    found = {}
    for process in sorted({call.key[0] for call in recording.calls}, key=str):
        calls = [call for call in recording.calls if call.key[0] == process]
        work = [one for one in recording.work if one.key[0] == process]
        if launches_of(calls):
            found[process] = (tail(calls, work, extra), idle_share(work))
    return found


def main() -> None:
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(("file", "process", "idle_share", "cause", "launches", "time_ns", "share"))
    for path in map(Path, sys.argv[1:]):
        for process, (parts, idle) in answers(path).items():
            total = sum(ns for (_, what), ns in parts.items() if what == "time_ns")
            for cause in CAUSES:
                n, ns = parts[cause, "launches"], parts[cause, "time_ns"]
                if n:
                    idle_text = "" if idle is None else f"{idle:.4f}"
                    write.writerow((path.name, process or "", idle_text, cause, n, ns, f"{ns / total:.5f}"))


if __name__ == "__main__":
    main()
