"""The tests of this folder run the shipped binary, as those beside it do."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "end_to_end"))
