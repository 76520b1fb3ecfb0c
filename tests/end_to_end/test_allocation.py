"""The allocation family over fake GPUs and the host: every allocator works, and what waits for the device is told."""

import html
import os
import re

import pytest
from shipped import NODES, launchgap, table

HARSH = NODES / "harsh_gpu.json"


def family(run, pattern, *options, devices="gpu", node=HARSH, profile="nightly"):
    _, session = run(f"^allocation/{pattern}", "--profile", profile, *options, devices=devices, node=node)
    return session


def values(session, metric):
    return {
        (row["benchmark"].split("/")[1], row["params"]): float(row["p50"])
        for row in table(session / "summary.csv")
        if row["metric"] == metric and row["status"] == "ok"
    }


def test_every_allocator_of_a_gpu_works(run):
    session = family(run, "(latency/.*bytes:65536$|touch/.*bytes:1048576$|growth|order/.*order:(hold|random)/bytes:65536$)")
    rows = table(session / "summary.csv")
    assert {row["status"] for row in rows} == {"ok"}
    latency = {row["params"].split("/")[0].split(":")[1] for row in rows if row["benchmark"] == "allocation/latency"}
    assert latency == {
        *("direct", "pool", "pool_t0", "pool_own", "vmm", "vmm_expand", "host_pinned", "host_register", "managed"),
        *("bfc", "bfc_growth", "bfc_growth_gc", "bfc_vmm", "caching", "caching_expandable"),
    }
    assert {run["status"] for run in table(session / "runs.csv")} == {"ok"}


def test_a_gpu_without_pools_and_virtual_memory_says_so(run):
    session = family(
        run, "(latency/.*bytes:65536$|growth|blocking.*(map|direct)/)", node=NODES / "mixed_8_gpus.json", devices="0"
    )
    found = {(row["benchmark"], row["params"].split("/")[0]): row for row in table(session / "summary.csv")}
    for allocator, reason in (
        ("pool_t0", "pools"),
        ("vmm", "virtual memory"),
        ("bfc_vmm", "virtual memory"),
        ("managed", "managed"),
    ):
        row = found["allocation/latency", f"allocator:{allocator}"]
        assert row["status"] == "unsupported" and reason in row["reason"], row
    assert found["allocation/growth", "chunk_mib:2"]["status"] == "unsupported"
    for allocator in ("direct", "host_pinned", "bfc", "caching"):
        assert found["allocation/latency", f"allocator:{allocator}"]["status"] == "ok"


@pytest.mark.compares_times
def test_what_waits_for_the_device_is_told(run, export):
    """As documented: cuMemFree waits, and holds up who launches; cuMemAlloc and pools do not wait."""
    session = family(run, "blocking/operation:(.*_(direct|pool|pool_t0)|map|unmap)/relation")
    rows = {(row["operation"], row["relation"]): row for row in table(export(session) / "blocking.csv")}
    assert len(rows) == 8 * 3
    for (operation, _), row in rows.items():
        expected = "waits_for_device" if operation == "release_direct" else "no_wait"
        assert row["verdict"] == expected, row
    torn = rows["release_direct", "other_stream"]
    assert float(torn["launch_gap_ns"]) > 10e6 > float(torn["quiet_gap_ns"])


@pytest.mark.compares_times
@pytest.mark.parametrize("waits", [False, True])
def test_what_waits_for_another_gpu_is_told(run, export, make_node, tmp_path, waits):
    node = make_node(devices=2, frees_wait_for_all=waits)
    session = family(run, "blocking/operation:.*_(direct|pool)/relation:other_device", node=node)
    rows = table(export(session) / "blocking.csv")
    assert len(rows) == 2 * 4  # of each GPU
    for row in rows:
        expected = "waits_for_device" if waits and row["operation"] == "release_direct" else "no_wait"
        assert (row["relation"], row["verdict"]) == ("other_device", expected), row
    process_configs = {row["process_config"] for row in table(session / "summary.csv")}
    assert process_configs == {"allocation+gpus=2"}
    answers, lines = blocking_section(session, tmp_path)
    assert answers == 2 * [f"{'release direct' if waits else 'no call'} waits for another GPU"]
    verdicts = {line[1]: line[2] for line in lines}
    assert verdicts == {
        "allocate direct": "no",
        "allocate pool": "no",
        "release direct": "waits" if waits else "no",
        "release pool": "no",
    }


def test_a_session_of_one_gpu_has_no_cases_for_two(run):
    cases = "^allocation/blocking/.*other_device"
    done, _ = run(cases, "--profile", "nightly", runs=None, code=2, node=NODES / "one_a100.json")
    assert "no case passes" in done.stderr


def blocking_section(session, folder):
    """What the page answers of each device, without its name, and the lines of its table."""
    page = folder / "page.html"
    launchgap("report", session, "-o", page, code=0)
    text = page.read_text(encoding="utf-8")
    part = text[text.index('<section id="blocking">') :]
    part = part[: part.index("</section>")]
    answers = [html.unescape(line) for line in re.findall(r"\(\d\): (.*?)\.</", part)]
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)
    ]
    return answers, [[re.sub("<.*?>", "", cell).strip() for cell in row] for row in rows[1:]]


def test_memory_that_a_case_keeps_is_told(run, make_node):
    session = family(run, "(latency/allocator:(direct|vmm)|growth)", node=make_node())
    (run_row,) = table(session / "runs.csv")
    assert (run_row["memory_kept_bytes"], run_row["memory_kept_by"]) == ("0", "")


def test_the_case_that_keeps_memory_is_named(run, make_node):
    """From some call on, what is mapped cannot be unmapped."""
    node = make_node(faults=[{"device": 0, "library": "cuda", "call": "cuMemUnmap", "after": 30, "code": 1}])
    _, session = run(
        "^allocation/latency/allocator:(direct|vmm)/bytes:(65536|16777216)$", "--profile", "nightly", code=3, node=node
    )
    (run_row,) = table(session / "runs.csv")
    assert int(run_row["memory_kept_bytes"]) >= 2 << 20
    assert "allocator:vmm" in run_row["memory_kept_by"]


def test_each_process_has_one_first_allocation(run):
    session = family(run, "first/allocator:(direct|pool|bfc)$")
    first = values(session, "first_allocation_ns")
    assert len(first) == 3 and len(values(session, "second_allocation_ns")) == 3
    assert {run["process_config"] for run in table(session / "runs.csv")} == {
        f"allocation+allocator={n}" for n in ("direct", "pool", "bfc")
    }


def test_threads_allocate_at_once(run):
    session = family(run, "contention/allocator:(direct|pool|bfc)/threads:1/")
    assert not values(session, "slowest_over_fastest"), "one thread is neither fair nor unfair"
    calls = {row["params"]: int(row["n"]) for row in table(session / "summary.csv") if row["metric"] == "call_ns"}
    assert set(calls.values()) == {4 * 256} and len(calls) == 5  # pools on 1, 4 and 32 streams


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU for each of two threads")
def test_the_slowest_thread_is_never_left_alone(run):
    session = family(run, "contention/allocator:(direct|bfc)/threads:2/", devices="host", node=None)
    rows = {row["metric"]: row for row in table(session / "summary.csv") if "direct" in row["params"]}
    assert int(rows["call_ns"]["n"]) == 4 * 256 and int(rows["slowest_over_fastest"]["n"]) == 4
    assert float(rows["slowest_over_fastest"]["p50"]) >= 1


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a CPU for each of two threads")
def test_a_thread_that_cannot_use_the_gpu_keeps_no_other_allocating(run, make_node):
    """The others go on until all have made their calls, which it never does."""
    node = make_node(faults=[{"library": "cuda", "call": "cuCtxSetCurrent", "after": 1, "times": 1, "code": 201}])
    _, session = run(
        *("^allocation/contention/allocator:direct/threads:2/", "--profile", "nightly", "--timeout", 20), code=3, node=node
    )
    [(status, reason)] = {(row["status"], row["reason"]) for row in table(session / "summary.csv")}
    assert status == "failed" and "cuCtxSetCurrent failed with CUDA_ERROR_INVALID_CONTEXT" in reason


@pytest.mark.compares_times
def test_pinned_memory_costs_no_more_the_first_time(run):
    """It is there already, and the CPU's caches are as full of other memory the second time as the first: left alone
    they make the second write of 1 MiB up to four times as fast. A GPU's fills do not pass through them."""
    session = family(run, "touch/allocator:(host_pinned|direct)/bytes:1048576$")
    ratios = values(session, "first_over_second_touch")
    pinned = "allocator:host_pinned/bytes:1048576"
    methods = {row["params"]: row["method"] for row in table(session / "summary.csv")}
    if "too large to be filled" in methods[pinned]:
        assert not ratios
        pytest.skip("this CPU's caches are too large to be filled between the two")
    assert {params for _, params in ratios} == {pinned}, "of a GPU's 1 MiB the launch is most"
    assert 0.7 < ratios["touch", pinned] < 1.5
    assert "caches were filled" in methods[pinned]


def test_the_host_has_them_too(run):
    session = family(
        run,
        "(latency/.*bytes:65536$|growth|order/.*order:fifo/bytes:65536$|contention.*threads:1/)",
        devices="host",
        node=None,
    )
    assert {row["status"] for row in table(session / "summary.csv")} == {"ok"}
