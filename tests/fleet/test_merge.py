"""`launchgap merge` on real folders: what the result says, and that nothing that happens to it or to them is fatal."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from shipped import LAUNCHGAP, NODES, UNTRACED, environment, launchgap, table

IDLE = "^launch/null/api:driver/mode:idle$"


def rank(number, of, node=""):
    """The environment of one of `of` processes that mpirun started on a node."""
    place = {"RANK": number, "SIZE": of, "LOCAL_RANK": number, "LOCAL_SIZE": of}
    variables = {f"OMPI_COMM_WORLD_{key}": str(value) for key, value in place.items()}
    return variables | ({"SLURMD_NODENAME": node} if node else {})


def run(out, **extra):
    what = ("--devices", "rank", "--profile", "quick", "--runs", "1", *UNTRACED, "--filter", IDLE, "--no-report")
    return launchgap("run", *what, "-o", out, node=NODES / "mixed_8_gpus.json", code=0, **extra)


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Two nodes with two GPUs each; the second of the second was measured twice."""
    folder = tmp_path_factory.mktemp("night")
    for node, number in (("n1", 0), ("n1", 1), ("n2", 2), ("n2", 3), ("n2", 3)):
        run(folder, **rank(number, 4, node))
    return folder


def merge(*arguments, code=0):
    return launchgap("merge", *arguments, code=code)


def merged_json(folder):
    return json.loads((folder / "session.json").read_text(encoding="utf-8"))


def copied(night, place):
    shutil.copytree(night, place)
    return place


def test_the_order_and_the_way_make_no_difference(night, tmp_path):
    sessions = sorted(night.iterdir())
    merge(night, "-o", tmp_path / "all")
    merge(*reversed(sessions), sessions[0], "-o", tmp_path / "each")
    merge(*sessions[:2], "-o", tmp_path / "grown")
    merge(tmp_path / "grown", *sessions[2:], "-o", tmp_path / "grown")
    merge(tmp_path / "grown", "-o", tmp_path / "grown")
    merge(tmp_path / "all", tmp_path / "grown", "-o", tmp_path / "again")
    texts = {(tmp_path / name / "session.json").read_text() for name in ("all", "each", "grown", "again")}
    assert len(texts) == 1
    assert len(merged_json(tmp_path / "all")["parts"]) == 5


def test_report_export_and_check_take_the_result(night, tmp_path):
    merge(night, "-o", tmp_path / "merged")
    launchgap("report", tmp_path / "merged", code=0)
    devices = table(tmp_path / "merged" / "devices.csv")
    assert sorted(d["node"] for d in devices) == ["n1", "n1", "n2", "n2"]
    runs = table(tmp_path / "merged" / "runs.csv")
    assert sorted((r["node"], r["replicate"]) for r in runs) == [
        ("n1", "0"),
        ("n1", "0"),
        ("n2", "0"),
        ("n2", "0"),
        ("n2", "1"),
    ]
    for run_row in runs:
        assert (tmp_path / "merged" / "records" / run_row["records_file"]).resolve(strict=False).is_file()
    launchgap("export", tmp_path / "merged", "-o", tmp_path / "csv", code=0)
    assert len(table(tmp_path / "csv" / "sessions.csv")) == 5
    launchgap("export", sorted(night.iterdir())[0], "-o", tmp_path / "part", code=0)
    of_part, of_all = (len(table(tmp_path / name / "samples.csv")) for name in ("part", "csv"))
    assert of_all == 5 * of_part, "no sample is lost"
    quantiles = table(tmp_path / "csv" / "run_quantiles.csv")
    assert {row["replicate"] for row in quantiles} == {"0", "1"}
    done = launchgap("check", tmp_path / "merged", next(iter(sorted(night.iterdir()))), code=3)
    assert "simulated" in done.stdout + done.stderr, "on real GPUs it would be judged"


def test_events_stay_with_the_sessions_that_kept_them(night, tmp_path):
    merge(night, "-o", tmp_path / "merged")
    done = launchgap("export", tmp_path / "merged", "--format", "chrome-trace", "-o", tmp_path / "t.json", code=2)
    assert "events stay with the sessions" in done.stderr


def test_one_result_moves_with_its_sessions(night, tmp_path):
    folder = copied(night, tmp_path / "here")
    merge(folder, "-o", folder / "merged")
    folder.rename(tmp_path / "there")
    launchgap("report", tmp_path / "there" / "merged", code=0)
    assert len(table(tmp_path / "there" / "merged" / "runs.csv")) == 5


def test_what_is_broken_is_named_and_the_rest_counts(night, tmp_path):
    folder = copied(night, tmp_path / "night")
    torn, headless, *_ = sorted(folder.iterdir())
    text = (torn / "session.json").read_text(encoding="utf-8")
    (torn / "session.json").write_text(text[: len(text) // 2], encoding="utf-8")
    (headless / "session.json").unlink()
    done = merge(folder, "-o", tmp_path / "merged", code=3)
    missing = [m["reason"] for m in merged_json(tmp_path / "merged")["missing"]]
    assert any(str(torn) in reason for reason in missing)
    assert f"{headless}: it has records and no session.json: copy that too" in missing
    assert "3 sessions of 2 devices on 1 node" in done.stdout


def test_a_session_that_grows_meanwhile(tmp_path):
    whole_or_not = (0, 3)  # a file that has just been made has no run in it yet, which is said
    out = tmp_path / "out"
    command = [LAUNCHGAP, "run", "--devices", "rank", "--runs", "200", *UNTRACED, "--filter", IDLE, "--no-report", "-o", out]
    env = environment(NODES / "mixed_8_gpus.json", **rank(0, 1, "n1"))
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + 60
        while len(list(out.glob("*/records/*.jsonl"))) < 3 and time.monotonic() < until:
            time.sleep(0.05)
        done = merge(out, "-o", tmp_path / "merged", code=3)
        assert "it still runs, or was killed" in done.stdout
        assert launchgap("report", tmp_path / "merged").returncode in whole_or_not
        first = len(table(tmp_path / "merged" / "runs.csv"))
        assert first >= 2
        running.send_signal(signal.SIGKILL)
    done = merge(out, "--ended", "-o", tmp_path / "merged", code=3)
    assert "it was killed before its end" in done.stdout
    assert launchgap("report", tmp_path / "merged").returncode in whole_or_not
    assert len(table(tmp_path / "merged" / "runs.csv")) >= first


def test_kill_9_at_any_moment_leaves_nothing_that_the_next_one_minds(night, tmp_path):
    merge(night, "-o", tmp_path / "whole")
    expected = (tmp_path / "whole" / "session.json").read_text(encoding="utf-8")
    out = tmp_path / "out"
    chance = random.Random(3)
    begun = time.monotonic()
    merge(night, "-o", tmp_path / "timed")
    takes = time.monotonic() - begun
    for _ in range(30):
        with subprocess.Popen([LAUNCHGAP, "merge", night, "-o", out], env=environment(), stdout=subprocess.DEVNULL) as one:
            time.sleep(chance.uniform(0, takes))
            one.kill()
        if (out / "session.json").exists():
            assert (out / "session.json").read_text(encoding="utf-8") == expected
    merge(night, "-o", out)
    assert [path.name for path in out.iterdir()] == ["session.json"]
    assert (out / "session.json").read_text(encoding="utf-8") == expected


def test_nothing_but_a_result_is_replaced(night, tmp_path):
    session = copied(night, tmp_path / "night") / sorted(os.listdir(night))[0]
    assert "was measured" in merge(night, "-o", session, code=2).stderr
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").touch()
    assert "not an empty folder" in merge(night, "-o", tmp_path / "else", code=2).stderr
    (tmp_path / "empty").mkdir()
    assert "there is no session in" in merge(tmp_path / "empty", "-o", tmp_path / "x", code=2).stderr
    assert "is not a folder" in merge(tmp_path / "none", "-o", tmp_path / "x", code=2).stderr


def test_processes_of_one_node_that_see_the_same_gpus_are_refused(tmp_path):
    what = ("run", "--runs", "1", "--no-report", "-o", tmp_path / "out")
    done = launchgap(*what, node=NODES / "mixed_8_gpus.json", code=2, **rank(0, 4))
    assert "each sees the same 8 GPUs" in done.stderr
    assert "--devices rank" in done.stderr


def test_what_a_rank_starts_itself_writes_where_it_is_told_to(tmp_path):
    what = ("compare", "--a", LAUNCHGAP, "--b", LAUNCHGAP, "--devices", "0", "--filter", IDLE, "--pairs", "8")
    done = launchgap(*what, node=NODES / "one_a100.json", cwd=tmp_path, **rank(0, 1))
    assert done.returncode in (0, 4), done.stdout + done.stderr
    # What they say depends on how busy the machine is.
    assert any(words in done.stdout for words in ("8 pairs", "that cannot be told")), done.stdout + done.stderr


def test_processes_of_one_node_measure_side_by_side_and_launches_one_after_the_other(tmp_path):
    command = [
        LAUNCHGAP,
        "run",
        "--devices",
        "rank",
        "--runs",
        "3",
        *UNTRACED,
        "--filter",
        IDLE,
        "--no-report",
        "-o",
        tmp_path,
    ]
    node = NODES / "mixed_8_gpus.json"  # in real time: the clocks of both are one
    started = [
        subprocess.Popen(command, env=environment(node, real_time=True, **rank(i, 2)), stdout=subprocess.DEVNULL)
        for i in range(2)
    ]
    assert [one.wait(timeout=120) for one in started] == [0, 0]
    spans = []
    for file in tmp_path.glob("*/records/*.jsonl"):
        blocks = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        blocks = [b for b in blocks if b["record"] == "samples"]
        spans.append((blocks[0]["begin_ns"], blocks[-1]["end_ns"]))
    assert len(spans) == 6
    spans.sort()
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans)), "launches are timed alone"
