"""Nights of a program that `launchgap record` records on a fake GPU, gated by `launchgap check --history`.

    python3 tests/experiments/recorded_nights.py [--quiet 40] [--slow 3] [--share 0.1] [--rounds 1]

So many quiet nights, then some in which each launch call takes a share longer. Prints which nights fail, and for what. The
nights are a day apart and not marked as simulated, which only here is right. What it said once is in recorded_nights.txt.
"""

import argparse
import datetime
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "end_to_end"))

from shipped import BUILD, NODES, launchgap

PROGRAM = BUILD / "bin" / "launching_program"
FIRST = datetime.datetime(2026, 9, 1, 3, tzinfo=datetime.timezone.utc)


def describe_node(path: pathlib.Path, factor: float) -> pathlib.Path:
    """A GPU whose launch calls take so many times as long."""
    described = json.loads((NODES / "one_a100.json").read_text(encoding="utf-8"))
    described["devices"][0]["call_ns"]["lognormal"]["median"] *= factor
    path.write_text(json.dumps(described), encoding="utf-8")
    return path


def record_night(session: pathlib.Path, number: int, node: pathlib.Path) -> None:
    """Six starts, as of that night."""
    options = ("--runs", 6, "--no-report", "-o", session)
    launchgap("record", *options, "--", PROGRAM, "launch", 2000, node=node, code=0)
    begin = (FIRST + datetime.timedelta(days=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for path in (*(session / "records").iterdir(), session / "session.json"):
        text = re.sub(r'"begin_utc": ?"[^"]*"', f'"begin_utc":"{begin}"', path.read_text(encoding="utf-8"))
        path.write_text(re.sub(r'"simulated": ?true', '"simulated":false', text), encoding="utf-8")


def check_night(session: pathlib.Path, history: pathlib.Path) -> tuple[int, list[str]]:
    """The exit code, and what is slower."""
    done = launchgap("check", "--history", history, session, "--json", session / "check.json")
    verdicts = json.loads((session / "check.json").read_text(encoding="utf-8"))["results"]
    return done.returncode, [f"{r['metric']} of {r['case']}" for r in verdicts if r["verdict"] == "slower"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quiet", type=int, default=40)
    parser.add_argument("--slow", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            nodes = {slow: describe_node(path / f"{slow}.json", 1 + options.share * slow) for slow in (False, True)}
            failed = []
            for number in range(options.quiet + options.slow):
                slow = number >= options.quiet
                record_night(path / f"night-{number}", number, nodes[slow])
                code, slower = check_night(path / f"night-{number}", path / "nights.db")
                if slow or code != 0:
                    kind = f"slow night {number - options.quiet + 1}" if slow else f"quiet night {number + 1}"
                    failed.append(f"{kind}: exit code {code}{': ' if slower else ''}{', '.join(slower)}")
            print(f"{options.quiet} quiet nights, {options.slow} with launch calls {options.share:.0%} longer")
            print("".join(f"  {line}\n" for line in failed), end="", flush=True)


if __name__ == "__main__":
    main()
