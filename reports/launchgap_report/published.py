"""What others have published, beside what was measured here in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from . import sweeps
from .plots import Drawing, Drawn, Group, Table
from .session import Device
from .tables import Record
from .text import MISSING, quantity, significant

QUANTITIES = {
    "launch_throughput": "Launches, one wait at the end (CSCS)",
    "launch_sync_roundtrip": "Launches, a wait after each",
    "superbench_event_time": "Between two events (SuperBench)",
    "small_kernel_stream": "Kernels of 64 KiB, one by one",
    "small_kernel_graph": "Kernels of 64 KiB in a graph",
    "small_kernel_cooperative": "Steps of 64 KiB, cooperative kernel",
    "small_kernel_persistent": "Steps of 64 KiB, persistent kernel",
    "launch_call": "In the call, no arguments",
}


@dataclass
class Beside:
    group: Group
    table: Table


def section(drawing: Drawing) -> Beside | None:
    found: dict[tuple[str, str], list[tuple[int, Record]]] = {}
    for i, device in enumerate(drawing.shown):
        for record in device.session.details.of("published", device.id):
            if (record.get("p50_ns") or 0) > 0 and (record.get("published_ns") or 0) > 0:
                # The case as well: one quantity may be measured in two ways.
                key = (record["quantity"], record["case"])
                found.setdefault(key, []).append((i, record))
    if not found:
        return None
    drawn = [_figure(drawing, key, found[key]) for key in sorted(found, key=_order)]
    lines = [
        _line(drawing.label(drawing.shown[i]), record)
        for key in sorted(found, key=_order)
        for i, record in sorted(found[key], key=lambda f: f[1].flag("same_model") is not True)
    ]
    heads = ["quantity", "device", "published of", "its host", "how", "source"]
    heads += ["here", "runs", "published", "here to it"]
    return Beside(Group("", "", "", drawn), Table("Published values", heads, lines, 6))


def _order(key: tuple[str, str]) -> tuple[int, str]:
    names = list(QUANTITIES)
    return (names.index(key[0]) if key[0] in names else len(names), key[1])


def _figure(drawing: Drawing, key: tuple[str, str], found: list[tuple[int, Record]]) -> Drawn:
    rows: list[sweeps.Beside] = []
    for i in dict.fromkeys(i for i, _ in found):
        ours = next(record for j, record in found if j == i)
        value = ours.get("p50_ns") or 0
        spread = (value, ours.get("run_min"), ours.get("run_max"))
        rows.append(sweeps.Beside(_name(drawing.shown[i]), [spread], i, quantity(value, "ns")))
    theirs: dict[str, list[Record]] = {}
    for _, record in found:
        theirs.setdefault(record["published_gpu"], []).append(record)
    # The same model first, then by value.
    for gpu, records in sorted(theirs.items(), key=lambda item: _rank(item[1])):
        values = sorted({r.get("published_ns") or 0 for r in records})
        same = any(r.flag("same_model") for r in records)
        text = quantity(values[0], "ns")
        if len(values) > 1:
            text = f"{values[0] / 1000:.3g}–{quantity(values[-1], 'ns')}"
        label = f"{gpu}, same model" if same else gpu
        rows.append(sweeps.Beside(label, [(v, None, None) for v in values], None, text))
    caption = QUANTITIES.get(key[0], key[0])
    if key[0] == "launch_sync_roundtrip":
        caption += " (SuperBench)" if "superbench" in key[1] else " (CSCS)"
    said = f"{caption}: " + "; ".join(f"{row.label} {row.text}" for row in rows)
    sources = sorted({record["source"].split(" ")[0] for _, record in found})
    notes = [f"Source: {', '.join(s for s in sources if s)}"] if any(sources) else []
    return Drawn(caption, sweeps.beside(rows, "ns", drawing.id(), said), notes)


def _rank(records: list[Record]) -> tuple[bool, float]:
    same = any(r.flag("same_model") for r in records)
    return (not same, min(r.get("published_ns") or 0 for r in records))


def _name(device: Device) -> str:
    return f"{short_name(device)}, here"


def short_name(device: Device) -> str:
    """`H200 (0)`: fits beside a line."""
    words = [w for w in device.label.split() if w not in ("NVIDIA", "Tesla", "GeForce")]
    index = words.pop() if len(words) > 1 and words[-1].startswith("(") else ""
    return f"{words[0].split('-')[0]} {index}".strip() if words else device.label


def _line(device: str, record: Record) -> list[str]:
    runs, ratio = record.get("runs"), record.get("ratio")
    ours = quantity(record.get("p50_ns"), "ns")
    low, high = record.get("p50_ci_lo"), record.get("p50_ci_hi")
    if low is not None and high is not None:
        ours += f" ({quantity(low, 'ns')} to {quantity(high, 'ns')})"
    same = " (same model)" if record.flag("same_model") else ""
    return [
        QUANTITIES.get(record["quantity"], record["quantity"]),
        device,
        record["published_gpu"] + same,
        record["host"] or MISSING,
        record["method"],
        record["source"],
        ours,
        MISSING if runs is None else f"{runs:.0f}",
        quantity(record.get("published_ns"), "ns"),
        MISSING if ratio is None else f"{significant(ratio, 3)}×",
    ]
