"""The jobs in ci/: valid by their published schemas, and their steps, run in order on the host, do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from junitparser import JUnitXml
from ruamel.yaml import YAML
from shipped import LAUNCHGAP, ROOT, environment

CI = ROOT / "ci"
GITHUB, GITLAB = CI / "github-actions.yml", CI / "gitlab-ci.yml"


@pytest.mark.parametrize(
    ("schema", "file"), [("vendor.github-workflows", GITHUB), ("vendor.gitlab-ci", GITLAB)], ids=["github", "gitlab"]
)
def test_they_are_what_their_schema_says(schema, file, tmp_path):
    def check(path: Path) -> int:
        tool = [sys.executable, "-m", "check_jsonschema", "--no-cache", "--builtin-schema", schema]
        if schema == "vendor.gitlab-ci":
            tool += ["--data-transform", "gitlab-ci"]
        return subprocess.run([*tool, path], capture_output=True, timeout=120).returncode

    assert check(file) == 0
    spoilt = tmp_path / "spoilt.yml"
    spoilt.write_text(re.sub(r"\b(runs-on|script):", "nonsense:", file.read_text(encoding="utf-8")))
    assert check(spoilt) != 0


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=["github", "gitlab"])
def test_they_are_a_page_each_and_explain_the_exit_codes(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 85
    assert all(re.search(rf"^#   {code} ", text, re.MULTILINE) for code in (3, 4, 5, 77))


@dataclass
class Night:
    """What became of a job: the exit code of each of its steps, in order, and what they said."""

    codes: list[int] = field(default_factory=list)
    out: str = ""


@dataclass
class Machine:
    """A runner without a GPU: its history, and what one night may cost in a test."""

    folder: Path
    variables: dict[str, str]
    nights: int = 0

    def perform(self, command: str, variables: dict[str, str], night: Night) -> int:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=self.folder, env=environment(**variables), capture_output=True, text=True, timeout=240,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        night.codes.append(done.returncode)
        night.out += done.stdout + done.stderr
        return done.returncode

    def github(self, **changed: str) -> Night:
        """As a runner does it: after a failure only steps whose condition says so."""
        self.nights += 1
        workflow = YAML(typ="safe").load(GITHUB)
        variables = {
            key: value.replace("${{ github.run_id }}", str(self.nights)).replace("${{ github.run_attempt }}", "1")
            for key, value in workflow["env"].items()
        }
        summary = self.folder / "step-summary.md"
        summary.write_text("")
        known = set(variables)
        variables |= self.variables | changed
        assert set(variables) == known, "all settings are in the file"
        variables |= {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true"}
        night, failed, outcomes = Night(), False, {}
        for step in workflow["jobs"]["night"]["steps"]:
            condition = step.get("if", "success()")
            runs = {
                "success()": not failed,
                "always()": True,
                "${{ !cancelled() && steps.measure.conclusion != 'skipped' }}": outcomes.get("measure") != "skipped",
            }[condition]
            outcomes[step.get("id")] = "ran" if runs else "skipped"
            if step["name"] == "Publish the night":
                uploaded = step["with"]["path"].replace("${{ env.NIGHT }}", variables["NIGHT"])
                kept = self.folder / f"uploaded-{self.nights}"
                subprocess.run(["cp", "-r", self.folder / uploaded, kept], check=False, capture_output=True)
            elif runs:
                code = self.perform(step["run"], variables, night)
                failed = failed or (code != 0 and not step.get("continue-on-error"))
        return night

    def gitlab(self, **changed: str) -> Night:
        """As a runner does it: all of `script` is one program that ends with its first failure."""
        self.nights += 1
        job = YAML(typ="safe").load(GITLAB)["launchgap"]
        variables = {key: value.replace("$CI_JOB_ID", str(self.nights)) for key, value in job["variables"].items()}
        known = set(variables)
        variables |= self.variables | changed
        assert set(variables) == known, "all settings are in the file"
        night = Night()
        self.perform("\n".join(job["script"]), variables, night)
        self.perform("\n".join(job["after_script"]), variables, night)
        artifacts = job["artifacts"]
        assert artifacts["when"] == "always"
        assert [path.replace("$CI_JOB_ID", str(self.nights)) for path in artifacts["paths"]] == [variables["NIGHT"]]
        kept = self.folder / f"uploaded-{self.nights}"
        subprocess.run(["cp", "-r", self.folder / variables["NIGHT"], kept], check=False, capture_output=True)
        return night

    def uploaded(self) -> Path:
        return self.folder / f"uploaded-{self.nights}"


@pytest.fixture
def machine(tmp_path):
    return Machine(
        tmp_path,
        {
            "LAUNCHGAP": str(LAUNCHGAP),
            "HISTORY": str(tmp_path / "nights.db"),
            "DOCTOR_OPTIONS": "--no-prove",
            "RUN_OPTIONS": "--devices host --runs 3 --filter ^matmul.*size:256/type:fp32/.*warm --trace off",
        },
    )


PERFORM = {"github": Machine.github, "gitlab": Machine.gitlab}


@pytest.mark.parametrize("system", PERFORM)
def test_a_night_is_measured_checked_and_published(system, machine):
    for number in (1, 2):
        night = PERFORM[system](machine)
        assert set(night.codes) == {0}, night.out
        kept = machine.uploaded()
        assert {path.name for path in kept.iterdir()} == {"session", "junit.xml", "summary.md", "check.json", "report.html"}
        (suite,) = JUnitXml.fromfile(str(kept / "junit.xml"))
        assert suite.skipped > 0 == suite.failures, "there is no baseline yet"
        assert "Nothing was compared" in night.out
        done = subprocess.run([LAUNCHGAP, "history", "list", machine.variables["HISTORY"]], capture_output=True, text=True)
        assert done.stdout.count("20") >= number and done.returncode == 0, done.stdout
    if system == "github":
        assert "Nothing was compared" in (machine.folder / "step-summary.md").read_text(encoding="utf-8")
        assert not list(machine.folder.glob("night-*")), "the workspace is left as it was"


@pytest.mark.parametrize("system", PERFORM)
def test_a_strict_night_fails_and_is_published_all_the_same(system, machine):
    night = PERFORM[system](machine, CHECK_OPTIONS="--require-baseline")
    assert 3 in night.codes and set(night.codes) == {0, 3}, night.out
    (suite,) = JUnitXml.fromfile(str(machine.uploaded() / "junit.xml"))
    assert suite.failures > 0
    assert "without a baseline" in night.out


@pytest.mark.parametrize("system", PERFORM)
def test_without_a_gpu_nothing_is_measured(system, machine):
    night = PERFORM[system](machine, DOCTOR_OPTIONS="--require-gpu")
    assert night.codes[0] == 77, night.out
    assert set(night.codes[1:]) <= {0}, night.out
    assert not machine.uploaded().exists() and not Path(machine.variables["HISTORY"]).exists()


@pytest.mark.parametrize("system", PERFORM)
@pytest.mark.parametrize(("code", "checked"), [(3, True), (5, False)])
def test_a_failure_of_run_is_that_of_the_job(system, code, checked, machine):
    """A case failed: the rest of the night counts, and the job fails. Stopped: GitLab ends there, and GitHub's runner
    cancels the steps itself."""
    stand_in = machine.folder / "launchgap"
    stand_in.write_text(f'#!/bin/sh\n{LAUNCHGAP} "$@" || exit\n[ "$1" != run ] || exit {code}\n')
    stand_in.chmod(0o755)
    night = PERFORM[system](machine, LAUNCHGAP=str(stand_in))
    assert set(night.codes) == {0, code}, night.out
    if checked or system == "gitlab":
        assert (machine.uploaded() / "check.json").exists() == checked


def test_jenkins_has_a_page_that_explains_the_exit_codes_with_options_that_there_are():
    """No Jenkins runs it here: what it has launchgap do is what launchgap can."""
    text = (CI / "Jenkinsfile").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 85
    assert all(re.search(rf"[/·] +{code} ", text) for code in (0, 3, 4, 5, 77))
    assert "if (code == 4) { unstable(" in text
    commands = re.findall(r"\$LAUNCHGAP (\w+)([^'}]*)", text.replace("\\\n", " "))
    assert {command for command, _ in commands} == {"doctor", "run", "check"}
    run_options = re.search(r"RUN_OPTIONS = '(.*)'", text)[1]
    for command, words in commands:
        known = subprocess.run([LAUNCHGAP, command, "--help"], capture_output=True, text=True, check=True).stdout
        for option in re.findall(r"(?<!\S)--?[a-z-]+", words.replace("$RUN_OPTIONS", run_options)):
            assert re.search(rf"(^|[\s,]){re.escape(option)}\b", known), f"{command} {option}"
