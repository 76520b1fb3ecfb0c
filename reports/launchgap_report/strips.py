"""Draws the times of launches, a strip for each run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from .figures import (
    BAND,
    CORE,
    INK,
    MUTED,
    PAPER,
    TAIL,
    WIDTH,
    Axes,
    across,
    canvas,
    log_ticks,
    nice_ticks,
    place_axes,
    row_text,
    rules,
    tick_text,
    upright,
)
from .svg import to_markup
from .tables import Record
from .text import quantity, shorten


@dataclass
class Strip:
    """One run in a figure of launch times."""

    label: str
    run: Record
    """A row of run_quantiles.csv"""


def _time_axis(axes: Axes, low: float, high: float, unit: str, log: bool, most: int) -> None:
    axes.set_xlim(low, high)
    if log:
        axes.set_xscale("log")
        ticks = log_ticks(low, high, most)
    else:
        ticks = nice_ticks(low, high, most)
    # Labels must not run into each other, nor into those of the axis beside this one.
    span = math.log(high / low) if log else high - low
    width = axes.bbox.width
    at = {t: (math.log(t / low) if log else t - low) / span * width for t in ticks}
    fitting = [t for t in ticks if 6 <= at[t] <= width - 4] or ticks
    ticks = []
    for tick in fitting:
        if not ticks or at[tick] - at[ticks[-1]] >= 44:
            ticks.append(tick)
    axes.set_xticks(ticks, [tick_text(t, unit) for t in ticks])
    axes.set_xticks([], minor=True)
    rules(axes, xs=ticks)


def tail_range(runs: list[Record]) -> tuple[float, float] | None:
    """The common scale of the tails of several devices."""
    lows = [v for run in runs if (v := _p95(run)) > 0]
    highs = [run.get("max") or 0 for run in runs]
    if not lows or max(highs) <= 0:
        return None
    return min(lows) * 0.93, max(*highs, min(lows) * 1.5) * 1.12


def _p95(run: Record) -> float:
    return run.get("p95") or run.get("max") or 0


def launch_strips(
    strips: list[Strip], middle: float | None, unit: str, tail: tuple[float, float] | None, identifier: str, label: str
) -> Markup:
    """One strip per run, in the order given; a line at `middle`, the median of all.

    Left, the bulk of each run up to its 95th percentile on this device's own scale, where a
    shift of some percent can be seen. Right, what lies beyond on a log scale common to all
    devices, where a stray launch a thousand times slower can be seen.
    """
    pitch = 17.0
    height = len(strips) * pitch
    figure = canvas(height + 42)
    body = place_axes(figure, 82, 16, 160, height)
    ends = place_axes(figure, 262, 16, 100, height)
    low = min(strip.run.get("min") or 0 for strip in strips)
    high = max(_p95(strip.run) for strip in strips)
    margin = max((high - low) * 0.04, high * 1e-3, 1e-9)
    log = low > 0 and high / low > 6
    _time_axis(
        body,
        low / 1.05 if log else low - margin,
        high * 1.05 if log else high + margin,
        unit,
        log,
        4,
    )
    if tail:
        _time_axis(ends, *tail, unit, True, 6)
    ys = [-i for i in range(len(strips))]
    for axes in (body, ends):
        axes.set_ylim(-len(strips) + 0.5, 0.5)
        axes.set_yticks([])
    if middle is not None and len(strips) > 1:
        rules(body, xs=[middle], color=MUTED, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    _draw_strips(body, ends if tail else None, ys, [s.run for s in strips])
    for y, strip in zip(ys, strips, strict=True):
        text = quantity(strip.run.get("p50"), unit)
        row_text(body, -78, y, shorten(strip.label, 6), ink=MUTED)
        row_text(body, -6, y, text, side="right")
    for axes, text in ((body, "up to p95"), (ends, "beyond, log scale")):
        axes.annotate(
            text,
            (0, height + 5),
            xycoords="axes points",
            color=MUTED,
            size=10,
            annotation_clip=False,
        )
    return to_markup(figure, identifier, label)


def _draw_strips(body: Axes, ends: Axes | None, ys: list[int], runs: list[Record]) -> None:
    """Draws mark by mark over all strips, which is several times faster than strip by strip."""
    q = {key: [run.get(key) for run in runs] for key in ("min", "p05", "p25", "p50", "p75", "p99", "p999", "max")}
    p95 = [_p95(run) for run in runs]

    def bars(axes: Axes, low: list, high: list, colour: str, width: float) -> None:
        known = [(y, a, b) for y, a, b in zip(ys, low, high, strict=True) if a is not None and b is not None]
        if known:
            at, starts, ends_ = zip(*known, strict=True)
            across(axes, at, starts, ends_, color=colour, linewidth=width, clip_on=False, zorder=2)

    bars(body, q["min"], p95, TAIL, 1.2)
    bars(body, q["p05"], p95, BAND, 9)
    bars(body, q["p25"], q["p75"], CORE, 9)
    medians = [(v, y) for v, y in zip(q["p50"], ys, strict=True) if v is not None]
    for colour, width, zorder in ((PAPER, 4, 3), (INK, 2, 4)):
        # A rim in the page's colour, since the tick may fall on any of the bands.
        upright(
            body,
            [v for v, _ in medians],
            [y - 0.4 for _, y in medians],
            [y + 0.4 for _, y in medians],
            color=colour,
            linewidth=width,
            clip_on=False,
            zorder=zorder,
        )
    if ends is None:
        return

    def marks(values: list[float | None], **style: object) -> None:
        # A log axis has no place for zero.
        known = [(v, y) for v, y in zip(values, ys, strict=True) if v is not None and v > 0]
        ends.plot([v for v, _ in known], [y for _, y in known], linestyle="", clip_on=False, **style)

    bars(ends, [v if v > 0 else None for v in p95], q["max"], TAIL, 1.2)
    marks(q["p99"], color=CORE, marker="|", markersize=7, markeredgewidth=1.6, zorder=3)
    marks(q["p999"], color=CORE, marker="D", markersize=4, markeredgewidth=0, zorder=3)
    marks(
        q["max"],
        marker="o",
        markersize=4.5,
        markerfacecolor=PAPER,
        markeredgecolor=INK,
        markeredgewidth=1.3,
        zorder=4,
    )


def strip_key(identifier: str) -> Markup:
    """How to read a strip, drawn with the marks themselves."""
    figure = canvas(46)
    axes = place_axes(figure, 0, 0, WIDTH, 46)
    axes.set_axis_off()
    axes.set(xlim=(0, WIDTH), ylim=(-31, 15))
    across(axes, [0], [12], [200], color=TAIL, linewidth=1.2)
    across(axes, [0], [44], [200], color=BAND, linewidth=9)
    across(axes, [0], [84], [156], color=CORE, linewidth=9)
    upright(axes, [118], [-7], [7], color=PAPER, linewidth=4)
    upright(axes, [118], [-7], [7], color=INK, linewidth=2)
    across(axes, [0], [222], [352], color=TAIL, linewidth=1.2)
    axes.plot([244], [0], color=CORE, marker="|", markersize=7, markeredgewidth=1.6)
    axes.plot([288], [0], color=CORE, marker="D", markersize=4, markeredgewidth=0)
    axes.plot(
        [352],
        [0],
        marker="o",
        markersize=4.5,
        markerfacecolor=PAPER,
        markeredgecolor=INK,
        markeredgewidth=1.3,
    )
    for x, text in (
        (12, "min"),
        (44, "p5"),
        (84, "q1"),
        (118, "median"),
        (156, "q3"),
        (200, "p95"),
        (244, "p99"),
        (288, "p99.9"),
        (352, "max"),
    ):
        axes.text(x, -22, text, ha="center", color=MUTED, size=10)
    return to_markup(
        figure,
        identifier,
        "How to read a strip: min, p5, q1, median, q3, p95, then p99, p99.9, max",
    )


def describe_spread(medians: list[float], unit: str) -> str:
    """`run medians 2.30 µs to 2.41 µs over 3 runs`, for a screen reader."""
    if not medians:
        return "no run medians"
    if len(medians) == 1:
        return f"run median {quantity(medians[0], unit)}, one run"
    return f"run medians {quantity(min(medians), unit)} to {quantity(max(medians), unit)} over {len(medians)} runs"
