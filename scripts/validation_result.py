"""The files that scripts/validate-gpu left, and what an answer to a question about them is."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

YES, NO, OPEN = "yes", "no", "open"
Answer = tuple[str, str]  # a verdict and its figure


class Result:
    """The files of a validation. What is missing is empty."""

    def __init__(self, folder: Path, work: Path | None) -> None:
        self.folder, self.work = folder, work
        self.steps = {}
        for line in self.lines("results.txt"):
            words = line.split(None, 4)
            if words and words[0] in ("PASS", "FAIL", "SKIP"):
                self.steps[words[1]] = (words[0], words[4] if len(words) > 4 else "")

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    def table(self, name: str) -> list[dict[str, str]]:
        path = self.folder / f"{name}.csv"
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def json(self, name: str) -> dict:
        path = self.folder / name
        try:
            return json.loads(path.read_text()) if path.exists() else {}
        except json.JSONDecodeError:
            return {}

    def log(self, step: str) -> str:
        for path in (self.work / "logs" / f"{step}.log",) if self.work else ():
            if path.exists():
                return path.read_text(errors="replace")
        return ""

    def records(self, session: str, kind: str) -> Iterator[dict]:
        for path in sorted((self.work / session / "records").glob("*.jsonl")) if self.work else ():
            for line in path.read_text(errors="replace").splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if record.get("record") == kind:
                    yield record

    def rows(self, session: str, **wanted: str) -> list[dict[str, str]]:
        rows = self.table(f"{session}.summary")
        return [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]


def number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def all_of(rows: list, good: Callable[[dict], bool], show: Callable[[dict], str], what: str) -> Answer:
    if not rows:
        return OPEN, f"no {what}"
    bad = [row for row in rows if not good(row)]
    if bad:
        return NO, f"{what}: all but {len(bad)} of {len(rows)}: " + "; ".join(show(row) for row in bad[:3])
    return YES, f"all {len(rows)} {what}"
