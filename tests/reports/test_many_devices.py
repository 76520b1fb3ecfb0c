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
from launchgap_report import plots, session
from report_paths import pairs


def measured(devices: int) -> make_session.Builder:
    specs = [make_session.Spec("NVIDIA H200", tflops=52.0) for _ in range(devices)]
    return make_session.Builder("20261120T093000Z-3a3a3a", specs, 1, families=("launch",)).build()


def recorded(devices: int) -> make_session.Builder:
    return make_recorded.recorded_session(*(make_recorded.Process(file=f"rank{i}.json", rank=i) for i in range(devices)))


@pytest.mark.parametrize("build", [measured, recorded])
def test_each_further_device_is_as_much_work_as_the_one_before(build, tmp_path: Path, monkeypatch) -> None:
    drawn = 2
    for module in (session, plots):
        monkeypatch.setattr(module, "MOST_DEVICES", drawn)
    calls, pages = [], []
    folder = build(3).write(tmp_path / "first")
    assert program.run([*pairs([folder]), "-o", str(tmp_path / "first.html")]) == 0  # imports, and fills caches
    for devices in (30, 90, 150):
        folder = build(devices).write(tmp_path / str(devices))
        profile = cProfile.Profile()
        page = tmp_path / f"{devices}.html"
        assert profile.runcall(program.run, [*pairs([folder]), "-o", str(page)]) == 0
        calls.append(pstats.Stats(profile).total_calls)
        pages.append(page.read_text(encoding="utf-8"))
        assert f"Figures show {drawn} of {devices} devices" in pages[-1]
        assert len(re.findall(r"NVIDIA H200 \(\d+\)", pages[-1])) >= devices, "tables have all"
    # Function calls, which no other program makes more or less. What looks at all devices for each makes the second step
    # larger than the first: one function for each two devices by 3 to 10 %.
    first, second = calls[1] - calls[0], calls[2] - calls[1]
    assert second < 1.03 * first, calls
    assert pages[2].count("<svg") == pages[0].count("<svg")
    assert len(pages[2]) - len(pages[1]) < 1.1 * (len(pages[1]) - len(pages[0]))


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
