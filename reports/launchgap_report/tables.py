"""Reads CSV tables and JSON files strictly: what does not make sense is refused with its line."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from .text import clean

if TYPE_CHECKING:
    from .registry import Column


class ReportError(Exception):
    """A fault that the user can mend; its text is the one line that they see."""


class Header:
    """The headings of a table, and which of them are over numbers."""

    def __init__(self, names: list[str], numeric: Iterable[str] = ()) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        self.numeric = frozenset(numeric)


class Record:
    """One row of a table: its text, and the numbers that are in it."""

    # A table may have a million rows, so a row is no dictionary of its own.
    __slots__ = ("_cells", "_header")

    def __init__(self, header: Header, cells: tuple[str, ...]) -> None:
        self._header = header
        self._cells = cells

    def __getitem__(self, key: str) -> str:
        place = self._header.places.get(key)
        return "" if place is None else self._cells[place]

    def get(self, key: str) -> float | None:
        """None for a missing number, and for what is text."""
        if key not in self._header.numeric:
            return None
        cell = self[key]
        return None if not cell or cell.isspace() else float(cell)

    def flag(self, key: str) -> bool | None:
        """True, false, or None when nothing is recorded."""
        return {"true": True, "false": False}.get(self[key].lower())


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ReportError(f"{path}: is no file")
        # newline="" keeps line breaks within quoted cells, which are part of the cell.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            yield file
    except FileNotFoundError:
        raise ReportError(f"{path}: no such file") from None
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}") from None


def read_text(path: Path) -> str:
    with _opened(path) as file:
        return file.read()


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise ReportError(f"{path}: not valid JSON ({error})") from None
    except RecursionError:
        raise ReportError(f"{path}: not valid JSON (nested too deeply)") from None


def clean_json(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(v) for v in value]
    if isinstance(value, dict):
        return {clean(k): clean_json(v) for k, v in value.items()}
    return value


def _number(text: str) -> float | None:
    """A finite number, or None; "nan" and "inf" are no numbers here."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_rows(path: Path, required: Iterable[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Each row of an RFC 4180 file with its line and the headings; an empty file has none."""
    csv.field_size_limit(16 << 20)
    with _opened(path) as file:
        reader = csv.reader(file, strict=True)
        header: list[str] | None = None
        try:
            for cells in reader:
                if not cells:
                    continue
                if header is None:
                    header = cells
                    _check_header(path, header, required)
                elif len(cells) != len(header):
                    raise ReportError(f"{path} line {reader.line_num}: {len(cells)} cells under {len(header)} headings")
                else:
                    yield reader.line_num, header, cells
        except csv.Error as error:
            raise ReportError(f"{path} line {reader.line_num}: not valid CSV ({error})") from None


def cell_number(path: Path, line: int, key: str, cell: str) -> float | None:
    """The number in a cell, None for an empty one."""
    if not cell or cell.isspace():
        return None
    value = _number(cell)
    if value is None:
        raise ReportError(f"{path} line {line}: {key} is {clean(cell)!r}, not a number")
    return value


def read_table(path: Path, columns: Mapping[str, Column]) -> list[tuple[int, Record]]:
    """Every row with its line; the table must have all of the columns."""
    rows: list[tuple[int, Record]] = []
    numeric: list[tuple[int, str]] = []
    head: Header | None = None
    kept: dict[str, str] = {}  # cells as they are shown, each once
    numbers = {""}  # cells that were found to be some
    for line, header, cells in read_rows(path, columns):
        if head is None:
            numeric = [(i, key) for i, key in enumerate(header) if key in columns and columns[key].numeric]
            head = Header(header, [key for _, key in numeric])
        for place, key in numeric:
            if cells[place] not in numbers:
                cell_number(path, line, key, cells[place])
                numbers.add(cells[place])
        for cell in cells:
            if cell not in kept:
                kept[cell] = clean(cell)
        rows.append((line, Record(head, tuple([kept[cell] for cell in cells]))))
    return rows


def _check_header(path: Path, header: list[str], required: Iterable[str]) -> None:
    missing = [key for key in required if key not in header]
    if missing:
        raise ReportError(f"{path}: no column {', '.join(missing)}")
    if len(set(header)) != len(header):
        raise ReportError(f"{path}: a heading occurs twice")
