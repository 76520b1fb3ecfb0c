"""`launchgap replay` and `launchgap generate`, as a user runs them."""

from __future__ import annotations

import csv
import gzip
import json
import resource
import subprocess
from pathlib import Path

import pytest
from shipped import LAUNCHGAP, NODES, launchgap, table

HEAD = (
    "# gmtrace 1\n# source=synthetic sizes=requested truncated=0 devices=1\n"
    "seq,t_ns,op,id,size,align,device,stream,thread,tag\n"
)
ALLOCATORS = ["bfc", "bfc_growth", "bfc_growth_gc", "bfc_vmm", "caching", "caching_expandable"]
MIB = 1 << 20


@pytest.fixture
def generate(tmp_path):
    def made(pattern: str, name: str = "x.gmtrace.csv") -> Path:
        path = tmp_path / name
        launchgap("generate", pattern, "-o", path, code=0)
        return path

    return made


@pytest.fixture
def replay(tmp_path):
    def played(trace, *arguments, node=None) -> dict:
        out = tmp_path / "replay.json"
        done = launchgap("replay", trace, *arguments, "--json", out, node=node, code=0)
        document = json.loads(out.read_text(encoding="utf-8"))
        document["screen"] = done.stdout
        return document

    return played


def test_every_allocator_is_played_unless_some_are_named(generate, replay):
    trace = generate("batches/last:20/layers:5")
    assert [one["name"] for one in replay(trace)["allocators"]] == ALLOCATORS
    assert [one["name"] for one in replay(trace, "--allocator", "caching,bfc")["allocators"]] == ["caching", "bfc"]


def test_the_checkerboard_has_its_known_answer(generate, replay):
    n = 64
    trace = generate(f"checkerboard/blocks:{n}/bytes:{MIB}/request:2")
    (bfc,) = replay(trace, "--allocator", "bfc", "--limit", n * MIB, "--c-min")["allocators"]
    assert not bfc["completed"]
    assert bfc["failure"]["bytes"] == 2 * MIB and bfc["failure"]["cured_by"] == "destroy"
    then = bfc["failure"]["then"]
    assert then["free_bytes"] == n // 2 * MIB
    assert then["largest_block_index"] == 1 - 2 / n
    assert bfc["peak_live_bytes"] == n * MIB
    assert bfc["c_min_bytes"] == (n + 1) * MIB
    assert bfc["c_min_over_peak"] == pytest.approx((n + 1) / n)


def test_the_document_says_what_was_asked_of_the_trace(generate, replay):
    document = replay(generate("checkerboard/blocks:8"), "--allocator", "caching")
    assert document["trace"]["allocations"] == 8 and document["trace"]["releases"] == 4
    assert document["trace"]["live_at_end"] == 4 and document["trace"]["source"] == "synthetic"
    (caching,) = document["allocators"]
    assert caching["completed"] and caching["operations"] == 12
    assert caching["c_min_bytes"] is None and caching["fails_again_at"] is None  # not asked for
    assert caching["allocate"]["n"] == 8 and caching["allocate"]["max_ns"] >= caching["allocate"]["p50_ns"] * 0.9
    assert caching["moments"][-1]["live_bytes"] == 4 * MIB
    assert set(caching["at_peak"]["occupancy"]) <= set("*x_")


def test_growth_is_answered(generate, replay):
    screen = replay(generate("batches"), "--allocator", "bfc,bfc_growth", "--c-min")["screen"]
    assert "Memory growth does not help here: bfc_growth needs" in screen


def test_a_limit_with_a_unit(generate, replay):
    (one,) = replay(generate("checkerboard"), "--allocator", "bfc", "--limit", "48MiB")["allocators"]
    assert one["limit_bytes"] == 48 * MIB and not one["completed"]


def test_what_each_event_did(generate, tmp_path):
    trace = generate("checkerboard/blocks:4/bytes:1000")
    out = tmp_path / "events.csv"
    assert launchgap("replay", trace, "--allocator", "bfc", "--limit", 4096, "--events", out).returncode == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [row["op"] for row in rows] == ["alloc"] * 4 + ["free"] * 2
    assert [int(row["granted"]) for row in rows[:4]] == [1024] * 4
    addresses = [int(row["address"]) for row in rows[:4]]
    assert [address - addresses[0] for address in addresses] == [0, 1024, 2048, 3072]
    assert [int(row["largest_free"]) for row in rows] == [3072, 2048, 1024, 0, 1024, 1024]


@pytest.mark.parametrize("inject, kind", [(None, "none"), ("leak=64KiB/epoch", "leak")])
def test_creep_is_told_by_its_class(generate, replay, inject, kind):
    trace = generate("training/allocations:1000")
    options = ["--inject", inject] if inject else []
    document = replay(trace, "--allocator", "caching", "--epochs", 50, *options)
    creep = document["allocators"][0]["creep"]
    assert creep["kind"] == kind and len(creep["epochs"]) == 50
    assert document["injected"] == inject
    if kind == "leak":
        assert creep["bytes_per_epoch"] == 65536


@pytest.mark.parametrize(
    "lines, said",
    [
        ("0,0,free,3,512,,0,0,0,\n", "line 4: allocation 3 is freed, and is not live"),
        ("0,0,alloc,0,512,,0,0,0," + "x" * 10_000_000 + "\n", "line 4 (byte 120) is longer than 4096 bytes"),
        ("", "has no allocations"),
    ],
)
def test_a_trace_that_cannot_be_is_refused_by_its_line(tmp_path, lines, said):
    trace = tmp_path / "bad.gmtrace.csv"
    trace.write_text(HEAD + lines, encoding="utf-8")
    done = launchgap("replay", trace, code=3)
    assert said in done.stderr and "bad.gmtrace.csv" in done.stderr and len(done.stderr) < 500


def test_other_files_are_refused_with_what_to_do(tmp_path):
    other = tmp_path / "log.csv"
    other.write_text("Thread,Time,Action,Pointer,Size,Stream\n", encoding="utf-8")
    done = launchgap("replay", other)
    assert done.returncode == 2 and "`launchgap import` makes a session of a recording" in done.stderr
    done = launchgap("replay", tmp_path / "nothing.gmtrace.csv")
    assert done.returncode == 3 and "nothing.gmtrace.csv" in done.stderr
    (tmp_path / "session").mkdir()
    done = launchgap("replay", tmp_path / "session")
    assert done.returncode == 2 and "has kept no events" in done.stderr


def test_what_a_compressed_trace_unpacks_to_is_limited_by_its_lines(tmp_path):
    bomb = tmp_path / "bomb.gmtrace.csv.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(HEAD.encode())
        for _ in range(64):
            file.write(b"0" * MIB)
    done = launchgap("replay", bomb, timeout=20)
    assert done.returncode == 3 and "line 4" in done.stderr


@pytest.mark.parametrize("cut", [100, 1000, 5000])
def test_a_compressed_trace_that_is_cut_off_is_refused(generate, cut):
    trace = generate("training/allocations:2000", "x.gmtrace.csv.gz")
    trace.write_bytes(trace.read_bytes()[:cut])
    assert launchgap("replay", trace).returncode == 3


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--allocator", "malloc"], "there is no allocator 'malloc'"),
        (["--inject", "leak=1"], "--inject is for --epochs"),
        (["--epochs", "50", "--inject", "drip=1"], "'drip=1' is nothing to inject"),
        (["--epochs", "3"], "--epochs"),
        (["--limit=-5"], "--limit is a size such as 24GiB"),
        (["--limit", "0"], "--limit is a size such as 24GiB"),
        (["--limit", "5XiB"], "--limit is a size such as 24GiB"),
        (["--limit", "99999999TiB"], "--limit is a size such as 24GiB"),
        (["--events", "x.csv"], "--events is of one allocator"),
    ],
)
def test_wrong_usage(generate, arguments, said):
    done = launchgap("replay", generate("checkerboard"), *arguments)
    assert done.returncode == 2 and said in done.stderr


def test_unknown_patterns_are_answered_with_those_there_are(tmp_path):
    done = launchgap("generate", "chess", "-o", tmp_path / "x")
    assert done.returncode == 2 and "there are checkerboard, comb" in done.stderr
    assert not (tmp_path / "x").exists()
    text = launchgap("generate", "--help").stdout
    assert "best_fit_attack" in text and "blocks:64" in text


def test_a_long_trace_needs_little_memory(generate, tmp_path):
    """Memory is for what is live, and not for the trace."""
    trace = generate("training/allocations:2000000", "long.gmtrace.csv")
    done = subprocess.run(
        [LAUNCHGAP, "replay", trace, "--allocator", "bfc_growth"],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600 * MIB, 600 * MIB)),
    )
    assert done.returncode == 0, done.stderr


def test_a_replay_is_kept_in_a_session_with_its_page(generate, tmp_path):
    trace, session = generate("checkerboard/blocks:16/request:2"), tmp_path / "session"
    done = launchgap("replay", trace, "--limit", "16MiB", "--c-min", "-o", session, code=0)
    said = "fail at event 24, which asks for 2 MiB, with 8 MiB of 16 MiB free and 1 MiB the largest block"
    page = (session / "report.html").read_text(encoding="utf-8")
    assert said in done.stdout and said in page and "Memory of x.gmtrace.csv" in page
    assert "This session has no devices" not in page and 'id="cases"' not in page
    # A second one stands beside the first.
    assert launchgap("replay", trace, "--allocator", "caching", "--epochs", 30, "-o", session, "--no-report").returncode == 0
    assert len(list((session / "replays").iterdir())) == 2
    out = tmp_path / "csv"
    assert launchgap("export", session, "-o", out).returncode == 0
    rows = table(out / "replays.csv")
    assert [row["allocator"] for row in rows] == [*ALLOCATORS, "caching"]
    assert {row["replay"] for row in rows} == {"001", "002"}
    assert rows[-1]["creep"] == "none" and len(table(out / "replay_epochs.csv")) == 30
    assert any(row["occupancy"] for row in table(out / "replay_moments.csv"))


def test_a_damaged_replay_is_named(generate, tmp_path):
    session = tmp_path / "session"
    launchgap("replay", generate("thrash/cycles:3"), "--allocator", "bfc", "-o", session, "--no-report", code=0)
    assert not (session / "report.html").exists()
    damaged = ["", "{}", '{"record": "session"}', "[1]", '{"record": "replay", "trace": 7}']
    for number, text in enumerate(damaged, 2):
        (session / "replays" / f"00{number}.json").write_text(text, encoding="utf-8")
    done = launchgap("report", session, code=3)
    for number in range(2, 2 + len(damaged)):
        assert f"00{number}.json" in done.stderr
    assert (session / "report.html").exists(), "of what is left"


# --- over real memory ---

GPU = NODES / "one_a100.json"


@pytest.mark.parametrize("allocator", ["direct", "bfc", "bfc_vmm", "caching", "caching_expandable"])
def test_over_the_host_as_over_no_memory(generate, replay, allocator):
    trace = generate("batches/first:2/last:4/layers:3")
    options = ("--limit", "1GiB", "--allocator", allocator)
    document = replay(trace, "--over", "host", *options)
    (one,) = document["allocators"]
    assert one["completed"] and one["operations"] == 36 and document["over"] != "sim"
    if allocator != "direct":  # whatever gives memory, an allocator does the same with it
        (simulated,) = replay(trace, *options)["allocators"]
        assert one["reserved_peak_bytes"] == simulated["reserved_peak_bytes"]
        assert [m["largest_free_bytes"] for m in one["moments"]] == [m["largest_free_bytes"] for m in simulated["moments"]]


def test_over_a_gpu(generate, replay):
    trace = generate("batches/first:2/last:4/layers:3")
    document = replay(trace, "--over", "0", "--limit", "2GiB", "--c-min", node=GPU)
    found = {one["name"]: one for one in document["allocators"]}
    assert {"direct", "pool", "pool_own", "vmm", *ALLOCATORS} <= set(found)
    assert all(one["completed"] for one in found.values())
    assert found["caching"]["c_min_bytes"] % (2 * MIB) == 0 and found["direct"]["c_min_bytes"] is None


def test_a_replay_over_a_gpu_has_its_page(tmp_path, make_node):
    """Every allocator; of those that do not tell what they hold there is no course."""
    trace, session = two_blocks(tmp_path, 0, 1), tmp_path / "session"
    done = launchgap("replay", trace, "--over", "0", "-o", session, node=make_node(**SLOW_POOLS), code=0)
    assert (
        "a generated trace: 2 allocations and 1 free; at most 700 MiB live, 700 MiB of 1 allocation at the end"
        in done.stdout
    )
    # What the first stream's range holds is given back by trimming.
    assert (
        "vmm_expand fails at event 2, which asks for 700 MiB, with 0 B live; giving back what was only kept" in done.stdout
    )
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "bfc: at most" in page and "direct: at most" not in page
    assert "SIMULATED" in done.stdout and "says anything about a real GPU" in page


def test_the_last_of_a_gpus_memory_is_left_alone(generate):
    trace = generate("thrash/cycles:3")
    done = launchgap("replay", trace, "--over", "0", "--limit", "500GiB", node=GPU)
    assert done.returncode == 2 and "of which the last 5 % are left alone" in done.stderr


@pytest.mark.parametrize(
    "inject, allocators, kind",
    [
        ("context=1MiB/epoch", "caching", "context_growth"),
        ("cache=4MiB/epoch", "pool,pool_own,vmm_expand", "cache_plateau"),  # its own, and no growth of the context
    ],
)
def test_memory_that_is_taken_or_kept_on_a_gpu_is_told_apart(generate, replay, inject, allocators, kind):
    trace = generate("thrash/cycles:2/bytes:1048576")
    options = ("--over", "0", "--epochs", 30, "--inject", inject, "--allocator", allocators)
    for one in replay(trace, *options, node=GPU)["allocators"]:
        assert one["creep"]["kind"] == kind, one["name"]


def test_so_few_epochs_say_how_rare_a_leak_they_show(generate, replay):
    trace = generate("thrash/cycles:2/bytes:1048576")
    played = replay(trace, "--epochs", 20, "--allocator", "caching")
    (one,) = played["allocators"]
    assert one["creep"]["kind"] == "none" and one["creep"]["rarest_step_epochs"] == 4
    assert "20 epochs show only what grows at least once in 4 epochs: a rarer leak looks like none" in played["screen"]
    (leaking,) = (played := replay(trace, "--epochs", 20, "--allocator", "caching", "--inject", "leak=1MiB"))["allocators"]
    assert leaking["creep"]["kind"] == "leak" and "a rarer leak" not in played["screen"]


def test_the_least_memory_is_said_beside_the_peak_in_use(generate, replay):
    played = replay(generate("training/allocations:2000"), "--c-min")
    least = min(played["allocators"], key=lambda one: one["c_min_bytes"])
    share = least["c_min_over_peak"] - 1
    text = f"{100 * share:.1f} % more than" if share >= 0.0005 else "no more than"
    assert f"{least['name']} needs least: " in played["screen"] and f"{text} the peak in use" in played["screen"]


def test_each_allocation_is_written_where_that_is_asked_for(generate, replay):
    trace = generate("batches/first:2/last:4/layers:3")
    for allocators in ("direct,mapped,pool,vmm", "bfc,bfc_vmm,caching,caching_expandable"):
        document = replay(trace, "--over", "host", "--limit", "1GiB", "--touch", "--allocator", allocators)
        assert document["touched"] and all(one["completed"] for one in document["allocators"])
    refused = launchgap("replay", trace, "--touch")
    assert refused.returncode == 2 and "sim has none" in refused.stderr


def test_a_trace_that_leaves_memory_live_says_what_its_epochs_do_not_show(generate, replay):
    row = "0,0,alloc,1,1048576,,0,0,0,"
    trace = generate("thrash/cycles:2")
    trace.write_text(HEAD + row + "\n")
    assert "whether the recorded program leaks is not seen here" in replay(trace, "--epochs", 20)["screen"]


# A GPU of 1 GiB whose pools are at what they free for a while.
SLOW_POOLS = {"memory_bytes": 1 << 30, "pool_free_ns": 50_000_000}


def two_blocks(tmp_path, first_stream: int, second_stream: int, *, frees: bool = True) -> Path:
    """600 MiB and then 700 MiB: there is room for one of them."""
    rows = [f"0,0,alloc,1,{600 * MIB},,0,{first_stream},0,"]
    if frees:
        rows.append(f"1,1,free,1,{600 * MIB},,0,{first_stream},0,")
    rows.append(f"2,2,alloc,2,{700 * MIB},,0,{second_stream},0,")
    path = tmp_path / "two.gmtrace.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    "allocator, streams, changes, step",
    [
        ("pool", (0, 0), SLOW_POOLS, "stream_wait"),
        ("pool", (0, 1), SLOW_POOLS, "device_wait"),
        ("pool_own", (0, 0), SLOW_POOLS, "stream_wait"),
        ("pool", (0, 0), SLOW_POOLS | {"pools_give_way": False}, "trim"),
        ("pool_own", (0, 1), SLOW_POOLS | {"pools_give_way": False}, "trim"),
        ("pool", (0, 0), {"memory_bytes": 1 << 30}, None),
        ("direct", (0, 0), SLOW_POOLS, None),
    ],
)
def test_what_cures_a_failure_on_a_gpu(replay, tmp_path, make_node, allocator, streams, changes, step):
    trace = two_blocks(tmp_path, *streams)
    document = replay(trace, "--over", "0", "--allocator", allocator, node=make_node(**changes))
    (one,) = document["allocators"]
    assert one["completed"] and one["memory_kept_bytes"] == 0
    assert (one["failure"] and one["failure"]["cured_by"]) == step
    assert ("with 0 B live" in document["screen"]) == (step is not None)
    # What such an allocator holds it does not tell.
    assert one["reserved_peak_bytes"] is None and one["at_peak"]["largest_block_index"] is None


@pytest.mark.parametrize("limit", ["1000MiB", "650MiB"])
def test_of_a_gpu_too_little_is_left_beside_what_is_live(replay, tmp_path, make_node, limit):
    options = ("--over", "0", "--limit", limit, "--allocator", "direct,pool,vmm")
    document = replay(two_blocks(tmp_path, 0, 0, frees=False), *options, node=make_node(memory_bytes=2 << 30))
    for one in document["allocators"]:
        assert not one["completed"] and one["memory_kept_bytes"] == 0
        assert one["failure"]["cured_by"] == "none", one["name"]
    assert "direct, pool and vmm fail at event 1, which asks for 700 MiB, with 600 MiB live" in document["screen"]


@pytest.fixture
def play_rows(replay, tmp_path, make_node):
    """Plays these rows of a trace over a fake GPU of so much memory: what it said, and the one allocator's record."""

    def play(rows, allocator, memory_bytes):
        trace = tmp_path / "rows.gmtrace.csv"
        trace.write_text(HEAD + "\n".join(rows) + "\n")
        document = replay(trace, "--over", "0", "--allocator", allocator, node=make_node(memory_bytes=memory_bytes))
        (one,) = document["allocators"]
        return " ".join(document["screen"].split()), one

    return play


def test_rounding_to_pages_is_no_fragmentation(play_rows):
    """Blocks of 4 KiB that nothing frees: each takes a page of 2 MiB."""
    rows = [f"{i},{i},alloc,{i + 1},4096,,0,0,0," for i in range(1200)]
    told, one = play_rows(rows, "vmm", 2 << 30)
    failure = one["failure"]
    assert failure["cured_by"] == "rounding" and failure["then"]["granted_bytes"] == failure["event"] * 2 * MIB
    assert failure["device_free_bytes"] is not None and one["memory_kept_bytes"] == 0
    assert "each block is rounded up to pages" in told and "in the way" not in told


def test_what_is_live_on_a_gpu_lies_in_the_way(play_rows):
    # vmm_expand uses what was given back once all behind it was: 600 MiB before a small block are lost to it.
    rows = [f"0,0,alloc,1,{600 * MIB},,0,0,0,", f"1,1,alloc,2,{MIB},,0,0,0,", f"2,2,free,1,{600 * MIB},,0,0,0,"]
    rows.append(f"3,3,alloc,3,{700 * MIB},,0,0,0,")
    told, one = play_rows(rows, "vmm_expand", 1 << 30)
    assert not one["completed"] and one["failure"]["cured_by"] == "destroy"
    assert one["memory_kept_bytes"] == 0
    assert "only an empty allocator has room for it" in told, "it does not tell how it lies"


def test_memory_that_a_replay_cannot_give_back_is_told(tmp_path, generate, make_node):
    node = make_node(faults=[{"device": 0, "library": "cuda", "call": "cuMemUnmap", "after": 3, "code": 1}])
    out = tmp_path / "gpu.json"
    trace = generate("checkerboard/blocks:8/bytes:4194304")
    done = launchgap("replay", trace, "--over", "0", "--allocator", "vmm", "--json", out, node=node)
    assert done.returncode in (0, 3)
    if done.returncode == 0:
        (one,) = json.loads(out.read_text(encoding="utf-8"))["allocators"]
        assert one["memory_kept_bytes"] >= 4 * MIB and "less than before" in done.stdout


@pytest.mark.parametrize("over, code", [("7", 2), ("gpu", 77), ("GPU-none", 2), ("", 2)])
def test_a_device_that_is_not_there(generate, over, code):
    done = launchgap("replay", generate("thrash/cycles:3"), "--over", over, code=code)
    assert done.stderr.count("\n") <= 2
