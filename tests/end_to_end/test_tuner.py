"""launchgap import of a tuner's files, and what code that is tuned for one GPU costs on another."""

import csv
import gzip
import json
import pathlib

import pytest
from shipped import ROOT, launchgap

PUBLISHED = ROOT.parent / "shared" / "reference" / "data" / "published" / "tuner"


def cache(folder: pathlib.Path, gpu: str, times: dict, **changes) -> pathlib.Path:
    tried = {
        key: {"time": t} | ({"times": [0.99 * t, t, 1.01 * t]} if isinstance(t, float) else {}) for key, t in times.items()
    }
    content = {"device_name": gpu, "kernel_name": "Xgemm", "problem_size": [4096, 4096], "cache": tried}
    content |= {"tune_params_keys": ["MWG", "NWG"], "tune_params": {"MWG": [16, 32], "NWG": [16]}}
    path = folder / f"{gpu}.json"
    path.write_text(json.dumps(content | changes))
    return path


def rows(folder: pathlib.Path) -> list[dict]:
    with open(folder / "gap_tuned.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_best_of_one_gpu_is_run_on_the_other(tmp_path):
    old = cache(tmp_path, "RTX 2080 Ti", {"16,16": 2.0, "32,16": 3.0, "64,16": 9.0})
    new = cache(tmp_path, "RTX 3090", {"16,16": 1.5, "32,16": 1.0, "64,16": "RuntimeFailedConfig"})
    other = cache(tmp_path, "TITAN V", {"64,16": 1.0, "32,16": 4.0})
    done = launchgap("import", old, new, other, "-o", tmp_path / "session", code=0)
    assert "8 configurations of 3 tunings on 3 GPUs, 1 failed: nothing was measured here" in done.stderr
    done = launchgap("report", tmp_path / "session", "-o", tmp_path / "page.html", "--tables", tmp_path / "tables", code=0)
    said = " ".join(done.stdout.split())
    assert "Tuned for another GPU, Xgemm loses most on the RTX 3090: " in said
    assert "the best of the TITAN V cannot run there" in said
    found = {(r["tuned_for"], r["run_on"]): r for r in rows(tmp_path / "tables")}
    assert len(found) == 6
    pair = found["RTX 2080 Ti", "RTX 3090"]
    assert float(pair["times"]) == pytest.approx(1.5)
    assert 1.45 < float(pair["times_lower"]) < 1.5 < float(pair["times_upper"]) < 1.55
    assert (pair["configuration"], pair["own_configuration"]) == ("16,16", "32,16")
    assert found["TITAN V", "RTX 3090"]["verdict"] == "cannot run there: RuntimeFailedConfig"
    assert found["RTX 2080 Ti", "TITAN V"]["verdict"] == "not tried there"
    assert "cannot run there" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_sessions_of_one_gpu_each_meet_in_the_report(tmp_path):
    for name, times in (("RTX 2080 Ti", {"16,16": 2.0, "32,16": 2.2}), ("RTX 3090", {"16,16": 1.5, "32,16": 1.0})):
        file = cache(tmp_path, name, times)
        compressed = file.with_suffix(".json.gz")
        compressed.write_bytes(gzip.compress(file.read_bytes()))
        assert launchgap("import", compressed, "-o", tmp_path / name).returncode == 0
    done = launchgap("report", tmp_path / "RTX 2080 Ti", tmp_path / "RTX 3090", "-o", tmp_path / "page.html", code=0)
    assert "the best of the RTX 2080 Ti takes 1.50 times as long there as its own best" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("times", "changes", "why"),
    [
        ({"16,16": 0.0}, {}, "line 1, column"),
        ({"16,16": float("nan")}, {}, "the time of configuration 16,16 is 'NaN'"),
        ({"16,16": float("inf")}, {}, "the time of configuration 16,16 is 'Infinity'"),
        ({"16,16": -1.0}, {}, "no number of ms above 0"),
        ({}, {}, "no configuration is in it"),
        ({"16,16": 1.0}, {"tune_params_keys": []}, "it has no tune_params_keys"),
        ({"16,16": 1.0}, {"device_name": ""}, "it has no device_name"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path, times, changes, why):
    good = cache(tmp_path, "good", {"16,16": 1.0})
    bad = cache(tmp_path, "bad", times, **changes)
    done = launchgap("import", good, bad, "-o", tmp_path / "session")
    assert done.returncode == 2 and "bad.json" in done.stderr and why in done.stderr, done.stderr
    assert not (tmp_path / "session").exists()


def test_kinds_are_not_mixed_and_no_tuning_is_there_twice(tmp_path):
    good = cache(tmp_path, "good", {"16,16": 1.0})
    other = tmp_path / "trace.json"
    other.write_text('{"traceEvents": []}')
    again = tmp_path / "again.json"
    again.write_bytes(good.read_bytes())
    for second, why in ((other, "import each kind by itself"), (again, "Xgemm of 4096x4096 on good is in")):
        done = launchgap("import", good, second, "-o", tmp_path / "session")
        assert done.returncode == 2 and why in done.stderr, done.stderr
        assert not (tmp_path / "session").exists()


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published files are not here")
def test_what_others_have_published_of_it(tmp_path):
    files = [PUBLISHED / f"gemm_{name}.json.gz" for name in ("RTX_2080_Ti", "RTX_3090", "RTX_Titan")]
    assert launchgap("import", *files, "-o", tmp_path / "session").returncode == 0
    launchgap("report", tmp_path / "session", "-o", tmp_path / "page.html", "--tables", tmp_path / "tables", code=0)
    costs = {r["tuned_for"]: float(r["times"]) for r in rows(tmp_path / "tables") if r["run_on"] == "RTX 3090"}
    assert costs["RTX 2080 Ti"] == pytest.approx(1.47, abs=0.005) and costs["TITAN RTX"] == pytest.approx(1.61, abs=0.005)
