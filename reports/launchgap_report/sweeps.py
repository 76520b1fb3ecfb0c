"""Draws a metric over an axis, and values of others beside ours; the spread is always drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from markupsafe import Markup

from .figures import (
    MUTED,
    PAPER,
    WIDTH,
    Axes,
    Point,
    across,
    canvas,
    colour_of,
    marker_of,
    name_ends,
    place_axes,
    row_text,
    rules,
    tick_text,
    ticks_between,
    upright,
)
from .svg import to_markup
from .text import percent, shorten

_DASHES: list[str | tuple[float, tuple[float, ...]]] = ["-", (0, (3, 2)), (0, (1, 1.5))]
_LINE = 13.0  # between two lines of text


@dataclass
class Track:
    """The points of one device and one variant; `label` is empty where another names the line."""

    label: str
    slot: int
    variant: int
    points: list[Point]


@dataclass
class Scale:
    """The axes of a sweep: units, and whether the metric is a share."""

    unit: str
    x_unit: str
    share: bool = False


def sweep(tracks: list[Track], scale: Scale, texts: list[str], identifier: str, label: str) -> Markup:
    """Log axes, but for shares; zero on the x axis has a place of its own at the left.

    The pale bar on a point is its spread between runs. `texts` stand beneath the axis.
    """
    height, left, right = 170.0, 62, 84
    figure = canvas(height + 34 + _LINE * len(texts))
    axes = place_axes(figure, left, 10, WIDTH - left - right, height)
    places = _places(tracks)
    axes.set_xlim(*_x_limits(places))
    values = [v for t in tracks for p in t.points for v in (p.y, p.low, p.high) if v is not None]
    if scale.share:
        # A share that is the rest of an estimate may be below zero; it is not clipped.
        axes.set_ylim(min([0, *values]), max([1, *values]))
        ticks = [0, 0.25, 0.5, 0.75, 1]
        names = [percent(t) for t in ticks]
    else:
        positive = [v for v in values if v > 0]
        low, high = min(positive) / 1.25, max(positive) * 1.25
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        ticks = ticks_between(low, high, 6)
        names = [tick_text(t, scale.unit) for t in ticks]
    axes.set_yticks(ticks, names)
    axes.set_yticks([], minor=True)
    rules(axes, ys=ticks)
    _x_ticks(axes, places, scale.x_unit)
    for track in tracks:
        _draw_track(axes, track, places)
    _name_ends(axes, tracks, places, height)
    for i, text in enumerate(texts):
        axes.annotate(
            text,
            (0, -30 - _LINE * (i + 0.5)),
            xycoords="axes points",
            color=MUTED,
            size=10,
            va="center_baseline",
            annotation_clip=False,
        )
    return to_markup(figure, identifier, label)


def _places(tracks: list[Track]) -> dict[float, float]:
    """Where each x stands: its logarithm, and zero one step to the left of the smallest."""
    xs = sorted({p.x for t in tracks for p in t.points})
    logs = {x: math.log2(x) for x in xs if x > 0}
    if 0 in xs:
        ordered = sorted(logs.values())
        span = ordered[-1] - ordered[0] if ordered else 0
        step = max(1.0, span / max(1, len(ordered)))
        logs[0] = (ordered[0] if ordered else 0) - step
    return logs


def _x_limits(places: dict[float, float]) -> tuple[float, float]:
    low, high = min(places.values()), max(places.values())
    margin = max((high - low) * 0.03, 0.1)
    return low - margin, high + margin


def _x_ticks(axes: Axes, places: dict[float, float], unit: str) -> None:
    """Names as many of the values as have room, the first and the last among them."""
    low, high = axes.get_xlim()
    at = {x: (p - low) / (high - low) * axes.bbox.width for x, p in places.items()}
    names = {x: _x_text(x, unit) for x in places}
    ordered = sorted(places)

    def apart(x: float, other: float) -> bool:
        return abs(at[x] - at[other]) >= 3.2 * (len(names[x]) + len(names[other])) + 6

    kept: list[float] = []
    for x in (ordered[0], ordered[-1], *ordered[1:-1]):
        if all(apart(x, other) for other in kept):
            kept.append(x)
    axes.set_xticks([places[x] for x in kept], [names[x] for x in kept])
    axes.set_xticks([], minor=True)


def _x_text(x: float, unit: str) -> str:
    if unit == "B":
        return tick_text(x, unit) if x < 1024 or x % 1024 == 0 else f"{x / 1024:.3g}\u00a0KiB"
    return f"{x:g}\u00a0{unit}" if unit else f"{x:g}"


def _draw_track(axes: Axes, track: Track, places: dict[float, float]) -> None:
    colour = colour_of(track.slot)
    log = axes.get_yscale() == "log"
    points = sorted((p for p in track.points if not log or p.y > 0), key=lambda p: p.x)
    xs = [places[p.x] for p in points]
    floor = axes.get_ylim()[0]
    bars = [
        (x, max(p.low, floor), p.high) for x, p in zip(xs, points, strict=True) if p.low is not None and p.high is not None
    ]
    if bars:
        at, lows, highs = zip(*bars, strict=True)
        upright(axes, at, lows, highs, color=colour, linewidth=5, alpha=0.35, clip_on=False)
    axes.plot(
        xs,
        [p.y for p in points],
        color=colour,
        linewidth=1.6,
        linestyle=_DASHES[track.variant % len(_DASHES)],
        marker=marker_of(track.slot),
        markersize=5,
        markeredgewidth=1.2,
        markeredgecolor=colour,
        markerfacecolor=PAPER if track.variant else colour,
        clip_on=False,
    )


def _name_ends(axes: Axes, tracks: list[Track], places: dict[float, float], height: float) -> None:
    """Names lines at their right ends, moved apart where ends are close."""
    named = []
    for track in tracks:
        ends = [p for p in track.points if p.y > 0 or axes.get_yscale() != "log"]
        if track.label and ends:
            end = max(ends, key=lambda p: p.x)
            y = axes.transData.transform((places[end.x], end.y))[1] - axes.bbox.y0
            named.append((y, track))
    named.sort(key=lambda n: n[0])
    names = [(y, shorten(track.label, 14), track.slot) for y, track in named]
    name_ends(axes, names, height, _LINE)


@dataclass
class Beside:
    """One line of a figure of published values: ours, or those of a published GPU."""

    label: str
    values: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    slot: int | None = None  # of our device; None: published
    text: str = ""


def beside(rows: list[Beside], unit: str, identifier: str, label: str) -> Markup:
    """Ours filled, with the spread between runs; published ones hollow. Log axis."""
    pitch = 17.0
    height = len(rows) * pitch
    figure = canvas(height + 28)
    left = 124
    axes = place_axes(figure, left, 4, WIDTH - left - 66, height)
    values = [v for r in rows for one in r.values for v in one if v is not None and v > 0]
    low, high = min(values) / 1.3, max(values) * 1.3
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-len(rows) + 0.5, 0.5)
    axes.set_yticks([])
    ticks = ticks_between(low, high, 4)
    axes.set_xticks(ticks, [tick_text(t, unit) for t in ticks])
    axes.set_xticks([], minor=True)
    rules(axes, xs=ticks)
    for i, row in enumerate(rows):
        colour = MUTED if row.slot is None else colour_of(row.slot)
        row_text(axes, -(left - 4), -i, shorten(row.label, 20))
        row_text(axes, axes.bbox.width + 62, -i, row.text, side="right", ink=MUTED)
        for value, least, most in row.values:
            if least is not None and most is not None:
                across(axes, [-i], [least], [most], color=colour, linewidth=5, alpha=0.35, clip_on=False)
            axes.plot(
                [value],
                [-i],
                marker="o" if row.slot is None else marker_of(row.slot),
                markersize=6,
                markeredgecolor=colour,
                markerfacecolor=PAPER if row.slot is None else colour,
                markeredgewidth=1.2,
                clip_on=False,
                zorder=3,
            )
    return to_markup(figure, identifier, label)
