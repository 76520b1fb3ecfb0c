"""Reports of Nsight Systems about sessions of launchgap, in the schema that NVIDIA documents for `nsys export --type sqlite`
(User Guide, "SQLite Schema Reference"): made from the session's own records, with times as a test wants them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from recording_files import A100, create, global_id
from shipped import records

PUSH_POP, MARK, DOMAIN = 59, 34, 75  # NvtxPushPopRange, NvtxMark, NvtxDomainCreate
OURS = 1  # the number of the domain `launchgap`


@dataclass(frozen=True)
class Sample:
    key: int
    value: float
    slow: bool  # among the slowest twentieth of its session


@dataclass
class Times:
    """Nanoseconds of a sample's parts; `call` is until the call returns, `queue` until the kernel begins."""

    before: int = 200
    call: int = 2_000
    queue: int = 3_000
    kernel: int = 2_000
    wake: int = 800
    after: int = 100
    overhead: int = 0  # within the call, which it makes longer

    def plus(self, part: str, by: int) -> Times:
        return Times(**(vars(self) | {part: getattr(self, part) + by}))


def samples_of(session: Path, metric: str | None = None) -> list[Sample]:
    """With the values of a metric; without one, of the first of each case."""
    found: list[tuple[int, float]] = []
    for file in records(session).values():
        for record in file:
            if record["record"] == "samples":
                values = record["values"][record["metrics"].index(metric) if metric else 0]
                found += [(record["key"] + i, value) for i, value in enumerate(values)]
    slowest = {key for key, _ in sorted(found, key=lambda one: -one[1])[: max(1, len(found) // 20)]}
    return [Sample(key, value, key in slowest) for key, value in found]


def run_names(session: Path) -> list[str]:
    runs = {name: file[0] for name, file in records(session).items()}
    return [f"{run['session_id']}/{name.removesuffix('.jsonl')}" for name, run in runs.items()]


@dataclass
class Report:
    """The rows of a report. `launches` of a sample go into one stream, back to back."""

    strings: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[dict]] = field(default_factory=dict)
    at: int = 1_000_000_000
    correlation: int = 100
    tid: int = global_id(thread=7)

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, 1000 + len(self.strings))

    def add(self, table: str, **row) -> None:
        self.tables.setdefault(table, []).append(row)

    def nvtx(self, kind: int, start: int, end: int | None = None, **row) -> None:
        columns = dict(
            rangeId=None, category=None, color=None, text=None, globalTid=self.tid, endGlobalTid=None, textId=None
        )
        values = (
            "uint64Value int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData".split()
        )
        columns |= dict(domainId=OURS) | dict.fromkeys(values)
        self.add("NVTX_EVENTS", **dict(start=start, end=end, eventType=kind) | columns | row)

    def call(self, name: str, start: int, end: int) -> int:
        self.correlation += 1
        row = dict(start=start, end=end, eventClass=0, globalTid=self.tid, correlationId=self.correlation)
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **row, nameId=self.string(name), returnValue=0)
        return self.correlation

    def kernel(self, start: int, end: int, correlation: int) -> None:
        where = dict(deviceId=0, contextId=1, streamId=13, correlationId=correlation, globalPid=self.tid & ~0xFFFFFF)
        shape = dict.fromkeys(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), 1)
        name = self.string("launchgap_null")
        row = dict(start=start, end=end) | where | dict(demangledName=name, shortName=name) | shape
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", **row)

    def sample(self, key: int, times: Times) -> None:
        begin = self.at
        called = begin + times.before
        returned = called + times.call + times.overhead
        started = returned + times.queue
        ended = started + times.kernel
        end = ended + times.wake + times.after
        correlation = self.call("cuLaunchKernelEx", called, returned)
        if times.overhead:
            self.add(
                "PROFILER_OVERHEAD",
                start=called + 100,
                end=called + 100 + times.overhead,
                globalTid=self.tid,
                correlationId=None,
                nameId=self.string("CUPTI buffer"),
            )
        self.kernel(started, ended, correlation)
        self.call("cuStreamSynchronize", returned + 50, ended + times.wake)
        self.nvtx(PUSH_POP, begin, end, textId=self.string("sample"), uint64Value=key)
        self.at = end + 500

    def write(self, path: Path, left_out: Iterable[str] = ()) -> Path:
        database = sqlite3.connect(path)
        for name, rows in self.tables.items():
            if name not in left_out:
                create(database, name, rows)
        create(
            database, "StringIds", [dict(id=number, value=text) for text, number in self.strings.items()], ("id", "value")
        )
        create(database, "TARGET_INFO_GPU", [A100])
        told = dict(EXPORT_PRODUCT_VERSION="2024.5.1.113", EXPORT_SCHEMA_VERSION="3.13.2")
        create(database, "META_DATA_EXPORT", [dict(name=name, value=value) for name, value in told.items()])
        database.commit()
        database.close()
        return path


def write_report(
    path: Path,
    session: Path,
    *,
    metric: str | None = "roundtrip_ns",
    times: Callable[[Sample], Times] = lambda sample: Times(),
    key: Callable[[int], int] = lambda key: key,
    only: Callable[[int], bool] = lambda index: True,
    mark: str | None = None,
    left_out: Iterable[str] = (),
) -> Path:
    """What nsys would export of this session: every sample with its range, its calls and its kernel."""
    report = Report()
    report.nvtx(DOMAIN, 0, text="launchgap")
    for name in run_names(session) if mark is None else [mark]:
        report.nvtx(MARK, report.at, text=f"run={name}")
    for index, sample in enumerate(samples_of(session, metric)):
        if only(index):
            report.sample(key(sample.key), times(sample))
    return report.write(path, left_out)
