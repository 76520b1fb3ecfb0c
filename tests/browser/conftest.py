"""Pages of synthetic sessions, and of replays of allocations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(ROOT / "tests" / "reports"))

from drawn_pages import *  # noqa: E402, F403  (found through the path above; fixtures)


@pytest.fixture(scope="session")
def page_of(drawn: Callable[[str], Path], made_once: Callable) -> Callable[[str], Path]:
    """The report of a kind of session, or of several together: "gap"."""

    def of(kind: str) -> Path:
        return made_once("replays.html", write_replays) if kind == "replays" else drawn(kind)

    return of


def write_replays(page: Path) -> None:
    """All of what can be shown: limits that suffice and that do not, the least memory, creep."""
    folder = page.parent / "replays"

    def launchgap(*arguments: object) -> None:
        command = [ROOT / "build" / "bin" / "launchgap", *map(str, arguments)]
        subprocess.run(command, capture_output=True, check=True, timeout=120)

    for name, pattern, options in (
        ("board", "checkerboard/blocks:64/request:2", ["--limit", "64MiB", "--c-min", "--no-report"]),
        ("job", "training/allocations:1000", ["--epochs", 30, "--inject", "leak=64KiB/epoch"]),
    ):
        trace = page.parent / f"{name}.gmtrace.csv"
        launchgap("generate", pattern, "-o", trace)
        launchgap("replay", trace, *options, "-o", folder)
    shutil.copy(folder / "report.html", page)
