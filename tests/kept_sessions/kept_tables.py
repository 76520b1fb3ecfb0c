"""What launchgap makes of sessions and recordings that are kept, and of inputs that are drawn: a digest of every table, by
what it was made of.

    kept_tables.py [--write] [--in FOLDER]

Compares digests.csv with what the build makes today, and prints each difference; with --write it puts today's there. A
change that is meant needs that, and a look at the tables themselves: with --in they and all that was said stay in the
folder, to be compared (`diff -r`) with those of another build, which LAUNCHGAP_BUILD names.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.extend(str(Path(__file__).parents[1] / folder) for folder in ("fuzz", "end_to_end", "stats"))

import made_inputs
import rich_recordings
import seeds
from allocation_files import written
from recording_files import drifting, rank_file, waited_for, write_nsys
from stats_probe import compute_many

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LAUNCHGAP = ROOT / os.environ.get("LAUNCHGAP_BUILD", "build") / "bin" / "launchgap"
# Of evidence/h200/2026-11-26, ten samples of each block and two of its readings.
SESSIONS = HERE / "h200.tar.xz"
RECORDINGS = ROOT / "tests" / "recordings"
DIGESTS = HERE / "digests.csv"
# The patterns of docs/allocation.md, made small.
PATTERNS = {
    "checkerboard": "checkerboard/blocks:64/request:2",
    "comb": "comb",
    "batches": "batches/last:20/layers:10",
    "pins": "pins",
    "best_fit_attack": "best_fit_attack",
    "thrash": "thrash/cycles:50",
    "training": "training/allocations:2000",
}
# Of the import or the replay itself, and not of what is imported or replayed.
NIGHTS = 44
VOLATILE = (
    "session_id",
    "base_session_id",
    "begin_utc",
    "end_utc",
    "seconds",
    "allocate_p50_ns",
    "allocate_p99_ns",
    "release_p50_ns",
)

Digest = tuple[str, str, int, str]  # of what, table, rows, digest


def run(folder: Path, *arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """In this folder, so that what it says has no path that is another each time."""
    command = [LAUNCHGAP, *map(str, arguments)]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "COLUMNS": "100", "HOME": tempfile.gettempdir()}
    environment["LAUNCHGAP_PYTHON"] = "false"  # pages would take most of the time
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=300)
    if done.returncode not in codes:
        raise RuntimeError(f"launchgap {' '.join(map(str, arguments))}: {done.returncode}: {done.stderr}")
    with (folder / "said.txt").open("a", encoding="utf-8") as said:
        said.write(f"\n$ launchgap {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout or f"{done.returncode}: {done.stderr.replace(str(folder), '')}"


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def digest_of_table(what: str, path: Path) -> Digest:
    text = path.read_text(encoding="utf-8")
    columns = text.partition("\n")[0].rstrip("\r").split(",")
    if volatile := {column for column in VOLATILE if column in columns}:
        kept = [columns.index(column) for column in columns if column not in volatile]
        rows = csv.reader(io.StringIO(text, newline=""))
        text = "\n".join(repr([*map(row.__getitem__, kept)]) for row in rows)
    return what, path.stem, text.count("\n"), digest_of(text)


def digest_of_answer(what: str, answer: str) -> Digest:
    return what, "standard output", answer.count("\n"), digest_of(answer)


def tables_of(folder: Path, session: str) -> Iterator[Digest]:
    run(folder, "export", session, "-o", f"{session}-tables")
    for path in sorted((folder / f"{session}-tables").glob("*.csv")):
        yield digest_of_table(session, path)


def unpack(folder: Path) -> list[str]:
    with tarfile.open(SESSIONS) as archive:
        archive.extractall(folder)
    return sorted(path.name for path in folder.iterdir())


def of_sessions(folder: Path) -> Iterator[Digest]:
    for session in unpack(folder):
        yield from tables_of(folder, session)


def of_drawn_sessions(folder: Path) -> Iterator[Digest]:
    """As they might have been; and what is said of the changes between two of them."""
    names = unpack(folder)
    for name in names:
        for number in range(4):
            made = f"{name}-{number}"
            made_inputs.drawn_session(folder / name, folder / made, number)
            digests = list(tables_of(folder, made))
            yield made, "tables", sum(rows for _, _, rows, _ in digests), digest_of(repr(digests))
            if number:
                yield from verdict_of(folder, f"{made} after it", (f"{name}-0", made))


def of_formats(folder: Path) -> Iterator[Digest]:
    """What other programs read; and a chrome-trace is read again, as if another had recorded it."""
    unpack(folder)
    run(folder, "import", RECORDINGS / "h200-graph-replays.kineto.json.gz", "-o", "recorded", "--no-report")
    run(folder, "export", "recorded", "--format", "chrome-trace", "-o", "replays.json")
    run(folder, "export", "advice", "--format", "google-benchmark", "-o", "advice.json")
    for name in ("replays.json", "advice.json"):
        yield digest_of_answer(name, (folder / name).read_text())
    for recording in (folder / "replays.json", *sorted((ROOT / "data").glob("published_*.csv"))):
        yield from import_of(folder, recording)


def of_verdicts(folder: Path) -> Iterator[Digest]:
    unpack(folder)
    night(folder / "advice", folder / "slower", 27, {"launch/api": 1.07, "launch/graph": 1.2})
    for pair in ("advice", "slower"), ("slower", "advice"):
        yield from verdict_of(folder, " against ".join(pair), pair)
    # Graphs get slower bit by bit, calls at once in the last nights, and arguments differ from night to night. Everything
    # varies, by a share that follows from the night.
    for number in range(1, NIGHTS + 1):
        varied = 1 + (number * 37 % 23 - 11) / 2_000
        times = {
            "launch/graph": varied * (1 + number / 300),
            "launch/args": varied + (number * 7 % 5) / 100,
            "launch/api": varied * (1.1 if number > NIGHTS - 3 else 1),
            "": varied,
        }
        night(folder / "advice", folder / f"night-{number}", number, times)
        if number < NIGHTS:
            run(folder, "history", "add", "nights.db", f"night-{number}")
    last = f"night-{NIGHTS}"
    yield from verdict_of(folder, "history", ("--history", "nights.db", "--no-add", last))
    (folder / "accepted.txt").write_text("* launch/graph/* * 2026-09-15 2026-09-28T12:00:00Z 'a new library'\n")
    yield from verdict_of(
        folder, "accepted", ("--history", "nights.db", "--no-add", "--accepted", "accepted.txt", "--gate-spread", last)
    )
    updated(folder / last, folder / "updated")
    yield from verdict_of(folder, "updated", ("--history", "nights.db", "--no-add", "updated"))
    across = ("--history", "nights.db", "--no-add", "--across", "driver", "--require-baseline", "updated")
    yield from verdict_of(folder, "across", across)
    # How often it errs takes some tenths of a second for each metric: of a few.
    for number in range(1, NIGHTS + 1):
        for path in (folder / f"night-{number}" / "records").iterdir():
            if ".launch+wait=" not in path.name:
                path.unlink()
        if number < NIGHTS:
            run(folder, "history", "add", "few.db", f"night-{number}")
    rates = ("selftest", "--processes", 0, "--history", "few.db", "--seed", 1, "--json", "rates.json")
    yield digest_of_answer("rates", run(folder, *rates))
    yield digest_of_answer("rates.json", (folder / "rates.json").read_text())
    yield from verdict_of(folder, "with rates", ("--history", "few.db", last))
    yield digest_of_answer("history list", run(folder, "history", "list", "nights.db"))
    run(folder, "history", "accept", "nights.db", "--case", "launch/api/*", "--since", "2026-09-10", "--reason", "meant")
    yield digest_of_answer("history show", run(folder, "history", "show", "nights.db", "--case", "launch/api/*"))
    run(folder, "history", "export", "nights.db", "-o", "history.csv")
    yield digest_of_table("history", folder / "history.csv")


def verdict_of(folder: Path, what: str, arguments: Iterable[str]) -> Iterator[Digest]:
    outputs = ("check.json", "check.xml", "check.md")
    files = [f"--{kind}={name}" for kind, name in zip(("json", "junit", "markdown"), outputs, strict=True)]
    yield digest_of_answer(what, run(folder, "check", *arguments, *files, codes=(0, 3, 4)))
    for name in outputs:
        text = (folder / name).read_text()
        yield what, name, text.count("\n"), digest_of(text)


def night(session: Path, to: Path, number: int, times: dict[str, float]) -> None:
    """The session as it would be of another day, if the samples of these benchmarks were so many times as long. The first
    that fits counts."""
    day = f"{8 + number // 28:02}", f"{1 + number % 28:02}"
    shutil.copytree(session, to)
    for path in (to / "session.json", *(to / "records").iterdir()):
        text = path.read_text().replace("2026-11-26", "2026-{}-{}".format(*day)).replace("20261126", "2026{}{}".format(*day))
        lines = []
        for line in text.splitlines():
            own = next((factor for case, factor in times.items() if f'"case":"{case}' in line), 1)
            if own != 1 and '"record":"samples"' in line:
                record = json.loads(line)
                record["values"] = [[value and value * own for value in values] for values in record["values"]]
                line = json.dumps(record)
            lines.append(line)
        path.write_text("\n".join(lines) + "\n")


def updated(session: Path, to: Path) -> None:
    """With another driver."""
    shutil.copytree(session, to)
    for path in (to / "session.json", *(to / "records").iterdir()):
        path.write_text(path.read_text().replace("580.159.04", "590.44.01"))


def of_recordings(folder: Path) -> Iterator[Digest]:
    for recording in sorted(RECORDINGS.iterdir()):
        if not recording.name.endswith((".sqlite", ".json", ".json.gz")):
            continue
        yield from import_of(folder, recording)


def of_seeds(folder: Path) -> Iterator[Digest]:
    """Of every form the small inputs that the fuzzer begins with."""
    for form, write in seeds.FORMS.items():
        (folder / f"{form}-seeds").mkdir()
        write(folder / f"{form}-seeds")
        for seed in sorted((folder / f"{form}-seeds").iterdir()):
            yield from import_of(folder, seed.rename(folder / f"{form}-{seed.name}.seed"))


def import_of(folder: Path, recording: Path) -> Iterator[Digest]:
    yield digest_of_answer(recording.name, answer_of_import(folder, recording.stem, recording))
    yield from tables_of(folder, recording.stem)


def answer_of_import(folder: Path, session: str, *recordings: Path, codes: tuple[int, ...] = (0,)) -> str:
    answer = run(folder, "import", *recordings, "-o", session, "--no-report", codes=codes)
    return "\n".join(line for line in answer.splitlines() if not line.startswith(("Tables:", "Page:")))


def of_jobs(folder: Path) -> Iterator[Digest]:
    """Of ranks of which one is slow, or late to collectives, and of a clock that drifts."""
    slow = [
        rank_file(folder / f"slow-{r}.json", r, range(5, 25), 0.1 if r == 2 else 0.01 * r, together_ns=12_000_000)
        for r in range(4)
    ]
    waits = [[400_000 + 90_000 * (r * i % 5) if r != 1 else 200_000 for i in range(20)] for r in range(3)]
    late = [rank_file(folder / f"late-{r}.json", r, range(40), 0, r, waits[r]) for r in range(3)]
    for name, files in ("slow", slow), ("late", late):
        yield digest_of_answer(name, answer_of_import(folder, name, *files))
        yield from tables_of(folder, name)
    drifts = write_nsys(folder / "drifts.sqlite", drifting(waited_for(), 133_000_000_000, -558))
    yield from import_of(folder, drifts)
    run(folder, "export", "drifts", "--format", "chrome-trace", "-o", "drifts.json")
    yield digest_of_answer("drifts.json", (folder / "drifts.json").read_text())


def of_allocations(folder: Path) -> Iterator[Digest]:
    """As others recorded them, and as they are played."""
    for form in "snapshot", "rmm", "profiler":
        yield from import_of(folder, written(form, folder / f"{form}.recorded"))
        run(folder, "export", form, "--format", "gmtrace", "-o", f"{form}.gmtrace.csv")
        yield digest_of_table(form, folder / f"{form}.gmtrace.csv")
        run(folder, "replay", form, "--c-min", "--epochs", 20, "-o", f"{form}-replayed")
        yield from tables_of(folder, f"{form}-replayed")


def of_drawn_jobs(folder: Path) -> Iterator[Digest]:
    for file in made_inputs.job_files(folder, 90):
        digests = list(import_of(folder, file))
        yield file.stem, "answer and tables", sum(rows for _, _, rows, _ in digests), digest_of(repr(digests))


def of_rich_recordings(folder: Path) -> Iterator[Digest]:
    """And as they are written for other programs."""
    for number in range(60):
        files, session = rich_recordings.files(folder, number), f"rich-{number:02}"
        digests = [digest_of_answer("import", answer_of_import(folder, session, *files, codes=(0, 2, 3)))]
        if (folder / session).exists():
            digests += tables_of(folder, session)
            for form in "chrome-trace", "gmtrace":
                run(folder, "export", session, "--format", form, "-o", f"{session}-{form}", codes=(0, 2, 3))
                for file in sorted((folder / f"{session}-{form}").glob("*")):
                    digests.append(digest_of_answer(form, decompressed(file)))
        yield session, "answer, tables and exports", len(digests), digest_of(repr(digests))


def decompressed(file: Path) -> str:
    return (gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()).decode()


def of_damaged(folder: Path) -> Iterator[Digest]:
    """What is said of inputs that are damaged in one place."""
    run(folder, "generate", PATTERNS["training"], "-o", "training.gmtrace.csv")
    said = []
    for number in range(30):
        made_inputs.damage(Path(shutil.copy(folder / "training.gmtrace.csv", folder / "damaged.csv")), number)
        answer = run(folder, "replay", "damaged.csv", "--allocator", "bfc", codes=(0, 2, 3))
        said.append("played" if "allocator  completes" in answer else answer)  # times of which differ
    yield "gmtrace", "standard output and error", len(said), digest_of(repr(said))
    for form, write in seeds.FORMS.items():
        (folder / form).mkdir()
        write(folder / form)
        for seed in sorted((folder / form).iterdir()):
            said = []
            for number in range(15):
                file = Path(shutil.copy(seed, folder / f"{form}-{number}.damaged"))
                made_inputs.damage(file, number)
                said.append(answer_of_import(folder, f"{form}-{number}", file, codes=(0, 2, 3)))
                shutil.rmtree(folder / f"{form}-{number}", ignore_errors=True)
            yield f"{form} {seed.name}", "standard output and error", len(said), digest_of(repr(said))
            if form == "snapshot" and seed.name != "seed-0":
                continue  # the others are the same in bytes of which most are no words
            of_form = seed.rename(folder / f"{form}-{seed.name}")
            made = [made_of(folder, file) for file in made_inputs.with_other_values(of_form, folder / "another")]
            yield f"{form} {seed.name}", "with other values", len(made), digest_of(repr(made))


def made_of(folder: Path, file: Path) -> tuple[str, list[str]]:
    """What the import of it says, and what is in the session."""
    said = answer_of_import(folder, "made", file, codes=(0, 2, 3))
    contents = [decompressed(path) for path in sorted((folder / "made").glob("*/*"))]
    shutil.rmtree(folder / "made", ignore_errors=True)
    return said, contents


def of_statistics(folder: Path) -> Iterator[Digest]:
    """To nine digits, which another library of mathematics gives too."""
    shapes = {"describe": [37], "modes": [150], "dip": [60], "difference": [12, 9], "deviations": [5, 4, 6, 1]}
    shapes |= {"random_effects": [8, 8, 5, 3], "padding_gains": [12] * 14, "trend": [30, 12], "two_levels": [48]}
    shapes |= {"pairs": [19, 19], "two_sessions": [6] * 4, "ratios": [5, 4]}
    for name, sizes in shapes.items():
        results = compute_many(name, sizes, [made_inputs.samples(number, sizes) for number in range(100)])
        yield name, "results", len(results), digest_of(repr(results_in_digits(results)))
    judged = compute_many("nights", [80], [made_inputs.nights(number, 80) for number in range(100)])
    yield "nights", "results", len(judged), digest_of(repr(results_in_digits(judged)))


def results_in_digits(results: object) -> object:
    if isinstance(results, dict):
        return {key: results_in_digits(value) for key, value in results.items()}
    if isinstance(results, list):
        return [results_in_digits(value) for value in results]
    return f"{results:.9g}" if isinstance(results, float) else results


def of_replays(folder: Path) -> Iterator[Digest]:
    for name, pattern in PATTERNS.items():
        trace = f"{name}.gmtrace.csv"
        run(folder, "generate", pattern, "-o", trace)
        run(folder, "replay", trace, "--c-min", "--epochs", 20, "-o", name)
        yield digest_of_table(name, folder / trace)
        yield from tables_of(folder, name)
    for injected in "leak=64KiB/epoch", "pin=2MiB/epoch", "cache=2MiB/epoch":
        name = injected.partition("=")[0]
        run(folder, "replay", "training.gmtrace.csv", "--epochs", 20, "--inject", injected, "-o", name)
        yield from tables_of(folder, name)


PARTS = {
    "sessions": of_sessions,
    "drawn sessions": of_drawn_sessions,
    "formats": of_formats,
    "verdicts": of_verdicts,
    "recordings": of_recordings,
    "seeds": of_seeds,
    "jobs": of_jobs,
    "allocations": of_allocations,
    "drawn jobs": of_drawn_jobs,
    "rich recordings": of_rich_recordings,
    "damaged": of_damaged,
    "statistics": of_statistics,
    "replays": of_replays,
}


def kept(part: str) -> list[Digest]:
    with DIGESTS.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == part]
    return [(row["what"], row["table"], int(row["rows"]), row["digest"]) for row in rows]


def differences(then: Iterable[Digest], now: Iterable[Digest]) -> list[str]:
    before, after = ({(what, table): rest for what, table, *rest in side} for side in (then, now))
    return [
        f"{what}, {table}: {before.get((what, table), 'none')} became {after.get((what, table), 'none')}"
        for what, table in sorted(before.keys() | after.keys())
        if before.get((what, table)) != after.get((what, table))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put today's digests into digests.csv")
    parser.add_argument("--in", dest="folder", type=Path, help="new folder in which all files stay")
    options = parser.parse_args()
    now = {}
    for part, digests in PARTS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.folder or Path(temporary)) / part.replace(" ", "-")
            folder.mkdir(parents=True)
            now[part] = list(digests(folder.resolve()))
    if options.write:
        with DIGESTS.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["part", "what", "table", "rows", "digest"])
            writer.writerows([part, *digest] for part, all_of_it in now.items() for digest in all_of_it)
        return 0
    found = [line for part in PARTS for line in differences(kept(part), now[part])]
    print("\n".join(found) or "no differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
