"""What happened over time: round trips block by block, and what the machine said meanwhile.

The time between runs is cut out: a run takes a fraction of a second, and minutes lie between two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from .details import HELD, SHOWN, Block, Reading, own_first
from .figures import (
    BAND,
    CORE,
    MUTED,
    TAIL,
    WIDTH,
    Axes,
    canvas,
    key_canvas,
    log_ticks,
    nice_ticks,
    place_axes,
    rules,
    tick_text,
)
from .plots import Drawing, Drawn, Group, Key
from .session import Device
from .svg import to_markup
from .text import NBSP, join_and, quantity

MOST_POINTS = 200
"""Of one quantity of one device; with more, each group of neighbours is drawn by its extremes."""

NAMES = {
    "sm_clock_mhz": ("SM clock", "MHz"),
    "power_w": ("power", "W"),
    "temperature_c": ("temperature", "°C"),
    "involuntary_switches": ("launching thread taken off its CPU", "times"),
    "migrations": ("launching thread moved to another CPU", "times"),
    "cpu_mhz": ("clock of the launching CPU", "MHz"),
    HELD: ("clocks held down", "ms"),
}
REASONS = {
    0x1: "GPU idle",
    0x2: "application clocks",
    0x4: "power limit (software)",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
    0x100: "display clock",
}
HOLDERS = {
    "held_by_power_cap_ns": "the power limit",
    "held_by_sync_boost_ns": "sync boost",
    "held_by_sw_thermal_ns": "the driver, for heat",
    "held_by_hw_thermal_ns": "the GPU itself, for heat",
    "held_by_power_brake_ns": "a power brake",
}


@dataclass
class Run:
    """The blocks of one run, and where they lie on the figure's axis: run i is i to i + 1."""

    place: int
    replicate: int
    blocks: list[Block]

    def at(self, when: float) -> float:
        begin, end = self.blocks[0].begin_ns, self.blocks[-1].end_ns
        share = (when - begin) / (end - begin) if end > begin else 0.5
        return self.place + 0.06 + 0.88 * min(max(share, 0.0), 1.0)


def section(drawing: Drawing) -> Group | None:
    """A figure per device with blocks of plain runs."""
    figures = []
    for device in drawing.shown:
        blocks = device.session.details.blocks
        cases = sorted((case for id_, case in blocks if id_ == device.id), key=own_first)
        if cases:
            begin = min(b[0].begin_ns for b in blocks.values())
            figures.append(_draw(drawing, device, cases[0], blocks[device.id, cases[0]], begin))
    if not figures:
        return None
    keys = [
        Key(_mark(drawing.id(), dot=True), "median of a block"),
        Key(_mark(drawing.id(), dot=False), "up to the one in 100"),
    ]
    return Group("", "roundtrip_ns", "", figures, keys)


def _draw(drawing: Drawing, device: Device, case: str, blocks: list[Block], begin: float) -> Drawn:
    runs = _runs(blocks)
    label = drawing.label(device)
    panels, constant = _panels(device, case, runs)
    unit = "ns"
    medians = [b.p50 for b in blocks]
    text = (
        f"{label}, round trip of an empty launch over {len(runs)} runs: medians of blocks "
        f"{quantity(min(medians), unit)} to {quantity(max(medians), unit)}"
    )
    for key, points in panels.items():
        values = [v for of_run in points for _, v in of_run]
        name, of = NAMES[key]
        text += f"; {name} {_plain(min(values))} to {_plain(max(values))} {of}"
    notes = []
    if constant:
        notes.append(f"Unchanged: {join_and(constant)}.")
    notes += _clock_notes(device)
    svg = _figure(runs, panels, begin, drawing.id(), text)
    return Drawn(label, svg, notes)


def _mark(identifier: str, dot: bool) -> Markup:
    """A mark of the figure alone, for the legend."""
    figure, axes = key_canvas()
    if dot:
        _dots(axes, [(11, 6)], CORE, 5)
    else:
        axes.plot([11, 11], [0, 12], color=TAIL, linewidth=1.4)
    return to_markup(figure, identifier, "")


def _runs(blocks: list[Block]) -> list[Run]:
    found: dict[int, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.replicate, []).append(block)
    return [Run(i, replicate, of_run) for i, (replicate, of_run) in enumerate(found.items())]


Points = list[list[tuple[float, float]]]
"""Of each run, places on the axis and values."""


def _panels(device: Device, case: str, runs: list[Run]) -> tuple[dict[str, Points], list[str]]:
    """What changed during the blocks drawn, and words for what did not."""
    readings = device.session.details.readings
    panels: dict[str, Points] = {}
    constant: list[str] = []

    def take(key: str, factor: float, of: Sequence[Iterable[Reading]]) -> None:
        points = [[(run.at(r.at_ns), r.value * factor) for r in found] for run, found in zip(runs, of, strict=True)]
        values = [v for of_run in points for _, v in of_run]
        if not any(values):
            return
        if min(values) == max(values):
            name, unit = NAMES[key]
            constant.append(f"{name} {_plain(values[0])}{NBSP}{unit}")
        else:
            panels[key] = points

    for key in SHOWN:
        if key == "temperature_c" and "power_w" in panels:
            continue
        take(key, 1, _of_runs(readings.get((device.id, key), []), case, runs))
    held: dict[tuple[float, int], Reading] = {}
    for key in HOLDERS:
        for r in readings.get((device.id, key), []):
            # Several things may hold the clocks at once.
            sofar = held[r.at_ns, r.replicate].value if (r.at_ns, r.replicate) in held else 0.0
            held[r.at_ns, r.replicate] = replace(r, value=sofar + r.value)
    take(HELD, 1e-6, _of_runs([held[at] for at in sorted(held)], case, runs))
    return panels, constant


def _of_runs(readings: list[Reading], case: str, runs: list[Run]) -> list[list[Reading]]:
    found: dict[int, list[Reading]] = {}
    for reading in readings:
        if reading.process_config == "launch" and reading.case == case:
            found.setdefault(reading.replicate, []).append(reading)
    return [found.get(run.replicate, []) for run in runs]


def _clock_notes(device: Device) -> list[str]:
    """What held the clocks down in any plain run, with all its workloads."""
    readings = device.session.details.readings
    notes = []
    held = []
    for key, words in HOLDERS.items():
        by_process_config: dict[str, float] = {}
        for reading in readings.get((device.id, key), []):
            by_process_config[reading.process_config] = by_process_config.get(reading.process_config, 0) + reading.value
        times = [f"{quantity(v, 'ns')} in {process_config}" for process_config, v in by_process_config.items() if v > 0]
        if times:
            held.append(f"{words} ({', '.join(times)})")
    if held:
        notes.append(f"In the whole session the clocks were held down by {join_and(held)}.")
    reasons: dict[int, int] = {}
    all_readings = readings.get((device.id, "clock_reasons"), [])
    for reading in all_readings:
        bits = int(reading.value)
        for bit in (1 << i for i in range(bits.bit_length())):
            if bits & bit:
                reasons[bit] = reasons.get(bit, 0) + 1
    total = len(all_readings)
    if reasons:
        named = [
            f"{REASONS.get(bit, f'bit {bit:#x}')} in {'all' if times == total else times}"
            for bit, times in sorted(reasons.items())
        ]
        notes.append(f"Why clocks were not higher, in {total} readings: {join_and(named)}.")
    return notes


def _plain(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def thin(points: list[tuple[float, float]], most: int, *, lowest: bool = True) -> list[tuple[float, float]]:
    """At most about `most` points: of neighbours, the highest and perhaps the lowest stay."""
    size = math.ceil(len(points) * (2 if lowest else 1) / most)
    if size <= (2 if lowest else 1):
        return points
    kept = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        ends = {max(part, key=lambda p: p[1])}
        if lowest:
            ends.add(min(part, key=lambda p: p[1]))
        kept += sorted(ends)
    return kept


def _figure(runs: list[Run], panels: dict[str, Points], begin: float, identifier: str, label: str) -> Markup:
    left, width, top, tall, low = 66.0, WIDTH - 66.0 - 8, 4.0, 96.0, 24.0
    head = 17.0
    figure = canvas(top + tall + len(panels) * (head + low) + 20)
    most = max(4, MOST_POINTS // len(runs))

    def panel(y: float, height: float) -> Axes:
        axes = place_axes(figure, left, y, width, height)
        axes.set_xlim(0, len(runs))
        axes.spines["bottom"].set_visible(False)
        axes.set_xticks([])
        return axes

    def underline(axes: Axes) -> None:
        bottom = axes.get_ylim()[0]
        edges = [v for run in runs for v in (run.place + 0.02, run.place + 0.98, math.nan)]
        bottoms = [bottom, bottom, math.nan] * len(runs)
        axes.plot(edges, bottoms, color=MUTED, linewidth=1, clip_on=False)

    axes = panel(top, tall)
    _round_trips(axes, runs, most)
    underline(axes)
    y = top + tall
    for key, points in panels.items():
        name, unit = NAMES[key]
        axes = panel(y + head, low)
        _quantity(axes, [thin(p, most) for p in points])
        underline(axes)
        axes.annotate(
            f"{name}, {unit}",
            (0, low + 4),
            xycoords="axes points",
            color=MUTED,
            size=10,
            annotation_clip=False,
        )
        y += head + low
    _label_runs(axes, runs, begin)
    return to_markup(figure, identifier, label)


def _dots(axes: Axes, points: Iterable[tuple[float, float]], colour: str, size: float) -> None:
    """One path for all: a line without length and with round ends is a dot."""
    points = list(points)
    axes.plot(
        [v for x, _ in points for v in (x, x, math.nan)],
        [v for _, y in points for v in (y, y, math.nan)],
        color=colour,
        linewidth=size,
        solid_capstyle="round",
        clip_on=False,
        zorder=3,
    )


def _round_trips(axes: Axes, runs: list[Run], most: int) -> None:
    medians: list[tuple[float, float]] = []
    tails: list[tuple[float, float, float]] = []
    for run in runs:
        xs = [run.at((b.begin_ns + b.end_ns) / 2) for b in run.blocks]
        medians += thin([(x, b.p50) for x, b in zip(xs, run.blocks, strict=True)], most)
        lows = {x: b.p50 for x, b in zip(xs, run.blocks, strict=True)}
        ends = [(x, b.p99) for x, b in zip(xs, run.blocks, strict=True) if b.p99 is not None]
        tails += [(x, lows[x], p99) for x, p99 in thin(ends, most, lowest=False)]
    values = [v for _, v in medians] + [high for _, _, high in tails]
    least, largest = min(values), max(values)
    log = least > 0 and largest / least > 6
    if log:
        axes.set_yscale("log")
        limits = (least / 1.12, largest * 1.12)
        ticks = log_ticks(*limits, 4)
    else:
        margin = (largest - least) * 0.08 or max(abs(largest) * 0.01, 1e-9)
        limits = (least - margin, largest + margin)
        ticks = nice_ticks(*limits, 4)
    axes.set_ylim(*limits)
    axes.set_yticks(ticks, [tick_text(t, "ns") for t in ticks])
    axes.set_yticks([], minor=True)
    rules(axes, ys=ticks)
    axes.plot(
        [v for x, _, _ in tails for v in (x, x, math.nan)],
        [v for _, low, high in tails for v in (low, high, math.nan)],
        color=TAIL,
        linewidth=1.2,
        clip_on=False,
        zorder=2,
    )
    _dots(axes, medians, CORE, 4.5 if len(medians) < 100 else 3)


def _quantity(axes: Axes, points: Points) -> None:
    values = [v for of_run in points for _, v in of_run]
    least, largest = min(values), max(values)
    margin = (largest - least) * 0.12
    axes.set_ylim(least - margin, largest + margin)
    axes.set_yticks([least, largest], [_plain(least), _plain(largest)])
    xs = [v for of_run in points for v in (*(x for x, _ in of_run), math.nan)]
    ys = [v for of_run in points for v in (*(y for _, y in of_run), math.nan)]
    axes.plot(xs, ys, color=BAND, linewidth=1.4, clip_on=False, zorder=2)
    dots = [p for of_run in points for p in of_run]
    _dots(axes, dots, CORE, 3 if len(dots) < 100 else 2)


def _label_runs(axes: Axes, runs: list[Run], begin: float) -> None:
    """Each run's begin, as many as there is room for."""
    each = axes.bbox.width / len(runs)
    shown = runs[:: max(1, math.ceil(54 / each))]
    for run in shown:
        seconds = (run.blocks[0].begin_ns - begin) / 1e9
        axes.annotate(
            f"r{run.replicate} {_seconds(seconds)}",
            (run.place + 0.02, -13),
            xycoords=("data", "axes points"),
            color=MUTED,
            size=10,
            annotation_clip=False,
        )


def _seconds(value: float) -> str:
    return f"{value:.0f}{NBSP}s" if value < 600 else f"{value / 60:.0f}{NBSP}min"
