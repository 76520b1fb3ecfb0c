#!/usr/bin/env python3
"""What launchgap says of slow samples whose reason is known, on this machine, which must do nothing else meanwhile.

    tests/experiments/host_causes.py [--rounds 5] [--build build]

Runs the tests HostCauses of summary_test: a thread that takes samples sleeps, touches new pages, is moved to another CPU,
shares its CPU with other work, or slept before a launch, 20 times each; and 20 runs in which nothing happens. Prints what
was told in each round; the exit code is 1 if a test failed. What it said once is in host_causes.txt.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = re.compile(r"^.*\d+ of \d+$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}")
    failed = False
    for number in range(1, options.rounds + 1):
        done = subprocess.run(
            [options.build / "bin" / "summary_test", "--gtest_filter=HostCauses.*"],
            env=os.environ | {"LAUNCHGAP_IDLE_MACHINE": "1"},
            capture_output=True,
            text=True,
        )
        failed |= done.returncode != 0
        print(f"round {number}: " + "; ".join(COUNTS.findall(done.stdout)), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
