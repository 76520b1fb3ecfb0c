"""Draws many devices at once: where their values lie, and a map by node and slot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from .figures import CORE, INK, MUTED, WIDTH, across, canvas, colour_of, place_axes, rules
from .svg import to_markup
from .text import NBSP, count, scale_for, shorten, significant

BINS = 40
ODD = 1
"""The colour of what differs."""


def distribution(
    values: list[float], median: float, odd: list[tuple[float, str]], unit: str, identifier: str, label: str
) -> Markup:
    """How many devices have which value; those that differ as marks below, the outermost of them with their names."""
    named = sorted(odd, key=lambda one: abs(math.log(one[0] / median)), reverse=True)[:3]
    line = 13.0
    figure = canvas(118 + line * len(named))
    axes = place_axes(figure, 8, 6, WIDTH - 16, 78)
    low, high = min(values), max(values)
    pad = 0.02 * (high - low) or 0.01 * high
    axes.set_xlim(low - pad, high + pad)
    counts, edges = np.histogram(values, bins=BINS, range=axes.get_xlim())
    # A single device beside thousands is to be seen, so heights are their roots.
    axes.bar(edges[:-1], np.sqrt(counts), width=np.diff(edges), align="edge", color=CORE, linewidth=0)
    axes.set_ylim(0, 1.05 * math.sqrt(max(counts)))
    axes.set_yticks([])
    axes.set_xticks([])
    factor, name = scale_for(median, unit)
    ticks = [low, median, high] if high > low else [low]
    texts = [f"{significant(v / factor)}{NBSP}{name}".strip() for v in ticks]
    room = [0.0, WIDTH - 16]
    kept = []
    for at, (value, text) in enumerate(zip(ticks, texts, strict=True)):
        place = (value - axes.get_xlim()[0]) / (axes.get_xlim()[1] - axes.get_xlim()[0]) * (WIDTH - 16)
        near = at == 1 and (place - room[0] < 7 * len(text) or room[1] - place < 7 * len(text))
        if not near:
            kept.append((place, text, "left" if at == 0 and high > low else "right" if at == 2 else "center"))
    for place, text, side in kept:
        x = min(max(place, 0), WIDTH - 16)
        figure.text((8 + x) / WIDTH, 1 - 98 / (figure.get_figheight() * 72), text, color=MUTED, size=10, ha=side)
    for value, _ in odd:
        axes.plot([value], [0], color=colour_of(ODD), marker="^", markersize=6, clip_on=False, zorder=3)
    for i, (value, who) in enumerate(named):
        text = f"{significant(value / factor)}{NBSP}{name}  {shorten(who, 46)}"
        at = 1 - (114 + i * line) / (figure.get_figheight() * 72)
        figure.text(8 / WIDTH, at, text, color=INK, size=10)
    return to_markup(figure, identifier, label)


@dataclass
class Square:
    """One slot of a node."""

    shade: int
    """Of SHADES; -1: nothing was measured"""
    odd: bool
    title: str


SHADES = ("f-band", "f-core", "f-s4", "f-s1", "f-bad")
LIMITS = (0.99, 1.01, 1.05, 1.2)
"""Between the shades: how many times worse than the median of its kind"""


def shade_of(level: float) -> int:
    return sum(level > limit for limit in LIMITS)


def node_map(nodes: list[tuple[str, list[Square]]], label: str, names: bool) -> Markup:
    """A row of squares per node, nodes below each other and then beside; as wide as a phone.

    Squares of one shade are one path, since there may be ten thousand; those that differ have a frame and a title."""
    slots = max(len(squares) for _, squares in nodes)
    beside = 64.0 if names else 4.0
    size = min(16.0, max(3.0, (WIDTH - beside) / slots - 1)) if names else 4.0
    pitch = size + 1
    width_of_node = beside + slots * pitch + (6 if names else 3)
    columns = max(1, int(WIDTH / width_of_node)) if not names else 1
    rows = math.ceil(len(nodes) / columns)
    height = rows * pitch + 2
    paths: dict[str, list[str]] = {}
    frames: list[str] = []
    texts: list[str] = []
    for i, (name, squares) in enumerate(nodes):
        x, y = (i // rows) * width_of_node + beside, (i % rows) * pitch + 1
        if names:
            texts.append(
                f'<text x="{beside - 6:g}" y="{y + size / 2 + 3.5:g}" font-size="10" text-anchor="end" class="f-muted">'
                f"{escape(shorten(name, 9))}<title>{escape(name)}</title></text>"
            )
        for slot, square in enumerate(squares):
            at = x + slot * pitch
            shape = f"M{at:g} {y:g}h{size:g}v{size:g}h-{size:g}z"
            style = "f-grid" if square.shade < 0 else SHADES[square.shade]
            paths.setdefault(style, []).append(shape)
            if square.odd:
                frames.append(
                    f'<path d="{shape}" class="k-ink" fill="none" stroke-width="{1.4 if names else 1.1}">'
                    f"<title>{escape(square.title)}</title></path>"
                )
    body = "".join(f'<path class="{style}" d="{"".join(shapes)}"/>' for style, shapes in sorted(paths.items()))
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{body}{''.join(frames)}{''.join(texts)}</svg>"
    )


def shade_key(shade: int) -> Markup:
    style = "f-grid" if shade < 0 else SHADES[shade]
    return Markup(f'<svg viewBox="0 0 24 12"><path class="{style}" d="M1 1h22v10h-22z"/></svg>')


def odd_key() -> Markup:
    return Markup('<svg viewBox="0 0 24 12"><path class="k-ink" fill="none" stroke-width="1.6" d="M2 2h20v8h-20z"/></svg>')


def shares(parts: list[tuple[str, float | None]], identifier: str, label: str) -> Markup:
    """One bar, of what lies between hosts, between devices, and between runs."""
    figure = canvas(16)
    axes = place_axes(figure, 0, 2, WIDTH, 12)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.set_xticks([])
    rules(axes, ys=[0.5], linewidth=0.6, zorder=2)
    begin = 0.0
    for slot, (_, share) in enumerate(parts):
        if share:
            across(axes, [0.5], [begin], [begin + share], color=colour_of(slot), linewidth=12)
            begin += share
    return to_markup(figure, identifier, label)


def node_text(nodes: int, devices: int) -> str:
    return f"{count(devices, 'device')} on {count(nodes, 'node')}"
