"""Fake nodes of eight equal GPUs: quiet, with another slow one in each process, or with one that is late by its device, by
the host, or by turns."""

import json
from pathlib import Path

NODES = Path(__file__).parents[1] / "fake_cuda" / "nodes"
GPUS, LATE = 8, 3


def lognormal(median, sigma):
    return {"lognormal": {"median": median, "sigma": sigma}}


def uuid(gpu):
    return f"GPU-a000{gpu:04x}-fa4e-4000-8000-{gpu:012x}"


def node(kind):
    """What is injected comes on top of 1.9 ms of work, whose own time varies by some µs."""
    described = json.loads((NODES / "one_a100.json").read_text())
    gpus = []
    for gpu in range(GPUS):
        own = json.loads(json.dumps(described["devices"][0]))
        own |= {"uuid": uuid(gpu), "pci": f"0000:{16 * gpu + 7:02x}:00.0", "kernel_ns": lognormal(20_000, 0.1)}
        # By so much a process makes a device slower or faster, for all of its time.
        own["process_factor_sigma"] = 0.03 if kind == "processes" else 0.005
        if kind == "device" and gpu == LATE:
            own["kernel_ns"] = lognormal(150_000, 0.05)
        if kind == "turns":
            now_and_then = {"weight": 1, "of": lognormal(300_000, 0.1)}
            own["kernel_ns"] = {"mixture": [{"weight": 7, "of": lognormal(20_000, 0.1)}, now_and_then]}
        if kind == "host" and gpu == LATE:
            # What takes the call long is before the work begins.
            own["call_ns"], own["launch_ns"] = lognormal(200_000, 0.1), lognormal(203_000, 0.1)
        gpus.append(own)
    return described | {"devices": gpus}


SAID = {
    "quiet": ("none", ""),
    "processes": ("unclear", ""),
    "device": ("one", "device"),
    "turns": ("at-times", "device"),
    "host": ("one", "host"),
}
"""Lateness and cause"""


def claims(rows):
    """Of the rows of skew.csv: lateness, cause and who is late, by case."""
    found = {}
    for row in rows:
        late = [r["member"] for r in rows if r["case"] == row["case"] and r["late"] == "true"]
        found[row["case"]] = (row["lateness"], row["cause"], *late)
    return found


def expected(kind):
    lateness, cause = SAID[kind]
    return (lateness, cause, *([uuid(LATE)] if lateness == "one" else []))
