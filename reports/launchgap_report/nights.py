"""Whether a session is slower than those before it, and each metric over the nights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from .figures import (
    BAND,
    CORE,
    MUTED,
    PAPER,
    WIDTH,
    Axes,
    canvas,
    colour_of,
    key_canvas,
    nice_ticks,
    place_axes,
    rules,
    tick_text,
)
from .plots import Drawing, Drawn, Group, Key, Table
from .session import Device
from .svg import to_markup
from .tables import Record
from .text import MISSING, count, percent, quantity

HEIGHT = 120.0
MOST_DATES = 5
ALARM = colour_of(1)
GRAVE = ("slower", "suspect")
MOST_LINES = 400
"""Of the table of verdicts; with more, a page of eight devices would outgrow a browser."""


@dataclass
class Nights:
    answer: str
    tone: str
    """Of the box around the answer"""
    changes: list[str]
    false_alarms: str
    verdicts: Table
    left_out: int
    figures: Group


def section(drawing: Drawing) -> Nights | None:
    """Of the one session that was checked."""
    verdicts = [(d, row) for d in drawing.devices for row in d.session.details.of("verdicts", d.id)]
    if not verdicts:
        return None
    sentences = verdicts[0][0].session.details.tables.get("check_answers", [])
    said = {part: [row for row in sentences if row["part"] == part] for part in ("answer", "change", "false-alarms")}
    (answer,) = said["answer"] or [{"sentence": "", "tone": "know"}]
    figures = [_draw(drawing, d, list(rows)) for d in drawing.shown for rows in _by_metric(d)]
    return Nights(
        answer["sentence"],
        answer["tone"],
        [row["sentence"] for row in said["change"]],
        "".join(row["sentence"] for row in said["false-alarms"]),
        _table(drawing, verdicts),
        max(0, len(verdicts) - MOST_LINES),
        Group("", "", "", figures, _keys(drawing) if figures else []),
    )


def _change(row: Record) -> str:
    change = row.get("change")
    if change is None:
        return MISSING
    low, high = row.get("change_lo"), row.get("change_hi")
    ends = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * change:+.1f}\u00a0%{ends}"


def _table(drawing: Drawing, verdicts: list[tuple[Device, Record]]) -> Table:
    several = len({d.id for d, _ in verdicts}) > 1
    order = {v: i for i, v in enumerate(drawing.registry.verdicts)}
    rows = []
    for device, row in sorted(verdicts, key=lambda v: (order.get(v[1]["verdict"], 99), -abs(v[1].get("change") or 0))):
        of = f"{row['case']} on {drawing.label(device)}" if several else row["case"]
        algorithm = f"another algorithm: {row['algorithm']}" if row.get("algorithm") else ""
        why = "; ".join(t for t in (row["reason"], algorithm, row["tail"], _steadiness(row)) if t)
        rate, least = row.get("false_alarm_rate"), row.get("detectable")
        rows.append(
            [of, row["metric"] or MISSING, row["verdict"], why or MISSING]
            + [quantity(row.get(key), row["unit"]) for key in ("baseline", "value")]
            + [_change(row), f"{row.get('compared_with') or 0:.0f}"]
            + [MISSING if rate is None else percent(rate), MISSING if least is None else percent(least)]
        )
    heads = ["case", "metric", "verdict", "why", "before", "now", "change", "sessions", "false alarms", "finds"]
    note = "before: median of the sessions, or the level that a slower one was compared with."
    if all(row[-2] == MISSING for row in rows):
        heads, rows = heads[:-2], [row[:-2] for row in rows]
    else:
        note += (
            " false alarms: how often this rule raises one, nights in a row counted once; finds: the smallest "
            "lasting slowdown that it finds in 80\u00a0% of all cases; both as the self-test measured them."
        )
    return Table("Verdicts", heads, rows[:MOST_LINES], 4, note)


def _steadiness(row: Record) -> str:
    return f"{row['steadiness']}: {row['steadiness_reason']}" if row["steadiness"] not in ("", "same") else ""


def _by_metric(device: Device) -> Iterable[list[Record]]:
    nights = device.session.details.of("nights", device.id)
    for _, rows in itertools.groupby(nights, key=lambda r: (r["arm"], r["process_config"], r["case"], r["metric"])):
        yield list(rows)


def _draw(drawing: Drawing, device: Device, rows: list[Record]) -> Drawn:
    last = rows[-1]
    unit = last["unit"]
    caption = f"{last['metric']} of {last['case']}, {drawing.label(device)}"
    if last["process_config"] and last["process_config"] != last["case"].partition("/")[0]:
        caption += f", {last['process_config']}"
    words = f"{caption}: {count(len(rows), 'night')}, the last {quantity(last.get('value'), unit)}, {last['verdict']}"
    changes = [(i, r) for i, r in enumerate(rows) if r["changed"]]
    notes = [f"{mark} {r['begin_utc'][:10]}: {r['changed']}" for mark, (_, r) in zip(_marks(), changes, strict=False)]
    figure = _figure(rows, unit, [i for i, _ in changes], drawing.id(), words)
    return Drawn(f"{caption}: {last['verdict']}", figure, notes)


def _marks() -> Iterable[str]:
    return (chr(ord("a") + i % 26) for i in itertools.count())


def _figure(rows: list[Record], unit: str, changes: list[int], identifier: str, label: str) -> Markup:
    figure = canvas(HEIGHT + 40)
    axes = place_axes(figure, 66, 16, WIDTH - 66 - 8, HEIGHT)
    values = [v for r in rows if (v := r.get("value")) is not None]
    ends = [v for r in rows for key in ("low", "high") if (v := r.get(key)) is not None]
    least, largest = min(values + ends), max(values + ends)
    margin = (largest - least) * 0.08 or max(abs(largest) * 0.01, 1e-9)
    axes.set(xlim=(-0.7, len(rows) - 0.3), ylim=(least - margin, largest + margin))
    ticks = nice_ticks(least - margin, largest + margin, 4)
    axes.set_yticks(ticks, [tick_text(t, unit) for t in ticks])
    rules(axes, ys=ticks)
    _band(axes, rows)
    for mark, at in zip(_marks(), changes, strict=False):
        rules(axes, xs=[at - 0.5], color=MUTED, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
        axes.annotate(
            mark, (at - 0.5, HEIGHT + 4), xycoords=("data", "axes points"), ha="center", color=MUTED, annotation_clip=False
        )
    for kind in KINDS:
        points = [(i, v) for i, r in enumerate(rows) if _kind(r) == kind and (v := r.get("value")) is not None]
        _points(axes, points, kind, 3.5 if len(rows) > 60 else 5)
    shown = range(0, len(rows), max(1, math.ceil(len(rows) / MOST_DATES)))
    axes.set_xticks(list(shown), [rows[i]["begin_utc"][5:10] for i in shown])
    return to_markup(figure, identifier, label)


KINDS = ("counted", "grave", "slower", "left out")


def _kind(row: Record) -> str:
    if row["invalid"]:
        return "left out"
    return "slower" if row["verdict"] == "slower" else "grave" if row["verdict"] in GRAVE else "counted"


def _band(axes: Axes, rows: list[Record]) -> None:
    """Where a night is no hit, as its own sessions before had it."""
    for known, part in itertools.groupby(enumerate(rows), key=lambda e: e[1].get("low") is not None):
        nights = list(part)
        if not known:
            continue
        xs = [x for i, _ in nights for x in (i - 0.5, i + 0.5)]
        lows, highs = ([r.get(key) for _, r in nights for _ in range(2)] for key in ("low", "high"))
        axes.fill_between(xs, lows, highs, color=BAND, alpha=0.35, linewidth=0, zorder=1)


def _points(axes: Axes, points: list[tuple[float, float]], kind: str, size: float) -> None:
    if not points:
        return
    look = {
        "counted": {"marker": "o", "color": CORE, "markeredgewidth": 0},
        "grave": {"marker": "o", "color": ALARM, "markerfacecolor": PAPER, "markeredgewidth": 1.6},
        "slower": {"marker": "^", "color": ALARM, "markeredgewidth": 0},
        "left out": {"marker": "x", "color": MUTED, "markeredgewidth": 1.2},
    }[kind]
    large = size * (1 if kind == "counted" else 1.4)
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, linestyle="none", markersize=large, clip_on=False, zorder=3, **look)


def _keys(drawing: Drawing) -> list[Key]:
    words = {"counted": "a night", "grave": "suspect", "slower": "slower", "left out": "invalid, does not count"}
    keys = []
    for kind, text in words.items():
        figure, axes = key_canvas()
        _points(axes, [(11, 6)], kind, 5)
        keys.append(Key(to_markup(figure, drawing.id(), ""), text))
    figure, axes = key_canvas()
    axes.fill_between([0, 22], [2, 2], [10, 10], color=BAND, alpha=0.35, linewidth=0)
    return [*keys, Key(to_markup(figure, drawing.id(), ""), "no hit, by the nights before")]
