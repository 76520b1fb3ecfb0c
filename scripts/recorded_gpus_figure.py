"""Draws the recordings of data/recorded_launches.csv: scripts/make-recorded-gpus figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

WIDTH = 9.0  # inches, and 100 of its dots are one: what a README shows
ROW = 0.38
MARGIN = 1.45  # above and below the rows
NANOSECONDS = 1000  # in a µs
LEAST, MOST = 2, 2000  # µs; what goes beyond is cut off with an arrow
TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
INK, PALE = "#1f2933", "#6b7280"
COLOURS = {"Nsight Systems": "#1b6ca8", "nvprof": "#8a5a00", "PyTorch's profiler": "#3a7d44"}
PANELS = (
    ("call", "the call itself"),
    ("call_to_kernel", "from the call to the kernel's begin"),
)
NO_PART_OF_A_LABEL = ("NVIDIA ", "GeForce ", "Tesla ", "Quadro ")


def colour(row: dict[str, str]) -> str:
    return next(colour for recorder, colour in COLOURS.items() if row["recorder"].startswith(recorder))


def first_line(row: dict[str, str]) -> str:
    gpu = row["gpu"]
    for word in NO_PART_OF_A_LABEL:
        gpu = gpu.removeprefix(word)
    return " · ".join(part for part in (gpu, row["launched"][:4]) if part)


def second_line(row: dict[str, str]) -> str:
    """By whom it was recorded, and where unless that was Linux or is not told."""
    recorder = ".".join(row["recorder"].split(".")[:2])  # 2022.4 of 2022.4.2.1
    system = row["system"] if row["system"] != "Linux" else ""
    driver = row["driver"] and f"driver {row['driver']}"
    return ", ".join(part for part in (recorder, driver, system) if part)


def distribution(axes: Axes, row: dict[str, str], name: str, at: int) -> None:
    low, first, middle, third, high = (int(row[f"{name}_p{q}_ns"]) / NANOSECONDS for q in (5, 25, 50, 75, 99))
    ink = colour(row)
    in_steps = int(row["tick_ns"]) >= NANOSECONDS
    axes.plot([low, min(high, MOST)], [at, at], color=ink, linewidth=1.4, solid_capstyle="butt")
    if high > MOST:
        axes.plot(MOST * 0.93, at, marker=">", color=ink, markersize=5)
    face = {"facecolor": "white", "hatch": "////"} if in_steps else {"facecolor": ink, "alpha": 0.55}
    third = max(min(third, MOST), first * 1.01)
    axes.add_patch(Rectangle((first, at - 0.18), third - first, 0.36, edgecolor=ink, linewidth=0.8, zorder=3, **face))
    axes.plot([middle, middle], [at - 0.24, at + 0.24], color=INK, linewidth=2.2, zorder=4)
    axes.annotate(
        f"{middle:.0f}" if in_steps or middle >= 100 else f"{middle:.1f}",
        (middle, at - 0.25),
        ha="center",
        va="bottom",
        fontsize=7,
        color=INK,
    )


def panel(axes: Axes, rows: list[dict[str, str]], name: str, title: str) -> None:
    axes.set_xscale("log")
    axes.set_xlim(LEAST, MOST)
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xticks(TICKS, [str(tick) for tick in TICKS], fontsize=8, color=INK)
    axes.minorticks_off()
    axes.grid(axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel("µs, logarithmic", fontsize=8, color=PALE)
    for side in axes.spines.values():
        side.set_visible(False)
    for at, row in enumerate(rows):
        if at and row["launched"][:4] != rows[at - 1]["launched"][:4]:
            axes.axhline(at - 0.58, color="#c9ced6", linewidth=0.8)
        distribution(axes, row, name, at)


def key(figure: plt.Figure, bottom: float) -> None:
    at = 0.02
    for recorder, ink in COLOURS.items():
        figure.text(at, bottom, "■", color=ink, fontsize=10, va="center")
        figure.text(at + 0.018, bottom, recorder, color=INK, fontsize=8, va="center")
        at += 0.034 + 0.0083 * len(recorder)
    figure.text(
        at,
        bottom,
        "bar: middle half, its stroke: median · line: 5 % to 99 % · hatched: times in steps of 1 µs",
        color=PALE,
        fontsize=8,
        va="center",
    )


def draw(rows: list[dict[str, str]], path: Path) -> None:
    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": path.name,
            "font.family": "sans-serif",
            "hatch.linewidth": 0.6,
        }
    )
    height = ROW * len(rows) + MARGIN
    figure, panels = plt.subplots(1, 2, figsize=(WIDTH, height), sharey=True)
    figure.subplots_adjust(left=0.315, right=0.985, top=1 - 0.85 / height, bottom=0.72 / height, wspace=0.06)
    for axes, (name, title) in zip(panels, PANELS, strict=True):
        panel(axes, rows, name, title)
    panels[0].set_yticks([])
    across = panels[0].get_yaxis_transform()
    for at, row in enumerate(rows):
        panels[0].text(-0.93, at - 0.05, first_line(row), transform=across, fontsize=9, color=INK, va="bottom")
        panels[0].text(-0.93, at + 0.02, second_line(row), transform=across, fontsize=7.5, color=PALE, va="top")
    title = "Kernel launches on streams that had nothing left to do, in public recordings"
    figure.text(0.02, 1 - 0.2 / height, title, fontsize=11.5, color=INK, va="center", weight="bold")
    told = "recorded by others on real GPUs, and not measured by launchgap; with what recording costs; oldest GPU first"
    figure.text(0.02, 1 - 0.42 / height, told, fontsize=8.5, color=PALE, va="center")
    key(figure, 0.17 / height)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
