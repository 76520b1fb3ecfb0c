"""Where the repository lies, how a command line names sessions, and the page that it draws of them."""

from __future__ import annotations

from pathlib import Path

from html_reader import Node, read
from launchgap_report import __main__ as program

ROOT = Path(__file__).parents[2]


def pairs(folders: list[Path]) -> list[str]:
    """The command line's options for these sessions."""
    return [a for f in folders for a in ("--session", str(f), "--tables", str(f))]


def draw_page(folder: Path, *sessions: Path, options: tuple[object, ...] = ()) -> Node:
    """Into this folder, and read back."""
    output = folder / "out.html"
    assert program.run([*pairs(list(sessions)), *map(str, options), "-o", str(output)]) == 0
    return read(output.read_text(encoding="utf-8"))
