"""`--shapes FILE`: a user's products and convolutions, and files that are none."""

import pytest
from shipped import launchgap, table


def shapes(tmp_path, text, name="shapes.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_only_the_users_shapes_are_measured_and_verified(run, tmp_path):
    products = shapes(tmp_path, "m,n,k,transpose_b,batch\n16,24,32,1,3\n5,6,7,,\n", "products.csv")
    convolutions = shapes(tmp_path, "n,c,h,w,k,r,s,pad_h,pad_w\n1,8,9,9,8,3,3,1,1\n", "convolutions.csv")
    _, session = run("/shapes/", "--shapes", products, "--shapes", convolutions)
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows} <= {"ok", "unsupported"}, rows
    of = {row["params"].split("/")[0]: row for row in rows if row["status"] == "ok"}
    assert set(of) == {"shape:16x24x32-nt-b3", "shape:5x6x7", "shape:1x8x9x9-8x3x3-p1"}


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "the header is missing"),
        ("a,b\n1,2\n", "neither the columns m, n, k"),
        ("m,n,k\n1,2,3\n4,zero,6\n", "line 3, column n: 'zero' is not a whole number"),
        ("m,n,k\n1,2,0\n", "line 2, column k: '0' is not a whole number from 1"),
        ("m,n,k\n1,2,2147483648\n", "line 2, column k: '2147483648' is not"),
        ("m,n,k\n2147483647,2147483647,1\n", "line 2: C would have more bytes than any memory"),
        ("m,n,k\n1,2,3\n1,2,3\n", "line 3: '1x2x3' is in line 2 already"),
        ("m,n,k\n1,2\n", "line 2: 2 cells under 3 columns"),
        ('m,n,k\n1,2,"3\n', "line 2: a quote that is never closed"),
        (b"m,n,k\n1,2,\xff\n", "line 2: not UTF-8"),
        ("n,c,h,w,k,r,s\n1,4,2,2,4,3,3\n", "line 2: the filters are larger than the input"),
        ("n,c,h,w,k,r,s,groups\n1,4,9,9,4,3,3,3\n", "line 2: 3 groups do not divide 4 channels"),
    ],
)
def test_what_is_no_table_of_shapes_is_named_by_line_and_column(tmp_path, text, why):
    path = shapes(tmp_path, text)
    done = launchgap("run", "--devices", "host", "--dry-run", "--shapes", path, code=2)
    assert done.stderr.count("\n") == 1 and path.name in done.stderr and why in done.stderr, done.stderr


def test_of_a_gigabyte_no_more_is_read_than_is_looked_at(tmp_path):
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.write(b"m,n,k\n")
        file.truncate(1 << 30)
    done = launchgap("run", "--devices", "host", "--dry-run", "--shapes", path, timeout=10)
    assert done.returncode == 2 and path.name in done.stderr, done.stderr


def test_what_is_larger_than_the_memory_is_skipped_with_both_numbers(run, make_node, tmp_path):
    path = shapes(tmp_path, "m,n,k\n400000,400000,64\n64,64,64\n")
    _, session = run("matmul/shapes.*cublas/", "--shapes", path, node=make_node())
    rows = {row["params"].split("/")[0]: row for row in table(session / "summary.csv")}
    large = rows["shape:400000x400000x64"]
    assert large["status"] == "skipped" and large["p50"] == "", large
    assert "640204800000 bytes" in large["reason"] and "bytes) are free" in large["reason"]
    assert rows["shape:64x64x64"]["status"] == "ok"
