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
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = re.compile(r"^.*\d+ of \d+$", re.MULTILINE)
TESTS = ("AWaitWithinASample", "PagesThatAreTouchedFirst", "AMoveToAnotherCpu", "LoadOnTheSameCpu", "ASleepBeforeALaunch")
TESTS += ("AQuietRunBlamesNothing",)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}")
    failed = False
    for number in range(1, options.rounds + 1):
        told = []
        for test in TESTS:  # each in a process of its own, so that none has threads of another
            # Into a file: whoever reads a pipe takes the CPU away meanwhile, and is told of.
            with tempfile.TemporaryFile("w+") as said:
                done = subprocess.run(
                    [options.build / "bin" / "summary_test", f"--gtest_filter=HostCauses.{test}"],
                    env=os.environ | {"LAUNCHGAP_IDLE_MACHINE": "1"},
                    stdout=said,
                    stderr=said,
                )
                said.seek(0)
                told += COUNTS.findall(said.read())
            failed |= done.returncode != 0
            time.sleep(1)
        print(f"round {number}: " + "; ".join(told), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
