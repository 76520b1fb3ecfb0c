"""Sessions as `launchgap run` leaves them, written by hand: nights of a GPU that nobody here has."""

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path

GPU = "GPU-11111111-2222-3333-4444-555555555555"
OTHER_GPU = "GPU-99999999-2222-3333-4444-555555555555"
IDLE = "launch/null/api:driver/mode:idle"
BURST = "launch/null/api:driver/mode:burst"
FIRST_NIGHT = datetime.datetime(2026, 3, 1, 3, 0, 0, tzinfo=datetime.timezone.utc)
FINGERPRINT = {
    "launchgap": "0.1.0", "device": "NVIDIA H100", "backend": "cuda", "driver_version": "12.8", "profile": "nightly",
    "CUDA driver": "12.8", "NVML": "12.570.12", "driver": "570.12", "environment": {}, "kernel": "6.1.0",
}  # fmt: skip
NEW_DRIVER = {"driver_version": "12.9", "CUDA driver": "12.9", "NVML": "12.575.08", "driver": "575.08"}


@dataclass
class Session:
    """What a session measured: per case and metric the median of each process, in the metric's unit."""

    night: float = 0  # days after the first one
    medians: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    spread: float = 0.01  # of a process's samples around their median
    device: str = GPU
    fingerprint: dict[str, object] = field(default_factory=dict)
    run: dict[str, object] = field(default_factory=dict)  # further fields of the record `run`
    end: dict[str, object] = field(default_factory=dict)
    telemetry: dict[str, list[float]] = field(default_factory=dict)  # before the first block, and after it
    status: dict[str, tuple[str, str]] = field(default_factory=dict)  # by case, where it is not ok
    algorithms: dict[str, list[str]] = field(default_factory=dict)  # by case, of each process
    simulated: bool = False
    name: str = ""
    samples: int = 40
    tail: float = 1  # how many times the median the two largest samples of a process are

    @property
    def session_id(self) -> str:
        return self.name or f"night-{self.night:g}"

    @property
    def begin_utc(self) -> str:
        return (FIRST_NIGHT + datetime.timedelta(days=self.night)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def write(self, folder: Path) -> Path:
        """Into a folder of its own below `folder`."""
        path = folder / self.session_id
        (path / "records").mkdir(parents=True)
        device = {"uuid": self.device, "name": "NVIDIA H100", "backend": "cuda", "index": 0, "usable": True}
        device |= {"simulated": self.simulated, "reason": ""}
        head = {"schema": "launchgap/1", "record": "session", "session_id": self.session_id, "state": "complete"}
        (path / "session.json").write_text(json.dumps(head | {"host": {"node": "n1"}, "devices": [device]}))
        processes = max((len(m) for metrics in self.medians.values() for m in metrics.values()), default=0)
        for replicate in range(processes):
            lines = self._run(device, replicate)
            file = path / "records" / f"n1.gpu.r{replicate}.plain.launch.jsonl"
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def _run(self, device: dict[str, object], replicate: int) -> list[dict[str, object]]:
        def record(kind: str, **fields: object) -> dict[str, object]:
            return {"schema": "launchgap/1", "record": kind} | fields

        fingerprint = FINGERPRINT | self.fingerprint
        run = {
            "session_id": self.session_id,
            "node": "n1",
            "replicate": replicate,
            "arm": "plain",
            "process_config": "launch",
        }
        run |= {"attempt": 0, "begin_utc": self.begin_utc, "begin_ns": 1000 + replicate, "device": device}
        run |= {"simulated": self.simulated, "trace_state": "off", "fingerprint": fingerprint}
        lines = [record("run", **(run | self.run))]
        for case, metrics in self.medians.items():
            for after in range(2):
                values = {key: readings[after] for key, readings in self.telemetry.items()}
                if values:
                    lines.append(record("telemetry", case=case, block=after - 1, at_ns=after * 10**9, values=values))
            lines.append(self._samples(case, metrics, replicate))
            status, reason = self.status.get(case, ("ok", ""))
            algorithm = {"algorithm": self.algorithms[case][replicate]} if case in self.algorithms else {}
            lines.append(record("summary", case=case, status=status, reason=reason, n=self.samples, **algorithm))
        return [*lines, record("end", status="ok", reason="", fingerprint=fingerprint, **self.end)]

    def _samples(self, case: str, metrics: dict[str, list[float]], replicate: int) -> dict[str, object]:
        def around(median: float) -> list[float]:
            steps = [(2 * i / (self.samples - 1) - 1) * self.spread for i in range(self.samples)]
            if self.tail > 1:
                steps[-2:] = [self.tail - 1, self.tail - 1]
            return [round(median * (1 + step), 3) for step in steps]

        values = [around(medians[replicate]) for medians in metrics.values()]
        block = {"schema": "launchgap/1", "record": "samples", "case": case, "block": 0, "first": 0}
        block |= {"begin_ns": 1000, "end_ns": 10**9, "t0_ns": list(range(self.samples))}
        return block | {"metrics": list(metrics), "values": values}


def launches(api_ns: float, per_launch_ns: float = 2000, processes: int = 3) -> dict[str, dict[str, list[float]]]:
    """Two cases, whose processes differ by 1 in 1,000."""
    near = [1 + 0.001 * (i - processes // 2) for i in range(processes)]
    return {
        IDLE: {"roundtrip_ns": [api_ns * 3 * x for x in near]},
        BURST: {"per_launch_ns": [per_launch_ns * x for x in near]},
    }


def nights(folder: Path, count: int, begin: float = 0, **changes: object) -> list[Path]:
    """Sessions of `count` nights, of which every second is 0.5 % above the other."""
    return [
        Session(night=begin + i, medians=launches(2300 * (1 + 0.005 * (i % 2))), **changes).write(folder)
        for i in range(count)
    ]
