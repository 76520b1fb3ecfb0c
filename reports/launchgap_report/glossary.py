"""What the page says about columns that metrics.json does not describe.

metrics.json, written by the program that measured, comes first; these are for the page's own
columns and for sessions whose metrics.json is partial.
"""

from __future__ import annotations

from .session import Session

# key, heading, description; in the order of the page's table
CASE_COLUMNS: list[tuple[str, str, str]] = [
    ("case", "case", "The benchmark and its parameters; the device; setup and arm if not usual"),
    ("metric", "metric", "The named number; the list of metrics on this page defines each"),
    ("p50", "median", "Half of the samples are below this value"),
    ("status", "status", "ok, failed, invalid, skipped or unsupported; hover gives the reason"),
    ("arm", "arm", "plain: nothing traces the process. traced: its activity is recorded"),
    ("p50_ci_lo", "CI low", "Lower end of the median's 95 % interval over runs; six runs needed"),
    ("p50_ci_hi", "CI high", "Upper end of the median's 95 % interval over runs; six runs needed"),
    ("min", "min", "The smallest sample"),
    ("q1", "q1", "A quarter of the samples are below this value"),
    ("q3", "q3", "Three quarters of the samples are below this value"),
    ("p90", "p90", "90 % of the samples are below this value"),
    ("p99", "p99", "99 % of the samples are below this value"),
    ("p999", "p99.9", "99.9 % of the samples are below this value"),
    ("max", "max", "The largest sample; nothing is clipped or dropped"),
    ("mean", "mean", "Arithmetic mean; outliers pull it, so the median is the headline"),
    ("sd", "sd", "Standard deviation of the samples"),
    ("mad", "mad", "Median absolute deviation from the median; outliers do not pull it"),
    ("within_run_cv", "cv within", "Spread of the samples of one run, relative to their mean"),
    (
        "between_run_cv",
        "cv between",
        "Spread between runs, beyond what their samples explain, relative to the mean",
    ),
    (
        "icc",
        "icc",
        "Share of the variance that lies between runs: near 1, repeat runs, not samples",
    ),
    (
        "run_median_range",
        "run range",
        "Largest less smallest median of a run, as a share of their median",
    ),
    ("lag1", "lag 1", "Correlation of neighbouring samples; near 0 they are independent"),
    ("modes", "modes", "Number of distinct peaks of the distribution"),
    ("outlier_share", "outliers", "Share of samples far outside of the bulk; they are kept"),
    ("runs", "runs", "Fresh processes that measured the case"),
    ("n", "n", "Number of samples, all runs together"),
    ("source", "source", "What took the time: a host clock, device events or trace records"),
]
QUANTITIES = frozenset("p50 p50_ci_lo p50_ci_hi min q1 q3 p90 p99 p999 max mean sd mad".split())
SHARES = frozenset(("within_run_cv", "between_run_cv", "outlier_share", "run_median_range"))
TEXTS = frozenset(("arm", "source"))
COUNTS = frozenset(("runs", "n", "modes"))

STATUSES = {
    "ok": "measured, and nothing speaks against the numbers",
    "failed": "a call failed, or the result was wrong",
    "invalid": "measured, but the records contradict themselves",
    "skipped": "left out by choice or for lack of something; the reason says which",
    "unsupported": "this device cannot do it",
    "unusable": "the device was seen, but nothing can be launched on it",
    "incomplete": "ended early; what was measured until then is kept",
    "stopped": "ended by the user or a time limit; what was measured until then is kept",
}

WORDS = {
    "own launch path": "api:own in a comparison: a GPU driver's launch call (api:driver), or the "
    "queue of the host device's worker thread (api:queue)",
    "run": "one fresh process: one device, one replicate, one arm, one setup",
    "block": "one repetition of a case within a run: what is written, and read between, at once",
    "r0, r1, …": "replicates; the same plan again in a fresh process",
    "arm": "plain: nothing traces the process, the headline. traced: its activity is recorded, by "
    "CUPTI or by the host device itself; never mixed with plain",
    "queue": "from the end of the launch call until the kernel begins",
    "setup": "a family of benchmarks with one set of process-wide settings; launch+trace=kernels "
    "is traced at a lesser level, to see what tracing costs",
}


def columns(sessions: list[Session]) -> dict[str, str]:
    """Every column's description: the session's own words where it has some."""
    result = {key: description for key, _, description in CASE_COLUMNS}
    for session in reversed(sessions):
        result.update({k: v for k, v in session.columns.items() if v})
    return result


def metrics(sessions: list[Session]) -> dict[str, dict[str, str]]:
    """Every metric that a row names or metrics.json describes."""
    result: dict[str, dict[str, str]] = {}
    for session in reversed(sessions):
        result.update(session.metrics)
    for session in sessions:
        for row in session.rows:
            if row.metric and not result.get(row.metric, {}).get("description"):
                result[row.metric] = {
                    "key": row.metric,
                    "unit": row.unit,
                    "direction": row.record["direction"],
                    "description": "This session's metrics.json does not describe it.",
                }
    return result


def telemetry(sessions: list[Session]) -> dict[str, str]:
    """Every quantity of telemetry that the sessions describe."""
    result: dict[str, str] = {}
    for session in reversed(sessions):
        result.update({k: v for k, v in session.telemetry.items() if v})
    return result


def metric_title(metric: dict[str, str]) -> str:
    """One line for a hover: description, unit, and which way is better."""
    better = {"lower": "lower is better", "higher": "higher is better"}
    parts = [
        metric.get("description", "").rstrip("."),
        f"in {metric.get('unit')}" if metric.get("unit") else "",
        better.get(metric.get("direction", ""), ""),
    ]
    return "; ".join(p for p in parts if p)
