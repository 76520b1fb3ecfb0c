"""The generation gap: the sentences, the table to choose by, where the newer GPU gains least, and what cannot run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .registry import Registry
from .tables import Record, read_table
from .text import MISSING, about, percent, quantity, significant, with_units

TABLES = tuple(
    f"gap_{name}" for name in ("devices", "ratios", "recorded", "answers", "values", "classes", "limits", "tuned")
)
MOST_PAIRS = 4
"""Of which the classes are drawn; the tables have all"""


@dataclass
class Cell:
    text: str
    words: str = ""
    title: str = ""
    poor: bool = False
    """Whether the newer GPU is slower, or there is no value"""


@dataclass
class Line:
    name: str
    cells: list[Cell]


@dataclass
class Matrix:
    """Lines under the titles of devices."""

    heads: list[str] = field(default_factory=list)
    chips: list[str] = field(default_factory=list)
    """Of each head, where its values are no measurement: simulated or published"""
    lines: list[Line] = field(default_factory=list)


@dataclass
class Answer:
    sentence: str
    tone: str
    evidence: list[str]


@dataclass
class Pair:
    older: str
    newer: str
    summary: str
    causes: str
    heads: list[str]
    lines: list[Line]


@dataclass
class Gap:
    answers: list[Answer]
    values: Matrix
    pairs: list[Pair]
    left_out: int
    limits: Matrix
    tuned: Matrix
    """By kernel and the GPU that runs it, under the GPUs that it was tuned for"""


def load(folder: Path | None, registry: Registry) -> dict[str, list[Record]]:
    """The tables of the comparison; none without a folder."""
    if folder is None:
        return {}
    paths = {name: folder / f"{name}.csv" for name in TABLES}
    return {
        name: [row for _, row in read_table(path, registry.columns(path.name))]
        for name, path in paths.items()
        if path.exists()
    }


def section(tables: dict[str, list[Record]]) -> Gap | None:
    """None where nothing is compared."""
    answers = [
        Answer(with_units(row["sentence"]), row["tone"], [with_units(e) for e in row["evidence"].split("; ") if e])
        for row in tables.get("gap_answers", [])
    ]
    pairs = _pairs(tables.get("gap_classes", []))
    if not answers and not pairs:
        return None
    return Gap(
        answers,
        _matrix(tables.get("gap_values", []), "quantity", _value_cell),
        pairs[:MOST_PAIRS],
        len(pairs[MOST_PAIRS:]),
        _matrix(tables.get("gap_limits", []), "what", lambda row: Cell(row["limit"], title=row["source"])),
        _tuned(tables.get("gap_tuned", [])),
    )


def _matrix(rows: list[Record], name: str, cell) -> Matrix:
    heads = list(dict.fromkeys(row["device"] for row in rows))
    origins = {row["device"]: row["origin"] for row in rows}
    chips = [origins[head] if origins[head] in ("simulated", "published") else "" for head in heads]
    lines: dict[str, dict[str, Cell]] = {}
    for row in rows:
        lines.setdefault(row[name], {})[row["device"]] = cell(row)
    return Matrix(heads, chips, [Line(n, [cells.get(h, Cell(MISSING)) for h in heads]) for n, cells in lines.items()])


def _tuned(rows: list[Record]) -> Matrix:
    heads = list(dict.fromkeys(row["tuned_for"] for row in rows))
    lines: dict[str, dict[str, Cell]] = {}
    for row in rows:
        times = row.get("times")
        words = "" if times is None else f"{quantity(row.get('ns'), 'ns')} against {quantity(row.get('own_ns'), 'ns')}"
        cell = Cell(row["verdict"] if times is None else _times(times), words, row["configuration"], poor=times is None)
        lines.setdefault(f"{row['kernel']} on {row['run_on']}", {})[row["tuned_for"]] = cell
    return Matrix(heads, [], [Line(n, [cells.get(h, Cell(MISSING)) for h in heads]) for n, cells in lines.items()])


def _value_cell(row: Record) -> Cell:
    if row.get("value") is None:
        return Cell(row["words"] or MISSING, poor=True)
    worst = row.get("worst")
    words = "" if worst is None else f"at worst {_number(worst, row['unit'])}"
    of = row["worst_of"]
    if words and "/" not in of:
        words += f" ({of})"
    titles = [row["case"], f"at worst: {of}" if "/" in of else ""]
    return Cell(_number(row.get("value"), row["unit"]), words, "; ".join(t for t in titles if t))


def _number(value: float | None, unit: str) -> str:
    if unit == "share":
        return percent(value)
    return about(value, unit) if unit == "B" else quantity(value, unit)


HEADS = [
    "cases",
    "slower",
    "below half the promise",
    "where it is fastest",
    "per ceiling",
    "per SM",
    "per GB/s",
    "per joule",
    "where it gains least",
]


def _pairs(rows: list[Record]) -> list[Pair]:
    found: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        found.setdefault((row["older"], row["newer"]), []).append(row)
    newest = list(dict.fromkeys(newer for _, newer in found))[-1:]
    # What was most asked for first: the newest GPU, against each older one.
    ordered = sorted(found, key=lambda pair: pair[1] not in newest)
    return [_pair(*pair, found[pair]) for pair in ordered]


def _pair(older: str, newer: str, rows: list[Record]) -> Pair:
    of_all = next((row for row in rows if not row["work"]), None)
    classes = [row for row in rows if row["work"]]
    summary = ""
    if of_all is not None:
        summary = (
            f"{of_all.get('cases') or 0:.0f} shared, {of_all.get('slower') or 0:.0f} slower; "
            f"{of_all.get('below_promise') or 0:.0f} of {of_all.get('with_ceiling') or 0:.0f} "
            "gained less than half of what the ceilings promise"
        )
    return Pair(
        older, newer, summary, of_all["causes"] if of_all is not None else "", HEADS, [_class_line(r) for r in classes]
    )


def _class_line(row: Record) -> Line:
    name = " ".join(t for t in (row["type"], row["class"] if row["class"] != row["work"] else "", row["work"]) if t)
    counts = [f"{row.get(k) or 0:.0f}" for k in ("cases", "slower", "below_promise")]
    if row.get("with_ceiling") == 0:
        counts[2] = MISSING
    ratios = [_times(row.get(f"best_per_{k}")) for k in ("ceiling", "multiprocessor", "bandwidth", "power")]
    return Line(
        name,
        [*(Cell(c) for c in counts), _times_cell(row, "best"), *(Cell(r) for r in ratios), _times_cell(row, "worst")],
    )


def _times(value: float | None) -> str:
    # Near 1 it takes three digits to tell 1.04 from 1.00.
    return MISSING if value is None else f"{significant(value, 3 if 0.95 <= value < 2 else 2)}×"


def _times_cell(row: Record, which: str) -> Cell:
    times = row.get(f"{which}_times")
    if times is None:
        return Cell(MISSING)
    low, high = row.get(f"{which}_lower"), row.get(f"{which}_upper")
    interval = "" if low is None or high is None else f"{significant(low, 2)} to {significant(high, 2)}; "
    case = row[f"{which}_case"]
    return Cell(_times(times), interval + case, f"{case} {row[f'{which}_metric']}", poor=times < 1)
