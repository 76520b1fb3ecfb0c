"""Puts the report's package on the path, and makes each synthetic session and its page once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reports"))
sys.path.insert(0, str(Path(__file__).parent))

from drawn_pages import *  # noqa: E402, F403  (found through the path above; fixtures)


@pytest.fixture(scope="session")
def page(drawn: Callable[[str], Path]) -> Callable[[str], str]:
    """Its text."""
    return functools.cache(lambda kind: drawn(kind).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def gap_page(page: Callable[[str], str]) -> str:
    return page("gap")
