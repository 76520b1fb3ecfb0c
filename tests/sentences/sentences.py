"""Every sentence that launchgap can say: collected from the tests that make it say them, and held against its sources.

`collect()` runs the C++ tests that have something said, and breaks the doctor's machine in each way of
tests/doctor/root_causes.py. Where LAUNCHGAP_SAID is set they have run, and kept it in that folder.
`written()` is docs/sentences.md. `templates()` are the sentences as the sources have them, with gaps for what is filled in:
one that nothing said has no sample yet.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "doctor"))

SOURCES = {
    "device": "What a launch costs",
    "job": "What holds a recorded job up",
    "gate": "A comparison with earlier sessions",
    "session": "What of a session was not measured",
    "cause": "Causes in a recorded job",
    "advice": "Advice from this machine's own numbers",
    "fallback": "Falling back to the CPU",
    "ceiling": "Whether a rate can be",
    "gap": "A newer GPU against an older one",
    "program": "Whether a program is on the GPU",
    "doctor": "The check of machine, driver, libraries and frameworks",
}
"""Who says it, in the order of docs/sentences.md, and its heading there."""


@dataclasses.dataclass(frozen=True)
class Said:
    source: str
    code: str
    severity: str
    sentence: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    further: tuple[str, ...] = ()
    """What else it says: effects, and what is not known."""

    @property
    def all_text(self) -> Iterator[str]:
        yield from (self.sentence, self.remedy, *self.evidence, *self.further)


def said_of(finding: dict, own: str = "") -> Said:
    evidence = [e if isinstance(e, str) else e["name"] for e in finding.get("evidence", [])]
    symptoms = [e if isinstance(e, str) else e["name"] for e in finding.get("symptoms", [])]
    line = Said(
        finding.get("source", "doctor"),
        finding["code"],
        finding["severity"],
        finding["sentence"],
        tuple(finding.get("evidence_text", evidence)),
        finding.get("remedy", ""),
        (*symptoms, *filter(None, [finding.get("unknown", "")])),
    )
    # Where the tests' files lie is no part of what is said.
    return dataclasses.replace(
        line,
        sentence=without_folders(line.sentence, own),
        evidence=tuple(without_folders(e, own) for e in line.evidence),
        remedy=without_folders(line.remedy, own),
        further=tuple(without_folders(f, own) for f in line.further),
    )


def without_folders(text: str, own: str) -> str:
    for folder in filter(None, (own, str(ROOT))):
        text = text.replace(folder, "")
    return re.sub(rf"{re.escape(tempfile.gettempdir())}/launchgap-[\w-]+", "", text)


# What includes tests/sentences/said.h, by program; without what takes longest and has nothing said.
TESTS = {
    "doctor_tables_test": "*-Requirement.SurvivesNonsense:Requirement.EveryVersion*:GpuNames.*",
    "doctor_programs_test": "ProgramVerdict.*:FrameworkInstalledTwice.*:*Python*",
    "summary_test": "*-HostCauses.*:SlowCauses.DecoysAre*:LateRanks.*ForChance:Interference.Quiet*:*OfVeryManyValues*",
    "gap_test": "*-GapByChance.NothingIsSlowerOfWhatIsEqual",
    "fleet_test": "FleetFindings.*",
}


def run_tests(folder: Path) -> None:
    def run(program: str) -> None:
        command = [ROOT / "build/bin" / program, f"--gtest_filter={TESTS[program]}", "--gtest_brief=1"]
        assert command[0].exists(), f"{command[0]}: build it, or name what it said with LAUNCHGAP_SAID"
        done = subprocess.run(command, env=os.environ | {"LAUNCHGAP_SAID": str(folder)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, TESTS))


def read(folder: Path) -> list[Said]:
    lines = [line for name in TESTS for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    return [said_of(json.loads(line)) for line in lines]


def of_tests() -> list[Said]:
    """What the C++ tests have the sources say."""
    if kept := os.environ.get("LAUNCHGAP_SAID"):
        return read(Path(kept))
    with tempfile.TemporaryDirectory() as folder:
        run_tests(Path(folder))
        return read(Path(folder))


def of_sick_machines() -> list[Said]:
    """What the doctor says of each machine that the tests break."""
    from root_causes import CASES
    from sick_machine import Machine

    def ask(name: str) -> list[Said]:
        with tempfile.TemporaryDirectory(prefix="launchgap-machine-") as folder:
            machine = Machine(Path(folder))
            CASES[name][0](machine)
            answer, _ = machine.ask()
            return [said_of(finding, folder) for finding in answer["findings"]]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [said for found in pool.map(ask, CASES) for said in found]


def collect() -> list[Said]:
    return [*of_tests(), *of_sick_machines()]


# --- the sentences as the sources have them ---

SENTENCES_IN = [
    f"harness/{folder}/{name}.cpp"
    for folder, names in {
        "doctor/rules": "*",
        "doctor/programs": "program_verdict",
        "doctor/compatibility": "*_causes framework_question python_packages",
        "summary": "*causes session_findings skew case_rates ceiling fallback selections device_answers job_answer adviser",
        "gap": "gap gap_answers",
        "fleet": "fleet_findings",
    }.items()
    for name in names.split()
]
ADVICE_IN = ["benchmarks/launch_*.cpp", "benchmarks/library_code.cpp"]

LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')
INFO_TABLE = re.compile(r"constexpr \w+Info \w+\[\] = \{.*?\n\};", re.DOTALL)
"""What a word means, for the docs: no sentence about numbers."""
COLUMNS = re.compile(r"\nTable \w+\(\) \{.*?\n\}\n", re.DOTALL)


def literals(code: str) -> Iterator[str]:
    """Strings, those that stand side by side as one."""
    code = COMMENT.sub(lambda found: found[1] or "", code)
    for found in LITERALS.finditer(code):
        parts = (part[1:-1] for part in re.findall(r'"(?:[^"\\\n]|\\.)*"', found[0]))
        yield "".join(re.sub(r"\\(.)", lambda escaped: {"n": "\n"}.get(escaped[1], escaped[1]), part) for part in parts)


def templates() -> dict[str, str]:
    """{sentence with gaps: file}: what ends with a full stop; of advice also what stands before a colon."""
    found: dict[str, str] = {}
    for pattern in SENTENCES_IN:
        for path in sorted(ROOT.glob(pattern)):
            code = COLUMNS.sub("", INFO_TABLE.sub("", path.read_text(encoding="utf-8")))
            for text in literals(code):
                if re.match(r"[A-Z{]", text) and text.endswith(".") and text.count(" ") >= 2:
                    found.setdefault(text, str(path.relative_to(ROOT)))
    for path in sorted(path for pattern in ADVICE_IN for path in ROOT.glob(pattern)):
        code = path.read_text(encoding="utf-8")
        for call in re.finditer(r"\badviser\s*\.(?:say|judge|judge_axis)\(", code):
            for text in literals(balanced(code[call.end() :])):
                if re.match(r"[A-Z]", text) and text.count(" ") >= 2:
                    found.setdefault(text, str(path.relative_to(ROOT)))
    return found


def balanced(code: str) -> str:
    """Up to the bracket that closes the one before."""
    depth = 1
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[()]', code):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return code[: token.start()]
    return code


def has(text: str, template: str) -> bool:
    """Whether a template's own words stand in a text, in their order."""
    at = 0
    for part in re.split(r"\{[^{}]*\}", template):
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def unsaid(all_said: list[Said]) -> dict[str, str]:
    """The sentences of the sources that nothing said."""
    texts = {part for said in all_said for part in said.all_text}
    return {template: file for template, file in templates().items() if not any(has(text, template) for text in texts)}


# --- docs/sentences.md ---

PAGE = ROOT / "docs" / "sentences.md"
MOST_LINES = 1
"""Of a sentence's evidence"""
MOST_OF_A_CODE = 10
SEVERITIES = ("", "prevents", "distorts", "act", "note", "open", "fine")

HEAD = """# Every sentence

What launchgap says of a machine, a session, a job and the nights, with sample numbers, as the tests make it say it. Read
only what is bold to see whether each sentence reads once; below it are its evidence (·) and what to do (→).
`scripts/update-docs` writes this file. A test holds it equal, and fails where a sentence of the sources has no sample.
"""


def template_of(text: str, known: list[str]) -> str:
    """The longest template that a sentence has the words of; the sentence without its numbers where there is none."""
    return next((template for template in known if has(text, template)), re.sub(r"[\d.]+", "#", text).split(" ", 3)[-1])


def chosen(all_said: list[Said]) -> dict[str, dict[str, list[Said]]]:
    """By source and code: each template once; the order is that of severities, then of the samples."""
    known = sorted((t for t in templates() if len(re.sub(r"\{[^{}]*\}", "", t)) > 15), key=len, reverse=True)
    pages: dict[str, dict[str, list[Said]]] = {source: {} for source in SOURCES}
    seen: set[tuple[str, ...]] = set()
    for said in sorted(all_said, key=lambda s: (s.code, SEVERITIES.index(s.severity), s.sentence)):
        # Advice is made of the same few words around a ratio.
        template = said.sentence.partition(":")[0] if said.source == "advice" else template_of(said.sentence, known)
        # What every benchmark says in the same words stands once.
        code = "" if said.source == "advice" and said.severity == "open" else said.code
        kind = (said.source, code, said.severity, template)
        if kind not in seen and len(pages[said.source].get(said.code, [])) < MOST_OF_A_CODE:
            seen.add(kind)
            pages[said.source].setdefault(said.code, []).append(said)
    return pages


def written(all_said: list[Said]) -> str:
    parts = [HEAD]
    for source, codes in chosen(all_said).items():
        parts.append(f"\n## {SOURCES[source]}\n")
        for code, all_of in codes.items():
            parts.append(f"\n### {code}\n\n")
            remedies: set[str] = set()
            for said in all_of:
                parts.append(f"- {f'*{said.severity}* ' if said.severity else ''}**{said.sentence}**\n")
                lines = [f"· {line}" for line in said.evidence[:MOST_LINES] if line]
                if said.remedy and said.remedy not in remedies:
                    lines.append(f"→ {said.remedy}")
                    remedies.add(said.remedy)
                parts += [f"  {'<br>' if i else ''}{line}\n" for i, line in enumerate(lines)]
    return "".join(parts)


# --- what a sentence must not be ---

MOST_WORDS = 32
"""Of one sentence, without numbers and units"""
NAMES = re.compile(
    r"(rank|torch|tensorflow|nsys|libcuda|gemm|softmax|attention|k|part_dot|ncclDevKernel\w*)\b|\w*[A-Z_./:-]"
)
"""What may begin a sentence in lower case: the names of ranks, packages, tools, kernels of the tests, and of code"""
REPLACED = """tell nothing apart|in 100 over|in 1000 over|crowd around|Longer was the call itself|keeps GPUs from working|
out of work behind|work came late|worth minding|need not be minded|is beaten by more samples|An arrow at an edge|
what differs beside the GPU|what tells the devices apart|or of host|of what was live at most|of most live|gravest metrics|
In the band it is no hit|they are four in six|with something empty|apart by|What gives them memory|only talks to others|
the begin of|not the same thing|whether or not they""".replace("\n", "")
"""Words that were replaced by better ones."""


def faults(said: Said) -> list[str]:
    """What is wrong with a sentence, by what a program can see."""
    found = []
    text = said.sentence
    if not text.endswith((".", "?")):
        found.append("it does not end with a full stop")
    if re.match(r"[a-z]", text) and not NAMES.match(text):
        found.append("it begins in lower case and not with a name")
    if "  " in text or re.search(r" [.,:;]|\.\.$|\{|\}", text.replace("...", "")):
        found.append("it has blanks or marks where none belong")
    if any(len(re.findall(r"[^\W\d][\w'/:.-]{2,}", part)) > MOST_WORDS for part in re.split(r"(?<=[.?]) (?=[A-Z])", text)):
        found.append(f"it has more than {MOST_WORDS} words")
    for part in said.all_text:
        found += [f"it says {again[0]!r}, which has been replaced" for again in [re.search(REPLACED, part)] if again]
    return found + contradictions(said)


RATIO = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) times(?! the CPU)")
EVIDENCE_RATIO = re.compile(r": (\d+(?:\.\d+)?) times(?: \(95 % (\S+) to (\S+)\))?$")


def contradictions(said: Said) -> list[str]:
    """Of advice: the ratio that it names stands in its evidence, and what it claims does not vanish by rounding."""
    if said.source != "advice" or said.severity not in ("act", "fine"):
        return []
    named = RATIO.findall(said.sentence.partition(": ")[2])
    ratios = [found for line in said.evidence if (found := EVIDENCE_RATIO.search(line))]
    decisive = [r for r in ratios if any(is_same(name, r[1]) for name in named)]
    if not named or not ratios:
        return []
    if not decisive:
        return [f"{', '.join(named)} times: its evidence is {', '.join(r[1] for r in ratios)}"]
    claimed = any(claims(r) for r in decisive)
    if said.severity == "act" and not claimed:
        return ["it tells to act, and no ratio that it names lies beyond 1.05 with an interval beyond 1"]
    if said.severity == "fine" and claimed:
        return [f"it says that no action is needed, and names {decisive[0][0]}"]
    return []


def is_same(named: str, evidence: str) -> bool:
    """Whether a sentence has a ratio as its evidence does, or its reciprocal: "3.8 times shorter" of 0.26 times."""
    reciprocal = 1 / float(evidence) if float(evidence) else 0
    return named == evidence or abs(float(named) - reciprocal) <= 0.03 * reciprocal


def claims(ratio: re.Match[str]) -> bool:
    """Whether a ratio is a claim as it is printed: what decides it is not lost in rounding."""
    value, low, high = float(ratio[1]), *(float(end) if end else 1 for end in (ratio[2], ratio[3]))
    return not 1 / 1.05 <= value <= 1.05 and not low <= 1 <= high
