"""The tables in the docs that the program itself knows are those of the program."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def test_the_generated_tables_are_up_to_date():
    done = subprocess.run([ROOT / "scripts" / "update-docs", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
