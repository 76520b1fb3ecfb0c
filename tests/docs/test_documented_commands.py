"""Every command of launchgap that README and the guides show is one: its options exist, and what can be run here runs."""

import functools
import json
import re
import shlex
import subprocess

import pytest
from documented import DOCUMENTS, LAUNCHGAP, ROOT, commands, launchgap

COMMANDS = [(page, line) for page in DOCUMENTS for line in commands(page)]


@functools.cache
def help_of(command: str) -> str:
    done = launchgap(command, "--help")
    assert done.returncode == 0, f"there is no command {command}"
    return done.stdout


def test_there_are_commands():
    assert len(COMMANDS) > 40
    assert {shlex.split(line)[0] for _, line in COMMANDS} >= {*"run doctor import report check compare replay".split()}


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[f"{page}: {line[:60]}" for page, line in COMMANDS])
def test_its_options_exist(page: str, line: str):
    words = shlex.split(line)
    command = words[0]
    if command == "worker":
        return  # Google Benchmark's own flags
    below = launchgap(command, words[1], "--help").stdout if command in ("fleet", "history") else ""
    known = help_of(command) + below
    for word in words[1:]:
        if word == "--":
            break
        if word.startswith("-") and not re.fullmatch(r"-?\d.*", word):
            option = word.partition("=")[0]
            assert re.search(rf"(^|[\s,]){re.escape(option)}\b", known), f"{page}: {command} has no option {option}"


# What README and docs/using.md show and a machine without a GPU answers at once. `{}` is an empty folder.
RUNNABLE = {
    "doctor": (0, 3),
    "list devices": (0,),
    "doctor --for tensorflow==2.4.0": (0, 3),
    "doctor --for torch --gpu K80 --driver 470.256.02": (0, 3),
}


@pytest.mark.parametrize("line", RUNNABLE)
def test_the_quick_ones_answer(line: str):
    pages = ("README.md", "docs/using.md")
    assert any(shown.startswith(line) for page, shown in COMMANDS if page in pages), "they show it no more"
    done = launchgap(*shlex.split(line))
    assert done.returncode in RUNNABLE[line] and done.stdout, done.stderr


# Other pages show benchmarks that a reader is about to write.
PAGES = "using evaluation guide-investigation guide-nightly launches".split()
GUIDES = ("README.md", *(f"docs/{page}.md" for page in PAGES))
RUNS = sorted(
    {line for page, line in COMMANDS if page in GUIDES and line.startswith("run ") and "--devices gpu" not in line}
)


@pytest.mark.parametrize("line", RUNS)
def test_what_is_run_can_be_planned(line: str, tmp_path):
    words = [word for word in shlex.split(line) if word not in ("--dry-run", "--verbose")]
    done = launchgap(*words, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run" in done.stdout


def test_scripts_that_are_named_exist():
    for page in DOCUMENTS:
        for name in re.findall(r"\bscripts/([a-z][a-z-]+)\b", (ROOT / page).read_text(encoding="utf-8")):
            assert (ROOT / "scripts" / name).exists(), f"{page} names scripts/{name}"


OTHERS = {"tests/data/df_index_resolver"}  # of the corpus that docs/allocation.md is about


def test_paths_that_are_named_exist():
    """But those of files that a page tells its reader to write."""
    missing = []
    for page in (*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        text = page.read_text(encoding="utf-8")
        to_write = set(re.findall(r"^`([^`]+)`:?\n\n```", text, re.MULTILINE))
        for path in re.findall(r"`(\w[\w.-]*/[\w./*-]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            ours = (ROOT / path.split("/")[0]).is_dir() and path.split("/")[0] != "build"
            if ours and path not in to_write | OTHERS and not list(ROOT.glob(path.rstrip("/"))):
                missing.append(f"{page.name}: {path}")
    assert missing == []


def test_bench_measures_what_is_here(tmp_path):
    """As README begins, with the build that is there."""
    options = "--devices host --filter ^launch/null --runs 1 --trace off --no-report -o".split()
    done = subprocess.run([ROOT / "scripts/bench", *options, tmp_path / "s"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "launch call" in done.stdout
    assert json.loads((tmp_path / "s" / "session.json").read_text())["state"] == "complete"
    assert LAUNCHGAP.exists()
