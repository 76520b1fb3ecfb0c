"""What was found, as the page shows it: the gravest five open, the rest folded, in the order of findings.csv."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import make_session
import pytest
from html_reader import Node
from make_session import finding
from report_paths import draw_page

CASE = "matmul/library/size:2048/type:fp32/cache:warm"


def draw(folder: Path, *sessions: list[dict[str, Any]], doctor: Any = None) -> Node:
    """A page of sessions with these findings."""
    folders = []
    for i, findings in enumerate(sessions):
        builder = make_session.Builder(f"s{i}", [make_session.Spec("NVIDIA H200")], 2, families=("launch",)).build()
        builder.tables["findings.csv"] = findings
        if doctor is not None:
            builder.info["doctor"] = doctor
        folders.append(builder.write(folder / f"session{i}"))
    return draw_page(folder, *folders)


def boxes(root: Node) -> list[Node]:
    return [d for d in root.section("findings").all("div") if "box" in (d.attributes.get("class") or "")]


def folded(root: Node) -> dict[str, Node]:
    details = root.section("findings").all("details")
    return {d.all("summary")[0].words: d for d in details if d.all("ul", class_="findings")}


def test_a_finding_has_its_evidence_its_remedy_what_is_at_stake_and_what_is_not_known(tmp_path):
    row = finding(
        "act", "queue-full", "The queue is full.", source="cause", evidence="12 launches; 3 ms", subject="NVIDIA H200",
        remedy="Run `nvidia-smi -pm 1` <as root>", share=0.25, unknown="how deep it is", effects="late kernels",
    )  # fmt: skip
    (box,) = boxes(draw(tmp_path, [row]))
    assert "warning" in box.attributes["class"]
    said = box.words
    for text in ("act The queue is full.", "12 launches", "3 ms", "effect: late kernels", "Not known: how deep it is"):
        assert text in said
    assert "cause · queue-full · NVIDIA H200 · 25 % of the time at stake" in said
    assert [c.text for c in box.all("code")] == ["nvidia-smi -pm 1", "queue-full"]
    assert "<as root>" in said, "escaped, and so to be seen"
    assert "--explain" not in said, "only the doctor's codes have pages"


def test_what_the_doctor_found_can_be_explained(tmp_path):
    root = draw(tmp_path, [finding("prevents", "driver-mismatch", "They differ.", source="doctor")], doctor={})
    (box,) = boxes(root)
    assert "bad" in box.attributes["class"] and "launchgap doctor --explain driver-mismatch" in box.words
    assert "found no problem" not in root.section("findings").words


def test_the_first_five_stand_open_and_the_others_are_folded_by_severity(tmp_path):
    found = [finding("distorts", "case-failed", "One failed.")]
    found += [finding("act", f"code-{i}", f"Do thing {i}.", source="advice") for i in range(7)]
    found += [
        finding("note", "small", "It is small."),
        finding("open", "noisy", "Too noisy."),
        finding("fine", "same", "Fine."),
    ]
    root = draw(tmp_path, found)
    assert [b.all("h3")[0].words for b in boxes(root)] == [
        "distorts One failed.", *(f"act Do thing {i}." for i in range(4)),
    ]  # fmt: skip
    assert list(folded(root)) == [
        "3 more to act on",
        "1 note",
        "1 question that these runs do not answer",
        "1 that needs no action",
    ]
    assert all("open" not in d.attributes for d in folded(root).values())


def test_sentences_of_one_code_are_one_line(tmp_path):
    """Two ways to take memory from a pool are one thing to do."""
    found = [
        finding("act", "launch-chain", "Allocate from a pool.", source="advice", subject="A", share=0.8),
        finding("act", "launch-grid", "Use smaller grids.", source="advice", subject="A", share=0.5),
        finding("act", "launch-chain", "Allocate once.", source="advice", subject="A", share=0.4),
        finding("act", "launch-chain", "Allocate from a pool.", source="advice", subject="B", share=0.3),
    ]
    root = draw(tmp_path, found)
    assert len(boxes(root)) == 2
    first = boxes(root)[0].words
    assert "related: 1 more sentence" in first and "A: Allocate once." in first and "A, B" in first


def test_the_same_of_several_sessions_is_said_once_and_of_whom(tmp_path):
    row = finding("distorts", "not-steady", "It moved.", subject="3 runs")
    (box,) = boxes(draw(tmp_path, [row], [row]))
    assert "3 runs, s0, 3 runs, s1" in box.words


def test_of_several_sessions_the_gravest_stands_first(tmp_path):
    """In the order that launchgap has, whichever session is named first."""
    grades = ["prevents", "distorts", "act", "note", "open", "fine"]
    sessions = [[finding(grade, grade, f"It is {grade}.")] for grade in reversed(grades)]
    root = draw(tmp_path, *sessions)
    assert [b.all("h3")[0].words for b in boxes(root)] == [f"{grade} It is {grade}." for grade in grades[:3]]
    assert [s.rpartition("1 ")[2].split()[0] for s in folded(root)] == ["note", "question", "that"]


def test_with_nothing_to_act_on_it_says_so(tmp_path):
    notes = [finding("note", "case-unsupported", "This CPU has no FP16.")]
    root = draw(tmp_path, notes, doctor={"findings": []})
    assert "Nothing was found that has to be acted on." in root.section("findings").words
    assert "The check before measuring found no problem." in root.section("findings").words
    assert boxes(root) == []
    assert "found no problem" not in draw(tmp_path / "b", notes).section("findings").words, "nobody had looked"


@pytest.mark.parametrize("severity", ["", "grave", "<b>"])
def test_a_severity_that_is_none_is_a_note(tmp_path, severity):
    root = draw(tmp_path, [finding(severity, "odd", "It is odd.")])
    assert list(folded(root)) == ["1 note"]


def test_the_cost_of_falling_back_is_a_table(tmp_path):
    specs = [make_session.Spec("NVIDIA H200"), make_session.HOST]
    builder = make_session.Builder("s", specs, 2, families=("launch", "matmul")).build()
    session = builder.write(tmp_path / "session")
    device = builder.tables["devices.csv"][0]["device_id"]
    (session / "fallback.csv").write_text(
        f"session_id,device_id,case,gpu_ns,host_ns,ratio\ns,{device},{CASE},1e6,6.1e7,61\n"
    )
    found = draw_page(tmp_path, session).section("fallback")
    (row,) = [r for r in found.all("tr") if "size:2048" in r.text]
    assert [re.sub(r"\s", " ", c.text) for c in row.all("td")][1:] == ["1.00 ms", "61.0 ms", "61"]
