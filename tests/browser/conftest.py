"""Pages of synthetic sessions, and the browser to look at them with."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(ROOT / "tests" / "reports"))


def _required() -> bool:
    return bool(os.environ.get("CI") or os.environ.get("LAUNCHGAP_REQUIRE_BROWSER"))


@pytest.fixture(scope="session")
def browser() -> Iterator:
    executable = os.environ.get("LAUNCHGAP_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        if _required():
            pytest.fail("chromium is required here; LAUNCHGAP_CHROMIUM may name it")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


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
