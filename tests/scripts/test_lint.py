"""scripts/lint: what it finds, how it says so, and that it is never silent about what it could not look for."""

import argparse
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "lint"

_loader = importlib.machinery.SourceFileLoader("lint", str(SCRIPT))
_spec = importlib.util.spec_from_loader("lint", _loader)
lint = importlib.util.module_from_spec(_spec)
_loader.exec_module(lint)

CLEAN = {
    "harness/core/one.h": "#pragma once\nint one();\n",
    "harness/core/one.cpp": '#include "harness/core/one.h"\n\nint one() {\n  return 1;\n}\n',
    "harness/core/two.cpp": '#include "harness/core/one.h"\n\nint two() {\n  return 2 * one();\n}\n',
    "scripts/tool": '#!/usr/bin/env bash\necho "$1"\n',
    "tests/test_one.py": "def test_one():\n    assert True\n",
}


def git(tree, *arguments):
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path):
    """A small repository in which nothing is to be found, one commit on its main branch."""
    for name, text in CLEAN.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in (".clang-format", ".clang-tidy", ".shellcheckrc", "ruff.toml", "scripts/lint"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / ".gitignore").write_text(".venv\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def run(tree, *arguments, **environment):
    command = [tree / "scripts" / "lint", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=os.environ | environment)


needs_clang_format = pytest.mark.skipif(
    shutil.which(lint.CLANG_FORMAT) is None and "CI" not in os.environ, reason="this distribution has no clang-format-14"
)
FOUND = [
    pytest.param(
        "clang-format",
        "harness/core/one.cpp",
        "int   one( ) {return 1;}\n",
        "code should be clang-formatted",
        marks=needs_clang_format,
    ),
    ("ruff", "tests/test_one.py", "import os\n", "F401"),
    ("ruff", "tests/test_one.py", "x = {'a':1}\n", '+x = {"a": 1}'),
    ("ruff", "tests/test_new.py", "x = 1  # " + 125 * "x" + "\n", "E501"),
    ("shellcheck", "scripts/tool", "#!/usr/bin/env bash\necho $1\n", "SC2086"),
]


@pytest.mark.parametrize("check, path, text, said", FOUND)
def test_what_is_found_is_named_with_the_way_to_mend_it(tree, check, path, text, said):
    assert run(tree, check).returncode == 0
    (tree / path).write_text(text)
    done = run(tree, check)
    assert done.returncode == 3
    assert said in done.stderr and path in done.stderr
    assert f"FAIL  {check}: {lint.CHECKS[check][1]}" in done.stderr and done.stderr.endswith(f"lint: {check} failed\n")


@needs_clang_format
def test_fix_formats_what_it_can(tree):
    for name in ("harness/core/one.cpp", "tests/test_one.py"):
        (tree / name).write_text(CLEAN[name].replace("\n", " \n").replace("()", "( )"))
    assert run(tree, "clang-format", "ruff").returncode == 3
    assert run(tree, "--fix", "clang-format", "ruff").returncode == 0
    assert {name: (tree / name).read_text() for name in CLEAN} == CLEAN


def test_a_tool_that_is_missing_is_a_failure_and_hides_no_other(tree, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, program in (("git", shutil.which("git")), ("python3", os.path.realpath(sys.executable))):
        (tools / name).symlink_to(program)
    (tree / ".venv").unlink()
    done = run(tree, PATH=str(tools))
    assert done.returncode == 3
    for tool in (lint.CLANG_FORMAT, lint.GXX, lint.CLANG_TIDY, lint.SHELLCHECK, lint.RUFF):
        assert f"{tool} is not installed; scripts/setup --dev installs it" in done.stderr
    assert done.stderr.endswith("lint: clang-format, ruff, shellcheck, g++, clang-tidy failed\n")


@pytest.mark.parametrize("arguments", [["--base", "nowhere"], ["spelling"], ["--all", "--base", "HEAD"]])
def test_wrong_usage_is_2(tree, arguments):
    assert run(tree, *arguments).returncode == 2


@pytest.mark.parametrize(
    "body, said",
    [("std::string text;\n  return 2;", "std"), ("int unused = 1;\n  return 2;", "unused")],
    ids=["it includes too little", "a warning"],
)
def test_gxx_compiles_each_file_alone(tree, monkeypatch, body, said):
    source = "harness/core/two.cpp"
    command = ["g++", "-Wall", "-I.", "-o", "two.o", "-c", source]
    monkeypatch.chdir(tree)
    monkeypatch.setattr(lint, "compiled_alone", lambda: {source: command})
    options = argparse.Namespace(all=True, base=None)
    lint.check_gxx(options)
    (tree / source).write_text(f"int two() {{\n  {body}\n}}\n")
    with pytest.raises(lint.Failure, match=said):
        lint.check_gxx(options)
    assert not (tree / "two.o").exists()


# --- which files g++ and clang-tidy see ---

KNOWN = ["harness/core/one.cpp", "harness/core/two.cpp"]


def chosen(tree, monkeypatch):
    monkeypatch.chdir(tree)
    return lint.changed_files(lint.changed_since(), KNOWN)


def test_of_a_branch_all_that_it_changed_is_checked(tree, monkeypatch):
    git(tree, "checkout", "-q", "-b", "work")
    (tree / "harness/core/two.cpp").write_text("int two() { return 2; }\n")
    git(tree, "commit", "-q", "-a", "-m", "two")
    (tree / "README.md").write_text("words\n")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "words")
    assert chosen(tree, monkeypatch) == ["harness/core/two.cpp"]
    (tree / "harness/core/one.cpp").write_text("int one() { return 3 - 2; }\n")
    assert chosen(tree, monkeypatch) == KNOWN, "what is not committed too"


def test_of_the_main_branch_its_last_commit_is_checked(tree, monkeypatch):
    (tree / "harness/core/one.cpp").write_text("int one() { return 3 - 2; }\n")
    git(tree, "commit", "-q", "-a", "-m", "one")
    assert chosen(tree, monkeypatch) == ["harness/core/one.cpp"]


def test_the_first_commit_is_all_there_is(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert lint.changed_since() is None


def test_a_header_is_checked_by_one_source_that_includes_it(tree, monkeypatch):
    git(tree, "mv", "harness/core/one.cpp", "harness/core/uno.cpp")
    git(tree, "commit", "-q", "-m", "uno")
    (tree / "harness/core/one.h").write_text("#pragma once\nint one() noexcept;\n")
    monkeypatch.chdir(tree)
    assert lint.changed_files("HEAD", ["harness/core/two.cpp", "harness/core/uno.cpp"]) == ["harness/core/two.cpp"]


def test_other_rules_are_for_every_file(tree, monkeypatch):
    (tree / ".clang-tidy").write_text("Checks: '-*,bugprone-*'\n")
    monkeypatch.chdir(tree)
    assert lint.changed_files("HEAD", KNOWN) == KNOWN
