#!/usr/bin/env python3
"""How often `check --history` is wrong about simulated nights, and what it finds: the tables of docs/definitions.md.

    tests/experiments/gate_characteristics.py [--series 2000] [--build build]

Builds and runs gate_characteristics.cpp, keeps its tables in gate_characteristics.txt beside this file, and puts them into
docs/definitions.md. The exit code is 1 if a limit is not kept; then nothing is written. It takes about four minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_suffix(".txt")
DOCS = ROOT / "docs" / "definitions.md"
BEGIN, END = "<!-- simulated: gate characteristics -->\n", "<!-- end -->"


def put_in(page: str, tables: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + BEGIN + tables + end + after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=2000, help="series of each kind")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="folder of the build")
    options = parser.parse_args()
    subprocess.run(["cmake", "--build", options.build, "--target", "gate_characteristics"], check=True, stdout=sys.stderr)
    done = subprocess.run(
        [options.build / "bin" / "gate_characteristics", str(options.series)], stdout=subprocess.PIPE, text=True
    )
    print(done.stdout, end="")
    if done.returncode == 0:
        KEPT.write_text(done.stdout, encoding="utf-8")
        DOCS.write_text(put_in(DOCS.read_text(encoding="utf-8"), done.stdout), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
