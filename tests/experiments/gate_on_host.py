#!/usr/bin/env python3
"""Whether the gate's stated false-alarm rate and its power hold on this machine's host device: real comparisons.

    tests/experiments/gate_on_host.py RESULTS.jsonl [--noop 400] [--tries 20] [--slowdown 10%] [--pairs 32]
                                      [--chunks 40] [--lanes 1] [--patience 600] [--build build] [-o FILE]

Of launchgap with itself 400 comparisons, of which no more may be `slower` in `per_launch_ns` than the 99 % binomial bound
of the stated rate; and 20 with a delay of 10 % in each launch of B, of which 18 must be found. They are made in chunks by
`launchgap selftest`, and each chunk's answer is a line of RESULTS.jsonl: it can be stopped, and goes on where it was. The
noise between processes is that of all chunks; above 3 % the machine is too noisy, and this proves nothing. So a chunk begins
when 20 processes vary by at most 3 %; until then it waits, up to `--patience` minutes. These 20 do not count: a chunk's own
noise is measured after that, and each chunk that was begun counts.

The host's launches hand a task from one thread to another. Where a hypervisor moves its CPUs, how long that takes changes
by a factor of two many times a minute: so both threads share a CPU. With `--lanes N`, N chunks are made at once, each on a
CPU of its own.

Each comparison has 32 pairs at most, and stops after 8 where that is enough. On a virtual machine a neighbour makes a CPU
slower by a third for 10 to 60 s. Where such a phase begins or ends between the two processes of a pair, the interval grows
by it, and a comparison of 8 or 16 pairs no longer sees 10 %.

The exit code is 0 if both hold, 1 if one does not, 2 if the machine was too noisy to prove anything. All of it takes about
two hours in one lane.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = "launch/null/api:queue/mode:burst"
METRIC = "per_launch_ns"
MOST_NOISE = 0.03
LEAST_FOUND = 0.9


class TooNoisy(RuntimeError):
    """The machine was not quiet for as long as one may wait."""


def binomial_bound(trials: int, rate: float, confidence: float = 0.99) -> int:
    """The smallest k with P(X <= k) >= confidence."""
    term = (1 - rate) ** trials
    total, k = term, 0
    while total < confidence:
        term *= (trials - k) / (k + 1) * rate / (1 - rate)
        total += term
        k += 1
    return k


def chunks_of(path: Path) -> list[dict]:
    """What there is; a last line that was torn off is left out."""
    chunks = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            chunks.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"{path}: a line that is not whole is left out", file=sys.stderr)
    return chunks


def selftest(options: argparse.Namespace, cpu: int, *arguments: str) -> dict:
    """What `launchgap selftest` writes, of one CPU."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "selftest.json"
        command = [str(options.build / "bin/launchgap"), "selftest", "--devices", "host", "--filter", f"^{CASE}$"]
        command += ["--processes", "20", *arguments, "--json", str(out)]
        # The host is locked while it is measured; here each CPU of it is a device.
        done = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"LAUNCHGAP_LOCK_DIR": folder},
            preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
        )
        if done.returncode != 0:
            raise RuntimeError(f"selftest ended with {done.returncode}: what was found before is kept\n{done.stderr}")
        return json.loads(out.read_text(encoding="utf-8"))


def row_of(document: dict) -> dict:
    (row,) = [row for row in document["rows"] if row["metric"] == METRIC]
    return row


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def wait_until_quiet(options: argparse.Namespace, cpu: int) -> int:
    """How often it was too noisy before."""
    too_noisy = 0
    while (noise := row_of(selftest(options, cpu))["noise"]) > MOST_NOISE:
        too_noisy += 1
        print(f"{now():%H:%M:%S} CPU {cpu}: {100 * noise:.1f} % between processes, too noisy to begin", file=sys.stderr)
        if now() > options.give_up:
            raise TooNoisy
        time.sleep(30)
    return too_noisy


def one_chunk(options: argparse.Namespace, index: int, cpu: int) -> dict:
    """The row of a selftest on one CPU, with when it was."""
    too_noisy = wait_until_quiet(options, cpu)
    begin = now().isoformat(timespec="seconds")

    def share_of(total: int) -> int:
        return total * (index + 1) // options.chunks - total * index // options.chunks

    arguments = ["--noop", str(share_of(options.noop)), "--pairs", str(options.pairs), "--seed", str(index)]
    if tries := share_of(options.tries):
        arguments += ["--slowdown", options.slowdown, "--tries", str(tries)]
    document = selftest(options, cpu, *arguments)
    return {
        "index": index,
        "begin_utc": begin,
        "end_utc": now().isoformat(timespec="seconds"),
        "too_noisy_before": too_noisy,
        "load": os.getloadavg()[0],
        "cpu": cpu,
        "launchgap": document["launchgap"],
        "pairs": document["pairs"],
        "row": row_of(document),
    }


def measure_chunks(options: argparse.Namespace) -> list[dict]:
    chunks = chunks_of(options.results)
    missing = deque(sorted(set(range(options.chunks)) - {chunk["index"] for chunk in chunks}))
    one_at_a_time = threading.Lock()

    def lane(cpu: int) -> None:
        while True:
            with one_at_a_time:
                if not missing:
                    return
                index = missing.popleft()
            chunk = one_chunk(options, index, cpu)
            with one_at_a_time:
                chunks.append(chunk)
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(chunk) + "\n")
                print(f"{now():%H:%M:%S} {len(chunks)} of {options.chunks} chunks", file=sys.stderr)

    cpus = sorted(os.sched_getaffinity(0))[: max(1, options.lanes)]
    with ThreadPoolExecutor(len(cpus)) as pool:
        for each in [pool.submit(lane, cpu) for cpu in cpus]:
            each.result()
    return sorted(chunks, key=lambda chunk: chunk["begin_utc"])


def done_so_far(chunks: list[dict]) -> tuple[int, int]:
    return (
        sum(chunk["row"]["comparisons"] for chunk in chunks),
        sum(chunk["row"].get("slowdown", {}).get("tries", 0) for chunk in chunks),
    )


def verdict(chunks: list[dict], options: argparse.Namespace) -> tuple[str, int]:
    rows = [chunk["row"] for chunk in chunks]
    comparisons, tries = done_so_far(chunks)
    alarms, erratic = sum(row["alarms"] for row in rows), sum(row["erratic"] for row in rows)
    slowed = [row["slowdown"] for row in rows if row.get("slowdown", {}).get("tries")]
    found = sum(each["found"] for each in slowed)
    noise = statistics.median(row["noise"] for row in rows)
    rate = rows[0]["stated_rate"]
    most = binomial_bound(comparisons, rate)
    quiet = noise <= MOST_NOISE
    sound = alarms <= most
    least_found = math.ceil(LEAST_FOUND * options.tries)
    strong = found >= least_found
    lines = [
        f"{CASE} {METRIC}, {chunks[0]['begin_utc']} to {chunks[-1]['end_utc']}, launchgap {chunks[0]['launchgap']}",
        f"device                   {rows[0]['device_name']}, "
        f"each comparison on one of {len({chunk['cpu'] for chunk in chunks})} CPUs, "
        f"{rows[0]['median']:.1f} ns per launch",
        f"noise between processes  {100 * noise:.2f} % (median of {len(rows)} chunks, "
        f"{100 * min(row['noise'] for row in rows):.2f} to {100 * max(row['noise'] for row in rows):.2f} %); "
        f"{sum(chunk['too_noisy_before'] for chunk in chunks)} times it was too noisy to begin one",
        f"A/A comparisons          {comparisons} of at most {chunks[0]['pairs']} pairs, {alarms} slower, {erratic} erratic; "
        f"of {100 * rate:.1f} % at most {most} are within the 99 % bound: {'yes' if sound else 'NO'}",
    ]
    if tries:
        delay = statistics.mean(each["delay_ns"] for each in slowed)
        change = statistics.mean(each["change"] for each in slowed)
        lines.append(
            f"slowdowns of {options.slowdown:<10}  {tries}, {found} found, at least {least_found} must be: "
            f"{'yes' if strong else 'NO'}; {delay:.1f} ns inserted, {100 * change:+.1f} % seen"
        )
    lines.append(
        "verdict                  "
        + ("it holds" if sound and strong else "IT DOES NOT HOLD")
        + ("" if quiet else f", but the machine is too noisy (above {100 * MOST_NOISE:.0f} %): this proves nothing")
    )
    return "\n".join(lines), 2 if not quiet else 0 if sound and strong else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--noop", type=int, default=400)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--slowdown", default="10%")
    parser.add_argument("--pairs", type=int, default=32, help="pairs of each comparison, at most")
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--lanes", type=int, default=1, help="chunks at once, each on a CPU of its own")
    parser.add_argument("--patience", type=float, default=600, help="minutes in which the machine must be quiet at last")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-o", "--output", type=Path, help="file for what is printed at the end")
    options = parser.parse_args()
    options.give_up = now() + datetime.timedelta(minutes=options.patience)
    try:
        chunks = measure_chunks(options)
    except TooNoisy:
        print(f"{options.results} has the chunks so far: go on with the same command", file=sys.stderr)
        return 2
    text, code = verdict(chunks, options)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
