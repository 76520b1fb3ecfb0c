"""Where the repository lies, how a command line names sessions, and the page that it draws of them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from html_reader import Node, read
from launchgap_report import __main__ as program
from launchgap_report import figures, intervals, page, parts, sequence, strips, sweeps, timelines

ROOT = Path(__file__).parents[2]
# What takes most of the time of a page; each gives the same figure for the same arguments.
DRAWING = (
    figures.dots,
    figures.lines,
    intervals.intervals,
    parts._draw,
    sequence._figure,
    strips.launch_strips,
    sweeps.beside,
    sweeps.sweep,
    timelines._figure,
)
_figures: dict[bytes, object] = {}


def pairs(folders: list[Path]) -> list[str]:
    """The command line's options for these sessions."""
    return [a for f in folders for a in ("--session", str(f), "--tables", str(f))]


def draw_page(folder: Path, *sessions: Path, options: tuple[object, ...] = ()) -> Node:
    """Into this folder, and read back. A figure that a page before had too is that page's."""
    output = folder / "out.html"
    with _each_figure_once():
        assert program.run([*pairs(list(sessions)), *map(str, options), "-o", str(output)]) == 0
    return read(output.read_text(encoding="utf-8"))


@contextmanager
def _each_figure_once() -> Iterator[None]:
    package = page.__package__
    with ExitStack() as patches:
        for module in [module for name, module in sys.modules.items() if name.startswith(f"{package}.")]:
            for name in [name for name, value in vars(module).items() if value in DRAWING]:
                patches.enter_context(mock.patch.object(module, name, _remembered(getattr(module, name))))
        yield


def _remembered(draw: Callable) -> Callable:
    def figure(*arguments: object, **named: object) -> object:
        key = pickle.dumps((draw.__module__, draw.__name__, arguments, named))
        if key not in _figures:
            _figures[key] = draw(*arguments, **named)
        return _figures[key]

    return figure
