"""What falling back to the CPU costs: each case that the host and a GPU both computed."""

from __future__ import annotations

from .plots import Drawing, Table
from .text import quantity


def costs(drawing: Drawing) -> Table | None:
    """Nothing where no session has the host and a GPU on the same work."""
    rows = []
    for device in drawing.devices:
        for row in device.session.details.of("fallback", device.id):
            gpu, host, ratio = (row.get(k) for k in ("gpu_ns", "host_ns", "ratio"))
            if gpu is None or host is None or ratio is None:
                continue
            times = f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
            rows.append(
                [
                    row["case"],
                    drawing.label(device),
                    quantity(gpu, "ns"),
                    quantity(host, "ns"),
                    times,
                ]
            )
    if not rows:
        return None
    heads = ["case", "device", "there", "on the CPU", "times as long"]
    return Table("What falling back to the CPU costs", heads, rows, 2)
