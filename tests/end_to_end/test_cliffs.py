"""Sizes of a user's series: measured in a random order, and compared with larger ones."""

import csv
import json
import re

import pytest
from shipped import ROOT, launchgap, records, table

SIZES = (64, 66, 68, 70, 72, 74)


@pytest.fixture
def shapes(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("m,n,k\n" + "".join(f"{size},{size},{size}\n" for size in SIZES))
    return path


def test_a_series_on_the_host_has_a_gain_and_a_verdict_for_each_size(run, shapes):
    _, session = run("^matmul/shapes/.*openblas/type:fp32", "--shapes", shapes, runs=10)
    rows = table(session / "cliffs.csv")
    assert [float(row["size"]) for row in rows] == list(SIZES[:-1]), "the last has no larger one"
    for row in rows:
        assert row["case"] == "matmul/shapes/shape:*x*x*/library:openblas/type:fp32" and row["metric"] == "device_ns"
        assert row["runs"] == "10" and row["verdict"] in ("cliff", "none")
        size, pad_to, gain = float(row["size"]), float(row["pad_to"]), float(row["gain"])
        assert size <= pad_to <= 1.25 * size
        assert (row["gain_lower"] == "") == (size == pad_to), "what is padded to itself gains nothing"
        assert size == pad_to or float(row["gain_lower"]) <= gain <= float(row["gain_upper"])
    cliffs = {row["size"] for row in rows if row["verdict"] == "cliff"}
    found = [row for row in table(session / "findings.csv") if row["code"] == "cliff"]
    assert bool(cliffs) == bool(found)


def test_each_process_has_an_order_of_its_own(run, shapes):
    _, session = run("^matmul/shapes/.*openblas/type:fp32", "--shapes", shapes, runs=4)
    orders = {
        tuple(re.search(r"shape:(\d+)x", r["case"])[1] for r in file if r["record"] == "summary")
        for file in records(session).values()
    }
    assert all(sorted(map(int, order)) == list(SIZES) for order in orders)
    assert len(orders) >= 3, orders
    rows = table(session / "cliffs.csv")
    assert {row["verdict"] for row in rows} == {"too few processes"}


def test_the_series_that_come_with_it_are_shapes():
    files = sorted((ROOT / "data" / "sweeps").glob("*.csv"))
    assert len(files) >= 8
    for path in files:
        with open(path, encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        assert len(rows) >= 40
        family = "convolution" if "c" in rows[0] else "matmul"
        launchgap(
            "run", "--devices", "host", "--profile", "full", "--shapes", path, "--dry-run", "--filter", f"^{family}/", code=0
        )


def test_sizes_of_allocations_are_swept_in_a_random_order(run):
    _, session = run("^allocation/latency/allocator:direct", "--sweep", "bytes=4096:5120:128", runs=10)
    assert json.loads((session / "session.json").read_text())["random_order"] is True
    sizes = list(range(4096, 5121, 128))
    rows = table(session / "cliffs.csv")
    for metric in ("call_ns", "first_touch_ns", "free_ns"):
        assert [float(r["size"]) for r in rows if r["metric"] == metric] == sizes[:-1]
    assert {r["verdict"] for r in rows} <= {"cliff", "none"} and {r["runs"] for r in rows} == {"10"}
    orders = {
        tuple(int(re.search(r"bytes:(\d+)", r["case"])[1]) for r in file if r["record"] == "summary")
        for file in records(session).values()
    }
    assert all(sorted(order) == sizes for order in orders) and len(orders) >= 8, orders


def test_sizes_of_grids_and_copies_are_swept_on_a_gpu(run, make_node):
    sweeps = ("--sweep", "blocks=10:15:1", "--sweep", "bytes=65530:65540:2")
    cases = "^launch/grid|^ceiling/copy.*memory:(pageable|device)"
    _, session = run(cases, "--profile", "full", *sweeps, runs=2, node=make_node())
    summary = table(session / "summary.csv")
    assert {row["status"] for row in summary} == {"ok"}
    swept = {(row["benchmark"], row["params"].split("/")[-1]) for row in summary}
    assert swept == {("launch/grid", f"blocks:{n}") for n in range(10, 16)} | {
        ("ceiling/copy", f"bytes:{n}") for n in range(65530, 65541, 2)
    }
    assert {row["case"].split("/")[-1] for row in table(session / "cliffs.csv")} == {"blocks:*", "bytes:*"}


@pytest.mark.parametrize(
    ("sweep", "wrong"),
    [
        (["bytes"], "'bytes': it is not AXIS=FROM:TO"),
        (["bytes=0:4"], "'0' is no whole number"),
        (["bytes=4:-2"], "'-2' is no whole number"),
        (["bytes=8:4"], "it ends at 4, before 8"),
        (["bytes=1:9:0"], "'0' is no whole number"),
        (["bytes=1:9:2:3"], "'2:3' is no whole number"),
        (["bytes=1:1099511627777"], "'1099511627777' is no whole number"),
        (["bytes=1:4097"], "these are 4097 sizes"),
        (["mode=1:4"], "no benchmark has an axis 'mode' of sizes; there are blocks, bytes"),
        (["bytes=1:4", "bytes=8:9"], "the axis 'bytes' is there twice"),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path, sweep, wrong):
    arguments = [word for one in sweep for word in ("--sweep", one)]
    done = launchgap("run", "--devices", "host", *arguments, "-o", tmp_path / "session")
    assert done.returncode == 2 and wrong in done.stderr, done.stderr
    assert not (tmp_path / "session").exists()


def test_a_benchmark_leaves_out_sizes_that_it_cannot_have(run):
    done = launchgap(
        "run", "--devices", "host", "--sweep", "nodes=16384:16386", "--filter", "^launch/graph", "--dry-run", "-v", code=0
    )
    assert " 1 case\n" in done.stdout, done.stdout


def test_sizes_that_no_machine_has_are_said_to_be_the_reason_that_nothing_was_measured(run):
    done, _ = run("^allocation/latency", "--sweep", "bytes=1099511627776:1099511627776")
    said = " ".join(done.stdout.split())
    assert "Nothing was measured. The first of 3 cases, allocation/latency/allocator:direct/bytes:1099511627776: " in said
    assert "1048576 MiB are more than a quarter of" in said
