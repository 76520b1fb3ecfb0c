"""What happened around the oddest samples: there with data, absent without, and never too much."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import make_session
import make_timelines
import pytest
from html_reader import Node, read
from report_paths import draw_page

Page = Callable[[str], str]
KEY = {"arm": "traced", "process_config": "launch", "case": "launch/null/api:driver/mode:idle"}


@pytest.fixture
def draw(tmp_path: Path) -> Callable[..., Node]:
    """The page of one GPU with slow samples, each with what happened around it."""

    def make(*samples: tuple[dict, list[dict]]) -> Node:
        builder = make_session.one_gpu()
        builder.with_details()
        device = {"session_id": "s", "device_id": "GPU-00000000"}
        builder.tables["slow_samples.csv"] = [device | slow for slow, _ in samples]
        builder.tables["timelines.csv"] = [device | event for _, around in samples for event in around]
        return draw_page(tmp_path, builder.write(tmp_path / "session"))

    return make


def test_a_timeline_says_what_the_sample_was_and_what_happened_during_it(draw) -> None:
    root = draw(make_timelines.slow_sample(KEY, 5000))
    (figure,) = root.section("timelines").all("figure")
    assert "launch/null/api:driver/mode:idle, run 0, sample 17: launch_ns 45.0 µs" in figure.all("figcaption")[0].words
    notes = " ".join(p.words for p in figure.all("p"))
    assert "9.0 times the median, 5.00 µs. The extra 43.0 µs are in the call itself." in notes
    # What takes longest stands first; what ended before the sample began is not in it.
    assert re.search(
        r"During it: copy 61\.0 µs; call cuLaunchKernel 48\.0 µs; overhead command buffer full 43\.0 µs;", notes
    )
    assert "taken off its CPU 2×; SM clock 1980 MHz; power 128 W; clocks held down by the power limit." in notes in notes
    drawn = [t.words for t in figure.all("text")]
    # The host's rows above, streams below.
    rows = [t for t in drawn if t in {"samples", "thread 4242", "thread 99", "waits", "memory", "stream 13", "stream 7"}]
    assert rows == ["samples", "thread 4242", "thread 99", "waits", "memory", "stream 13", "stream 7"]
    assert root.all("nav")[0].all("a", href="#timelines")


def test_the_command_can_be_pasted(draw) -> None:
    (figure,) = draw(make_timelines.slow_sample(KEY, 5000)).section("timelines").all("figure")
    (command,) = [c.words for c in figure.all("code")]
    assert re.fullmatch(r"launchgap investigate \S+/session launch/null/api:driver/mode:idle", command)


def test_of_a_recording_the_command_is_an_export(page: Page) -> None:
    commands = [c.words for c in read(page("recorded")).section("timelines").all("code")]
    assert any(re.fullmatch(r"launchgap export \S+ --format chrome-trace -o trace.json.gz", c) for c in commands)


def test_the_oddest_stands_first(draw) -> None:
    samples = [make_timelines.slow_sample(KEY, 5000, ratio=r, sample=i) for i, r in enumerate((2.0, 30.0, 4.0))]
    captions = [c.words for c in draw(*samples).section("timelines").all("figcaption")]
    assert [re.search(r"sample (\d+)", c).group(1) for c in captions] == ["1", "2", "0"]


def test_what_has_no_timeline_is_in_no_figure(draw) -> None:
    slow, _ = make_timelines.slow_sample(KEY, 5000, view_begin_ns="", view_end_ns="", odd="false")
    root = draw((slow, []))
    assert not root.all("section", id="timelines")
    assert not root.all("a", href="#timelines")


def test_a_sample_without_events_and_one_whose_file_is_damaged_say_so(draw) -> None:
    nothing, _ = make_timelines.slow_sample(KEY, 5000, sample=1)
    damaged, _ = make_timelines.slow_sample(KEY, 5000, sample=2, problem="x.gz: it ends in the middle of a block")
    text = draw((nothing, []), (damaged, [])).section("timelines").words
    assert "Nothing was recorded around it." in text
    assert "Its events cannot be read: x.gz: it ends in the middle of a block." in text


def test_of_many_rows_the_page_shows_some_and_says_how_many_not(draw) -> None:
    slow, around = make_timelines.slow_sample(KEY, 5000, left_out=1234)
    around = [{**around[4], "row": f"thread {i}"} for i in range(30)]
    (figure,) = draw((slow, around)).section("timelines").all("figure")
    assert "Not drawn: 1234 events and 21 rows more." in figure.words
    assert len([t for t in figure.all("text") if t.words.startswith("thread ")]) == 9


def test_a_gap_that_explains_the_sample_is_told(draw) -> None:
    slow, around = make_timelines.slow_sample(KEY, 5000, quiet_ns=40_000, quiet_begin_ns=2_000)
    assert "For 40.0 µs from 2.00 µs on nothing ran that was recorded." in draw((slow, around)).section("timelines").words


def test_recorded_names_are_text(draw) -> None:
    slow, around = make_timelines.slow_sample(KEY, 5000, telemetry="power_w `a` *b* <i>c</i>")
    around = [{**event, "name": "<b>*x*</b> `k` $y$", "row": "<u>$r$"} for event in around]
    (figure,) = draw((slow, around)).section("timelines").all("figure")
    assert not figure.all("b") and not figure.all("u") and not figure.all("em")
    assert len(figure.all("code")) == 1, "the command alone"
    assert "<b>*x*</b> `k` $y$" in figure.words
