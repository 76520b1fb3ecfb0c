"""launchgap report over what others have published: the factors that are known, and no others."""

import csv
import json
import pathlib

import pytest
from shipped import ROOT, launchgap


@pytest.fixture
def report(tmp_path):
    """Imports tables, each as a session, and reports on all: what the terminal said, the folder of the tables, the page."""

    def of(*names: str) -> tuple[str, pathlib.Path, pathlib.Path]:
        sessions = []
        for name in names:
            sessions.append(tmp_path / name.removesuffix(".csv"))
            done = launchgap("import", ROOT / "data" / name, "-o", sessions[-1], code=0)
        page, tables = tmp_path / "page.html", tmp_path / "tables"
        done = launchgap("report", *sessions, "-o", page, "--tables", tables, "--json", tmp_path / "gap.json", code=0)
        return " ".join(done.stdout.split()), tables, page

    return of


def table(tables: pathlib.Path, name: str) -> list[dict]:
    with open(tables / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_v100_and_a100_as_superbench_has_them(report, tmp_path):
    said, tables, page = report("published_superbench.csv")
    assert said.startswith(
        "Between V100 (published) and A100 (published) skinny FP16 (summed in FP32) products became 1.56 times as fast"
    )
    assert "memory 1.53 times and launch and wait 0.74 times" in said
    worst = "Against the V100 the A100 does worst in launch and wait: 0.74 times as fast; of products in the batched FP32 "
    assert worst + "product 224x64x224-b512, 0.85 times; of convolutions " in said
    assert "8 FP32 cases on the A100 faster than FP32 can be" in said
    cases = {(r["case"], r["metric"]): r for r in table(tables, "gap")}
    assert float(cases["launch/superbench/mode:wall", "wall_per_launch_ns"]["times"]) == pytest.approx(7710 / 10455)
    # What cannot be is in no comparison.
    assert not any("224x1000x4000" in case and "type:fp32" in case for case, _ in cases)
    values = {(r["device"], r["quantity"]): r for r in table(tables, "gap_values")}
    assert values["V100", "launch and wait, as SuperBench times it"]["origin"] == "published"
    assert float(values["A100", "FP32 products"]["value"]) < 19.5, "which complex products in three steps are not"
    assert float(values["A100", "FP16 products"]["value"]) == pytest.approx(279.3105), "of a shape that is not known"
    gap = json.loads((tmp_path / "gap.json").read_text())["gap"]
    assert [a["part"] for a in gap["answers"]] == ["gain", "worst", "disappoints"]
    assert "0.74 times as fast" in page.read_text(encoding="utf-8")


def test_v100_is_slower_than_p100_in_7_of_160_products_of_deepbench(report):
    _, tables, page = report("published_deepbench.csv")
    pair = [
        r
        for r in table(tables, "gap_classes")
        if (r["older"], r["newer"], r["work"], r["type"]) == ("P100", "V100", "product", "fp32")
    ]
    assert sum(int(r["cases"]) for r in pair) == 160
    assert sum(int(r["slower"]) for r in pair) == 7
    of_all = next(r for r in table(tables, "gap_classes") if (r["older"], r["newer"], r["work"]) == ("P100", "V100", ""))
    assert "CUDA 10.1.243 against 8.0.88" in of_all["causes"] and "driver 418.67 against 375.66" in of_all["causes"]
    words = {(r["device"], r["quantity"]): r["words"] for r in table(tables, "gap_values")}
    assert words["M40", "FP16 products"] == "not published"
    limits = {(r["device"], r["what"]): r["limit"] for r in table(tables, "gap_limits")}
    assert limits["M40", "CUDA toolkit"] == "last: 12.9"
    assert page.stat().st_size < 5e6


def test_published_tables_stand_beside_each_other_and_are_not_merged(report):
    said, tables, _ = report("published_superbench.csv", "published_deepbench.csv", "published_sweeps.csv")
    devices = {r["device"] for r in table(tables, "gap_values")}
    assert {"V100", "V100 (CUDA 10.1.243)", "P100", "M40", "K40", "A100", "RTX 4090"} <= devices
    assert "(published) and " in said
