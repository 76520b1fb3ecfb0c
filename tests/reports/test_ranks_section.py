"""The page's section of ranks: who is late, by what, and what is not said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from html_reader import Node
from make_recorded import Process, cause, recorded_session
from report_paths import draw_page

LATE = "rank 1 comes last to 13 of 19 collectives, and the others wait there for 45.9 ms, 4.6 % of the recording."


def row(device: str, rank: int, collective: str = "collectives", **cells: Any) -> dict[str, Any]:
    usual = dict(device_id=device, replicate=0, rank=f"rank {rank}", collective=collective, matched=19, times_last=6)
    usual |= dict(chance=1, beyond_chance="false", late_ns=400_000, most_late_ns=126_000, waiting_ns=45_900_000)
    return usual | dict(moving_ns=505_000_000, explained=6, reason="") | cells


def drawn(tmp_path: Path, *rows: dict[str, Any], causes: tuple[dict[str, Any], ...] = ()) -> Node:
    builder = recorded_session(Process(rank=0, file="a.json", causes=causes), Process(rank=1, file="b.json"))
    devices = [r["device_id"] for r in builder.tables["recordings.csv"]]
    builder.tables["ranks.csv"] = [r | {"device_id": devices[int(r["rank"][-1])]} for r in rows]
    return draw_page(tmp_path, builder.write(tmp_path / "session"))


def cells(table: Node) -> list[list[str]]:
    lines = table.all("tbody")[0].all("tr")
    return [[c.words.replace("\xa0", " ") for c in line.children if isinstance(c, Node)] for line in lines]


def test_each_rank_has_how_late_it_is_and_why(tmp_path: Path) -> None:
    late = dict(times_last=13, late_ns=45_900_000, most_late_ns=14_600_000, waiting_ns=400_000, reason="program")
    late |= dict(reason_share=0.94, longer_ns=30_800_000, longer_program_ns=29_000_000, longer_kernels_ns=-40_000)
    cost = dict(took_ns=600_000_000, ideal_ns=585_000_000)
    root = drawn(
        tmp_path,
        row("", 0, **cost, without_ns=599_900_000),
        row("", 1, **late, **cost, without_ns=570_000_000),
        causes=(cause("late-to-collectives", "note", sentence=LATE), cause("slow-host")),
    )
    section = root.section("ranks")
    assert [p.words.replace("\xa0", " ") for p in section.all("strong")] == [LATE], "and no other finding"
    ranks, parts = section.all("table")
    assert cells(ranks) == [
        ["rank 0", "6", "400 µs at most 126 µs", "45.9 ms", "–", "600 ms"],
        ["rank 1", "13 may be chance", "45.9 ms at most 14.6 ms", "400 µs", "program 94 % of it", "570 ms 5 % less"],
    ]
    assert [head.words for head in parts.all("thead")[0].all("th")] == ["rank", "later by", "kernels", "program"]
    assert cells(parts) == [["rank 1", "30.8 ms", "−40.0 µs", "29.0 ms"]]
    words = section.words.replace("\xa0", " ")
    assert "They take 600 ms; if each rank took the median, 585 ms: 1.03 times as long." in words
    assert "assumes that in each step, or before each collective" in words
    assert [a.words for a in root.all("nav")[0].all("a") if a.attributes["href"] == "#ranks"] == ["Ranks"]


def test_kinds_of_collectives_are_folded_and_what_is_not_known_is_not_said(tmp_path: Path) -> None:
    kind = "ncclDevKernel_AllGather<script>(ncclDevComm*, unsigned long)"
    rows = [row("", rank, compared) for compared in ("steps", "collectives", kind) for rank in (0, 1)]
    section = drawn(tmp_path, *rows).section("ranks")
    heads = [h.words.replace("\xa0", " ") for h in section.all("h3")]
    assert heads == [
        "By the steps that all ranks have: 19 steps",
        "By all collectives: 19 collectives",
        "By ncclDevKernel_AllGather<script>: 19 collectives",
    ]
    assert [h.words for h in section.all("details")[0].all("h3")] == [section.all("h3")[2].words]
    assert "median" not in section.words and not section.all("script")


def test_there_is_no_section_without_ranks_and_one_that_says_why_they_are_not_compared(tmp_path: Path) -> None:
    def sections(causes: tuple[dict[str, Any], ...], folder: str) -> list[Node]:
        (tmp_path / folder).mkdir()
        root = drawn(tmp_path / folder, causes=causes)
        return [one for one in root.all("section") if one.attributes.get("id") == "ranks"]

    assert sections((), "none") == []
    (section,) = sections((cause("ranks-not-compared", "note", sentence="They have no time in common."),), "some")
    assert "They have no time in common." in section.words and not section.all("table")
