"""The page of what somebody else recorded: what it says first, by stream, of the recording, and beside a machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import make_gap
import make_session
import pytest
from html_reader import Node, read
from make_recorded import CLOCKS, KINETO, Process, cause, measured, recorded_session
from report_paths import draw_page

Page = Callable[[str], str]
Draw = Callable[..., Node]


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    def make(*builders: make_session.Builder, beside: Sequence[dict[str, Any]] = ()) -> Node:
        folders = [builder.write(tmp_path / str(i)) for i, builder in enumerate(builders)]
        measured = [f for f, builder in zip(folders, builders, strict=True) if not is_recorded(builder)]
        laid = make_gap.laid_beside(measured) if len(measured) > 1 else {"devices": [], "ratios": []}
        tables = make_gap.write(tmp_path / "comparison", [], answers=[], classes=[], recorded=beside, **laid)
        return draw_page(tmp_path, *folders, options=("--comparison", tables))

    return make


def is_recorded(builder: make_session.Builder) -> bool:
    return any(run["arm"] == "recorded" for run in builder.tables["runs.csv"])


def rows(table: Node) -> list[list[str]]:
    found = [[c for c in row.children if isinstance(c, Node)] for row in table.all("tbody")[0].all("tr")]
    # The verdict stands below the device's name too, where the page is narrow.
    return [
        [(head.all("bdi")[0] if head.all("strong") else head).words, *(cell.words for cell in cells)]
        for head, *cells in found
    ]


def first_tables(root: Node) -> list[Node]:
    return root.all("section", class_="headlines")[0].all("table")


def quality(root: Node) -> dict[str, list[str]]:
    """The last table of the section: for each head, the cell of each process."""
    table = root.section("recorded").all("table")[-1]
    heads = [head.words for head in table.all("thead")[0].all("th")]
    return dict(zip(heads, map(list, zip(*rows(table), strict=True)), strict=True))


def streams(root: Node) -> Node:
    """The table of launches by what their stream did."""
    found = root.section("recorded").all("table")
    (table,) = [one for one in found if one.all("thead")[0].words.startswith("device, stream")]
    return table


# What is said first


def test_the_page_is_of_a_recorded_job(page: Page) -> None:
    root = read(page("recorded"))
    assert root.all("h1")[0].text == "session-recorded: launches of a recorded job", "the folder, of several files"
    byline = root.all("p", class_="byline")[0].words
    assert "recorded by PyTorch's profiler and Nsight Systems 2022.4.2 · imported 2026-11-20T09:30:00Z" in byline
    assert "profile" not in byline.replace("profiler", "")
    nav = [a.text for a in root.all("nav")[0].all("a")]
    assert nav[:2] == ["Findings", "The recorded job"] and "What was recorded" in nav and "Generation gap" not in nav


def test_nothing_that_was_recorded_is_said_to_be_measured(page: Page) -> None:
    (main,) = read(page("recorded")).all("main")
    for part in main.all("section"):
        if part.attributes.get("id") != "glossary":
            # Definitions of columns and metrics are the same on every page.
            spoken = [node for node in part.all() if node.tag not in ("abbr", "th")]
            titles = " ".join(str(node.attributes.get("title") or "") for node in spoken)
            assert "measured" not in part.text + titles
    provenance = main.section("provenance")
    assert provenance.all("h2")[0].text == "What was recorded, and by what"
    assert "1 process, recorded" in provenance.words and "JIT);" not in provenance.text
    assert not [d for d in provenance.all("dt") if d.text in ("Profile", "Runs", "Seed", "Host", "CPUs")]


def test_each_device_has_a_verdict(page: Page) -> None:
    (table,) = first_tables(read(page("recorded")))
    lines = rows(table)
    assert lines[0][:4] == ["NVIDIA H200 (0), rank 0", "PyTorch's profiler", "1070", "91 %"]
    assert re.fullmatch(r"4\.\d\d µs p99 4\.\d\d µs", lines[0][4])
    assert re.fullmatch(r"5\.\d\d µs p99 6\.\d\d µs", lines[0][5])
    assert [line[-1].partition(" ")[0] for line in lines[:2]] == ["launch-bound", "device-bound"]
    assert lines[1][-1] == "device-bound The GPU works 96 % of the time and is idle 4 %."
    assert lines[2][-1] == f"clocks disagree Why the GPU is idle is not known: {CLOCKS}."
    assert lines[3][-1].startswith("no kernels It has calls and no kernels")
    assert [row.attributes["class"] for row in table.all("tbody")[0].all("tr")] == ["warning", "ok", "bad", "bad"]


def test_a_jobs_page_begins_with_its_verdict_and_where_its_launch_time_goes(draw: Draw) -> None:
    tail = {"first-launch": 0.4, "usual": 0.6}
    root = draw(recorded_session(Process(tail=tail)))
    part = root.section("recorded")
    first = root.all("p", class_="answer")[0].words
    assert first.startswith("NVIDIA H200 (0): launch-bound. The GPU is idle 60 % of the time")
    assert first.endswith("1,000 launch calls take 4 ms, 1 % of the recording: usual calls 60 %, first launches 40 % (2).")
    assert rows(part.all("table")[0]) == [
        ["NVIDIA H200 (0) usual", "2", "6.00 ms", "60 %", "3.60 ms"],
        ["NVIDIA H200 (0) first-launch", "2", "4.00 ms", "40 %", "2.40 ms"],
    ]


def test_no_part_of_a_jobs_section_is_absent_without_a_sentence(draw: Draw) -> None:
    root = draw(recorded_session(Process()))
    for of, heading, sentence in (
        ("recorded", "Where does the launch time go?", "Nothing tells"),
        ("recorded", "What does the GPU wait for?", "No work of the GPU is known."),
        ("findings", "Findings", "Nothing was found that has to be acted on."),
    ):
        part = root.section(of).words
        assert heading in part and sentence in part


def test_what_the_gpu_waits_for_is_told_of_the_job_and_of_its_steps(draw: Draw) -> None:
    root = draw(recorded_session(Process(waits={"program": 0.3, "launch": 0.2}, steps=5), Process()))
    (table,) = [t for t in root.section("recorded").all("table") if "GPU idle" in t.words]
    heads = [head.words for head in table.all("thead")[0].all("th")]
    job, steps = (dict(zip(heads, row, strict=True)) for row in rows(table))
    assert job["device, time"].endswith("the whole recording") and steps["device, time"].endswith("5 steps")
    for line in (job, steps):
        assert (line["GPU idle"], line["the program"], line["launching"], line["queued"]) == ("50 %", "30 %", "20 %", "0 %")


def test_of_a_process_whose_clocks_disagree_no_stream_is_believed(draw: Draw) -> None:
    builder = recorded_session(
        Process(idle=200, busy=800, verdict="device-bound"), Process(clock_problem=CLOCKS, verdict="clocks disagree")
    )
    # Both are processes of the first device.
    first = builder.tables["recordings.csv"][0]["device_id"]
    for name in ("recordings.csv", "runs.csv", "run_quantiles.csv"):
        for row in builder.tables[name]:
            if row["device_id"] != first:
                row.update(device_id=first, replicate=1)
    for name in ("devices.csv", "summary.csv"):
        builder.tables[name] = [row for row in builder.tables[name] if row["device_id"] == first]
    (table,) = first_tables(draw(builder))
    ((_, _, _, idle, _, _, verdict),) = rows(table)
    assert idle == "20 %"
    assert verdict.startswith("device-bound and clocks disagree r0, process 4000: device-bound.")


def test_there_is_neither_a_box_about_tracing_nor_a_ratio(page: Page) -> None:
    root = read(page("recorded"))
    assert not root.all("section", id="gap")
    assert root.section("findings").words == "Findings Nothing was found that has to be acted on."
    assert "faster" not in root.all("main")[0].text


def test_of_few_launches_there_is_no_p99(draw: Draw) -> None:
    root = draw(recorded_session(Process(idle=20, busy=980)))
    ((*_, call, delay, _),) = rows(first_tables(root)[0])
    assert call.endswith(" of 20 only") and delay.endswith(" of 20 only")
    idle, busy = rows(streams(root))
    assert "p99" not in idle[2] and "longest" in idle[2]
    assert "p99" in busy[2]


# By stream


def test_idle_and_busy_streams_have_lines_of_their_own(page: Page) -> None:
    lines = rows(streams(read(page("recorded"))))
    assert [(line[0], line[1]) for line in lines] == [
        ("NVIDIA H200 (0), rank 0 on an idle stream", "900"),
        ("NVIDIA H200 (0), rank 0 on a busy stream", "100"),
        ("NVIDIA H200 (0), rank 0 graphs, on an idle stream", "70"),
        ("NVIDIA H200 (1), rank 1 on an idle stream", "40"),
        ("NVIDIA H200 (1), rank 1 on a busy stream", "960"),
        ("NVIDIA H200 (2) on an idle stream", "900"),
        ("NVIDIA H200 (2) on a busy stream", "100"),
        ("Quadro GP100 (3) the stream is not known", "200"),
    ]
    assert re.fullmatch(r"9\d\d µs p99 .* longest .*", lines[1][3])
    assert lines[2][5].startswith("23.")  # a graph's time, where others have their kernel's
    assert lines[5][3:5] == ["–", "–"] and lines[7][3:6] == ["–", "–", "–"]


def test_where_clocks_disagree_the_streams_are_in_doubt(page: Page, draw: Draw) -> None:
    assert "where clocks disagree" in read(page("recorded")).section("recorded").text
    assert "where clocks disagree" not in draw(recorded_session(Process())).section("recorded").text


def test_each_process_has_its_strip(page: Page) -> None:
    figures = read(page("recorded")).section("recorded").all("figure")
    labels = [svg.attributes["aria-label"].replace("\xa0", " ") for figure in figures for svg in figure.all("svg")]
    assert labels[0].startswith("NVIDIA H200 (0), rank 0, Launch call, on an idle stream: ")
    kinds = {re.search("(Launch call|Call to kernel), on an? (idle|busy) stream", label)[0] for label in labels}
    assert kinds == {"Launch call, on an idle stream", "Call to kernel, on an idle stream", "Launch call, on a busy stream"}


# How good it is


def test_each_process_says_how_good_its_recording_is(page: Page) -> None:
    found = quality(read(page("recorded")))
    assert found["file, process"][:2] == ["rank0.json.gz r0, process 4000, rank 0", "rank1.json.gz r0, process 4001, rank 1"]
    assert found["recorded by"][2] == "Nsight Systems 2022.4.2 SQLite, schema 3.0.0"
    assert found["GPU"][0] == "NVIDIA H200 (0), rank 0 6 streams"
    assert found["clock, tick"] == [
        "Unix time in steps of 1.00 µs a launch is a few steps",
        "Unix time in steps of 1.00 µs a launch is a few steps",
        "from the beginning of the recording in steps of 1 ns",
        "from the beginning of the recording in steps of 1 ns",
    ]
    assert found["launches"][0] == "1070 of 2140 calls of CUDA"
    assert found["joined"] == ["71 % of 1506 kernels", "100 % of 1000 kernels", "100 % of 1000 kernels", "– no kernels"]
    assert found["launched before"] == ["436 they kept their streams busy", "0", "0", "0"]
    assert found["lost kernels"][3] == "200 their streams are not known"
    assert found["begun before the return"][0] == "15 possible: they have no queue time"
    assert found["impossible"] == ["0"] * 4
    assert found["clocks"][0] == "agree GPU ahead by −977 ns to 4.96 µs"
    assert found["clocks"][2] == f"disagree {CLOCKS[0].upper()}{CLOCKS[1:]}. They drift by 206 ppm."
    assert found["left out"] == ["nothing", "12 calls that are in two rows", "nothing", "nothing"]
    assert found["remarks"][2] == "its driver is not known"


def test_every_column_of_it_is_explained(page: Page) -> None:
    part = read(page("recorded")).section("recorded")
    heads = part.all("table")[-1].all("thead")[0].all("th")
    terms = [term.text for term in part.all("dl")[0].all("dt")]
    assert terms == [head.text for head in heads]
    assert all(head.attributes["title"] for head in heads)


def test_records_that_cannot_be_are_counted(draw: Draw) -> None:
    builder = recorded_session(Process())
    builder.tables["recordings.csv"][0].update(early=3, zero=10)
    assert quality(draw(builder))["impossible"] == ["13 3 begin before their launch 10 without a time"]


def test_kernels_stand_in_the_order_of_their_time(page: Page) -> None:
    kernels = read(page("recorded")).section("kernels")
    assert "What the recorded job really launched" in kernels.words
    (table, *_) = kernels.all("table")
    heads = [head.words for head in table.all("thead")[0].all("th")]
    found = [dict(zip(heads, row, strict=True)) for row in rows(table)]
    assert [row["kernel"] for row in found] == ["void long_kernel<float>(float*)", "short_kernel"]
    assert found[0] == {
        "kernel": "void long_kernel<float>(float*)", "grid": "2×2×1", "block": "256×1×1", "count": "100",
        "of the time": "9 %", "together": "9.00 ms", "median": "90.0 µs", "p99": "280 µs", "longest": "290 µs",
        "variation": "25 %",
        "first call": "750 µs", "later calls": "4.00 µs",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["recordings.csv", "kernels.csv", "traces.csv", "headlines.csv"])
def test_a_table_may_be_missing(name: str, draw: Draw) -> None:
    builder = make_session.recorded()
    builder.tables[name] = []
    root = draw(builder)
    assert len(rows(first_tables(root)[0])) == 4
    assert not re.search(r"\b(nan|None|inf)\b", root.all("main")[0].text)


def test_every_number_may_be_missing_of_it(draw: Draw) -> None:
    builder = make_session.recorded()
    for name in ("recordings.csv", "kernels.csv"):
        for row in builder.tables[name]:
            row.update({k: "" for k, v in row.items() if isinstance(v, (int, float))})
    for row in builder.tables["summary.csv"]:
        row.update(p50="", p99="", max="", n="")
    assert not re.search(r"\b(nan|None|inf)\b", draw(builder).all("main")[0].text)


def test_what_a_file_says_is_text(draw: Draw) -> None:
    bad = make_session.HOSTILE.replace("\x00", "")
    process = Process(bad, recorder=(bad, bad, bad), file=bad, left_out=bad, remarks=bad, clock_problem=bad)
    builder = recorded_session(process, Process("NVIDIA H200", recorder=KINETO, file="</bdi><img src=x onerror=alert(2)>"))
    for row in builder.tables["kernels.csv"]:
        row["kernel"] = bad
    root = draw(builder, measured())
    assert len(root.all("script")) == 1 and not root.all("img")
    assert root.words.count("<script>alert(1)</script>") > 8
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", root.text)


# Beside a machine


def test_a_job_stands_beside_what_its_machine_does_at_best(page: Page) -> None:
    root = read(page("beside"))
    assert (
        root.all("h1")[0].text
        == "session-recorded and session-measured: launches of a recorded job, beside what was measured"
    )
    lines = rows(root.section("beside").all("table")[0])
    assert [line[0] for line in lines] == ["NVIDIA H200 (0), rank 0"] * 3 + ["NVIDIA H200 (1), rank 1"] * 3
    assert [line[1] for line in lines] == ["NVIDIA H200 (0)"] * 6
    assert [line[2] for line in lines[:3]] == ["launch call", "launch call, both traced", "call to kernel, both traced"]
    assert [round(float(line[5].rstrip("×")), 1) for line in lines[:3]] == [1.7, 2.0, 2.0]
    assert re.fullmatch(r"4\.\d+ µs p99 4\.\d+ µs", lines[0][3]) and lines[0][4].startswith("2.3")
    assert root.section("beside").all("td", title="launch/null/api:driver/mode:idle")


def test_both_kinds_have_their_first_table_and_no_ratio_mixes_them(page: Page) -> None:
    root = read(page("beside"))
    recorded, own = first_tables(root)
    assert len(rows(recorded)) == 4
    assert [line[0] for line in rows(own)] == ["host", "NVIDIA H200 (0)"]
    headings = [h.text for h in root.all("section", class_="headlines")[0].all("h3")]
    assert headings == ["Recorded", "Measured by launchgap"]
    assert not root.all("section", id="gap")  # one generation was measured


def test_another_gpu_is_said_to_be_another(draw: Draw) -> None:
    job, machine = recorded_session(Process("NVIDIA GeForce RTX 3090")), measured()
    gpu = "GPU-00000000"
    beside = make_gap.beside(job.session_id, gpu, machine.session_id, gpu, same_name="false")
    root = draw(job, machine, beside=beside)
    lines = rows(root.section("beside").all("table")[0])
    assert [line[1] for line in lines] == ["NVIDIA H200 (0) another GPU: no device of the recorded name was measured"] * 3


def test_a_recorded_job_does_not_enter_the_generation_gap(draw: Draw) -> None:
    older = make_session.Builder(
        "s-old", [make_session.Spec("Tesla V100-SXM2-16GB", capability="7.0")], 1, families=("launch",)
    ).build()
    root = draw(recorded_session(Process("NVIDIA A100-SXM4-80GB")), measured(), older)
    gap = root.section("gap")
    assert "A100" not in gap.text and "recorded" not in gap.text
    assert "Tesla V100-SXM2-16GB" in gap.text and "against" in gap.text


def test_without_a_measured_gpu_nothing_stands_beside_a_job(draw: Draw) -> None:
    assert not draw(recorded_session(Process()), measured()).all("section", id="beside")


# What makes its launches slow or uneven


def test_what_was_found_of_it_stands_among_the_findings(draw: Draw) -> None:
    root = draw(
        recorded_session(
            Process(rank=0, causes=(cause("wait-stalls", share=0.08),)),
            Process(rank=1, causes=(cause("wait-stalls", share=0.2, sentence="<b id=evil>k</b> waits."),)),
        )
    )
    (box,) = [box for box in root.section("findings").all("div") if "box" in str(box.attributes.get("class"))]
    said = box.words
    assert "Something of wait-stalls takes 12 ms. What to do: Do it less often." in said
    assert "related: 1 more sentence" in said and "<b id=evil>k</b> waits." in said
    assert not root.all("b", id="evil")


def test_launches_vary_within_a_step_between_steps_and_between_ranks(draw: Draw) -> None:
    levels = {"samples": 0.3, "launches": 0.25, "steps": 0.1}
    root = draw(recorded_session(Process(rank=0, levels=levels | {"devices": 0.05}), Process(rank=1, levels=levels)))
    part = root.section("launches")
    (table, *_) = part.all("table")
    found = [row for row in rows(table) if "rank 0" in row[0]]
    assert [row[2:4] for row in found] == [
        ["between devices of a kind", "5 %"],
        ["within a step", "25 %"],
        ["between steps", "10 %"],
    ], "what is within a run is the two together"
    assert "what was measured" not in part.words


def test_a_clock_that_was_corrected_says_by_how_much(draw: Draw) -> None:
    clock = {
        "clock_offset_ns": 133_000_000_000, "clock_offset_error_ns": 3100,
        "clock_drift_ppm": -558, "clock_corrected": "true",
    }  # fmt: skip
    found = quality(draw(recorded_session(Process(clock=clock))))
    assert found["clocks"] == ["corrected The GPU’s was 133 s ahead, to ± 3.10 µs. They drift by −558 ppm."]
