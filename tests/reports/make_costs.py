"""Adds the cases of what makes a launch cost to a synthetic session, and the tables about them."""

from __future__ import annotations

from typing import Any

from make_session import Builder, Spec, finding

NO_RUNTIME = "the runtime plugin was not built: no nvcc"
METHODS = {"stream": 2500.0, "graph": 1300.0, "cooperative": 1250.0, "persistent": 1100.0}
ADVICE = [
    (
        "launch/graph",
        "act",
        "Use a graph from 4 kernels on (one after another): at 64 kernels the time per kernel is 0.41 "
        "times that of launching them one by one.",
        "per_launch_ns: 1.50 µs (mode:replay) against 2.00 µs (mode:single), 0.75 times (95 % 0.74 "
        "to 0.76), 10 runs of each; per_launch_ns: 820 ns (mode:replay) against 2.00 µs "
        "(mode:single), 0.41 times (95 % 0.40 to 0.42), 10 runs of each",
    ),
    (
        "launch/queue",
        "note",
        "Keep fewer than 1022 launches in flight where a call must not wait: that many are taken "
        "ahead of the device, and the next waits until there is room, here 51.0 µs behind a kernel "
        "of 20 ms.",
        "queue_depth 1022, 10 runs",
    ),
    (
        "launch/api",
        "fine",
        "Launching with cudaLaunchKernelExC costs nothing that can be told from noise here: the "
        "time in the call with cudaLaunchKernelExC is 0.99 to 1.01 times that with the driver API.",
        "api_ns: 2.31 µs (api:runtime) against 2.31 µs (api:driver), 1.00 times (95 % 0.99 to 1.01), 10 runs of each",
    ),
]


def add_costs(builder: Builder) -> Builder:
    builder.tables.update({name: [] for name in ("published.csv", "fit.csv")})
    for spec in builder.specs:
        if spec.usable and not spec.fault:
            _Cases(builder, spec).add()
    return builder


class _Cases:
    """The cases of one device."""

    def __init__(self, builder: Builder, spec: Spec) -> None:
        self.builder, self.spec = builder, spec
        self.gpu = spec.backend == "cuda"
        self.call, self.trip = spec.call, spec.trip

    def case(self, name: str, metric: str, value: float, unit: str = "ns", process_config: str = "") -> None:
        self.builder._case(self.spec, *_split(name), metric, value, 30, unit=unit, process_config=process_config)

    def add(self) -> None:
        self._everywhere()
        if self.gpu:
            self._launches()
            self._graphs()
            self._others()
        else:
            for name in ("launch/graph/shape:line/nodes:64/mode:replay", "launch/priority"):
                reason = "the host device has no graphs and no priorities"
                self.builder._blank(self.spec, *_split(name), "unsupported", reason)
            self._library_code()
        self._shapes()
        self._tables()

    def _everywhere(self) -> None:
        for n in (1, 2, 4, 8, 16):
            own = self.call * (0.35 + 0.65 / n)
            self.case(f"launch/threads/threads:{n}/streams:own", "threads_per_launch_ns", own)
            shared = self.call * (1 + 0.08 * (n - 1))
            self.case(f"launch/threads/threads:{n}/streams:shared", "threads_per_launch_ns", shared)
        for pause, slower in ((0, 1), (1, 1.02), (10, 1.7), (100, 2.4), (1000, 4.1), (2000, 4.2)):
            name = f"launch/after_idle/idle_ms:{pause}"
            self.case(name, "roundtrip_ns", self.trip * slower)
            self.case(name, "api_ns", self.call * (1 + (slower - 1) / 3))
        self.case("launch/queue", "queue_depth", 1022, unit="1")
        for ops in (8, 64, 512, 4096):
            for mode, factor in (("eager", 1), ("eager_alloc", 40), ("eager_pool", 1.3)):
                name = f"launch/chain/mode:{mode}/ops:{ops}/gap_us:0"
                self.case(name, "per_op_ns", self.call * factor * (1 + 2 / ops))
        for gap in (0, 5, 10, 20):
            for mode, share in (("eager", 0.1 + gap / 25), ("graph", 0.02)):
                if self.gpu or mode == "eager":
                    name = f"launch/chain/mode:{mode}/ops:4096/gap_us:{gap}"
                    self.case(name, "idle_share", share, unit="1")

    def _library_code(self) -> None:
        for family, of, code, rate in (
            ("matmul", "size:1024", "prescott", 0.065),
            ("matmul", "size:1024", "nehalem", 0.049),
            ("matmul", "size:1024", "skylakex", 0.3),
            ("convolution", "layer:conv4_3x3/n:1", "sse41", 0.066),
            ("convolution", "layer:conv4_3x3/n:1", "avx2", 0.17),
        ):
            self.case(f"{family}/code/code:{code}/{of}", "tflops", rate, "TFLOP/s", f"{family}+code={code}")

    def _shapes(self) -> None:
        library = "cublas" if self.gpu else "openblas"
        fast = 400.0 if self.gpu else 0.2
        for m, shape in ((4096, "4096x4096x4096"), (16, "16x4096x4096")):
            rate = fast * min(1, m / 512)
            name = f"matmul/shapes/shape:{shape}/type:fp32/library:{library}"
            self.case(name, "tflops", rate / 8, "TFLOP/s")
        for layout, factor in (("nchw", 0.7), ("nhwc", 1)):
            name = f"convolution/shapes/shape:32x64x56x56-64x3x3-p1/direction:forward/layout:{layout}/type:fp32"
            self.case(name, "tflops", fast * factor / 16, "TFLOP/s")
        if not self.gpu:
            return
        for of, name in (
            ("regret", "matmul/choice/shape:4096x4096x4096/type:bf16"),
            ("first_regret", "matmul/choice/shape:4096x4096x4096/type:bf16"),
            ("regret", "convolution/selection/shape:32x256x14x14-256x3x3-p1/direction:forward/type:fp16"),
            ("find_regret", "convolution/selection/shape:32x256x14x14-256x3x3-p1/direction:forward/type:fp16"),
        ):
            self.case(name, of, 1.3 if of == "regret" else 1.05, "1")

    def _launches(self) -> None:
        for mode, metric, value in (("idle", "api_ns", self.call), ("burst", "per_launch_ns", self.call * 0.9)):
            for api, factor in (("driver", 1), ("chevron", 1.27)):
                self.case(f"launch/api/api:{api}/mode:{mode}", metric, value * factor)
            for size in (0, 16, 256, 1024, 4096, 32760):
                cost = value * (1 + size / 12_000)
                self.case(f"launch/args/bytes:{size}/mode:{mode}", metric, cost)
            self.builder._blank(self.spec, "launch/api", f"api:runtime/mode:{mode}", "unsupported", NO_RUNTIME)
        for blocks in (1, 132, 1056, 2112, 4224):
            name = f"launch/grid/blocks:{blocks}"
            self.case(name, "api_ns", self.call)
            self.case(name, "roundtrip_ns", self.trip + blocks * 0.6)
        for n in (1, 2, 4, 8, 16, 32):
            for kernel, length in (("null", self.call), ("10us", max(self.call, 10_500 / n))):
                for with_, factor in (("nothing", 1), ("default", 1 + n / 8)):
                    name = f"launch/streams/streams:{n}/kernel:{kernel}/with:{with_}"
                    self.case(name, "per_launch_ns", length * factor)

    def _graphs(self) -> None:
        for shape in ("line", "fan"):
            for n in (1, 4, 16, 64, 256, 1024, 4096):
                name = f"launch/graph/shape:{shape}/nodes:{n}/mode:"
                self.case(name + "single", "per_node_ns", self.call)
                self.case(name + "replay", "per_node_ns", self.call * (0.4 + 1.6 / n))
                self.case(name + "make", "capture_ns", 4000 + 900 * n)
                self.case(name + "make", "instantiate_ns", 9000 + 1100 * n)
                self.case(name + "update", "update_ns", 3000 + 400 * n)
        for ops in (8, 64, 512, 4096):
            for mode, factor in (("graph", 0.5), ("graph_update", 1.1), ("graph_recapture", 2.3)):
                name = f"launch/chain/mode:{mode}/ops:{ops}/gap_us:0"
                self.case(name, "per_op_ns", self.call * factor * (1 + 6 / ops))

    def _others(self) -> None:
        for kind, factor in (("plain", 1), ("cooperative", 1.3)):
            name = f"launch/cooperative/launch:{kind}"
            self.case(name, "api_ns", self.call * factor)
            self.case(name, "roundtrip_ns", self.trip * factor)
        for kind, value in (("plain", 5200), ("dependent", 3300)):
            self.case(f"launch/dependent/launch:{kind}", "per_kernel_ns", value)
        for kind, value in (("same", 61_000), ("higher", 14_000)):
            self.case(f"launch/priority/priority:{kind}", "roundtrip_ns", value)
        for by in ("stream", "event"):
            for wait, slower, busy in (("spin", 1, 1), ("yield", 1.1, 0.98), ("block", 3, 0.4)):
                process_config = "launch" if wait == "spin" else f"launch+wait={wait}"
                name = f"launch/wait/wait:{wait}/by:{by}"
                self.case(name, "roundtrip_ns", self.trip * slower, process_config=process_config)
                self.case(name, "cpu_ns", self.trip * busy, process_config=process_config)
        for loading, module in (("lazy", 4e6), ("eager", 9e6), ("jit_cached", 6e6), ("jit_uncached", 180e6)):
            times = {"initialise_ns": 60e6, "context_ns": 140e6, "module_ns": module, "first_call_ns": 9e5}
            for metric, value in (times | {"first_roundtrip_ns": 1e6, "second_roundtrip_ns": self.trip}).items():
                name = f"launch/first/loading:{loading}"
                self.case(name, metric, value, process_config=f"launch+loading={loading}")
        for call, factor in (("kernel", 1), ("matmul", 2.4)):
            self.case(f"launch/library/call:{call}", "api_ns", self.call * factor)
            self.case(f"launch/library/call:{call}", "roundtrip_ns", self.trip * factor)
        for wait, value in (("end", self.call), ("each", self.trip)):
            self.case(f"launch/cscs/wait:{wait}", "wall_per_launch_ns", value)
        for method, base in METHODS.items():
            for kib in (64, 128, 256, 512, 1024):
                name = f"launch/small_kernels/method:{method}/kib:{kib}"
                self.case(name, "per_kernel_ns", base + kib * 1024 / 2000)

    def _tables(self) -> None:
        key: dict[str, Any] = {"session_id": self.builder.session_id, "device_id": self.builder._id(self.spec)}
        tables = self.builder.tables
        for axis, severity, text, evidence in ADVICE:
            line = {"source": "advice", "evidence": evidence, "subject": self.spec.name, "cases": f"{axis}/a:b {axis}/a:c"}
            tables["findings.csv"].append(finding(severity, axis.replace("/", "-"), text, **key, **line))
        if not self.gpu:
            return
        kernels_case, kernels_source = (
            "launch/small_kernels/method:graph/kib:64",
            "te42kyfo/gpu-benches@1c36d50 gpu-small-kernels",
        )
        for quantity, case, ours, gpu, value, same, source in (
            ("launch_throughput", "launch/cscs/wait:end", self.call, "V100", 1830, "false", "cscs"),
            ("launch_throughput", "launch/cscs/wait:end", self.call, "A100", 2700, "false", "cscs"),
            ("launch_sync_roundtrip", "launch/cscs/wait:each", self.trip, "A100", 9650, "false", "cscs"),
            ("small_kernel_graph", kernels_case, 1330, "H200", 1300, "true", kernels_source),
            ("small_kernel_graph", kernels_case, 1330, "A100", 1460, "false", kernels_source),
        ):  # fmt: skip
            line = {"quantity": quantity, "case": case, "metric": "m", "runs": 10, "p50_ns": ours}
            line.update(p50_ci_lo=ours * 0.99, p50_ci_hi=ours * 1.01)
            line.update(run_min=ours * 0.97, run_max=ours * 1.04, published_gpu=gpu)
            line.update(published_ns=value, method="null kernel", host="ault", source=source)
            tables["published.csv"].append({**key, **line, "ratio": ours / value, "same_model": same})
        for method, base in METHODS.items():
            line = {"method": method, "sizes": 5, "runs": 10, "overhead_ns": base}
            line.update(overhead_min=base * 0.98, overhead_max=base * 1.03, bytes_per_ns=2000)
            tables["fit.csv"].append({**key, **line})


def _split(name: str) -> tuple[str, str]:
    parts = name.split("/")
    return "/".join(p for p in parts if ":" not in p), "/".join(p for p in parts if ":" in p)
