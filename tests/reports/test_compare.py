"""The generation gap: which cases meet, and how the page shows each ratio. Ratios are tested in tests/gap."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import make_gap
import make_session
import pytest
from html_reader import read
from launchgap_report import compare as cmp
from launchgap_report import gap as gap_tables
from launchgap_report.session import load

tables_of = make_gap.laid_beside


def compared(folders: list[Path], **tables: list[dict[str, Any]]) -> cmp.Comparison:
    sessions = [load(f, f) for f in folders]
    with TemporaryDirectory() as written:
        read = gap_tables.load(make_gap.write(Path(written), folders, **tables), sessions[0].registry)
    comparison = cmp.compare(sessions, read)
    assert comparison is not None
    return comparison


def cell(comparison: cmp.Comparison, case: str, metric: str, device: str) -> cmp.Cell:
    lines = [x for family in comparison.families.values() for x in family if x.case == case and x.metric == metric]
    assert len(lines) == 1
    slot = next(c.slot for c in comparison.columns if c.title.startswith(device))
    return lines[0].cells[slot]


def test_columns_stand_in_the_order_of_generations(gap: list[Path]) -> None:
    comparison = compared(gap)
    names = ["host", "Tesla K40m", "NVIDIA A100-SXM4-80GB", "NVIDIA H200", "NVIDIA X900 Prototype"]
    assert [c.device.name for c in comparison.columns] == names
    assert comparison.reference.device.name == "Tesla K40m"


def test_less_time_and_more_throughput_are_both_faster(gap: list[Path]) -> None:
    comparison = compared(gap)
    time = cell(comparison, "launch/null/api:own/mode:idle", "api_ns", "NVIDIA H200")
    assert time.tone == "better" and time.verdict.endswith("faster") and time.speed > 2
    rate = cell(comparison, "matmul/library/size:4096/type:fp32/cache:warm", "tflops", "NVIDIA H2")
    assert rate.tone == "better" and 14 < rate.speed < 17
    host = cell(comparison, "matmul/library/size:4096/type:fp32/cache:warm", "tflops", "host")
    assert host.tone == "worse" and host.verdict.endswith("slower")


def test_a_hosts_queue_meets_a_gpus_driver(gap: list[Path]) -> None:
    host = cell(compared(gap), "launch/null/api:own/mode:burst", "per_launch_ns", "host")
    assert host.status == "ok" and host.speed is not None


def test_an_unsupported_cell_says_why(gap: list[Path]) -> None:
    comparison = compared(gap)
    case = "matmul/library/size:1024/type:tf32/cache:warm"
    old = cell(comparison, case, "tflops", "Tesla K40m")
    assert (old.status, old.reason) == ("unsupported", "tf32 needs compute capability 8.0")
    # Without a reference there is a number and no ratio.
    new = cell(comparison, case, "tflops", "NVIDIA H200")
    assert new.value and new.speed is None


@pytest.mark.parametrize(("gpu", "capability"), [("NVIDIA H200", "9.0"), ("Tesla K40m", "3.5")])
def test_what_all_agree_in_is_one_line(tmp_path: Path, gpu: str, capability: str) -> None:
    def write(name: str, call: float) -> Path:
        spec = make_session.Spec(gpu, capability=capability, call=call)
        return make_session.Builder(name, [spec], seed=1).build().write(tmp_path / name)

    comparison = compared([write("a", 2300.0), write("b", 4600.0)])
    assert {line.metric for line in comparison.families["launch"]} >= {"api_ns"}
    agreeing = comparison.agreeing["matmul"]
    assert comparison.families["matmul"] == [] and agreeing, "they are the same GPU"
    # What neither can do is no difference either.
    assert any(line.cells[0].status == "unsupported" for line in agreeing) == (gpu == "Tesla K40m")


def test_a_different_host_or_driver_is_named(gap: list[Path]) -> None:
    warnings = " ".join(compared(gap).warnings)
    assert "Host CPUs differ" in warnings and "as much about the host as about the GPU" in warnings
    assert "Drivers differ (470.256.02 and 580.65.06)" in warnings
    assert "Versions of cuBLAS differ (10.2.3 and 13.1.0)" in warnings


def test_a_setting_that_differs_between_the_runs_is_named(tmp_path: Path) -> None:
    folders = [
        make_session.Builder(wait, [make_session.Spec("NVIDIA H200", wait=wait)], seed=1).build().write(tmp_path / wait)
        for wait in ("spin", "block")
    ]
    (warning,) = compared(folders).warnings
    assert "'wait'" in warning and "block and spin" in warning


def test_equal_surroundings_give_no_warning(tmp_path: Path) -> None:
    folders = [
        make_session.Builder(str(i), [make_session.Spec("NVIDIA H200")], seed=i).build().write(tmp_path / str(i))
        for i in range(2)
    ]
    comparison = compared(folders)
    assert comparison.warnings == []
    assert len({c.title for c in comparison.columns}) == 2


def test_a_verdict_is_shown_as_the_program_gives_it(gap: list[Path]) -> None:
    tables = tables_of(gap)
    for row in tables["ratios"]:
        if row["device_id"] == "GPU-h200" or row["metric"] == "api_ns":
            row |= {"times": "", "verdict": "", "words": "not compared: timed in another way"}
    time = cell(compared(gap, **tables), "launch/null/api:own/mode:idle", "api_ns", "NVIDIA H200")
    assert time.value and (time.speed, time.verdict, time.tone) == (None, "not compared: timed in another way", "")


def test_simulated_devices_are_named(tmp_path: Path) -> None:
    folders = [
        make_session.simulated().write(tmp_path / "simulated"),
        make_session.Builder("real", [make_session.Spec("Tesla K40m", capability="3.5")]).build().write(tmp_path / "real"),
    ]
    assert any("no ratio is formed" in w for w in compared(folders).warnings)


def test_the_page_names_method_library_and_host_of_each_column(gap_page: str) -> None:
    text = read(gap_page).section("gap").text
    methods = ("driver API (api:driver)", "worker thread’s queue (api:queue)", "host clock", "device events")
    for word in (*methods, "cuBLAS 10.2.3", "Intel Xeon E5-2680 v3", "tf32 needs compute capability 8.0"):
        assert word in text, word


def test_the_traced_arm_is_compared_only_where_every_session_has_it(tmp_path: Path) -> None:
    def write(name: str, traced: bool) -> Path:
        spec = make_session.Spec("NVIDIA H200")
        builder = make_session.Builder(name, [spec], families=("launch",), traced=traced).build()
        for row in list(builder.tables["summary.csv"]):
            if row["arm"] == "traced":
                # What only the trace sees, at two levels of tracing.
                for process_config in ("launch", "launch+trace_level=kernels"):
                    builder.tables["summary.csv"].append({**row, "metric": "launch_ns", "process_config": process_config})
        return builder.write(tmp_path / name)

    def metrics(folders: list[Path]) -> set[tuple[str, str]]:
        comparison = compared(folders)
        lines = comparison.families["launch"] + comparison.agreeing["launch"]
        return {(line.key[0], line.metric) for line in lines}

    plain = {("plain", metric) for metric in ("api_ns", "roundtrip_ns", "per_launch_ns")}
    assert metrics([write("a", True), write("b", False)]) == plain
    assert metrics([write("c", True), write("d", True)]) == plain | {("traced", "launch_ns")}
