"""Shells complete launchgap's words, the manual page has all of them, and text obeys a narrow terminal."""

import os
import pty
import re
import select
import subprocess
import time

import pytest
from shipped import launchgap

WANTED = {
    "launchgap rep": ["replay", "report"],
    "launchgap run --profile ": ["full", "nightly", "quick"],
    "launchgap run --prof": ["--profile"],
    "launchgap history pr": ["prune"],
    "launchgap history add --acc": ["--accepted"],
    "launchgap export --format g": ["gmtrace", "google-benchmark"],
    "launchgap list d": ["devices"],
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        done = launchgap("completion", shell, code=0)
        (folder / f"_launchgap.{shell}").write_text(done.stdout, encoding="utf-8")
    return folder


def test_bash_completes(scripts):
    offer = f"""
        source {scripts}/_launchgap.bash
        compopt() {{ :; }}
        while IFS= read -r line; do
            read -ra COMP_WORDS <<<"$line"
            [[ $line == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _launchgap
            echo "${{COMPREPLY[*]}}"
        done"""
    done = subprocess.run(["bash", "-c", offer], input="\n".join(WANTED) + "\n", capture_output=True, text=True, timeout=60)
    assert not done.stderr
    assert [sorted(line.split()) for line in done.stdout.splitlines()] == list(WANTED.values())


def test_bash_completes_a_value_behind_an_equals_sign(scripts):
    words = "COMP_WORDS=(launchgap run --trace = o); COMP_CWORD=4"
    done = subprocess.run(
        ["bash", "-c", f'source {scripts}/_launchgap.bash; {words}; _launchgap; echo "${{COMPREPLY[*]}}"'],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["on", "off"]


def test_fish_completes(scripts):
    for line, words in WANTED.items():
        offer = f"source {scripts}/_launchgap.fish; complete -C'{line}'"
        done = subprocess.run(["fish", "--private", "-c", offer], capture_output=True, text=True, timeout=60)
        assert sorted(w.split("\t")[0] for w in done.stdout.splitlines()) == words, (line, done.stderr)


def test_zsh_completes(scripts):
    """In a terminal of its own, since zsh completes in no other."""
    for line in ("launchgap run --profile ", "launchgap history pr"):
        typed_into_zsh(scripts / "_launchgap.zsh", line, WANTED[line])
    assert "prune" not in typed_into_zsh(scripts / "_launchgap.zsh", "launchgap replay pr", [])


def typed_into_zsh(script, line: str, offered: list[str]) -> str:
    """What the terminal shows once `line` was completed, and that has the words `offered`. Each time it waits: until zsh
    edits the line, the terminal does, for which a tab is a letter; and zsh lists nothing while more is typed."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", COLUMNS="100")
        os.execvp("zsh", ["zsh", "-f", "-i"])

    def read_until(*wanted: str, limit_s: float = 60) -> str:
        shown, end = "", time.monotonic() + limit_s
        while not all(word in shown for word in wanted):
            assert time.monotonic() < end, f"no {wanted!r} in {shown!r}"
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 65536).decode(errors="replace")
        return shown

    try:
        os.write(terminal, f"autoload -U compinit; compinit -D; source {script}; PROMPT='rea''dy '\n".encode())
        read_until("ready ")
        os.write(terminal, line.encode() + b"\t\t")
        shown = read_until(line, *offered)
        os.write(terminal, b"\x15PROMPT='do''ne '\n")
        return shown + read_until("done ")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def test_a_shell_that_is_not_known_is_refused():
    done = launchgap("completion", "tcsh")
    assert done.returncode == 2 and "there is no 'tcsh': choose bash, zsh or fish" in done.stderr


def all_commands() -> list[str]:
    shown = launchgap("--help").stdout
    return re.findall(r"^  (\w+) ", shown[shown.index("Subcommands:") :], re.MULTILINE)


def test_the_manual_page_has_every_command_and_option():
    page = launchgap("man").stdout
    commands = all_commands()
    assert len(commands) > 12
    for command in commands:
        assert f".SS {command}\n" in page
        if command == "worker":
            continue  # whose options are Google Benchmark's
        for option in re.findall(r"(--[a-z][a-z-]+)", launchgap(command, "--help").stdout.partition("Options:")[2]):
            assert option.replace("-", "\\-") in page, (command, option)
    assert ".SH EXIT STATUS" in page and "\\fBLAUNCHGAP_KERNELS\\fR" in page
    assert not re.search(r"^'", page, re.MULTILINE), "which roff takes for a request"


@pytest.mark.parametrize("command", ["", "run", "check", "history", "import", "list benchmarks"])
def test_a_terminal_of_60_columns_is_enough(command):
    words = command.split() if command.startswith("list") else [*command.split(), "--help"]
    shown = launchgap(*words, COLUMNS="60").stdout
    long = [line for line in shown.splitlines() if len(line) > 60 and " " in line.strip()]
    assert shown and not long, long


def test_a_table_that_is_too_wide_has_its_cells_below_each_other(tmp_path):
    shown = launchgap("list", "devices", COLUMNS="60").stdout
    assert re.search(r"^\S.*\n  \S+.*: ", shown, re.MULTILINE), shown
    assert max(len(line) for line in shown.splitlines() if " " in line.strip()) <= 60, shown
    wide = launchgap("list", "devices", COLUMNS="400").stdout
    assert len(wide.splitlines()) < len(shown.splitlines())
