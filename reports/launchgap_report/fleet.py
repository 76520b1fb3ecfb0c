"""The page of many devices: which stand out, where they are, how their values lie, and what occurs where.

All that it says is of the fleet_*.csv tables, which C++ made of the tables of the sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from . import details, findings, frame, registry
from .figures import colour_of, swatch
from .fleet_figures import LIMITS, SHADES, Square, distribution, node_map, node_text, odd_key, shade_key, shade_of, shares
from .plots import Key, Table
from .session import Session
from .tables import Record, ReportError, clean_json, read_json
from .text import MISSING, count, join_and, percent, quantity, significant

FILE = "fleet_devices.csv"
"""A folder with this table and without that of a session's cases is a fleet's."""
WORST = 10
LINES = 40
"""Of a table that goes on in its file"""
WITH_NAMES = 64
"""Nodes in a map that has room for their names"""
FIGURES = 24
"""Small multiples at most"""
LEVELS = (("host_share", "between hosts"), ("device_share", "between devices"), ("run_share", "between runs"))


@dataclass
class Kind:
    """Devices of one name."""

    name: str
    devices: int
    nodes: int
    map: Markup


@dataclass
class Multiple:
    """A small figure of one number, of devices of one kind."""

    heading: str
    about: str
    svg: Markup
    note: str


@dataclass
class Split:
    """Where the variation of one number lies."""

    heading: str
    about: str
    svg: Markup
    text: str


def is_fleet(tables: Path) -> bool:
    return (tables / FILE).exists() and not (tables / "summary.csv").exists()


def render(folder: Path, tables: Path) -> str:
    """The whole page. Raises ReportError with the file, and the line where there is one."""
    info = read_json(folder / "session.json")
    if not isinstance(info, dict):
        raise ReportError(f"{folder / 'session.json'}: not a JSON object")
    session = Session(folder, clean_json(info), registry=registry.load(tables))
    session.details = details.load(tables, session.registry)
    of = session.details.tables
    devices = of.get("fleet_devices", [])
    metrics = of.get("fleet_metrics", [])
    nodes = sorted({d["node"] for d in devices})
    labels = {d["device_id"]: label(d) for d in devices}
    parts = of.get("sessions", [])
    counted = [p for p in parts if not p["left_out"]]
    begins = sorted(p["begin_utc"] for p in counted if p["begin_utc"])
    return frame.filled(
        "fleet.html.j2",
        title=f"{session.name}: {node_text(len(nodes), len(devices))}",
        session=session,
        simulated=any(d.flag("simulated") for d in devices),
        sessions=count(len(counted), "session"),
        begin=begins[0] if begins else "",
        end=begins[-1] if len(begins) > 1 and begins[-1] != begins[0] else "",
        found=findings.section([session]),
        cases=devices,
        worst=worst(devices),
        stand_out=sum(d.get("place") is not None for d in devices),
        missing=missing(of.get("missing", [])),
        kinds=kinds(devices),
        keys=map_keys(),
        multiples=multiples(session, metrics, of.get("fleet_values", []), labels),
        splits=splits(metrics),
        split_keys=[Key(swatch(colour_of(i), f"split-{i}"), words) for i, (_, words) in enumerate(LEVELS)],
        metrics=metric_table(metrics),
        outliers=outlier_table(of.get("fleet_outliers", []), labels, session),
        scores=score_table(of.get("fleet_scores", []), labels),
        failures=failure_table(of.get("fleet_failures", [])),
        left_out=[p for p in parts if p["left_out"]],
        cut=session.registry.cut,
    )


def label(device: Record) -> str:
    """`n0003 0000:17:00.0`: what a person needs to find it."""
    return f"{device['node']} {device['pci_bus_id'] or device['device_id']}"


def worst(devices: list[Record]) -> list[dict[str, str]]:
    """Those that stand out the most, with what they stand out by."""
    placed = sorted((d for d in devices if d.get("place") is not None), key=lambda d: d.get("place") or 0)
    return [
        {
            "place": f"{d.get('place') or 0:.0f}",
            "label": label(d),
            "kind": d["kind"],
            "slot": f"{d.get('slot') or 0:.0f}",
            "level": _times(d.get("level")),
            "relative": _score(d.get("relative_score")),
            "individual": _score(d.get("individual_score")),
            "evidence": d["evidence"],
            "folder": d["folder"],
        }
        for d in placed[:WORST]
    ]


def _times(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}×"


def _score(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def missing(rows: list[Record]) -> Table | None:
    if not rows:
        return None
    lines = [[r["node"] or MISSING, r["device_id"] or MISSING, r["reason"]] for r in rows[:LINES]]
    return Table("What is missing", ["node", "device", "what is missing"], lines, 3, _rest(len(rows), "missing.csv"))


def _rest(rows: int, file: str) -> str:
    return f"{rows - LINES:,} more rows are in {file}." if rows > LINES else ""


def kinds(devices: list[Record]) -> list[Kind]:
    found = []
    for name in dict.fromkeys(d["kind"] for d in devices):
        own = [d for d in devices if d["kind"] == name]
        by_node: dict[str, dict[int, Record]] = {}
        for d in own:
            by_node.setdefault(d["node"], {})[int(d.get("slot") or 0)] = d
        rows = []
        for node in sorted(by_node):
            slots = by_node[node]
            rows.append((node, [_square(slots.get(s)) for s in range(max(slots) + 1)]))
        odd = sum(d.get("place") is not None for d in own)
        text = f"{name}, {node_text(len(by_node), len(own))}: {odd} stand out"
        found.append(Kind(name, len(own), len(by_node), node_map(rows, text, len(rows) <= WITH_NAMES)))
    return found


def _square(device: Record | None) -> Square:
    if device is None:
        return Square(-1, False, "")
    level = device.get("level")
    title = f"{label(device)}: {_times(level)}; {device['evidence']}"
    return Square(-1 if level is None else shade_of(level), device.get("place") is not None, title)


def map_keys() -> list[Key]:
    low, *middle = LIMITS
    texts = [f"better than {low:g}×", f"{low:g} to {middle[0]:g}×"]
    texts += [f"to {limit:g}×" for limit in middle[1:]] + [f"worse than {LIMITS[-1]:g}×"]
    keys = [Key(shade_key(i), text) for i, text in enumerate(texts[: len(SHADES)])]
    return [*keys, Key(odd_key(), "stands out"), Key(shade_key(-1), "nothing measured")]


def _headed(metrics: list[Record]) -> list[Record]:
    """Those that a person looks for first, from the left to the right."""
    headed = [m for m in metrics if m["heading"] and (m.get("devices") or 0) > 1]
    return sorted(headed, key=lambda m: (m.get("place") or 0, m["case"], m["kind"]))


def multiples(session: Session, metrics: list[Record], values: list[Record], labels: dict[str, str]) -> list[Multiple]:
    kind_of = {d["device_id"]: d["kind"] for d in session.details.tables.get("fleet_devices", [])}
    by_metric: dict[tuple[str, ...], list[Record]] = {}
    for v in values:
        key = (kind_of.get(v["device_id"], ""), v["process_config"], v["case"], v["metric"])
        by_metric.setdefault(key, []).append(v)
    found = []
    for i, m in enumerate(_headed(metrics)[:FIGURES]):
        own = by_metric.get((m["kind"], m["process_config"], m["case"], m["metric"]), [])
        numbers = [(v.get("value"), v.flag("outlier"), labels.get(v["device_id"], v["device_id"])) for v in own]
        all_of_them = [value for value, _, _ in numbers if value is not None and value > 0]
        median = m.get("p50")
        if not all_of_them or median is None or median <= 0:
            continue
        odd = [(value, who) for value, outlier, who in numbers if outlier and value]
        text = (
            f"{m['heading']} of {count(len(all_of_them), 'device')}: median {quantity(m.get('p50'), m['unit'])}, "
            f"from {quantity(m.get('min'), m['unit'])} to {quantity(m.get('max'), m['unit'])}"
        )
        svg = distribution(all_of_them, median, odd, m["unit"], f"values-{i}", text)
        note = f"{len(odd):,} of {count(len(all_of_them), 'device')} differ" if odd else "none differs"
        found.append(Multiple(f"{m['heading']}, {m['kind']}", f"{m['case']}, {m['metric']}", svg, note))
    return found


def splits(metrics: list[Record]) -> list[Split]:
    found = []
    for i, m in enumerate(_headed(metrics)[:FIGURES]):
        parts = [(words, m.get(key)) for key, words in LEVELS]
        known = [(words, share) for words, share in parts if share is not None]
        if not known:
            continue
        text = join_and([f"{percent(share)} {words}" for words, share in known])
        heading = f"{m['heading']}, {m['kind']}"
        svg = shares(parts, f"shares-{i}", f"{heading}: {text}")
        found.append(Split(heading, f"{m['case']}, {m['metric']}", svg, text))
    return found


def metric_table(metrics: list[Record]) -> Table:
    """Those with most devices that differ first, then those that vary most between devices."""
    wide = sorted(metrics, key=lambda m: (-(m.get("outliers") or 0), -_spread(m)))
    heads = ["kind", "case", "metric", "devices", "differ", "lowest", "5 %", "median", "95 %", "highest"]
    heads += [words for _, words in LEVELS]
    lines = [
        [
            m["kind"],
            m["case"] if m["process_config"] in m["case"].split("/")[0] else f"{m['case']} ({m['process_config']})",
            m["metric"],
            f"{m.get('devices') or 0:,.0f}",
            f"{m.get('outliers') or 0:,.0f}",
            *(quantity(m.get(key), m["unit"]) for key in ("min", "p05", "p50", "p95", "max")),
            *(percent(m.get(key)) for key, _ in LEVELS),
        ]
        for m in wide[:LINES]
    ]
    return Table("Each metric over the devices", heads, lines, 3, _rest(len(metrics), "fleet_metrics.csv"))


def _spread(metric: Record) -> float:
    low, high = metric.get("p05"), metric.get("p95")
    return high / low if low and high else 0


def outlier_table(rows: list[Record], labels: dict[str, str], session: Session) -> Table | None:
    if not rows:
        return None
    lines = [
        [
            labels.get(r["device_id"], r["device_id"]),
            r["case"],
            r["metric"],
            quantity(r.get("value"), session.registry.metrics.get(r["metric"], {}).get("unit", "")),
            f"{significant(r.get('ratio') or 0)}×",
            f"{significant(r.get('ratio_lo') or 0)} to {significant(r.get('ratio_hi') or 0)}",
            "worse" if r.flag("worse") else "better",
        ]
        for r in rows[:LINES]
    ]
    heads = ["device", "case", "metric", "its median", "to the others", "95 %", ""]
    return Table("Devices that differ from their kind", heads, lines, 3, _rest(len(rows), "fleet_outliers.csv"))


def score_table(rows: list[Record], labels: dict[str, str]) -> Table | None:
    if not rows:
        return None
    lines = [
        [
            labels.get(r["device_id"], r["device_id"]),
            r["case"],
            r["metric"],
            _score(r.get("relative_score")),
            _score(r.get("individual_score")),
        ]
        for r in rows[:LINES]
    ]
    heads = ["device", "case", "metric", "relative", "individual"]
    return Table("Scores below 0.75", heads, lines, 3, _rest(len(rows), "fleet_scores.csv"))


def failure_table(rows: list[Record]) -> Table | None:
    if not rows:
        return None
    lines = [
        [
            r["reason"],
            r["status"],
            r["example"],
            r["where"],
            *(f"{r.get(key) or 0:,.0f}" for key in ("cases", "devices", "nodes")),
        ]
        for r in rows[:LINES]
    ]
    heads = ["reason", "status", "such as", "where", "cases", "devices", "nodes"]
    return Table("Cases without a result", heads, lines, 4, _rest(len(rows), "fleet_failures.csv"))
