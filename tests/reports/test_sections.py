"""What variation, time and the traced arm add to the page: there with data, absent without."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import make_session
import pytest
from html_reader import Node, read
from launchgap_report import __main__ as program
from launchgap_report import sequence
from launchgap_report.text import with_units
from report_paths import draw_page, pairs

Page = Callable[[str], str]
Draw = Callable[[make_session.Builder], Node]
IDLE = "launch/null/api:driver/mode:idle"
SECTIONS = {
    "parts": "Where does a launch’s time go?",
    "launches": "How does it vary, and at which level?",
    "sequence": "What happened over time?",
    "observer": "What does tracing itself cost?",
    "kernels": "Which kernels ran?",
}


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    return lambda builder: draw_page(tmp_path, builder.write(tmp_path / "session"))


def small(devices: int = 1, replicates: int = 2, families: tuple[str, ...] = ("launch", "matmul")) -> make_session.Builder:
    specs = [make_session.Spec("NVIDIA H200") for _ in range(devices)]
    builder = make_session.Builder("s", specs, replicates, families=families)
    return builder.build().with_details()


def figures(node: Node) -> list[str]:
    """The words that stand for each figure, without legends."""
    labels = [svg.attributes["aria-label"] or "" for f in node.all("figure") for svg in f.all("svg")]
    return [label.replace("\xa0", " ") for label in labels]


def rows(table: Node) -> list[list[str]]:
    return [
        [c.text.replace("\xa0", " ") for c in row.children if isinstance(c, Node)] for row in table.all("tbody")[0].all("tr")
    ]


def boxes(root: Node) -> list[Node]:
    return [n for n in root.section("findings").all("div") if str(n.attributes.get("class")).startswith("box")]


# There with data, absent without


@pytest.mark.parametrize(("identifier", "heading"), SECTIONS.items())
def test_a_section_has_its_question_and_its_link(page: Page, identifier: str, heading: str) -> None:
    root = read(page("traced"))
    assert root.section(identifier).all("h2")[0].text == heading
    assert root.all("nav")[0].all("a", href=f"#{identifier}")
    assert len(figures(root.section(identifier))) >= (0 if identifier == "kernels" else 5)


@pytest.mark.parametrize("kind", ["eight_gpus", "killed", "empty"])
def test_a_session_without_the_tables_has_none_of_it(page: Page, kind: str) -> None:
    root = read(page(kind))
    for identifier in SECTIONS:
        if identifier not in ("launches", "findings"):
            assert not root.all("section", id=identifier)
            assert not root.all("a", href=f"#{identifier}")


@pytest.mark.parametrize("name", sorted(make_session.DETAIL_TABLES))
def test_each_table_may_be_missing(name: str, draw: Draw) -> None:
    builder = small(replicates=1)
    del builder.tables[name]
    assert_whole(draw(builder))


def test_tables_may_be_empty(draw: Draw) -> None:
    builder = small()
    builder.tables.update({name: [] for name in make_session.DETAIL_TABLES})
    root = draw(builder)
    assert_whole(root)
    assert not root.all("section", id="parts") and not root.all("section", id="observer")


def test_every_number_may_be_missing(draw: Draw) -> None:
    builder = small()
    for name in make_session.DETAIL_TABLES:
        for row in builder.tables[name]:
            row.update({k: "" for k, v in row.items() if isinstance(v, (int, float))})
    assert_whole(draw(builder))


def assert_whole(root: Node) -> None:
    assert not re.search(r"\b(nan|None|inf)\b", root.all("main")[0].text)
    assert len(root.all("table", id="case-table")) == 1


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("parts.csv", "call_ns"),
        ("variation.csv", "cv"),
        ("observer.csv", "effect"),
        ("sequence.csv", "p50"),
        ("telemetry.csv", "sm_clock_mhz"),
    ],
)
def test_a_number_that_is_none_is_refused_with_its_line(
    name: str, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = small()
    builder.tables[name][0][column] = "nan"
    folder = builder.write(tmp_path / "session")
    assert program.run([*pairs([folder]), "-o", str(tmp_path / "out.html")]) == 3
    assert f"{name} line 2: {column} is 'nan', not a number" in capsys.readouterr().err


def test_nine_devices_have_nine_figures(draw: Draw) -> None:
    root = draw(small(devices=9, families=("launch",)))
    for identifier in ("parts", "sequence", "observer"):
        assert len(figures(root.section(identifier))) == 9


# Each device in a sentence


def test_the_page_opens_with_each_device_in_a_line(page: Page) -> None:
    root = read(page("traced"))
    main = root.all("main")[0]
    headlines = main.all("section")[0]
    assert headlines.attributes["class"] == "headlines"
    lines = [row.words for row in headlines.all("tbody")[0].all("tr")]
    assert len(lines) == 5
    assert re.match(r"NVIDIA H200 \(0\) steady 2.\d\d µs.* % ?steady$", lines[0])
    (details,) = headlines.all("details")
    assert "NVIDIA H200 (0): A launch call takes 2300 ns (p50)." in details.words


def test_a_device_that_is_slower_than_its_kind_is_named(draw: Draw) -> None:
    builder = small(2)
    words = "10 % slower than the others of its kind in round trips (8.7 % to 12 %)."
    slower = {"verdict": "slower than its kind", "tone": "warning", "kind": words}
    builder.tables["answers.csv"] = [row | (slower if i == 1 else {}) for i, row in enumerate(builder._answers())]
    lines = draw(builder).all("section", class_="headlines")[0].all("tbody")[0].all("tr")
    assert words in lines[1].words and lines[1].attributes["class"] == "warning"
    assert not [x for i, x in enumerate(lines) if i != 1 and "of its kind" in x.text]


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    text = with_units("takes 2.5 µs; by 2 %; of 3 msec; 12 runs")
    assert text == "takes 2.5\xa0µs; by 2\xa0%; of 3 msec; 12 runs"


# Where a launch's time goes


def test_parts_are_of_the_empty_launch_and_stand_in_a_table_too(page: Page) -> None:
    parts = read(page("traced")).section("parts")
    assert figures(parts)[0] == ("NVIDIA H200 (0): p50 5.30 µs; p99 6.22 µs; p99.9 14.5 µs")
    table = rows(parts.all("table")[0])
    assert len(table) == 5 * 3  # the cross-check's launches are not among them
    assert table[2] == ["NVIDIA H200 (0)", "p99.9", "11.5 µs", "1.50 µs", "1.50 µs", "14.5 µs", "6.90 µs", "601"]
    assert parts.all("a", href="#observer")


def test_overhead_is_explained_where_there_is_some(draw: Draw) -> None:
    builder = small()
    for row in builder.tables["parts.csv"]:
        row["overhead_ns"] = 0
    assert "overhead records cover" not in draw(builder).section("parts").text


# At which level it varies


def test_levels_are_of_the_plain_arm_and_of_its_kind(page: Page) -> None:
    labels = figures(read(page("traced")).section("launches"))[:5]
    assert labels[0] == (
        "NVIDIA H200 (0), coefficients of variation: "
        "launch call within a run 17 %, between runs 0 %, between devices of a kind 5.2 %; "
        "round trip within a run 17 %, between runs 1.3 %, between devices of a kind 5.2 %; "
        "burst, each within a run 17 %, between runs 1.3 %"
    )
    assert "of a kind" not in labels[4]  # there is one host


def test_further_levels_of_tracing_are_not_mixed_in(draw: Draw) -> None:
    builder = small()
    for row in builder.tables["variation.csv"]:
        row["process_config"] = "launch+trace_level=kernels"
    assert "coefficient of variation" not in draw(builder).section("launches").text


def test_times_that_crowd_around_several_values_say_so(draw: Draw) -> None:
    builder = small()
    for row in builder.tables["summary.csv"]:
        row["modes"] = 2 if row["metric"] == "api_ns" else 1
    assert draw(builder).section("launches").text.count("form two clusters") == 2


# Over time


def test_time_is_drawn_of_the_plain_arm(page: Page) -> None:
    label = figures(read(page("traced")).section("sequence"))[0]
    found = re.match(
        r"NVIDIA H200 \(0\), round trip of an empty launch over 6 runs: medians of blocks "
        r"([\d.]+) µs to ([\d.]+) µs; SM clock 1950 to 1980 MHz; launching thread",
        label,
    )
    assert found and 6 < float(found[1]) < float(found[2]) < 7  # the traced arm has twice that


def test_what_never_changed_or_was_always_zero_is_not_drawn(page: Page) -> None:
    sequence_text = read(page("traced")).section("sequence").words
    assert "Unchanged: power 120 W and temperature 45 °C." in sequence_text
    assert "another CPU" not in sequence_text


def test_what_held_the_clocks_is_said_in_words(page: Page) -> None:
    text = read(page("traced")).section("sequence").words
    assert "the clocks were held down by the power limit (72.0 ms in launch)" in text
    assert "in 30 readings: power limit (software) in all and heat (software) in all." in text


def test_one_block_and_an_unknown_clock_reason_can_be_drawn(draw: Draw) -> None:
    builder = small(replicates=1)
    builder.tables["sequence.csv"] = builder.tables["sequence.csv"][:1]
    for row in builder.tables["telemetry.csv"]:
        if "clock_reasons" in row:
            row["clock_reasons"] = 0x400
    assert "bit 0x400 in all" in draw(builder).section("sequence").text


@pytest.mark.parametrize("n", [1, 7, 200, 10_000])
def test_thinned_points_keep_every_extreme(n: int) -> None:
    points = [(float(x), float((x * 7919) % 1009)) for x in range(n)]
    kept = sequence.thin(points, 100)
    assert kept == sorted(set(kept)) and set(kept) <= set(points)
    assert len(kept) <= 102 or n <= 200
    for end in (min, max):
        assert end(v for _, v in kept) == end(v for _, v in points)


# What tracing costs


def test_the_cost_of_tracing_has_its_interval_in_the_table(page: Page) -> None:
    observer = read(page("traced")).section("observer")
    assert "never subtracted" in observer.text
    assert rows(observer.all("table")[0])[0] == [
        *("NVIDIA H200 (0)", "api_ns", "2.30 µs", "+250 ns (+190 ns to +310 ns)"),
        *("−22.5 ns (−82.5 ns to +37.5 ns)", "+1.17 µs (+1.10 µs to +1.23 µs)"),
    ]


def test_too_few_runs_have_no_effect_and_are_named(draw: Draw) -> None:
    builder = small()
    for row in builder.tables["observer.csv"]:
        row.update(effect="", effect_lo="", effect_hi="")
    observer = draw(builder).section("observer")
    assert figures(observer) == []
    assert rows(observer.all("table")[0])[0][-1] == "too few runs"


@pytest.mark.parametrize(("agrees", "word"), [("true", "agrees"), ("false", "disagrees")])
def test_the_cross_check_is_a_line_with_numbers(agrees: str, word: str, draw: Draw) -> None:
    builder = small()
    builder.tables["flag_check.csv"][0].update(agrees=agrees, before_kernel=3)
    line = draw(builder).section("observer").all("ul", class_="findings")[0].all("li")[0]
    assert line.all("span")[0].text == word
    assert "of 6000 launches, the host saw 3 flags before the kernel began" in line.words
    assert "985 ns" in line.words and "1.31 µs" in line.words


# Kernels


def test_kernels_are_collapsed_and_without_the_gate(page: Page) -> None:
    kernels = read(page("traced")).section("kernels")
    assert "launchgap_gate" not in kernels.text
    details = kernels.all("details")
    assert len(details) == 5 and not any("open" in d.attributes for d in details)
    case, kernel, grid, block, number, mean = rows(kernels.all("table")[0])[0]
    assert case == "matmul/library/size:256/type:fp32/cache:warm"
    assert kernel.startswith("ampere_sgemm_128x64_nn")
    assert (grid, block, number, mean) == ("2×2×1", "256×1×1", "100", "2.50 µs")


def test_thousands_of_kernels_are_cut_and_say_so(draw: Draw) -> None:
    builder = small()
    row = builder.tables["kernels.csv"][-1]
    builder.tables["kernels.csv"] = [{**row, "kernel": f"k{i}"} for i in range(3000)]
    kernels = draw(builder).section("kernels")
    assert len(rows(kernels.all("table")[0])) == 150
    assert "2850 more rows not shown" in kernels.words


def test_both_arms_stand_in_the_table_and_can_be_chosen(page: Page) -> None:
    root = read(page("traced"))
    table = root.all("table", id="case-table")[0]
    heads = [h.text for h in table.all("th", scope="col")]
    arms = {r[heads.index("arm")] for r in rows(table)}
    assert arms == {"plain", "traced"}
    options = root.all("select", id="arm")[0].all("option")
    assert [o.text for o in options] == ["all", "plain", "traced"]
    assert not read(page("host_only")).all("select", id="arm")


def test_a_statistic_shows_its_interval_beside_the_number(page: Page) -> None:
    table = read(page("traced")).all("table", id="case-table")[0]
    titles = {td.attributes.get("title") for td in table.all("td")}
    assert any(re.fullmatch(r"[\d.]+; 95 %: 0.0280 to 0.0320", t or "") for t in titles)
