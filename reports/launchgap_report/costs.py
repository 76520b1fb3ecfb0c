"""What makes a launch cost, and what library code makes of a device: a question with its figures per benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import figures, published, strips
from .intervals import IntervalRow, Mark, intervals
from .plots import Drawing, Drawn, Key
from .registry import COMMON, LEAST, MOST, Benchmark, Figure, Line
from .session import Device, Row
from .sweeps import Scale, Track, sweep
from .text import join_and, percent, quantity, significant


@dataclass
class Answer:
    """A question with the figures that answer it, and what could not be measured."""

    question: str
    figures: list[Drawn]
    notes: list[str]


@dataclass
class Costs:
    """The section."""

    keys: list[Key]
    answers: list[Answer]
    absent: list[str]  # subjects of which nothing was measured, with the reasons
    published: published.Beside | None


@dataclass
class _Found:
    """The rows of one benchmark, by device."""

    rows: dict[int, list[Row]] = field(default_factory=dict)

    def of(self, device: int, line: Line, params: dict[str, str]) -> list[Row]:
        return [
            row
            for row in self.rows.get(device, [])
            if row.metric == line.metric
            and row.arm == "plain"
            and row.status == "ok"
            and row.get("p50") is not None
            and all(row.params.get(k) == v for k, v in params.items())
        ]

    def known(self, line: Line, params: dict[str, str], axis: str) -> list[str]:
        """The values of an axis over the line's rows with these parameters, ascending."""
        values = {
            value
            for i in self.rows
            for row in self.of(i, line, params)
            if _number(value := row.params.get(axis, "")) is not None
        }
        return sorted(values, key=lambda v: _number(v) or 0)

    def resolved(self, line: Line) -> dict[str, str]:
        """The line's parameters with the smallest and largest values put in.

        One after another, as the longest chain may be measured with other gaps than shorter ones.
        """
        params = {k: v for k, v in line.params.items() if v not in (LEAST, MOST, COMMON)}
        for axis, wanted in line.params.items():
            if wanted in (LEAST, MOST) and (known := self.known(line, params, axis)):
                params[axis] = known[0 if wanted == LEAST else -1]
        return params

    def common(self, lines: list[Line]) -> dict[str, str]:
        """For the axes of COMMON, the largest value that most lines have."""
        chosen = {}
        for axis in {k for line in lines for k, v in line.params.items() if v == COMMON}:
            known = [self.known(line, self.resolved(line), axis) for line in lines]
            values = {v for of_line in known for v in of_line}
            if values:
                chosen[axis] = max(values, key=lambda v: (sum(v in k for k in known), _number(v) or 0))
        return chosen


MOST_ROWS = 20
"""Of a figure: values of an axis that has a row for each."""

LIBRARIES = ("matmul", "convolution")
"""Families whose questions are about code of libraries, and not about launches"""


def section(drawing: Drawing) -> Costs | None:
    subjects = [s for s in drawing.registry.subjects() if s.family not in LIBRARIES]
    return _section(drawing, subjects, published.section(drawing))


def library_code(drawing: Drawing) -> Costs | None:
    return _section(drawing, [s for s in drawing.registry.subjects() if s.family in LIBRARIES], None)


def _section(drawing: Drawing, subjects: list[Benchmark], beside: published.Beside | None) -> Costs | None:
    found = _rows(drawing)
    answers, absent = [], []
    shown: set[int] = set()
    for subject in subjects:
        rows = found.get(subject.name, _Found())
        zeros: list[str] = []
        chosen = _figures(subject, rows)
        drawn = [d for figure in chosen for d in _draw(drawing, figure, rows, shown, zeros)]
        reasons = _reasons(drawing, rows) + zeros
        if drawn:
            answers.append(Answer(subject.question, drawn, reasons))
        elif reasons:
            absent += [f"{subject.name}: {reason}" for reason in reasons]
    if not (answers or beside):
        return None
    keys = [Key(figures.series_key(i, drawing.id()), drawing.label(drawing.shown[i])) for i in sorted(shown)]
    return Costs(
        keys if len(keys) > 1 else [],
        answers,
        absent,
        beside,
    )


def _rows(drawing: Drawing) -> dict[str, _Found]:
    subjects = {subject.name for subject in drawing.registry.subjects()}
    found: dict[str, _Found] = {}
    for i, device in enumerate(drawing.shown):
        for row in device.rows:
            benchmark = row.record["benchmark"]
            # What others have published is beside, and no line of its own.
            if benchmark in subjects and not device.session.published:
                found.setdefault(benchmark, _Found()).rows.setdefault(i, []).append(row)
    return found


def _reasons(drawing: Drawing, found: _Found) -> list[str]:
    """One line per device and reason why cases have no numbers."""
    groups: dict[tuple[int, str, str], list[str]] = {}
    for i, rows in found.rows.items():
        for row in rows:
            if row.status != "ok" and row.arm == "plain":
                key = (i, row.status, row.record["reason"])
                cases = groups.setdefault(key, [])
                if (name := row.record["params"] or row.case) not in cases:
                    cases.append(name)
    lines = []
    for (i, status, reason), cases in groups.items():
        more = f" and {len(cases) - 2} more cases" if len(cases) > 2 else ""
        names = ", ".join(cases[:2]) if more else join_and(cases)
        device = f"{drawing.label(drawing.shown[i])}, " if len(drawing.shown) > 1 else ""
        lines.append(f"{device}{names}{more}: {status}" + (f", {reason}" if reason else ""))
    return lines


# Figures


def _figures(subject: Benchmark, found: _Found) -> list[Figure]:
    """The figures; where only one value of a figure's axis was measured, rows instead of a line.

    Rows of the same numbers are not drawn twice. Shares have no log scale, and stay.
    """
    chosen: list[Figure] = []
    for figure in subject.figures:
        if figure.axis and not figure.share:
            known = {x for li in figure.lines for x in found.known(li, found.resolved(li), figure.axis)}
            if len(known) == 1:
                if any(not other.axis for other in subject.figures):
                    continue
                figure = Figure(f"{figure.caption}, {figure.axis}:{known.pop()}", figure.lines)
        chosen.append(figure)
    return chosen


def _lines_by_row(figure: Figure, found: _Found) -> list[tuple[str, list[Line]]]:
    """The rows of a figure without an axis: one per line or, with `each`, one per value of it that was measured, with a
    mark per line."""
    if not figure.each:
        return [(line.label, [line]) for line in figure.lines]
    rows = [row for of_device in found.rows.values() for row in of_device]
    values = list(dict.fromkeys(row.params[figure.each] for row in rows if figure.each in row.params))[:MOST_ROWS]
    return [
        (value, [Line(line.label, {**line.params, figure.each: value}, line.metric) for line in figure.lines])
        for value in values
    ]


def _draw(drawing: Drawing, figure: Figure, found: _Found, shown: set[int], zeros: list[str]) -> list[Drawn]:
    """What is drawn of `figure`; adds the devices in it, and what a log axis has no place for."""
    if not figure.axis:
        return _bars(drawing, figure, found, shown)
    devices = list(found.rows)
    groups = [[i] for i in devices] if figure.each_device else [devices]
    drawn = [_sweep(drawing, figure, found, group, shown, zeros) for group in groups]
    return [d for d in drawn if d]


def _sweep(
    drawing: Drawing,
    figure: Figure,
    found: _Found,
    devices: list[int],
    shown: set[int],
    zeros: list[str],
) -> Drawn | None:
    tracks: list[Track] = []
    said: list[str] = []
    unit = ""
    for variant, line in enumerate(figure.lines):
        for i in devices:
            points = []
            for row in found.of(i, line, found.resolved(line)):
                x, y = _number(row.params.get(figure.axis, "")), row.get("p50")
                if x is None or x < 0 or y is None:
                    continue
                if y <= 0 and not figure.share:
                    zeros.append(f"{row.case}: {row.metric} is {y:g}, not on a log axis")
                    continue
                unit = row.unit
                points.append(drawing.point(row, x, y))
            if not points:
                continue
            label = drawing.label(drawing.shown[i])
            slot = variant if figure.each_device else i
            tracks.append(Track(line.label, slot, 0 if figure.each_device else variant, points))
            said.append(f"{label} {line.label} {_range_text(points, unit, figure.share)}")
            if not figure.each_device:
                shown.add(i)
    if not tracks:
        return None
    caption = figure.caption
    texts: list[str] = []
    if figure.each_device:
        device = drawing.shown[devices[0]]
        caption += f": {drawing.label(device)}"
        texts = _fits(device)
    else:
        _name(drawing, tracks)
    scale = Scale(unit, figure.axis_unit, figure.share)
    svg = sweep(tracks, scale, texts, drawing.id(), f"{caption}. " + "; ".join(said))
    return Drawn(caption, svg)


def _name(drawing: Drawing, tracks: list[Track]) -> None:
    """A name per line, or where devices share a kind of line, one name per kind.

    Lines of a kind are dashed alike, and devices have colours.
    """
    if len({t.variant for t in tracks}) == 1 and len(tracks) > 1:
        for track in tracks if len(tracks) <= 8 else []:
            track.label = published.short_name(drawing.shown[track.slot])
        return
    # At the line with the most points, which reaches furthest.
    chosen: dict[int, Track] = {}
    for track in tracks:
        best = chosen.get(track.variant)
        if best is None or len(track.points) >= len(best.points):
            chosen[track.variant] = track
    for track in tracks:
        if chosen[track.variant] is not track:
            track.label = ""


def _range_text(points: list[figures.Point], unit: str, share: bool) -> str:
    """`2.30 µs at 0 to 4.10 µs at 4096, runs 2.25 µs to 4.20 µs`."""

    def say(value: float) -> str:
        return percent(value) if share else quantity(value, unit)

    ordered = sorted(points, key=lambda p: p.x)
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    text = " to ".join(f"{say(p.y)} at {p.x:g}" for p in ends)
    lows = [p.low for p in points if p.low is not None]
    highs = [p.high for p in points if p.high is not None]
    if lows and highs:
        text += f", spread {say(min(lows))} to {say(max(highs))}"
    return text


def _bars(drawing: Drawing, figure: Figure, found: _Found, shown: set[int]) -> list[Drawn]:
    rows: list[IntervalRow] = []
    said: list[str] = []
    values: list[float] = []
    unit = ""
    several_units = set()
    common = found.common(figure.lines)
    for label, lines in _lines_by_row(figure, found):
        marks = []
        for line in lines:
            for i in found.rows:
                chosen = found.of(i, line, {**found.resolved(line), **common})
                if not chosen:
                    continue
                row = min(chosen, key=lambda r: r.process_config != r.family)
                point = drawing.point(row, 0, row.get("p50") or 0)
                unit = row.unit
                several_units.add(unit)
                text = quantity(point.y, unit) if unit != "1" else significant(point.y, 4)
                name = line.label if figure.each else ""
                marks.append(Mark(i, point.y, point.low, point.high, f"{name} {text}".lstrip()))
                values += [v for v in (point.y, point.low, point.high) if v is not None and v > 0]
                of = " ".join(t for t in (drawing.label(drawing.shown[i]), label, name) if t)
                said.append(f"{of} {text}, {strips.describe_spread(row.device.session.run_medians(row), unit)}")
                shown.add(i)
        if marks:
            rows.append(IntervalRow(label, marks))
    if not rows or not values or len(several_units) > 1:
        return []
    low, high = min(values), max(values)
    limits = (low / 1.3, high * 1.3)
    ticks = [(t, _tick(t, unit)) for t in figures.ticks_between(*limits, 5)]
    at = ", ".join(f"{axis}:{value}" for axis, value in common.items())
    caption = f"{figure.caption}, {at}" if at else figure.caption
    svg = intervals(rows, limits, ticks, True, drawing.id(), f"{caption}. " + "; ".join(said))
    return [Drawn(caption, svg)]


def _tick(value: float, unit: str) -> str:
    return f"{value:g}" if unit == "1" else figures.tick_text(value, unit)


def _fits(device: Device) -> list[str]:
    """`graph: 1.30 µs + V / 2.1 TB/s`, as the program fitted it."""
    texts = []
    for record in device.session.details.of("fit", device.id):
        overhead, rate = record.get("overhead_ns"), record.get("bytes_per_ns")
        if overhead is None:
            continue
        text = f"{record['method']}: {quantity(overhead, 'ns')}"
        least, most = record.get("overhead_min"), record.get("overhead_max")
        if least is not None and most is not None and most > least:
            text += f" ({quantity(least, 'ns')} to {quantity(most, 'ns')})"
        texts.append(text + (f" + V / {quantity(rate, 'GB/s')}" if rate else ""))
    return texts


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
