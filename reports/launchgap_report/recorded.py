"""A job that somebody else recorded: whether it waits for its launches, and how good the recording is.

Launches on an idle stream and on a busy one are never mixed: on the one the launch is waited for, on the other the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .headlines import Verdict
from .plots import Drawing, Group
from .recording_cost import cost_sentences
from .session import RECORDED, Device, Row
from .tables import Record
from .text import MISSING, NBSP, count, join_and, percent, quantity, sentence, with_units

STATES = {"idle": "on an idle stream", "busy": "on a busy stream", "unknown": "the stream is not known"}
LAUNCH, GRAPH = "recorded/launch", "recorded/graph"
PERIODS = {"recorded/job": "the whole recording", "recorded/step": "steps"}
IDLE = "gpu_idle_share"
CALL, DELAY = "api_record_ns", "launch_ns"
TIMES = {
    "launch call": (CALL,),
    "call to kernel": (DELAY,),
    "queue": ("queue_ns",),
    "kernel, or graph": ("kernel_ns", "graph_ns"),
    "since the last launch": ("since_last_ns",),
}
CAUSES = {
    "idle_queued_ns": "queued",
    "idle_launch_ns": "launching",
    "idle_waiting_ns": "waiting",
    "idle_allocating_ns": "allocating",
    "idle_calling_ns": "other calls",
    "idle_program_ns": "the program",
    "idle_unknown_ns": "not known",
}
"""What an idle GPU waits for, with the head of its column"""
UNTOLD = ("not known", "clocks disagree", "no kernels", "too short", "no launches")
TONES = {"device-bound": "ok"} | dict.fromkeys(UNTOLD, "bad")
"""How a verdict looks, where it is no warning"""
P99 = (("p99", "p99"),)
TAIL = (*P99, ("longest", "max"))
STRIPS = (("idle", CALL), ("idle", DELAY), ("busy", CALL))
"""What is drawn, process by process"""
MOST_ANSWERS = 3
"""Processes whose answers fit on the first screen"""
COARSE_NS = 500
"""Ticks from which on they show in a launch's time."""


@dataclass
class Cell:
    """A value, and what is said of it in small."""

    text: str
    words: list[str] = field(default_factory=list)


@dataclass
class Headline:
    """One device in the first table."""

    device: Device
    recorders: str
    cells: list[Cell]
    verdict: Verdict


@dataclass
class StreamLine:
    """The launches of a device that met a stream in one state."""

    device: Device
    state: str
    launches: str
    cells: list[Cell]


@dataclass
class PeriodLine:
    """What the GPU did in a job, or in its steps."""

    device: Device
    what: str
    cells: list[Cell]


@dataclass
class ProcessLine:
    """How good a recording is of one process."""

    file: str
    process: str
    cells: list[Cell]


@dataclass
class Answer:
    """What is said of a process first."""

    device: Device
    process: str
    verdict: Verdict
    launches: str
    """How many, how long, and where their time goes"""


@dataclass
class TailLine:
    """Long launches of one cause."""

    device: Device
    process: str
    cause: str
    meaning: str
    cells: list[Cell]


@dataclass
class Head:
    text: str
    meaning: str


@dataclass
class Section:
    files: int
    answers: list[Answer]
    answers_first: bool
    """Whether they stand on the first screen: of a few processes"""
    tail: list[TailLine]
    times: dict[str, str]
    """Heads of the columns, each with a metric"""
    streams: list[StreamLine]
    causes: list[Head]
    periods: list[PeriodLine]
    doubtful: bool
    """Whether the clocks of some process disagree, and with them what its streams did"""
    strips: list[Group]
    heads: list[Head]
    processes: list[ProcessLine]
    costs: list[str]
    """What recording itself adds, a sentence for each level and session"""


class Job:
    """What was recorded on one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.processes = device.recordings
        own = (row for row in device.rows if row.arm == RECORDED)
        shares = device.session.details.of("recorded_shares", device.id)
        self._shares = {(row["of"], row["part"]): row.get("share") for row in shares}
        self._rows = {(row.record["benchmark"], row.params.get("stream", ""), row.metric): row for row in own}

    def row(self, state: str, *metrics: str, benchmark: str = LAUNCH) -> Row | None:
        found = (self._rows.get((benchmark, state, metric)) for metric in metrics)
        return next((row for row in found if row), None)

    def calls(self, state: str) -> list[Row]:
        found = (self.row(state, CALL, benchmark=benchmark) for benchmark in (LAUNCH, GRAPH))
        return [row for row in found if row]

    @property
    def launches(self) -> float:
        return sum(row.get("n") or 0 for state in STATES for row in self.calls(state))

    @property
    def has_launches(self) -> bool:
        """Whether anything but allocations was recorded of it."""
        return not self.processes or any(self.total(key) for key in ("calls", "launches", "kernels"))

    @property
    def graph_launches(self) -> float:
        found = (self.row(state, CALL, benchmark=GRAPH) for state in STATES)
        return sum(row.get("n") or 0 for row in found if row)

    @property
    def doubtful(self) -> list[Record]:
        """Processes whose clocks disagree."""
        return [p for p in self.processes if p["clock_problem"]]

    def period(self, benchmark: str, metric: str) -> float | None:
        """Its median over processes, or over all steps."""
        row = self._rows.get((benchmark, "", metric))
        return row.get("p50") if row else None

    def share(self, of: str, part: str) -> float | None:
        """A row of recorded_shares.csv."""
        return self._shares.get((of, part))

    def total(self, key: str) -> float:
        return sum(process.get(key) or 0 for process in self.processes)


def jobs_of(devices: list[Device]) -> list[Job]:
    """Those whose launches were recorded."""
    return [job for device in devices if device.recorded and (job := Job(device)).has_launches]


# The first table


def headlines(devices: list[Device]) -> list[Headline]:
    return [_headline(job) for job in jobs_of(devices)]


def _headline(job: Job) -> Headline:
    share = job.share("launches", "idle_stream")
    call, delay = (job.row("idle", metric) if share is not None else None for metric in (CALL, DELAY))
    cells = [
        Cell(f"{job.launches:.0f}" if job.launches else MISSING),
        Cell(_share(share)),
        *(time_cell(row, P99) for row in (call, delay)),
    ]
    recorders = list(dict.fromkeys(p["recorder"] for p in job.processes if p["recorder"]))
    return Headline(job.device, join_and(recorders) if recorders else MISSING, cells, verdict(job))


def verdict(job: Job) -> Verdict:
    """What its processes wait for, in a word each."""
    found = [_verdict(process) for process in job.processes]
    words = list(dict.fromkeys(one.word for one in found))
    if len(words) < 2:
        return found[0] if found else Verdict(MISSING, "", "bad")
    notes = [f"{_process_name(p)}: {one.word}." for p, one in zip(job.processes, found, strict=True)]
    return Verdict(join_and(words), with_units(" ".join(notes)), "warning")


def _verdict(process: Record) -> Verdict:
    word = process["verdict"] or MISSING
    return Verdict(word, with_units(process["answer"]), TONES.get(word, "warning"))


def _share(share: float | None) -> str:
    """Whole only where nothing is missing from it."""
    if share is not None and 0.995 <= share < 1:
        return f"over 99{NBSP}%"
    return percent(share)


def _sentences(texts: list[str]) -> str:
    return with_units(" ".join(sentence(text[0].upper() + text[1:]) for text in texts if text))


# The section


def section(drawing: Drawing) -> Section | None:
    jobs = jobs_of(drawing.devices)
    if not jobs:
        return None
    columns = jobs[0].device.session.registry.columns("recordings.csv")

    def meaning(*keys: str) -> str:
        return " ".join(columns[key].meaning for key in keys if key in columns)

    processes = [(job, process) for job in jobs for process in job.processes]
    return Section(
        len({(job.device.session.id, process["file"]) for job, process in processes}),
        [
            Answer(job.device, _where(job, process), _verdict(process), with_units(process["launch_answer"]))
            for job, process in processes
        ],
        len(processes) <= MOST_ANSWERS,
        [line for job in jobs for line in _tail_lines(job)],
        {head: metrics[0] for head, metrics in TIMES.items()},
        [line for job in jobs for line in _stream_lines(job)],
        [Head(head, jobs[0].device.session.registry.metrics[key]["meaning"]) for key, head in CAUSES.items()],
        [line for job in jobs for line in _period_lines(job)],
        any(job.doubtful for job in jobs),
        _strips(drawing, jobs),
        [Head("file, process", meaning("file", "pid", "rank"))] + [Head(head, meaning(*keys)) for head, keys, _ in FACTS],
        [_process_line(job, process) for job, process in processes],
        [
            text
            for session in {job.device.session.id: job.device.session for job in jobs}.values()
            for text in cost_sentences(session)
        ],
    )


def _tail_lines(job: Job) -> list[TailLine]:
    """The rarest causes last; usual launches are the rest."""
    lines = []
    for process in job.processes:
        own = [
            row
            for row in job.device.session.details.of("tail", job.device.id)
            if row.get("replicate") == process.get("replicate")
        ]
        for row in sorted(own, key=lambda row: -(row.get("time_ns") or 0)):
            meaning = job.device.session.registry.tail_causes.get(row["cause"], "")
            cells = [
                Cell(_number(row.get("launches"))),
                Cell(quantity(row.get("time_ns"), "ns")),
                Cell(percent(row.get("share"))),
                Cell(quantity(row.get("longest_ns"), "ns")),
            ]
            lines.append(TailLine(job.device, _where(job, process), row["cause"], meaning, cells))
    return lines


def _where(job: Job, process: Record) -> str:
    """Which process, where the device has several."""
    return _process_name(process) if len(job.processes) > 1 else ""


def _stream_lines(job: Job) -> list[StreamLine]:
    lines = []
    for benchmark, what in ((LAUNCH, ""), (GRAPH, "graphs, ")):
        for state, words in STATES.items():
            calls = job.row(state, CALL, benchmark=benchmark)
            if calls is None:
                continue
            cells = [time_cell(job.row(state, *metrics, benchmark=benchmark)) for metrics in TIMES.values()]
            lines.append(StreamLine(job.device, what + words, f"{calls.get('n') or 0:.0f}", cells))
    return lines


def _period_lines(job: Job) -> list[PeriodLine]:
    lines = []
    for benchmark, what in PERIODS.items():
        lengths = job._rows.get((benchmark, "", "step_ns"))
        idle = job.period(benchmark, IDLE)
        if lengths is None or idle is None:
            continue
        n = lengths.get("n") or 0
        several = n > 1
        words = [f"{quantity(lengths.get('min'), 'ns')} to {quantity(lengths.get('max'), 'ns')}"] if several else []
        cells = [
            Cell(quantity(lengths.get("p50"), "ns"), words),
            Cell(_number(job.period(benchmark, "launches"))),
            Cell(percent(idle)),
            *(Cell(percent(job.share(benchmark, key))) for key in CAUSES),
        ]
        lines.append(PeriodLine(job.device, f"{n:.0f} {what}" if benchmark == "recorded/step" else what, cells))
    return lines


def time_cell(row: Row | None, tail: tuple[tuple[str, str], ...] = TAIL) -> Cell:
    """Its median, and below it how long it may take."""
    if row is None or row.get("p50") is None:
        return Cell(MISSING)
    n = row.get("n") or 0
    # Of fewer than a hundred there is no p99.
    known = [(words, row.get(key)) for words, key in tail if row.get(key) is not None and (key != "p99" or n >= 100)]
    below = [f"{words} {quantity(value, row.unit)}" for words, value in known]
    return Cell(quantity(row.get("p50"), row.unit), below or [f"of {n:.0f} only"])


def _strips(drawing: Drawing, jobs: list[Job]) -> list[Group]:
    headings = {CALL: "Launch call", DELAY: "Call to kernel"}
    groups = []
    for state, metric in STRIPS:
        shown = {id(device) for device in drawing.shown}
        rows = [(job.device, row) for job in jobs if id(job.device) in shown and (row := job.row(state, metric))]
        key = (RECORDED, RECORDED, LAUNCH, (("stream", state),), metric)
        if rows and (group := drawing.strips(f"{headings[metric]}, {STATES[state]}", key, rows)):
            groups.append(group)
    return groups


def _process_name(process: Record) -> str:
    pid, rank, replicate = (process.get(key) for key in ("pid", "rank", "replicate"))
    names = [
        f"{words}{number:.0f}"
        for words, number in (("r", replicate), ("process ", pid), ("rank ", rank))
        if number is not None
    ]
    return ", ".join(names)


def _process_line(job: Job, process: Record) -> ProcessLine:
    cells = [make(job, process) for _, _, make in FACTS]
    return ProcessLine(process["file"] or MISSING, _process_name(process), cells)


def _recorder(_: Job, process: Record) -> Cell:
    return Cell(process["recorder"] or MISSING, [process["form"]])


def _gpu(job: Job, process: Record) -> Cell:
    streams = process.get("streams")
    return Cell(job.device.label, [] if streams is None else [count(int(streams), "stream")])


def _clock(_: Job, process: Record) -> Cell:
    tick = process.get("tick_ns")
    words = [] if tick is None else [f"in steps of {quantity(tick, 'ns')}"]
    if tick is not None and tick >= COARSE_NS:
        words.append("a launch is a few steps")
    return Cell(process["clock"] or MISSING, words)


def _launch_count(_: Job, process: Record) -> Cell:
    launches, calls = process.get("launches"), process.get("calls")
    return Cell(_number(launches), [] if calls is None else [f"of {count(int(calls), 'call')} of CUDA"])


def _joined(_: Job, process: Record) -> Cell:
    share, kernels = process.get("joined_share"), process.get("kernels")
    if share is None:
        return Cell(MISSING, ["no kernels"] if kernels == 0 else [])
    return Cell(_share(share), [] if kernels is None else [f"of {count(int(kernels), 'kernel')}"])


def _counted(key: str, some: str) -> Callable[[Job, Record], Cell]:
    """A number of records, with what it means where there are any."""

    def make(_: Job, process: Record) -> Cell:
        number = process.get(key)
        return Cell(_number(number), [some] if number else [])

    return make


def _impossible(_: Job, process: Record) -> Cell:
    early, zero = process.get("early"), process.get("zero")
    if early is None and zero is None:
        return Cell(MISSING)
    kinds = ((early, "begin before their launch"), (zero, "without a time"))
    words = [f"{number:.0f} {text}" for number, text in kinds if number]
    return Cell(f"{(early or 0) + (zero or 0):.0f}", words)


def _clocks(_: Job, process: Record) -> Cell:
    least, most = process.get("clock_ahead_least_ns"), process.get("clock_ahead_most_ns")
    drift = process.get("clock_drift_ppm")
    words = [_sentences([process["clock_problem"]])] if process["clock_problem"] else []
    offset, error = process.get("clock_offset_ns"), process.get("clock_offset_error_ns")
    corrected = bool(process.flag("clock_corrected"))
    if corrected and offset is not None:
        words.append(f"The GPU’s was {_signed(offset)} ahead, to ±{NBSP}{quantity(error, 'ns')}.")
    if drift is not None:
        words.append(f"They drift by {_signed_number(drift)}{NBSP}ppm.")
    if least is not None and most is not None and not words:
        words.append(f"GPU ahead by {_signed(least)} to {_signed(most)}")
    known = words or least is not None or most is not None
    state = "disagree" if process["clock_problem"] else "corrected" if corrected else "agree" if known else MISSING
    return Cell(state, words)


def _left_out(_: Job, process: Record) -> Cell:
    return Cell(process["left_out"] or "nothing")


def _remarks(_: Job, process: Record) -> Cell:
    return Cell(process["remarks"] or "nothing")


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"


def _signed(nanoseconds: float) -> str:
    return quantity(nanoseconds, "ns").replace("-", "−")


def _signed_number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


FACTS: list[tuple[str, tuple[str, ...], Callable[[Job, Record], Cell]]] = [
    ("recorded by", ("recorder", "form"), _recorder),
    ("GPU", ("streams",), _gpu),
    ("clock, tick", ("clock", "tick_ns"), _clock),
    ("launches", ("launches", "calls"), _launch_count),
    ("joined", ("joined_share",), _joined),
    ("launched before", ("kernels_without_launch",), _counted("kernels_without_launch", "they kept their streams busy")),
    ("lost kernels", ("launches_without_kernel",), _counted("launches_without_kernel", "their streams are not known")),
    ("begun before the return", ("overlap",), _counted("overlap", "possible: they have no queue time")),
    ("impossible", ("early", "zero"), _impossible),
    (
        "clocks",
        (
            "clock_problem",
            "clock_ahead_least_ns",
            "clock_ahead_most_ns",
            "clock_drift_ppm",
            "clock_offset_ns",
            "clock_offset_error_ns",
            "clock_corrected",
        ),
        _clocks,
    ),
    ("left out", ("left_out",), _left_out),
    ("remarks", ("remarks",), _remarks),
]
"""What is said of each process: a head, columns of recordings.csv, and how they are put in words"""
