"""What a traced run keeps of its events, and what is made of it."""

import gzip
import json
import shutil

import pytest
from shipped import NODES, launchgap, table

IDLE = "launch/null.*idle"
SLOW = {"call_ns": {"constant": 5000}, "launch_ns": {"constant": 10_000}, "kernel_ns": {"constant": 2000}}
FULL = {"overheads": [{"kind": "command_buffer_full", "every": 50, "ns": {"constant": 40_000}}]}


def events(session):
    """The kept events of a session: heads of sections, each with the number of events of each kind."""
    sections = []
    for path in sorted((session / "events").iterdir()):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in map(json.loads, file):
                if line["record"] == "event_names":
                    sections.append((line, {}))
                else:
                    kinds = sections[-1][1]
                    kinds[line["kind"]] = kinds.get(line["kind"], 0) + line["n"]
    return sections


@pytest.fixture
def full_node(make_node):
    """A node whose launches are now and then delayed by a full command buffer."""
    return make_node(compute_capability="9.0", process_factor_sigma=0, whole={"cupti": FULL}, **SLOW)


def test_slow_samples_are_shown_with_what_made_them_slow(run, full_node, export):
    _, session = run(IDLE, trace="on", node=full_node, page=True)
    slow = table(export(session) / "slow_samples.csv")
    assert len(slow) == 10
    assert {row["metric"] for row in slow} == {"launch_ns"}
    assert [float(row["value"]) for row in slow] == sorted((float(row["value"]) for row in slow), reverse=True)
    # As in the table of all samples.
    samples = {
        (row["sample"], row["metric"]): float(row["value"])
        for row in table(export(session) / "samples.csv")
        if row["arm"] == "traced"
    }
    for row in slow:
        assert samples[row["sample"], "launch_ns"] == float(row["value"])
    shown = [row for row in slow if row["view_begin_ns"]]
    assert len(shown) == 2 and all(row["odd"] == "true" for row in shown)
    timelines = table(export(session) / "timelines.csv")
    for row in shown:
        own = [event for event in timelines if event["sample"] == row["sample"]]
        assert {"call", "kernel", "overhead", "range"} <= {event["kind"] for event in own}
        full = [e for e in own if e["kind"] == "overhead" and -1000 < int(e["begin_ns"]) < int(row["lasts_ns"])]
        assert full and full[0]["name"] == "command buffer full"
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "What happened around the oddest samples?" in page
    assert "overhead command buffer full" in page


def test_two_milliseconds_around_the_slowest_are_kept_or_everything(run, full_node):
    _, session = run(IDLE, trace="on", node=full_node)
    few = sum(kinds["call"] for _, kinds in events(session))
    # A sample takes about 20 us, so that there are about a hundred in two milliseconds.
    assert 10 <= few < 5000
    shutil.rmtree(session)
    _, session = run(IDLE, "--keep-events", trace="on", node=full_node)
    sections = events(session)
    assert [head["block"] for head, _ in sections] == [0, 1, 2, 3, 4]
    assert {head["case"] for head, _ in sections} == {"launch/null/api:driver/mode:idle"}
    for _, kinds in sections:
        assert kinds["call"] >= 2000 and kinds["kernel"] >= 2000 and kinds["range"] == 2000


def test_a_trace_of_kept_events_is_read_back(run, full_node, tmp_path):
    _, session = run(IDLE, "--keep-events", trace="on", node=full_node)
    trace = tmp_path / "trace.json.gz"
    launchgap("export", session, "--format", "chrome-trace", "-o", trace, code=0)
    launchgap("import", trace, "-o", tmp_path / "again", code=0)
    launches = {
        (row["params"], row["metric"]): float(row["p50"])
        for row in table(tmp_path / "again" / "summary.csv")
        if row["benchmark"] == "recorded/launch"
    }
    own = {
        row["metric"]: float(row["p50"])
        for row in table(session / "summary.csv")
        if row["arm"] == "traced" and row["process_config"] == "launch"
    }
    assert launches["stream:idle", "launch_ns"] == pytest.approx(own["launch_ns"], rel=0.01)
    assert launches["stream:idle", "api_record_ns"] == pytest.approx(own["api_record_ns"], rel=0.01)


def test_a_plain_run_keeps_none_and_export_says_who_does(run, tmp_path):
    done, session = run(IDLE, code=None, node=NODES / "one_a100.json")
    assert done.returncode == 0 and not (session / "events").exists()
    done = launchgap("export", session, "--format", "chrome-trace", "-o", tmp_path / "x.json", code=2)
    assert "has kept no events" in done.stderr and "traced" in done.stderr


def test_clocks_and_power_are_counters_of_the_trace(run, tmp_path):
    _, session = run(IDLE, "--keep-events", trace="on", node=NODES / "one_a100.json")
    trace = tmp_path / "trace.json"
    launchgap("export", session, "--format", "chrome-trace", "-o", trace, code=0)
    found = json.loads(trace.read_text())["traceEvents"]
    counters = [event for event in found if event["ph"] == "C"]
    assert {"sm_clock_mhz", "power_w", "temperature_c"} <= {event["name"] for event in counters}
    power = [event["args"]["W"] for event in counters if event["name"] == "power_w"]
    assert len(power) == 6, "before the first of five blocks, and after each"
    # On the clock of the events: after each block, the last of them.
    launches = [float(event["ts"]) for event in found if event["ph"] == "X"]
    at = [float(event["ts"]) for event in counters]
    assert min(at) < max(launches) and max(at) > max(launches) and max(at) - min(launches) < 60e6


def test_the_host_keeps_its_events_too(run):
    _, session = run(IDLE, trace="on")
    ((head, kinds), *_) = events(session)
    assert kinds["call"] > 0 and kinds["kernel"] > 0
    assert "launch" in head["names"]


def test_traces_of_several_processes_go_to_a_folder_that_is_new_or_empty(run, tmp_path):
    _, session = run(IDLE, runs=3, trace="on")
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    done = launchgap("export", session, "--format", "chrome-trace", "-o", full)
    assert done.returncode == 2 and "is not an empty folder" in done.stderr
    assert [path.name for path in full.iterdir()] == ["mine"]
    launchgap("export", session, "--format", "chrome-trace", "-o", tmp_path / "new", code=0)
    assert len(list((tmp_path / "new").glob("*.json.gz"))) == len(list((session / "events").iterdir())) == 3
