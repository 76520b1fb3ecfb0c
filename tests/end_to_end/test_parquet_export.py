"""`launchgap export --format parquet`: what C++ hands over. What is made of it: tests/reports/test_parquet.py."""

import collections
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pyarrow.dataset
import pyarrow.parquet
import pytest
from shipped import LAUNCHGAP, NODES, UNTRACED, environment, launchgap, table

CASES = "^launch/null/api:driver"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet") / "session"
    what = ("--devices", "gpu", "--profile", "quick", "--runs", "2", *UNTRACED, "--filter", CASES, "--no-report")
    launchgap("run", *what, "-o", folder, node=NODES / "one_a100.json", code=0)
    return folder


def rows(folder, name):
    files = [str(path) for path in sorted((folder / name).rglob("*.parquet"))]
    return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]


SAMPLE = ("device_id", "replicate", "attempt", "arm", "process_config", "case", "block", "metric", "sample")
RUN = ("device_id", "arm", "process_config", "case", "metric", "replicate")


def by(columns, of):
    return {tuple(str(row[column]) for column in columns): row for row in of}


def test_it_has_what_csv_has(session, tmp_path):
    launchgap("export", session, "--format", "parquet", "-o", tmp_path / "p", code=0)
    launchgap("export", session, "--format", "csv", "-o", tmp_path / "csv", code=0)
    samples, expected = (by(SAMPLE, of) for of in (rows(tmp_path / "p", "samples"), table(tmp_path / "csv" / "samples.csv")))
    assert {k: row["value"] for k, row in samples.items()} == {k: float(row["value"]) for k, row in expected.items()}
    name = "run_quantiles"
    runs, expected = (by(RUN, of) for of in (rows(tmp_path / "p", name), table(tmp_path / "csv" / f"{name}.csv")))
    assert {k: row["p99"] for k, row in runs.items()} == {k: float(row["p99"]) for k, row in expected.items()}
    summary, expected = rows(tmp_path / "p", "summary"), table(tmp_path / "csv" / "summary.csv")
    assert [row["run_medians"] or "" for row in summary] == [row["run_medians"] for row in expected]
    for name in ("devices", "runs"):
        assert len(rows(tmp_path / "p", name)) == len(table(tmp_path / "csv" / f"{name}.csv")) > 0


def test_a_failed_case_has_no_quantiles(session, tmp_path):
    """As in the tables of the page: by what became of the case in the end."""
    spoiled = shutil.copytree(session, tmp_path / "spoiled")
    file = next((spoiled / "records").glob("*.r0.plain.launch.jsonl"))
    lines = file.read_text().splitlines()
    at, summary = next((i, json.loads(x)) for i, x in enumerate(lines) if '"record":"summary"' in x and "mode:idle" in x)
    lines[at] = json.dumps(summary | {"status": "failed", "reason": "for this test"})
    file.write_text("\n".join(lines) + "\n")
    launchgap("export", spoiled, "--format", "parquet", "-o", tmp_path / "p", code=0)
    runs = collections.Counter((r["replicate"], r["case"]) for r in rows(tmp_path / "p", "run_quantiles"))
    assert not any(replicate == 0 and "mode:idle" in case for replicate, case in runs)
    assert any(replicate == 1 and "mode:idle" in case for replicate, case in runs)


def test_sessions_that_are_together_are_exported_each(session, tmp_path):
    other = shutil.copytree(session, tmp_path / "sessions" / "b")
    shutil.copytree(session, tmp_path / "sessions" / "a")
    info = json.loads((other / "session.json").read_text())
    (other / "session.json").write_text(json.dumps(info | {"begin_utc": "2026-11-01T00:00:00Z", "session_id": "another"}))
    launchgap("merge", tmp_path / "sessions", "-o", tmp_path / "merged")
    launchgap("export", tmp_path / "merged", "--format", "parquet", "-o", tmp_path / "p", code=0)
    by_session = collections.Counter(row["session_id"] for row in rows(tmp_path / "p", "summary"))
    assert len(by_session) == 2 and len(set(by_session.values())) == 1
    # Once more: nothing counts twice.
    launchgap("export", tmp_path / "merged", "--format", "parquet", "-o", tmp_path / "p", code=0)
    assert collections.Counter(row["session_id"] for row in rows(tmp_path / "p", "summary")) == by_session


def test_tables_that_are_not_of_this_version_are_made_again(session, tmp_path):
    old = shutil.copytree(session, tmp_path / "old")
    header, rest = (old / "summary.csv").read_bytes().split(b"\r\n", 1)
    (old / "summary.csv").write_bytes(header.replace(b",run_medians", b",other") + b"\r\n" + rest)
    launchgap("export", old, "--format", "parquet", "-o", tmp_path / "p", code=0)
    assert all(row["run_medians"] for row in rows(tmp_path / "p", "summary") if row["metric"])
    (old / "summary.csv").unlink()
    launchgap("export", old, "--format", "parquet", "-o", tmp_path / "again", code=0)
    assert rows(tmp_path / "again", "summary") == rows(tmp_path / "p", "summary")


def fake_python(folder, script):
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"LAUNCHGAP_PYTHON": str(path)}


DYING = {
    "no pyarrow": ("echo 'pyarrow is missing' >&2; exit 3", "pyarrow is missing"),
    "dies before it reads": ("case \"$*\" in *--check*) exit 0;; esac; echo 'no room' >&2; exit 3", "no room"),
    "dies while it reads": ('case "$*" in *--check*) exit 0;; esac; head -c 1000 >/dev/null; exit 9', "exited with 9"),
    "is killed": ('case "$*" in *--check*) exit 0;; esac; head -c 1000 >/dev/null; kill -9 $$', "killed"),
}


@pytest.mark.parametrize("how", DYING)
def test_python_that_dies_is_no_hang(session, tmp_path, how):
    script, said = DYING[how]
    out = tmp_path / "p"
    done = launchgap(
        "export", session, "--format", "parquet", "-o", out, code=3, timeout=60, **fake_python(tmp_path, script)
    )
    assert said in done.stderr
    assert not list(out.rglob("*.parquet")) if out.exists() else True


def test_no_python_is_said(session, tmp_path):
    done = launchgap("export", session, "--format", "parquet", "-o", tmp_path / "p", code=3, LAUNCHGAP_PYTHON="/no/python")
    assert "pyarrow" in done.stderr


def test_what_is_told_to_stop_leaves_what_was_there(session, tmp_path):
    launchgap("export", session, "--format", "parquet", "-o", tmp_path / "p", code=0)
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.parquet")}
    command = [LAUNCHGAP, "export", session, "--format", "parquet", "-o", tmp_path / "p"]
    slow = fake_python(tmp_path, 'case "$*" in *--check*) exit 0;; esac; exec sleep 60')
    done = subprocess.Popen(command, env=environment(None, **slow), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    time.sleep(2)
    done.send_signal(signal.SIGTERM)
    done.communicate(timeout=30)
    assert done.returncode == -signal.SIGTERM
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.parquet")} == before
    assert not [name for name in os.listdir(tmp_path / "p") if name.startswith(".")]


def test_a_file_is_no_folder(session, tmp_path):
    (tmp_path / "p").write_text("")
    done = launchgap("export", session, "--format", "parquet", "-o", tmp_path / "p", code=2)
    assert "no folder" in done.stderr
