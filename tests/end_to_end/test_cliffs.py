"""Sizes of a user's series: measured in a random order, and compared with larger ones."""

import csv
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
    done, session = run(
        "--devices", "host", "--shapes", shapes, "--runs", 10, "--filter", "^matmul/shapes/.*openblas/type:fp32"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
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
    done, session = run(
        "--devices", "host", "--shapes", shapes, "--runs", 4, "--filter", "^matmul/shapes/.*openblas/type:fp32"
    )
    assert done.returncode == 0, done.stderr
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
        done = launchgap(
            "run", "--devices", "host", "--profile", "full", "--shapes", path, "--dry-run", "--filter", f"^{family}/"
        )
        assert done.returncode == 0, done.stderr
