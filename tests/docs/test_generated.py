"""The tables in the docs that the program itself knows are those of the program."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def test_the_generated_tables_are_up_to_date():
    done = subprocess.run([ROOT / "scripts" / "update-docs", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_gates_characteristics_are_those_that_were_simulated():
    """tests/experiments/gate_characteristics.py takes minutes; what it wrote last stands in the docs."""
    kept = (ROOT / "tests/experiments/gate_characteristics.txt").read_text(encoding="utf-8")
    page = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    assert f"<!-- simulated: gate characteristics -->\n{kept}<!-- end -->" in page
    assert kept.count("at most") == 17 and "NOT KEPT" not in kept
