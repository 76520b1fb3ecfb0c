"""What Nsight would be told: cases, blocks and samples as ranges of the domain `launchgap`, and whose they are."""

import itertools

import pytest
from shipped import BUILD, NODES, records, table

LISTENER = BUILD / "nvtx" / "libnvtx_listener.so"

pytestmark = pytest.mark.skipif(not LISTENER.exists(), reason="built without NVTX headers")


@pytest.fixture
def heard(run, tmp_path):
    """Runs under the listener; returns the session and what the listener was told by each process that measured."""

    def measure(cases, runs=1):
        log = tmp_path / "nvtx.log"
        told = dict(NVTX_INJECTION64_PATH=str(LISTENER), LAUNCHGAP_NVTX_LOG=str(log))
        _, session = run(cases, runs=runs, node=NODES / "one_a100.json", **told)
        return session, log.read_text().splitlines()

    return measure


def pushes(lines):
    return [tuple(line.split(" ")[1:]) for line in lines if line.startswith("push ")]


def test_cases_setups_blocks_and_samples_are_ranges(heard):
    _, lines = heard("launch/null")
    assert lines[0] == "domain launchgap"
    assert {domain for domain, _, _ in pushes(lines)} == {"launchgap"}
    names = [name for _, name, _ in pushes(lines)]
    assert "(not" not in names, "Nsight's filters find registered names only"
    for mode, samples in (("idle", 2000), ("burst", 60)):
        begin = names.index(f"launch/null/api:driver/mode:{mode}")
        assert names[begin + 1 : begin + 3] == ["prepare", "blocks"]
        assert names[begin + 3 : begin + 3 + 5 * (samples + 1)] == ["measure", *["sample"] * samples] * 5
    payloads = [payload for _, name, payload in pushes(lines) if name == "measure"]
    assert payloads == ["0", "1", "2", "3", "4"] * 2, "blocks are told apart by their number"
    assert lines.count("pop launchgap") == len(names)
    # Balanced: a sample in its block, all blocks in one range, that in its case.
    depth = deepest = 0
    for line in lines:
        depth += line.startswith("push ") - line.startswith("pop ")
        deepest = max(deepest, depth)
    assert (depth, deepest) == (0, 4)


def test_the_payload_of_a_samples_range_is_its_key_in_the_records(heard, export):
    session, lines = heard("launch/(null|flag)", runs=2)
    told = [int(payload) for _, name, payload in pushes(lines) if name == "sample"]
    recorded = []
    for file in records(session).values():
        for record in file:
            if record["record"] == "samples":
                recorded += range(record["key"], record["key"] + len(record["t0_ns"]))
    assert sorted(told) == sorted(recorded)
    assert len(set(told)) == len(told) > 0, "in all processes and cases"
    assert min(told) >= 0 and max(told) < 2**63, "SQLite's integers have a sign"
    # Within a case and process they count samples; every case and process has its own.
    assert len({key >> 32 for key in told}) == 2 * 3
    assert {key & 0xFFFFFFFF for key in told} == set(range(10_000))
    rows = table(export(session) / "samples.csv")
    assert {int(row["key"]) for row in rows} == set(told)
    assert all(int(row["key"]) & 0xFFFFFFFF == int(row["sample"]) for row in rows)


def test_each_process_says_once_whose_it_is_where_tools_capture(heard):
    session, lines = heard("launch/null", runs=2)
    marks = [line.removeprefix("mark launchgap ") for line in lines if line.startswith("mark ")]
    run = next(record for file in records(session).values() for record in file if record["record"] == "run")
    files = [name.removesuffix(".jsonl") for name in records(session)]
    assert sorted(marks) == sorted(f"run={run['session_id']}/{name}" for name in files)
    before = [earlier for earlier, line in itertools.pairwise(lines) if line.startswith("mark ")]
    assert before == ["push launchgap blocks 0"] * 2, "inside the range that nsys is told to capture"
