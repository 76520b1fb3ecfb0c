"""`launchgap report` of many devices: what it names, what it must not, and that it needs no samples."""

import csv
import json
import re
import shutil
import statistics

import make_fleet
import pytest
from shipped import NODES, UNTRACED, launchgap, table

CASES = "^(launch/null/api:driver|matmul/library/size:256/type:fp32)"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "session"
    what = ("--devices", "gpu", "--profile", "quick", "--runs", "1", *UNTRACED, "--filter", CASES, "--no-report")
    launchgap("run", *what, "-o", folder, node=NODES / "one_a100.json", code=0)
    return folder


def reported(folder, *arguments, code=0):
    """The JSON, and the page."""
    launchgap("merge", folder / "sessions", "-o", folder / "merged", "--json", folder / "merge.json")
    launchgap("report", folder / "merged", *arguments, "--json", folder / "report.json", code=code)
    page = (folder / "merged" / "report.html").read_text(encoding="utf-8")
    return json.loads((folder / "report.json").read_text()), page


def made(base, folder, **facts):
    fleet = make_fleet.Fleet(**facts)
    make_fleet.write(base, folder / "sessions", fleet)
    return fleet


def named(answer):
    """What stands out: nodes and devices."""
    codes = ("fleet-node", "fleet-device", "fleet-devices", "fleet-nodes")
    return {f["subject"] for f in answer["findings"] if f["code"] in codes}


@pytest.fixture(scope="module")
def odd(base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    fleet = made(
        base,
        folder,
        nodes=6,
        gpus=4,
        sessions=2,
        slow_devices={(1, 2): 1.35},
        slow_nodes={3: 1.07},
        worn={(4, 1): 1.5},
    )
    return fleet, *reported(folder), folder


def test_it_names_exactly_what_is_slow(odd):
    fleet, answer, page, _ = odd
    assert named(answer) == {fleet.uuid(1, 2), fleet.node(3), fleet.uuid(4, 1)}
    assert f"All 4 devices of {fleet.node(3)}" in page
    devices = {d["device_id"]: d for d in answer["fleet_devices"]}
    assert devices[fleet.uuid(1, 2)]["place"] in (1, 2)
    assert devices[fleet.uuid(1, 2)]["level"] == pytest.approx(1.35, rel=0.02)
    assert devices[fleet.uuid(1, 2)]["relative_score"] < 0.75
    assert devices[fleet.uuid(0, 0)]["relative_score"] == pytest.approx(1, abs=0.03)
    assert devices[fleet.uuid(0, 0)]["place"] is None


def test_what_was_faster_before_has_a_low_individual_score(odd):
    fleet, answer, _, _ = odd
    devices = {d["device_id"]: d for d in answer["fleet_devices"]}
    assert devices[fleet.uuid(4, 1)]["individual_score"] == pytest.approx(1 / 1.5, rel=0.02)
    assert devices[fleet.uuid(1, 2)]["individual_score"] == pytest.approx(1, abs=0.03)


def test_the_page_has_its_sections_and_no_row_per_device(odd):
    _, _, page, _ = odd
    for section in ("findings", "worst", "map", "values", "variance", "metrics", "rules"):
        assert f'<section id="{section}">' in page
    assert page.count("<tr>") < 300
    assert "SIMULATED" in page


def test_the_tables_stand_beside_the_page(odd):
    fleet, _, _, folder = odd
    devices = table(folder / "merged" / "fleet_devices.csv")
    assert len(devices) == 24
    assert [d["slot"] for d in devices[:4]] == ["0", "1", "2", "3"]
    assert {d["sessions"] for d in devices} == {"2"}
    outliers = table(folder / "merged" / "fleet_outliers.csv")
    assert outliers[0]["device_id"] in (fleet.uuid(1, 2), fleet.uuid(4, 1))
    assert not (folder / "merged" / "summary.csv").exists()


def test_variance_lies_where_it_was_put(base, tmp_path):
    made(base, tmp_path, nodes=12, gpus=8, runs=5, host_sd=0.02, device_sd=0.01, run_sd=0.005)
    answer, _ = reported(tmp_path)
    total = 0.02**2 + 0.01**2 + 0.005**2
    for key, sd in (("host_share", 0.02), ("device_share", 0.01), ("run_share", 0.005)):
        found = statistics.median(m[key] for m in answer["fleet_metrics"])
        assert found == pytest.approx(sd**2 / total, abs=0.12)


@pytest.mark.parametrize("seed", range(4))
def test_devices_that_lie_as_devices_do_are_not_named(base, tmp_path, seed):
    made(base, tmp_path, nodes=8, gpus=8, host_sd=0.008, device_sd=0.008, seed=100 + seed)
    answer, page = reported(tmp_path)
    assert named(answer) == set()
    assert "None of 64 devices" in page


def test_few_runs_are_said_to_be_few(base, tmp_path):
    made(base, tmp_path, nodes=5, gpus=4, runs=1, slow_devices={(1, 2): 1.1})
    answer, _ = reported(tmp_path)
    assert named(answer) == set()
    assert "fleet-few-runs" in {f["code"] for f in answer["findings"]}


def edited(folder, uuid, change):
    """Each row of a device's summary.csv as `change` has it."""
    for session in (folder / "sessions").glob(f"*{uuid}*"):
        with open(session / "summary.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            change(row)
        with open(session / "summary.csv", "w", newline="") as file:
            table = csv.DictWriter(file, rows[0].keys())
            table.writeheader()
            table.writerows(rows)


def fail(row):
    kept = {
        "status": "failed",
        "reason": "CUDA error 700",
        "metric": "",
        "p50": "",
        "run_medians": "",
        "mean": "",
        "p999": "",
    }
    row.update(kept if row["status"] == "ok" else {})


def test_a_gpu_on_which_all_failed_is_named(base, tmp_path):
    fleet = made(base, tmp_path, nodes=6, gpus=4)
    edited(tmp_path, fleet.uuid(2, 1), fail)
    answer, page = reported(tmp_path)
    [dead] = [f for f in answer["findings"] if f["code"] == "fleet-failed"]
    assert dead["subject"] == fleet.uuid(2, 1) and dead["severity"] == "prevents"
    assert "None of" not in page and "CUDA error 700" in page
    device = next(d for d in answer["fleet_devices"] if d["device_id"] == fleet.uuid(2, 1))
    assert device["place"] == 1 and device["cases"] == 0 and "CUDA error 700" in device["reason"]


def test_one_fast_device_does_not_make_the_others_slow(base, tmp_path):
    fleet = made(base, tmp_path, nodes=6, gpus=4, slow_devices={(2, 1): 0.5})
    answer, _ = reported(tmp_path)
    assert named(answer) == set()
    device = next(d for d in answer["fleet_devices"] if d["device_id"] == fleet.uuid(2, 1))
    assert device["level"] == pytest.approx(0.5, rel=0.02)


def test_half_of_a_fleet_that_is_slow_is_no_all_clear(base, tmp_path):
    made(base, tmp_path, nodes=6, gpus=4, slow_nodes={0: 1.3, 1: 1.3, 2: 1.3})
    answer, _ = reported(tmp_path)
    codes = {f["code"] for f in answer["findings"]}
    assert "fleet-apart" in codes and "fleet-even" not in codes


def test_a_slow_device_is_not_hidden_by_its_slow_node(base, tmp_path):
    fleet = made(base, tmp_path, nodes=6, gpus=4, slow_nodes={3: 1.07}, slow_devices={(3, 1): 2})
    answer, _ = reported(tmp_path)
    assert named(answer) == {fleet.node(3), fleet.uuid(3, 1)}


def test_what_is_invalid_is_not_compared(base, tmp_path):
    fleet = made(base, tmp_path, nodes=6, gpus=4)

    def wrong(row):
        if row["p50"]:
            factor = 0.4 if row["direction"] == "lower" else 2.5
            medians = " ".join(str(float(m) * factor) for m in row["run_medians"].split())
            row.update({"status": "invalid", "reason": "wrong result", "run_medians": medians})

    edited(tmp_path, fleet.uuid(1, 1), wrong)
    answer, _ = reported(tmp_path)
    assert {f["subject"] for f in answer["findings"] if f["code"].startswith("fleet-")} == {fleet.uuid(1, 1)}


@pytest.mark.parametrize("median", ["1e-320", "nan", "inf", "-5", "0"])
def test_a_median_that_is_none_does_not_count_and_is_told(base, tmp_path, median):
    fleet = made(base, tmp_path, nodes=3, gpus=2)

    def spoil_one(row):
        if row["metric"] == "api_ns":
            row["run_medians"] = " ".join([median, *row["run_medians"].split()[1:]])

    edited(tmp_path, fleet.uuid(1, 1), spoil_one)
    answer, _ = reported(tmp_path, "--fleet", code=3)
    assert any("not positive" in problem for problem in answer["problems"])


def test_the_values_are_those_of_the_samples(tmp_path):
    """Of sessions that were measured, the fleet's values are the medians of the runs that the samples have."""
    node = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    for rank in ("0", "1"):
        place = node | {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank}
        what = ("--devices", "rank", "--profile", "quick", "--runs", "3", *UNTRACED, "--filter", "^launch/null/api:driver")
        launchgap(
            "run", *what, "--no-report", "-o", tmp_path / "sessions", node=NODES / "mixed_8_gpus.json", code=0, **place
        )
    reported(tmp_path, "--fleet")
    launchgap("export", tmp_path / "merged", "--format", "csv", "-o", tmp_path / "csv")
    runs = {}
    for row in table(tmp_path / "csv" / "run_quantiles.csv"):
        runs.setdefault((row["device_id"], row["case"], row["metric"]), []).append(float(row["p50"]))
    values = table(tmp_path / "merged" / "fleet_values.csv")
    assert len(values) >= 4
    for row in values:
        own = runs[row["device_id"], row["case"], row["metric"]]
        assert len(own) == 3
        assert float(row["value"]) == pytest.approx(statistics.median(own), rel=1e-12)


def spoil(session, how):
    path = session / "summary.csv"
    text = path.read_bytes()
    if how == "absent":
        path.unlink()
    elif how == "torn":
        path.write_bytes(text[: len(text) // 2])
    elif how == "no number":
        header, first, rest = text.decode().split("\r\n", 2)
        cells = first.split(",")
        cells[header.split(",").index("p50")] = "fast"
        path.write_bytes("\r\n".join([header, ",".join(cells), rest]).encode())
    elif how == "no column":
        path.write_bytes(text.replace(b"p50,", b"p51,", 1))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "a folder":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["absent", "torn", "no number", "no column", "empty", "a folder"])
def test_a_table_that_cannot_be_read_is_named_and_its_records_are_read(base, tmp_path, how):
    made(base, tmp_path, nodes=3, gpus=2)
    # The session that all were made from, whose records are its own.
    shutil.copytree(base, tmp_path / "sessions" / "own")
    spoil(tmp_path / "sessions" / "own", how)
    answer, _ = reported(tmp_path, "--fleet", code=0 if how == "absent" else 3)
    own = next(d for d in answer["fleet_devices"] if d["device_id"].startswith("GPU-a000"))
    assert own["cases"] > 0
    if how != "absent":
        [problem] = answer["problems"]
        assert "own" in problem


def test_tables_of_before_have_no_medians_of_runs(base, tmp_path):
    made(base, tmp_path, nodes=3, gpus=2)
    for session in (tmp_path / "sessions").iterdir():
        with open(session / "summary.csv", newline="") as file:
            header, *rows = csv.reader(file)
        kept = [i for i, name in enumerate(header) if name not in ("run_medians", "impossible")]
        with open(session / "summary.csv", "w", newline="") as file:
            csv.writer(file).writerows([[row[i] for i in kept] for row in [header, *rows]])
    answer, _ = reported(tmp_path, "--fleet")
    assert {f["code"] for f in answer["findings"]} >= {"fleet-few-runs"}
    assert all(d["cases"] > 0 for d in answer["fleet_devices"])


def test_names_of_others_are_text(base, tmp_path):
    made(base, tmp_path, nodes=3, gpus=2, slow_devices={(1, 1): 1.5})
    evil = '<script>alert("x")</script>,"\n'
    for session in (tmp_path / "sessions").iterdir():
        info = json.loads((session / "session.json").read_text())
        if info["host"]["node"] == "n0001":
            info["host"]["node"] = evil
            info["devices"][0]["pci_bus_id"] = evil
            (session / "session.json").write_text(json.dumps(info))
    _, page = reported(tmp_path, "--fleet")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_what_is_missing_stands_on_the_page(base, tmp_path):
    fleet = made(base, tmp_path, nodes=5, gpus=4)
    killed = next((tmp_path / "sessions").glob(f"*{fleet.uuid(2, 3)}*"))
    info = json.loads((killed / "session.json").read_text())
    (killed / "session.json").write_text(json.dumps(info | {"state": "stopped"}))
    answer, page = reported(tmp_path)
    assert [m["device_id"] for m in answer["missing"]] == [fleet.uuid(2, 3)]
    section = re.search(r'<section id="missing">.*?</section>', page, re.DOTALL)[0]
    assert fleet.uuid(2, 3) in section and "stopped" in section


def test_what_goes_with_it_and_what_does_not(base, tmp_path):
    made(base, tmp_path, nodes=3, gpus=2)
    launchgap("merge", tmp_path / "sessions", "-o", tmp_path / "merged")
    # Six devices have the usual page, from their samples.
    for wrong in (("--history", "h.db"), ("--tables", tmp_path / "t")):
        done = launchgap("report", tmp_path / "merged", "--fleet", *wrong, code=2)
        assert "--history and --tables" in done.stderr
    done = launchgap("report", tmp_path / "merged", base, "--fleet", code=2)
    assert "launchgap merge" in done.stderr
    launchgap("report", base, "--fleet", "-o", tmp_path / "one.html", code=0)
    assert "No device has a metric in common" in (tmp_path / "one.html").read_text()
