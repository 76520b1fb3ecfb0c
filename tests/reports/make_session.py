"""Builds synthetic sessions: for the tests, and to look at the page while working on it.

`python3 tests/reports/make_session.py DIR` writes one folder per kind below DIR. Everything is
drawn from a seeded generator, so that a kind is the same wherever it is made. The numbers are
plausible and mean nothing.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import make_timelines
import numpy as np

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def described() -> dict[str, Any]:
    """What the program says of its tables: the same as it writes beside them."""
    done = subprocess.run([ROOT / "build" / "bin" / "launchgap-reference"], capture_output=True, check=True)
    return json.loads(done.stdout)


@functools.cache
def columns() -> dict[str, list[str]]:
    return {table["name"]: [c["key"] for c in table["columns"]] for table in described()["tables"]}


# What every session has, and what those of older versions lack.
SESSION_TABLES = ("devices.csv", "runs.csv", "summary.csv", "run_quantiles.csv", "findings.csv", "answers.csv")
DETAIL_TABLES = (
    "headlines.csv sequence.csv telemetry.csv variation.csv outlier_devices.csv observer.csv parts.csv flag_check.csv "
    "kernels.csv traces.csv slow_samples.csv timelines.csv recordings.csv recorded_shares.csv tail.csv ranks.csv "
    "recording_costs.csv published.csv fit.csv check_answers.csv verdicts.csv nights.csv cliffs.csv "
    "interference.csv skew.csv ladder.csv slow_causes.csv run_factors.csv patterns.csv predicted_patterns.csv"
).split()
PROBABILITIES = {"min": 0, "p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p999": 0.999}
PROBABILITIES |= {"max": 1}
SUMMARY_PROBABILITIES = {"min": 0, "q1": 0.25, "p50": 0.5, "q3": 0.75, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1}


def quantiles(values: np.ndarray, probabilities: dict[str, float]) -> dict[str, str]:
    found = np.quantile(values, list(probabilities.values()))
    return {key: f"{value:.10g}" for key, value in zip(probabilities, found, strict=True)}


# Of a name that stands not here the compute capability tells.
RELEASED = {
    "Tesla K40m": "2013-10",
    "Tesla V100-SXM2-16GB": "2017-06",
    "NVIDIA A100-SXM4-80GB": "2020-05",
    "NVIDIA H100 80GB HBM3": "2022-03",
    "NVIDIA H200": "2023-11",
    "NVIDIA B200": "2024-03",
}


def finding(severity: str, code: str, sentence: str, **others: Any) -> dict[str, Any]:
    """A row of findings.csv."""
    row = {"source": "session", "severity": severity, "code": code, "sentence": sentence, "remedy": "Mend it."}
    return {"session_id": "s", **row, **others}


@dataclass
class Spec:
    """A device to pretend: what it is, and how fast."""

    name: str
    backend: str = "cuda"
    capability: str = "9.0"
    usable: bool = True
    reason: str = ""
    simulated: bool = False
    call: float = 2300.0
    trip: float = 6700.0
    burst: float = 2050.0
    jitter: float = 0.012
    tflops: float = 60.0
    memory: int = 141 << 30
    driver: str = "580.65.06"
    libraries: str = "cuBLAS 13.1.0 (/opt/cuda/lib/libcublas.so.13); cuDNN 9.19.0 (/opt/cudnn/lib)"
    fault: str = ""  # hung, launch-failed or no-cudnn
    form: str = "native"
    wait: str = "spin"
    index: int = 0  # in its session, which counts them


H200 = Spec("NVIDIA H200", tflops=52.0)
A100 = Spec("NVIDIA A100-SXM4-80GB", "cuda", "8.0", call=2900, trip=8100, burst=2500, tflops=17.5, memory=80 << 30)
V100 = Spec("Tesla V100-SXM2-16GB", "cuda", "7.0", call=3900, trip=10400, burst=3400, tflops=13.5, memory=16 << 30)
K40M = Spec("Tesla K40m", "cuda", "3.5", call=5200, trip=15200, burst=4700, tflops=3.4, memory=12 << 30, form="portable")
K40M = replace(K40M, driver="470.256.02", libraries="cuBLAS 10.2.3 (/opt/cuda-10.2/lib64/libcublas.so.10)", fault="no-cudnn")
HOST = Spec("host", "host", "", call=900, trip=5200, burst=780, tflops=0.09, memory=64 << 30, form="host", driver="")
HOST = replace(HOST, jitter=0.03, libraries="OpenBLAS 0.3.21 (/usr/lib/libopenblas.so.0); oneDNN 2.6.3 (/usr/lib)")


@dataclass
class Builder:
    """Collects the tables of one session, then writes them."""

    session_id: str
    specs: list[Spec]
    replicates: int = 3
    seed: int = 7
    node: str = "node01"
    cpu: str = "AMD EPYC 9654 96-Core Processor"
    state: str = "complete"
    families: tuple[str, ...] = ("launch", "matmul", "convolution", "allocation")
    traced: bool = False
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Builder:
        self.random = np.random.default_rng(self.seed)
        self.tables = {name: [] for name in SESSION_TABLES}
        self.specs = [replace(spec, index=i) for i, spec in enumerate(self.specs)]
        for spec in self.specs:
            self._device(spec)
        usable = [spec for spec in self.specs if spec.usable]
        plan = [
            (spec, replicate, arm, family)
            for family in self.families
            for replicate in range(self.replicates)
            for spec in usable
            for arm in (("plain", "traced") if self.traced and family == "launch" else ("plain",))
        ]
        self.random.shuffle(plan)
        for order, run in enumerate(plan):
            self._run(order, *run)
        for spec in usable:
            self._cases(spec)
        self.info = self._session()
        return self

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "session.json").write_text(json.dumps(self.info, indent=1), encoding="utf-8")
        made = {"headlines.csv": self._headlines, "answers.csv": self._answers, "findings.csv": self._findings}
        tables = {**self.tables, **{name: self.tables.get(name) or make() for name, make in made.items()}}
        for name in (*SESSION_TABLES, *DETAIL_TABLES):
            if name in DETAIL_TABLES and name not in tables:
                continue
            with (folder / name).open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, columns()[name], restval="", extrasaction="raise")
                writer.writeheader()
                writer.writerows(tables.get(name, []))
        (folder / "tables.json").write_text(json.dumps(described()), encoding="utf-8")
        return folder

    def _headlines(self) -> list[dict[str, Any]]:
        """As the program makes them of the rows of the summary."""
        rows: list[dict[str, Any]] = []
        for row in self.tables["summary.csv"]:
            for entry in described()["benchmarks"]:
                for head in entry["headlines"]:
                    value = row.get("p999" if head["of"] == "one_in_1000" else "p50")
                    fits = row["benchmark"] == entry["key"] and row.get("metric") == head["metric"]
                    if not (fits and value and row["arm"] == "plain" and row["status"] == "ok"):
                        continue
                    if head["params"] not in row["params"] or head["of"] == "best_median":
                        continue
                    if any((r["device_id"], r["heading"]) == (row["device_id"], head["heading"]) for r in rows):
                        continue
                    case = f"{row['benchmark']}/{row['params']}"
                    rows.append(
                        {"session_id": self.session_id, "device_id": row["device_id"], "value": value, "case": case}
                        | {key: head[key] for key in ("place", "heading", "metric")}
                        | {"unit": row["unit"]}
                    )
        return rows

    def _answers(self) -> list[dict[str, Any]]:
        """A line for each device, by its empty launch on an idle stream."""
        rows = []
        for spec in self.specs:
            device = {"session_id": self.session_id, "device_id": self._id(spec)}
            calls = [
                row
                for row in self.tables["summary.csv"]
                if row["device_id"] == device["device_id"] and row.get("metric") == "api_ns" and row["arm"] == "plain"
            ]
            if not spec.usable:
                rows.append({**device, "verdict": "not usable", "tone": "bad", "note": spec.reason})
            elif not calls:
                own = [row for row in self.tables["summary.csv"] if row["device_id"] == device["device_id"]]
                why = next((row["reason"] for row in own if row["status"] != "ok"), "Nothing was measured.")
                rows.append({**device, "verdict": "not measured", "tone": "bad", "note": why})
            else:
                between = calls[0].get("between_run_cv") or ""
                unstable = between and float(between) > 0.1
                verdict, tone = ("unstable", "warning") if unstable else ("steady", "ok")
                sentence = f"A launch call takes {spec.call:.0f} ns (p50)."
                rows.append(
                    {**device, "verdict": verdict, "tone": tone, "sentence": sentence, "runs": calls[0]["runs"]}
                    | {"within_run_cv": calls[0]["within_run_cv"], "between_run_cv": between}
                )
        return rows

    def _findings(self) -> list[dict[str, Any]]:
        """What could not be used or has no result, each reason once, the gravest first."""
        groups: dict[tuple[str, str, str], list[str]] = {}
        for row in self.tables["devices.csv"]:
            if row["usable"] == "false":
                key = ("prevents", "device-unusable", row.get("reason") or "no reason")
                groups.setdefault(key, []).append(row["device_name"])
        for row in self.tables["summary.csv"]:
            if row["status"] != "ok":
                grave = row["status"] in ("failed", "invalid")
                key = ("distorts" if grave else "note", f"case-{row['status']}", row.get("reason") or "no reason")
                groups.setdefault(key, []).append(f"{row['benchmark']}/{row['params']}: {row['device_name']}")
        order = ("prevents", "distorts", "note")
        return [
            finding(severity, code, reason, session_id=self.session_id, evidence="; ".join(dict.fromkeys(where)))
            for (severity, code, reason), where in sorted(groups.items(), key=lambda group: order.index(group[0][0]))
        ]

    def with_details(self, blocks: int = 5) -> Builder:
        """Adds the tables of a session with a traced arm, telemetry and statistics by level."""
        self.tables.update({name: [] for name in DETAIL_TABLES})
        for row in self.tables["summary.csv"]:
            if row["status"] == "ok":
                row.update(within_run_cv_lo=0.028, within_run_cv_hi=0.032)
        for spec in self.specs:
            if spec.usable and not spec.fault:
                self._details(spec, blocks)
        alike = [spec for spec in self.specs if spec.name == self.specs[0].name]
        if len(alike) > 2:
            case = "launch/null/api:driver/mode:idle"
            key = {"session_id": self.session_id, "arm": "plain", "process_config": "launch", "case": case}
            for metric in ("api_ns", "roundtrip_ns"):
                self.tables["variation.csv"].append(
                    {**key, "scope": alike[0].name, "metric": metric, "level": "devices"}
                    | {"groups": len(alike), "cv": 0.052, "cv_lo": 0.027, "cv_hi": 0.34}
                )
            odd = {**key, "device_id": self._id(alike[1]), "metric": "roundtrip_ns"}
            odd.update(ratio=1.1032, ratio_lo=1.087, ratio_hi=1.1195)
            self.tables["outlier_devices.csv"].append(odd)
        return self

    def _details(self, spec: Spec, blocks: int) -> None:
        gpu = spec.backend == "cuda"
        device = {"session_id": self.session_id, "device_id": self._id(spec)}
        api = "driver" if gpu else "queue"
        idle, burst = (f"launch/null/api:{api}/mode:{mode}" for mode in ("idle", "burst"))
        add = {name: self.tables[name].append for name in DETAIL_TABLES}
        add["flag_check.csv"](
            {**device, "samples": 6000, "before_kernel": 0, "excess_p50_ns": 985} | {"limit_ns": 1308.5, "agrees": "true"}
        )
        late = spec.call * 3
        for quantile, factor, overhead in (("p50", 1, 0), ("p99", 1.4, 0), ("p999", 5, late)):
            for case in (idle, f"launch/flag/api:{api}"):
                add["parts.csv"](
                    {**device, "case": case, "quantile": quantile, "samples": 601}
                    | {"call_ns": spec.call * factor, "queue_ns": 1500.25, "kernel_ns": 1499.5}
                    | {"overhead_ns": overhead}
                )
        for case, metric in ((idle, "api_ns"), (idle, "roundtrip_ns"), (burst, "per_launch_ns")):
            for arm in ("plain", "traced"):
                for level, cv in (("samples", 0.17), ("runs", 0 if metric == "api_ns" else 0.013)):
                    add["variation.csv"](
                        {**device, "scope": device["device_id"], "arm": arm, "process_config": "launch"}
                        | {"case": case, "metric": metric, "level": level, "groups": 6}
                        | {"cv": cv, "cv_lo": cv * 0.6, "cv_hi": max(cv, 0.01) * 2}
                    )
            for level, effect in (("launches", 250.5), ("kernels", -22.5), ("all", 1165.0)):
                add["observer.csv"](
                    {**device, "case": case, "metric": metric, "unit": "ns", "level": level}
                    | {"plain_runs": 6, "traced_runs": 6, "plain": spec.call}
                    | {"traced": spec.call + effect, "effect": effect}
                    | {"effect_lo": effect - 60, "effect_hi": effect + 60}
                )
        for kernel in ("launchgap_gate", "ampere_sgemm_128x64_nn" + "_very_long" * 12):
            add["kernels.csv"](
                {**device, "case": "matmul/library/size:256/type:fp32/cache:warm"}
                | {"kernel": kernel, "grid": "2x2x1", "block": "256x1x1", "count": 100}
                | {"total_ns": 250_000, "mean_ns": 2500, "shortest_ns": 2300, "longest_ns": 2900}
            )
        for replicate in range(self.replicates):
            self._blocks(spec, device, idle, replicate, blocks)
            for process_config in ("launch", "launch+trace_level=kernels"):
                add["traces.csv"](
                    {**device, "process_config": process_config, "replicate": replicate, "case": "", "state": "ok"}
                )
        slow, around = make_timelines.slow_sample({"arm": "traced", "process_config": "launch", "case": idle}, spec.call * 3)
        add["slow_samples.csv"]({**device, **slow})
        for event in around:
            add["timelines.csv"]({**device, **event})

    def _blocks(self, spec: Spec, device: dict, case: str, replicate: int, blocks: int) -> None:
        for block in range(blocks):
            begin = 10**12 + (replicate * 30 + spec.index) * 10**9 + block * 17_000_000
            key = {**device, "arm": "plain", "process_config": "launch", "replicate": replicate}
            key.update(case=case, block=block)
            p50 = round(spec.trip * (1 + 0.01 * self.random.standard_normal()), 1)
            for arm in ("plain", "traced"):
                self.tables["sequence.csv"].append(
                    {**key, "arm": arm, "metric": "roundtrip_ns", "unit": "ns", "n": 2000}
                    | {"begin_ns": begin, "end_ns": begin + 16_000_000}
                    | {"p50": p50 * (2 if arm == "traced" else 1), "p99": p50 * 1.2, "max": p50 * 9}
                )
            values = {"involuntary_switches": int(self.random.integers(0, 5)), "migrations": 0}
            if spec.backend == "cuda":
                values.update(sm_clock_mhz=1980 - 15 * (block % 3), temperature_c=45, power_w=120)
                values.update(clock_reasons=0x4 | 0x20, held_by_power_cap_ns=1_200_000 * block)
            self.tables["telemetry.csv"].append({**key, "at_ns": begin + 16_500_000, **values})

    def _common(self, spec: Spec) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "node": self.node,
            "device_id": self._id(spec),
            "device_name": spec.name,
            "simulated": str(spec.simulated).lower(),
        }

    @staticmethod
    def _id(spec: Spec) -> str:
        return "host" if spec.backend == "host" else f"GPU-{spec.index:08x}"

    def _device(self, spec: Spec) -> None:
        gpu, index = spec.backend == "cuda", spec.index
        row = {**self._common(spec), "backend": spec.backend, "compute_capability": spec.capability, "host_cpu": self.cpu}
        row |= {"released": RELEASED.get(spec.name, "2025-01" if gpu and spec.capability else "")}
        row |= {"release_known": str(spec.name in RELEASED).lower(), "driver_version": spec.driver}
        row |= {"usable": str(spec.usable).lower(), "reason": spec.reason}
        if gpu:
            row |= {"device_index": index, "uuid": f"GPU-{index:08x}-0000-4000-8000-00000000000{index}"}
            row |= {"pci_bus_id": f"00000000:{index + 1:02X}:00.0"}
        if spec.usable:
            row |= {"memory_bytes": spec.memory, "libraries": spec.libraries}
        if gpu and spec.usable:
            row |= {"multiprocessors": 132, "clock_mhz": 1980, "memory_clock_mhz": 3201, "memory_bus_bits": 6144}
            row |= {"l2_bytes": 50 << 20}
        self.tables["devices.csv"].append(row)

    def _run(self, order: int, spec: Spec, replicate: int, arm: str, family: str) -> None:
        row = {
            **self._common(spec),
            "replicate": replicate,
            "arm": arm,
            "process_config": family,
            "attempt": 0,
            "status": "ok",
        }
        if spec.fault == "hung" and replicate == 1:
            row |= {"status": "failed", "reason": "no heartbeat for 120 s in launch/null; the worker was killed"}
        row |= {"begin_utc": f"2026-11-20T{9 + order // 60:02d}:{order % 60:02d}:07Z", "begin_ns": 1_000_000_000 + order}
        row |= {"duration_s": f"{20 + 10 * self.random.random():.2f}", "pid": 4000 + order, "cpus": str(3 + spec.index)}
        row |= {"side_by_side": 1 if family == "launch" else 8, "cases_ok": 3, "cases_failed": 0, "kernel_form": spec.form}
        row |= {"fingerprint": json.dumps({"wait": spec.wait, "device": spec.name})}
        row |= {"jit": {"native": "false", "portable": "true"}.get(spec.form, "")}
        row |= {"records_file": f"records/{self.node}.{spec.index}.r{replicate}.{arm}.{family}.jsonl"}
        self.tables["runs.csv"].append(row)

    def _cases(self, spec: Spec) -> None:
        if spec.fault == "launch-failed":
            for mode in ("idle", "burst"):
                why = "cuLaunchKernelEx: CUDA_ERROR_ECC_UNCORRECTABLE (214)"
                self._blank(spec, "launch/null", f"api:{self._api(spec)}/mode:{mode}", "failed", why)
            return
        of = {"launch": self._launch, "matmul": self._matmul}
        of |= {"convolution": self._convolution, "allocation": self._allocation}
        for family, add in of.items():
            if family in self.families:
                add(spec)

    @staticmethod
    def _api(spec: Spec) -> str:
        return "queue" if spec.backend == "host" else "driver"

    def _launch(self, spec: Spec) -> None:
        host, api = spec.backend == "host", self._api(spec)
        base = (("idle", "api_ns", spec.call), ("idle", "roundtrip_ns", spec.trip), ("burst", "per_launch_ns", spec.burst))
        for arm, cost in (("plain", 1.0), ("traced", 1.6))[: 1 + self.traced]:
            for name, factor in ((api, 1.0), ("runtime", 1.08))[: 2 - host]:
                for mode, metric, ns in base:
                    params = f"api:{name}/mode:{mode}"
                    self._case(spec, "launch/null", params, metric, ns * factor * cost, 4000, stray=0.002, arm=arm)
        if host:
            self._blank(spec, "launch/graph", f"api:{api}/mode:idle", "unsupported", "the host device has no graphs")

    def _matmul(self, spec: Spec) -> None:
        for kind, speed in (("fp32", 1.0), ("fp16", 7.0), ("tf32", 4.0)):
            for size in (256, 512, 1024, 2048, 4096, 8192):
                case = ("matmul/library", f"size:{size}/type:{kind}/cache:warm")
                if kind != "fp32" and spec.backend == "host":
                    self._blank(spec, *case, "unsupported", f"OpenBLAS has no {kind} gemm")
                elif kind == "tf32" and float(spec.capability or 0) < 8:
                    self._blank(spec, *case, "unsupported", "tf32 needs compute capability 8.0")
                else:
                    rate = spec.tflops * speed / (1 + (1400 / size) ** 1.7)
                    self._work(spec, *case, rate, 2 * size**3 / 1e12)

    def _convolution(self, spec: Spec) -> None:
        layers = ("stem_7x7", "res2_1x1", "res2_3x3", "res3_3x3", "res4_3x3", "res5_3x3", "dw_3x3")
        without = "cuDNN was not found: libcudnn.so.9: cannot open shared object file"
        for i, layer in enumerate(layers):
            for kind, speed in (("fp32", 0.6), ("fp16", 3.5)):
                case = ("convolution/library", f"layer:{layer}/n:8/type:{kind}/cache:warm")
                if spec.fault == "no-cudnn":
                    self._blank(spec, *case, "skipped", without)
                elif kind == "fp16" and spec.backend == "host":
                    self._blank(spec, *case, "unsupported", "this CPU has no fp16 convolution in oneDNN")
                else:
                    rate = spec.tflops * speed * (0.25 + 0.12 * i if i < 6 else 0.04)
                    self._work(spec, *case, rate, 0.01)

    def _allocation(self, spec: Spec) -> None:
        for allocator, base, slope in (("direct", 4e4, 0.3), ("mapped", 9e4, 0.2), ("pool", 700, 0.02)):
            for power in (12, 16, 20, 24, 28):
                case = ("allocation/latency", f"allocator:{allocator}/bytes:{1 << power}")
                cost = base * (1 + slope * max(0, power - 20) ** 2)
                for metric, factor in (("call_ns", 1), ("free_ns", 0.7), ("first_touch_ns", 0.2)):
                    if metric != "first_touch_ns" or allocator != "pool":
                        self._case(spec, *case, metric, cost * factor, 400, stray=0.01)

    def _work(self, spec: Spec, benchmark: str, params: str, rate: float, work: float) -> None:
        self._case(spec, benchmark, params, "device_ns", work / rate * 1e9, 200)
        self._case(spec, benchmark, params, "tflops", rate, 200, unit="TFLOP/s", direction="higher")

    def _case(
        self,
        spec: Spec,
        benchmark: str,
        params: str,
        metric: str,
        base: float,
        n: int,
        *,
        unit: str = "ns",
        direction: str = "lower",
        stray: float = 0.0,
        **row: str,  # its arm and its process_config
    ) -> None:
        common = self._row(spec, benchmark, params, **row) | {"metric": metric, "unit": unit}
        key = {k: common[k] for k in ("session_id", "device_id", "arm", "process_config", "metric", "unit")}
        runs = []
        for replicate in range(self.replicates):
            if spec.fault == "hung" and replicate == 1:
                continue
            shift = math.exp(spec.jitter * self.random.standard_normal())
            values = base * shift * np.exp(0.03 * np.abs(self.random.standard_normal(n)))
            if stray:
                late = self.random.random(n) < stray
                values[late] *= 1 + 2 * self.random.pareto(1.2, late.sum())
            if direction == "higher":
                values = base * base / values
            values = np.round(values) if unit == "ns" else values
            runs.append(values)
            case = {"case": f"{benchmark}/{params}".rstrip("/"), "replicate": replicate, "n": n}
            self.tables["run_quantiles.csv"].append(key | case | quantiles(values, PROBABILITIES))
        everything = np.concatenate(runs)
        medians = np.array([np.median(r) for r in runs])
        median = float(np.median(everything))
        found = {"n": len(everything), "mean": f"{everything.mean():.10g}", "sd": f"{everything.std(ddof=1):.10g}"}
        found |= quantiles(everything, SUMMARY_PROBABILITIES) | ({"p999": ""} if len(everything) < 1000 else {})
        found |= {"mad": f"{np.median(np.abs(everything - median)):.10g}"}
        if median:
            found |= {"within_run_cv": f"{runs[0].std(ddof=1) / median:.6g}"}
            found |= {"run_median_range": f"{np.ptp(medians) / np.median(medians):.6g}"}
        if len(runs) > 1:
            found |= {"between_run_cv": f"{medians.std(ddof=1) / median:.6g}" if median else "", "icc": "0.31"}
        if len(runs) >= 6:
            found |= {"p50_ci_lo": f"{medians.min():.10g}", "p50_ci_hi": f"{medians.max():.10g}"}
        clock = "host clock" if common["process_config"] in ("launch", "allocation") else "device events"
        found |= {"lag1": "0.02", "modes": 1, "outlier_share": f"{stray:g}", "source": clock}
        self.tables["summary.csv"].append({**common, "direction": direction, "status": "ok", "runs": len(runs)} | found)

    def _blank(self, spec: Spec, benchmark: str, params: str, status: str, reason: str, **row: str) -> None:
        self.tables["summary.csv"].append({**self._row(spec, benchmark, params, **row), "status": status, "reason": reason})

    def _row(self, spec: Spec, benchmark: str, params: str, arm: str = "plain", process_config: str = "") -> dict[str, Any]:
        device = {**self._common(spec), "backend": spec.backend, "compute_capability": spec.capability}
        process_config = process_config or benchmark.partition("/")[0]
        return device | {"arm": arm, "process_config": process_config, "benchmark": benchmark, "params": params}

    def _session(self) -> dict[str, Any]:
        begun = {"begin_utc": "2026-11-20T09:30:00Z", "end_utc": "2026-11-20T09:52:41Z", "state": self.state}
        asked = {"command_line": ["launchgap", "run", "--profile", "quick"], "seed": 20261120, "profile": "quick"}
        host = {"node": self.node, "os": "Debian GNU/Linux 12", "kernel": "6.1.0-40-amd64", "cpu_model": self.cpu}
        host |= {"cores": 96, "memory_bytes": 1 << 40, "governor": "performance", "numa_nodes": 2}
        build = {"type": "Release", "compiler": "GNU 12.2.0", "git": "abc1234"}
        note = {"severity": "warning", "text": "persistence mode is off: a fresh process waits for the driver"}
        took = [
            {
                "device_id": self._id(s),
                "first_ms": 812.4 + s.index,
                "again_ms": 203.1,
                "with_keeper_ms": 141.9,
                "keeper": True,
            }
            for s in self.specs
            if s.backend == "cuda" and s.usable
        ]
        return {
            "schema": "launchgap/1", "record": "session", "session_id": self.session_id, **begun, **asked,
            "runs": self.replicates, "launchgap_version": "0.1.0", "build": build, "host": host,
            "devices": self.tables["devices.csv"], "notes": [note], "initialisation": took,
        }  # fmt: skip


def one_gpu(replicates: int = 1) -> Builder:
    return Builder("s", [Spec("NVIDIA H200")], replicates, families=("launch",)).build()


def host_only() -> Builder:
    return Builder("20261120T093000Z-0057aa", [HOST], cpu="Intel Xeon Gold 6342").build()


def eight_gpus(replicates: int = 3, traced: bool = False) -> Builder:
    """Eight GPUs and the host: one cannot be opened, one hangs, one fails, one has no cuDNN."""
    closed = "cuCtxCreate: CUDA_ERROR_SYSTEM_NOT_READY (802); is the fabric manager running?"
    specs = [
        H200,
        replace(H200, call=2360, jitter=0.02),
        Spec("NVIDIA H100 80GB HBM3", usable=False, reason=closed),
        replace(H200, fault="hung"),
        replace(H200, fault="launch-failed"),
        replace(A100, jitter=0.16),
        replace(V100, fault="no-cudnn"),
        K40M,
        HOST,
    ]
    return Builder("20261120T093000Z-8badf0", specs, replicates, traced=traced, node="dgx-07").build()


def traced() -> Builder:
    """Four GPUs of one name, one of them slower, and the host, with everything that is traced."""
    specs = [H200, replace(H200, trip=7400), H200, H200, HOST]
    builder = Builder("20261120T093000Z-7ace00", specs, 6, traced=True, node="dgx-08")
    return builder.build().with_details()


def costs(replicates: int = 5) -> Builder:
    """Two GPUs and the host, with the cases of what makes a launch cost."""
    from make_costs import add_costs

    specs = [Spec("NVIDIA H200"), replace(A100, tflops=60, memory=141 << 30), HOST]
    return add_costs(Builder("20261120T093000Z-c0575a", specs, replicates, families=("launch",)).build())


def checked() -> Builder:
    """A GPU and the host, checked against a history: each verdict once."""
    import make_nights

    builder = Builder("20261120T093000Z-c4ec4e", [Spec("NVIDIA H200"), HOST], 3, families=("launch",)).build()
    builder.with_details()
    verdicts = "slower suspect invalid no-baseline unstable watch faster same".split()
    for i, verdict in enumerate(verdicts):
        key = {"arm": "plain", "process_config": "launch", "case": f"launch/grid/blocks:{i}", "metric": "api_ns"}
        key |= {"session_id": builder.session_id, "device_id": builder._id(builder.specs[0])}
        row, nights = make_nights.checked(key, verdict, nights=120, seed=i)
        builder.tables["verdicts.csv"].append(row)
        builder.tables["nights.csv"] += nights
    builder.tables["check_answers.csv"] = make_nights.answers(builder.session_id, "bad")
    return builder


def recorded() -> Builder:
    """What somebody else recorded of a job with four processes."""
    from make_recorded import recorded as make

    return make()


def simulated() -> Builder:
    return Builder("20261120T093000Z-fa4e00", [Spec("NVIDIA H100 80GB HBM3", simulated=True)], node="fake-node").build()


HOSTILE = "<script>alert(1)</script>, \"$x^2$\"\r\n\u202eevil\u202c 'µ' & \x1b[31m\x00 中文"


def hostile() -> Builder:
    """Every string that can come from outside is as bad as it gets."""
    bad = HOSTILE.replace("\x00", "")  # a NUL cannot stand in a CSV file that Python reads
    spec = Spec(bad, reason=bad, driver=bad, libraries=f"{bad} 1.0 ({bad}); {bad}")
    builder = Builder(
        "</style><img src=x onerror=alert(2)>", [spec, Spec(bad, usable=False, reason=bad)], node=bad, cpu=bad
    ).build()
    for name, column in (("summary.csv", "params"), ("run_quantiles.csv", "case")):
        for row in builder.tables[name]:
            row[column] = row[column].replace("stem_7x7", "$\\frac{</text><script>}$").replace("fp16", "</svg>\x07&\u202e")
    for row in builder.tables["summary.csv"]:
        row["source"] = bad
    builder.tables["summary.csv"].append(
        {**builder.tables["summary.csv"][0], "benchmark": bad, "status": "failed", "reason": bad}
    )
    for row in builder.tables["runs.csv"]:
        row |= {"reason": bad, "status": "failed", "measured_under_tool": bad, "other_processes": 2, "steady": "false"}
    builder.with_details()
    import make_nights

    key = {"session_id": builder.session_id, "device_id": builder._id(builder.specs[0])}
    key |= {"arm": "plain", "process_config": bad, "case": bad}
    found, nights = make_nights.checked({**key, "metric": bad}, "slower", nights=30)
    hostile_night = dict.fromkeys(("night", "begin_utc", "verdict", "changed", "invalid"), bad)
    builder.tables["verdicts.csv"] = [found | {"reason": bad, "changed": bad, "steadiness": bad, "steadiness_reason": bad}]
    builder.tables["nights.csv"] = [night | hostile_night for night in nights]
    builder.tables["check_answers.csv"] = [
        row | {"sentence": bad, "tone": bad} for row in make_nights.answers(builder.session_id, "bad")
    ]
    builder.tables["answers.csv"] = [
        row | dict.fromkeys(("verdict", "note", "sentence", "kind"), bad) for row in builder._answers()
    ]
    others = dict.fromkeys(("source", "subject", "evidence", "remedy", "unknown", "effects", "cases"), bad)
    builder.tables["findings.csv"] = [finding(level, bad, bad, **others) for level in ("prevents", "act", "note", bad)]
    for name in DETAIL_TABLES:
        for row in builder.tables[name]:
            keys = {"kernel", "grid", "block", "level", "row", "name", "telemetry", "events"} & row.keys()
            if name == "slow_samples.csv":
                keys -= {"block"}  # a number there
            row.update(dict.fromkeys(keys, bad))
    for state in ("invalid:dropped", "degraded:subscriber_busy(<b>x</b>)", bad):
        builder.tables["traces.csv"].append(
            {**builder.tables["traces.csv"][0], "process_config": bad, "state": state, "reason": bad} | {"case": bad}
        )
    for row in list(builder.tables["traces.csv"]):
        builder.tables["traces.csv"].append({**row, "doubtful": "true", "faults": bad})
    builder.info["notes"] = [
        {"severity": "javascript:alert(1)", "text": HOSTILE},
        {"severity": '"><b>', "text": "\ud800 lone surrogate"},
    ]
    builder.info["command_line"] = ["launchgap", HOSTILE, "</code><script>"]
    builder.info["profile"] = HOSTILE
    return builder


def killed() -> Builder:
    """A session that was killed while its first device was measured."""
    builder = Builder(
        "20261120T093000Z-deadbe", [Spec("NVIDIA H200"), HOST], 2, families=("launch",), state="running"
    ).build()
    tables = builder.tables
    for name in ("summary.csv", "run_quantiles.csv"):
        gpus = [row for row in tables[name] if row["device_id"] != "host" and row["metric"] != "per_launch_ns"]
        tables[name] = [row for row in gpus if row.get("replicate", 0) == 0]
    for row in tables["summary.csv"]:
        row.update(runs=1, p999="", max="", between_run_cv="", icc="", p50_ci_lo="", p50_ci_hi="", source="")
    for run in tables["runs.csv"]:
        run.update(status="incomplete", reason="", duration_s="", pid="", cpus="", begin_utc="")
    for key in ("end_utc", "build", "seed", "initialisation", "notes", "profile"):
        builder.info.pop(key, None)
    builder.info["host"] = {"node": "node01"}
    return builder


def empty() -> Builder:
    """Killed before anything was known: headers, and almost no session.json."""
    builder = Builder("", []).build()
    builder.info = {"schema": "launchgap/1", "record": "session", "state": "running"}
    return builder


def generations() -> list[Builder]:
    """Four sessions on four nodes, for the generation gap."""
    new = Spec("NVIDIA X900 Prototype", capability="13.0", call=2250, trip=6100, burst=1800, tflops=95, memory=192 << 30)
    parts = [
        ("h200", [H200, HOST], "AMD EPYC 9654"),
        ("k40m", [K40M], "Intel Xeon E5-2680 v3"),
        ("a100", [A100], "AMD EPYC 7742"),
        ("next", [new], "AMD EPYC 9965"),
    ]
    return [
        Builder(f"20261120T093000Z-{name}", specs, cpu=cpu, node=f"node-{name}", seed=i).build()
        for i, (name, specs, cpu) in enumerate(parts)
    ]


MADE = (host_only, eight_gpus, traced, costs, checked, recorded, simulated, hostile, killed, empty)
KINDS = {make.__name__: make for make in MADE}


def main() -> None:
    target = Path(sys.argv[1])
    for name, make in KINDS.items():
        print(make().write(target / name))
    for builder in generations():
        print(builder.write(target / builder.session_id.rpartition("-")[2]))
    print(eight_gpus(10, traced=True).with_details(40).write(target / "large"))


if __name__ == "__main__":
    main()
