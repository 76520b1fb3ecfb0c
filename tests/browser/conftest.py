"""Pages of synthetic sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(ROOT / "tests" / "reports"))

from drawn_pages import *  # noqa: E402, F403  (found through the path above; fixtures)


@pytest.fixture(scope="session")
def page_of(drawn: Callable[[str], Path]) -> Callable[[str], Path]:
    """The report of a kind of session, or of several together: "gap"."""
    return drawn
