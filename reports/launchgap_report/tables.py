"""Reads CSV tables and JSON files strictly: what does not make sense is refused with its line."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .text import clean

if TYPE_CHECKING:
    from .registry import Column


class ReportError(Exception):
    """A fault that the user can mend; its text is the one line that they see."""


@dataclass
class Record:
    """One row of a table: its text, and the numbers that were in it (missing ones are absent)."""

    text: dict[str, str]
    number: dict[str, float]

    def __getitem__(self, key: str) -> str:
        return self.text.get(key, "")

    def get(self, key: str) -> float | None:
        return self.number.get(key)

    def flag(self, key: str) -> bool | None:
        """True, false, or None when nothing is recorded."""
        return {"true": True, "false": False}.get(self.text.get(key, "").lower())


def read_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ReportError(f"{path}: is no file")
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except FileNotFoundError:
        raise ReportError(f"{path}: no such file") from None
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}") from None


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
    # newline="" keeps line breaks within quoted cells, which are part of the cell.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
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
    for line, header, cells in read_rows(path, columns):
        number = {}
        for key, cell in zip(header, cells, strict=True):
            if key in columns and columns[key].numeric:
                value = cell_number(path, line, key, cell)
                if value is not None:
                    number[key] = value
        rows.append((line, Record(dict(zip(header, map(clean, cells), strict=True)), number)))
    return rows


def _check_header(path: Path, header: list[str], required: Iterable[str]) -> None:
    missing = [key for key in required if key not in header]
    if missing:
        raise ReportError(f"{path}: no column {', '.join(missing)}")
    if len(set(header)) != len(header):
        raise ReportError(f"{path}: a heading occurs twice")
