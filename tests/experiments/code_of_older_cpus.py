#!/usr/bin/env python3
"""What code of OpenBLAS and oneDNN for older CPUs gets out of this one, for docs/code-of-older-cpus.md.

    tests/experiments/code_of_older_cpus.py [--runs 10] [--session FOLDER]

Measures `matmul/code` and `convolution/code` in the profile quick, or takes a FOLDER that has them, keeps the table in
code_of_older_cpus.txt beside this file and puts it into the docs, with the figures as the page draws them.

It takes half a minute, and nothing else should run meanwhile: it waits until the CPUs are idle, and measures again where
the quartiles of the processes of one code lie more than 1.15 times apart, at most 30 times. A ratio is of two processes
of one replicate, which follow each other within seconds; the median over the replicates is told.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
KEPT = Path(__file__).with_suffix(".txt")
DOCS = ROOT / "docs" / "code-of-older-cpus.md"
BEGIN, END = "<!-- measured: code of older CPUs -->\n", "<!-- end -->"
STYLE = ROOT / "reports" / "launchgap_report" / "templates" / "style.css"
MOST_SPREAD = 1.15
OLDEST = {"matmul": "prescott", "convolution": "sse41"}
WORK = {"matmul": "products", "convolution": "convolutions"}

Rates = dict[str, dict[str, dict[int, float]]]
"""The median GFLOP/s of a process, by family, code and replicate"""


def idle_share() -> float:
    """Of all CPUs, over three seconds."""

    def read() -> tuple[int, int]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)

    (idle, total), _, (idle_after, total_after) = read(), time.sleep(3), read()
    return (idle_after - idle) / (total_after - total)


def quartiles_apart(rates: dict[int, float]) -> float:
    low, _, high = statistics.quantiles(rates.values(), n=4)
    return high / low


def measure(folder: Path, runs: int) -> Path:
    """The first session that nothing disturbed."""
    command = ["run", "--devices", "host", "--profile", "quick", "--trace", "off", "--filter", "/code/", "--no-report"]
    for attempt in range(30):
        while idle_share() < 0.95:
            pass
        session = folder / str(attempt)
        subprocess.run([LAUNCHGAP, *command, "--runs", str(runs), "-o", session], check=True, capture_output=True)
        spread = max(quartiles_apart(r) for family in rates_of(session).values() for r in family.values())
        print(f"attempt {attempt + 1}: quartiles lie up to {spread:.2f} times apart", file=sys.stderr)
        if spread <= MOST_SPREAD:
            return session
    sys.exit("something else runs on this machine: measure when it does not")


def records(session: Path) -> list[list[dict]]:
    return [[json.loads(line) for line in path.open(encoding="utf-8")] for path in sorted(session.glob("records/*.jsonl"))]


def rates_of(session: Path) -> Rates:
    rates: Rates = defaultdict(lambda: defaultdict(dict))
    for run, *rest in records(session):
        samples = [s for s in rest if s["record"] == "samples" and "/code/" in s["case"]]
        values = [v for s in samples for v in s["values"][s["metrics"].index("tflops")]]
        if values:
            family, code = re.fullmatch(r"(\w+)\+code=(\w+)", run["process_config"]).groups()
            rates[family][code][run["replicate"]] = 1000 * statistics.median(values)
    return rates


def in_effect(session: Path) -> dict[tuple[str, str], str]:
    """What each library said that it ran, with its version, by family and code."""
    found = {}
    for run, *rest in records(session):
        for library in rest[-1].get("libraries", []):
            family, _, code = run["process_config"].partition("+code=")
            found[family, code] = f"{library['name']} {library['version']}, {library['code']}"
    return found


def meanings() -> dict[str, str]:
    """`haswell`: for which CPU it was written, as the program says."""
    listed = json.loads(subprocess.run([LAUNCHGAP, "list", "--json"], capture_output=True, check=True).stdout)
    axes = [benchmark["axes"]["code"] for benchmark in listed["benchmarks"] if benchmark["name"].endswith("/code")]
    return dict(re.findall(r"`(\w+)`: for ([^;`]+?)(?=;|$)", ";".join(axes)))


def cpu() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    facts = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text.split("\n\n")[0], re.MULTILINE))
    threads = text.count("\nprocessor") + text.startswith("processor")
    return f"{facts['model name']}, family {facts['cpu family']}, model {facts['model']}; {threads} CPUs"


def line_of(code: str, family: str, rates: Rates, says: str, written_for: str) -> str:
    own, oldest = rates[family][code], rates[family][OLDEST[family]]
    ratios = [own[r] / oldest[r] for r in own if r in oldest]
    spread = f"{statistics.median(own.values()):.0f} ({min(own.values()):.0f} to {max(own.values()):.0f})"
    ratio = "1" if own is oldest else f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"| {WORK[family]} | {says} | {written_for} | {spread} | {ratio} |"


def table(session: Path) -> str:
    rates, says, cpus = rates_of(session), in_effect(session), meanings()
    runs = max(len(of_code) for family in rates.values() for of_code in family.values())
    begin = json.loads((session / "session.json").read_text(encoding="utf-8"))["begin_utc"][:10]
    lines = [
        f"Measured {begin} on {cpu()}; {runs} processes of each.",
        "",
        "| FP32 | the library ran | written for | GFLOP/s: median (slowest and fastest process) | times the oldest |",
        "| --- | --- | --- | --- | --- |",
    ]
    for family in WORK:
        order = [code for code in cpus if code in rates[family]] + ["own"]
        for code in order:
            written_for = "what it chose by itself" if code == "own" else cpus[code]
            lines.append(line_of(code, family, rates, says[family, code], written_for))
    return "\n".join(lines) + "\n"


def figures(session: Path) -> list[str]:
    """The page's figures, each with as much of the page's style as it uses."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        subprocess.run([LAUNCHGAP, "report", session, "-o", page], check=True, stdout=subprocess.DEVNULL)
        html = page.read_text(encoding="utf-8")
    section = html.partition('<section id="library-code">')[2].partition("</section>")[0]
    style = STYLE.read_text(encoding="utf-8")
    colours = style[: style.index("* { box-sizing")]
    found = []
    for svg in re.findall(r"<svg.*?</svg>", section, re.DOTALL):
        classes = sorted(set(re.findall(r'class="([\w-]+)"', svg)))
        rules = " ".join(rule for name in classes for rule in re.findall(rf"\.{name} {{[^}}]*}}", style))
        ground = f"<style>{colours}{rules} text {{ font-family: sans-serif; }}</style>"
        ground += '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
        head, _, rest = svg.partition(">")
        found.append(f'{head} xmlns="http://www.w3.org/2000/svg" width="744">{ground}{rest}\n')
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="processes of each code")
    parser.add_argument("--session", type=Path, help="a session that was measured before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session = options.session or measure(Path(folder), options.runs)
        text = table(session)
        drawn = figures(session)
        with (session / "findings.csv").open(encoding="utf-8", newline="") as file:
            said = [row["sentence"] for row in csv.DictReader(file) if row["code"] in ("matmul-code", "convolution-code")]
    KEPT.write_text(text + "\n" + "\n".join(said) + "\n", encoding="utf-8")
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    DOCS.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
    for name, svg in zip(WORK.values(), drawn, strict=True):
        (ROOT / "docs" / "images" / f"code-of-older-cpus-{name}.svg").write_text(svg, encoding="utf-8")
    print(text + "\n" + "\n".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
