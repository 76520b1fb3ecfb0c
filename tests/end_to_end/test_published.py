"""Tables of values that others have published, as sessions."""

import json
import time

import pytest
from shipped import ROOT, launchgap, table

HEAD = "gpu,benchmark,case,metric,unit,value,library,library_version,cuda,driver,source,licence\n"
LINE = "Tesla K40,matmul/shapes,shape:64x64x64/library:cublas/type:fp32,tflops,TFLOP/s,1.5,cuBLAS,7.5,7.5,,a sheet,MIT\n"
TIME = LINE.replace("tflops,TFLOP/s,1.5", "device_ns,ns,350")
"""Of the same case"""


@pytest.fixture
def published(tmp_path):
    def import_(text, page=False):
        path = tmp_path / "sheet.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return launchgap("import", path, "-o", tmp_path / "session", page=page), tmp_path / "session"

    return import_


def test_the_published_sweeps_have_the_gains_that_are_known(tmp_path):
    done = launchgap("import", ROOT / "data" / "published_sweeps.csv", "-o", tmp_path / "session", page=True, code=0)
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
    launchgap("import", *files, "-o", session, code=0)
    devices = {device["uuid"]: device for device in json.loads((session / "session.json").read_text())["devices"]}
    return session, devices


def test_published_rates_of_copies_are_those_of_the_sheet(sheets):
    session, devices = sheets
    copies = [row for row in table(session / "summary.csv") if row["metric"] == "copy_gbs"]
    assert {
        tuple(part.partition(":")[2] for part in row["params"].split("/")): float(row["p50"])
        for row in copies
        if devices[row["device_id"]]["name"] == "NVIDIA V100"
    } == {
        ("device_to_device", "device", "32000000"): pytest.approx(728.25),
        ("host_to_device", "pinned", "32000000"): pytest.approx(12.4),
        ("device_to_host", "pinned", "32000000"): pytest.approx(13.1),
    }


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
    # Of the V100 there are values with CUDA 10.1, and these, of which it was not published.
    (found,) = [row["subject"] for row in table(session / "findings.csv") if row["code"] == "impossible-rate"]
    assert set(found.split(", ")) == {"8 cases on NVIDIA A100", "2 cases on NVIDIA V100", "10 cases on Tesla P100"}
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
    "one cell": (HEAD + LINE + "Tesla K40\n", "line 3: 1 cell under 12 columns"),
    "no licences": (HEAD.replace(",licence", "") + LINE.replace(",MIT", ""), "has no column 'licence'"),
    "a column twice": (HEAD.replace("driver", "cuda") + LINE, "line 1: column cuda is there twice"),
    "another source": (HEAD + LINE + TIME.replace("a sheet", "a page"),
        "line 3, column source: 'a page', and 'a sheet' of the same case in line 2"),
    "a time that the rate is not of": (HEAD + LINE + TIME.replace("350", "350000"),
        "line 3, column value: with the tflops in line 2 it makes 5.25e+08 operations, and the case has 5.24e+05"),
    "a time of half of the operations": (HEAD + LINE + TIME.replace("350", "174"),
        "line 3, column value: with the tflops in line 2 it makes 2.61e+05 operations"),
    "a time of twice the operations": (HEAD + LINE + TIME.replace("350", "700"),
        "line 3, column value: with the tflops in line 2 it makes 1.05e+06 operations"),
    "a long name": (HEAD + LINE.replace("Tesla K40", "K" * 301), "line 2, column gpu: it has 301 bytes, and may have 300"),
    "a long source": (HEAD + LINE.replace("a sheet", "s" * 2001),
        "line 2, column source: it has 2001 bytes, and may have 2000"),
    "a rate that the time is not of": (HEAD + TIME + LINE.replace("1.5", "0.7"),
        "line 3, column value: with the device_ns in line 2 it makes 2.45e+05 operations"),
    "another licence": (HEAD + LINE + TIME.replace("MIT", "GPL"), "line 3, column licence: 'GPL', and 'MIT' of the same"),
    "another library": (HEAD + LINE + TIME.replace("cuBLAS,7.5", "cuBLAS,7.0"),
        "line 3, column library: 'cuBLAS 7.0', and 'cuBLAS 7.5' of the same case in line 2"),
    "a zero byte": (HEAD + LINE.replace("a sheet", "a\0sheet"),
        "line 2, column source: 'a\\x00sheet' has a control character"),
    "an escape": (HEAD + LINE.replace("Tesla", "Te\x1bsla"), "line 2, column gpu: 'Te\\x1bsla K40' has a control character"),
    "a direction of writing": (HEAD + LINE.replace("Tesla", "Te\u202esla"), "line 2, column gpu"),
    "a line within a cell": (HEAD + LINE.replace("a sheet", '"a\nsheet"'), "line 2: a quote that is never closed"),
    "a long case": (HEAD + LINE.replace("64x64x64", "x".join(["64"] * 20_000)),
        "line 2, column case: it has 60030 bytes, and may have 300"),
    "a long line": (HEAD + LINE + LINE.replace("a sheet", "a" * 70_000), "line 3: it is longer than 65536 bytes"),
    "a benchmark that is none": (HEAD + LINE.replace("matmul/shapes", "matmul/shape"),
        "line 2, column benchmark: launchgap has no 'matmul/shape': did you mean 'matmul/shapes'?"),
    "an axis twice": (HEAD + LINE.replace("library:cublas", "shape:8x8x8"),
        "line 2, column case: axis 'shape' is there twice"),
    "no number": (HEAD + LINE.replace("1.5", "fast"), "line 2, column value: 'fast' is no number above 0"),
    "NaN": (HEAD + LINE.replace("1.5", "nan"), "line 2, column value"),
    "infinite": (HEAD + LINE.replace("1.5", "inf"), "line 2, column value"),
    "zero": (HEAD + LINE.replace("1.5", "0"), "line 2, column value"),
    "negative": (HEAD + LINE.replace("1.5", "-1"), "line 2, column value"),
    "out of range": (HEAD + LINE.replace("1.5", "1e999"), "line 2, column value"),
    "twice": (HEAD + LINE + LINE, "line 3, column case: a value of it is in line 2 already"),
    "an unknown metric": (HEAD + LINE.replace("tflops", "tflop"), "line 2, column metric: there is no metric 'tflop'"),
    "another unit": (HEAD + LINE.replace("TFLOP/s", "GFLOP/s"), "line 2, column unit: tflops is in TFLOP/s"),
    "too large for a rate": (HEAD + LINE.replace("1.5", "1.01e30"),
        "line 2, column value: '1.01e30' is not from 1e-30 to 1e+30"),
    "too small for a time": (HEAD + LINE.replace("1.5", "1e-320"),
        "line 2, column value: '1e-320' is not from 1e-30 to 1e+30"),
    "no benchmark": (HEAD + LINE.replace("matmul/shapes", "../shapes"), "line 2, column benchmark: '../shapes' is none"),
    "no case": (HEAD + LINE.replace("shape:64x64x64/library:cublas/type:fp32", "fast"), "line 2, column case"),
    "an unknown algorithm": (
        HEAD.replace("\n", ",algorithm\n") + LINE.replace("\n", ",Winograd\n")
        + LINE.replace("64x64x64", "8x8x8")[:-1] + ",winograd\n",
        "line 3, column algorithm: there is no algorithm 'winograd'"),
    "no source": (HEAD + LINE.replace("a sheet", ""), "line 2, column source: it is empty"),
    "cut off": (HEAD + LINE + LINE[:40], "its last line has no end"),
    "not UTF-8": ((HEAD + LINE).encode() + b"\xff\n", "line 3: not UTF-8"),
}  # fmt: skip


WITHIN = {
    "a time of half of the operations": HEAD + LINE + TIME.replace("350", "175"),
    "a time of twice the operations": HEAD + LINE + TIME.replace("350", "699"),
    "a long name": HEAD + LINE.replace("Tesla K40", "K" * 300),
    "a long source": HEAD + LINE.replace("a sheet", "s" * 2000),
    "a large rate": HEAD + LINE.replace("1.5", "1e30"),
    "a small rate": HEAD + LINE.replace("1.5", "1e-30"),
}


@pytest.mark.parametrize("within", WITHIN)
def test_what_is_just_within_its_limits_is_read(published, within):
    done, _ = published(WITHIN[within])
    assert done.returncode == 0, done.stderr


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


def import_texts(folder, *texts):
    """A session of several files."""
    paths = []
    for i, text in enumerate(texts):
        paths.append(folder / f"sheet{i}.csv")
        paths[-1].write_text(text, encoding="utf-8")
    return launchgap("import", *paths, "-o", folder / "session"), folder / "session"


def test_what_differs_between_files_is_named_with_both(tmp_path):
    done, _ = import_texts(tmp_path, HEAD + LINE, HEAD + LINE)
    assert done.returncode == 2
    assert "sheet1.csv, line 2, column case: a value of it is in" in done.stderr and "sheet0.csv, line 2," in done.stderr
    done, _ = import_texts(tmp_path, HEAD + LINE, HEAD + TIME.replace("a sheet", "a page"))
    assert done.returncode == 2
    assert "sheet1.csv, line 2, column source: 'a page', and 'a sheet' of the same case in" in done.stderr


@pytest.mark.parametrize(
    "library", ["cuBLAS 7.5,", "cuBLAS,7.5", "cuBLAS 7.5,7.5", " cuBLAS , 7.5 "], ids=["name", "apart", "both", "blanks"]
)
def test_a_librarys_version_may_stand_behind_its_name(published, library):
    done, session = published(HEAD + LINE + TIME.replace("cuBLAS,7.5", library))
    assert done.returncode == 0, done.stderr
    rows = {row["metric"]: row for row in table(session / "summary.csv")}
    assert float(rows["device_ns"]["p50"]) == 350 and float(rows["tflops"]["p50"]) == 1.5
    assert {row["method"] for row in rows.values()} == {"published by a sheet: cuBLAS 7.5"}


def test_the_sessions_id_is_of_the_content(tmp_path):
    def id_of(name, text):
        folder = tmp_path / name
        folder.mkdir()
        done, session = import_texts(folder, text)
        assert done.returncode == 0, done.stderr
        return json.loads((session / "session.json").read_text())["session_id"]

    assert id_of("first", HEAD + LINE) == id_of("same", HEAD + LINE)
    assert id_of("other", HEAD + LINE.replace("1.5", "2.5")) != id_of("again", HEAD + LINE)


def test_gpus_have_ids_of_their_own(published):
    lines = [
        LINE.replace("Tesla K40", name).replace("7.5,7.5,,", f"7.5,{cuda},{driver},")
        for name, cuda, driver in [("A|B", "", ""), ("A", "B", ""), ("A", "", "B"), ("A|B|", "", ""), ("A", "B|", "")]
    ]
    done, session = published(HEAD + "".join(lines))
    assert done.returncode == 0, done.stderr
    devices = json.loads((session / "session.json").read_text())["devices"]
    assert len({device["uuid"] for device in devices}) == len(devices) == 5
    assert len(table(session / "summary.csv")) == 2 * 5


def test_gpus_are_counted_by_their_names(published):
    text = HEAD + LINE + LINE.replace("7.5,7.5", "8.0,8.0") + LINE.replace("Tesla K40", " Tesla K40 ").replace("64", "8")
    done, session = published(text + LINE.replace("K40", "K80"), page=True)
    assert done.returncode == 0, done.stderr
    assert "4 values of 2 GPUs with 3 sets of CUDA and driver, published by 1 source" in done.stderr
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "published values of 2\u00a0GPUs" in page and "Nothing of them was measured here" in page
    assert "Tesla K40, CUDA 7.5" in page and "Tesla K40, CUDA 8.0" in page and "Tesla K40 (" not in page
    assert "Tesla K80, CUDA" not in page


def test_a_header_may_be_quoted_and_a_foreign_family_named(published):
    quoted = ",".join(f'"{name}"' for name in HEAD.strip().split(",")) + "\n"
    done, session = published(quoted + LINE.replace("matmul/shapes", "others/product"))
    assert done.returncode == 0, done.stderr
    assert {row["benchmark"] for row in table(session / "summary.csv")} == {"others/product"}


def test_a_table_and_a_recording_are_not_one_session(tmp_path):
    sheet, trace = tmp_path / "sheet.csv", tmp_path / "trace.json"
    sheet.write_text(HEAD + LINE, encoding="utf-8")
    trace.write_text('{"traceEvents": []}', encoding="utf-8")
    for files in ([sheet, trace], [trace, sheet]):
        done = launchgap("import", *files, "-o", tmp_path / "session")
        assert done.returncode == 2 and not (tmp_path / "session").exists()
        assert "tables of published values and recordings cannot be one session" in done.stderr
        assert "sheet.csv is such a table" in done.stderr and "trace.json is none" in done.stderr


@pytest.mark.parametrize("wrong", ["empty", "folder", "absent"])
def test_what_is_no_file_is_wrong_usage_wherever_it_stands(tmp_path, wrong):
    sheet, other = tmp_path / "sheet.csv", tmp_path / "other.csv"
    sheet.write_text(HEAD + LINE, encoding="utf-8")
    if wrong == "empty":
        other.touch()
    elif wrong == "folder":
        other.mkdir()
    for files in ([sheet, other], [other, sheet], [other]):
        done = launchgap("import", *files, "-o", tmp_path / "session")
        assert done.returncode == 2 and "other.csv" in done.stderr and not (tmp_path / "session").exists()


def test_what_has_no_known_form_is_told_of_tables(tmp_path):
    path = tmp_path / "figures.csv"
    path.write_text("Start (ns),Duration\n1,2\n", encoding="utf-8")
    done = launchgap("import", path, "-o", tmp_path / "session")
    assert done.returncode == 3 and "tables of published values (docs/published.md)" in done.stderr


def test_a_copy_without_a_size_is_imported(published):
    line = LINE.replace(
        "matmul/shapes,shape:64x64x64/library:cublas/type:fp32,tflops,TFLOP/s",
        "ceiling/copy,direction:device_to_device,copy_gbs,GB/s",
    )
    done, session = published(HEAD + line)
    assert done.returncode == 0, done.stderr
    assert [row["metric"] for row in table(session / "summary.csv")] == ["copy_gbs"]


def test_of_very_many_values_the_comparison_counts_all(tmp_path):
    sheet = tmp_path / "sheet.csv"
    with sheet.open("w", encoding="utf-8") as out:
        out.write(HEAD)
        for gpu, rate in (("Tesla V100-SXM2-16GB", 10), ("NVIDIA A100-SXM4-80GB", 8)):
            line = LINE.replace("Tesla K40", gpu).replace("1.5,cuBLAS", f"{rate},cuBLAS")
            out.writelines(line.replace("64x64x64", f"{i}x64x64") for i in range(1, 30_001))
    session = tmp_path / "session"
    done = launchgap("import", sheet, "-o", session, page=True)
    assert done.returncode == 0 and "60000 values of 2 GPUs" in done.stderr, done.stderr
    assert not table(session / "summary.csv")
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "ore than 50000 values: the comparison of GPUs counts them all" in page
    assert len(page) < 1e6
    done = launchgap("report", session, "-o", tmp_path / "page.html", "--tables", tmp_path / "tables", code=0)
    assert "30000 of 30000 products" in " ".join(done.stdout.split())
    cases = table(tmp_path / "tables" / "gap.csv")
    assert len(cases) == 30_000 and {float(row["times"]) for row in cases} == {0.8}
