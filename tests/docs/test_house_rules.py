"""What keeps the tree fit to live in, counted."""

import collections
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
PRODUCT = ("harness", "kernels", "benchmarks", "reports", "scripts", "ci")


def sources(*folders: str, suffixes: tuple[str, ...] = (".cpp", ".h", ".cu", ".py", "")) -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def test_no_file_of_the_product_is_longer_than_500_lines():
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources(*PRODUCT)}
    assert {path: lines for path, lines in long.items() if lines > 500} == {}


def test_a_device_is_asked_what_it_can_and_not_what_it_is_called():
    """Add to `Capability` in harness/device/backend.h instead."""
    by_name = re.compile(r"""\bbackend\s*[!=]=|[!=]=\s*"(cuda|host)"|starts_with\("(cuda|host)"\)""")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources("harness", "benchmarks", "reports")
        if "harness/device/" not in str(path)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if by_name.search(line)
    ]
    assert len(found) <= 12, "\n".join(found)


def test_no_two_source_files_have_one_name():
    names = collections.Counter(
        path.name
        for path in sources("harness", "benchmarks", "kernels", suffixes=(".cpp",))
        if "harness/device/" not in str(path)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_no_source_file_hides_a_constant_of_a_header():
    """Sources are compiled several at a time: one file's constant would be taken for the header's in the next (JUnit's
    launchgap had version 3, the history's)."""
    constant = re.compile(
        r"^(?:inline |static |extern )?(?:constexpr|const)\b[^;=({]*?\b(k[A-Z]\w+)\s*[=\[{;]", re.MULTILINE
    )
    of_headers = {
        name for path in sources("harness", "kernels", suffixes=(".h",)) for name in constant.findall(path.read_text())
    }
    assert "kVersion" in of_headers
    hidden = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("harness", "benchmarks", suffixes=(".cpp",))
        for name in constant.findall(path.read_text())
        if name in of_headers
    ]
    assert hidden == []


def test_a_file_name_of_the_doctor_occurs_nowhere_else():
    everywhere = collections.Counter(
        path.name for path in sources("harness", "benchmarks", "kernels", suffixes=(".cpp", ".h"))
    )
    doctors = {path.name for path in sources("harness/doctor", suffixes=(".cpp", ".h"))}
    assert len(doctors) > 40
    assert [name for name in sorted(doctors) if everywhere[name] > 1] == []


# Each includes only those before it. Files beside the folders are what all use, or what uses all.
DOCTOR = pathlib.Path("harness/doctor")
DOCTORS_FOLDERS = ("libraries", "machine", "compatibility", "rules", "programs")
DOCTORS_BASE = ("version",)


def doctors_floor(path: pathlib.PurePath) -> int:
    room = path.relative_to(DOCTOR).parts[0]
    if room in DOCTORS_FOLDERS:
        return 1 + DOCTORS_FOLDERS.index(room)
    return 0 if path.stem in DOCTORS_BASE else 1 + len(DOCTORS_FOLDERS)


def includes_of_the_doctor(*folders: str) -> list[tuple[pathlib.Path, pathlib.Path]]:
    include = re.compile(r'^#include "(harness/doctor/[^"]+)"', flags=re.MULTILINE)
    return [
        (path.relative_to(ROOT), pathlib.Path(included))
        for path in sources(*folders, suffixes=(".cpp", ".h"))
        for included in include.findall(path.read_text())
    ]


def test_the_doctors_folders_include_only_those_before_them():
    folders = {path.parent.name for path in sources("harness/doctor", suffixes=(".cpp", ".h"))} - {"doctor"}
    assert folders == set(DOCTORS_FOLDERS)
    includes = includes_of_the_doctor("harness/doctor")
    assert {doctors_floor(path) for _, path in includes} >= {0, 1, 2, 3, 4, 5}
    assert [f"{of} includes {path}" for of, path in includes if doctors_floor(path) > doctors_floor(of)] == []


def folder_of(path: str) -> str:
    first, *rest = path.split("/")
    return rest[0] if first == "harness" else first


def test_folders_include_what_the_documented_table_says():
    table = (ROOT / "docs/architecture.md").read_text().split("## Folders")[1].split("\n##")[0]
    documented: dict[str, set[str]] = {}
    for name, includes in re.findall(r"^\| `([^`]+)` \| .* \| ([^|]*)\|$", table, flags=re.MULTILINE):
        rooms = re.findall(r"\b(" + "|".join(documented) + r")\b", includes) if documented else []
        documented[folder_of(name)] = set(rooms)  # of those above it: no arrow points up
    documented.pop("reports")

    include = re.compile(r'^#include "((?:harness|kernels|benchmarks)/[^"]+)"', flags=re.MULTILINE)
    found: dict[str, set[str]] = collections.defaultdict(set)
    only: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for path in sources("harness", "kernels", "benchmarks", suffixes=(".cpp", ".h", ".cu")):
        room = folder_of(str(path.relative_to(ROOT)))
        found[room]
        for included in include.findall(path.read_text()):
            if folder_of(included) != room:
                found[room].add(folder_of(included))
                only[room, folder_of(included)].add(included)
    assert documented == found
    assert only["record", "device"] == {"harness/device/facts.h"}
    assert only["injected", "trace"] == {"harness/trace/cupti/abi.h", "harness/trace/cupti/traced_calls.h"}
    assert only["benchmarks", "allocation"] == {"harness/allocation/device_memory.h"}
    assert only["benchmarks", "summary"] == {"harness/summary/adviser.h"}


def test_the_rest_of_launchgap_includes_one_header_of_the_doctor():
    others = [
        f"{of} includes {path}"
        for of, path in includes_of_the_doctor("harness", "benchmarks", "kernels")
        if DOCTOR not in of.parents and path != DOCTOR / "doctor.h"
    ]
    assert others == []


def described() -> dict:
    done = subprocess.run([ROOT / "build" / "bin" / "launchgap-reference"], capture_output=True, check=True)
    return json.loads(done.stdout)


def literals(*folders: str) -> list[tuple[str, str]]:
    """Each string literal with the place where it stands; those that a table defines are the tables' own."""
    quoted = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
    return [
        (f"{path.relative_to(ROOT)}:{number}", text)
        for path in sources(*folders, suffixes=(".cpp", ".h", ".py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if not line.lstrip().startswith(("//", "#"))
        for text in quoted.findall(line)
    ]


def test_every_benchmark_that_is_named_anywhere_is_one():
    """With or without values of its axes: `launch/null`, `launch/cscs/wait:end`, `matmul/`."""
    known = described()["benchmarks"]
    axes = {b["key"]: {a["key"] for a in b["axes"]} for b in known}
    families = {name.partition("/")[0] for name in axes}
    like_one = re.compile(rf"(?:{'|'.join(families)})/[a-z_0-9/:]*")
    unknown = []
    for place, text in literals("harness", "benchmarks", "reports", "scripts"):
        if not like_one.fullmatch(text):
            continue
        parts = [part for part in text.split("/") if part]
        name = "/".join(part for part in parts if ":" not in part)
        named = {part.partition(":")[0] for part in parts if ":" in part}
        if name in families and text.endswith("/"):
            continue
        if name not in axes or not named <= axes[name]:
            unknown.append(f"{place}: {text}")
    assert unknown == []


def test_every_metric_and_column_that_is_named_anywhere_is_one():
    known = described()
    keys = {m["key"] for m in known["metrics"]} | {c["key"] for t in known["tables"] for c in t["columns"]}
    keys |= {q["key"] for q in known["telemetry"]} | {b["key"] for b in known["benchmarks"]}
    # Fields of records and messages, which their structs define, and what older versions wrote.
    fields = {
        text
        for place, text in literals("harness")
        if re.search(r"harness/(record|run|trace|device|doctor|measure)/|core/metric.cpp", place)
    }
    for path in (ROOT / "data").glob("*.csv"):
        fields.update(path.read_text(encoding="utf-8").partition("\n")[0].split(","))
    unknown = [
        f"{place}: {text}"
        for place, text in literals("benchmarks", "reports", "harness/summary", "harness/cli", "scripts")
        if re.fullmatch(r"[a-z][a-z0-9_]*_(ns|share)", text) and text not in keys | fields
    ]
    assert unknown == []


def test_every_variable_of_the_environment_that_is_read_is_in_the_one_table():
    known = {v["key"] for v in described()["environment_variables"]}
    read = re.compile(r'(?:getenv|setenv|unsetenv)\("(\w+)"')
    named = {text for _, text in literals("harness", "benchmarks") if re.fullmatch(r"LAUNCHGAP_[A-Z_]+", text)}
    for path in sources("harness", "benchmarks", suffixes=(".cpp", ".h")):
        named.update(read.findall(path.read_text()))
    assert named - known == set()
    assert {"LAUNCHGAP_LOCK_DIR", "LAUNCHGAP_CUBLAS", "LAUNCHGAP_KERNELS"} <= named


# What was once said or written, and the word that stands for it now.
REPLACED = {
    r"\b(?:traced|plain) arm\b": "traced run, plain run",
    r"\bodd[ _]devices?\b|\bOddDevice\b": "outlier device",
    r"\bmapped host memory\b": "mapped memory",
    r"\bin setups of\b": "in process configurations of",
    r"\b(?:its|the|an?) face\b(?! =)": "interface",
    r"\b(?:its|their|the|a|each|of) begin\b(?! event)": "start",
    r"\bWarmth\b": "WarmUp",
    r"\bKeptMemory\b": "LeakCheck",
    r"\bmay_lack\b": "optional",
    r"\bfield\.unread\b": "write_only",
    r"\bTabled\b": "TableInputs",
    r"\bStrangers?\b": "UnsupportedFormat",
    r"PlayerOfDevice\b": "DeviceReplayer",
    r"\bCompareArm\b": "Side",
    r"\bbeside_transfers_ns\b": "overlap_transfers_ns",
    r"\bCan::": "Capability",
    r"(?<![/\w-])setups?(?! --|: )\b(?!-)": "process configuration, process_config",
    r"\bcase_timeout_s\b": "timeout_s",
    r"\+trace=": "+trace_level=",
    r"\btell\(": "report",
    r"\"replicates\"": "runs, of a fleet's plan sessions",
}
READERS_OF_OLD_FILES = {
    "harness/core/metric.cpp",
    "harness/core/process_config.cpp",
    "harness/fleet/fleet_plan.h",
    "harness/record/records.h",
    "harness/record/session_record.h",
    "harness/regression/history.cpp",
    "harness/regression/history_database.cpp",
    "reports/launchgap_report/page.py",
}


def test_only_rules_and_stats_ask_whether_things_differ():
    """harness/rules has each rule of difference, with its use; others ask it."""
    tests_of_difference = re.compile(r"\b(?:student_t|students_t|fisher_f|mann_whitney)\b")
    found = [
        str(path.relative_to(ROOT))
        for path in sources("harness", "benchmarks", suffixes=(".cpp", ".h"))
        if tests_of_difference.search(path.read_text()) and path.parent.name not in ("rules", "stats")
    ]
    assert found == []


def test_words_that_have_a_better_one_stay_out():
    """docs/definitions.md has the words that launchgap uses. A string that is split over lines is one text."""
    split = re.compile(r'"\s*\n\s*"')
    found = []
    for path in sources(
        "docs", "harness", "benchmarks", "reports", "scripts", "README.md", suffixes=(".md", ".cpp", ".h", ".py", ".j2", "")
    ):
        name = str(path.relative_to(ROOT))
        if name in READERS_OF_OLD_FILES:
            continue
        text = split.sub("", path.read_text())
        found += [f"{name}: {was.group()!r} is {now!r}" for word, now in REPLACED.items() for was in re.finditer(word, text)]
    assert found == []
