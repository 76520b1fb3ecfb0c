"""`matmul/bits`: products are compared by their bits: again, in streams at once, by workspace and between processes."""

import pytest
from shipped import records, table

SKINNY = "^matmul/bits/shape:64x64x16384/type:"


@pytest.fixture
def compare(run, make_node):
    """A session of a fake GPU whose products vary in this way; changes are the device's."""

    def measure(filter_, varies=None, runs=2, code=0, **changes):
        node = make_node(whole={"cublas_varies": varies} if varies else None, **changes)
        return run(filter_, "--profile", "full", runs=runs, code=code, node=node)[1]

    return measure


def rows_by_variant(session):
    return {row["variant"]: row for row in table(session / "bits.csv")}


def findings(session):
    return [row for row in table(session / "findings.csv") if row["code"] == "bits-differ"]


def test_equal_results_are_rows_and_no_finding(compare):
    session = compare("^matmul/bits/shape:64x64x16384/")
    rows = table(session / "bits.csv")
    assert len(rows) == 16, "four types and four variants"
    assert {(row["runs"], row["distinct_within"], row["distinct_between"]) for row in rows} == {("2", "1", "1")}
    assert {row["largest_difference"] for row in rows} == {"0"} and {row["different"] for row in rows} == {""}
    results = {row["variant"]: row["results"] for row in rows}
    assert results == {"again": "16", "streams_own": "18", "streams_shared": "18", "workspace": "14"}
    assert findings(session) == []
    values = {row["p50"] for row in table(session / "summary.csv")}
    assert values == {"1"}
    kept = [r for file in records(session).values() for r in file if r["record"] == "bits"]
    assert len(kept) == 32 and all(len(r["hash"]) == 16 for r in kept)
    methods = {r["case"].rpartition(":")[2]: r["method"] for f in records(session).values() for r in f if r.get("method")}
    assert "a handle and a workspace of its own for each" in methods["streams_own"]
    shared = "one handle for all with the library's own workspace"
    ways = {r["method"].partition(shared)[2] for f in records(session).values() for r in f if shared in r.get("method", "")}
    assert ways == {"", ", which waits from stream to stream"}, "the library waits for products in FP32"


def test_results_that_differ_between_processes_only(compare):
    session = compare(SKINNY + "fp32/variant:(again|streams_own)", varies="runs", runs=3)
    rows = rows_by_variant(session)
    assert rows["again"]["distinct_within"] == "1" and rows["again"]["distinct_between"] == "3"
    (finding,) = findings(session)
    assert "fresh processes differ" in finding["sentence"] and finding["severity"] == "act"
    assert "3 different results in 3 processes" in finding["evidence"]
    assert "variant:again" in finding["cases"]


@pytest.mark.parametrize("type_", ["fp32", "bf16"])  # by SGEMM and by GemmEx
def test_results_that_differ_where_one_handle_changes_streams(compare, type_):
    session = compare(SKINNY + type_, varies="streams")
    rows = rows_by_variant(session)
    shared = rows.pop("streams_shared")
    assert shared["distinct_within"] == "4" and shared["distinct_between"] == "1"
    assert shared["different"] == "stream 2, stream 3, stream 4"
    assert 0 < float(shared["largest_difference"]) < 0.02
    assert {(row["distinct_within"], row["distinct_between"]) for row in rows.values()} == {("1", "1")}
    (finding,) = findings(session)
    assert "one handle computes in 4 streams at once differ" in finding["sentence"]
    assert "CUBLAS_WORKSPACE_CONFIG" in finding["remedy"] and "handle of its own" in finding["remedy"]
    (value,) = {row["p50"] for row in table(session / "summary.csv") if "streams_shared" in row["params"]}
    assert value == "4"


@pytest.mark.parametrize("capability, other", [("8.0", "32 MiB"), ("9.0", "4 MiB")])
def test_results_that_depend_on_the_workspace(compare, capability, other):
    session = compare(SKINNY + "fp32/variant:(again|workspace|streams_own)", "workspace", compute_capability=capability)
    rows = rows_by_variant(session)
    assert rows["workspace"]["distinct_within"] == "3" and rows["again"]["distinct_within"] == "1"
    assert set(rows["workspace"]["different"].split(", ")) == {"16 KiB", other}
    (finding,) = findings(session)
    assert finding["severity"] == "note" and "size of the workspace" in finding["sentence"]


def test_a_wrong_product_is_not_compared(compare):
    node_fault = [{"library": "cublas", "call": "cublasSgemm_v2", "after": 2, "times": 1, "wrong_byte": 0}]
    session = compare(SKINNY + "fp32/variant:again", code=3, runs=1, faults=node_fault)
    (row,) = table(session / "summary.csv")
    assert row["status"] == "failed" and row["reason"], row
    assert not (session / "bits.csv").exists() or table(session / "bits.csv") == []


def test_a_workspace_that_cublas_does_not_take_is_a_failed_case(compare):
    fault = [{"library": "cublas", "call": "cublasSetWorkspace_v2", "after": 2, "code": 3}]
    session = compare(SKINNY + "fp32/variant:workspace", code=3, runs=1, faults=fault)
    (row,) = table(session / "summary.csv")
    assert row["status"] == "failed" and "cublasSetWorkspace" in row["reason"], row


def test_the_host_compares_what_it_has(run):
    _, session = run(SKINNY, "--profile", "nightly", runs=2)
    status = {row["params"].split("type:")[1]: row for row in table(session / "summary.csv")}
    assert len(status) == 8
    for variant in ("again", "streams_own"):
        assert status[f"fp32/variant:{variant}"]["status"] == "ok"
    assert "no handle" in status["fp32/variant:streams_shared"]["reason"]
    assert "takes no workspace" in status["fp32/variant:workspace"]["reason"]
    # Some CPUs have no BF16, and say so.
    assert {status[f"bf16/variant:{v}"]["status"] for v in ("again", "streams_own")} in ({"ok"}, {"unsupported"})
    assert {status[f"bf16/variant:{v}"]["status"] for v in ("streams_shared", "workspace")} == {"unsupported"}
    assert rows_by_variant(session)["again"]["runs"] == "2"


def test_no_quick_session_compares_bits(run, make_node):
    done, _ = run("^matmul/bits", runs=None, code=2, node=make_node())
    assert "no case passes" in done.stderr
