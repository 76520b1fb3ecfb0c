"""What tables.json says: which tables there are, what their columns hold, what each word means.

The program that measured writes it beside the tables, so that nothing of it is written here again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .tables import ReportError, clean_json, read_json

OF_METRIC = "unit of the metric"
"""The unit of a column whose rows each have that of their metric."""
SHARE = "share"
"""The unit of a column that the page shows in percent."""


@dataclass(frozen=True)
class Column:
    key: str
    kind: str
    unit: str
    heading: str
    meaning: str

    @property
    def numeric(self) -> bool:
        return self.kind in ("number", "count")


LEAST, MOST, COMMON = "@least", "@most", "@common"
"""Stand for a value in `params` of a line: the smallest or largest that was measured, or for rows that
stand beside each other the largest that most of them have."""


@dataclass(frozen=True)
class Line:
    """A line of a figure over an axis, or a row of a figure without one."""

    label: str
    params: dict[str, str]
    metric: str


@dataclass(frozen=True)
class Figure:
    """A metric over a numeric axis, a line per device and entry of `lines`; without an axis a row per entry."""

    caption: str
    lines: list[Line]
    axis: str = ""
    axis_unit: str = ""
    each_device: bool = False
    """A figure per device, in which colours tell the lines apart"""
    each: str = ""
    """Of a figure without an axis: each line is a row for each value of this one that was measured"""

    @property
    def share(self) -> bool:
        """Whether the metric is a share, from 0 to 1."""
        return all(line.metric.endswith("_share") for line in self.lines)


@dataclass(frozen=True)
class Headline:
    """One of the numbers that a person looks for first."""

    place: int
    benchmark: str
    heading: str
    params: str
    metric: str
    of: str


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark asks, what its cases differ in, and what is drawn of it."""

    name: str
    question: str
    axes: dict[str, str]
    headlines: list[Headline]
    place: int
    figures: list[Figure]

    @property
    def family(self) -> str:
        return self.name.partition("/")[0]


@dataclass
class Registry:
    tables: dict[str, dict[str, Column]] = field(default_factory=dict)
    """The columns of each file, by key, in their order"""
    metrics: dict[str, dict[str, str]] = field(default_factory=dict)
    telemetry: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    """Of cases; the first is that of a case that was measured"""
    run_statuses: dict[str, str] = field(default_factory=dict)
    trace_states: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By state without what is in brackets: what it means, and what to do"""
    severities: list[str] = field(default_factory=list)
    """Of findings, the gravest first"""
    verdicts: dict[str, str] = field(default_factory=dict)
    """Of metrics that were checked, gravest first"""
    tail_causes: dict[str, str] = field(default_factory=dict)
    """Why launches of a recorded job took long"""
    job_verdicts: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    """Tables of which this page was given the beginning alone"""
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)

    def gravity(self, severity: str) -> int:
        """The place of a severity in the order of findings: 0 is the gravest, what is unknown comes last."""
        return self.severities.index(severity) if severity in self.severities else len(self.severities)

    def subjects(self) -> list[Benchmark]:
        """The benchmarks that have figures of their own, in the order of the page."""
        drawn = [b for b in self.benchmarks.values() if b.figures]
        return sorted(drawn, key=lambda b: b.place)

    def headlines(self) -> list[Headline]:
        """The numbers that a person looks for first, from the left to the right."""
        found = [h for b in self.benchmarks.values() for h in b.headlines]
        return sorted(found, key=lambda h: h.place)

    def columns(self, table: str) -> dict[str, Column]:
        return self.tables.get(table, {})

    def statistics(self) -> list[Column]:
        """The numbers of summary.csv, without ends of intervals that are shown with their middle."""
        columns = self.columns("summary.csv")
        ends = {f"{key}_{end}" for key in columns for end in ("lo", "hi")}
        return [c for c in columns.values() if c.numeric and c.key not in ends]


def load(folder: Path) -> Registry:
    """Raises ReportError with the file and what is wrong with it."""
    path = folder / "tables.json"
    all_of_it = clean_json(read_json(path))
    if not isinstance(all_of_it, dict):
        raise ReportError(f"{path}: not a JSON object")

    def entries(of: Any, name: str, key: str = "key") -> dict[str, dict[str, Any]]:
        found = of.get(name, [])
        if not isinstance(found, list):
            raise ReportError(f"{path}: {name!r} is not a list")
        for entry in found:
            if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
                raise ReportError(f"{path}: an entry of {name!r} has no {key}")
        return {entry[key]: entry for entry in found}

    def meanings(name: str) -> dict[str, str]:
        return {key: str(entry.get("meaning") or "") for key, entry in entries(all_of_it, name).items()}

    def column(key: str, entry: dict[str, Any]) -> Column:
        kind, unit, heading, meaning = (str(entry.get(part) or "") for part in ("kind", "unit", "heading", "meaning"))
        return Column(key, kind, unit, heading or key, meaning)

    def benchmark(name: str, entry: dict[str, Any]) -> Benchmark:
        figures = [
            Figure(
                caption,
                [
                    Line(label, {k: str(v) for k, v in dict(line["params"]).items()}, str(line["metric"]))
                    for label, line in entries(figure, "lines", "label").items()
                ],
                str(figure["axis"]),
                str(figure["axis_unit"]),
                bool(figure["each_device"]),
                str(figure.get("each") or ""),
            )
            for caption, figure in entries(entry, "figures", "caption").items()
        ]
        headlines = [
            Headline(int(h["place"]), name, heading, str(h["params"]), str(h["metric"]), str(h["of"]))
            for heading, h in entries(entry, "headlines", "heading").items()
        ]
        axes = {key: str(axis.get("meaning") or "") for key, axis in entries(entry, "axes").items()}
        return Benchmark(name, str(entry["question"]), axes, headlines, int(entry["place"]), figures)

    def benchmarks() -> dict[str, Benchmark]:
        try:
            return {name: benchmark(name, entry) for name, entry in entries(all_of_it, "benchmarks").items()}
        except (KeyError, TypeError, ValueError) as error:
            raise ReportError(f"{path}: a benchmark lacks something, or has it of another kind: {error}") from None

    return Registry(
        benchmarks=benchmarks(),
        tables={
            name: {key: column(key, entry) for key, entry in entries(table, "columns").items()}
            for name, table in entries(all_of_it, "tables", "name").items()
        },
        metrics={
            key: {k: str(v) for k, v in entry.items() if v is not None}
            for key, entry in entries(all_of_it, "metrics").items()
        },
        telemetry=meanings("telemetry"),
        statuses=meanings("statuses"),
        run_statuses=meanings("run_statuses"),
        trace_states={
            key: (str(entry.get("meaning") or ""), str(entry.get("remedy") or ""))
            for key, entry in entries(all_of_it, "trace_states").items()
        },
        severities=list(entries(all_of_it, "severities")),
        verdicts=meanings("verdicts"),
        tail_causes=meanings("tail_causes"),
        job_verdicts=meanings("job_verdicts"),
        words=meanings("words"),
        cut=[str(name) for name in all_of_it.get("cut", []) if isinstance(name, str)],
    )
