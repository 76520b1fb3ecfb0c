"""launchgap import of the ranks of one job: who is late, what makes it late, and what forbids to say it."""

from __future__ import annotations

import html
import json
import random
from pathlib import Path

import pytest
from recording_files import Call, Job, Work, as_json, microseconds, trace_events
from shipped import launchgap, table

US = 1_000
START = 1_700_000_000_000_000_000

# What a step takes where nothing is slow, and how many times as long where that is what is slow.
USUAL = dict(loading=200 * US, input=300 * US, kernels=200 * US, copies=200 * US, program=10 * US, launches=5 * US)
SLOW = dict(loading=12, input=8, kernels=2, copies=12, program=40, launches=80)
KERNELS = 12


def write_job(
    folder: Path, ranks: int, cause: str = "", slow: str = "always", named: bool = True, steps: int = 20, seed: int = 1
) -> list[Path]:
    """Ranks that each load, copy and compute, and then wait for each other in a collective until the last has come. The last
    of them is slower by one cause, `always` or each `in turn`. Their clocks are apart."""
    scatter = random.Random(seed)
    jobs = [([], [], []) for _ in range(ranks)]
    hosts = [START + 3_000 * US * rank for rank in range(ranks)]
    for step in range(steps):
        begins, calls_of_it = [], []
        for rank, (calls, work, ranges) in enumerate(jobs):
            late = cause and rank == (ranks - 1 if slow == "always" else step % ranks)

            def time(what: str, late: bool = bool(late)) -> int:
                return int(USUAL[what] * (SLOW[what] if late and what == cause else 1) * scatter.gauss(1, 0.01))

            def start(
                at: int, ends: int, took: int, length: int, name: str, kind: str = "KERNEL", into=(calls, work)
            ) -> int:
                """A call, and when it has ended; the work begins when that before it has ended."""
                calls, work = into
                number = len(calls) + 1
                begin = max(at + took + US, ends)
                calls.append(Call(at, at + took, number, "cudaLaunchKernel" if kind == "KERNEL" else "cudaMemcpyAsync"))
                work.append(Work(begin, begin + length, number, kind=kind, name=name))
                return at + took

            begin = at = hosts[rank]
            loading = time("loading")
            ranges.append(("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, at + loading))
            at = start(at + loading, 0, 4 * US, time("input"), "Memcpy HtoD (Pinned -> Device)", "MEMCPY")
            for _ in range(KERNELS):
                at = start(at + time("program"), work[-1].end, time("launches"), time("kernels"), "a_kernel")
            at = start(at + 5 * US, work[-1].end, 4 * US, time("copies"), "Memcpy DtoD (Device -> Device)", "MEMCPY")
            at += 5 * US
            calls_of_it.append((begin, at))
            begins.append(max(at + 5 * US, work[-1].end + US) - hosts[rank])
        # Of all ranks the stretch from the end of one collective to the end of the next is the same.
        ends = max(begins) + 400 * US
        for rank, (calls, work, ranges) in enumerate(jobs):
            begin, at = calls_of_it[rank]
            number = len(calls) + 1
            calls.append(Call(at, at + 4 * US, number))
            work.append(Work(hosts[rank] + begins[rank], hosts[rank] + ends, number, name="ncclDevKernel_AllReduce_Sum_f32"))
            calls.append(Call(at + 5 * US, hosts[rank] + ends + 3 * US, number + 1, "cudaStreamSynchronize"))
            hosts[rank] += ends + 5 * US
            ranges.append((f"ProfilerStep#{step + 7}", begin, hosts[rank]))
    return [write_rank(folder / f"rank{rank}.json", rank, *job, named=named) for rank, job in enumerate(jobs)]


def write_rank(path: Path, rank: int, calls: list, work: list, ranges: list, named: bool) -> Path:
    events = trace_events(Job(tuple(calls), tuple(work)))
    for name, begin, end in ranges:
        if named or not name.startswith("ProfilerStep"):
            times = dict(ts=microseconds(begin), dur=microseconds(end - begin))
            events.append(dict(ph="X", cat="user_annotation", name=name, pid=4242, tid=1, **times, args={}))
    path.write_text(as_json(dict(schemaVersion=1, distributedInfo=dict(rank=rank), traceEvents=events)))
    return path


def change(path: Path, **head) -> Path:
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | head))
    return path


def imported(folder: Path, files: list[Path], page: bool = False) -> tuple[list[dict], list[dict], str]:
    """The rows of ranks.csv, the findings about ranks, and what is said on the terminal."""
    done = launchgap("import", *files, "-o", folder / "session", page=page, code=0)
    launchgap("export", folder / "session", "-o", folder / "tables", code=0)
    codes = ("straggler", "rank", "collectives")
    rows, findings = (
        table(folder / "tables" / name) if (folder / "tables" / name).exists() else []
        for name in ("ranks.csv", "findings.csv")
    )
    return rows, [row for row in findings if any(code in row["code"] for code in codes)], done.stdout


REASONS = dict.fromkeys(("kernels", "copies", "program", "launches", "input")) | dict(loading="input")
WORDS = dict(
    kernels="Its kernels take longer", copies="Its copies take longer", input="Its input takes longer",
    program="Its GPU waits longer for the program, outside of CUDA", launches="Its launches take longer",
)  # fmt: skip


@pytest.mark.parametrize("named", [True, False], ids=["steps", "collectives"])
@pytest.mark.parametrize("ranks, cause", list(zip((2, 3, 4, 8, 5, 2), REASONS, strict=True)))
def test_the_late_rank_and_its_reason_are_named(ranks, cause, named, tmp_path):
    rows, findings, text = imported(tmp_path, write_job(tmp_path, ranks, cause, named=named))
    reason, late = REASONS[cause] or cause, f"rank {ranks - 1}"
    for compared in ("steps", "collectives") if named else ("collectives",):
        own = [row for row in rows if row["collective"] == compared]
        assert [row["rank"] for row in own] == [f"rank {rank}" for rank in range(ranks)]
        assert [row["reason"] for row in own] == [""] * (ranks - 1) + [reason], compared
        assert (own[-1]["beyond_chance"], own[-1]["times_last"], own[-1]["matched"]) == ("true", "20", "20")
        assert 0.7 < float(own[-1]["reason_share"]) <= 1
        # All that the slow cause adds is gone without this rank.
        took, ideal, without = (float(own[-1][key]) for key in ("took_ns", "ideal_ns", "without_ns"))
        assert without < took * 0.95 and (ideal == pytest.approx(without, rel=0.02) or ranks == 2)
    (finding,) = findings
    assert finding["code"] == ("persistent-straggler" if named else "late-to-collectives")
    assert (finding["severity"], finding["subject"]) == ("act", late)
    assert WORDS[reason] in finding["sentence"] and "if in each all ranks took their median" in finding["evidence"]
    assert WORDS[reason].split()[-1] in text, "it is said on the terminal too"


@pytest.mark.parametrize("named", [True, False], ids=["steps", "collectives"])
def test_nobody_is_named_where_nothing_is_slow(named, tmp_path):
    for seed in range(3):
        (tmp_path / str(seed)).mkdir()
        files = write_job(tmp_path / str(seed), 2 + 3 * seed, named=named, seed=seed)
        rows, findings, _ = imported(tmp_path / str(seed), files)
        assert findings == [] and {row["reason"] for row in rows} == {""}


def test_ranks_that_are_late_in_turn_have_a_reason_and_no_rank_is_blamed(tmp_path):
    rows, findings, _ = imported(tmp_path, write_job(tmp_path, 4, "program", slow="in turn"))
    (finding,) = findings
    assert finding["code"] == "rotating-straggler"
    assert "wait for a different one" in finding["sentence"] and WORDS["program"] in finding["sentence"]
    assert {row["beyond_chance"] for row in rows} == {"false"}
    assert {row["reason"] for row in rows} == {""}


def test_the_page_has_the_ranks(tmp_path):
    imported(tmp_path, write_job(tmp_path, 3, "kernels"), page=True)
    text = html.unescape((tmp_path / "session" / "report.html").read_text(encoding="utf-8"))
    section = text[text.index('<section id="ranks">') :]
    section = section[: section.index("</section>")]
    assert "The ranks wait for rank 2" in section and "Its kernels take longer" in section
    assert "median of the ranks’ own time" in section


# --- what forbids to compare them ---


def test_ranks_with_one_number_are_not_compared(tmp_path):
    files = write_job(tmp_path, 3, "kernels")
    change(files[1], distributedInfo=dict(rank=0))
    rows, (finding,), _ = imported(tmp_path, files)
    assert (rows, finding["code"], finding["severity"]) == ([], "ranks-not-compared", "note")
    assert "Several recordings say that they are rank 0" in finding["sentence"]


def test_ranks_of_other_times_are_not_compared(tmp_path):
    files = write_job(tmp_path, 2, "kernels", named=False)
    change(files[1], baseTimeNanoseconds=3_600_000_000_000)
    rows, (finding,), _ = imported(tmp_path, files)
    assert (rows, finding["code"]) == ([], "ranks-not-compared")
    assert "have no time in common" in finding["sentence"]


def test_ranks_without_anything_in_common_are_not_compared(tmp_path):
    files = write_job(tmp_path, 2, "kernels", named=False)
    events = json.loads(files[1].read_text())["traceEvents"]
    last = max(i for i, event in enumerate(events) if event["name"].startswith("nccl"))
    change(files[1], traceEvents=events[:last] + events[last + 1 :])
    rows, (finding,), text = imported(tmp_path, files)
    assert (rows, finding["code"]) == ([], "ranks-not-compared")
    assert "who is late is not known" in finding["sentence"] and "rank 1: 0 steps, 19 collectives" in finding["evidence"]
    assert "[ranks-not-compared]" in text


@pytest.mark.parametrize("world", [None, 6])
def test_a_missing_rank_is_named_and_nothing_is_said_that_needs_it(world, tmp_path):
    files = write_job(tmp_path, 4, "kernels")
    if world:
        change(files[0], distributedInfo=dict(rank=0, world_size=world))
    rows, findings, _ = imported(tmp_path, [files[0], files[1], files[3]])
    missing = next(row for row in findings if row["code"] == "ranks-missing")
    said = "rank 2, rank 4 and rank 5 are missing" if world else "3 of 4 ranks were recorded: rank 2 is missing"
    assert said in missing["sentence"]
    assert {row["rank"]: row["reason"] for row in rows} == {"rank 0": "", "rank 1": "", "rank 3": "kernels"}
    assert {row["took_ns"] for row in rows} == {""}
    straggler = next(row for row in findings if row["code"] == "persistent-straggler")
    assert "of 3 in 20 of 20 steps" in straggler["sentence"] and "took their median" not in straggler["evidence"]
