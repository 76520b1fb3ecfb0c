"""Decides what is drawn of a session: which cases, on which scales, in which groups."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from markupsafe import Markup

from . import figures, strips
from .compare import MOST_COLUMNS, Comparison, Line, apart, case_text
from .details import own_path
from .registry import Registry
from .session import MOST_DEVICES, TRACE_LEVEL, Device, Row, replicate_of
from .svg import SERIES
from .tables import Record
from .text import about, number_word, quantity

MOST_RATIOS = 48
"""Cases of a family in the figures of ratios"""
MOST_FURTHER = 60
"""Figures of further cases; with more, a page of eight devices would outgrow a browser."""

MODES = {
    ("idle", "api_ns"): "Idle stream: the call itself",
    ("idle", "roundtrip_ns"): "Idle stream: round trip, call to completion",
    ("burst", "per_launch_ns"): "Burst: time per launch, back to back",
}


@dataclass
class Drawn:
    """One figure; `notes` are what the reader must know to read it."""

    caption: str
    svg: Markup
    notes: list[str] = field(default_factory=list)


@dataclass
class Key:
    """An entry of a legend."""

    mark: Markup
    text: str


@dataclass
class Group:
    """Figures on one scale, with a heading and a legend."""

    heading: str
    metric: str
    note: str
    figures: list[Drawn]
    keys: list[Key] = field(default_factory=list)


@dataclass
class Launches:
    """The launch section: the headline cases, and all others."""

    key: Markup
    main: list[Group]
    further: list[Group]
    left_out: int


@dataclass
class Family:
    identifier: str
    heading: str
    lead: str
    groups: list[Group]


@dataclass
class Table:
    """Numbers that a figure shows, for those who cannot see it or want them exactly.

    The first column names the row; columns from `numeric` on are numbers.
    """

    label: str
    heads: list[str]
    rows: list[list[str]]
    numeric: int = 1
    note: str = ""


LaunchKey = tuple[str, str, str, tuple[tuple[str, str], ...], str]


class Drawing:
    """Draws for a list of devices; numbers figures so that no two ids on the page are equal."""

    def __init__(self, devices: list[Device], registry: Registry) -> None:
        self.devices = devices
        self.shown = [d for d in devices if d.id in d.session.drawn][:MOST_DEVICES]
        self.registry = registry
        self._numbers = itertools.count()
        names = collections.Counter(d.label for d in devices)
        self._label = {id(d): d.label if names[d.label] == 1 else f"{d.label} · {d.session.id}" for d in devices}

    def id(self) -> str:
        return f"g{next(self._numbers)}"

    def label(self, device: Device) -> str:
        return self._label[id(device)]

    # Launches

    def launches(self) -> Launches:
        groups: dict[LaunchKey, list[tuple[Device, Row]]] = {}
        for device in self.shown:
            for row in device.rows:
                if row.family == "launch" and row.metric:
                    params = tuple(own_path(row.params).items())
                    key = (row.arm, row.process_config, row.record["benchmark"], params, row.metric)
                    groups.setdefault(key, []).append((device, row))
        main, further, left_out = [], [], 0
        order = {key: i for i, key in enumerate(MODES)}
        headline = sorted((k for k in groups if self._is_headline(k)), key=lambda k: order[self._mode(k)])
        shown = (self.strips(MODES[self._mode(key)], key, groups[key]) for key in headline)
        main += [group for group in shown if group]
        subjects = {subject.name for subject in self.registry.subjects()}
        drawn = 0
        for key in sorted(groups, key=lambda k: (k[0] != "plain", k[1])):
            # What lesser levels of tracing cost, and what makes a launch cost, is drawn by itself.
            if key in headline or TRACE_LEVEL in key[1] or key[2] in subjects:
                continue
            shown = [(d, r) for d, r in groups[key] if d.session.quantiles_of(r)]
            if drawn + len(shown) > MOST_FURTHER:
                left_out += len(shown)
                continue
            if group := self.strips(case_text(key), key, shown):
                drawn += len(group.figures)
                further.append(group)
        return Launches(strips.strip_key(self.id()), main, further, left_out)

    @staticmethod
    def _mode(key: LaunchKey) -> tuple[str, str]:
        return dict(key[3]).get("mode", ""), key[4]

    def _is_headline(self, key: LaunchKey) -> bool:
        arm, process_config, benchmark, params, _ = key
        axes = dict(params)
        return (
            arm == "plain"
            and process_config == "launch"
            and benchmark == "launch/null"
            and self._mode(key) in MODES
            and axes.get("api", "own") == "own"
            and set(axes) <= {"api", "mode"}
        )

    def strips(self, heading: str, key: LaunchKey, rows: list[tuple[Device, Row]]) -> Group | None:
        measured = [(d, r, runs) for d, r in rows if (runs := d.session.quantiles_of(r))]
        if not measured:
            return None
        tail = strips.tail_range([run for _, _, runs in measured for run in runs])
        drawn = []
        for device, row, runs in measured:
            of_runs = [strips.Strip(self._run_label(row, run), run) for run in runs]
            spread = strips.describe_spread(device.session.run_medians(row), row.unit)
            most = quantity(max(run.get("max") or 0 for run in runs), row.unit)
            text = f"{self.label(device)}, {heading}: {spread}; maximum {most}"
            svg = strips.launch_strips(of_runs, row.get("p50"), row.unit, tail, self.id(), text)
            notes = self._run_notes(row, runs)
            if (modes := row.get("modes")) is not None and modes > 1:
                notes.insert(0, f"Its times form {number_word(modes)} clusters.")
            drawn.append(Drawn(self.label(device), svg, notes))
        return Group(heading, key[4], "", drawn)

    @staticmethod
    def _run_label(row: Row, quantiles: Record) -> str:
        replicate = replicate_of(quantiles)
        runs = row.device.session.runs_of(row.device.id, row.arm, row.process_config, replicate)
        mark = "*" if runs and runs[-1]["status"] != "ok" else ""
        return f"r{replicate}{mark}"

    @staticmethod
    def _run_notes(row: Row, quantiles: list[Record]) -> list[str]:
        notes = []
        measured = [replicate_of(run) for run in quantiles]
        drawn = set(measured)
        for run in row.device.runs:
            replicate = run.get("replicate")
            if (
                (run["arm"], run["process_config"]) == (row.arm, row.process_config)
                and run["status"] != "ok"
                and replicate is not None
                and int(replicate) not in drawn
            ):
                drawn.add(int(replicate))
                reason = f": {run['reason']}" if run["reason"] else ""
                notes.append(f"r{replicate:.0f} {run['status']}, nothing to draw{reason}")
        for replicate in measured:
            runs = row.device.session.runs_of(row.device.id, row.arm, row.process_config, replicate)
            if runs and runs[-1]["status"] != "ok":
                reason = runs[-1]["reason"]
                notes.append(f"* r{replicate}: {runs[-1]['status']}" + (f", {reason}" if reason else ""))
        return notes

    # Matmul, convolution, allocation

    def families(self) -> list[Family]:
        result = []
        matmul = self._line_groups("matmul", "size", "", ["tflops", "device_ns"], first_only=True)
        if matmul or self._has_impossible("matmul"):
            result.append(Family("matmul", "Matrix multiplication", "Over the size of square matrices.", matmul))
        convolution = self._layer_groups()
        if convolution or self._has_impossible("convolution"):
            result.append(Family("convolution", "Convolution", "Per layer.", convolution))
        allocation = self._allocation_groups()
        if allocation:
            result.append(Family("allocation", "Allocation", "Over the size of a block.", allocation))
        return result

    def _has_impossible(self, family: str) -> bool:
        """Whether there is something to say of a family even if none of its rates can be."""
        return any(row.family == family for device in self.shown for row in device.impossible)

    def _allocation_groups(self) -> list[Group]:
        """What one block costs, over its size; of allocators at most as many in a figure as there are colours."""
        groups = []
        for metric, quantile in (("call_ns", "p50"), ("call_ns", "p99"), ("free_ns", "p50"), ("first_touch_ns", "p50")):
            latency = [
                (i, row)
                for i, found in self._rows("allocation", "bytes", metric).items()
                for row in found
                if row.record["benchmark"] == "allocation/latency"
                and (row.get(quantile) or 0) > 0
                # Of fewer than a hundred there is no p99.
                and (quantile != "p99" or (row.get("n") or 0) >= 100)
            ]
            names = list(dict.fromkeys(row.params.get("allocator", "") for _, row in latency))
            for first in range(0, len(names), SERIES):
                own: dict[int, list[Row]] = {}
                for i, row in latency:
                    if row.params.get("allocator", "") in names[first : first + SERIES]:
                        own.setdefault(i, []).append(row)
                groups.append(self._line_group(own, "bytes", "B", metric, quantile))
        return groups

    def _rows(self, family: str, axis: str, metric: str) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        for i, device in enumerate(self.shown):
            for row in device.rows:
                if (
                    row.family == family
                    and row.metric == metric
                    and row.usual
                    and (row.get("p50") or 0) > 0
                    and axis in row.params
                ):
                    found.setdefault(i, []).append(row)
        return found

    def _line_groups(self, family: str, axis: str, x_unit: str, metrics: list[str], first_only: bool) -> list[Group]:
        groups = []
        for metric in metrics:
            rows = {
                # The ladder has a section of its own.
                i: [r for r in found if _positive(r.params[axis]) is not None and "rung" not in r.params]
                for i, found in self._rows(family, axis, metric).items()
            }
            rows = {i: found for i, found in rows.items() if found}
            if not rows:
                continue
            groups.append(self._line_group(rows, axis, x_unit, metric))
            if first_only:
                break
        return groups

    def _line_group(self, rows: dict[int, list[Row]], axis: str, x_unit: str, metric: str, quantile: str = "p50") -> Group:
        naming = _Naming([r for found in rows.values() for r in found], {axis})
        points = {
            id(r): self.point(r, _positive(r.params[axis]) or 1.0, r.get("p50") or 0)
            if quantile == "p50"
            else figures.Point(_positive(r.params[axis]) or 1.0, r.get(quantile) or 0)
            for found in rows.values()
            for r in found
        }
        values = [v for p in points.values() for v in (p.y, p.low, p.high) if v]
        limits = (min(values), max(values))
        drawn = []
        for i, found in rows.items():
            device = self.shown[i]
            series: dict[str, figures.Series] = {}
            for row in found:
                name = naming.name(row)
                one = series.setdefault(
                    name,
                    figures.Series(naming.short(row), naming.slot(row), [], naming.dashed(row)),
                )
                one.points.append(points[id(row)])
            best = max(found, key=lambda r: r.get(quantile) or 0)
            what = "median" if quantile == "p50" else "99th percentile"
            text = (
                f"{self.label(device)}, {metric} over {axis}, {len(series)} series; largest "
                f"{what} {quantity(best.get(quantile), best.unit)} at {best.params[axis]}"
            )
            svg = figures.lines(list(series.values()), found[0].unit, x_unit, limits, self.id(), text)
            drawn.append(Drawn(self.label(device), svg))
        heading = self._heading(metric) + ("" if quantile == "p50" else ": p99")
        return Group(heading, metric, naming.note(), drawn, self._keys(naming))

    def _layer_groups(self) -> list[Group]:
        for metric in ("tflops", "device_ns"):
            rows = self._rows("convolution", "layer", metric)
            if rows:
                break
        else:
            return []
        everything = [r for found in rows.values() for r in found]
        row_axes = {"layer", "n"} if len({r.params.get("n") for r in everything}) > 1 else {"layer"}
        naming = _Naming(everything, row_axes)
        points = {id(r): self.point(r, r.get("p50") or 1.0, r.get("p50") or 0) for r in everything}
        values = [v for p in points.values() for v in (p.x, p.low, p.high) if v]
        limits = (min(values) / 1.3, max(values) * 1.3)
        drawn = []
        for i, found in rows.items():
            device = self.shown[i]
            lines: dict[str, figures.DotRow] = {}
            for row in found:
                label = row.params["layer"]
                if "n" in row_axes:
                    label += f" n{row.params.get('n', '')}"
                line = lines.setdefault(label, figures.DotRow(label, []))
                line.points.append((naming.slot(row), points[id(row)], naming.dashed(row)))
            text = f"{self.label(device)}, {metric} of {len(lines)} layers"
            svg = figures.dots(list(lines.values()), found[0].unit, limits, self.id(), text)
            drawn.append(Drawn(self.label(device), svg))
        return [Group(self._heading(metric), metric, naming.note(), drawn, self._keys(naming))]

    def point(self, row: Row, x: float, y: float) -> figures.Point:
        """The row at `x`, with the spread of its runs; with one run, of its samples."""
        medians = row.device.session.run_medians(row)
        if len(medians) > 1:
            return figures.Point(x, y, min(medians), max(medians))
        return figures.Point(x, y, row.get("q1"), row.get("q3"))

    def _heading(self, metric: str) -> str:
        return {
            "tflops": "Throughput",
            "device_ns": "Time on the device",
            "call_ns": "Allocating call",
            "free_ns": "Freeing call",
            "first_touch_ns": "First touch of the block",
        }.get(metric, metric)

    def _keys(self, naming: _Naming) -> list[Key]:
        return [Key(figures.series_key(slot, self.id()), text) for slot, text in naming.keys()]  # noqa: SIM118 (it is no dict)

    # Ratios

    def ratios(self, comparison: Comparison) -> Group | None:
        """A figure per family: each case a row, each device a dot around equality."""
        drawn: list[Drawn] = []
        present: dict[int, Key] = {}
        for family, lines in comparison.families.items():
            shown = [
                line
                for line in _one_metric(lines)
                if line.key[0] == "plain" and any(c.speed is not None for c in line.cells)
            ]
            if not shown:
                continue
            speeds = [s for line in shown for c in line.cells for s in (c.speed, c.speed_low, c.speed_high) if s]
            limits = (min([*speeds, 0.8]) / 1.15, max([*speeds, 1.25]) * 1.15)
            labels = _short_labels(shown)
            # What lies farthest apart comes first where not all are drawn.
            most = MOST_RATIOS // (1 if len(comparison.columns) <= MOST_COLUMNS else 4)
            if len(shown) > most:
                shown = sorted(shown, key=apart, reverse=True)[:most]
                labels = _short_labels(shown)
            for start in range(0, len(shown), 24):
                part = shown[start : start + 24]
                rows = [
                    figures.DotRow(
                        label,
                        [
                            (
                                column.slot,
                                figures.Point(cell.speed, 0, cell.speed_low, cell.speed_high),
                                False,
                            )
                            for column, cell in zip(comparison.columns, line.cells, strict=True)
                            if cell.speed is not None
                        ],
                    )
                    for label, line in zip(labels[start : start + 24], part, strict=True)
                ]
                text = f"{family}: speed of each device relative to {comparison.reference.title}"
                svg = figures.dots(rows, "", limits, self.id(), text, ratio=True)
                caption = family.capitalize()
                if len(shown) > 24:
                    caption += f", cases {start + 1} to {start + len(part)}"
                drawn.append(Drawn(caption, svg))
            for column in comparison.columns:
                if column.slot not in present and any(line.cells[column.slot].speed is not None for line in shown):
                    mark = figures.series_key(column.slot, self.id())
                    present[column.slot] = Key(mark, column.title)
        if not drawn:
            return None
        keys = [present[slot] for slot in sorted(present)]
        return Group("Speed against the reference", "", "", drawn, keys)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _one_metric(lines: Iterable[Line]) -> list[Line]:
    """Leaves out a time where a throughput derived from it stands beside it."""
    lines = list(lines)
    derived = {line.key[:4] for line in lines if line.metric == "tflops"}
    return [x for x in lines if not (x.metric == "device_ns" and x.key[:4] in derived)]


def _short_labels(lines: list[Line]) -> list[str]:
    """Names rows by what differs between them; what all have in common says nothing."""
    facts = []
    for line in lines:
        arm, process_config, benchmark, params, metric = line.key
        fact = {"benchmark": benchmark.partition("/")[2], **dict(params)}
        facts.append({**fact, "metric": metric, "process_config": process_config, "arm": arm})
    keys = dict.fromkeys(k for fact in facts for k in fact)
    varying = [k for k in keys if len({fact.get(k) for fact in facts}) > 1]
    return [" ".join(_axis_text(k, fact[k]) for k in varying if fact.get(k)) or fact["metric"] for fact in facts]


def _axis_text(key: str, value: str) -> str:
    if key == "bytes" and (number := _positive(value)) is not None:
        return about(number, "B")
    return {
        "own": "",
        "api_ns": "call",
        "roundtrip_ns": "round trip",
        "per_launch_ns": "each",
        "call_ns": "call",
        "free_ns": "free",
        "first_touch_ns": "touch",
    }.get(value, value)


class _Naming:
    """Names series by the axes that vary, and gives equal names equal colours everywhere.

    `cache` is drawn as a variant (dashed, hollow) of one colour: it is the same work.
    """

    def __init__(self, rows: list[Row], hidden: set[str]) -> None:
        facts = [self._facts(r) for r in rows]
        keys = dict.fromkeys(k for fact in facts for k in fact if k not in hidden)
        self._varying = [k for k in keys if len({fact.get(k) for fact in facts}) > 1]
        caches = {fact.get("cache") for fact in facts}
        self._variant = "cold" if len(caches) > 1 else None
        shorts = dict.fromkeys(self.short(r) for r in rows)
        self._slots = {name: i for i, name in enumerate(shorts)}
        constant = [k for k in keys if k not in (*self._varying, "benchmark", "process_config")]
        self._constant = " ".join(f"{k} {facts[0][k]}" for k in constant) if facts else ""

    @staticmethod
    def _facts(row: Row) -> dict[str, str]:
        return {
            "benchmark": row.record["benchmark"].partition("/")[2],
            "process_config": row.process_config,
            **row.params,
        }

    def name(self, row: Row) -> str:
        fact = self._facts(row)
        return " ".join(fact[k] for k in self._varying if fact.get(k))

    def short(self, row: Row) -> str:
        fact = self._facts(row)
        return " ".join(fact[k] for k in self._varying if fact.get(k) and k != "cache") or "median"

    def slot(self, row: Row) -> int:
        return self._slots[self.short(row)]

    def dashed(self, row: Row) -> bool:
        return self._variant is not None and row.params.get("cache") == self._variant

    def keys(self) -> list[tuple[int, str]]:
        constant = f" ({self._constant})" if self._constant and len(self._slots) == 1 else ""
        return [(slot, name + constant) for name, slot in self._slots.items()]

    def note(self) -> str:
        return f"Hollow and dashed: {self._variant} cache." if self._variant else ""
