"""The page of many devices: work grows as their number does, and figures do not."""

from __future__ import annotations

import cProfile
import pstats
import re
from pathlib import Path

import make_recorded
import make_session
import pytest
from launchgap_report import __main__ as program
from launchgap_report.session import MOST_DEVICES
from report_paths import pairs


def measured(devices: int) -> make_session.Builder:
    specs = [make_session.Spec("NVIDIA H200", tflops=52.0) for _ in range(devices)]
    return make_session.Builder("20261120T093000Z-3a3a3a", specs, 1, families=("launch",)).build()


def recorded(devices: int) -> make_session.Builder:
    return make_recorded.recorded_session(*(make_recorded.Process(file=f"rank{i}.json", rank=i) for i in range(devices)))


@pytest.mark.parametrize("build", [measured, recorded])
def test_three_times_the_devices_are_three_times_the_work(build, tmp_path: Path) -> None:
    calls, pages = {}, {}
    for devices in (40, 120):
        folder = build(devices).write(tmp_path / str(devices))
        profile = cProfile.Profile()
        page = tmp_path / f"{devices}.html"
        assert profile.runcall(program.run, [*pairs([folder]), "-o", str(page)]) == 0
        calls[devices] = pstats.Stats(profile).total_calls
        pages[devices] = page.read_text(encoding="utf-8")
    # Function calls, which no other program makes more or less; what goes as the square would be nine times as many.
    assert calls[120] < 3.4 * calls[40], calls
    assert pages[120].count("<svg") < 1.2 * pages[40].count("<svg")
    for devices, page in pages.items():
        assert f"Figures show {MOST_DEVICES} of {devices} devices" in page
        assert len(re.findall(r"NVIDIA H200 \(\d+\)", page)) >= devices, "tables have all"


def test_a_page_is_titled_with_its_file_or_folder(tmp_path: Path) -> None:
    for builder, title in (
        (recorded(1), "rank0.json: launches of a recorded job"),
        (recorded(2), "tonight: launches of a recorded job"),
        (measured(1), "tonight: launches on node01"),
    ):
        folder = builder.write(tmp_path / title / "tonight")
        page = tmp_path / "page.html"
        assert program.run([*pairs([folder]), "-o", str(page)]) == 0
        assert f"<title>{title} · launchgap</title>" in page.read_text(encoding="utf-8")


def test_few_devices_are_all_drawn(page) -> None:
    assert "Figures show" not in page("eight_gpus")
