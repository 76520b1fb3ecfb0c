"""How often `launchgap record --cost` holds what recording costs, on a fake GPU that knows.

    python3 tests/experiments/recording_cost.py [--api-ns 0,300] [--sessions 100] [--launches 20000] [--rounds 6]

Each session starts a program without recording and at each level, in turns. Where tracing costs nothing, the interval of
what it adds to a recorded call should hold 0; where an API record costs 300 ns, it should say 300 ns at the level of
launches. What it said once is in recording_cost.txt.
"""

import argparse
import csv
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "end_to_end"))

from shipped import BUILD, NODES, launchgap


def node(folder: pathlib.Path, api_ns: float) -> pathlib.Path:
    described = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    described["devices"][0]["process_factor_sigma"] = 0
    described["cupti"] = {"api_overhead_ns": {"constant": api_ns}}
    path = folder / f"node_{api_ns:g}.json"
    path.write_text(json.dumps(described), encoding="utf-8")
    return path


def costs(folder: pathlib.Path, described: pathlib.Path, launches: int, rounds: int) -> dict[str, list[float]]:
    """By level: what is added to a launch call, and both ends of its interval."""
    program = BUILD / "bin" / "launching_program"
    session = folder / "session"
    options = ("--cost", "--runs", rounds, "--no-report", "-o", session)
    launchgap("record", *options, "--", program, "launch", launches, node=described, real_time=True, code=0)
    with open(session / "recording_costs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["level"]: [float(row[f"call_{part}ns"]) for part in ("", "low_", "high_")] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--api-ns", default="0,300")
    for name, default in (("sessions", 100), ("launches", 20000), ("rounds", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    for api_ns in map(float, options.api_ns.split(",")):
        measured: dict[str, list[list[float]]] = {}
        for _ in range(options.sessions):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder)
                for level, values in costs(path, node(path, api_ns), options.launches, options.rounds).items():
                    measured.setdefault(level, []).append(values)
        for level, sessions in measured.items():
            held = sum(low <= api_ns <= high for _, low, high in sessions)
            median = statistics.median(value for value, _, _ in sessions)
            print(f"{api_ns:g} ns for each API record, level {level}: median {median:.1f} ns,", end=" ")
            print(f"{held} of {len(sessions)} intervals hold {api_ns:g}")


if __name__ == "__main__":
    main()
