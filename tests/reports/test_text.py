"""Numbers and strings as people read them."""

from __future__ import annotations

import make_session
import pytest
from launchgap_report import text


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "ns", "–"),
        (0, "ns", "0 ns"),
        (7, "ns", "7 ns"),
        (85.34, "ns", "85.3 ns"),
        (999.4, "ns", "999 ns"),
        (999.9, "ns", "1.00 µs"),
        (2310, "ns", "2.31 µs"),
        (123456, "ns", "123 µs"),
        (1.5e9, "ns", "1.50 s"),
        (-2310, "ns", "-2.31 µs"),
        (0.0123, "TFLOP/s", "12.3 GFLOP/s"),
        (989.4, "TFLOP/s", "989 TFLOP/s"),
        (65536, "B", "64.0 KiB"),
        (0.5, "", "0.500"),
        (42, "launches", "42.0 launches"),
    ],
)
def test_a_quantity_has_three_digits_and_the_unit_that_suits(value: float | None, unit: str, shown: str) -> None:
    assert text.quantity(value, unit).replace("\xa0", " ") == shown


def test_the_program_and_the_page_write_a_quantity_alike() -> None:
    written = make_session.described()["quantities"]
    assert len(written) > 900
    other = [(v, u, shown, ours) for v, u, shown in written if (ours := text.quantity(v, u).replace("\xa0", " ")) != shown]
    assert not other, other[:5]


@pytest.mark.parametrize(("share", "shown"), [(None, "–"), (0, "0 %"), (0.042, "4.2 %"), (0.56, "56 %"), (0.0004, "0.04 %")])
def test_a_share_is_a_percentage(share: float | None, shown: str) -> None:
    assert text.percent(share).replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("two\r\nlines", "two lines"),
        ("a\x00b\x1bc", "a\ufffdb\ufffdc"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\ud800", "\ufffd"),
        ("中文 µs", "中文 µs"),
    ],
)
def test_unsafe_characters_are_shown_not_obeyed(raw: str, shown: str) -> None:
    assert text.clean(raw) == shown
