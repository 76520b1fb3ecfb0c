"""What Nsight would be told: every case and block in a range of the domain `launchgap`."""

import pytest
from shipped import BUILD, NODES

LISTENER = BUILD / "nvtx" / "libnvtx_listener.so"


@pytest.mark.skipif(not LISTENER.exists(), reason="built without NVTX headers")
def test_cases_setups_and_blocks_are_ranges(run, tmp_path):
    log = tmp_path / "nvtx.log"
    done, _ = run(
        "--devices",
        "gpu",
        "--runs",
        1,
        "--filter",
        "launch/null",
        node=NODES / "one_a100.json",
        NVTX_INJECTION64_PATH=str(LISTENER),
        LAUNCHGAP_NVTX_LOG=str(log),
    )
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines()
    assert lines[0] == "domain launchgap"
    pushes = [line.split(" ", 1)[1] for line in lines if line.startswith("push ")]
    assert all(push.startswith("launchgap ") and "(not registered)" not in push for push in pushes)
    names = [push.split(" ")[1] for push in pushes]
    for mode in ("idle", "burst"):
        begin = names.index(f"launch/null/api:driver/mode:{mode}")
        assert names[begin + 1 : begin + 7] == ["setup", *["measure"] * 5]
    payloads = [push.split(" ")[2] for push in pushes if push.split(" ")[1] == "measure"]
    assert payloads == ["0", "1", "2", "3", "4"] * 2, "blocks are told apart by their number"
    assert lines.count("pop launchgap") == len(pushes)
    # Balanced, and blocks inside their case.
    depth = deepest = 0
    for line in lines:
        depth += line.startswith("push ") - line.startswith("pop ")
        deepest = max(deepest, depth)
    assert (depth, deepest) == (0, 2)
