"""Puts the report's package on the path, and makes each synthetic session once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(Path(__file__).parent))

import make_session  # noqa: E402  (found through the path above)
from launchgap_report import __main__ as program  # noqa: E402
from report_paths import pairs  # noqa: E402


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a kind of session, written when it is first asked for."""
    folders: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in folders:
            folder = tmp_path_factory.mktemp(kind) / "session"
            folders[kind] = make_session.KINDS[kind]().write(folder)
        return folders[kind]

    return make


@pytest.fixture(scope="session")
def gap(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of four sessions on four nodes."""
    base = tmp_path_factory.mktemp("gap")
    return [b.write(base / b.session_id) for b in make_session.generations()]


@pytest.fixture(scope="session")
def page(made: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable:
    """The text of the page of a kind of session."""
    texts: dict[str, str] = {}

    def draw(kind: str) -> str:
        if kind not in texts:
            output = tmp_path_factory.mktemp("page") / "report.html"
            assert program.run([*pairs([made(kind)]), "-o", str(output)]) == 0
            texts[kind] = output.read_text(encoding="utf-8")
        return texts[kind]

    return draw


@pytest.fixture(scope="session")
def gap_page(gap: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("page") / "gap.html"
    assert program.run([*pairs(gap), "-o", str(output)]) == 0
    return output.read_text(encoding="utf-8")
