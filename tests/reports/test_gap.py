"""The gap's sentences, and the table to choose by, as the page draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import make_gap
from html_reader import Node
from report_paths import draw_page


def draw(folders: list[Path], folder: Path, **tables: list[dict[str, Any]]) -> Node:
    folders = folders[:2]  # enough for what is read here
    comparison = make_gap.write(folder / "comparison", folders, **tables)
    return draw_page(folder, *folders, options=("--comparison", comparison))


def test_the_sentences_come_first_and_carry_their_numbers(gap: list[Path], tmp_path: Path) -> None:
    root = draw(gap, tmp_path)
    first, *_ = root.all("main")[0].all("section")
    assert first.attributes["id"] == "gap-answer"
    answers = first.all("p", class_="answer") + first.all("p", class_="answer box warning")
    assert [a.words for a in answers] == [row["sentence"] for row in make_gap.ANSWERS]
    (numbers,) = first.all("details")
    assert [item.words for item in numbers.all("li")] == make_gap.ANSWERS[0]["evidence"].split("; ")


def test_a_table_to_choose_by_has_the_best_the_worst_and_what_is_missing(gap: list[Path], tmp_path: Path) -> None:
    root = draw(gap, tmp_path)
    (table,) = root.all("table", class_="compare choose")
    rows = [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in table.all("tr")]
    assert rows == [
        ["per device", "host", "K40m", "H200"],
        ["FP32 products", "900 GFLOP/s", "3.20 TFLOP/s at worst 1.10 TFLOP/s", "48.0 TFLOP/s at worst 17.0 TFLOP/s"],
        ["BF16 products", "–", "not available: needs compute capability 8.0", "700 TFLOP/s"],
        ["launch call varies between runs", "–", "1.2 % at worst 5 % (upper end of its 95 % interval)", "–"],
        ["memory", "–", "–", "141 GiB"],
    ]


def test_what_is_simulated_or_published_says_so_above_its_column(gap: list[Path], tmp_path: Path) -> None:
    origins = {"host": "measured", "K40m": "published", "H200": "simulated"}
    values = [row | {"origin": origins[row["device"]]} for row in make_gap.VALUES]
    root = draw(gap, tmp_path, values=values)
    (table,) = root.all("table", class_="compare choose")
    heads = [head.words for head in table.all("th") if head.attributes.get("scope") == "col"]
    assert heads == ["per device", "host", "K40m published", "H200 simulated"]


def test_each_kind_of_work_has_its_best_and_its_worst_case(gap: list[Path], tmp_path: Path) -> None:
    root = draw(gap, tmp_path)
    (table,) = root.all("table", class_="compare classes")
    rows = [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in table.all("tr")]
    assert rows[1:] == [
        [
            *("fp32 large product", "2", "0", "1"),
            *("15× 14 to 16; matmul/library/size:4096/type:fp32/cache:warm", "1.10×", "–", "–", "–"),
            "9.0× matmul/library/size:1024/type:fp32/cache:warm",
        ],
        [
            *("launch", "2", "1", "–", "2.1× launch/null/api:driver/mode:burst", "–", "–", "–", "–"),
            "0.91× launch/null/api:driver/mode:idle",
        ],
    ]
    section = root.section("gap")
    assert "4 shared, 1 slower; 1 of 2 gained less than half of what the ceilings promise" in section.words
    assert "More than the GPU differs: cuBLAS 13.1.0 against 10.2.3." in section.words
    assert "supported by the newest" in section.words


def test_code_that_is_tuned_for_another_gpu_has_its_cost(gap: list[Path], tmp_path: Path) -> None:
    both = {"kernel": "Xgemm", "problem": "64x64", "configuration": "16,16", "own_ns": 1e6}
    tuned = [
        both | {"tuned_for": "A", "run_on": "B", "ns": 1.47e6, "times": 1.47, "verdict": "runs there"},
        both | {"tuned_for": "B", "run_on": "A", "verdict": "cannot run there: RuntimeFailedConfig"},
    ]
    root = draw(gap, tmp_path, tuned=tuned)
    (table,) = root.all("table", class_="compare tuned")
    rows = [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in table.all("tr")]
    assert rows == [
        ["kernel", "tuned for A", "tuned for B"],
        ["Xgemm on B", "1.47× 1.47 ms against 1.00 ms", "–"],
        ["Xgemm on A", "–", "cannot run there: RuntimeFailedConfig"],
    ]


def test_what_is_not_compared_has_no_such_section(gap: list[Path], tmp_path: Path) -> None:
    root = draw(gap, tmp_path, answers=[], classes=[], devices=[])
    assert root.all("section", id="gap-answer") == [] and root.all("section", id="gap") == []


def test_hostile_words_do_no_harm(gap: list[Path], tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    answers = [{"part": "gain", "tone": "know", "sentence": hostile, "evidence": hostile}]
    values = [{"device": hostile, "quantity": hostile, "unit": "ns", "value": 1, "case": '" onclick="x'}]
    root = draw(gap, tmp_path, answers=answers, values=values)
    section = root.section("gap-answer")
    assert section.all("script") == [] and hostile in section.text
