"""scripts/validate-gpu fits its time, fails nothing that only does not fit or cannot be had, and says what it came to."""

import csv
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from shipped import FOREIGN, LOCKS, NODES, ROOT, fake_libraries

SCRIPT = ROOT / "scripts" / "validate-gpu"


def validate(*arguments, node, timeout=150):
    environment = {k: v for k, v in os.environ.items() if not k.startswith((*FOREIGN, "NVIDIA_"))}
    environment |= {
        "LAUNCHGAP_FAKE_NODE": str(node),
        **fake_libraries(),
        "LAUNCHGAP_LOCK_DIR": LOCKS.name,
    }
    return subprocess.run([SCRIPT, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=timeout)


def steps(folder):
    words = [line.split(None, 4) for line in (folder / "results.txt").read_text().splitlines()]
    return {w[1]: (w[0], w[4] if len(w) > 4 else "") for w in words if w and w[0] in ("PASS", "FAIL", "SKIP")}


@pytest.mark.compares_times
def test_the_first_minute_on_a_harsh_gpu_of_a_generation_that_nvcc_has_forgotten(tmp_path):
    """A V100: this toolkit makes no native code for it, and no GPU here has device nodes."""
    node = json.loads((NODES / "harsh_gpu.json").read_text())
    node["devices"][0]["compute_capability"] = "7.0"
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node))
    out = tmp_path / "validation"
    begin = time.monotonic()
    done = validate("-o", out, "--first-minutes", 1, "--most-mib", 1, node=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - begin < 90
    found = steps(out)
    assert not [name for name, (state, _) in found.items() if state == "FAIL"]
    # Whatever made the result larger than it may be stays behind, by name, and is no failure.
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    assert size <= 2**20 or "left out" in (out / "results.txt").read_text()
    assert found["doctor"][0] == "PASS" and found["gpu-0.tests.portable"][0] == "PASS"
    assert found["gpu-0.tests.native"][0] == "SKIP" and "no native form" in found["gpu-0.tests.native"][1]
    for name in ("quick", "launches"):
        state, why = found[name]
        assert state == "PASS" or "s here, and" in why or "the time was up" in why or "are left" in why, (name, why)
    if not os.path.exists("/dev/nvidiactl"):
        assert found["doctor-watch"][0] == "SKIP"
    page = (out / "verdict.md").read_text()
    assert "0 failed" in page and "Simulated" in page
    assert "| 1 | Kernels, libraries and clocks are right, native and portable | open |" in page, "one form was skipped"
    assert "| 8n | No kernel of a library has a stale name | open |" in page or "quick" in page


def pack(work, out, *options):
    """As validate-gpu does at its end, of sessions and logs in `work`."""
    out.mkdir(exist_ok=True)
    script = ROOT / "scripts" / "pack-validation"
    return subprocess.run([script, *options, work, out], capture_output=True, text=True, timeout=60)


def test_the_result_has_the_tables_that_have_rows_and_leaves_out_the_largest_by_name(tmp_path, measured):
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    shutil.copytree(measured, work / "quick")
    (work / "doctor.log").write_bytes(os.urandom(3 * 2**20))
    (work / "quick.log").write_text("passed\n")
    done = pack(work, out, "--most-mib", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    made = {file.name for file in out.iterdir()}
    assert {"quick.summary.csv", "quick.runs.csv", "quick.answers.csv", "sessions.tar.gz"} <= made
    assert "quick.outlier_devices.csv" not in made, "one device is never odd"
    assert "more than 1 MiB: logs/doctor.log" in (out / "results.txt").read_text()
    packed = subprocess.run(["tar", "-tzf", out / "sessions.tar.gz"], capture_output=True, text=True).stdout.splitlines()
    assert "logs/quick.log" in packed and "logs/doctor.log" not in packed

    (out / "quick.variation.csv").write_bytes(os.urandom(2 * 2**20))
    (work / "quick" / "summary.csv").unlink()
    done = pack(work, out, "--most-mib", "1")
    assert done.returncode == 3 and "the tables alone have 2 MiB" in done.stdout and "quick.variation.csv" in done.stdout


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--first-minutes", "many"], 2, "a number of minutes"),
        (["--most-mib", "lots"], 2, "a number of MiB"),
        (["--gpu", "GPU-none"], 2, "there is no usable GPU"),
        (["--frobnicate"], 2, "is not known"),
    ],
)
def test_wrong_usage_is_said(tmp_path, arguments, code, words):
    done = validate("-o", tmp_path / "out", *arguments, node=NODES / "one_a100.json")
    assert done.returncode == code and words in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_a_gpu_there_is_nothing_to_validate(tmp_path):
    node = tmp_path / "none.json"
    node.write_text('{"devices": []}')
    assert validate("-o", tmp_path / "out", node=node).returncode == 77


def test_a_verdict_of_nothing_decides_nothing(tmp_path):
    script = ROOT / "scripts" / "validation_verdict.py"
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0 and "| yes |" not in done.stdout and "| no |" not in done.stdout
    assert subprocess.run([sys.executable, script], capture_output=True).returncode == 2


def test_an_answer_counts_what_is_not_so_as_that():
    sys.path.insert(0, str(ROOT / "scripts"))
    from validation_verdict import NO, YES, all_of

    rows = [{"name": name} for name in "abcd"]
    assert all_of(rows, lambda r: r["name"] != "c", lambda r: r["name"], "runs steady") == (
        NO,
        "runs steady: all but 1 of 4: c",
    )
    assert all_of(rows, lambda r: True, lambda r: r["name"], "runs steady") == (YES, "all 4 runs steady")


@pytest.mark.parametrize(("impossible", "answer"), [("false", "yes"), ("true", "no"), ("", "open")])
def test_a_rate_above_the_ceiling_is_an_answer(tmp_path, impossible, answer):
    sys.path.insert(0, str(ROOT / "scripts"))
    from validation_result import Result
    from validation_verdict import ceilings

    cells = {
        "arm": "plain",
        "benchmark": "matmul/library",
        "params": "size:2048/type:fp32",
        "metric": "tflops",
        "p50": "41.8",
    }
    with (tmp_path / "quick.summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*cells, "impossible"])
        writer.writeheader()
        writer.writerows([cells | {"impossible": impossible}, cells | {"metric": "device_ns", "impossible": impossible}])
    found, figure = ceilings(Result(tmp_path, None))
    assert found == answer and ("41.8 TFLOP/s" in figure) == (answer == "no")


def test_every_question_of_the_verdict_is_one_that_waits():
    sys.path.insert(0, str(ROOT / "scripts"))
    import validation_verdict

    waiting = (ROOT / "evidence" / "PENDING.md").read_text()
    listed = {key.strip() for line in waiting.splitlines() if line.startswith("| ") for key in line.split("|")[1].split(",")}
    assert {key for key, _, _ in validation_verdict.QUESTIONS} - {"29"} <= listed


@pytest.fixture
def allocation_result(tmp_path):
    """A result of validate-gpu with these rows of one of its tables."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from validation_result import Result

    def make(table, *rows):
        with (tmp_path / f"allocation.{table}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return Result(tmp_path, None)

    return make


def test_work_on_another_gpu_need_not_be_waited_for(allocation_result):
    from validation_allocation import NO, YES, blocking

    def rows(other):
        waits = {"same_stream": "waits_for_device", "other_stream": "waits_for_device", "other_device": other}
        return [{"operation": "release_direct", "relation": relation, "verdict": v} for relation, v in waits.items()]

    assert blocking(allocation_result("blocking", *rows("no_wait")))[0] == YES
    late = [row | {"verdict": "no_wait"} for row in rows("no_wait")]
    assert blocking(allocation_result("blocking", *late))[0] == NO


def test_memory_kept_is_open_where_others_use_the_gpu(allocation_result):
    from validation_allocation import NO, OPEN, YES, kept

    run = {"memory_kept_bytes": "0", "memory_kept_by": "", "other_processes": "0"}
    assert kept(allocation_result("runs", run))[0] == YES
    kept_much = run | {"memory_kept_bytes": str(1 << 30), "memory_kept_by": "allocation/growth"}
    assert kept(allocation_result("runs", run, kept_much))[0] == NO
    assert kept(allocation_result("runs", run, kept_much | {"other_processes": "2"}))[0] == OPEN


def test_a_size_that_begins_with_another_is_another(allocation_result):
    from validation_allocation import first_touch

    row = {"arm": "plain", "process_config": "allocation", "status": "ok", "benchmark": "allocation/touch"}
    row |= {"metric": "first_over_second_touch", "params": "allocator:direct/bytes:671088640", "p50": "3"}
    assert first_touch(allocation_result("summary", row))[1] == "nothing was written"
