"""Tables as Parquet: `python3 -m launchgap_report.parquet --tables DIR --output OUT [--samples -]`.

Reads a session's tables in pieces and writes OUT/TABLE/date=DAY/node=NAME/part-SESSION.parquet, as docs/parquet.md says:
first aside, and into their places once all are whole. Exit codes are launchgap's, with one line on stderr.
"""

from __future__ import annotations

import base64
import bisect
import csv
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from .command_line import DONE, FAILED, Program

absent: ImportError | None = None
try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    from . import registry
    from .tables import ReportError
except ImportError as missing:
    absent = missing
if TYPE_CHECKING:
    from .registry import Column

PIECE = 16 << 20
"""Bytes that are read at once."""
LONGEST_ROW = 4 * PIECE
ROW_GROUP = 1_000_000
"""So many rows wait to be written, of all open files together; those of the file that has most of them are a group."""
MOST_OPEN = 64
NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""What readers take for a day or node that is not known."""
ASIDE = "_launchgap"
"""The folder of OUT for what is not whole yet, and for a list of each session's files. Readers pass over such a name."""
LEFT_BEHIND_S = 86_400
"""So old is what no export will come back to."""
RUN = ("records_file", "node", "device_id", "replicate", "attempt", "arm", "process_config")
"""The columns that tell of which run a row is, as far as a table has them."""
TYPES = {"text": "string", "number": "double", "count": "int64", "flag": "bool"}
Place = tuple[str, str]
"""A day and a node, either of which may be empty."""


def as_name(text: str) -> str:
    """A part of a path that readers take for `text`. Spark takes %E9 for a character and not for a byte of UTF-8: what is
    no ASCII stays as it is."""
    return re.sub(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""", lambda m: f"%{ord(m[0]):02X}", text) or NOWHERE


def file_name(session: str, number: int = 1) -> str:
    """A session that is called like another's second file is written differently."""
    name = re.sub(r"-(?=\d{1,5}$)", "%2D", as_name(session))
    return f"part-{name}.parquet" if number == 1 else f"part-{name}-{number}.parquet"


# --- Reading ---


class StandardInput:
    """Reads as a file does. A signal that comes between two reads of a file's buffer would wait for the writer."""

    def __init__(self) -> None:
        self._woken, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)

    def read(self, length: int) -> bytes:
        pieces: list[bytes] = []
        while length > 0:
            ready, _, _ = select.select([0, self._woken], [], [])  # after a signal its handler runs here
            if 0 not in ready:
                continue
            if not (piece := os.read(0, length)):
                break
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)


Source = BinaryIO | StandardInput


def _row_end(data: bytes) -> int:
    """After the last whole row: at a line break that an even number of quotes stand before."""
    quotes, end = data.count(b'"'), len(data)
    while (newline := data.rfind(b"\n", 0, end)) >= 0:
        quotes -= data.count(b'"', newline, end)
        if quotes % 2 == 0:
            return newline + 1
        end = newline
    return 0


def _pieces(path: Path, stream: Source, marked: bool) -> Iterator[tuple[int, bytes]]:
    """Whole rows, and the line that they begin at. `marked`: the last line must be empty, which tells all of a stream from
    one whose writer died."""
    line, held, last = 1, b"", b""
    while piece := stream.read(PIECE):
        last, data = (last + piece[-4:])[-4:], held + piece
        end = _row_end(data)
        held = data[end:]
        if end:
            yield line, data[:end]
            line += data.count(b"\n", 0, end)
        elif len(data) > LONGEST_ROW:
            raise ReportError(f"{path} line {line}: not valid CSV (more than {LONGEST_ROW >> 20} MiB and no end of the row)")
    if held.count(b'"') % 2:
        raise ReportError(f"{path} line {line}: not valid CSV (a quote is not closed)")
    if marked and not last.replace(b"\r", b"").endswith(b"\n\n"):
        raise ReportError(f"{path} line {line}: it ends before it is complete (its last line is not empty)")
    if held:
        yield line, held


class Table:
    """A table that tables.json describes: the columns of its files, and its rows from CSV."""

    def __init__(self, path: Path, columns: dict[str, Column]) -> None:
        self.path, self.columns = path, columns
        for c in columns.values():
            if c.kind not in TYPES:
                raise ReportError(f"{path.parent / 'tables.json'}: {path.name}: {c.key} is of an unknown kind, {c.kind!r}")
        # Text repeats, so here each is kept once; readers are told that it is plain text, by what Arrow keeps in Parquet.
        words = pa.dictionary(pa.int32(), pa.string())
        self.types = {key: words if c.kind == "text" else pa.type_for_alias(TYPES[c.kind]) for key, c in columns.items()}
        kept = [c for c in columns.values() if c.key not in ("date", "node")]  # of which a file's path tells
        shown = [pa.field(c.key, TYPES[c.kind], metadata={"unit": c.unit, "meaning": c.meaning}) for c in kept]
        self.told = {"ARROW:schema": base64.b64encode(pa.schema(shown).serialize()).decode()}
        self.schema = pa.schema([(c.key, self.types[c.key]) for c in kept])

    def batches(self, stream: Source | None = None) -> Iterator[pa.Table]:
        """The rows in pieces, of a stream or else of its file. Raises ReportError with the line that makes no sense."""
        if stream is None and self.path.exists() and not self.path.is_file():  # a pipe would be waited for
            raise ReportError(f"{self.path}: is no file")
        header: list[str] = []
        with nullcontext(stream) if stream else self.path.open("rb") as opened:
            for line, data in _pieces(self.path, opened, stream is not None):
                if not header:
                    first, data = data[: (end := data.find(b"\n") + 1 or len(data))], data[end:]
                    header, line = self._header(first.decode("utf-8-sig", "replace")), line + 1
                if data.strip():
                    yield self._parsed(header, line, data)

    def _header(self, text: str) -> list[str]:
        header = next(csv.reader([text]), [])
        if gone := [key for key in self.columns if key not in header]:
            raise ReportError(f"{self.path}: no column {', '.join(gone)}")
        if len(header) > len(self.columns):
            raise ReportError(f"{self.path}: a heading occurs twice, or tables.json does not have it")
        return header

    def _read(self, header: list[str], data: bytes) -> pa.Table:
        told = {"null_values": [""], "strings_can_be_null": True, "true_values": ["true"], "false_values": ["false"]}
        table = pa_csv.read_csv(
            pa.BufferReader(data),
            pa_csv.ReadOptions(column_names=header, block_size=len(data) + 1),
            pa_csv.ParseOptions(newlines_in_values=b'"' in data),
            pa_csv.ConvertOptions(column_types=self.types, include_columns=list(self.columns), **told),
        )
        for key, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is False:
                raise pa.ArrowInvalid(f"{key} is not finite")
        return table

    def _parsed(self, header: list[str], line: int, data: bytes) -> pa.Table:
        try:
            return self._read(header, data)
        except pa.ArrowInvalid:
            pass  # it does not know in which line
        ends, quotes, begin = [0], 0, 0
        while begin < len(data):
            end = data.find(b"\n", begin) + 1 or len(data)
            quotes += data.count(b'"', begin, end)
            begin = end
            if quotes % 2 == 0:
                ends.append(end)

        def fault(begin: int, end: int) -> str:
            try:
                self._read(header, data[begin:end])
            except pa.ArrowInvalid as error:
                return str(error)
            return ""

        row = bisect.bisect_left(range(1, len(ends)), True, key=lambda i: bool(fault(0, ends[i])))
        said = re.sub(r"In CSV column #(\d+): ", lambda m: f"{header[int(m[1])]}: ", fault(ends[row], ends[row + 1]))
        line += data.count(b"\n", 0, ends[row])
        raise ReportError(f"{self.path} line {line}: {said[:300]}")


# --- Where rows go ---


def _day(utc: str | None) -> str:
    found = re.match(r"\d{4}-\d\d-\d\d(?=T)", utc or "")
    return found[0] if found else ""


class Places:
    """The day on which each run began, and the node of each device."""

    def __init__(self, tables: dict[str, Table]) -> None:
        names = [name for name in ("devices.csv", "runs.csv", "sessions.csv") if name in tables]
        rows = {name: [row for batch in tables[name].batches() for row in batch.to_pylist()] for name in names}
        self.runs = rows.get("runs.csv", [])
        every = [row for of_table in rows.values() for row in of_table]
        self.session: str = next((row["session_id"] for row in every if row["session_id"]), "")
        self.host: str = next((row["node"] for row in every if row["node"]), "")
        self.nodes = {row["device_id"]: row["node"] or "" for row in reversed(every) if row.get("device_id")}
        named = re.match(r"(\d{4})(\d\d)(\d\d)T", self.session)
        days = [day for row in every if (day := _day(row.get("begin_utc")))]
        self.day = min(days, default="-".join(named.groups()) if named else "")

    def of(self, table: Table) -> PlacesOfTable:
        keys = [key for key in RUN if key in table.columns]
        days: dict[tuple[Any, ...], str] = {}
        for run in self.runs if {"device_id", "replicate"} <= set(keys) else ():
            if day := _day(run["begin_utc"]):
                key = tuple(run[k] for k in keys)
                days[key] = min(day, days.get(key, day))
        return PlacesOfTable(self, keys, days)


def _as_arrow(values: np.ndarray) -> pa.Array:
    """As `pa.array`, which like `to_numpy` imports pandas where there is one; that takes longer than a small session."""
    kind, data = (pa.bool_(), np.packbits(values, bitorder="little")) if values.dtype == bool else (pa.int64(), values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


@dataclass
class PlacesOfTable:
    session: Places
    keys: list[str]
    days: dict[tuple[Any, ...], str]
    """By those keys; none of a table whose rows are of no single run"""
    numbers: dict[Place, int] = field(default_factory=dict)

    def split(self, batch: pa.Table) -> Iterator[tuple[Place, pa.Table]]:
        """The rows of each place, in their order."""
        changes = np.arange(len(batch)) == 0
        columns = [batch.column(key).combine_chunks() for key in self.keys]
        for column in columns:
            values = column.indices if pa.types.is_dictionary(column.type) else column
            codes = np.from_dlpack(values.dictionary_encode("encode").indices)
            changes[1:] |= codes[1:] != codes[:-1]
        starts = np.flatnonzero(changes)
        cells = [column.take(_as_arrow(starts)).to_pylist() for column in columns]
        places = [self._place(run) for run in (zip(*cells, strict=True) if cells else [()])]
        numbers = [self.numbers.setdefault(place, len(self.numbers)) for place in places]
        of_rows = np.repeat(numbers, np.diff(starts, append=len(batch)))
        here = dict(zip(places, numbers, strict=True))
        for place, number in here.items():
            yield place, batch if len(here) == 1 else batch.filter(_as_arrow(of_rows == number))

    def _place(self, run: tuple[Any, ...]) -> Place:
        named = dict(zip(self.keys, run, strict=True))
        node = named["node"] if "node" in named else self.session.nodes.get(named.get("device_id"), self.session.host)
        return self.days.get(run, self.session.day), node or ""


# --- Writing ---


@dataclass
class Part:
    """A file that is being written."""

    sink: pa.NativeFile
    writer: pq.ParquetWriter
    rows: int = 0
    held: list[pa.Table] = field(default_factory=list)

    def flush(self) -> None:
        if self.rows:
            self.writer.write_table(pa.concat_tables(self.held).unify_dictionaries().combine_chunks(), self.rows)
        self.held, self.rows = [], 0

    def close(self) -> None:
        self.flush()
        self.writer.close()
        self.sink.close()

    def give_up(self) -> None:
        self.writer.is_open = False  # else it writes an end when it is thrown away
        self.sink.close()


class Export:
    """What one session has in `output`: all of it or, until `publish`, what was there before."""

    def __init__(self, output: Path, session: str) -> None:
        self.output, self.session, self.aside = output, session, output / ASIDE
        self.aside.mkdir(parents=True, exist_ok=True)
        own = f"{file_name(session)}."
        for old in self.aside.iterdir():  # of an export that was killed
            if old.name.startswith(own) and old.is_dir() and time.time() - old.stat().st_mtime > LEFT_BEHIND_S:
                shutil.rmtree(old, ignore_errors=True)
        self.scratch = Path(tempfile.mkdtemp(prefix=own, dir=self.aside))
        self.list = self.aside / f"{own}json"
        self.open: OrderedDict[Place, Part] = OrderedDict()
        self.files: dict[str, Path] = {}
        """By where they go below `output`"""

    def write(self, table: Table, places: PlacesOfTable, stream: Source | None = None) -> None:
        for batch in table.batches(stream):
            for place, rows in places.split(batch):
                part = self._part(table, place)
                part.held.append(rows.select(table.schema.names))
                part.rows += len(rows)
                while sum(p.rows for p in self.open.values()) >= ROW_GROUP:
                    max(self.open.values(), key=lambda p: p.rows).flush()
        while self.open:
            self._close_oldest()

    def _close_oldest(self) -> None:
        place = next(iter(self.open))
        self.open[place].close()
        del self.open[place]  # not before: if the disk is full it is given up

    def _part(self, table: Table, place: Place) -> Part:
        if place not in self.open:
            if len(self.open) == MOST_OPEN:
                self._close_oldest()
            folder = f"{as_name(table.path.stem)}/date={as_name(place[0])}/node={as_name(place[1])}"
            number = 1
            while (file := f"{folder}/{file_name(self.session, number)}") in self.files:
                number += 1
            self.files[file] = self.scratch / str(len(self.files))
            sink = pa.OSFile(str(self.files[file]), "wb")
            self.open[place] = Part(sink, pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False))
            self.open[place].writer.add_key_value_metadata(table.told)
        self.open.move_to_end(place)
        return self.open[place]

    def publish(self) -> None:
        """Puts each file into its place at once, and removes those that the session had in others."""
        before = self._listed()
        for file in self.files:
            (self.output / file).parent.mkdir(parents=True, exist_ok=True)
        self._keep_list(before | set(self.files))
        for file, path in self.files.items():
            os.replace(path, self.output / file)
        for file in before - set(self.files):
            (self.output / file).unlink(missing_ok=True)
            _remove_empty(*(self.output / file).parents[:3])
        self._keep_list(set(self.files))

    def _listed(self) -> set[str]:
        """The session's files of before; a list that names others was not written here."""
        own = re.escape(file_name(self.session).removesuffix(".parquet")) + r"(-\d+)?\.parquet"
        try:
            listed = json.loads(self.list.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            listed = []
        return {file for file in map(str, listed) if re.fullmatch(rf"[^/]+/date=[^/]+/node=[^/]+/{own}", file)}

    def _keep_list(self, files: set[str]) -> None:
        beside = self.scratch / "files.json"
        beside.write_text(json.dumps(sorted(files), indent=0), encoding="utf-8")
        os.replace(beside, self.list)

    def end(self) -> None:
        for part in self.open.values():
            part.give_up()
        shutil.rmtree(self.scratch, ignore_errors=True)
        _remove_empty(self.aside, self.output)


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def export(folder: Path, output: Path, samples: Source | None) -> None:
    """Raises ReportError or OSError, and leaves `output` as it was."""
    described = registry.load(folder).tables
    paths = {path.name: path for path in sorted(folder.glob("*.csv"))}
    if samples:
        paths["samples.csv"] = folder / "samples.csv"
    if unknown := [name for name in paths if name not in described]:
        raise ReportError(f"{paths[unknown[0]]}: tables.json does not describe it")
    tables = {name: Table(path, described[name]) for name, path in paths.items()}
    places = Places(tables)
    if not places.session:
        raise ReportError(f"{folder}: devices.csv, runs.csv and sessions.csv name no session")
    whole = Export(output, places.session)
    try:
        for name, table in tables.items():
            whole.write(table, places.of(table), samples if name == "samples.csv" else None)
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, signal.SIG_IGN)  # what follows is short, and better done than half done
        whole.publish()
    finally:
        whole.end()


# --- The command line ---


PROGRAM = Program("launchgap export", "write the tables")


def run(arguments: list[str]) -> int:
    parser = PROGRAM.parser(prog="python3 -m launchgap_report.parquet", description="Writes a session's tables as Parquet.")
    parser.add_argument("--tables", metavar="DIR", type=Path, help="folder with tables.json and what it describes as CSV")
    parser.add_argument("--output", metavar="OUT", type=Path, help="folder to add to; other sessions' files there stay")
    parser.add_argument("--samples", choices=["-"], help="samples.csv comes on standard input; an empty line is its end")
    parser.add_argument("--check", action="store_true", help="only say whether everything needed is installed")
    options = parser.parse_args(arguments)
    if absent is not None:
        name = (absent.name or "pyarrow").partition(".")[0]
        PROGRAM.say(f"the Python package {name} is missing ({absent}); install it: {sys.executable} -m pip install {name}")
        return FAILED
    if options.check:
        return DONE
    if options.tables is None or options.output is None:
        parser.error("--tables DIR and --output OUT are needed")
    try:
        export(options.tables, options.output, StandardInput() if options.samples else None)
    except ReportError as error:
        PROGRAM.say(str(error))
        return FAILED
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        PROGRAM.say(f"{error.filename or options.output}: {reason}")
        return FAILED
    return DONE


def main() -> int:
    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    for which in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, stop)
    if absent is None:
        pa.enable_signal_handlers(False)  # else a wait for standard input goes on after a signal
    return PROGRAM.main(run)


def leave(code: int) -> NoReturn:
    """Ends without what C++ undoes at an exit: one of Arrow's threads may be about to begin or to end just then, and the
    process would be aborted. All is written and closed by now."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
