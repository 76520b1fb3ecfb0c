"""What is kept here is what its figures say, `launchgap import` finds the same, and the comparison can fail."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDINGS = sorted(path for path in HERE.iterdir() if path.name.endswith((".sqlite", ".json", ".json.gz", ".xplane.pb.gz")))
CLOVERLEAF = HERE / "a100-cloverleaf.nsys.sqlite"
GP100 = HERE / "gp100-steps.kineto.json"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "check-recordings", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_import_finds_what_an_independent_script_finds():
    done = check(HERE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RECORDINGS)} recordings: none with differences" in done.stdout


def test_every_recording_has_its_figures_and_its_source():
    names = [path.name for path in RECORDINGS]
    assert [row["file"] for row in rows(HERE / "figures.csv")] == names
    assert (
        re.findall(
            r"^\| ([\w.-]+\.(?:sqlite|json|json\.gz|xplane\.pb\.gz)) \|", (HERE / "README.md").read_text(), re.MULTILINE
        )
        == names
    )
    assert sum(path.stat().st_size for path in RECORDINGS) < 3 << 20


def text_of(path: Path) -> str:
    if path.suffix != ".sqlite":
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("latin-1")
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as database:
        return "\n".join(database.iterdump())


@pytest.mark.parametrize("path", [*RECORDINGS, *sorted((HERE / "ranks").iterdir())], ids=lambda path: path.name)
def test_no_recording_names_anybody(path):
    names = re.compile(
        r"/(?:home|Users|users|tmp|private|global|var)/|EXPORT_(?:HOST|USER|\w*PATH)|host_?name|user_?name|@\w+\.|\.com\b"
    )
    assert names.findall(text_of(path)) == []


# --- the comparison ---


def folder_of(path: Path, folder: Path, **figures: str) -> Path:
    """A folder of one recording, with its figures, some of them changed."""
    shutil.copy(path, folder)
    own = next(row for row in rows(HERE / "figures.csv") if row["file"] == path.name) | figures
    (folder / "figures.csv").write_text(f"{','.join(own)}\n{','.join(own.values())}\n")
    return folder


README = """\
| file | launches | kernels | launch call p50 / p99 µs | launches on an idle stream | call begins → kernel begins, µs |
| --- | --- | --- | --- | --- | --- |
| a100-cloverleaf.nsys.sqlite | {launches} | 1312 | 3.687 / {call_p99} | 1250 | 5.476 / 12.479 |
"""


def test_the_comparison_reads_a_table_of_figures(tmp_path):
    folder = folder_of(CLOVERLEAF, tmp_path)
    (folder / "README.md").write_text(README.format(launches="1312, all of them", call_p99="11.896"))
    done = check(folder)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [f"{CLOVERLEAF.name}: 11 figures, 8 of README.md: none differ", "1 recordings: none with differences"],
    )
    (folder / "README.md").write_text(README.format(launches=1313, call_p99="11.897"))
    done = check(folder)
    assert done.returncode == 3
    assert f"{CLOVERLEAF.name}: launches is 1312, and 1313 by README.md" in done.stdout
    assert f"{CLOVERLEAF.name}: call_p99 is 11896.4, and 11.897 µs by README.md" in done.stdout


def test_the_comparison_sees_figures_that_are_not_the_scripts(tmp_path):
    done = check(folder_of(GP100, tmp_path, idle="129", delay_p50="9000.5"))
    assert done.returncode == 3
    assert f"{GP100.name}: 11 figures, 0 of README.md: 2 differ" in done.stdout


def test_the_comparison_sees_an_import_that_differs(tmp_path):
    """With another launchgap, which reads another file than the script does."""
    root = tmp_path / "root"
    for folder in ("scripts", "tests/recordings", "build/bin"):
        (root / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "check-recordings", root / "scripts")
    shutil.copy(HERE / "figures.py", root / "tests" / "recordings")
    other = tmp_path / GP100.name
    other.write_text(GP100.read_text().replace('"name": "cudaLaunchKernel"', '"name": "cudaMalloc"', 1))
    launchgap = root / "build" / "bin" / "launchgap"
    launchgap.write_text(
        f'#!/bin/sh\n[ "$1" = import ] && {{ shift 2; set -- import {other} "$@"; }}\nexec {ROOT}/build/bin/launchgap "$@"\n'
    )
    launchgap.chmod(0o755)
    own = tmp_path / "own"
    own.mkdir()
    command = [sys.executable, root / "scripts" / "check-recordings", folder_of(GP100, own)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert f"{GP100.name}: launches is 129, and 130 by figures.py" in done.stdout
    assert f"{GP100.name}: orphans is 1, and 0 by figures.py" in done.stdout


def test_the_comparison_sees_files_that_are_missing_or_cannot_be_read(tmp_path):
    folder = folder_of(GP100, tmp_path, file="gone.json")
    (folder / "bad.json").write_text("{}")
    done = check(folder)
    assert done.returncode == 3
    assert "gone.json: figures are told of it, and it is not there" in done.stdout
    assert "bad.json: figures.csv has no row of it" in done.stdout


@pytest.mark.parametrize("arguments, code", [([], 2), (["/nowhere"], 2), (["."], 3)])
def test_what_the_comparison_cannot_do(arguments, code, tmp_path):
    command = [sys.executable, ROOT / "scripts" / "check-recordings", *arguments]
    assert subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60).returncode == code
