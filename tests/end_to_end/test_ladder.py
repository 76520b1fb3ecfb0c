"""Both ladders on fake nodes: a rung is a case, verified, and what it cannot do costs nothing but itself."""

import json

import pytest
from shipped import NATIVE, NODES, UNTRACED, launchgap, table

MIXED = json.loads((NODES / "mixed_8_gpus.json").read_text())
KEPLER, HOPPER, BLACKWELL = (MIXED["devices"][i] for i in (0, 6, 7))


needs_native_form = pytest.mark.skipif(not NATIVE, reason="built without nvcc, which alone compiles the later rungs")


def ladder(folder, devices, *more, faults=(), filter="^matmul/ladder", code=0, where="gpu"):
    node = None
    if devices:
        node = folder / "node.json"
        node.write_text(json.dumps(MIXED | {"devices": list(devices), "faults": list(faults)}))
    what = ("--devices", where, "--runs", "1", *UNTRACED, "--filter", filter, "--no-report", *more)
    launchgap("run", *what, "-o", folder / "s", node=node, code=code)
    return table(folder / "s" / "ladder.csv"), table(folder / "s" / "findings.csv")


def of_device(rows, device):
    return {(row["rung"], row["type"]): row for row in rows if row["device_id"] == device["uuid"]}


@needs_native_form
def test_every_rung_that_can_run_stands_beside_the_library_and_the_others_say_why(tmp_path):
    rows, _ = ladder(tmp_path, (KEPLER, HOPPER, BLACKWELL), "--sweep", "size=256:256")
    hopper, kepler, blackwell = (of_device(rows, device) for device in (HOPPER, KEPLER, BLACKWELL))
    assert [rung for rung, _ in hopper] == ["naive", "tiles", "wmma", "mma", "wgmma", "tcgen05", *3 * ["library"]]
    assert {rung for (rung, _), row in hopper.items() if row["status"] != "ok"} == {"tcgen05"}
    assert {rung for (rung, _), row in blackwell.items() if row["status"] != "ok"} == {"wgmma"}
    for row in (row for rows in (hopper, blackwell) for row in rows.values() if row["status"] == "ok"):
        assert 0 < float(row["of_library"]) <= 1 and 0 < float(row["of_best"]) <= 1
    for rung, least in (("wmma", "7.0"), ("mma", "8.0"), ("wgmma", "9.0"), ("tcgen05", "10.0")):
        (row,) = (row for (name, _), row in kepler.items() if name == rung)
        assert row["status"] == "unsupported" and f"needs compute capability {least}, and this is 3.5" in row["reason"]
    assert {kepler["naive", "fp32"]["status"], kepler["tiles", "fp32"]["status"]} == {"ok"}
    later = blackwell["wgmma", "bf16"]
    assert later["status"] == "unsupported" and "9.0 and no later one, and this is 10.0" in later["reason"]


@needs_native_form
@pytest.mark.parametrize(
    ("device", "rungs", "words"),
    [
        (HOPPER, "tiles|wmma", "without tensor cores (FP32 for FP16)"),
        (BLACKWELL, "mma|wgmma|tcgen05", "by rung mma in place of tcgen05"),
    ],
    ids=["Hopper", "Blackwell"],
)
def test_what_a_rung_lacks_is_said_with_its_cost(tmp_path, device, rungs, words):
    """Of two rungs, which are all that a sentence needs: a fake computes for seconds what is large enough for one."""
    _, findings = ladder(tmp_path, (device,), "--sweep", "size=2048:2048", filter=f"^matmul/ladder/rung:({rungs})/")
    (said,) = (f for f in findings if f["code"] == "ladder")
    assert words in said["sentence"] and said["device_id"] == device["uuid"]


@needs_native_form
def test_a_rung_that_hangs_costs_its_case_alone(tmp_path):
    faults = [{"device": 0, "library": "cuda", "call": "cuTensorMapEncodeTiled", "hang": True}]
    rows, _ = ladder(tmp_path, (HOPPER,), "--timeout", "5", faults=faults, code=3)
    for (rung, _), row in of_device(rows, HOPPER).items():
        assert row["status"] == {"wgmma": "failed", "tcgen05": "unsupported"}.get(rung, "ok")
        assert ("hung" in row["reason"]) == (rung == "wgmma")


@needs_native_form
@pytest.mark.parametrize(
    ("call", "code", "status", "words"),
    [
        ("cuFuncSetAttribute", 1, "unsupported", "196672 bytes of shared memory for a block, more than this GPU has"),
        ("cuTensorMapEncodeTiled", 1, "failed", "cuTensorMapEncodeTiled"),
    ],
)
def test_what_the_driver_refuses_is_named(tmp_path, call, code, status, words):
    faults = [{"device": 0, "library": "cuda", "call": call, "code": code}]
    filter = "^matmul/ladder/rung:(wgmma|mma)/"
    rows, _ = ladder(tmp_path, (HOPPER,), faults=faults, filter=filter, code=3 if status == "failed" else 0)
    found = of_device(rows, HOPPER)
    assert found["mma", "bf16"]["status"] == "ok"
    assert found["wgmma", "bf16"]["status"] == status and words in found["wgmma", "bf16"]["reason"]


def test_edges_are_right_or_the_rung_says_what_it_tiles(tmp_path):
    filter = "^matmul/ladder/rung:(naive|tiles|wmma|wgmma)/"
    rows, _ = ladder(tmp_path, (HOPPER,), "--sweep", "size=200:201", filter=filter)
    for row in rows:
        whole = row["rung"] in ("naive", "tiles")
        assert row["status"] == ("ok" if whole else "unsupported"), row
        assert whole or "is no multiple of that" in row["reason"]
    assert {row["shape"] for row in rows} == {"200x200x200", "201x201x201"}


@needs_native_form
def test_a_convolution_has_its_own_rungs(tmp_path):
    # One after the other: what the first has computed, the other takes from it.
    found = []
    for device, rungs in ((HOPPER, ""), (KEPLER, "rung:(naive|tiles|mma)/")):
        folder = tmp_path / device["uuid"]
        folder.mkdir()
        how = ("--profile", "quick", "--seed", "7")  # the same operands
        found.append(of_device(ladder(folder, (device,), *how, filter=f"^convolution/ladder/{rungs}")[0], device))
    hopper, kepler = found
    assert [rung for rung, _ in hopper] == ["naive", "tiles", "mma", "library", "library"]
    assert {row["status"] for row in hopper.values()} == {"ok"}
    assert all(0 < float(row["of_library"]) <= 1 for row in hopper.values())
    assert kepler["mma", "bf16"]["status"] == "unsupported"
    assert "needs compute capability 8.0, and this is 3.5" in kepler["mma", "bf16"]["reason"]
    assert {kepler["naive", "fp32"]["status"], kepler["tiles", "fp32"]["status"]} == {"ok"}


def test_the_host_climbs_as_far_as_it_can(tmp_path):
    rows, findings = ladder(tmp_path, None, "--profile", "quick", filter="^(matmul|convolution)/ladder", where="host")
    assert [row["rung"] for row in rows] == 2 * ["naive", "tiles", "library"]
    assert {row["status"] for row in rows} == {"ok"}
    product, convolution = (f["sentence"] for f in findings if f["code"] == "ladder")
    assert "without blocks that caches hold" in product and "without rows of pixels that stay in caches" in convolution
