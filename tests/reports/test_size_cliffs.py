"""Sizes that take longer than larger ones, as the page draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import make_session
from html_reader import Node
from report_paths import draw_page

SERIES = "matmul/shapes/shape:*x*x*/library:cublas/type:fp16"


def draw(folder: Path, rows: list[dict[str, Any]]) -> list[Node]:
    builder = make_session.one_gpu()
    device = builder._id(builder.specs[0])
    key = {"session_id": builder.session_id, "device_id": device, "benchmark": "matmul/shapes", "case": SERIES}
    key |= {"process_config": "matmul", "metric": "device_ns", "runs": 10}
    builder.tables["cliffs.csv"] = [key | row for row in rows]
    return draw_page(folder, builder.write(folder / "session")).all("section", id="cliffs")


def size(number: int, pad_to: int, gain: float, verdict: str = "none") -> dict[str, Any]:
    width = 0.02 if verdict != "too few processes" else None
    ends = {"gain_lower": gain - width, "gain_upper": gain + width} if width else {}
    return {"size": number, "pad_to": pad_to, "gain": gain, "verdict": verdict, **ends}


def test_a_series_has_a_figure_and_its_long_sizes_a_row(tmp_path: Path) -> None:
    sizes = [size(2040 + i, 2040 + i, 1) for i in range(20)]
    sizes[4] = size(2044, 2050, 1.22, "cliff")
    sizes[9] = size(2049, 2050, 1.07)
    (section,) = draw(tmp_path, sizes)
    (figure,) = section.all("figure")
    assert "2044: 1.22 times 2050, 2049: 1.07 times 2050" in str(figure.all("svg")[0].attributes["aria-label"])
    (body,) = section.all("tbody")
    rows = [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in body.all("tr")]
    assert rows == [
        [SERIES, "2044", "2050", "1.22", "1.20 to 1.24", "cliff"],
        [SERIES, "2049", "2050", "1.07", "1.05 to 1.09", "none"],
    ]
    assert "Too few processes" not in section.words


def test_without_a_verdict_it_says_so(tmp_path: Path) -> None:
    (section,) = draw(tmp_path, [size(100 + i, 101 + i, 1.1, "too few processes") for i in range(60)])
    assert "Too few processes for a verdict" in section.words
    assert len(section.all("tbody")[0].all("tr")) == 40 and "20 more sizes in cliffs.csv" in section.words


def test_where_the_order_was_not_random_it_says_how_to_get_a_verdict(tmp_path: Path) -> None:
    (section,) = draw(tmp_path, [size(100 + i, 101 + i, 1.1, "order not random") for i in range(6)])
    assert "not measured in a random order (run with --shapes or --sweep)" in section.words


def test_each_time_of_a_case_is_a_series(tmp_path: Path) -> None:
    series = "allocation/latency/allocator:direct/bytes:*"
    sizes = [
        size(100 + i, 100 + i, 1) | {"case": series, "metric": metric} for i in range(6) for metric in ("call_ns", "free_ns")
    ]
    sizes[5] |= size(102, 103, 1.2, "cliff")
    (section,) = draw(tmp_path, sizes)
    labels = [str(f.all("svg")[0].attributes["aria-label"]) for f in section.all("figure")]
    assert labels == [
        f"{series} (free_ns): 102: 1.20 times 103",
        f"{series} (call_ns): no size takes more than 1.05 times as long as a larger one",
    ]


def test_of_no_series_there_is_no_section(tmp_path: Path) -> None:
    assert draw(tmp_path, []) == []


def test_a_series_of_one_size_or_of_equal_gains_is_drawn(tmp_path: Path) -> None:
    (section,) = draw(tmp_path, [size(64, 64, 1)])
    assert section.all("figure") and not section.all("tbody")
