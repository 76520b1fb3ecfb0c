"""What makes a launch cost: a figure per question, and what others have published."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import make_costs
import make_session
import pytest
from html_reader import Node, read
from report_paths import draw_page

Page = Callable[[str], str]
SUBJECTS = {b["key"]: b["question"] for b in make_session.described()["benchmarks"] if b["figures"]}
TABLES = ("published.csv", "fit.csv")


def section(page: Page, kind: str = "costs", which: str = "costs") -> Node:
    return read(page(kind)).section(which)


def draw(builder: make_session.Builder, folder: Path) -> Node:
    return draw_page(folder, builder.write(folder / "session"))


def figures(node: Node) -> dict[str, Node]:
    return {f.all("figcaption")[0].words: f for f in node.all("figure")}


def words(figure: Node) -> str:
    return str(figure.all("svg")[0].attributes["aria-label"]).replace("\xa0", " ")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_question_has_a_figure_with_its_spread(page: Page, subject: str) -> None:
    which = "costs" if subject.startswith("launch/") else "library-code"
    (blocks,) = section(page, which=which).all("div", class_="answers")
    answers = [d for d in blocks.children if isinstance(d, Node)]
    (answer,) = [d for d in answers if d.all("h3")[0].words == SUBJECTS[subject]]
    assert answer.all("figure")
    for figure in answer.all("figure"):
        assert re.search(r"spread \d|run medians \d", words(figure)), words(figure)
        pale = [e for e in figure.all() if e.attributes.get("stroke-opacity") == "0.35"]
        assert pale, figure.words


def test_library_code_has_a_row_for_each_cpu_that_it_was_written_for(page: Page) -> None:
    drawn = figures(section(page, which="library-code"))
    products = words(drawn["FP32 products by OpenBLAS's code for CPUs of"])
    assert re.search(r"2004 Prescott 6\d.*2008 Nehalem [45]\d.*2017 SkylakeX [23]\d\d", products), products
    assert "Haswell" not in products, "it was not measured"
    assert "code for older CPUs" not in section(page).words


def test_a_figure_has_all_devices_that_were_measured(page: Page) -> None:
    drawn = figures(section(page))
    threads = words(drawn["Per launch, all threads together"])
    for device in ("NVIDIA H200 (0)", "NVIDIA A100-SXM4-80GB (1)", "host"):
        assert f"{device} a stream each" in threads
    assert "host" not in words(drawn["Per kernel, one after another"])


def test_rows_beside_each_other_are_of_one_length_of_chain(tmp_path: Path) -> None:
    builder = make_session.costs(2)
    for row in builder.tables["summary.csv"]:
        # The profile nightly has the longest chains of two modes only.
        if "/ops:4096/" in row["params"] and not re.search(r"mode:(eager|graph)/", row["params"]):
            row["benchmark"] = "launch/other"
    root = draw(builder, tmp_path).section("costs")
    (by_mode,) = [f for c, f in figures(root).items() if c.startswith("Per operation, by mode")]
    assert by_mode.all("figcaption")[0].words == "Per operation, by mode, ops:512"
    assert len(re.findall(r"NVIDIA H200 \(0\)", words(by_mode))) == 6


def test_one_value_of_an_axis_makes_rows(tmp_path: Path) -> None:
    builder = make_session.costs(2)
    for row in builder.tables["summary.csv"]:
        if row["benchmark"] == "launch/small_kernels" and not row["params"].endswith("kib:64"):
            row["benchmark"] = "launch/other"
        if "/ops:" in f"/{row['params']}" and "ops:512" not in row["params"]:
            row["benchmark"] = "launch/other"
    root = draw(builder, tmp_path).section("costs")
    drawn = figures(root)
    small = words(drawn["Per kernel, over its data, kib:64"])
    assert "NVIDIA H200 (0) persistent" in small and "NVIDIA A100-SXM4-80GB (1) graph" in small
    # The same numbers are in the rows by mode.
    assert not [c for c in drawn if c.startswith("Per operation, over the chain")]
    assert "Per operation, by mode, ops:512" in drawn


def test_zero_has_a_place_on_a_log_axis(page: Page) -> None:
    drawn = figures(section(page))
    assert "at 0 to" in words(drawn["Over the size of the arguments"])
    ticks = [t.text.replace("\xa0", " ") for t in drawn["Over the idle time before"].all("text")]
    assert "0 ms" in ticks and "2000 ms" in ticks


def test_what_could_not_be_measured_is_named_with_its_reason(page: Page) -> None:
    text = section(page).words
    assert (
        "NVIDIA H200 (0), api:runtime/mode:idle and api:runtime/mode:burst: unsupported, " + make_costs.NO_RUNTIME
    ) in text
    assert "host, launch/priority: unsupported, the host device has no graphs" in text


def test_reasons_stand_alone_where_nothing_was_measured(tmp_path: Path) -> None:
    builder = make_costs.add_costs(make_session.Builder("s", [make_session.HOST], 2, families=("launch",)).build())
    root = draw(builder, tmp_path).section("costs")
    (folded,) = [d for d in root.all("details") if "Not measured at all" in d.words]
    assert "launch/priority: launch/priority: unsupported" in folded.words
    assert "save on a busy device" not in root.words


def test_published_values_stand_beside_ours_with_their_sources(page: Page) -> None:
    root = section(page)
    drawn = figures(root)
    graph = words(drawn["Kernels of 64 KiB in a graph"])
    assert graph.index("H200 (0), here 1.33 µs") < graph.index("H200, same model 1.30 µs")
    assert graph.index("H200, same model") < graph.index("A100 1.46 µs")
    assert "Source: te42kyfo/gpu-benches@1c36d50" in drawn["Kernels of 64 KiB in a graph"].words
    (table,) = root.all("table", class_="numbers")
    assert "H200 (same model)" in table.words and "1.02×" in table.words


def test_the_fit_stands_in_the_figure_of_its_device(page: Page) -> None:
    figure = figures(section(page))["Per kernel, over its data: NVIDIA H200 (0)"]
    assert "graph: 1.30 µs (1.27 µs to 1.34 µs) + V / 2.00 TB/s" in figure.words


def test_cases_of_the_section_are_not_drawn_again_run_by_run(page: Page) -> None:
    launches = read(page("costs")).section("launches")
    assert not any(benchmark in launches.text for benchmark in SUBJECTS)


@pytest.mark.parametrize("kind", ["host_only", "eight_gpus", "traced", "killed", "empty"])
def test_a_session_without_these_cases_has_no_such_section(page: Page, kind: str) -> None:
    root = read(page(kind))
    assert not root.all("section", id="costs")
    assert not root.all("a", href="#costs")
    assert not root.all("section", id="library-code")
    assert not root.all("a", href="#library-code")


@pytest.mark.parametrize("name", TABLES)
def test_each_table_may_be_missing(name: str, tmp_path: Path) -> None:
    builder = make_session.costs(2)
    del builder.tables[name]
    root = draw(builder, tmp_path).section("costs")
    assert root.all("figure")


def test_one_run_has_the_spread_of_its_samples(tmp_path: Path) -> None:
    builder = make_costs.add_costs(
        make_session.Builder("s", [make_session.Spec("NVIDIA H200")], 1, families=("launch",)).build()
    )
    root = draw(builder, tmp_path).section("costs")
    for caption, figure in figures(root).items():
        if "here" not in words(figure):
            assert [e for e in figure.all() if e.attributes.get("stroke-opacity") == "0.35"], caption


def test_hostile_words_and_numbers_do_no_harm(tmp_path: Path) -> None:
    builder = make_session.costs(2)
    bad = make_session.HOSTILE.replace("\x00", "")
    for name in ("published.csv", "fit.csv"):
        for row in builder.tables[name]:
            keys = {"axis", "advice", "evidence", "cases", "published_gpu", "host", "source"}
            row.update(dict.fromkeys(keys & row.keys(), bad))
    for row in builder.tables["published.csv"][:2]:
        row.update(p50_ns="", published_ns=0, ratio="")
    for row in builder.tables["fit.csv"]:
        row.update(method=bad, bytes_per_ns="")
    for row in builder.tables["summary.csv"]:
        if row["benchmark"] == "launch/args":
            row.update(p50=0)
        if row["benchmark"] == "launch/grid":
            row["params"] = "blocks:" + bad
        if row["status"] == "unsupported":
            row["reason"] = bad
    root = draw(builder, tmp_path).section("costs")
    assert "<script>alert(1)</script>" in root.text  # as text
    assert not root.all("script")
    assert "not on a log axis" in root.words
