"""The command line: each fault gives one line and the right exit code, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from launchgap_report import __main__ as program
from make_session import columns
from report_paths import ROOT, pairs


def header(table: str) -> str:
    return ",".join(columns()[table])


def row(table: str, **cells: str) -> str:
    return ",".join(cells.get(column, "") for column in columns()[table])


SUMMARY = header("summary.csv")


def launch(*arguments: str, path: str = str(ROOT / "reports")) -> subprocess.CompletedProcess[str]:
    """As launchgap starts it."""
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("LAUNCHGAP_DEBUG", None)
    return subprocess.run(
        [sys.executable, "-m", "launchgap_report", *arguments], env=environment, capture_output=True, text=True, timeout=120
    )


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The same in this process, which has matplotlib loaded."""
    monkeypatch.delenv("LAUNCHGAP_DEBUG", raising=False)

    def main(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["launchgap_report", *arguments])
        code = program.main()
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return main


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.fixture
def session(made: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made("killed"), tmp_path / "session"))


@pytest.fixture
def refused(call: Call, session: Path) -> Callable[..., str]:
    """What is said of the session's page that cannot be drawn, in one line."""

    def said(output: Path | None = None) -> str:
        result = call(*pairs([session]), "-o", str(output or session / "out.html"))
        assert result.returncode == 3
        return one_line(result)

    return said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "x.html"], "--session DIR is needed"),
        (["--session", "a", "-o", "x.html"], "1 --session need as many --tables, not 0"),
        (["--session", "a", "--tables", "a"], "-o FILE.html is needed"),
        (["--no-such-option"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_2(arguments: list[str], says: str) -> None:
    result = launch(*arguments)
    assert result.returncode == 2
    assert says in one_line(result)


@pytest.mark.parametrize(
    "name", ["session.json", "devices.csv", "runs.csv", "summary.csv", "run_quantiles.csv", "tables.json"]
)
def test_a_missing_file_is_named(refused: Callable[..., str], session: Path, name: str) -> None:
    (session / name).unlink()
    assert f"{session / name}: no such file" in refused()
    assert not (session / "out.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("session.json", "{", "session.json: not valid JSON"),
        ("session.json", "[]", "session.json: not a JSON object"),
        ("session.json", "[" * 100_000, "session.json: not valid JSON"),
        ("session.json", '{"schema":"launchgap/9"}', "schema 'launchgap/9' is not launchgap/1"),
        ("tables.json", "[1]", "tables.json: not a JSON object"),
        ("tables.json", '{"metrics":[{}]}', "an entry of 'metrics' has no key"),
        ("tables.json", '{"metrics":5}', "'metrics' is not a list"),
        ("tables.json", '{"tables":[{"name":"a","columns":[{}]}]}', "an entry of 'columns' has no key"),
        ("summary.csv", "device_id,node\n", "summary.csv: no column session_id, device_name"),
        ("summary.csv", f"{SUMMARY}\na,b\n", f"summary.csv line 2: 2 cells under {SUMMARY.count(',') + 1} headings"),
        ("summary.csv", f"{SUMMARY}\n{row('summary.csv', status='ok', p50='abc')}\n", "line 2: p50 is 'abc', not a number"),
        ("summary.csv", f"{SUMMARY}\n{row('summary.csv', status='ok', p50='nan')}\n", "line 2: p50 is 'nan', not a number"),
        ("summary.csv", f"{SUMMARY}\n{row('summary.csv', status='fine')}\n", "line 2: status 'fine' is none of ok, failed"),
        ("summary.csv", f'{SUMMARY}\n"unclosed', "summary.csv line 2: not valid CSV"),
        ("summary.csv", f"{SUMMARY},{SUMMARY}\n", "summary.csv: a heading occurs twice"),
        ("devices.csv", f"{header('devices.csv')}\n{row('devices.csv', device_index='x')}\n", "device_index is 'x'"),
        (
            "run_quantiles.csv",
            f"{header('run_quantiles.csv')}\n{row('run_quantiles.csv', replicate='0', p50='inf')}\n",
            "line 2: p50 is 'inf', not a number",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(
    refused: Callable[..., str], session: Path, name: str, content: str, says: str
) -> None:
    (session / name).write_text(content, encoding="utf-8")
    assert says in refused()


@pytest.mark.parametrize("name", ["session.json", "summary.csv"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(refused: Callable[..., str], session: Path, name: str) -> None:
    (session / name).unlink()
    os.mkfifo(session / name)
    assert f"{session / name}: is no file" in refused()


@pytest.mark.parametrize("name", ["devices.csv", "runs.csv", "summary.csv", "run_quantiles.csv"])
def test_an_empty_table_is_a_table_without_rows(call: Call, session: Path, name: str) -> None:
    (session / name).write_bytes(b"")
    result = call(*pairs([session]), "-o", str(session / "out.html"))
    assert (result.returncode, result.stderr) == (0, "")
    assert (session / "out.html").stat().st_size > 10_000


def test_an_unwritable_output_is_named(refused: Callable[..., str], session: Path) -> None:
    assert "cannot be written: No such file or directory" in refused(session / "no" / "such" / "out.html")


def test_an_output_that_is_a_folder_leaves_nothing_behind(refused: Callable[..., str], session: Path) -> None:
    before = sorted(os.listdir(session.parent))
    assert "cannot be written" in refused(session)
    assert sorted(os.listdir(session.parent)) == before


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(call: Call, session: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to("target.html")
    assert call(*pairs([session]), "-o", str(link)).returncode == 0
    assert link.is_symlink()
    assert (tmp_path / "target.html").stat().st_size > 10_000


def test_a_pipe_is_written_to_and_stays(session: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert launch(*pairs([session]), "-o", str(pipe)).returncode == 0
        assert "</html>" in reader.communicate(timeout=10)[0]
    assert pipe.is_fifo()


def test_a_message_that_is_lost_leaves_the_exit_code(tmp_path: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        code = subprocess.call(
            [sys.executable, "-m", "launchgap_report", "--bad"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "reports")},
            stderr=full,
            timeout=120,
        )
    assert code == 2


def test_a_name_in_a_message_is_safe_to_show(tmp_path: Path) -> None:
    name = str(tmp_path / "s\x1b[2J\udcff")
    result = launch("--session", name, "--tables", name, "-o", "x.html")
    assert result.returncode == 3
    assert "s\\x1b[2J\\udcff" in one_line(result)


def test_the_page_is_readable_by_others_as_any_new_file(call: Call, session: Path) -> None:
    output = session / "out.html"
    assert call(*pairs([session]), "-o", str(output)).returncode == 0
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(output.stat().st_mode) == 0o666 & ~mask


def test_check_is_0_and_silent_where_all_is_installed() -> None:
    result = launch("--check")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["matplotlib", "numpy", "jinja2"])
def test_check_names_the_missing_package_and_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise ImportError('not here')", encoding="utf-8")
    result = launch("--check", path=f"{tmp_path}{os.pathsep}{ROOT / 'reports'}")
    assert result.returncode == 3
    line = one_line(result)
    assert name in line
    assert "install it (in a checkout, scripts/setup does)" in line


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"host": "text", "build": 3, "devices": "x", "notes": {}, "command_line": 7},
        {"devices": [1, None], "notes": [None, {"text": 5}], "initialisation": [{"first_ms": "x"}]},
        {"state": None, "seed": None, "host": {"memory_bytes": "much"}, "replicates": [1]},
    ],
)
def test_a_session_json_of_other_shapes_is_no_reason_to_fail(call: Call, session: Path, info: dict) -> None:
    (session / "session.json").write_text(json.dumps(info), encoding="utf-8")
    result = call(*pairs([session]), "-o", str(session / "out.html"))
    assert (result.returncode, result.stderr) == (0, "")


def test_what_makes_a_comparison_doubtful_is_said_here_too(drawn: Callable[[str], Path]) -> None:
    said = drawn("gap").with_name("said.txt").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("launchgap report: mind: Host CPUs differ") for line in said)
    assert any(line.startswith("launchgap report: mind: Drivers differ (470.256.02 and 580.65.06)") for line in said)
    assert len(said) == len(set(said))
