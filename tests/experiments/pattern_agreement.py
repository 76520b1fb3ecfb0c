"""How far replays agree with what was recorded: tests/experiments/pattern_agreement.py [RECORDING…] > pattern_agreement.txt

Each recording of tests/recordings that has kernels (or those that are named) is imported, and its step of median length, or
all of it where it has no steps, is done again on this host and on the tests' fake A100, which waits in real time: three
processes each. `agreement` is the replay's time by the recorded one. On the fake GPU launches cost what its node says,
on the host what a queue to another thread costs; copies are real on both. It takes about a minute and needs an idle machine.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
FAKE = {
    "LD_LIBRARY_PATH": str(ROOT / "build" / "fake_cuda"),
    "LAUNCHGAP_FAKE_NODE": str(ROOT / "tests" / "fake_cuda" / "nodes" / "one_a100.json"),
}
FORMS = (".json", ".json.gz", ".sqlite", ".pb.gz")
HEADS = ("recording", "step", "operations", "streams", "recorded", "host", "agreement", "fake", "agreement", "bound by")


def launchgap(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "LAUNCHGAP_"))} | extra
    return subprocess.run([LAUNCHGAP, *map(str, arguments)], capture_output=True, text=True, env=env)


def replay(job: Path, device: str, folder: Path, **extra: str) -> tuple[dict[str, str], list[str]] | str:
    """The row of the mode eager and the remarks, or why there is none."""
    done = launchgap(
        *("run", "--pattern", job, "--devices", device, "--runs", 3, "--trace", "off", "--filter", "pattern.*eager$"),
        *("--no-report", "-o", folder),
        **extra,
    )
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1].removeprefix("launchgap: --pattern: ")
    [origin] = json.loads((folder / "session.json").read_text())["patterns"]
    with (folder / "patterns.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        with (folder / "summary.csv").open(newline="") as file:
            return next(csv.DictReader(file))["reason"]
    return rows[0], origin.get("remarks", [])


def milliseconds(text: str) -> str:
    return f"{float(text) / 1e6:.4g} ms"


def main(names: list[str]) -> int:
    files = [Path(name) for name in names] or sorted((ROOT / "tests" / "recordings").rglob("*.*"))
    lines, notes = [HEADS], []
    with tempfile.TemporaryDirectory() as temporary:
        for file in files:
            if not file.name.endswith(FORMS):
                continue
            folder = Path(temporary) / file.name
            if launchgap("import", file, "-o", folder / "job", "--no-report").returncode != 0:
                continue
            name = file.name.split(".")[0]
            host = replay(folder / "job", "host", folder / "host")
            fake = replay(folder / "job", "gpu", folder / "fake", **FAKE)
            if isinstance(host, str) or isinstance(fake, str):
                notes.append(f"{name}: not done again: {host if isinstance(host, str) else fake}".replace(f"{folder}/", ""))
                continue
            (on_host, remarks), (on_fake, _) = host, fake
            notes += [f"{name}: {remark}" for remark in remarks]
            step = on_host["source"].split(" of ")[0]
            times = [milliseconds(on_host["recorded_ns"])]
            for row in (on_host, on_fake):
                times += [milliseconds(row["p50_ns"]), f"{float(row['agreement']):.2f}"]
            lines.append((name, step, on_host["operations"], on_host["streams"], *times, on_fake["bound_by"]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print("", *notes, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
