"""Writes the tables of a comparison, gap_*.csv, as the program makes them of the four sessions of "gap", and of others
which devices are laid beside each other."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from make_session import columns

OLD, NEW, HOST = "K40m", "H200", "host"

ANSWERS = [
    {
        "part": "gain",
        "tone": "know",
        "sentence": "Between K40m and H200 FP32 products became 15 times as fast and a launch 2.1 times: on the H200 "
        "a kernel has to do 7.1 times the work before launching it is worth it.",
        "evidence": "FP32 products 15 times as fast (95 % 14 to 16): 48.0 TFLOP/s, before 3.20 TFLOP/s, in "
        "matmul/library/size:4096/type:fp32/cache:warm; a launch 2.1 times as fast (95 % 2.0 to 2.2): 2.30 µs, "
        "before 4.83 µs, in launch/null/api:driver/mode:burst",
    },
    {
        "part": "worst",
        "tone": "warning",
        "sentence": "Against the K40m the H200 does worst in launch and wait: 0.91 times as fast.",
    },
]
RATE = {"quantity": "FP32 products", "unit": "TFLOP/s"}
VALUES = [
    RATE | {"device": HOST, "value": 0.9, "case": "matmul/library/size:4096/type:fp32"},
    RATE | {"device": OLD, "value": 3.2, "worst": 1.1, "worst_of": "matmul/library/x:1"},
    RATE | {"device": NEW, "value": 48, "worst": 17, "worst_of": "matmul/library/x:1"},
    {"device": OLD, "quantity": "BF16 products", "unit": "TFLOP/s", "words": "not available: needs compute capability 8.0"},
    {"device": NEW, "quantity": "BF16 products", "unit": "TFLOP/s", "value": 700},
    {"device": OLD, "quantity": "launch call varies between runs", "unit": "share", "value": 0.012, "worst": 0.05}
    | {"worst_of": "upper end of its 95 % interval"},
    {"device": NEW, "quantity": "memory", "unit": "B", "value": 151397597184},
]
CLASSES = [
    {"older": OLD, "newer": NEW, "cases": 4, "slower": 1, "with_ceiling": 2, "below_promise": 1}
    | {"causes": "cuBLAS 13.1.0 against 10.2.3"},
    {"older": OLD, "newer": NEW, "work": "product", "type": "fp32", "class": "large", "cases": 2, "slower": 0}
    | {"with_ceiling": 2, "below_promise": 1, "best_case": "matmul/library/size:4096/type:fp32/cache:warm"}
    | {"best_metric": "tflops", "best_times": 15, "best_lower": 14, "best_upper": 16, "best_per_ceiling": 1.1}
    | {"worst_case": "matmul/library/size:1024/type:fp32/cache:warm", "worst_metric": "tflops", "worst_times": 9},
    {"older": OLD, "newer": NEW, "work": "launch", "cases": 2, "slower": 1, "with_ceiling": 0, "below_promise": 0}
    | {"best_case": "launch/null/api:driver/mode:burst", "best_metric": "per_launch_ns", "best_times": 2.1}
    | {"worst_case": "launch/null/api:driver/mode:idle", "worst_metric": "roundtrip_ns", "worst_times": 0.91},
]
LIMITS = [
    {"device": OLD, "what": "CUDA toolkit", "limit": "last: 11.8", "source": "NVIDIA"},
    {"device": NEW, "what": "CUDA toolkit", "limit": "supported by the newest", "source": "NVIDIA"},
]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def laid_beside(folders: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """Which devices the page compares, the oldest GPU the reference, and ratios of their medians."""
    devices, medians = [], {}
    for folder in folders:
        session = json.loads((folder / "session.json").read_text(encoding="utf-8")).get("session_id", "")
        devices += [{**device, "session_id": session} for device in rows_of(folder / "devices.csv")]
        for row in rows_of(folder / "summary.csv"):
            case = "/".join(part for part in (row["benchmark"], row["params"]) if part)
            key = (row["arm"], row["process_config"], re.sub(r"api:(queue|driver)", "api:own", case), row["metric"])
            if row["status"] == "ok" and row["metric"] and row["p50"] and row.get("impossible") != "true":
                medians.setdefault((session, row["device_id"]), {})[key] = (float(row["p50"]), case, row["direction"])
    devices = [device for device in devices if device["usable"] != "false"]
    devices.sort(key=lambda d: (d["backend"] != "host", d["released"] or "9999-99", d["device_name"]))
    reference = next((d for d in devices if d["backend"] != "host"), devices[0])
    laid = [{"session": d["session_id"], "device_id": d["device_id"]} for d in devices]
    ratios = []
    base = medians.get((reference["session_id"], reference["device_id"]), {})
    for device, ids in zip(devices, laid, strict=True):
        ids["reference"] = str(device is reference).lower()
        own = medians.get((ids["session"], ids["device_id"]), {})
        for (arm, process_config, _, metric), (value, case, direction) in own.items() if device is not reference else ():
            if (key := (arm, process_config, re.sub(r"api:(queue|driver)", "api:own", case), metric)) not in base:
                continue
            times = value / base[key][0] if direction == "higher" else base[key][0] / value
            verdict = "faster" if times > 1.02 else "slower" if times < 1 / 1.02 else "same"
            words = "equal" if verdict == "same" else f"{max(times, 1 / times):.2f}× {verdict}"
            row = {
                "arm": arm,
                "process_config": process_config,
                "case": case,
                "metric": metric,
                "times": times,
                "verdict": verdict,
            }
            ratios.append({"session": ids["session"], "device_id": ids["device_id"], "words": words} | row)
    return {"devices": laid, "ratios": ratios}


def beside(job: str, gpu: str, measured: str, other: str, **more: Any) -> list[dict[str, Any]]:
    """Launches of a recorded GPU of a session beside a measured one of another."""
    of = {"session": job, "device_id": gpu, "measured_session": measured, "measured_device": other}
    of |= {"same_name": "true", "case": "launch/null/api:driver/mode:idle", "metric": "api_record_ns"} | more
    return [
        of | {"arm": "plain", "measured_metric": "api_ns", "times": 1.7},
        of | {"arm": "traced", "measured_metric": "api_record_ns", "times": 2},
        of | {"arm": "traced", "metric": "launch_ns", "measured_metric": "launch_ns", "times": 2},
    ]


def write(folder: Path, folders: list[Path], **others: list[dict[str, Any]]) -> Path:
    """The tables by their names without `gap_`; those of this module, and of the sessions in `folders`, where none is
    given."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = (
        {"answers": ANSWERS, "values": VALUES, "classes": CLASSES, "limits": LIMITS}
        | (laid_beside(folders) if folders else {})
        | others
    )
    for name, rows in tables.items():
        with (folder / f"gap_{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns()[f"gap_{name}.csv"], restval="", extrasaction="raise")
            writer.writeheader()
            writer.writerows(rows)
    return folder
