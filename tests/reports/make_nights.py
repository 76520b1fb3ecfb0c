"""Verdicts and nights of a session that was checked against a history, as the page's tables have them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

Row = dict[str, Any]
SENTENCES = {
    "answer": "1 of 2 measurements is slower: roundtrip_ns of launch/null/mode:idle.",
    "change": "Changed with driver 570.12 → 575.08: +10.0 % (roundtrip_ns of launch/null/mode:idle).",
    "false-alarms": "2 tests; 0.0008 false alarms are to be expected.",
}
NIGHT = datetime.datetime(2026, 3, 1, 3, tzinfo=datetime.timezone.utc)
LEVEL = {"slower": 1.1, "suspect": 1.08, "faster": 0.9}


def answers(session_id: str, tone: str) -> list[Row]:
    """The rows of check_answers.csv."""
    return [
        {"session_id": session_id, "part": part, "tone": tone if part == "answer" else "", "sentence": sentence}
        for part, sentence in SENTENCES.items()
    ]


def checked(key: Row, verdict: str, *, nights: int = 70, value: float = 7000, seed: int = 3) -> tuple[Row, list[Row]]:
    """A metric's row of verdicts.csv, and those of nights.csv: the driver changes in night 30, night 12 is invalid."""
    random = np.random.default_rng(seed)
    values = value * random.normal(1, 0.01, nights)
    values[-1] = value * LEVEL.get(verdict, 1)
    key = {**key, "unit": "ns"}
    found = {**key, "verdict": verdict, "reason": "in 3 sessions in a row" if verdict == "slower" else ""}
    found |= {"value": values[-1], "baseline": value, "change": values[-1] / value - 1, "minimum": 0.03, "z": 5.5}
    found |= {"runs": 10, "compared_with": 60, "steadiness": "erratic" if verdict == "slower" else "same"}
    found |= {"steadiness_reason": "within-run CV 2.4 times that of before" if verdict == "slower" else ""}
    found |= {"tail": "p99 12.5 times as long (3.90 µs → 48.8 µs); median +10.0 %" if verdict == "slower" else ""}
    found |= {"changed": "driver 570.12 → 575.08" if verdict == "no-baseline" else ""}
    found |= {"false_alarm_rate": 0.0004, "detectable": 0.055}
    rows = []
    for i in range(nights):
        row = {
            **key,
            "night": f"night-{i}",
            "begin_utc": (NIGHT + datetime.timedelta(days=i)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        row |= {"value": values[i], "verdict": "same" if i else "no-baseline", "invalid": "", "changed": ""}
        if i >= 20 and not 30 <= i < 50:
            row |= {"low": value * 0.96, "high": value * 1.04}
        if i == 12:
            row |= {"verdict": "invalid", "invalid": "run under a tool: Nsight Systems"}
        if i == 30:
            row["changed"] = "driver 570.12 → 575.08"
        if i >= nights - 3 and verdict == "slower":
            row |= {"value": value * 1.1, "verdict": "slower" if i == nights - 1 else "suspect"}
        rows.append(row)
    rows[-1]["verdict"] = verdict
    return found, rows
