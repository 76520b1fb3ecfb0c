"""Where a launch's time goes: the call, the queue and the kernel, at the median and in the tail."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from .details import is_idle_null, own_first, split_case
from .figures import (
    MUTED,
    WIDTH,
    across,
    canvas,
    colour_of,
    hatch,
    nice_ticks,
    place_axes,
    row_text,
    rules,
    swatch,
    tick_text,
)
from .plots import Drawing, Drawn, Group, Key, Table
from .svg import to_markup
from .tables import Record
from .text import MISSING, quantity

QUANTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
PARTS = (("call_ns", "the call"), ("queue_ns", "queue"), ("kernel_ns", "kernel"))
OVERHEAD = "of call and queue, what overhead records cover"


@dataclass
class Bar:
    """A launch taken apart."""

    label: str
    lengths: list[float]
    overhead: float | None

    @property
    def total(self) -> float:
        return sum(self.lengths)


def section(drawing: Drawing) -> tuple[Group, Table] | None:
    found = []
    for device in drawing.shown:
        rows = [r for r in device.session.details.of("parts", device.id) if is_idle_null(r["case"])]
        for case in sorted({r["case"] for r in rows}, key=own_first):
            chosen = [(r, _bar(r)) for r in rows if r["case"] == case]
            if bars := [(r, bar) for r, bar in chosen if bar is not None]:
                found.append((device, case, bars))
    if not found:
        return None
    # The host's queue and a GPU differ by a multiple; devices of one kind share their scale.
    longest: dict[str, float] = {}
    for device, _, bars in found:
        most = max(bar.total for _, bar in bars)
        longest[device.backend] = max(most, longest.get(device.backend, 0))
    figures, lines = [], []
    several = len({id(device) for device, _, _ in found}) < len(found)
    for device, case, bars in found:
        name = drawing.label(device)
        path = split_case(case)[1].get("api", "") if several else ""
        text = f"{name}: " + "; ".join(f"{bar.label} {quantity(bar.total, 'ns')}" for _, bar in bars)
        svg = _draw([b for _, b in bars], longest[device.backend], drawing.id(), text)
        figures.append(Drawn(name, svg, [f"api:{path}"] if path else []))
        row = f"{name}, api:{path}" if path else name
        lines += [_line(row, record, bar) for record, bar in bars]
    keys = [Key(swatch(colour_of(slot), drawing.id()), name) for slot, (_, name) in enumerate(PARTS)]
    if any(bar.overhead for _, _, bars in found for _, bar in bars):
        keys.append(Key(swatch(colour_of(0), drawing.id(), hatched=True), OVERHEAD))
    heads = ["device", "launch", "call", "queue", "kernel", "together", "overhead", "mean of"]
    table = Table("Parts of a launch", heads, lines, 2)
    return Group("", "", "", figures, keys), table


def _bar(record: Record) -> Bar | None:
    lengths = [record.get(key) for key, _ in PARTS]
    if any(v is None or v < 0 for v in lengths):
        return None
    known = [v for v in lengths if v is not None]
    label = QUANTILES.get(record["quantile"], record["quantile"])
    return Bar(label, known, record.get("overhead_ns")) if sum(known) > 0 else None


def _line(label: str, record: Record, bar: Bar) -> list[str]:
    samples = record.get("samples")
    return [
        label,
        bar.label,
        *(quantity(v, "ns") for v in bar.lengths),
        quantity(bar.total, "ns"),
        quantity(bar.overhead, "ns"),
        MISSING if samples is None else f"{samples:.0f}",
    ]


def _draw(bars: list[Bar], longest: float, identifier: str, label: str) -> Markup:
    pitch, thick = 24.0, 14.0
    height = len(bars) * pitch
    figure = canvas(height + 22)
    axes = place_axes(figure, 66, 2, WIDTH - 66 - 62, height)
    axes.set_xlim(0, longest)
    axes.set_ylim(-len(bars) + 0.5, 0.5)
    axes.set_yticks([])
    ticks = [t for t in nice_ticks(0, longest, 4) if t < longest * 0.97]
    axes.set_xticks(ticks, [tick_text(t, "ns") for t in ticks])
    rules(axes, xs=ticks)
    for i, bar in enumerate(bars):
        left = 0.0
        for slot, length in enumerate(bar.lengths):
            across(axes, [-i], [left], [left + length], color=colour_of(slot), linewidth=thick)
            left += length
        covered = min(bar.overhead or 0, sum(bar.lengths[:2]))
        if covered > longest / 200:
            hatch(axes, 0, covered, -i, thick)
        row_text(axes, -62, -i, bar.label, ink=MUTED)
        row_text(axes, axes.bbox.width + 58, -i, quantity(bar.total, "ns"), side="right")
    return to_markup(figure, identifier, label)
