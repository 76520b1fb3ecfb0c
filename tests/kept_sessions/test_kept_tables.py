"""Sessions of an H200 and recordings of other GPUs give the tables, answers and verdicts that they gave before.

What is right is for other tests to say; this one notices what changes by the way. `kept_tables.py` says what to do then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import kept_tables


@pytest.mark.parametrize("part", kept_tables.PARTS)
def test_nothing_changes_by_the_way(part, tmp_path):
    found = kept_tables.differences(kept_tables.kept(part), kept_tables.PARTS[part](tmp_path))
    assert not found, "\n".join(found)


def test_the_comparison_notices_what_is_new_gone_or_other():
    then = [("a", "runs", 1, "0"), ("a", "traces", 1, "0"), ("b", "runs", 1, "0")]
    now = [("a", "runs", 1, "1"), ("b", "runs", 1, "0"), ("b", "traces", 2, "0")]
    assert kept_tables.differences(then, then) == []
    assert kept_tables.differences(then, now) == [
        "a, runs: [1, '0'] became [1, '1']",
        "a, traces: [1, '0'] became none",
        "b, traces: none became [2, '0']",
    ]
