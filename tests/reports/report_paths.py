"""Where the repository lies, and how a command line names sessions."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def pairs(folders: list[Path]) -> list[str]:
    """The command line's options for these sessions."""
    return [a for f in folders for a in ("--session", str(f), "--tables", str(f))]
