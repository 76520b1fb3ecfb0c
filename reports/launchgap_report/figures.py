"""Draws the figures: small ones, which the page lays out in a grid.

Each is about as wide as a phone, so that one drawing serves both; a wide screen shows several
side by side. Names of devices stand in the page around a figure, never within it.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from .text import scale_for, shorten

# matplotlib wants a writable folder for its caches, and says so on stderr when it has none.
if not os.access(os.environ.get("MPLCONFIGDIR", os.path.expanduser("~/.config")), os.W_OK):
    os.environ.setdefault("MPLCONFIGDIR", os.path.join(tempfile.gettempdir(), f"launchgap-matplotlib-{os.getuid()}"))
logging.getLogger("matplotlib").setLevel(logging.ERROR)

import matplotlib  # noqa: E402  (after the lines above, which must come first)
import matplotlib.artist  # noqa: E402

matplotlib.use("svg")
# It lists the properties of each artist for its documentation, which takes a fifth of the time of all imports.
matplotlib.artist.kwdoc = lambda artist: ""

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402

from .svg import COLOURS, SERIES, to_markup  # noqa: E402

INK, MUTED, GRID, PAPER = (COLOURS[k] for k in ("ink", "muted", "grid", "paper"))
matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "launchgap",
        "text.parse_math": False,  # a `$` in a name is a `$`
        "axes.formatter.use_mathtext": False,
        "font.size": 10.5,
        "path.simplify": False,
        "axes.unicode_minus": True,
        "lines.solid_capstyle": "butt",
        # Said here once, since saying it of each of a hundred axes takes half a second.
        **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
        "axes.edgecolor": GRID,
        **{
            f"{axis}tick.{key}": value
            for axis in "xy"
            for key, value in {
                "major.size": 0,
                "minor.size": 0,
                "major.pad": 4,
                "minor.pad": 4,
                "labelcolor": MUTED,
                "labelsize": 10.5,
            }.items()
        },
    }
)
# The browser draws the text with its own fonts; what matplotlib's font lacks does not matter.
warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)

WIDTH = 372
BAND, CORE, TAIL = (COLOURS[k] for k in ("band", "core", "tail"))
MARKERS = "osD^vP"


@dataclass
class Point:
    """A value over `x`, with what it was between runs."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass
class Series:
    """Points that belong together; `slot` chooses colour and marker, `dashed` the variant."""

    label: str
    slot: int
    points: list[Point]
    dashed: bool = False


@functools.cache
def _sheet() -> Figure:
    # 72 dots per inch: one point of matplotlib is one unit of the SVG.
    return Figure(dpi=72)


def canvas(height: float, width: float = WIDTH) -> Figure:
    """An empty figure: always the same, so one is drawn at a time.

    To make axes takes as long as to fill them, so those of the figure before are emptied and kept."""
    figure = _sheet()
    for axes in figure.axes:
        axes.set_visible(False)
    for text in list(figure.texts):
        text.remove()
    figure.set_size_inches(width / 72, height / 72)
    return figure


def place_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Linear, from 0 to 1."""
    wide, full = figure.get_size_inches() * 72
    place = (left / wide, 1 - (top + height) / full, width / wide, height / full)
    axes = next((spare for spare in figure.axes if not spare.get_visible()), None)
    if axes is None:
        axes = figure.add_axes(place)
        axes.patch.set_visible(False)
    else:
        axes.set_visible(True)
        axes.set_position(place)
        _empty(axes)
    return axes


def _empty(axes: Axes) -> None:
    """As new."""
    for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.texts):
        artist.remove()
    axes.set_axis_on()
    axes.spines["bottom"].set_visible(True)
    axes.set_prop_cycle(None)
    axes.set(xscale="linear", yscale="linear", xlim=(0, 1), ylim=(0, 1))


def rules(axes: Axes, *, xs: Iterable[float] = (), ys: Iterable[float] = (), **style: Any) -> None:
    """Lines through all of the plot, as those of a grid. `Axes.axvline` would think about limits too, which are given."""
    style = {"color": GRID, "linewidth": 0.8, "zorder": 0} | style
    for x in xs:
        axes.add_artist(Line2D([x, x], [0, 1], transform=axes.get_xaxis_transform("grid"), **style))
    for y in ys:
        axes.add_artist(Line2D([0, 1], [y, y], transform=axes.get_yaxis_transform("grid"), **style))


def across(axes: Axes, ys: Iterable[float], lows: Iterable[float], highs: Iterable[float], **style: Any) -> None:
    """A bar from `low` to `high` at each `y`; as `Axes.hlines`, without a thought about limits."""
    bars = [((low, y), (high, y)) for y, low, high in zip(ys, lows, highs, strict=True)]
    axes.add_collection(LineCollection(bars, **style), autolim=False)


def upright(axes: Axes, xs: Iterable[float], lows: Iterable[float], highs: Iterable[float], **style: Any) -> None:
    bars = [((x, low), (x, high)) for x, low, high in zip(xs, lows, highs, strict=True)]
    axes.add_collection(LineCollection(bars, **style), autolim=False)


def colour_of(slot: int) -> str:
    return COLOURS[f"s{slot % SERIES}"]


def marker_of(slot: int) -> str:
    return MARKERS[(slot + slot // SERIES) % len(MARKERS)]


def series_key(slot: int, identifier: str) -> Markup:
    """The mark of a series alone, for a legend in the page."""
    return _named(_series_key(slot), identifier)


@functools.cache
def _series_key(slot: int) -> Markup:
    figure, axes = key_canvas()
    colour, marker = colour_of(slot), marker_of(slot)
    axes.plot([0, 22], [6, 6], color=colour, linewidth=1.6)
    axes.plot([11], [6], color=colour, marker=marker, markersize=6, markeredgewidth=0)
    return to_markup(figure, _ANY_KEY, "")


def swatch(colour: str, identifier: str, hatched: bool = False) -> Markup:
    """A piece of a bar alone, for a legend in the page."""
    return _named(_swatch(colour, hatched), identifier)


@functools.cache
def _swatch(colour: str, hatched: bool) -> Markup:
    figure, axes = key_canvas()
    across(axes, [6], [1], [21], color=colour, linewidth=10)
    if hatched:
        hatch(axes, 1, 21, 6, 10)
    return to_markup(figure, _ANY_KEY, "")


_ANY_KEY = "key-of-a-legend"


def key_canvas() -> tuple[Figure, Axes]:
    """For a mark of a legend: 22 by 12."""
    figure = canvas(12, 22)
    axes = place_axes(figure, 0, 0, 22, 12)
    axes.set_axis_off()
    axes.set(xlim=(0, 22), ylim=(0, 12))
    return figure, axes


def _named(key: Markup, identifier: str) -> Markup:
    """A page may have the same mark in several legends, but each id once."""
    return Markup(str(key).replace(_ANY_KEY, identifier))


def hatch(axes: Axes, left: float, right: float, y: float, width: float) -> None:
    """Stripes in the page's colour across a bar from `left` to `right`, 4 points apart."""
    x0, x1 = (axes.transData.transform((x, y))[0] for x in (left, right))
    stripes = max(1, int((x1 - x0) / 4))
    xs = [left + (right - left) * (i + 0.5) / stripes for i in range(stripes)]
    points: list[float] = [v for x in xs for v in (x, x, math.nan)]
    y0 = axes.transData.transform((left, y))[1]
    low, high = (axes.transData.inverted().transform((x0, y0 + d))[1] for d in (-width / 2, width / 2))
    axes.plot(points, [v for _ in xs for v in (low, high, math.nan)], color=PAPER, linewidth=1.6)


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Up to `most` round numbers within [low, high]."""
    span = high - low
    if span <= 0:
        return [low]
    step = 10 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 2.5, 5, 10, 20):
        first = math.ceil(low / (step * factor) - 1e-9)
        last = math.floor(high / (step * factor) + 1e-9)
        if last - first + 1 <= most:
            return [i * step * factor for i in range(first, last + 1)]
    return []


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Up to `most` round numbers on a log axis: decades, or 1-2-5 within few decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**e for e in range(first, last + 1) for f in factors]
        ticks = [t for t in ticks if low * 0.999 <= t <= high * 1.001]
        if len(ticks) <= most:
            return ticks
    stride = math.ceil(len(ticks) / most)
    return ticks[::stride]


def ticks_between(low: float, high: float, most: int) -> list[float]:
    """Round numbers for a log axis that may span less than a factor of two."""
    ticks = log_ticks(low, high, most)
    return ticks if len(ticks) > 1 else nice_ticks(low, high, min(most, 4))


def tick_text(value: float, unit: str) -> str:
    """A tick's text: `10 µs`, without the zeros of a measurement."""
    if value == 0:
        return "0"
    factor, name = scale_for(value, unit)
    return f"{value / factor:.6g}\u00a0{name}"


def lines(
    series: list[Series],
    unit: str,
    x_unit: str,
    limits: tuple[float, float] | None,
    identifier: str,
    label: str,
) -> Markup:
    """A metric over sizes, both axes log; the bar on a point is its spread between runs."""
    height, left, right = 216, 72, 72
    figure = canvas(height)
    axes = place_axes(figure, left, 10, WIDTH - left - right, height - 40)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    xs = sorted({p.x for s in series for p in s.points})
    values = [v for s in series for p in s.points for v in (p.y, p.low, p.high) if v]
    low, high = limits or (min(values), max(values))
    axes.set_ylim(low / 1.25, high * 1.25)
    axes.set_xlim(xs[0] / 1.15, xs[-1] * 1.15)
    ticks = log_ticks(low / 1.25, high * 1.25, 6)
    axes.set_yticks(ticks, [tick_text(t, unit) for t in ticks])
    shown = xs[:: math.ceil(len(xs) / 5)]
    axes.set_xticks(shown, [tick_text(x, x_unit) if x_unit else f"{x:g}" for x in shown])
    axes.set_yticks([], minor=True)
    axes.set_xticks([], minor=True)
    rules(axes, ys=ticks)
    for one in series:
        _draw_series(axes, one)
    _label_ends(axes, series, height - 40)
    return to_markup(figure, identifier, label)


def _draw_series(axes: Axes, series: Series) -> None:
    points = sorted(series.points, key=lambda p: p.x)
    colour = colour_of(series.slot)
    bars = [p for p in points if p.low is not None and p.high is not None and p.low > 0]
    if bars:
        upright(
            axes,
            [p.x for p in bars],
            [p.low for p in bars],
            [p.high for p in bars],
            color=colour,
            linewidth=5,
            alpha=0.35,
            clip_on=False,
        )
    axes.plot(
        [p.x for p in points],
        [p.y for p in points],
        color=colour,
        linewidth=1.6,
        linestyle=(0, (3, 2)) if series.dashed else "-",
        marker=marker_of(series.slot),
        markersize=5,
        markeredgewidth=1.2,
        markeredgecolor=colour,
        markerfacecolor=PAPER if series.dashed else colour,
        clip_on=False,
    )


def _label_ends(axes: Axes, series: list[Series], height: float) -> None:
    """Names each line at its right end, moved apart where ends are close."""
    low, high = (math.log(v) for v in axes.get_ylim())
    last = [(max(s.points, key=lambda p: p.x), s) for s in series]
    wanted = sorted(((math.log(p.y) - low) / (high - low) * height, s.slot, s) for p, s in last)
    name_ends(axes, [(y, shorten(s.label, 12), slot) for y, slot, s in wanted], height, pitch=12)


def name_ends(axes: Axes, names: list[tuple[float, str, int]], height: float, pitch: float) -> None:
    """Writes names (height, text, slot; from below) right of the plot, `pitch` apart at least."""
    placed: list[float] = []
    for y, _, _ in names:
        placed.append(max(y, placed[-1] + pitch) if placed else y)
    for i in range(len(placed) - 1, -1, -1):
        ceiling = placed[i + 1] - pitch if i + 1 < len(placed) else height
        placed[i] = min(placed[i], ceiling)
    for y, (_, text, slot) in zip(placed, names, strict=True):
        axes.annotate(
            text,
            (axes.bbox.width + 8, y),
            xycoords="axes points",
            va="center",
            color=colour_of(slot),
            annotation_clip=False,
        )


def row_text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    side: str = "left",
    ink: str = INK,
    size: float | None = None,
) -> None:
    """Text beside a row of a figure: `x` in points from the plot's left, `y` as the data have it."""
    axes.annotate(
        text,
        (x, y),
        xycoords=("axes points", "data"),
        ha=side,
        va="center_baseline",
        color=ink,
        size=size,
        annotation_clip=False,
    )


@dataclass
class DotRow:
    """One line of a dot figure: a label, and a point per series slot."""

    label: str
    points: list[tuple[int, Point, bool]]


def dots(
    rows: list[DotRow],
    unit: str,
    limits: tuple[float, float],
    identifier: str,
    label: str,
    ratio: bool = False,
) -> Markup:
    """A value per named row on a log axis; with `ratio`, around a line at 1 that is equality."""
    pitch = 17.0
    height = len(rows) * pitch
    left = 150 if ratio else 116
    figure = canvas(height + (48 if ratio else 32))
    axes = place_axes(figure, left, 18 if ratio else 4, WIDTH - left - 26, height)
    low, high = limits
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-len(rows) + 0.5, 0.5)
    axes.set_yticks([])
    ticks = log_ticks(low, high, 4)
    axes.set_xticks(ticks, [f"{t:g}×" if ratio else tick_text(t, unit) for t in ticks])
    axes.set_xticks([], minor=True)
    rules(axes, xs=ticks)
    if ratio:
        rules(axes, xs=[1], color=INK, linewidth=1.2, zorder=1)
        for x, text, side in ((0, "← slower", "left"), (1, "faster →", "right")):
            axes.annotate(
                text,
                (x, height + 5),
                xycoords=("axes fraction", "axes points"),
                ha=side,
                color=MUTED,
                size=10,
                annotation_clip=False,
            )
    for i, row in enumerate(rows):
        rules(axes, ys=[-i], linewidth=0.6)
        row_text(axes, -8, -i, shorten(row.label, 24 if ratio else 20), side="right")
        for slot, point, hollow in row.points:
            colour = colour_of(slot)
            if point.low is not None and point.high is not None:
                across(axes, [-i], [point.low], [point.high], color=colour, linewidth=5, alpha=0.35, clip_on=False)
            axes.plot(
                [point.x],
                [-i],
                marker=marker_of(slot),
                markersize=6,
                markeredgecolor=colour,
                markerfacecolor=PAPER if hollow else colour,
                markeredgewidth=1.2,
                clip_on=False,
                zorder=3,
            )
    return to_markup(figure, identifier, label)
