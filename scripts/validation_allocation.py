"""The questions of a validation about allocations, each with how its files decide it."""

from __future__ import annotations

from validation_result import NO, OPEN, YES, Answer, Result, all_of, number


def blocking(result: Result) -> Answer:
    """What NVIDIA documents: cuMemFree waits for the device, and pools do not."""
    rows = {(r["operation"], r["relation"]): r for r in result.table("allocation.blocking")}
    if not rows:
        return OPEN, "no calls"
    waiting = sorted({operation for (operation, _), r in rows.items() if r["verdict"] != "no_wait"})
    # Work on another GPU need not be waited for.
    expected = [
        r["verdict"] == "waits_for_device"
        for (operation, relation), r in rows.items()
        if operation == "release_direct" and relation != "other_device"
    ]
    expected += [r["verdict"] == "no_wait" for (operation, _), r in rows.items() if operation == "allocate_pool"]
    figure = f"{len(rows)} calls; not `no_wait`: {', '.join(waiting) or 'none'}"
    return (YES if expected and all(expected) else NO), figure


def medians(result: Result, benchmark: str, metric: str, axis: str, also: str = "") -> dict[str, float]:
    """By the value of an axis; of several cases the last."""
    return figures("p50", result, benchmark, metric, axis, also)


def figures(column: str, result: Result, benchmark: str, metric: str, axis: str, also: str = "") -> dict[str, float]:
    found = {}
    for row in result.rows("allocation", benchmark=f"allocation/{benchmark}", metric=metric):
        pairs = row["params"].split("/")
        value, figure = dict(part.split(":", 1) for part in pairs).get(axis), number(row[column])
        if value and figure is not None and set(filter(None, also.split("/"))) <= set(pairs):
            found[value] = figure
    return found


def mapping(result: Result) -> Answer:
    by_chunk = medians(result, "growth", "map_ns_per_mib", "chunk_mib")
    if len(by_chunk) < 2:
        return OPEN, "no two chunk sizes"
    figure = ", ".join(f"{chunk} MiB: {ns / 1000:.1f} us for each MiB" for chunk, ns in by_chunk.items())
    return (YES if by_chunk["20"] < by_chunk["2"] else NO), figure


def threshold(result: Result) -> Answer:
    # Of means: a pool grows by more than one block, so that some calls cost all, and the median may be one that does not.
    by_pool = figures("mean", result, "order", "call_ns", "allocator", "order:hold/bytes:16777216")
    if not {"pool", "pool_t0"} <= by_pool.keys():
        return OPEN, "no pools"
    ratio = by_pool["pool_t0"] / by_pool["pool"]
    return (YES if ratio > 1.5 else NO), f"{ratio:.1f} x with threshold 0, 16 MiB"


def first_touch(result: Result) -> Answer:
    by_allocator = medians(result, "touch", "first_over_second_touch", "allocator", "bytes:67108864")
    if not by_allocator:
        return OPEN, "nothing was written"
    figure = ", ".join(f"{name} {ratio:.2f}" for name, ratio in by_allocator.items())
    return (YES if "direct" in by_allocator else OPEN), figure


def kept(result: Result) -> Answer:
    rows = [r for r in result.table("allocation.runs") if number(r.get("memory_kept_bytes")) is not None]
    # What is free is of the device, and not of the process.
    if any(number(r.get("other_processes")) for r in rows):
        return OPEN, "other processes used the GPU meanwhile, and may have taken or given back memory"
    return all_of(
        rows,
        lambda r: float(r["memory_kept_bytes"]) <= 64 << 20,
        lambda r: f"{float(r['memory_kept_bytes']) / 2**20:.0f} MiB, most by {r['memory_kept_by'] or 'no case'}",
        "runs gave all but 64 MiB back",
    )


QUESTIONS = [
    ("40", "cuMemFree waits for the device, and pools do not", blocking),
    ("41", "Mapping 20 MiB at once costs less for each MiB than mapping 2 MiB", mapping),
    ("42", "A pool that keeps nothing costs more than one that keeps all", threshold),
    ("43", "What the first use of a GPU's memory costs beside the second, in times", first_touch),
    ("44", "Allocation cases give their memory back", kept),
]
