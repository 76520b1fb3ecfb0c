"""Where the scripts and the build are."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
