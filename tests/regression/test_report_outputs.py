"""What is written of a report, as those read it who are meant to: JUnit by junitparser, JSON by its schema."""

from __future__ import annotations

import functools
import json
import re
import subprocess

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, Properties, Skipped
from shipped import BUILD, ROOT

REPORTS = ("night", "quiet", "strict", "erratic", "invalid", "empty", "two", "hostile", "large")
SCHEMA = json.loads((ROOT / "docs" / "check.schema.json").read_text(encoding="utf-8"))


@functools.cache
def probe(form: str, name: str) -> tuple[bytes, int]:
    done = subprocess.run([BUILD / "bin" / "regression_probe", form, name], capture_output=True, timeout=60)
    assert done.stderr == b"" and done.returncode in (0, 3, 4), done.stderr
    return done.stdout, done.returncode


def document(name: str) -> dict:
    def refuse(constant: str):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(probe("json", name)[0].decode("utf-8"), parse_constant=refuse)


def suites(name: str, tmp_path) -> JUnitXml:
    path = tmp_path / "junit.xml"
    path.write_bytes(probe("junit", name)[0])
    return JUnitXml.fromfile(str(path))


@pytest.mark.parametrize("name", REPORTS)
def test_the_document_is_as_its_schema_says(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document(name), SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_schema_describes_every_key():
    def check(value, schema: dict, path: str):
        if "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
        if isinstance(value, dict):
            for key, inner in value.items():
                assert key in schema["properties"], f"{path}.{key}"
                check(inner, schema["properties"][key], f"{path}.{key}")
        elif isinstance(value, list):
            for inner in value:
                check(inner, schema["items"], path)
        else:
            assert schema.get("description") or "." in path, path

    for name in ("night", "two", "strict", "erratic", "invalid", "quiet"):
        check(document(name), SCHEMA, "")


def test_the_schema_refuses_what_is_wrong():
    good = document("night")
    for spoil in (
        lambda d: d.pop("exit_code"),
        lambda d: d.update(exit_code=1),
        lambda d: d["results"][0].update(verdict="SLOW"),
        lambda d: d["results"][0].update(value=None),
        lambda d: d["results"][0].pop("device"),
        lambda d: d["verdicts"].pop("slower"),
    ):
        bad = json.loads(json.dumps(good))
        spoil(bad)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA, cls=jsonschema.Draft202012Validator)


def test_the_document_says_what_was_found():
    night = document("night")
    assert (night["schema"], night["record"], night["kind"]) == ("launchgap/1", "check", "history")
    assert (night["exit_code"], night["tests"], night["verdicts"]["slower"]) == (4, 8, 2)
    first = night["results"][0]
    assert first["verdict"] == "slower" and first["case"] == "launch/null/api:driver/mode:idle"
    assert (first["node"], first["unit"], first["direction"]) == ("node17", "ns", "lower")
    assert first["change"] == pytest.approx(0.081) and first["interval"]["low"] == pytest.approx(0.072)
    assert sum(night["verdicts"].values()) == len(night["results"]) == sum(night["steadiness"].values())
    changes = [change for result in night["results"] for change in result["changed"]]
    assert changes == 2 * [{"key": "driver", "from": "570.12", "to": "575.08"}]


def test_the_documented_example_is_one():
    page = (ROOT / "docs" / "check-output.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    written = json.loads(example)
    real = document("night")
    real["results"] = real["results"][:1]
    assert written == real
    screen = re.findall(r"```\n(.*?)```", page, re.DOTALL)
    assert screen[0] == probe("screen", "night")[0].decode("utf-8")


@pytest.mark.parametrize(
    ("name", "tests", "failures", "errors", "skipped", "code"),
    [
        ("night", 15, 2, 0, 8, 4),
        ("quiet", 2, 0, 0, 0, 0),
        ("strict", 3, 1, 0, 0, 3),
        ("erratic", 2, 1, 0, 0, 4),
        ("invalid", 1, 0, 1, 0, 3),
        ("empty", 0, 0, 0, 0, 0),
        ("two", 1, 0, 0, 1, 0),
        ("hostile", 15, 2, 0, 8, 4),
    ],
)
def test_junit_counts_what_it_holds(name, tests, failures, errors, skipped, code, tmp_path):
    xml = suites(name, tmp_path)
    assert probe("junit", name)[1] == code
    (suite,) = xml
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (tests, failures, errors, skipped)
    cases = list(suite)
    names = [case.name for case in cases]
    assert len(cases) == tests and len(set(names)) == tests, "a name is that of one test case alone"

    def with_result(kind: type) -> int:
        return sum(any(isinstance(one, kind) for one in case.result) for case in cases)

    assert (with_result(Failure), with_result(Error), with_result(Skipped)) == (failures, errors, skipped)


def test_junit_names_node_device_and_case(tmp_path):
    (suite,) = suites("night", tmp_path)
    first = next(iter(suite))
    assert first.classname == "launch/null"
    assert first.name == (
        "api_ns of launch/null/api:driver/mode:idle, NVIDIA H100 80GB HBM3 "
        "(GPU-11111111-2222-3333-4444-555555555501) on node17"
    )
    assert {p.name: p.value for p in first.child(Properties)}["value"] == "2162"
    (failure,) = first.result
    assert failure.message.startswith("slower: +8.1 % [+7.2, +9.0], 2.00 µs → 2.16 µs")
    skipped = [case.result[0].message for case in suite if case.result and isinstance(case.result[0], Skipped)]
    assert "invalid: shared: 1 other process on the device (run 2)" in skipped


def test_markdown_fits_whatever_happens():
    for name in REPORTS:
        text = probe("markdown", name)[0]
        assert 0 < len(text) <= 1 << 20
        text.decode("utf-8")
        cells = {line.replace(b"\\|", b"").count(b"|") for line in text.splitlines() if line.startswith(b"|")}
        assert cells <= {8}, "no cell breaks its row"
    hostile = probe("markdown", "hostile")[0].decode("utf-8")
    assert "<script" not in hostile and "@owner" not in hostile and "\x1b" not in hostile
    assert "](" not in hostile.replace("\\](", ""), "no link"


def test_there_are_at_most_ten_annotations_of_one_line_each():
    for name in REPORTS:
        lines = probe("annotations", name)[0].decode("utf-8").splitlines()
        assert len(lines) <= 10
        for line in lines:
            # As the runner reads it: the properties end at the first "::" after the command.
            assert re.fullmatch(r"::(error|warning) title=[^:,\r\n]+::[^\r\n]+", line), line
    assert len(probe("annotations", "large")[0].splitlines()) == 10


def test_the_screen_has_lines_of_100_characters():
    for name in REPORTS:
        text = probe("screen", name)[0].decode("utf-8")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
        assert not re.search(r"^ *::|##\[", text, re.MULTILINE), "no command to GitHub's runner"
        if name not in ("hostile", "large"):
            assert max(len(line) for line in text.splitlines()) <= 100
    assert len(probe("screen", "large")[0]) < 100_000
