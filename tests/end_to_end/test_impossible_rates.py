"""Rates beside what a GPU can do: what cannot be is kept and found, and counts nowhere; what can be is not marked."""

import json
from pathlib import Path

from night_sessions import Session
from shipped import NODES, launchgap, table

PRODUCTS = r"matmul.*size:256/|convolution.*conv5_1x1_2048/n:1/"
# A library that computes FP32 in another type: 41.8 TFLOP/s, of an A100 that has 19.5.
SWAPPED = dict(
    kernel_ns={"constant": 0}, process_factor_sigma=0, tflops={"fp32": 41.8, "tf32": 100.0, "fp16": 200.0, "bf16": 200.0}
)


def test_no_simulated_gpu_from_kepler_to_blackwell_is_faster_than_it_can_be(run):
    _, session = run(PRODUCTS, node=NODES / "mixed_8_gpus.json")
    names = {d["device_id"]: d["device_name"] for d in table(session / "devices.csv")}
    rows = table(session / "ceilings.csv")
    assert {names[row["device_id"]] for row in rows} == set(names.values()), "each of the eight has rates"
    assert [row for row in rows if row["verdict"] == "impossible"] == []
    assert {row["verdict"] for row in rows} == {"possible"}
    assert all(row["ceiling_tflops"] and row["published_tflops"] and float(row["clock_mhz"]) > 0 for row in rows)
    assert all(row["algorithm"] for row in rows if row["case"].startswith("convolution/"))
    summary = table(session / "summary.csv")
    assert {row["impossible"] for row in summary} == {"false"}
    assert "impossible-rate" not in {row["code"] for row in table(session / "findings.csv")}


def test_a_rate_that_cannot_be_is_kept_and_found_and_counts_nowhere(run, make_node, export):
    filter_ = r"matmul/library/size:256/type:(fp32|bf16)/|convolution.*conv5_1x1_2048/n:1/type:fp32"
    done, session = run(filter_, devices="0,host", node=make_node(**SWAPPED), page=True)
    judged = {row["case"]: row for row in table(session / "ceilings.csv") if row["ceiling_tflops"]}
    fp32 = next(row for case, row in judged.items() if case.startswith("matmul/library/size:256/type:fp32"))
    assert fp32["verdict"] == "impossible" and float(fp32["share"]) > 1.02
    assert "TF32 (156 TFLOP/s)" in fp32["causes"]
    bf16 = next(row for case, row in judged.items() if "type:bf16" in case)
    assert bf16["verdict"] == "possible" and float(bf16["published_tflops"]) == 312

    # Its value is in the summary as it was measured.
    kept = [row for row in table(session / "summary.csv") if row["impossible"] == "true" and row["metric"] == "tflops"]
    assert "type:fp32" in kept[0]["params"] and 19.9 < float(kept[0]["p50"]) < 43
    assert {row["status"] for row in kept} == {"ok"}

    # It is found, and counts in no headline and no comparison with the CPU.
    (finding,) = [row for row in table(session / "findings.csv") if row["code"] == "impossible-rate"]
    assert fp32["case"] in finding["evidence"] and finding["severity"] == "distorts"
    assert "Their rates are above what the GPU can do" in done.stdout
    tables = export(session)
    gpu = fp32["device_id"]
    headings = {row["heading"] for row in table(tables / "headlines.csv") if row["device_id"] == gpu}
    assert "matmul bf16, best" in headings and "matmul fp32, best" not in headings
    fallback = tables / "fallback.csv"
    assert not fallback.exists() or fp32["case"] not in {row["case"] for row in table(fallback)}

    page = (session / "report.html").read_text(encoding="utf-8")
    assert "Share of the ceiling" in page and '<span class="chip impossible"' in page


def test_a_rate_that_cannot_be_is_compared_with_no_earlier_one(tmp_path):
    product, launch = "matmul/library/size:4096/type:fp32/cache:warm", "launch/null/api:driver/mode:idle"

    def night(number: int, tflops: float) -> Path:
        medians = {product: {"tflops": [tflops] * 6}, launch: {"api_ns": [2300.0] * 6}}
        return Session(night=number, medians=medians).write(tmp_path)

    out = tmp_path / "check.json"
    launchgap("check", night(0, 50), night(1, 400), "--json", out, code=0)
    results = {result["metric"]: result for result in json.loads(out.read_text())["results"]}
    assert results["tflops"]["verdict"] == "invalid"
    assert results["tflops"]["reason"].startswith("impossible: 400 TFLOP/s is 6.0 times the ceiling of fp32, 66.9 TFLOP/s.")
    assert results["api_ns"]["verdict"] != "invalid", "the rest is compared"


def test_the_ceiling_itself_is_measured_and_is_no_more_than_the_table_says(run):
    _, session = run("multiply_add", "--profile", "nightly", node=NODES / "mixed_8_gpus.json")
    rows = table(session / "ceilings.csv")
    assert len(rows) == 16, "FP32 and FP64 on eight GPUs"
    assert {row["verdict"] for row in rows} == {"possible"}
    assert all(0.3 < float(row["share"]) < 1 for row in rows)
