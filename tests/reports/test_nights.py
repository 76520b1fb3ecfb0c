"""A session that was checked against a history: its verdicts, and each metric over the nights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import make_nights
import make_session
import pytest
from html_reader import Node
from report_paths import draw_page

IDLE = {"arm": "plain", "process_config": "launch", "case": "launch/null/api:driver/mode:idle", "metric": "roundtrip_ns"}
BURST = {"arm": "plain", "process_config": "launch", "case": "launch/null/api:driver/mode:burst", "metric": "per_launch_ns"}


@pytest.fixture
def draw(tmp_path: Path) -> Callable[..., Node]:
    """The page of one GPU with these metrics checked."""

    def make(*checked: tuple[dict, list[dict]], tone: str = "know") -> Node:
        builder = make_session.one_gpu()
        device = {"session_id": "s", "device_id": "GPU-00000000"}
        builder.with_details()
        builder.tables["verdicts.csv"] = [device | verdict for verdict, _ in checked]
        builder.tables["nights.csv"] = [device | night for _, nights in checked for night in nights]
        builder.tables["check_answers.csv"] = make_nights.answers("s", tone)
        return draw_page(tmp_path, builder.write(tmp_path / "session"))

    return make


@pytest.mark.parametrize("tone", ["bad", "warning", "know"])
def test_the_answer_comes_first(draw, tone: str) -> None:
    root = draw(make_nights.checked(IDLE, "slower"), tone=tone)
    (box,) = root.all("section", class_="headlines")[0].all("p", class_=f"answer box {tone}")
    assert box.words.strip() == make_nights.SENTENCES["answer"]
    assert "p99 12.5 times as long (3.90 µs → 48.8 µs)" in root.section("nights").words


def test_rates_stand_beside_each_verdict(draw) -> None:
    of_page = draw(make_nights.checked(IDLE, "slower"), make_nights.checked(BURST, "same")).section("nights")
    (table,) = of_page.all("table")
    heads = [head.words for head in table.all("th", scope="col")]
    assert heads[-2:] == ["false alarms", "finds"]
    first = [cell.words for cell in table.all("tr")[1].all("td")]
    assert first[1] == "slower"
    assert "erratic: within-run CV 2.4 times that of before" in first[2]
    assert first[-2:] == ["0.04 %", "5.5 %"]
    assert make_nights.SENTENCES["false-alarms"] in of_page.words


def test_without_rates_there_are_no_columns_for_them(draw) -> None:
    verdict, nights = make_nights.checked(IDLE, "same")
    verdict |= {"false_alarm_rate": "", "detectable": ""}
    of_page = draw((verdict, nights)).section("nights")
    assert "finds" not in [head.words for head in of_page.all("table")[0].all("th", scope="col")]


def test_what_changed_is_said_first_and_marked_where_it_changed(draw) -> None:
    of_page = draw(make_nights.checked(IDLE, "no-baseline")).section("nights")
    assert of_page.all("p")[0].words == make_nights.SENTENCES["change"]
    (figure,) = of_page.all("figure")
    assert "a 2026-03-31: driver 570.12 → 575.08" in figure.words
    assert "a" in [t.words for t in figure.all("text")]


def test_a_figure_says_in_words_what_it_shows(draw) -> None:
    (figure,) = draw(make_nights.checked(IDLE, "slower")).section("nights").all("figure")
    label = figure.all("svg")[0].attributes["aria-label"].replace("\xa0", " ")
    assert label.endswith("mode:idle, NVIDIA H200 (0): 70 nights, the last 7.70 µs, slower")


def test_a_session_that_was_not_checked_has_no_such_section(draw) -> None:
    assert draw().all("section", id="nights") == []
