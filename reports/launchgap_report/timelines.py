"""What happened around the oddest samples of traced and recorded runs, each as a small timeline."""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass

from . import details, sequence
from .figures import (
    GRID,
    INK,
    MUTED,
    TAIL,
    WIDTH,
    Axes,
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
from .plots import Drawing, Drawn, Group, Key
from .session import Device
from .svg import to_markup
from .tables import Record
from .text import count, join_and, quantity, shorten, significant

MOST_ROWS = 9
"""Of a timeline; more would not be read."""
KINDS = {
    "range": (GRID, "the program’s own ranges, samples"),
    "call": (colour_of(0), "calls"),
    "kernel": (colour_of(1), "kernels and graphs"),
    "graph": (colour_of(1), ""),
    "copy": (colour_of(2), "copies and fills"),
    "fill": (colour_of(2), ""),
    "wait": (MUTED, "waits"),
    "overhead": (TAIL, "the driver’s or the recorder’s own work"),
    "allocate": (colour_of(3), "allocations"),
    "release": (colour_of(3), ""),
}
PARTS = {"api_record_ns": "the call itself", "queue_ns": "the way from call to kernel", "kernel_ns": "the kernel"}
_ORDER = ("samples", "ranges of", "thread", "driver and recorder", "waits", "memory")
"""Rows from above: first the host, streams last."""


@dataclass
class Event:
    row: str
    kind: str
    name: str
    begin: float
    end: float


Place = tuple[str, str, str, str, str]
"""arm, process configuration, replicate, case, sample"""


def section(drawing: Drawing) -> Group | None:
    """A figure per sample that has a timeline, the oddest of a device first."""
    figures: list[Drawn] = []
    kinds: set[str] = set()
    for device in drawing.shown:
        events = _events(device)
        shown = [r for r in device.session.details.of("slow_samples", device.id) if r.get("view_begin_ns") is not None]
        for record in sorted(shown, key=lambda r: -(r.get("ratio") or 0)):
            own = events.get(_place(record), [])
            kinds.update(e.kind for e in own)
            figures.append(_draw(drawing, device, record, own))
    if not figures:
        return None
    keys = [
        Key(swatch(colour, drawing.id()), words)
        for kind, (colour, words) in KINDS.items()
        if words and {k for k, (c, _) in KINDS.items() if c == colour} & kinds
    ]
    return Group("", "", "", figures, keys)


def _place(record: Record) -> Place:
    return (record["arm"], record["process_config"], record["replicate"], record["case"], record["sample"])


def _events(device: Device) -> dict[Place, list[Event]]:
    found: dict[Place, list[Event]] = defaultdict(list)
    for record in device.session.details.of("timelines", device.id):
        begin, end = record.get("begin_ns"), record.get("end_ns")
        if begin is None or end is None:
            continue
        found[_place(record)].append(Event(record["row"], record["kind"], record["name"], begin, end))
    return found


def _draw(drawing: Drawing, device: Device, record: Record, events: list[Event]) -> Drawn:
    metric, unit = record["metric"], record["unit"]
    value, ratio = quantity(record.get("value"), unit), significant(record.get("ratio") or 0, 2)
    several = len(drawing.devices) > 1
    where = f"{drawing.label(device)}: " if several else ""
    caption = f"{where}{record['case']}, run {record['replicate']}, sample {record['sample']}: {metric} {value}"
    rows = _rows(events)
    usual = quantity(record.get("median"), unit)
    text = f"{caption}, {ratio} times the median {usual}; {count(len(events), 'event')} in {count(len(rows), 'row')}"
    notes = [f"{ratio} times the median, {usual}.{_longer(record)}"]
    if record["problem"]:
        notes.append(f"Its events cannot be read: {record['problem']}.")
    elif events:
        notes += _inside(record, events)
    else:
        notes.append("Nothing was recorded around it.")
    waiting = record.get("waiting")
    if waiting is not None:
        notes.append(f"When it began, {count(int(waiting), 'kernel or copy', 'kernels and copies')} waited for the GPU.")
    notes += _machine(record)
    left_out = record.get("left_out") or 0
    if left_out or len(rows) > MOST_ROWS:
        more = [count(int(left_out), "event")] if left_out else []
        more += [count(len(rows) - MOST_ROWS, "row")] if len(rows) > MOST_ROWS else []
        notes.append(f"Not drawn: {join_and(more)} more.")
    notes.append(_again(device, record))
    svg = _figure(record, events, rows[:MOST_ROWS], drawing.id(), text)
    return Drawn(caption, svg, notes)


def _longer(record: Record) -> str:
    part = PARTS.get(record["longer_part"])
    return f" The extra {quantity(record.get('longer_by_ns'), 'ns')} are in {part}." if part else ""


def _inside(record: Record, events: list[Event]) -> list[str]:
    """What of the sample's time was spent in what, longest first."""
    lasts = _lasts(record)
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        overlap = min(event.end, lasts) - max(event.begin, 0.0)
        if event.kind != "range" and (overlap > 0 or (event.begin == event.end and 0 <= event.begin <= lasts)):
            spent[event.kind, event.name].append(overlap)
    most = sorted(spent.items(), key=lambda item: -sum(item[1]))[:4]
    words = []
    for (kind, name), times in most:
        # An overhead's name says nothing by itself, a kernel's does.
        what = f"{kind} {name}" if kind in ("overhead", "call") else name
        times_over = f" ×{len(times)}" if len(times) > 1 else ""
        time = f" {quantity(sum(times), 'ns')}" if sum(times) > 0 else ""
        words.append(f"{shorten(what, 60)}{times_over}{time}")
    return [f"During it: {'; '.join(words)}.{_quiet(record)}"] if words else ["Nothing was recorded during it."]


def _short(value: str) -> str:
    """A reading without digits that its sensor does not have: "128" of "127.729"."""
    try:
        number = float(value)
    except ValueError:
        return value
    return value if number.is_integer() else significant(number)


def _machine(record: Record) -> list[str]:
    """What of its telemetry tells why something took longer."""
    said = []
    for part in record["telemetry"].split("; "):
        key, _, value = part.partition(" ")
        if key in details.SHOWN:
            name, unit = sequence.NAMES[key]
            said.append(f"{name} {_short(value)}" + (f" {unit}" if unit != "times" else "×"))
        elif key in sequence.HOLDERS:
            said.append(f"clocks held down by {sequence.HOLDERS[key]}")
    return [f"In its block, or after it: {'; '.join(said)}."] if said else []


def _quiet(record: Record) -> str:
    """The gap in which nothing ran, where it explains much of the sample."""
    quiet = record.get("quiet_ns")
    if not quiet or quiet < _lasts(record) / 4:
        return ""
    return (
        f" For {quantity(quiet, 'ns')} from {quantity(record.get('quiet_begin_ns'), 'ns')} on nothing ran that was recorded."
    )


def _again(device: Device, record: Record) -> str:
    """How to see it again, or all of it."""
    folder = shlex.quote(str(device.session.folder))
    if device.recorded:
        command = f"launchgap export {folder} --format chrome-trace -o trace.json.gz"
        return f"All of it: `{command}`, at {(record.get('begin_ns') or 0) / 1e9:.6f} s of its clock."
    return f"Again, under a profiler: `launchgap investigate {folder} {shlex.quote(record['case'])}`."


def _lasts(record: Record) -> float:
    return record.get("lasts_ns") or 0.0


def _rows(events: list[Event]) -> list[str]:
    def place(row: str) -> tuple[int, str]:
        return next((i for i, start in enumerate(_ORDER) if row.startswith(start)), len(_ORDER)), row

    return sorted({e.row for e in events}, key=place)


def _figure(record: Record, events: list[Event], rows: list[str], identifier: str, label: str):
    pitch, left, thick = 17.0, 96.0, 10.0
    height = pitch * max(len(rows), 1)
    figure = canvas(height + 44)
    axes = place_axes(figure, left, 18, WIDTH - left - 12, height)
    begin, end = record.get("view_begin_ns") or 0.0, record.get("view_end_ns") or 1.0
    axes.set_xlim(begin, end)
    axes.set_ylim(-max(len(rows), 1) + 0.5, 0.5)
    axes.set_yticks([])
    ticks = nice_ticks(begin, end, 5)
    axes.set_xticks(ticks, [tick_text(t, "ns") for t in ticks])
    _mark_sample(axes, _lasts(record), height)
    least = (end - begin) / axes.bbox.width  # one unit, so that nothing is too short to be seen
    for i, row in enumerate(rows):
        row_text(axes, -8, -i, shorten(row, 15), side="right", ink=MUTED)
        rules(axes, ys=[-i - 0.5], linewidth=0.6)
        for kind, (colour, _) in KINDS.items():
            bars = [e for e in events if e.row == row and e.kind == kind]
            if not bars:
                continue
            lows = [max(e.begin, begin) for e in bars]
            highs = [max(min(e.end, end), low + least) for e, low in zip(bars, lows, strict=True)]
            across(axes, [-i] * len(bars), lows, highs, color=colour, linewidth=thick, zorder=2)
            if kind == "range":
                for e in bars:
                    axes.plot([e.begin, e.begin], [-i - 0.4, -i + 0.4], color=MUTED, linewidth=0.8, zorder=3)
            elif kind in ("graph", "fill", "release"):
                for low, high in zip(lows, highs, strict=True):
                    if (high - low) / least > 8:
                        hatch(axes, low, high, -i, thick)
    return to_markup(figure, identifier, label)


def _mark_sample(axes: Axes, lasts: float, height: float) -> None:
    rules(axes, xs=[0, lasts], color=INK, linewidth=1, linestyle=(0, (2, 2)), zorder=4)
    axes.annotate(
        "the sample",
        (lasts / 2, height + 5),
        xycoords=("data", "axes points"),
        ha="center",
        color=MUTED,
        size=10,
        annotation_clip=False,
    )
