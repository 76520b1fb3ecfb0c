"""Every code that the doctor can emit has a page, every page a code, and the binary prints it."""

import re

import pytest
from sick_machine import ROOT, Machine

SOURCES = sorted((ROOT / "harness" / "doctor").rglob("*.cpp"))
PAGES = {page.stem: page.read_text() for page in (ROOT / "docs" / "findings").glob("*.md")}
HEADINGS = ["## What it means", "## How it is found", "## What to do"]

KEBAB = r'"([a-z0-9]+(?:-[a-z0-9]+)+)"'
# In the rules everything of that form is a code, but for names of kernel drivers and programs.
NO_CODES_IN_RULES = {"vfio-pci", "pci-stub", "nvidia-cuda-mps"}
# Elsewhere a code begins a finding or a cause, or is assigned.
BEGINS_A_FINDING = re.compile(r"(?:\bcode = |\{\s*)" + KEBAB + r"\s*(?:,\s*\n|;)")


def emitted_codes():
    """{code: the first file that has it}."""
    codes = {}
    for source in SOURCES:
        text = source.read_text()
        rules = source.parent.name == "rules"
        found = set(re.findall(KEBAB, text)) - NO_CODES_IN_RULES if rules else set(BEGINS_A_FINDING.findall(text))
        for code in found:
            codes.setdefault(code, str(source.relative_to(ROOT)))
    return codes


EMITTED = emitted_codes()


def test_the_sources_have_codes():
    # One of each way to write one: about(…, "…", …), a table's row, an assignment, a Cause, an aggregate.
    for code in ("mig-active", "ptx-too-new", "no-gpu", "framework-cudnn-mismatch", "library-broken"):
        assert code in EMITTED


@pytest.mark.parametrize("code", sorted(EMITTED))
def test_a_code_has_a_page(code):
    assert code in PAGES, f"docs/findings/{code}.md is missing; {EMITTED[code]} has the code"


@pytest.mark.parametrize("code", sorted(PAGES))
def test_a_page_is_of_a_code(code):
    assert code in EMITTED, f"nothing in harness/doctor has the code {code}"


@pytest.mark.parametrize("code", sorted(PAGES))
def test_a_page_has_its_headings(code):
    title, *others = [line for line in PAGES[code].splitlines() if line.startswith("#")]
    assert re.fullmatch(rf"# {code}: \S.*\S", title)
    assert others == HEADINGS
    for section in re.split(r"^#.*\n", PAGES[code], flags=re.MULTILINE)[2:]:
        assert section.strip(), "a section is empty"


def test_the_guide_lists_every_page_with_its_title():
    guide = (ROOT / "docs" / "doctor.md").read_text()
    listed = re.findall(r"^- \[(\S+)\]\(findings/(\S+)\.md\): (.+)$", guide, flags=re.MULTILINE)
    titles = {code: page.splitlines()[0].partition(": ")[2] for code, page in PAGES.items()}
    assert all(code == link for code, link, _ in listed)
    assert {code: title for code, _, title in listed} == titles


@pytest.mark.parametrize("code", ["architecture-ageing", "driver-mismatch", "no-driver", "xid-reported"])
def test_explain_prints_the_page(machine: Machine, code):
    done = machine.start("--explain", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, PAGES[code], "")


def test_explain_knows_every_page_and_no_other(machine: Machine):
    done = machine.start("--explain", "list")
    assert (done.returncode, set(done.stdout.split())) == (0, set(PAGES))
    done = machine.start("--explain", "no-such-code")
    assert done.returncode == 2 and "`launchgap doctor --explain list` shows all codes" in done.stderr
