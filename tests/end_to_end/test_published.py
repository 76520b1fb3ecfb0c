"""Tables of values that others have published, as sessions."""

import json
import time

import pytest
from shipped import ROOT, launchgap, table

HEAD = "gpu,benchmark,case,metric,unit,value,library,library_version,cuda,driver,source,licence\n"
LINE = "Tesla K40,matmul/shapes,shape:64x64x64/library:cublas/type:fp32,tflops,TFLOP/s,1.5,cuBLAS,7.5,7.5,,a sheet,MIT\n"


@pytest.fixture
def published(tmp_path):
    def import_(text):
        path = tmp_path / "sheet.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return launchgap("import", path, "-o", tmp_path / "session"), tmp_path / "session"

    return import_


def test_the_published_sweeps_have_the_gains_that_are_known(tmp_path):
    done = launchgap("import", ROOT / "data" / "published_sweeps.csv", "-o", tmp_path / "session")
    assert done.returncode == 0, done.stderr
    assert "727 values of 2 GPUs, published by 2 sources: nothing was measured here" in done.stderr
    rows = table(tmp_path / "session" / "cliffs.csv")
    long = {(row["benchmark"], row["size"]): float(row["gain"]) for row in rows if float(row["gain"]) > 1.05}
    assert len(long) == 39 + 2
    assert long["matmul/library", "2056"] == pytest.approx(1.22, abs=0.005)
    assert long["matmul/library", "2072"] == pytest.approx(1.34, abs=0.005)
    assert long["matmul/shapes", "632"] == max(v for (b, _), v in long.items() if b == "matmul/shapes")
    assert {row["verdict"] for row in rows} == {"too few processes"}
    assert not [row for row in table(tmp_path / "session" / "findings.csv") if row["code"] == "cliff"]
    page = (tmp_path / "session" / "report.html").read_text(encoding="utf-8")
    assert "published values of 2" in page and "Nothing of them was measured here" in page
    assert 'id="cliffs"' in page and "632: 1.19 times 640" in page


@pytest.fixture(scope="module")
def sheets(tmp_path_factory):
    """The tables of SuperBench and DeepBench as one session."""
    session = tmp_path_factory.mktemp("sheets") / "session"
    files = [ROOT / "data" / f"published_{name}.csv" for name in ("superbench", "deepbench")]
    done = launchgap("import", *files, "-o", session)
    assert done.returncode == 0, done.stderr
    devices = {device["uuid"]: device for device in json.loads((session / "session.json").read_text())["devices"]}
    return session, devices


def values_of(sheets, gpu, metric, source):
    """By case, of one GPU."""
    session, devices = sheets
    return {
        f"{row['benchmark']}/{row['params']}": float(row["p50"])
        for row in table(session / "summary.csv")
        if devices[row["device_id"]]["name"] == gpu and row["metric"] == metric and source in row["method"]
    }


def test_launches_and_batched_products_took_longer_on_the_a100_than_on_the_v100(sheets):
    wall = [
        values_of(sheets, gpu, "wall_per_launch_ns", "superbench")["launch/superbench/mode:wall"]
        for gpu in ("NVIDIA V100", "NVIDIA A100")
    ]
    assert wall == pytest.approx([7710, 10455])
    assert wall[0] / wall[1] == pytest.approx(0.74, abs=0.005)
    old, new = (values_of(sheets, gpu, "device_ns", "superbench") for gpu in ("NVIDIA V100", "NVIDIA A100"))
    batched = {name: old[name] / new[name] for name in old if "-b" in name and "type:fp32" in name and "matmul/" in name}
    assert batched == {
        "matmul/shapes/shape:224x64x224-b512/library:cublas/type:fp32": pytest.approx(0.85, abs=0.005),
        "matmul/shapes/shape:224x64x224-b160/library:cublas/type:fp32": pytest.approx(0.87, abs=0.005),
    }
    assert values_of(sheets, "NVIDIA V100", "copy_gbs", "superbench") == {
        "ceiling/copy/direction:device_to_device/memory:device/bytes:32000000": pytest.approx(728.25),
        "ceiling/copy/direction:host_to_device/memory:pinned/bytes:32000000": pytest.approx(12.4),
        "ceiling/copy/direction:device_to_host/memory:pinned/bytes:32000000": pytest.approx(13.1),
    }


def test_the_v100_is_slower_than_the_p100_in_seven_products_of_deepbench(sheets):
    times = [
        {
            name: value
            for name, value in values_of(sheets, gpu, "device_ns", "DeepBench").items()
            if name.startswith("matmul/") and name.endswith("/type:fp32")
        }
        for gpu in ("Tesla M40", "Tesla P100", "NVIDIA V100")
    ]
    m40, p100, v100 = times
    assert m40.keys() == p100.keys() == v100.keys() and len(v100) == 160
    assert sum(v100[name] > p100[name] for name in v100) == 7
    assert "matmul/shapes/shape:16x1760x1760-nt/library:cublas/type:fp32" in v100


def test_published_rates_that_cannot_be_are_marked(sheets):
    session, devices = sheets
    rows = {
        (devices[row["device_id"]]["name"], row["case"]): row
        for row in table(session / "ceilings.csv")
        if row["verdict"] == "impossible"
    }
    product = "matmul/shapes/shape:224x{}x{}/library:cublas/type:fp32"
    swapped = [product.format(4000, 1000), product.format(1000, 4000)]
    assert sorted(name for gpu, name in rows if gpu == "NVIDIA V100") == sorted(swapped)
    convolutions = [
        f"convolution/shapes/shape:{shape}/direction:{direction}/layout:nchw/type:fp32"
        for shape in ("32x256x14x14-1024x1x1", "32x512x14x14-512x3x3-p1")
        for direction in ("forward", "data", "filter")
    ]
    assert sorted(name for gpu, name in rows if gpu == "NVIDIA A100") == sorted(swapped + convolutions)
    # "16 bit inputs, 32 bit multiplication", and faster than the P100 multiplies in 32 bits.
    pascal = [name for gpu, name in rows if gpu == "Tesla P100"]
    assert len(pascal) == 10 and all("/direction:forward/layout:nchw/type:fp16" in name for name in pascal)
    assert {gpu for gpu, _ in rows} == {"NVIDIA V100", "NVIDIA A100", "Tesla P100"}
    assert float(rows["NVIDIA V100", swapped[0]]["tflops"]) == pytest.approx(41.8, abs=0.1)
    algorithms = {row["algorithm"] for row in table(session / "ceilings.csv")}
    assert {"Winograd", "non-fused Winograd", "tiled FFT", "implicit GEMM", "algorithm 1", ""} <= algorithms


@pytest.mark.parametrize(
    ("metric", "unit", "value"), [("tflops", "TFLOP/s", 1.5), ("device_ns", "ns", 2 * 64**3 / 1500)], ids=["rate", "time"]
)
def test_a_time_has_a_rate_and_a_rate_a_time(published, metric, unit, value):
    done, session = published(HEAD + LINE.replace("tflops,TFLOP/s,1.5", f"{metric},{unit},{value}"))
    assert done.returncode == 0, done.stderr
    rows = {row["metric"]: float(row["p50"]) for row in table(session / "summary.csv")}
    assert rows == {"tflops": pytest.approx(1.5), "device_ns": pytest.approx(2 * 64**3 / 1500)}


def test_a_published_value_is_told_from_a_measured_one(published):
    done, session = published(HEAD + LINE)
    assert done.returncode == 0, done.stderr
    rows = {row["metric"]: row for row in table(session / "summary.csv")}
    assert rows["tflops"]["p50"] == "1.5" and float(rows["device_ns"]["p50"]) == pytest.approx(2 * 64**3 / 1500)
    assert {row["arm"] for row in rows.values()} == {"published"} and {row["source"] for row in rows.values()} == {
        "published"
    }
    assert json.loads((session / "session.json").read_text())["source"] == "published"
    assert "a sheet" in rows["tflops"]["method"] and "cuBLAS 7.5" in rows["tflops"]["method"]


@pytest.mark.parametrize("text", ["\ufeff" + HEAD + LINE, (HEAD + LINE).replace("\n", "\r\n")], ids=["marked", "crlf"])
def test_files_of_spreadsheets_are_read(published, text):
    done, session = published(text)
    assert done.returncode == 0, done.stderr
    assert {row["benchmark"] for row in table(session / "summary.csv")} == {"matmul/shapes"}


WRONG = {
    "nothing but a head": (HEAD, "no value is in it"),
    "an unknown column": (HEAD.replace("driver", "weather") + LINE, "column weather"),
    "too few cells": (HEAD + LINE + "Tesla K40,matmul\n", "line 3: 2 cells under 12 columns"),
    "no number": (HEAD + LINE.replace("1.5", "fast"), "line 2, column value: 'fast' is no number above 0"),
    "NaN": (HEAD + LINE.replace("1.5", "nan"), "line 2, column value"),
    "infinite": (HEAD + LINE.replace("1.5", "inf"), "line 2, column value"),
    "zero": (HEAD + LINE.replace("1.5", "0"), "line 2, column value"),
    "negative": (HEAD + LINE.replace("1.5", "-1"), "line 2, column value"),
    "out of range": (HEAD + LINE.replace("1.5", "1e999"), "line 2, column value"),
    "twice": (HEAD + LINE + LINE, "line 3, column case: a value of it is in line 2 already"),
    "an unknown metric": (HEAD + LINE.replace("tflops", "tflop"), "line 2, column metric: there is no metric 'tflop'"),
    "another unit": (HEAD + LINE.replace("TFLOP/s", "GFLOP/s"), "line 2, column unit: tflops is in TFLOP/s"),
    "too small for a time": (
        HEAD + LINE.replace("1.5", "1e-320"),
        "line 2, column value: '1e-320' is not from 1e-30 to 1e+30",
    ),
    "no benchmark": (HEAD + LINE.replace("matmul/shapes", "../shapes"), "line 2, column benchmark: '../shapes' is none"),
    "no case": (HEAD + LINE.replace("shape:64x64x64/library:cublas/type:fp32", "fast"), "line 2, column case"),
    "an unknown algorithm": (
        HEAD.replace("\n", ",algorithm\n")
        + LINE.replace("\n", ",Winograd\n")
        + LINE.replace("64x64x64", "8x8x8")[:-1]
        + ",winograd\n",
        "line 3, column algorithm: there is no algorithm 'winograd'",
    ),
    "no source": (HEAD + LINE.replace("a sheet", ""), "line 2, column source: it is empty"),
    "cut off": (HEAD + LINE + LINE[:40], "its last line has no end"),
    "not UTF-8": ((HEAD + LINE).encode() + b"\xff\n", "line 3: not UTF-8"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_named_and_nothing_is_written(published, wrong):
    text, words = WRONG[wrong]
    done, session = published(text)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and "sheet.csv" in done.stderr and "Traceback" not in done.stderr
    assert not session.exists()


def test_a_file_that_is_too_large_is_refused_at_once(tmp_path):
    path = tmp_path / "sheet.csv"
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD)
        out.truncate(1 << 30)
    begin = time.monotonic()
    done = launchgap("import", path, "-o", tmp_path / "session")
    assert done.returncode == 2 and "sheet.csv" in done.stderr
    assert time.monotonic() - begin < 10 and not (tmp_path / "session").exists()
