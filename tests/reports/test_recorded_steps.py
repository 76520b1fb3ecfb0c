"""Recorded steps that were done again, as the page draws them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import make_session
from html_reader import Node
from report_paths import draw_page


def draw(folder: Path, **tables: list[dict[str, Any]]) -> Node:
    builder = make_session.one_gpu()
    key = {"session_id": builder.session_id, "device_id": builder._id(builder.specs[0])}
    for name, rows in tables.items():
        of_device = name != "predicted_patterns"
        builder.tables[f"{name}.csv"] = [(key if of_device else {"session_id": builder.session_id}) | row for row in rows]
    return draw_page(folder, builder.write(folder / "session"))


def cells(section: Node, table: int) -> list[list[str]]:
    return [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in section.all("tbody")[table].all("tr")]


def replay(mode: str, p50_ns: float, arm: str = "plain", **more: Any) -> dict[str, Any]:
    row = {"pattern": "step.3", "source": "ProfilerStep#3 of job", "gpu": "Tesla V100", "arm": arm, "mode": mode}
    row |= {"kernel_factor": 1, "operations": 1518, "launches": 1462, "kernels": 1462, "streams": 1, "p50_ns": p50_ns}
    row |= {"remarks": "waits: 3"}
    return row | {"bound_by": "unknown"} | more


def elsewhere(gpu: str, lo_ns: float, hi_ns: float, bounds: tuple[str, str]) -> dict[str, Any]:
    row = {"pattern": "step.3", "recorded_on": "Tesla V100", "gpu": gpu, "launch_call_ns": 5700, "costs_from": "published"}
    row |= {"kernel_factor_lo": 3.588, "kernel_factor_hi": 3.75, "predicted_lo_ns": lo_ns, "predicted_hi_ns": hi_ns}
    return row | {"model_agreement": 1.004, "bound_by_lo": bounds[0], "bound_by_hi": bounds[1]}


def test_a_step_stands_with_its_answers_its_replays_and_what_it_would_take_elsewhere(tmp_path: Path) -> None:
    savings = {"without_launches_ns": 4e6, "without_program_ns": 81e6, "without_work_ns": 23e6, "bound_by": "program"}
    agreement = {"agreement": 0.99, "agreement_lo": 0.98, "agreement_hi": 1.01}
    by_eager = {"by_eager": 0.934, "by_eager_lo": 0.93, "by_eager_hi": 0.94}
    rows = [
        replay("graph", 174e6, **by_eager),
        replay("eager", 187e6, "traced"),
        replay("eager", 186e6, **savings, **agreement),
    ]
    finding = {"source": "advice", "code": "pattern-bound", "severity": "note", "subject": "g"}
    finding |= {
        "sentence": "The program itself binds the step step.3 here.",
        "cases": "launch/pattern/pattern:step.3/mode:eager",
    }
    other = finding | {"sentence": "Of another.", "cases": "launch/pattern/pattern:step.30/mode:eager"}
    predicted = [elsewhere("K80", 425e6, 441e6, ("work", "work")), elsewhere("RTX 3090", 167e6, 181e6, ("program", "work"))]
    (section,) = draw(tmp_path, patterns=rows, findings=[finding, other], predicted_patterns=predicted).all(
        "section", id="patterns"
    )
    assert "ProfilerStep#3 of job on Tesla V100: 1518 operations, of which 1462 launch, on 1 stream." in section.words
    assert "What is not as it was: waits: 3." in section.words
    assert "The program itself binds the step step.3 here." in section.words and "Of another." not in section.words
    assert [row[1:] for row in cells(section, 0)] == [
        ["as recorded", "186 ms", "0.99 (0.98 to 1.01)", "4.00 ms", "81.0 ms", "23.0 ms", "the program", "–"],
        ["graphs", "174 ms", "–", "–", "–", "–", "–", "0.93 (0.93 to 0.94)"],
        ["as recorded, traced", "187 ms", "–", "–", "–", "–", "–", "–"],
    ]
    assert cells(section, 1) == [
        ["K80", "5.70 µs", "3.59 to 3.75", "425 ms to 441 ms", "the work", "published"],
        ["RTX 3090", "5.70 µs", "3.59 to 3.75", "167 ms to 181 ms", "the program, or the work", "published"],
    ]
    assert "gives 1.00 times the recorded time" in section.words


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    bare = replay("eager", 1e6, gpu="", kernel_factor=0.5, remarks="")
    (section,) = draw(tmp_path, patterns=[bare]).all("section", id="patterns")
    assert "ProfilerStep#3 of job: 1518 operations" in section.words
    assert "Its kernels last 0.500 times as long as they did." in section.words
    assert len(section.all("tbody")) == 1


def test_without_patterns_there_is_no_section(tmp_path: Path) -> None:
    assert not draw(tmp_path).all("section", id="patterns")
