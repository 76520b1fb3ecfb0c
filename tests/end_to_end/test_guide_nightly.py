"""What docs/guide-nightly.md shows is what its commands say of such nights."""

import re
import textwrap

import pytest
from night_sessions import NEW_DRIVER, Session, launches, nights
from shipped import ROOT, launchgap

GUIDE = (ROOT / "docs/guide-nightly.md").read_text(encoding="utf-8")
BLOCKS = [textwrap.dedent(block).strip() for block in re.findall(r"^ *```\n(.*?)^ *```$", GUIDE, re.DOTALL | re.MULTILINE)]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each night's `check` says, and what `history` says afterwards."""
    folder = tmp_path_factory.mktemp("guide")

    def check(night, api_ns=2300, **changes):
        session = Session(night=night, medians=launches(api_ns), **changes).write(folder)
        done = launchgap("check", "--history", "nights.db", session.name, cwd=folder)
        return done.stdout, done.returncode

    said = {0: check(0)}
    assert launchgap("history", "add", "nights.db", *nights(folder, 29, begin=1), cwd=folder).returncode == 0
    said[30] = check(30)
    for night in (31, 32, 33):
        said[night] = check(night, 2500)
    said[34] = check(34, 2500, fingerprint=NEW_DRIVER)
    return folder, said


@pytest.mark.parametrize(("night", "code"), [(0, 0), (30, 0), (31, 0), (33, 4), (34, 0)])
def test_each_night_says_what_is_shown(night, code, told):
    said, ended = told[1][night]
    assert ended == code
    (block,) = [b for b in BLOCKS if f"\nnight-{night} against nights.db" in b]
    block = re.sub(r"^\$.*\n", "", block)
    assert said.startswith(block), said


def test_a_level_is_accepted(told):
    (command,) = [block for block in BLOCKS if "history accept" in block]
    done = launchgap(
        "history", "accept", "nights.db", "--case", "launch/*", "--since", "2026-04-04", "--reason", "driver 575",
        cwd=told[0],
    )  # fmt: skip
    assert command == "$ launchgap history accept nights.db --case 'launch/*' --since 2026-04-04 --reason 'driver 575'"
    assert done.returncode == 0 and "since 2026-04-04" in done.stdout


def test_the_options_that_it_names_exist():
    for command in ("check", "run", "doctor", "selftest", "report"):
        known = launchgap(command, "--help").stdout
        for line in re.findall(rf"launchgap {command} [^\n`]*", GUIDE):
            for option in re.findall(r"(?<= )--[a-z-]+", line):
                assert option in known, f"{command} {option}"
    known = launchgap("check", "--help").stdout
    for option in ("--confirm", "--baseline", "--across", "--accepted", "--require-baseline", "--gate-spread"):
        assert option in GUIDE and option in known


def test_the_files_that_it_links_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target
