"""launchgap import: what it tells of a job as a whole, from files as recorders write them."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from recording_files import Call, Job, Work, as_json, drifting, launches, rank_file, trace_events, waited_for, write_nsys
from shipped import launchgap, table


def tables(tmp_path: Path, *files: Path, page: bool = False, name: str = "session") -> Path:
    session, out = tmp_path / name, tmp_path / f"{name}-tables"
    launchgap("import", *files, "-o", session, page=page, code=0)
    launchgap("export", session, "-o", out, code=0)
    return out


def codes(out: Path) -> list[str]:
    findings = out / "findings.csv"  # no table without rows is written
    return [row["code"] for row in table(findings) if row["source"] == "cause"] if findings.exists() else []


def test_the_rank_that_holds_the_others_up_is_named(tmp_path):
    slower = [0.1 if rank == 2 else 0 for rank in range(4)]
    files = [rank_file(tmp_path / f"rank{r}.json", r, range(5, 25), slower[r], together_ns=12_000_000) for r in range(4)]
    out = tables(tmp_path, *files, page=True)
    (cause,) = [row for row in table(out / "findings.csv") if "straggler" in row["code"]]
    assert cause["code"] == "persistent-straggler"
    assert cause["sentence"].startswith("The ranks wait for rank 2: it is the slowest of 4 in 20 of 20 steps")
    (rank,) = [row["rank"] for row in table(out / "recordings.csv") if row["device_id"] == cause["device_id"]]
    assert rank == "2"
    text = html.unescape((tmp_path / "session" / "report.html").read_text(encoding="utf-8"))
    assert "The ranks wait for rank 2" in text and "between devices of a kind" in text


def test_ranks_that_do_not_wait_for_each_other_are_not_said_to(tmp_path):
    """As of two programs that were recorded together."""
    files = [rank_file(tmp_path / f"rank{r}.json", r, range(5, 25), 0.1 if r == 2 else 0) for r in range(4)]
    (cause,) = [row for row in table(tables(tmp_path, *files) / "findings.csv") if "rank" in row["code"]]
    assert (cause["code"], cause["severity"]) == ("slow-rank", "note")
    assert "wait for" not in cause["sentence"].replace("nothing shows that they wait for it", "")


def test_steps_vary_within_a_process_and_between_ranks(tmp_path):
    files = [rank_file(tmp_path / f"rank{r}.json", r, range(20), 0.2 * r) for r in range(3)]
    rows = table(tables(tmp_path, *files) / "variation.csv")
    found = {row["level"] for row in rows if (row["case"], row["metric"]) == ("recorded/step", "step_ns")}
    assert found == {"samples", "devices"}
    calls = [row for row in rows if row["metric"] == "api_record_ns" and row["case"].endswith("stream:idle")]
    assert {"launches", "steps"} <= {row["level"] for row in calls}
    (ranks,) = [row for row in rows if (row["metric"], row["level"]) == ("step_ns", "devices")]
    assert float(ranks["variance_share"]) > 0.9, "steps of a rank are alike, ranks are not"


# --- clocks ---


def test_a_clock_that_is_known_well_enough_is_corrected_and_the_page_says_so(tmp_path):
    job = waited_for()
    out = tables(tmp_path, write_nsys(tmp_path / "a.sqlite", drifting(job, 133_000_000_000, -558)), page=True)
    (recording,) = table(out / "recordings.csv")
    assert (recording["clock_corrected"], recording["clock_problem"], recording["early"]) == ("true", "", "0")
    error = float(recording["clock_offset_error_ns"])
    assert 0 < error < 6_000
    assert abs(int(recording["clock_offset_ns"]) - 133_000_000_000) <= 100_000, "and what it drifts until the first kernel"
    assert float(recording["clock_drift_ppm"]) == pytest.approx(-558, abs=0.5)
    delays = [int(row["value"]) for row in table(out / "samples.csv") if row["metric"] == "launch_ns"]
    truth = [one.begin - call.begin for one, call in zip(job.work, job.calls[::2], strict=True)]
    assert all(abs(own - true) <= error + 2 for own, true in zip(delays, truth, strict=True))
    text = html.unescape((tmp_path / "session" / "report.html").read_text(encoding="utf-8"))
    assert "corrected" in text and "−558" in text


def test_between_two_clocks_no_time_passes(tmp_path):
    job = launches(200, begin=6_000_000_000)
    shares = []
    for ahead in (0, 5_000_000_000, -5_000_000_000):
        path = write_nsys(tmp_path / f"{ahead}.sqlite", job.device_clock(ahead))
        (recording,) = table(tables(tmp_path, path, name=str(ahead)) / "recordings.csv")
        shares.append(float(recording["launch_share"]))
    assert shares[0] > 0.05 and shares[1:] == pytest.approx([shares[0]] * 2, rel=0.1)


def test_kept_events_have_the_times_that_were_recorded(tmp_path):
    path = write_nsys(tmp_path / "a.sqlite", drifting(waited_for(), 133_000_000_000, 206))
    first = tables(tmp_path, path)
    trace = tmp_path / "trace.json"
    assert launchgap("export", tmp_path / "session", "--format", "chrome-trace", "-o", trace).returncode == 0
    again = tables(tmp_path, trace, name="again")
    columns = ("clock_corrected", "clock_offset_ns", "clock_offset_error_ns", "launches", "idle_launches")
    one, two = (table(out / "recordings.csv")[0] for out in (first, again))
    assert [one[key] for key in columns] == [two[key] for key in columns]


# --- what comes of hostile names ---


def test_names_that_are_no_text_end_in_no_table_and_no_page(tmp_path):
    name = "k\x1b[31m<script>alert(1)</script>"
    calls, work = [], []
    for i in range(200):
        at = 1_000_000 + 20_000 * i
        calls.append(Call(at, at + (900_000 if i < 1 else 4_000), i + 1))
        work.append(Work(at + 6_000, at + (8_000 if i < 100 else 12_000), i + 1))
    events = trace_events(Job(tuple(calls), tuple(work)))
    for event in events:
        if event["cat"] == "kernel":
            event["name"] = name
    path = tmp_path / "a.json"
    path.write_text(as_json(dict(traceEvents=events)))
    out = tables(tmp_path, path, page=True)
    assert "kernel-changed" in codes(out)
    assert "\x1b" not in (out / "findings.csv").read_text(encoding="utf-8")
    assert "<script>alert" not in (tmp_path / "session" / "report.html").read_text(encoding="utf-8")
