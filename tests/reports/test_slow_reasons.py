"""What makes launches slower, and why samples are slow, as the page draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import make_session
from html_reader import Node
from report_paths import draw_page

IDLE = "launch/null/api:driver/mode:idle"


def draw(folder: Path, **tables: list[dict[str, Any]]) -> Node:
    builder = make_session.one_gpu()
    key = {"session_id": builder.session_id, "device_id": builder._id(builder.specs[0])}
    for name, rows in tables.items():
        builder.tables[f"{name}.csv"] = [key | row for row in rows]
    return draw_page(folder, builder.write(folder / "session"))


def cells(section: Node) -> list[list[str]]:
    return [[cell.words for cell in (*row.all("th"), *row.all("td"))] for row in section.all("tbody")[0].all("tr")]


def beside(what: str, statistic: str, quiet: float, times: float, verdict: str, **more: Any) -> dict[str, Any]:
    row = {"arm": "plain", "beside": what, "mode": "idle", "metric": "roundtrip_ns", "statistic": statistic, "runs": 3}
    row |= {"launches": 600, "quiet_ns": quiet, "disturbed_ns": quiet * times, "added_ns": quiet * (times - 1)}
    row |= {"times": times, "verdict": verdict}
    return row | more


def test_interferences_stand_by_what_they_cost(tmp_path: Path) -> None:
    interval = {"added_lo_ns": 26000, "added_hi_ns": 34000}
    rows = [
        beside("event", "p50", 6000, 1.001, "same"),
        beside("sleep", "p50", 6000, 6, "slower", **interval, lasts_launches=4, lasts_ns=90000, lasts_longer="false"),
        beside("sleep", "mean", 6100, 7, "slower"),
        beside("long_kernel", "p50", 6000, 0.9, "cannot-tell"),
    ]
    (section,) = draw(tmp_path, interference=rows).all("section", id="interference")
    assert "Slower at the median: sleep (6.00 times); of 1 more these runs cannot tell." in section.words
    assert cells(section) == [
        [
            "sleep",
            "round trip",
            "slower",
            "6.00 µs",
            "+30.0 (+26.0 to +34.0) µs",
            "+36.6 µs",
            "–",
            "–",
            "4 launches, 90.0 µs",
        ],
        ["event", "round trip", "same", "6.00 µs", "+6.00 ns", "–", "–", "–", "–"],
        ["long kernel", "round trip", "cannot tell", "6.00 µs", "−600 ns", "–", "–", "–", "–"],
    ]


def test_where_nothing_is_slower_it_says_so(tmp_path: Path) -> None:
    rows = [beside("event", "p50", 6000, 1, "same"), beside("sleep", "p50", 6000, 2, "cannot-tell")]
    (section,) = draw(tmp_path, interference=rows).all("section", id="interference")
    assert (
        "None of 1 that can be told makes launches slower at the median; of 1 more these runs cannot tell." in section.words
    )


def slow(cause: str, samples: int, extra_ns: float, case: str = IDLE, arm: str = "plain") -> dict[str, Any]:
    row = {"arm": arm, "process_config": "launch", "case": case, "metric": "roundtrip_ns", "level": "sample"}
    return row | {"cause": cause, "samples": samples, "of_samples": 6000, "extra_ns": extra_ns, "extra_share": 0.5}


def test_what_is_unexplained_is_always_there_and_last(tmp_path: Path) -> None:
    rows = [slow("host-pause", 3, 9e6), slow("page-fault", 9, 1e5), slow("unexplained", 4, 9e5)]
    rows += [slow("blocked", 1, 1e5, case="launch/args/bytes:8/mode:idle"), slow("clocks", 1, 1e9, arm="traced")]
    (section,) = draw(tmp_path, slow_causes=rows).all("section", id="slow-causes")
    causes = "host-pause 89 %, page-fault 0.99 %, blocked 0.99 % and unexplained 8.9 %."
    assert f"Slow samples take 10.1 ms above the medians: {causes}" in section.words
    found = cells(section)
    assert [row[1:4] for row in found] == [
        ["traced", "1 of 6000", "1.00 s"],
        ["plain", "16 of 6000", "10.0 ms"],
        ["plain", "1 of 6000", "100 µs"],
    ]
    assert found[2][4] == "blocked 100 % and unexplained 0 %"


def test_what_differs_between_runs_is_said_with_its_chance(tmp_path: Path) -> None:
    row = {"process_config": "launch", "case": IDLE, "metric": "api_ns", "runs": 12, "slow": "9", "fast": "1"}
    rows = [
        row | {"factor": "cpus", "variance_share": 0.91, "chance": 1e-6, "verdict": "explains"},
        row | {"factor": "begin", "variance_share": 0.2, "chance": 0.2, "verdict": "may-be-chance"},
    ]
    (section,) = draw(tmp_path, run_factors=rows).all("section", id="slow-causes")
    assert cells(section) == [[IDLE, "api_ns", "cpus", "91 %", "9", "1"]]
    assert "1 more may be chance" in section.words


def test_who_keeps_the_others_waiting(tmp_path: Path) -> None:
    row = {"case": "device/skew/work:compute/threads:one", "skew_valid": "true", "runs": 3, "steps": 300, "host_ns": 3000}
    row |= {"uncertainty_ns": 4000, "together": 1.01, "lateness": "one", "cause": "device", "late_share": 0.9}
    rows = [
        row | {"member": "GPU-other", "last": 30, "work_ns": 1e6, "late_ns": -80000, "relative_score": 1, "late": "false"},
        row | {"member": "GPU-<b>", "last": 270, "work_ns": 1.08e6, "late_ns": 8e4, "relative_score": 0.93, "late": "true"},
    ]
    (section,) = draw(tmp_path, skew=rows).all("section", id="skew")
    assert "2 devices, compute: one thread launches on all in turn" in section.words
    assert "No lateness below 4.00 µs is told" in section.words
    assert [line[0] for line in cells(section)] == ["GPU-other", "GPU-<b>"]
    assert cells(section)[1][1:] == ["270 of 300", "3.00 µs", "1.08 ms", "80.0 µs", "1.01×", "0.93", "late: device"]
    assert cells(section)[0][4] == "−80.0 µs"


def test_one_gpu_says_that_it_means_nothing(tmp_path: Path) -> None:
    row = {"case": "device/skew/work:copy/threads:one", "skew_valid": "false", "runs": 3, "steps": 300, "last": 150}
    row |= {"host_ns": 3000, "work_ns": 1e6, "late_ns": 0, "uncertainty_ns": 4000, "lateness": "none", "late": "false"}
    rows = [row | {"member": f"GPU-1 stream {i}"} for i in range(2)]
    (section,) = draw(tmp_path, skew=rows).all("section", id="skew")
    assert "means nothing else" in section.words
    assert [line[0] for line in cells(section)] == ["GPU-1, stream 0", "GPU-1, stream 1"]


def test_the_ladder_stands_beside_the_library(tmp_path: Path) -> None:
    row = {
        "benchmark": "matmul/ladder",
        "shape": "4096x4096x4096",
        "type": "bf16",
        "status": "ok",
        "runs": 3,
        "device_ns": 2e5,
        "tflops": 600,
    }
    rows = [
        row | {"rung": "wgmma", "of_library": 0.8, "of_best": 0.8},
        row | {"rung": "mma", "status": "unsupported", "reason": "needs <9.0>", "device_ns": "", "tflops": ""},
        row | {"rung": "library", "of_library": 1, "of_best": 1},
    ]
    sentence = "A product takes launchgap's own kernels 20 times as long without tensor cores."
    findings = [{"source": "session", "code": "ladder", "severity": "note", "sentence": sentence}]
    (section,) = draw(tmp_path, ladder=rows, findings=findings).all("section", id="ladder")
    assert sentence in section.words and "matmul/ladder, 4096x4096x4096" in section.words
    shown = cells(section)
    assert [line[0] for line in shown] == ["wgmma", "mma", "library"]
    assert shown[0][2:] == ["BF16", "200 µs", "600 TFLOP/s", "80 %", "80 %"]
    assert shown[1][1].endswith("unsupported: needs <9.0>") and shown[1][3:] == ["–"] * 4
    assert not draw(tmp_path / "none").all("section", id="ladder")
