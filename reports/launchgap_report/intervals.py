"""Draws values with their intervals: how much something varies, what something adds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from .figures import INK, MUTED, WIDTH, Axes, across, canvas, colour_of, marker_of, place_axes, row_text, rules
from .svg import to_markup
from .text import shorten

LONGEST_BESIDE = 16
"""Characters of a row's label that stand beside its marks; where one is longer, labels stand above them."""


@dataclass
class Mark:
    """A value with its interval, on one line of a figure; `text` stands beside it."""

    slot: int
    value: float
    low: float | None
    high: float | None
    text: str


@dataclass
class IntervalRow:
    """A named row with a line per mark."""

    label: str
    marks: list[Mark]


def intervals(
    rows: list[IntervalRow],
    limits: tuple[float, float],
    ticks: list[tuple[float, str]],
    log: bool,
    identifier: str,
    label: str,
) -> Markup:
    """Dots with intervals, below labels that are long. What lies beyond the scale, as zero on a log axis, has an arrow."""
    line, gap = 13.0, 9.0
    above = any(len(row.label) > LONGEST_BESIDE for row in rows)
    beside = 8 if above else 96
    behind = 66 if not above else 12 + 6.2 * max(len(mark.text) for row in rows for mark in row.marks)
    height = sum((len(row.marks) + above) * line + gap for row in rows)
    figure = canvas(height + 22)
    axes = place_axes(figure, beside, 2, WIDTH - beside - behind, height)
    low, high = limits
    axes.set_xlim(low, high)
    if log:
        axes.set_xscale("log")
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    _ticks_apart(axes, ticks, log)
    if low < 0 < high:
        rules(axes, xs=[0], color=INK, linewidth=1.2, zorder=1)
    y = 0.0
    for i, row in enumerate(rows):
        if i:
            rules(axes, ys=[y], linewidth=0.6)
        y += gap / 2
        if above:
            row_text(axes, 4 - beside, y + line / 2, shorten(row.label, 48))
            y += line
        else:
            row_text(axes, 4 - beside, y + len(row.marks) * line / 2, shorten(row.label, LONGEST_BESIDE))
        for mark in row.marks:
            _draw_mark(axes, mark, y + line / 2, limits, behind - 4)
            y += line
        y += gap / 2
    return to_markup(figure, identifier, label)


def _ticks_apart(axes: Axes, ticks: list[tuple[float, str]], log: bool) -> None:
    """Sets those of the ticks that have room for their labels."""
    low, high = axes.get_xlim()
    span = math.log(high / low) if log else high - low
    kept: list[tuple[float, str]] = []
    last = -math.inf
    for value, text in ticks:
        at = (math.log(value / low) if log else value - low) / span * axes.bbox.width
        if 0 <= at <= axes.bbox.width and at - last >= max(46, 6.5 * len(text)):
            kept.append((value, text))
            last = at
    axes.set_xticks([v for v, _ in kept], [t for _, t in kept])
    axes.set_xticks([], minor=True)
    rules(axes, xs=[v for v, _ in kept])


def _draw_mark(axes: Axes, mark: Mark, y: float, limits: tuple[float, float], behind: float) -> None:
    low, high = limits
    colour = colour_of(mark.slot)
    if mark.low is not None and mark.high is not None:
        ends = [min(max(v, low), high) for v in (mark.low, mark.high)]
        if ends[0] < ends[1]:
            across(axes, [y], ends[:1], ends[1:], color=colour, linewidth=5, alpha=0.35, clip_on=False, zorder=2)
    marker = "<" if mark.value < low else ">" if mark.value > high else marker_of(mark.slot)
    axes.plot(
        [min(max(mark.value, low), high)],
        [y],
        color=colour,
        marker=marker,
        markersize=6,
        markeredgewidth=0,
        clip_on=False,
        zorder=3,
    )
    row_text(axes, axes.bbox.width + behind, y, mark.text, side="right", ink=MUTED, size=10)
