"""What the doctor found, and what falling back to the CPU costs, on the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import make_session
from html_reader import Node, read
from launchgap_report import __main__ as program
from report_paths import pairs

MISMATCH = {
    "code": "driver-mismatch",
    "severity": "prevents",
    "subject": "machine",
    "sentence": "The driver's libraries and its kernel module are of different versions.",
    "evidence": ["libcuda.so.1 is /usr/lib/libcuda.so.575.51.03", "the kernel's driver is 580.65.06"],
    "remedy": "restart the machine",
    "symptoms": ["cuInit answers 803"],
}
PERSISTENCE = {
    "code": "persistence-off",
    "severity": "note",
    "subject": "NVIDIA H200 at 0000:07:00.0",
    "sentence": "Persistence mode is off.",
    "evidence": [],
    "remedy": "start nvidia-persistenced, or `nvidia-smi -pm 1` <as root>",
}


CASE = "matmul/library/size:2048/type:fp32/cache:warm"


def page(folder: Path, doctor: Any = None, cost: tuple[float, float] | None = None) -> Node:
    specs = [make_session.Spec("NVIDIA H200"), make_session.HOST]
    builder = make_session.Builder("s", specs, 2, families=("launch", "matmul")).build()
    if doctor is not None:
        builder.info["doctor"] = doctor
    session = builder.write(folder / "session")
    if cost:
        gpu, host = cost
        device = builder.tables["devices.csv"][0]["device_id"]
        (session / "fallback.csv").write_text(
            f"session_id,device_id,case,gpu_ns,host_ns,ratio\ns,{device},{CASE},{gpu},{host},{host / gpu}\n"
        )
        (session / "fallback_sentences.csv").write_text(
            f"session_id,device_id,sentence\ns,{device},The host takes 61 times as long.\n"
        )
    output = folder / "out.html"
    assert program.run([*pairs([session]), "-o", str(output)]) == 0
    return read(output.read_text(encoding="utf-8"))


def words(node: Node) -> str:
    return re.sub(r"\s+", " ", node.text)


def test_a_session_that_nobody_examined_has_no_section(tmp_path):
    assert page(tmp_path).all("section", id="doctor") == []


def test_what_prevents_is_a_box_with_its_remedy_and_evidence(tmp_path):
    (section,) = page(tmp_path, {"findings": [MISMATCH, PERSISTENCE]}).all("section", id="doctor")
    (box,) = [d for d in section.all("div") if "box" in (d.attributes.get("class") or "")]
    assert "bad" in box.attributes["class"]
    for text in (MISMATCH["sentence"], "restart the machine", *MISMATCH["evidence"], "answers 803"):
        assert text in words(box)
    assert "launchgap doctor --explain driver-mismatch" in words(box)
    assert [c.text for c in section.all("code") if "smi" in c.text] == ["nvidia-smi -pm 1"]
    assert "<as root>" in words(section), "escaped, and so to be seen"
    assert "Persistence mode is off." in words(section) and "persistence-off" in words(section)


def test_a_machine_without_fault_says_so(tmp_path):
    (section,) = page(tmp_path, {"findings": []}).all("section", id="doctor")
    assert "The check before measuring found no problem." in words(section)


def test_the_cost_of_falling_back_is_a_sentence_and_a_table(tmp_path):
    (section,) = page(tmp_path, None, (1e6, 6.1e7)).all("section", id="doctor")
    assert "The host takes 61 times as long." in words(section)
    (row,) = [r for r in section.all("tr") if "size:2048" in r.text]
    assert [re.sub(r"\s", " ", c.text) for c in row.all("td")][1:] == ["1.00 ms", "61.0 ms", "61"]


def test_what_is_no_finding_is_passed_over(tmp_path):
    odd = {"findings": ["text", None, {"severity": 7, "evidence": "no list"}], "gpus": 3}
    (section,) = page(tmp_path, odd).all("section", id="doctor")
    assert [d for d in section.all("div") if "box" in (d.attributes.get("class") or "")]
    assert page(tmp_path / "b", ["not an object"]).all("section", id="doctor") == []
    assert page(tmp_path / "c", {"findings": "none"}).all("section", id="doctor") == []
