"""What the page says about metrics, columns and words: all of it from tables.json."""

from __future__ import annotations

from .registry import Column
from .session import Session


def case_columns(session: Session) -> list[Column]:
    """The columns of the table of all cases, in their order; the first four are set apart there."""
    summary = session.registry.columns("summary.csv")
    words = [
        Column(
            "case",
            "text",
            "",
            "case",
            "The benchmark and its parameters; the device; process configuration and arm if not usual",
        )
    ]
    first = [summary[key] for key in ("metric", "p50", "status", "arm") if key in summary]
    rest = [c for c in session.registry.statistics() if c not in first]
    return words + first + rest + [summary[key] for key in ("source",) if key in summary]


def metrics(sessions: list[Session]) -> dict[str, dict[str, str]]:
    """Every metric that a row names or tables.json describes."""
    result: dict[str, dict[str, str]] = {}
    for session in reversed(sessions):
        result.update(session.registry.metrics)
    for session in sessions:
        for row in session.rows:
            if row.metric and not result.get(row.metric, {}).get("meaning"):
                result[row.metric] = {
                    "key": row.metric,
                    "unit": row.unit,
                    "direction": row.record["direction"],
                    "meaning": "This launchgap does not know it.",
                }
    return result


def metric_title(metric: dict[str, str]) -> str:
    """One line for a hover: meaning, what is not in it, unit, and which way is better."""
    better = {"lower": "lower is better", "higher": "higher is better"}
    parts = [
        metric.get("meaning", "").rstrip("."),
        f"not in it: {metric.get('excludes')}" if metric.get("excludes") else "",
        f"in {metric.get('unit')}" if metric.get("unit") else "",
        better.get(metric.get("direction", ""), ""),
    ]
    return "; ".join(p for p in parts if p)
