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
    "control characters": (HEAD + LINE.replace("a sheet", "a\x07sheet"), "line 2, column source: it has control characters"),
    "a NUL": (HEAD + LINE.replace("Tesla K40", "Tesla\0K40"), "line 2, column gpu: it has control characters"),
    "a long case": (HEAD + LINE.replace("64x64x64", "x".join(["64"] * 20000)), "line 2, column case: it has"),
    "two sources of one case": (
        HEAD + LINE + LINE.replace("tflops,TFLOP/s", "device_ns,ns").replace("a sheet", "another"),
        "line 3, column source: the case has another source, licence, library or algorithm in line 2",
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


def test_a_table_of_two_kinds_of_file_is_refused(tmp_path):
    sheet, trace = tmp_path / "sheet.csv", tmp_path / "trace.json"
    sheet.write_text(HEAD + LINE)
    trace.write_text('{"traceEvents": []}')
    done = launchgap("import", sheet, trace, "-o", tmp_path / "session")
    assert done.returncode == 2 and "trace.json: it is no table of published values" in done.stderr, done.stderr
    assert not (tmp_path / "session").exists()


def test_names_are_trimmed_and_gpus_counted_once(published):
    other = LINE.replace("Tesla K40,", " Tesla K40 ,").replace("7.5,7.5,", "8.0,8.0,")
    done, session = published(HEAD + LINE + other)
    assert done.returncode == 0, done.stderr
    assert "2 values of 1 GPU with 2 sets of CUDA and driver, published by 1 source" in done.stderr
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "Tesla K40 (CUDA 7.5)" in page and "Tesla K40 (CUDA 8.0)" in page and "Tesla K40 (1)" not in page


def test_sessions_of_other_values_have_another_id(tmp_path):
    ids = set()
    for value in ("1.5", "2.5"):
        folder = tmp_path / value
        folder.mkdir()
        (folder / "sheet.csv").write_text(HEAD + LINE.replace("1.5", value))
        done = launchgap("import", folder / "sheet.csv", "-o", folder / "session", "--no-report")
        assert done.returncode == 0, done.stderr
        ids.add(json.loads((folder / "session" / "session.json").read_text())["session_id"])
    assert len(ids) == 2


def test_a_quoted_header_is_one(published):
    quoted = ",".join(f'"{name}"' for name in HEAD.strip().split(",")) + "\n"
    done, _ = published(quoted + LINE)
    assert done.returncode == 0, done.stderr


def test_more_values_than_a_session_holds_are_refused(tmp_path):
    sheet = tmp_path / "sheet.csv"
    with sheet.open("w", encoding="utf-8") as out:
        out.write(HEAD)
        out.writelines(LINE.replace("64x64x64", f"{i}x64x64") for i in range(1, 100_002))
    done = launchgap("import", sheet, "-o", tmp_path / "session")
    assert done.returncode == 2 and "line 100002, column value: more than 100000 values" in done.stderr, done.stderr
    assert not (tmp_path / "session").exists()


def test_a_file_that_is_too_large_is_refused_at_once(tmp_path):
    path = tmp_path / "sheet.csv"
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD)
        out.truncate(1 << 30)
    begin = time.monotonic()
    done = launchgap("import", path, "-o", tmp_path / "session")
    assert done.returncode == 2 and "sheet.csv" in done.stderr
    assert time.monotonic() - begin < 10 and not (tmp_path / "session").exists()
