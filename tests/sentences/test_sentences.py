"""What launchgap says reads once: every sentence has a sample, stands in docs/sentences.md and keeps the rules there are."""

import re

import pytest
import sentences


@pytest.fixture(scope="module")
def said():
    return sentences.collect()


# What no machine of the tests can be made to have: a build without clang, and a user who is not root.
NOT_HERE = {
    "launchgap-has-no-kernels": "This launchgap has no kernels",
    "profiling-needs-root": "Hardware counters are for root",
}


def test_every_sentence_of_the_sources_has_a_sample(said):
    assert len(sentences.templates()) > 200
    missing = [text for text in sentences.unsaid(said) if not text.startswith(tuple(NOT_HERE.values()))]
    assert missing == []


def test_every_code_has_a_sample(said):
    doctor = {page.stem for page in (sentences.ROOT / "docs/findings").glob("*.md")}
    causes = (sentences.ROOT / "docs/definitions.md").read_text(encoding="utf-8")
    causes = set(
        re.findall(
            r"^\| `([a-z]+(?:-[a-z]+)+)` \|",
            causes.partition("### Causes in a recorded job")[2].partition("\n### ")[0],
            re.M,
        )
    )
    sources = [path.read_text(encoding="utf-8") for path in sentences.ROOT.glob("benchmarks/*.cpp")]
    advice = {name.replace("/", "-") for text in sources for name in advised(text)}
    have = {one.code for one in said} | NOT_HERE.keys()
    assert advice - have == set()
    assert causes - have == set()
    assert doctor - have == set()


def advised(text):
    """The benchmarks of a source that give advice."""
    for registration in re.split(r'benchmark\("', text)[1:]:
        if ".advises(" in registration:
            yield registration.partition('"')[0]


def test_every_sentence_keeps_the_rules(said):
    faults = {one.sentence: found for one in said if (found := sentences.faults(one))}
    assert faults == {}


def test_the_docs_have_them(said):
    assert sentences.written(said) == sentences.PAGE.read_text(encoding="utf-8"), "run scripts/update-docs"


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("It is so", "full stop"),
        ("it is so.", "lower case"),
        ("It  is so.", "blanks"),
        ("It is {}.", "blanks"),
        ("Its times crowd around 2 values.", "replaced"),
        (" ".join(["Words"] * 40) + ".", "words"),
    ],
)
def test_a_fault_is_seen(sentence, fault):
    found = sentences.faults(sentences.Said("cause", "x", "note", sentence))
    assert any(fault in one for one in found), found


@pytest.mark.parametrize(
    ("severity", "evidence", "fault"),
    [
        ("act", "api_ns: 1.30 times (95 % 1.2 to 1.4)", ""),
        ("act", "api_ns: 1.20 times (95 % 1.1 to 1.3)", "its evidence is"),
        ("act", "api_ns: 1.30 times (95 % 1.00 to 1.4)", "tells to act"),
        ("fine", "api_ns: 1.30 times (95 % 1.2 to 1.4)", "no action"),
    ],
)
def test_evidence_that_contradicts_is_seen(severity, evidence, fault):
    said = sentences.Said("advice", "x", severity, "Do so: it is 1.30 times as long.", (evidence,))
    found = sentences.contradictions(said)
    assert (not found) if not fault else any(fault in one for one in found), found
