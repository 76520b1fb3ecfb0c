"""How often `device/skew` says who is late on fake nodes of eight GPUs: one by its device, one by the host, another each
time, or none.

    .venv/bin/python3 tests/experiments/skew_truth.py [--sessions 20] [--quiet 60] [--collective nccl]

What it printed once is in skew_truth.txt.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fleet"))

import skewed_nodes  # noqa: E402


def session(kind: str, collective: str, folder: pathlib.Path) -> dict[str, tuple[str, ...]]:
    (folder / "node.json").write_text(json.dumps(skewed_nodes.node(kind)))
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(ROOT / "build" / "fake_cuda"),
        "LAUNCHGAP_FAKE_NODE": str(folder / "node.json"),
        "LAUNCHGAP_WARM_UP": "off",
    }
    cases = f"^device/skew/work:compute/threads:one/collective:{collective}"
    what = ["--devices", "gpu", "--profile", "quick", "--trace", "off", "--filter", cases]
    command = [ROOT / "build" / "bin" / "launchgap", "run", *what, "--no-report", "-o", folder / "session"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(folder / "session" / "skew.csv", newline="") as file:
        return skewed_nodes.claims(list(csv.DictReader(file)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--quiet", type=int, default=60)
    parser.add_argument("--kinds", nargs="*", choices=skewed_nodes.SAID, default=list(skewed_nodes.SAID))
    parser.add_argument("--collective", choices=["none", "nccl"], default="none")
    options = parser.parse_args()
    for kind in options.kinds:
        count = options.quiet if not skewed_nodes.SAID[kind][1] else options.sessions
        right, others = 0, collections.Counter()
        for _ in range(count):
            with tempfile.TemporaryDirectory() as folder:
                found = session(kind, options.collective, pathlib.Path(folder))
            [claim] = found.values()
            if claim == skewed_nodes.expected(kind):
                right += 1
            else:
                others[str(claim)] += 1
        print(f"{kind}: {right} of {count} sessions say {' '.join(skewed_nodes.expected(kind))}", flush=True)
        for other, times in others.items():
            print(f"  {times}: {other}")


if __name__ == "__main__":
    main()
