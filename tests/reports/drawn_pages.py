"""Fixtures: each synthetic session and its page, made once for all tests."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import make_gap
import make_recorded
import make_session
import pytest
from launchgap_report import __main__ as program
from report_paths import pairs


@pytest.fixture(scope="session")
def made(made_once: Callable) -> Callable[[str], Path]:
    """The folder of a kind of session."""
    return lambda kind: made_once(f"session-{kind}", lambda folder: make_session.KINDS[kind]().write(folder))


@pytest.fixture(scope="session")
def gap(made_once: Callable) -> list[Path]:
    """The folders of four sessions on four nodes."""

    def write(folder: Path) -> None:
        for builder in make_session.generations():
            builder.write(folder / builder.session_id)

    folder = made_once("sessions-gap", write)
    return [folder / builder.session_id for builder in make_session.generations()]


@pytest.fixture(scope="session")
def beside(made: Callable[[str], Path], made_once: Callable) -> list[Path]:
    """The folders of a recorded job and of a measured machine."""
    return [made("recorded"), made_once("session-measured", lambda folder: make_recorded.measured().write(folder))]


def _comparison(kind: str, tables: Path, folders: list[Path]) -> Path:
    if kind == "gap":
        return make_gap.write(tables, folders)
    job, machine = make_recorded.recorded(), make_recorded.measured()
    rows = [
        row
        for gpu in ("GPU-00000000", "GPU-00000001")
        for row in make_gap.beside(job.session_id, gpu, machine.session_id, "GPU-00000000")
    ]
    return make_gap.write(tables, [], answers=[], classes=[], recorded=rows)


@pytest.fixture(scope="session")
def drawn(made: Callable[[str], Path], gap: list[Path], beside: list[Path], made_once: Callable) -> Callable[[str], Path]:
    """The page of a kind of session, of all four of "gap", or of the two of "beside"; what was said is beside it."""

    def draw(kind: str) -> Path:
        def write(page: Path) -> None:
            several = {"gap": gap, "beside": beside}
            folders = several[kind] if kind in several else [made(kind)]
            tables = page.parent / "comparison"
            gap_tables = ["--comparison", str(_comparison(kind, tables, folders))] if kind in several else []
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                code = program.run([*pairs(folders), *gap_tables, "-o", str(page)])
            assert code == 0, said.getvalue()
            page.with_name("said.txt").write_text(said.getvalue(), encoding="utf-8")

        return made_once(f"{kind}.html", write)

    return draw
