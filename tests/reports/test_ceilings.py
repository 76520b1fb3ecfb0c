"""Rates beside the ceiling: a row per device and type; what cannot be is named so, listed, and compared with nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import make_gap
import make_session
import pytest
from html_reader import Node
from launchgap_report import compare as cmp
from launchgap_report import gap
from launchgap_report.session import load
from report_paths import draw_page

COLUMNS = make_session.columns()["ceilings.csv"]


def rate(
    device: str, size: int, kind: str, tflops: float, ceiling: float | str, verdict: str = "possible"
) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(COLUMNS, "")
    row |= {
        "session_id": "s",
        "device_id": device,
        "arm": "plain",
        "process_config": "matmul",
        "type": kind,
        "tflops": tflops,
    }
    row |= {"case": f"matmul/library/size:{size}/type:{kind}/cache:warm", "verdict": verdict}
    if ceiling:
        row |= {"clock_mhz": 1410, "ceiling_tflops": ceiling, "share": tflops / ceiling}
        row |= {"published_tflops": ceiling, "published_share": tflops / ceiling}
    return row


def session_with(tmp_path: Path, name: str, gpu: str, impossible: str = "") -> Path:
    specs = [make_session.Spec(gpu, tflops=17.5), make_session.HOST]
    builder = make_session.Builder(name, specs, 2, families=("launch", "matmul")).build()
    device, host = (d["device_id"] for d in builder.tables["devices.csv"])
    for row in builder.tables["summary.csv"]:
        if impossible and row["device_id"] == device and impossible in row["params"]:
            row["impossible"] = "true"
    folder = builder.write(tmp_path / name)
    rows = [
        rate(device, 1024, "fp32", 12.0, 19.5),
        rate(device, 4096, "fp32", 18.0, 19.5),
        rate(device, 2048, "fp32", 95.6, 19.5, "impossible"),
        rate(device, 4096, "bf16", 265.0, 312),
        rate(host, 4096, "fp32", 1.5, 0, "no ceiling"),
    ]
    with (folder / "ceilings.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return folder


def cells(row: Node) -> list[str]:
    return [cell.words for cell in (*row.all("th"), *row.all("td"))]


def test_the_best_case_of_each_type_and_what_cannot_be(tmp_path: Path) -> None:
    root = draw_page(tmp_path, *([session_with(tmp_path, "s", "NVIDIA A100-SXM4-80GB")]))
    section = root.section("matmul")
    (table,) = section.all("table")
    head, *rows = (cells(row) for row in table.all("tr"))
    assert "algorithm" not in head, "of products there is none"
    assert [row[1:3] + row[-1:] for row in rows] == [
        ["fp32", "library size 4096 cache warm", "possible"],
        ["fp32", "library size 2048 cache warm", "impossible"],
        ["bf16", "library size 4096 cache warm", "possible"],
    ]
    assert rows[0][3:9] == ["18.0 TFLOP/s", "1410 MHz", "19.5 TFLOP/s", "92 %", "19.5 TFLOP/s", "92 %"]
    assert rows[1][6] == "490 %", "it is not clipped"


def test_what_cannot_be_is_listed_and_compared_with_nothing(tmp_path: Path) -> None:
    old = session_with(tmp_path, "old", "NVIDIA A100-SXM4-80GB")
    new = session_with(tmp_path, "new", "NVIDIA H200", impossible="size:2048/type:fp32")
    sessions = [load(old, old), load(new, new)]
    tables = gap.load(make_gap.write(tmp_path / "comparison", [old, new]), sessions[0].registry)
    comparison = cmp.compare(sessions, tables)
    assert comparison is not None
    slot = next(c.slot for c in comparison.columns if c.title.startswith("NVIDIA H200"))
    by_size = {line.case: line.cells[slot] for line in comparison.families["matmul"] if line.metric == "tflops"}
    cannot, can = (next(c for case, c in by_size.items() if f"size:{n}/type:fp32" in case) for n in (2048, 1024))
    assert (cannot.status, cannot.speed) == ("impossible", None) and cannot.value
    assert can.status == "ok" and can.speed is not None

    root = draw_page(tmp_path, *([old, new]))
    (table,) = root.all("table", id="case-table")
    marked = [row.text for row in table.all("tr") if "above what the GPU can do" in row.text]
    assert marked and all("size:2048/type:fp32" in text.replace("\u200b", "") for text in marked)


def test_where_nothing_can_be_the_section_still_says_so(tmp_path: Path) -> None:
    folder = session_with(tmp_path, "s", "NVIDIA A100-SXM4-80GB", impossible="size:")
    kept = [row for row in csv.DictReader((folder / "summary.csv").open(encoding="utf-8")) if row["device_name"] != "host"]
    with (folder / "summary.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(kept[0]))
        writer.writeheader()
        writer.writerows(kept)
    section = draw_page(tmp_path, *([folder])).section("matmul")
    assert section.all("figure") == [] and "impossible" in section.text


@pytest.mark.parametrize("table", ["absent", "empty"])
def test_without_ceilings_there_is_no_table(tmp_path: Path, table: str) -> None:
    folder = session_with(tmp_path, "s", "NVIDIA A100-SXM4-80GB")
    if table == "absent":
        (folder / "ceilings.csv").unlink()
    else:
        (folder / "ceilings.csv").write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    root = draw_page(tmp_path, *([folder]))
    section = root.section("matmul")
    assert section.all("table") == []
