"""docs/recorded-gpus.md says what data/recorded_launches.csv has, and each of its rows has a source and a licence."""

import csv
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "make-recorded-gpus"


def table(name: str) -> list[dict[str, str]]:
    with (ROOT / "data" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def script():
    spec = spec_from_loader("make_recorded_gpus", SourceFileLoader("make_recorded_gpus", str(SCRIPT)))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quantiles(row: dict[str, str], name: str) -> list[str]:
    return [row[f"{name}_p{q}_ns"] for q in (5, 25, 50, 75, 99)]


def test_the_tables_of_the_page_are_those_of_the_data():
    done = subprocess.run([SCRIPT, "tables", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_table_that_differs_from_the_data_is_told(script, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(script.PAGE.read_text().replace("| 3.7 (", "| 3.8 (", 1))
    assert page.read_text() != script.PAGE.read_text()
    monkeypatch.setattr(script, "PAGE", page)
    with pytest.raises(script.Failure, match="out of date"):
        script.tables(check=True)
    script.tables(check=False)
    assert page.read_text() == (ROOT / "docs" / "recorded-gpus.md").read_text()


def test_each_recording_has_its_own_source_and_a_licence(script):
    rows = table("recorded_launches.csv")
    assert list(rows[0]) == script.COLUMNS
    assert len({row["source"] for row in rows}) == len(rows)
    for row in rows:
        assert script.SOURCE.fullmatch(row["source"]), row
        assert row["licence"], row


def test_quantiles_are_in_order_and_there_if_enough_launches_were_on_an_idle_stream():
    for row in table("recorded_launches.csv"):
        assert 0 <= int(row["idle_launches"]) <= int(row["launches"]), row
        for name in ("call", "call_to_kernel"):
            told = quantiles(row, name)
            if int(row["idle_launches"]) < 100:
                assert set(told) == {""}, row
            else:
                times = [int(time) for time in told]
                assert times == sorted(times) and times[0] > 0, row


def test_a_gpu_that_is_named_has_a_month_of_launch_which_is_that_of_its_model(script):
    rows = table("recorded_launches.csv")
    for row in rows:
        assert bool(row["gpu"]) == bool(re.fullmatch(r"20\d\d-\d\d", row["launched"])), row
        assert row["launched"] == script.launch_months().get(script.model(row["gpu"]), ""), row
    assert rows == sorted(rows, key=script.by_launch)


def test_a_gpu_has_one_month_of_launch_with_a_source(script):
    rows = table("gpu_launches.csv")
    models = [script.model(row["gpu"]) for row in rows]
    assert len(set(models)) == len(models)
    assert not set(models) & {script.model(row["gpu"]) for row in table("generations.csv")}
    for row in rows:
        assert re.fullmatch(r"20\d\d-\d\d", row["launched"]) and row["source"], row


@pytest.mark.parametrize(
    ("gpu", "model"),
    [
        ("Tesla V100-SXM2-32GB", "V100"),
        ("V100 PCIe 16GB", "V100"),
        ("Tesla V100-DGXS-32GB", "V100"),
        ("NVIDIA A100-PG509-200", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("K80 (per die)", "K80"),
        ("K40c", "K40"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 TI"),
        ("GTX 1060 3GB", "GTX 1060"),
    ],
)
def test_a_model_is_a_gpus_name_without_its_board_and_memory(script, gpu, model):
    assert script.model(gpu) == model


def test_the_published_latencies_of_a_node_are_one_row(script):
    rows = [line for line in script.opencl().splitlines() if line.startswith("| A100-SXM4-40GB ")]
    assert len(rows) == 1
    assert "| 5.65 to 5.76 | Linux | 515.48.07 |" in rows[0]


def test_the_figure_has_each_recording_that_names_its_gpu_and_says_whose_it_is():
    path = ROOT / "docs" / "images" / "recorded-gpus.svg"
    assert path.stat().st_size < 150_000
    texts = ["".join(text.itertext()) for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    drawn = [row for row in table("recorded_launches.csv") if row["gpu"] and row["call_p50_ns"]]
    labels = [text for text in texts if re.fullmatch(r".* · 20\d\d", text)]
    assert [label[-4:] for label in labels] == [row["launched"][:4] for row in drawn]
    for label, row in zip(labels, drawn, strict=True):
        assert row["gpu"].endswith(label[:-7]), label
    assert any("not measured by launchgap" in text for text in texts)


def test_a_source_that_names_no_commit_is_refused():
    done = subprocess.run(
        [SCRIPT, "add", "report1.sqlite", "--source", "somebody/something report1.sqlite", "--licence", "MIT"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3
    assert "OWNER/NAME@COMMIT PATH" in done.stderr


def test_a_recording_that_is_added_has_the_figures_that_were_found_without_launchgap(script, tmp_path, monkeypatch):
    recording = ROOT / "tests" / "recordings" / "a100-cloverleaf.nsys.sqlite"
    with (ROOT / "tests" / "recordings" / "figures.csv").open(newline="") as file:
        expected = next(row for row in csv.DictReader(file) if row["file"] == recording.name)
    monkeypatch.setattr(script, "RECORDED", tmp_path / "recorded.csv")
    for licence in ("none named", "MIT"):  # the second takes the place of the first
        script.add([recording], "owner/name@0123abc a file.sqlite", licence)
    (row,) = script.read_table(script.RECORDED)
    assert (row["gpu"], row["launched"], row["licence"]) == ("NVIDIA A100-SXM4-80GB", "2020-05", "MIT")
    assert (row["launches"], row["idle_launches"]) == (expected["launches"], expected["idle"])
    assert row["call_to_kernel_p50_ns"] == expected["delay_p50"]
    assert float(row["call_to_kernel_p99_ns"]) == pytest.approx(float(expected["delay_p99"]), abs=0.5)
