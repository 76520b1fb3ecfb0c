"""How much memory a job's allocations need under each allocator, and what becomes of that memory."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from markupsafe import Markup

from .figures import (
    BAND,
    CORE,
    INK,
    TAIL,
    WIDTH,
    Axes,
    across,
    canvas,
    colour_of,
    nice_ticks,
    place_axes,
    row_text,
    rules,
    swatch,
)
from .plots import Drawing, Drawn, Group, Key, Table
from .session import Session
from .svg import to_markup
from .tables import Record
from .text import MISSING, count, percent, quantity

WASTE = colour_of(1)
LETTERS = {"*": CORE, "x": WASTE, "_": BAND}


@dataclass
class Replay:
    heading: str
    lead: str
    answers: list[str]
    table: Table
    needs: Drawn | None
    courses: Group
    creep: Group


def section(drawing: Drawing, sessions: list[Session]) -> list[Replay]:
    """Each replay that the sessions have kept."""
    replays = []
    for session in sessions:
        rows = session.details.tables.get("replays", [])
        answers = session.details.tables.get("replay_answers", [])
        moments = _by_allocator(session.details.tables.get("replay_moments", []))
        epochs = _by_allocator(session.details.tables.get("replay_epochs", []))
        for name, group in itertools.groupby(rows, key=lambda r: r["replay"]):
            lines = [row["answer"] for row in answers if row["replay"] == name]
            replays.append(_replay(drawing, name, list(group), lines, moments, epochs))
    return replays


Parts = dict[tuple[str, str], list[Record]]


def _by_allocator(rows: list[Record]) -> Parts:
    parts: Parts = {}
    for row in rows:
        parts.setdefault((row["replay"], row["allocator"]), []).append(row)
    return parts


def _replay(drawing: Drawing, name: str, rows: list[Record], answers: list[str], moments: Parts, epochs: Parts) -> Replay:
    first = rows[0]
    peak = first.get("peak_live_bytes") or 0
    how_many = count(int(first.get("allocations") or 0), "allocation")
    lead = f"{how_many}, recorded by {first['source']}; at most {gib(peak)} live."
    over = "" if first["over"] == "sim" else f" The allocators had memory of {first['over']}."
    # A device's own allocators do not tell what they hold.
    told = [
        (row, [m for m in moments.get((name, row["allocator"]), []) if m.get("reserved_bytes") is not None]) for row in rows
    ]
    courses = [_course(drawing, row, known) for row, known in told if known]
    creeps = [_creep(drawing, row, epochs[name, row["allocator"]]) for row in rows if epochs.get((name, row["allocator"]))]
    known = [row for row in rows if row.get("c_min_bytes") is not None]
    return Replay(
        first["trace"],
        lead + over,
        answers,
        _table(rows),
        _needs(drawing, known) if known else None,
        Group("", "", "", courses, _keys(drawing) if courses else []),
        Group("", "", f"Injected on purpose: {first['injected']}." if first["injected"] else "", creeps),
    )


def gib(value: float | None) -> str:
    """Four digits, since allocators differ in the third."""
    if value is None:
        return MISSING
    unit, names = 0, ("B", "KiB", "MiB", "GiB", "TiB")
    while value >= 1024 and unit + 1 < len(names):
        value, unit = value / 1024, unit + 1
    return f"{value:.4g}\u00a0{names[unit]}"


def _table(rows: list[Record]) -> Table:
    """Without the columns that nobody asked for."""
    searched = any(row.get("c_min_bytes") is not None for row in rows)
    creeps = any(row["creep"] for row in rows)
    heads = ["allocator", "completes"]
    heads += ["needs", "relative to peak", "fails again at"] if searched else []
    heads += ["takes", "largest-block index", "waste", "allocate", "p99"] + (["creep"] if creeps else [])
    lines = []
    for row in rows:
        ratio, index, waste = row.get("c_min_over_peak"), row.get("largest_block_index"), row.get("internal_waste")
        line = [row["allocator"], {"true": "yes", "false": "no"}.get(row["completed"], MISSING)]
        if searched:
            line += [
                gib(row.get("c_min_bytes")),
                MISSING if ratio is None else f"{ratio:.3f}",
                gib(row.get("fails_again_at")),
            ]
        line += [
            gib(row.get("reserved_peak_bytes")),
            MISSING if index is None else f"{index:.3f}",
            MISSING if waste is None else percent(waste),
            quantity(row.get("allocate_p50_ns"), "ns"),
            quantity(row.get("allocate_p99_ns"), "ns"),
        ]
        lines.append(line + ([row["creep"].replace("_", " ") or MISSING] if creeps else []))
    note = "takes: the most that the allocator took; largest-block index and waste: when most was live."
    if searched:
        least = "needs: the least memory with which all of it can be had; fails again at: more memory does not always help; "
        note = least + note
    return Table("Allocators", heads, lines, 1, note)


def _needs(drawing: Drawing, rows: list[Record]) -> Drawn:
    """A bar for each allocator: the least memory, beside what was live at most."""
    pitch, left = 22.0, 126
    height = len(rows) * pitch
    figure = canvas(height + 34)
    axes = place_axes(figure, left, 16, WIDTH - left - 64, height)
    ratios = [row.get("c_min_over_peak") or 0 for row in rows]
    axes.set(xlim=(0, max(*ratios, 1)), ylim=(-len(rows) + 0.5, 0.5))
    axes.set_yticks([])
    axes.set_xticks([0, 1], ["0", "most live"])
    for i, (row, ratio) in enumerate(zip(rows, ratios, strict=True)):
        across(axes, [-i], [0], [ratio], color=CORE, linewidth=11)
        row_text(axes, -8, -i, row["allocator"], "right")
        row_text(axes, WIDTH - left - 58, -i, f"{100 * (ratio - 1):+.1f}\u00a0%", "left")
    rules(axes, xs=[1], color=INK, linewidth=1.2, zorder=2)
    words = "; ".join(f"{r['allocator']} {gib(r.get('c_min_bytes'))}" for r in rows)
    return Drawn("", to_markup(figure, drawing.id(), f"The least memory of each allocator: {words}"))


def _course(drawing: Drawing, row: Record, moments: list[Record]) -> Drawn:
    """Above what is live and what is taken, below what is where in the taken memory."""
    above, below, left = 110.0, 90.0, 62
    figure = canvas(above + below + 46)
    last = max(m.get("event") or 0 for m in moments) or 1
    axes = place_axes(figure, left, 10, WIDTH - left - 12, above)
    xs = [m.get("event") or 0 for m in moments]
    live = [m.get("live_bytes") or 0 for m in moments]
    taken = [m.get("reserved_bytes") or 0 for m in moments]
    # A region of the whole limit would press all else to the ground.
    top = max(live) * 2.2 if min(taken[1:] or taken) > 4 * max(live) else max(*taken, *live)
    axes.set(xlim=(0, last), ylim=(0, top * 1.05 or 1))
    _bytes_axis(axes, top)
    axes.set_xticks([])
    axes.fill_between(xs, 0, live, step="post", color=BAND, linewidth=0, zorder=1)
    axes.plot(xs, live, color=CORE, linewidth=1.2, drawstyle="steps-post", zorder=3)
    if max(taken) <= top:
        axes.plot(xs, taken, color=TAIL, linewidth=1.6, drawstyle="steps-post", zorder=2)
    strip = place_axes(figure, left, above + 20, WIDTH - left - 12, below)
    strip.set(xlim=(0, last), ylim=(0, 100))
    strip.set_yticks([])
    strip.set_xticks([0, last], ["0", f"event {last:.0f}"])
    for label, side in zip(strip.get_xticklabels(), ("left", "right"), strict=True):
        label.set_ha(side)
    _strip(strip, [m for m in moments if m["occupancy"]], last)
    words = f"{row['allocator']}: at most {gib(max(live))} live and {gib(max(taken))} taken"
    notes = [] if max(taken) <= top else [f"It takes {gib(max(taken))} at once, which is above the figure."]
    return Drawn(row["allocator"], to_markup(figure, drawing.id(), words), notes)


def _bytes_axis(axes: Axes, top: float) -> None:
    """Round numbers of the unit that the largest value has."""
    unit = 2.0 ** (10 * min(4, int(math.log2(max(top, 1)) // 10)))
    ticks = [t * unit for t in nice_ticks(0, top / unit, 3)]
    rules(axes, ys=ticks)
    axes.set_yticks(ticks, [gib(t) if t else "0" for t in ticks])


def _strip(axes: Axes, moments: list[Record], last: float) -> None:
    """Each moment a column; within it the taken memory from the lowest address up."""
    events = [m.get("event") or 0 for m in moments]
    edges = [0, *((a + b) / 2 for a, b in itertools.pairwise(events)), last]
    for moment, (begin, end) in zip(moments, itertools.pairwise(edges), strict=True):
        at = 0
        for letter, run in itertools.groupby(moment["occupancy"][:100]):
            length = len(list(run))
            if letter in LETTERS:
                axes.fill_between([begin, end], at, at + length, color=LETTERS[letter], linewidth=0)
            at += length


def _creep(drawing: Drawing, row: Record, epochs: list[Record]) -> Drawn:
    height, left = 110.0, 62
    figure = canvas(height + 40)
    axes = place_axes(figure, left, 10, WIDTH - left - 12, height)
    xs = [e.get("epoch") or 0 for e in epochs]
    used, taken, live = ([e.get(k) or 0 for e in epochs] for k in ("used_bytes", "reserved_bytes", "live_bytes"))
    top = max(*used, *taken, *live, 1)
    axes.set(xlim=(0, max(xs) or 1), ylim=(0, top * 1.05))
    _bytes_axis(axes, top)
    axes.set_xticks([0, max(xs)], ["epoch 1", f"{max(xs) + 1:.0f}"])
    # Centred below the corner, it would lie on the 0 of the other axis.
    axes.get_xticklabels()[0].set_horizontalalignment("left")
    axes.plot(xs, used, color=INK, linewidth=1, linestyle=(0, (2, 2)), zorder=2)
    axes.plot(xs, taken, color=TAIL, linewidth=1.8, zorder=3)
    axes.plot(xs, live, color=CORE, linewidth=1.4, zorder=4)
    kind = row["creep"].replace("_", " ")
    words = f"{row['allocator']}: {kind}; taken {gib(taken[0])} after the first epoch and {gib(taken[-1])} after the last"
    return Drawn(
        f"{row['allocator']}: {kind if row['creep'] != 'none' else 'no creep'}", to_markup(figure, drawing.id(), words)
    )


def _keys(drawing: Drawing) -> list[Key]:
    words = [(CORE, "live, used"), (TAIL, "taken"), (WASTE, "wasted by rounding"), (BAND, "free")]
    return [Key(Markup(swatch(colour, drawing.id())), text) for colour, text in words]
