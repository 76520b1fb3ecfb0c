"""Sizes that take longer than larger ones: the gain of padding, size by size."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from .figures import PAPER, WIDTH, canvas, colour_of, marker_of, nice_ticks, place_axes, rules, upright
from .plots import Drawing, Drawn, Table
from .svg import to_markup
from .tables import Record
from .text import MISSING, count, significant

MOST_FIGURES = 8
MOST_ROWS = 40
LEAST = 1.05
"""The gain that counts, as the table has it"""


@dataclass
class Series:
    device: str
    name: str
    rows: list[Record]

    @property
    def worst(self) -> float:
        return max(_gain(row) for row in self.rows)

    @property
    def cliffs(self) -> int:
        return sum(row["verdict"] == "cliff" for row in self.rows)


@dataclass
class Cliffs:
    figures: list[Drawn]
    table: Table | None
    note: str


def section(drawing: Drawing) -> Cliffs | None:
    """None where no series of sizes was measured."""
    found: dict[tuple[str, str, str, str], Series] = {}
    for device in drawing.devices:
        for row in device.session.details.of("cliffs", device.id):
            label = drawing.label(device)
            key = (label, row["process_config"], row["case"], row["metric"])
            name = row["case"] if row["metric"] == "device_ns" else f"{row['case']} ({row['metric']})"
            found.setdefault(key, Series(label, name, [])).rows.append(row)
    series = sorted(found.values(), key=lambda s: (-s.cliffs, -s.worst))
    if not series:
        return None
    several = len({s.device for s in series}) > 1
    drawn = [_figure(s, several, drawing.id()) for s in series[:MOST_FIGURES]]
    more = len(series) - len(drawn)
    note = f"{count(more, 'more series is', 'more series are')} in cliffs.csv." if more > 0 else ""
    return Cliffs(drawn, _table(series, several), note)


def _gain(row: Record) -> float:
    return row.get("gain") or 1


def _figure(series: Series, several: bool, identifier: str) -> Drawn:
    """A point per size; what is a cliff is filled, with its interval."""
    height, left = 150.0, 44
    figure = canvas(height + 30)
    axes = place_axes(figure, left, 8, WIDTH - left - 14, height)
    rows = sorted(series.rows, key=lambda row: row.get("size") or 0)
    xs = [row.get("size") or 0 for row in rows]
    ys = [_gain(row) for row in rows]
    highest = max([1.1, *ys, *(row.get("gain_upper") or 0 for row in rows if row["verdict"] == "cliff")])
    margin = (xs[-1] - xs[0]) * 0.02 or 1
    axes.set_xlim(xs[0] - margin, xs[-1] + margin)
    axes.set_ylim(min([0.98, *ys]), highest * 1.02)
    ticks = nice_ticks(1, highest * 1.02, 5)
    axes.set_yticks(ticks, [f"{t:g}×" for t in ticks])
    shown = nice_ticks(xs[0], xs[-1], 6)
    axes.set_xticks(shown, [f"{x:.0f}" for x in shown])
    rules(axes, ys=ticks)
    colour = colour_of(0)
    rules(axes, ys=[LEAST], color=colour, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
    for x, row in zip(xs, rows, strict=True):
        if row["verdict"] == "cliff" and row.get("gain_lower") is not None:
            upright(axes, [x], [row.get("gain_lower")], [row.get("gain_upper")], color=colour, linewidth=4, alpha=0.35)
    for is_cliff in (False, True):
        chosen = [i for i, row in enumerate(rows) if (row["verdict"] == "cliff") is is_cliff]
        if not chosen:
            continue
        axes.plot(
            [xs[i] for i in chosen],
            [ys[i] for i in chosen],
            linestyle="none",
            marker=marker_of(0),
            markersize=5 if len(xs) < 100 else 3,
            markeredgewidth=1,
            markeredgecolor=colour,
            markerfacecolor=colour if is_cliff else PAPER,
        )
    caption = f"{series.name} on {series.device}" if several else series.name
    said = ", ".join(
        f"{row.get('size'):.0f}: {significant(_gain(row), 3)} times {row.get('pad_to'):.0f}" for row in _long(rows)
    )
    label = f"{caption}: {said or 'no size takes more than 1.05 times as long as a larger one'}"
    notes = []
    if all(row["verdict"] == "too few processes" for row in rows):
        notes.append("Too few processes for a verdict: these are gains of the medians.")
    if all(row["verdict"] == "order not random" for row in rows):
        notes.append(
            "No verdict: the sizes were not measured in a random order (run with --shapes or --sweep), and a machine "
            "that slows down meanwhile looks the same."
        )
    return Drawn(caption, Markup(to_markup(figure, identifier, label)), notes)


def _long(rows: list[Record]) -> list[Record]:
    return [row for row in rows if _gain(row) > LEAST][:MOST_ROWS]


def _table(series: list[Series], several: bool) -> Table | None:
    rows = []
    found = 0
    for one in series:
        long = sorted((row for row in one.rows if _gain(row) > LEAST), key=lambda row: -_gain(row))
        found += len(long)
        for row in long[: MOST_ROWS - len(rows)]:
            low, high = row.get("gain_lower"), row.get("gain_upper")
            interval = MISSING if low is None or high is None else f"{low:.2f} to {high:.2f}"
            cells = [one.name, f"{row.get('size'):.0f}", f"{row.get('pad_to'):.0f}", f"{_gain(row):.2f}", interval]
            rows.append([*([one.device] if several else []), *cells, row["verdict"]])
    if not rows:
        return None
    heads = [*(["device"] if several else []), "series", "size", "pad to", "gain", "99 %", "verdict"]
    note = f"{count(found - len(rows), 'more size')} in cliffs.csv." if found > len(rows) else ""
    return Table("Sizes that take longer than larger ones", heads, rows, heads.index("size"), note)
