"""Puts devices in the order of their generations, by data/generations.csv.

The order only arranges columns. A name that matches no row is placed by its compute capability,
and no data-sheet value is ever guessed for it.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from .session import Device, ReportError
from .text import clean

_NOISE = {
    "NVIDIA",
    "TESLA",
    "GEFORCE",
    "QUADRO",
    "GRAPHICS",
    "DEVICE",
    "HGX",
    "HBM2",
    "HBM2E",
    "HBM3",
    "HBM3E",
    "PER",
    "DIE",
}
_FORM = re.compile(r"^(SXM|PCIE)\d*$")
_MEMORY = re.compile(r"^(\d+)GB$")


@dataclass(frozen=True)
class Name:
    """A product name taken apart: what must be equal, and what must only not contradict."""

    model: frozenset[str]
    form: str
    memory_gb: int | None


@dataclass(frozen=True)
class Generation:
    name: Name
    gpu: str
    capability: tuple[int, int] | None
    launched: str


def parse_name(text: str) -> Name:
    """`NVIDIA A100-SXM4-80GB` and `A100 SXM 80GB` become equal."""
    model: set[str] = set()
    form = ""
    memory: int | None = None
    for token in re.findall(r"[A-Z0-9.]+", re.sub(r"(\d+)\s*GB\b", r"\1GB", text.upper())):
        if match := _FORM.match(token):
            form = match.group(1)
        elif match := _MEMORY.match(token):
            memory = int(match.group(1))
        elif token not in _NOISE:
            model.add(token)
    return Name(frozenset(model), form, memory)


def parse_capability(text: str) -> tuple[int, int] | None:
    """(9, 0) from `9.0`; a tuple, since as a number 10.0 and 10.10 cannot be told from 10.1."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text.strip())
    return (int(match.group(1)), int(match.group(2))) if match else None


def load(path: Path) -> list[Generation]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ReportError(f"{path}: not valid CSV ({error})") from None
    if rows and not {"gpu", "compute_capability", "launch_year_month"} <= set(rows[0]):
        raise ReportError(f"{path}: needs the columns gpu, compute_capability, launch_year_month")
    return [
        Generation(
            parse_name(row["gpu"]),
            clean(row["gpu"]),
            parse_capability(row["compute_capability"] or ""),
            clean(row["launch_year_month"] or ""),
        )
        for row in rows
    ]


def match(device: Device, generations: list[Generation]) -> Generation | None:
    """The row that describes `device`, or None where its name says something else."""
    if device.is_host:
        return None
    name = parse_name(device.name)
    best: tuple[int, Generation] | None = None
    for generation in generations:
        other = generation.name
        if name.model != other.model or not name.model:
            continue
        if name.form and other.form and name.form != other.form:
            continue
        if name.memory_gb and other.memory_gb and name.memory_gb != other.memory_gb:
            continue
        score = 2 * (name.form == other.form) + (name.memory_gb == other.memory_gb)
        # A date is worth more than a closer name: without one the row cannot order anything.
        score += 4 * bool(generation.launched)
        if best is None or score > best[0]:
            best = (score, generation)
    return best[1] if best else None


def launched(device: Device, generations: list[Generation]) -> tuple[str, bool]:
    """Year and month of `device`'s launch, and whether it is known rather than estimated.

    Estimated: when the first known GPU of its compute capability, or of the nearest older one,
    came out. Empty when even that cannot be said.
    """
    found = match(device, generations)
    if found:
        # Of a form or memory size without a date of its own, the first of its model says when.
        of_model = [g.launched for g in generations if g.name.model == found.name.model and g.launched]
        if found.launched or of_model:
            return found.launched or min(of_model), True
    capability = parse_capability(device.record["compute_capability"])
    if capability is None:
        return "", False
    older = [g for g in generations if g.capability and g.launched and g.capability <= capability]
    if not older:
        return "0000-00", False
    nearest = max(g.capability for g in older)
    dates = [g.launched for g in older if g.capability == nearest]
    return (min(dates) if nearest == capability else max(dates)), False


def sort_key(device: Device, generations: list[Generation]) -> tuple:
    """Hosts first, then by launch date, compute capability and name."""
    if device.is_host:
        return (0, "", (0, 0), device.name)
    date, _ = launched(device, generations)
    capability = parse_capability(device.record["compute_capability"])
    return (1, date or "9999-99", capability or (9999, 0), device.name)
