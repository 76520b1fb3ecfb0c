"""Pages of synthetic sessions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(ROOT / "tests" / "reports"))


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of each kind of session, and of several together."""
    import make_session
    from launchgap_report import __main__ as program

    folder = tmp_path_factory.mktemp("pages")
    groups = {kind: [make()] for kind, make in make_session.KINDS.items()}
    groups["gap"] = make_session.generations()
    written = {}
    for kind, builders in groups.items():
        arguments = []
        for i, builder in enumerate(builders):
            path = str(builder.write(folder / f"{kind}-{i}"))
            arguments += ["--session", path, "--tables", path]
        written[kind] = folder / f"{kind}.html"
        assert program.run([*arguments, "-o", str(written[kind])]) == 0
    return written
