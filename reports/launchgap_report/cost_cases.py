"""Which cases show what makes a launch cost, and which question each of them answers."""

from __future__ import annotations

from dataclasses import dataclass, field

LEAST, MOST, COMMON = "least", "most", "common"
"""Values of an axis in `params`: the smallest or largest that was measured, or for rows that stand
beside each other the largest that most of them have."""


@dataclass(frozen=True)
class Line:
    """One line of a sweep, or one row of a figure of bars."""

    label: str
    params: dict[str, str]
    metric: str
    arm: str = "plain"


@dataclass(frozen=True)
class Sweep:
    """A metric over a numeric axis, a line per device and entry of `lines`."""

    caption: str
    axis: str
    unit: str  # of the axis; empty: a plain number
    lines: list[Line]
    each_device: bool = False  # a figure per device, in which colours tell the lines apart
    share: bool = False  # the metric is a share, from 0 to 1


@dataclass(frozen=True)
class Bars:
    """A named row per entry of `lines`, in it a mark per device."""

    caption: str
    lines: list[Line]


@dataclass(frozen=True)
class Subject:
    """A benchmark and its question."""

    benchmark: str
    question: str
    figures: list[Sweep | Bars] = field(default_factory=list)


def _api(mode: str, metric: str) -> list[Line]:
    labels = {"driver": "driver API", "queue": "queue", "runtime": "LaunchKernelExC"}
    return [
        Line(labels.get(api, "<<<>>>"), {"api": api, "mode": mode}, metric)
        for api in ("driver", "queue", "runtime", "chevron")
    ]


def _streams(kernel: str, caption: str) -> Sweep:
    return Sweep(
        caption,
        "streams",
        "",
        [
            Line("without", {"kernel": kernel, "with": "nothing"}, "per_launch_ns"),
            Line("with default", {"kernel": kernel, "with": "default"}, "per_launch_ns"),
        ],
    )


def _graph(shape: str, caption: str) -> Sweep:
    return Sweep(
        caption,
        "nodes",
        "",
        [
            Line("in a graph", {"shape": shape, "mode": "replay"}, "per_node_ns"),
            Line("one by one", {"shape": shape, "mode": "single"}, "per_node_ns"),
        ],
    )


def _making(shape: str, caption: str) -> Sweep:
    make = {"shape": shape, "mode": "make"}
    return Sweep(
        caption,
        "nodes",
        "",
        [
            Line("capture", make, "capture_ns"),
            Line("instantiate", make, "instantiate_ns"),
            Line("update", {"shape": shape, "mode": "update"}, "update_ns"),
        ],
    )


def _pair(axis: str, values: tuple[str, ...], metric: str, caption: str) -> Bars:
    return Bars(caption, [Line(v, {axis: v}, metric) for v in values])


def _waits(metric: str, caption: str) -> Bars:
    return Bars(
        caption,
        [
            Line(f"{wait}, {by}", {"wait": wait, "by": by}, metric)
            for by in ("stream", "event")
            for wait in ("spin", "yield", "block")
        ],
    )


_LOADING = {
    "lazy": "lazy",
    "none": "host",
    "eager": "eager",
    "jit_cached": "JIT, cached",
    "jit_uncached": "JIT, uncached",
}
_STEPS = {
    "initialise_ns": "initialise",
    "context_ns": "context",
    "module_ns": "module",
    "first_call_ns": "first call",
    "first_roundtrip_ns": "first round trip",
    "second_roundtrip_ns": "second one",
}


def _loading(metric: str, caption: str) -> Bars:
    return Bars(caption, [Line(v, {"loading": k}, metric) for k, v in _LOADING.items()])


_MODES = {
    "eager": "one by one",
    "eager_alloc": "allocating",
    "eager_pool": "from a pool",
    "graph": "graph",
    "graph_update": "graph, updated",
    "graph_recapture": "graph, anew",
}
_AT_ONCE = {"gap_us": LEAST}
_LONGEST = {"ops": MOST}
_ONE_LENGTH = {"ops": COMMON}

SUBJECTS: list[Subject] = [
    Subject(
        "launch/api",
        "Does it matter by which call a kernel is launched?",
        [
            Bars("In the call, idle stream", _api("idle", "api_ns")),
            Bars("Per launch, back to back", _api("burst", "per_launch_ns")),
        ],
    ),
    Subject(
        "launch/args",
        "What do arguments cost?",
        [
            Sweep(
                "Over the size of the arguments",
                "bytes",
                "B",
                [
                    Line("in the call", {"mode": "idle"}, "api_ns"),
                    Line("per launch", {"mode": "burst"}, "per_launch_ns"),
                ],
            )
        ],
    ),
    Subject(
        "launch/grid",
        "From how many blocks on does the grid add to a launch?",
        [
            Sweep(
                "Over the blocks of an empty kernel",
                "blocks",
                "",
                [Line("round trip", {}, "roundtrip_ns"), Line("in the call", {}, "api_ns")],
            )
        ],
    ),
    Subject(
        "launch/streams",
        "How many streams help, and what does the legacy default stream do to them?",
        [
            _streams("10us", "Per launch of a kernel of 10 µs"),
            _streams("null", "Per launch of an empty kernel"),
        ],
    ),
    Subject(
        "launch/threads",
        "Does it pay to launch from several threads?",
        [
            Sweep(
                "Per launch, all threads together",
                "threads",
                "",
                [
                    Line("a stream each", {"streams": "own"}, "threads_per_launch_ns"),
                    Line("one stream", {"streams": "shared"}, "threads_per_launch_ns"),
                ],
            )
        ],
    ),
    Subject(
        "launch/graph",
        "From how many kernels on does a graph pay?",
        [
            _graph("line", "Per kernel, one after another"),
            _graph("fan", "Per kernel, independent of each other"),
            _making("line", "Making a graph: one after another"),
            _making("fan", "Making a graph: independent"),
        ],
    ),
    Subject(
        "launch/cooperative",
        "What does a cooperative launch add?",
        [
            _pair("launch", ("plain", "cooperative"), "api_ns", "In the call"),
            _pair("launch", ("plain", "cooperative"), "roundtrip_ns", "Round trip"),
        ],
    ),
    Subject(
        "launch/dependent",
        "What does programmatic dependent launch save?",
        [
            _pair(
                "launch", ("plain", "dependent"), "per_kernel_ns", "Per kernel of 5 µs"
            )
        ],
    ),
    Subject(
        "launch/priority",
        "What does a higher priority save on a busy device?",
        [_pair("priority", ("same", "higher"), "roundtrip_ns", "Round trip of an empty kernel")],
    ),
    Subject(
        "launch/wait",
        "How should a thread wait?",
        [_waits("roundtrip_ns", "Round trip"), _waits("cpu_ns", "CPU time of the thread")],
    ),
    Subject(
        "launch/first",
        "What does a fresh process pay before its first kernel is done?",
        [
            Bars(
                "Step by step, loading lazily",
                [Line(v, {"loading": "lazy"}, k) for k, v in _STEPS.items()],
            ),
            Bars(
                "Step by step, on the host",
                [Line(v, {"loading": "none"}, k) for k, v in _STEPS.items()],
            ),
            _loading("module_ns", "Loading the module"),
            _loading("first_roundtrip_ns", "First round trip"),
        ],
    ),
    Subject(
        "launch/after_idle",
        "Is a launch slower after an idle time?",
        [
            Sweep(
                "Over the idle time before",
                "idle_ms",
                "ms",
                [Line("round trip", {}, "roundtrip_ns"), Line("in the call", {}, "api_ns")],
            )
        ],
    ),
    Subject(
        "launch/queue",
        "How many launches are taken ahead of the device?",
        [Bars("Launches", [Line("before one waits", {}, "queue_depth")])],
    ),
    Subject(
        "launch/library",
        "What does a library’s call cost beyond a launch?",
        [
            _pair("call", ("kernel", "matmul", "convolution"), "api_ns", "In the call"),
            _pair("call", ("kernel", "matmul", "convolution"), "roundtrip_ns", "Round trip"),
        ],
    ),
    Subject(
        "launch/chain",
        "Are chains of small operations, as frameworks issue them, bound by launches?",
        [
            Sweep(
                "Per operation, over the chain’s length",
                "ops",
                "",
                [
                    Line("one by one", {"mode": "eager", **_AT_ONCE}, "per_op_ns"),
                    Line("graph", {"mode": "graph", **_AT_ONCE}, "per_op_ns"),
                ],
            ),
            Bars(
                "Per operation, by mode",
                [
                    Line(v, {"mode": k, **_AT_ONCE, **_ONE_LENGTH}, "per_op_ns")
                    for k, v in _MODES.items()
                ],
            ),
            Sweep(
                "Device idle, over the host’s work between two operations",
                "gap_us",
                "µs",
                [
                    Line("one by one", {"mode": "eager", **_LONGEST}, "idle_share"),
                    Line("graph", {"mode": "graph", **_LONGEST}, "idle_share"),
                ],
                share=True,
            ),
        ],
    ),
    Subject(
        "launch/cscs",
        "What does waiting after each launch cost?",
        [_pair("wait", ("end", "each"), "wall_per_launch_ns", "Per launch")],
    ),
    Subject(
        "launch/small_kernels",
        "What do small dependent kernels cost, and by which way of running them?",
        [
            Sweep(
                "Per kernel, over its data",
                "kib",
                "KiB",
                [
                    Line(method, {"method": method}, "per_kernel_ns")
                    for method in ("stream", "graph", "cooperative", "persistent")
                ],
                each_device=True,
            )
        ],
    ),
]
BENCHMARKS = frozenset(subject.benchmark for subject in SUBJECTS)
