"""Text for people: numbers with units, and strings that are safe to show.

Names of devices, reasons and paths come from drivers, users and other machines, so every
string passes `clean` when it is read, before any part of the page sees it.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

MISSING = "–"
NBSP = "\u00a0"

# C0 and C1 controls (an SVG parser refuses them), surrogates (UTF-8 cannot carry them), and
# characters that reorder the text around them, which could make one name look like another.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Returns `text` on one line, with each unsafe character shown as U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub("\ufffd", " ".join(re.split(r"[\t\r\n\u0085\u2028\u2029]+", text))).strip()


def shorten(text: str, length: int) -> str:
    """Cuts `text` to `length` characters; the cut is visible."""
    return text if len(text) <= length else text[: max(1, length - 1)] + "…"


def significant(value: float, digits: int = 3) -> str:
    """Plain decimal text with `digits` significant digits: 2.31, 12.3, 123, 1234."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - _exponent(rounded))
    return f"{value:.{decimals}f}" if 1e-9 <= abs(value) < 1e12 else f"{value:.{digits - 1}e}"


def _exponent(value: float) -> int:
    return int(f"{value:e}".split("e")[1])


# As in harness/core/text.cpp.
_LADDERS: dict[str, list[tuple[float, str]]] = {
    "ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
    "ms": [(1e3, "s"), (1.0, "ms"), (1e-3, "µs")],
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "TFLOP/s": [(1e3, "PFLOP/s"), (1.0, "TFLOP/s"), (1e-3, "GFLOP/s"), (1e-6, "MFLOP/s")],
    "GB/s": [(1e3, "TB/s"), (1.0, "GB/s"), (1e-3, "MB/s")],
    "1": [(1.0, "")],
    "B": [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")],
}
_ALIASES = {"bytes": "B", "byte": "B", "tflops": "TFLOP/s", "gbs": "GB/s"}


def scale_for(value: float, unit: str) -> tuple[float, str]:
    """The divisor and unit in which `value` reads best: (1000, "µs") for 2310 ns."""
    ladder = _LADDERS.get(_ALIASES.get(unit, unit))
    if ladder is None:
        return 1.0, unit
    # A value that rounds up to the next unit belongs there: 999.9 ns reads 1.00 µs.
    for factor, name in ladder:
        if abs(value) >= 0.9995 * factor:
            return factor, name
    return ladder[-1] if value else ladder[_unit_index(ladder)]


def _unit_index(ladder: list[tuple[float, str]]) -> int:
    return next(i for i, (factor, _) in enumerate(ladder) if factor == 1.0)


def quantity(value: float | None, unit: str, digits: int = 3) -> str:
    """`2.31 µs`, or an en dash when there is no value."""
    if value is None:
        return MISSING
    factor, name = scale_for(value, unit)
    number = significant(value / factor, digits)
    if name in ("ns", "B", "") and float(value).is_integer() and abs(value) < 1e12:
        number = f"{value:.0f}"
    return f"{number}{NBSP}{name}" if name else number


def about(value: float | None, unit: str) -> str:
    """A fact rather than a measurement: `141 GiB`, `132`, without zeros that say nothing."""
    if value is None:
        return ""
    factor, name = scale_for(value, unit)
    return f"{value / factor:.4g}{NBSP}{name}" if name else f"{value:.10g}"


def with_units(text: str) -> str:
    """Keeps each number of a sentence on one line with its unit."""
    return re.sub(r"(?<=\d) (?=%|(?:ns|µs|ms|s)\b)", NBSP, text)


def sentence(text: str) -> str:
    """Ends `text` with a full stop, unless it has an end of its own."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def percent(share: float | None) -> str:
    """`4.2 %` from 0.042, or an en dash: two digits, as the program's sentences have it."""
    if share is None:
        return MISSING
    size = abs(share) * 100
    text = f"{share * 100:.2g}" if 1e-4 <= size < 99.5 else f"{share * 100:.0f}"
    return f"{text}{NBSP}%"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 case`, `3 cases`."""
    return f"{number}{NBSP}{one if number == 1 else many or one + 's'}"


def number_word(number: float) -> str:
    """`two`, `three`; from ten on in digits."""
    words = "no one two three four five six seven eight nine".split()
    return words[int(number)] if 0 <= number < len(words) else f"{number:.0f}"


def join_and(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def marked(text: str) -> Markup:
    """Text of the program's own, whose `code` and *emphasis* are written as in its docs."""
    with_code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*(\w+)\*", r"<em>\1</em>", with_code))


def breakable(case: str) -> Markup:
    """A case's name that may be broken after a slash, rather than anywhere."""
    return Markup(str(escape(case)).replace("/", "/<wbr>"))
