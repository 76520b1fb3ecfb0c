"""Finds tests/end_to_end/shipped.py, which runs the binary."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "end_to_end"))
