"""Tables as Parquet: what is read back is what was in the tables, and the answers in docs/parquet.md are right."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from launchgap_report import parquet
from make_session import A100, H200, HOST, HOSTILE, Builder, columns, described, eight_gpus, hostile
from report_paths import ROOT

PAGE = (ROOT / "docs" / "parquet.md").read_text(encoding="utf-8")
HIVE = pa.dataset.partitioning(pa.schema({"date": pa.date32(), "node": pa.string()}), flavor="hive")
SAMPLES = columns()["samples.csv"]
HEADING = ",".join(SAMPLES).encode() + b"\r\n"
SAMPLE = b"s,n,d,0,0,plain,launch,c,0,0,api_ns,1.5,\r\n"
END = b"\r\n"  # an empty line
Result = subprocess.CompletedProcess


def command(tables: Path, output: Path, *more: str) -> list[str]:
    start = [sys.executable, "-m", "launchgap_report.parquet"]
    return [*start, "--tables", str(tables), "--output", str(output), *more]


def environment(path: str = "") -> dict[str, str]:
    own = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT / 'reports'}"}
    own.pop("LAUNCHGAP_DEBUG", None)
    return own


def launch(tables: Path, output: Path, samples: bytes | None = None, **more: object) -> Result[bytes]:
    """As launchgap starts it."""
    line = command(tables, output, *(["--samples", "-"] if samples is not None else []))
    return subprocess.run(line, input=samples or b"", env=environment(), capture_output=True, timeout=120, **more)


def launch_here(tables: Path, output: Path) -> tuple[int, str, str]:
    """The same without samples, and without a process of its own, which takes most of the time: its code and its words."""
    told, said = io.StringIO(), io.StringIO()
    with mock.patch.object(signal, "signal"), contextlib.redirect_stdout(told), contextlib.redirect_stderr(said):
        code = parquet.run(["--tables", str(tables), "--output", str(output)])
    return code, told.getvalue(), said.getvalue()


def export(tables: Path, output: Path, samples: bytes | None = None) -> None:
    if samples is None:
        assert launch_here(tables, output) == (0, "", "")
    else:
        result = launch(tables, output, samples)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def refused(tables: Path, output: Path, samples: bytes | None = None, **more: object) -> str:
    """The one line that is said; nothing of it is left."""
    before = files(output)
    result = launch(tables, output, samples, **more)
    said = result.stderr.decode()
    assert result.returncode == 3, said
    assert said.startswith("launchgap export: ") and said.count("\n") == 1 and "internal error" not in said, said
    assert files(output) == before
    return said


def refused_here(tables: Path, output: Path) -> str:
    code, told, said = launch_here(tables, output)
    assert (code, told) == (3, "") and said.startswith("launchgap export: ") and said.count("\n") == 1, said
    assert files(output) == {}
    return said


def files(output: Path) -> dict[str, bytes]:
    return {str(path.relative_to(output)): path.read_bytes() for path in output.glob("**/*") if path.is_file()}


def tables_of(output: Path) -> list[str]:
    return sorted(name for name in files(output) if not name.startswith(parquet.ASIDE))


def dataset(output: Path, table: str) -> pa.Table:
    return pa.dataset.dataset(output / table, partitioning=HIVE).to_table()


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rewritten(folder: Path, name: str, change: Callable[[list[dict[str, str]]], Iterable[dict[str, str]]]) -> None:
    rows = list(change(cells(folder / name)))
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns()[name])
        writer.writeheader()
        writer.writerows(rows)


def samples_of(folder: Path, n: int = 40) -> bytes:
    """Samples of the launch runs of a session, run by run."""
    random = np.random.default_rng(len(folder.name))
    lines = []
    for run in cells(folder / "runs.csv"):
        if run["process_config"] != "launch":
            continue
        start = [run[k] for k in ("session_id", "node", "device_id", "replicate", "attempt", "arm", "process_config")]
        if any(not cell.isascii() or set(cell) & set(',"\r\n') for cell in start):
            start = ['"{}"'.format(cell.replace('"', '""')) for cell in start]
        for sample in range(n):
            for metric in ("api_ns", "roundtrip_ns"):
                value = "" if sample == 7 else f"{random.lognormal(8, 0.2):.17g}"
                lines.append(",".join([*start, "launch/null/api:driver/mode:idle", "0", str(sample), metric, value, ""]))
    return HEADING + "".join(f"{line}\r\n" for line in lines).encode() + END


def typed(folder: Path, name: str) -> list[dict[str, object]]:
    """The rows of a CSV table by what tables.json says, without pyarrow."""
    kinds = {c["key"]: c["kind"] for t in described()["tables"] if t["name"] == name for c in t["columns"]}
    convert = {"text": str, "number": float, "count": int, "flag": "true".__eq__}
    return [{k: convert[kinds[k]](cell) if cell else None for k, cell in row.items()} for row in cells(folder / name)]


def in_order(rows: Iterable[dict[str, object]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.fixture(scope="session")
def session(made: Callable[[str], Path]) -> Path:
    return made("traced")


@pytest.fixture(scope="session")
def exported(session: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("parquet") / "out"
    export(session, output, samples_of(session))
    return output


# --- What is read back ---


@pytest.mark.parametrize("reader", ["pyarrow", "pandas", "duckdb"])
def test_every_cell_of_every_table_is_read_back(session: Path, exported: Path, reader: str, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(samples_of(session))
    names = [path.name for path in session.glob("*.csv") if cells(path)]
    assert len(names) > 15
    for name in [*names, "samples.csv"]:
        expected = typed(tmp_path if name == "samples.csv" else session, name)
        folder = exported / name.removesuffix(".csv")
        if reader == "pyarrow":
            found = dataset(exported, folder.name).to_pylist()
        elif reader == "pandas":
            frame = pd.read_parquet(folder, partitioning=HIVE, dtype_backend="numpy_nullable")
            nothing = frame.isna()
            found = [
                {key: None if none else v for (key, v), none in zip(row.items(), nones, strict=True)}
                for row, nones in zip(frame.to_dict("records"), nothing.to_numpy(), strict=True)
            ]
        else:
            source = duckdb.sql(f"FROM read_parquet('{folder}/*/*/*.parquet', hive_types = {{'node': VARCHAR}})")
            found = [dict(zip(source.columns, row, strict=True)) for row in source.fetchall()]
        for row in found:
            assert str(row.pop("date")) == "2026-11-20"
            if "node" not in columns()[name]:
                assert row.pop("node") == "dgx-08"
        assert in_order(found) == in_order(expected), name


def test_columns_have_the_order_types_units_and_meanings_of_the_description(exported: Path) -> None:
    kinds = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    for table in described()["tables"]:
        for path in (exported / table["name"].removesuffix(".csv")).glob("*/*/*.parquet"):
            kept = [c for c in table["columns"] if c["key"] != "node"]
            schema = pq.read_schema(path)
            assert [(f.name, f.type) for f in schema] == [(c["key"], kinds[c["kind"]]) for c in kept]
            told = [(f.metadata[b"unit"].decode(), f.metadata[b"meaning"].decode()) for f in schema]
            assert told == [(c["unit"], c["meaning"]) for c in kept]


def test_text_that_repeats_is_written_once(exported: Path) -> None:
    (path,) = (exported / "samples").glob("*/*/*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    text = [group.column(i) for i, f in enumerate(pq.read_schema(path)) if f.type == pa.string()]
    assert len(text) == 6 and all("RLE_DICTIONARY" in column.encodings for column in text)


def test_what_is_hostile_comes_through(made: Callable[[str], Path], tmp_path: Path) -> None:
    tables, output = Path(shutil.copytree(made("hostile"), tmp_path / "tables")), tmp_path / "out"
    for name in ("sequence.csv", "telemetry.csv"):  # whose block is a number
        rewritten(tables, name, lambda rows: [{**row, "block": "0"} for row in rows])
    export(tables, output, samples_of(tables, 3))
    bad = HOSTILE.replace("\x00", "")
    for name in ("devices.csv", "summary.csv", "slow_samples.csv", "timelines.csv"):
        table = dataset(output, name.removesuffix(".csv"))
        found = table.select(columns()[name] if "node" in columns()[name] else table.drop(["date", "node"]).column_names)
        assert in_order(found.to_pylist()) == in_order(typed(tables, name)), name
        assert set(table["node"].to_pylist()) == {bad}
    assert dataset(output, "samples").num_rows > 0
    assert hostile().session_id in dataset(output, "runs")["session_id"].to_pylist()


NODES = [
    "a b", "é中\u202e", "x/y=z", "100%", "[a]*?{b}", "a\nb\x7f", "", "a+b", "'q\"", "~..", "a&b;c,d", " lead", "007", "7",
    "\\", "2026-01-01", "%41", "it's:ok", "nan", "NA", ".", "..", "node=x",
]  # fmt: skip


def test_readers_see_each_name_of_a_node(session: Path, tmp_path: Path) -> None:
    tables = Path(shutil.copytree(session, tmp_path / "tables"))
    rewritten(tables, "devices.csv", lambda rows: [{**rows[0], "node": n, "device_index": i} for i, n in enumerate(NODES)])
    output = tmp_path / "out"
    export(tables, output)
    expected = {(i, name or None) for i, name in enumerate(NODES)}
    pairs = dataset(output, "devices").select(["device_index", "node"]).to_pylist()
    assert {(row["device_index"], row["node"]) for row in pairs} == expected
    source = f"read_parquet('{output}/devices/*/*/*.parquet', hive_types = {{'node': VARCHAR}})"
    assert set(duckdb.sql(f"SELECT device_index, node FROM {source}").fetchall()) == expected
    frame = pd.read_parquet(output / "devices", partitioning=HIVE)
    assert set(zip(frame.device_index, frame.node.where(frame.node.notna(), None), strict=True)) == expected


def test_rows_go_to_the_day_of_their_run_and_the_node_of_their_device(session: Path, tmp_path: Path) -> None:
    """Two nodes, and a night that goes on to the next day."""
    tables = Path(shutil.copytree(session, tmp_path / "tables"))
    devices = [row["device_id"] for row in cells(tables / "devices.csv")]
    node = {device: f"n{i % 2}" for i, device in enumerate(devices)}

    def begun(run: dict[str, str]) -> str:
        return {"0": "2026-11-20T23:50:00Z", "1": "2026-11-21T00:10:00Z"}.get(run["replicate"], "")

    for name in ("devices.csv", "summary.csv", "runs.csv"):
        rewritten(tables, name, lambda rows: [{**row, "node": node[row["device_id"]]} for row in rows])
    rewritten(tables, "runs.csv", lambda rows: [{**row, "begin_utc": begun(row)} for row in rows])
    export(tables, tmp_path / "out", samples_of(tables, 3))
    for name in ("runs", "samples", "run_quantiles", "sequence", "telemetry"):
        rows = dataset(tmp_path / "out", name).to_pylist()
        assert {str(row["date"]) for row in rows} == {"2026-11-20", "2026-11-21"}
        for row in rows:
            assert row["node"] == node[row["device_id"]]
            assert str(row["date"]) == ("2026-11-21" if row["replicate"] == 1 else "2026-11-20"), name
    for name in ("summary", "devices", "headlines"):  # of no single run
        rows = dataset(tmp_path / "out", name).to_pylist()
        assert {str(row["date"]) for row in rows} == {"2026-11-20"}
        assert all(row["node"] == node[row["device_id"]] for row in rows)


@pytest.mark.parametrize(("session_id", "day"), [("20260102T030405Z-77aa00", "2026-01-02"), ("mine", None)])
def test_without_a_run_the_session_has_the_day(session: Path, tmp_path: Path, session_id: str, day: str | None) -> None:
    tables = Path(shutil.copytree(session, tmp_path / "tables"))
    rewritten(tables, "devices.csv", lambda rows: [{**row, "session_id": session_id} for row in rows])
    (tables / "runs.csv").unlink()
    export(tables, tmp_path / "out")
    days = dataset(tmp_path / "out", "devices")["date"].to_pylist()
    assert {str(one) if one else None for one in days} == {day}


def test_few_files_are_open_and_a_place_that_comes_again_gets_another(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MOST_OPEN", 2)
    monkeypatch.setattr(parquet, "PIECE", 2000)
    monkeypatch.setattr(parquet, "ROW_GROUP", 10)
    tables = Path(shutil.copytree(session, tmp_path / "tables"))
    lines = [f"s,n{i // 20 % 3},GPU-0,0,0,plain,launch,c,0,{i},api_ns,{i}.5,\r\n" for i in range(200)]
    (tables / "samples.csv").write_bytes(HEADING + "".join(lines).encode())
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    parquet.export(tables, tmp_path / "out", None)
    assert dataset(tmp_path / "out", "samples").num_rows == 200
    assert sorted(dataset(tmp_path / "out", "samples")["sample"].to_pylist()) == list(range(200))
    names = sorted(path.name for path in (tmp_path / "out" / "samples").glob("*/node=n0/*"))
    own = "part-20261120T093000Z-7ace00"
    assert names == [f"{own}{more}.parquet" for more in ("-2", "-3", "-4", "")]
    metadata = [pq.ParquetFile(path).metadata for path in (tmp_path / "out" / "samples").glob("**/*.parquet")]
    assert max(one.num_rows for one in metadata) == 20
    assert {one.row_group(i).num_rows for one in metadata for i in range(one.num_row_groups)} <= {*range(1, 21)}


# --- Several sessions in one folder ---


def test_sessions_add_up_and_one_that_comes_again_replaces_its_own_files(session: Path, tmp_path: Path) -> None:
    output, other = tmp_path / "out", Builder("20261121T093000Z-000001", [H200, HOST], node="dgx-09").build()
    export(session, output)
    before = files(output)
    export(other.write(tmp_path / "other"), output)
    both = files(output)
    assert {name: both[name] for name in before} == before
    assert len(both) > len(before)
    assert set(dataset(output, "summary")["session_id"].to_pylist()) == {"20261120T093000Z-7ace00", other.session_id}

    again = Path(shutil.copytree(session, tmp_path / "again"))
    for name in ("devices.csv", "summary.csv", "runs.csv"):
        rewritten(again, name, lambda rows: [{**row, "node": "moved"} for row in rows])
    (again / "headlines.csv").unlink()
    export(again, output)
    assert {name for name in tables_of(output) if "7ace00" in name and "node=moved" not in name} == set()
    assert [name for name in tables_of(output) if name.startswith("headlines/")] == [
        name for name in both if name.startswith("headlines/") and "000001" in name
    ]
    assert {name: data for name, data in files(output).items() if "000001" in name} == {
        name: data for name, data in both.items() if "000001" in name
    }
    assert not (output / "headlines" / "date=2026-11-20" / "node=dgx-08").exists()


def test_a_session_that_is_called_like_a_second_file_is_not_mistaken_for_it() -> None:
    names = [parquet.file_name(session, number) for session in ("s", "s-2", "s-2-3", "s/2") for number in (1, 2, 3)]
    assert len(set(names)) == len(names)
    assert parquet.file_name("20261120T093000Z-783123") == "part-20261120T093000Z-783123.parquet"


def test_a_list_that_names_files_of_others_removes_none(session: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    export(session, output)
    kept = tmp_path / "part-20261120T093000Z-7ace00.parquet"
    kept.touch()
    (stranger := output / "summary" / "date=2026-11-20" / "node=dgx-08" / "part-x.parquet").touch()
    (listed,) = (output / parquet.ASIDE).iterdir()
    outside = f"../date=x/node=x/../../../{kept.name}"
    listed.write_text(json.dumps([str(stranger.relative_to(output)), outside, 5, f"../{kept.name}"]), encoding="utf-8")
    export(session, output)
    assert kept.exists() and stranger.exists()


def test_what_was_left_behind_long_ago_is_taken_away(session: Path, tmp_path: Path) -> None:
    aside = tmp_path / "out" / parquet.ASIDE
    old, new = (aside / f"part-20261120T093000Z-7ace00.parquet.{name}" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    export(session, tmp_path / "out")
    assert new.exists() and not old.exists()


# --- Memory ---


def many(rows: int) -> Iterable[bytes]:
    yield HEADING
    start = "20261120T093000Z-7ace00,dgx-08,GPU-{:08x},{},0,plain,launch,launch/grid/blocks:{},"
    values = [f"{v:.17g}" for v in np.random.default_rng(1).lognormal(8, 0.1, 1000)]
    for block in range(rows // 10_000):
        of_block = start.format(block // 60 % 4, block // 20 % 3, block % 20)
        yield "".join(f"{of_block}{i // 100},{i},api_ns,{values[i % 1000]},{i}\r\n" for i in range(10_000)).encode()
    yield END


def most_memory(session: Path, output: Path, rows: int) -> int:
    """MiB, of another process."""
    arguments = command(session, output, "--samples", "-")
    code = f"import os, resource, subprocess; subprocess.run({arguments!r}, check=True)\n"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], env=environment(), **pipes) as process:
        for piece in many(rows):
            process.stdin.write(piece)
        process.stdin.close()
        kib = int(process.stdout.read())
    assert process.returncode == 0
    counted = f"SELECT count(*) FROM '{output}/samples/*/*/*.parquet'"
    assert duckdb.sql(counted).fetchone() == (rows,)
    return kib >> 10


def test_memory_does_not_grow_with_the_samples(session: Path, tmp_path: Path) -> None:
    few = most_memory(session, tmp_path / "few", 1_200_000)
    more = most_memory(session, tmp_path / "more", 4_000_000)
    assert more < few + 150 and more < 700


# --- What cannot be exported ---


@pytest.fixture
def copied(session: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(session, tmp_path / "tables"))


def line_of(name: str, **given: str) -> str:
    return ",".join(given.get(key, "") for key in columns()[name])


SUMMARY = ",".join(columns()["summary.csv"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{SUMMARY}\r\na,b\r\n", f"summary.csv line 2: CSV parse error: Expected {len(columns()['summary.csv'])} columns"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', runs='1')}\r\n{line_of('summary.csv', p50='abc')}\r\n", "line 3: p50: "),
        (f"{SUMMARY}\r\n{line_of('summary.csv', reason=chr(34) + 'x' + chr(10) + 'y' + chr(34))}\r\na\r\n", "line 4: CSV"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', p50='nan')}\r\n", "line 2: p50 is not finite"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', runs='1.5')}\r\n", "line 2: runs: CSV conversion error to int64"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', runs='9' * 19)}\r\n", "line 2: runs: CSV conversion error to int64"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', simulated='yes')}\r\n", "line 2: simulated: CSV conversion error to bool"),
        (f"{SUMMARY}\r\n{line_of('summary.csv', reason=chr(0xDCFF))}\r\n", "line 2: reason: "),
        (f'{SUMMARY}\r\n"unclosed', "summary.csv line 2: not valid CSV (a quote is not closed)"),
        ("session_id,node\r\n", "summary.csv: no column device_id, device_name"),
        (f"{SUMMARY},more\r\n", "summary.csv: a heading occurs twice, or tables.json does not have it"),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(copied: Path, tmp_path: Path, content: str, says: str) -> None:
    (copied / "summary.csv").write_bytes(content.encode(errors="surrogateescape"))
    assert says in refused_here(copied, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "samples.csv line 1: it ends before it is complete"),
        (HEADING, "samples.csv line 2: it ends before it is complete"),
        (HEADING + SAMPLE, "samples.csv line 3: it ends before it is complete"),
        (HEADING + SAMPLE * 420_000 + b"s,n\r\n\r\n", "samples.csv line 420002: CSV parse error: Expected 13 columns"),
    ],
)
def test_samples_that_end_too_early_or_make_no_sense_are_refused(
    session: Path, tmp_path: Path, content: bytes, says: str
) -> None:
    assert says in refused(session, tmp_path / "out", content)


def test_a_failure_leaves_what_was_there_before(copied: Path, tmp_path: Path) -> None:
    export(copied, tmp_path / "out")
    refused(copied, tmp_path / "out", HEADING)


def test_a_full_disk_is_one_line_and_leaves_nothing(session: Path, tmp_path: Path) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    said = refused(session, tmp_path / "out", b"".join(many(50_000)), preexec_fn=small_disk)
    assert f"{tmp_path / 'out'}: File too large" in said
    assert not (tmp_path / "out").exists()


def test_what_is_no_folder_or_no_file_is_named(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'}" in refused(copied, tmp_path / "file")
    assert "no such file" in refused(tmp_path / "nothing", tmp_path / "out")
    (copied / "other.csv").touch()
    assert "other.csv: tables.json does not describe it" in refused(copied, tmp_path / "out")
    (copied / "other.csv").unlink()
    (copied / "runs.csv").unlink()
    os.mkfifo(copied / "runs.csv")
    assert "runs.csv: is no file" in refused(copied, tmp_path / "out")
    for name in ("runs.csv", "devices.csv"):
        (copied / name).unlink()
    assert "name no session" in refused(copied, tmp_path / "out")


def test_an_unknown_kind_of_column_is_named(copied: Path, tmp_path: Path) -> None:
    text = (copied / "tables.json").read_text(encoding="utf-8").replace('"kind": "flag"', '"kind": "date"')
    (copied / "tables.json").write_text(text, encoding="utf-8")
    assert "is of an unknown kind, 'date'" in refused(copied, tmp_path / "out")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_leaves_nothing(session: Path, tmp_path: Path, which: signal.Signals) -> None:
    output = tmp_path / "out"
    line, pipes = command(session, output, "--samples", "-"), {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, env=environment(), **pipes) as process:
        for piece in many(200_000):
            if piece is not END:
                process.stdin.write(piece)
        limit = time.monotonic() + 30
        while not any(path.stat().st_size for path in output.glob("_launchgap/*/*")) and time.monotonic() < limit:
            time.sleep(0.01)
        process.send_signal(which)
        said = process.stderr.read().decode()
        process.wait(30)
        process.stdin = None
    assert (process.returncode, said) == (3, "launchgap export: interrupted\n")
    assert not output.exists()


@pytest.mark.parametrize("name", ["pyarrow", "numpy", "markupsafe"])
def test_check_names_the_missing_package_and_the_way_out(tmp_path: Path, name: str) -> None:
    line = [sys.executable, "-m", "launchgap_report.parquet", "--check"]
    assert subprocess.run(line, env=environment(), capture_output=True, text=True).stderr == ""
    (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('not here', name='{name}')", encoding="utf-8")
    result = subprocess.run(line, env=environment(str(tmp_path)), capture_output=True, text=True)
    assert result.returncode == 3 and result.stderr.count("\n") == 1
    assert f"the Python package {name} is missing (not here); install it" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--tables", "x"], ["--samples", "x"], ["--no-such-option"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    line = [sys.executable, "-m", "launchgap_report.parquet", *arguments]
    result = subprocess.run(line, env=environment(), capture_output=True, text=True)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


# --- The questions of the page ---


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Sessions of three nodes and nights, as CSV and as Parquet: with a slow GPU, two generations, and some that fail."""
    base = tmp_path_factory.mktemp("fleet")
    slow = replace(H200, tflops=30.0, trip=12_000)
    for night in range(3):
        day = f"2026-11-{20 + night}"
        first = Builder(f"{day.replace('-', '')}T093000Z-00000a", [H200, slow, H200, H200, HOST], 3, night, "node-a").build()
        second = Builder(f"{day.replace('-', '')}T093000Z-00000b", [A100, A100, H200], 3, 7 + night, "node-b").build()
        sessions = [first, second]
        if night == 1:
            failing = eight_gpus()
            failing.session_id = f"{day.replace('-', '')}T093000Z-00000c"
            sessions.append(failing)
        for builder in sessions:
            for rows in builder.tables.values():
                for row in rows:
                    row["session_id"] = builder.session_id
                    if "begin_utc" in row:
                        row["begin_utc"] = day + row["begin_utc"][10:]
            folder = builder.write(base / "csv" / builder.session_id)
            (folder / "samples.csv").write_bytes(samples_of(folder).removesuffix(END))
            export(folder, base / "fleet")
    return base / "csv", base / "fleet"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="session")
def answers(fleet: tuple[Path, Path]) -> list[pd.DataFrame]:
    """What DuckDB says to each question of the page, in order."""
    views, *questions = (block.replace("'fleet/", f"'{fleet[1]}/") for block in blocks("sql"))
    with duckdb.connect() as connection:
        connection.execute(views)
        return [connection.execute(question).df() for question in questions]


@pytest.fixture(scope="session")
def read(fleet: tuple[Path, Path]) -> Callable[[str], pd.DataFrame]:
    """A table of all sessions from CSV, with the day of each session."""

    def table(name: str) -> pd.DataFrame:
        paths = sorted(fleet[0].glob(f"*/{name}"))
        frame = pd.concat([pd.read_csv(path, dtype={"params": str, "compute_capability": str}) for path in paths])
        return frame.assign(date=pd.to_datetime(frame.session_id.str[:8]))

    return table


def same(found: pd.DataFrame, expected: pd.DataFrame, key: list[str]) -> None:
    assert len(expected) > 0
    found, expected = (frame.sort_values(key).reset_index(drop=True) for frame in (found, expected))
    pd.testing.assert_frame_equal(found, expected[list(found.columns)], check_dtype=False, rtol=1e-9)


def measured(read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    summary = read("summary.csv")
    return summary[(summary.arm == "plain") & (summary.status == "ok")]


def test_there_is_an_answer_to_each_question(answers: list[pd.DataFrame]) -> None:
    assert len(answers) == len(re.findall(r"^\*\*.*\?\*\*", PAGE, re.MULTILINE)) == 6
    assert all(len(answer) > 0 for answer in answers)


def test_the_slowest_devices(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    rows = measured(read)
    rows = rows[rows.process_config == "launch"]
    chosen = rows[
        (rows.metric == "roundtrip_ns") & (rows.benchmark == "launch/null") & (rows.params == "api:driver/mode:idle")
    ]
    groups = chosen.groupby(["node", "device_id"])
    expected = pd.DataFrame(
        {"device_name": groups.device_name.first(), "p50": groups.p50.median(), "sessions": groups.session_id.nunique()}
    ).reset_index()
    same(answers[0], expected.nlargest(10, "p50"), ["node", "device_id"])
    assert answers[0].p50.is_monotonic_decreasing
    assert "GPU-00000001" in set(answers[0][answers[0].node == "node-a"].head(1).device_id)


def test_quantiles_of_nodes_over_nights(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    rows = read("samples.csv")
    rows = rows[(rows.arm == "plain") & (rows.metric == "api_ns")]
    expected = [
        {"node": node, "case": case, "metric": metric, "date": date, "n": len(group)}
        | {"p50": np.quantile(group.value.dropna(), 0.5), "p99": np.quantile(group.value.dropna(), 0.99)}
        for (node, case, metric, date), group in rows.groupby(["node", "case", "metric", "date"])
    ]
    same(answers[1], pd.DataFrame(expected), ["node", "case", "metric", "date"])
    assert set(answers[1].node) == {"node-a", "node-b", "dgx-07"} and answers[1].date.nunique() == 3


def test_launches_that_differ_between_runs(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    rows = read("run_quantiles.csv")
    rows = rows[(rows.arm == "plain") & (rows.process_config == "launch")]
    devices = read("devices.csv")[["session_id", "device_id", "node"]]
    rows = rows.merge(devices, on=["session_id", "device_id"])
    expected = []
    for key, group in rows.groupby(["session_id", "node", "device_id", "case", "metric"]):
        medians = group.p50.to_numpy()
        spread = np.std(medians, ddof=1) / np.median(medians)
        if len(medians) >= 3 and spread > 0.02:
            expected.append([*key, len(medians), spread])
    key = ["session_id", "node", "device_id", "case", "metric"]
    same(answers[2], pd.DataFrame(expected, columns=[*key, "runs", "spread"]), key)
    assert answers[2].spread.is_monotonic_decreasing


def test_devices_below_what_is_usual(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    rows = measured(read)
    rows = rows[rows.p50 > 0]
    kind = ["device_name", "process_config", "benchmark", "params", "metric"]
    usual = rows.groupby(kind).p50.median().rename("usual").reset_index()
    rows = rows.merge(usual, on=kind)
    rows["of_usual"] = np.where(rows.direction == "higher", rows.p50 / rows.usual, rows.usual / rows.p50)
    key = ["date", "node", "device_id", "benchmark", "params", "metric"]
    same(answers[3], rows[rows.of_usual < 0.75], key)
    slow = answers[3][answers[3].node == "node-a"]
    assert set(slow.device_id) == {"GPU-00000001"} and {"tflops", "roundtrip_ns"} <= set(slow.metric)


def test_one_case_on_two_generations(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    rows = measured(read)
    key = ["process_config", "benchmark", "params", "metric"]
    older, newer = (rows[rows.compute_capability == cc].groupby(key).p50.median() for cc in ("8.0", "9.0"))
    expected = pd.DataFrame({"older": older, "newer": newer}).dropna().reset_index()
    higher = expected.metric == "tflops"
    expected["times"] = np.where(higher, expected.newer / expected.older, expected.older / expected.newer)
    same(answers[4], expected, key)
    assert (answers[4][answers[4].metric == "tflops"].times > 2).all()


def test_failures_by_reason(answers: list[pd.DataFrame], read: Callable[[str], pd.DataFrame]) -> None:
    summary, devices = read("summary.csv"), read("devices.csv")
    failed = summary[summary.status != "ok"]
    closed = devices[~devices.usable.astype(bool)].assign(status="unusable")
    expected = [
        [status, reason, cases * len(group), group[["node", "device_id"]].drop_duplicates().shape[0], group.date.max()]
        for rows, cases in ((failed, 1), (closed, 0))
        for (status, reason), group in rows.groupby(["status", "reason"])
    ]
    expected = pd.DataFrame(expected, columns=["status", "reason", "cases", "devices", "last"])
    same(answers[5], expected, ["status", "reason"])
    assert {"failed", "unsupported", "skipped", "unusable"} <= set(answers[5].status)


def test_pandas_reads_it_as_the_page_says(fleet: tuple[Path, Path], read: Callable[[str], pd.DataFrame]) -> None:
    in_pandas, _in_spark = blocks("python")
    found: dict[str, pd.DataFrame] = {"pandas": pd, "pyarrow": pa}
    exec(in_pandas.replace('"fleet/', f'"{fleet[1]}/'), found)
    summary = found["summary"]
    assert len(summary) == len(read("summary.csv"))
    assert set(summary.node) == {"node-a", "node-b", "dgx-07"} and summary.date.nunique() == 3


def test_the_page_is_short_and_plain() -> None:
    assert len(PAGE.split()) < 900
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    for sentence in re.split(r"[.:;!?]\s|\n\n|\n- ", prose):
        assert len(sentence.split()) <= 32, sentence
