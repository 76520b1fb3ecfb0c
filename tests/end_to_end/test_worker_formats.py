"""`launchgap worker` as a Google Benchmark program: it answers in the format that is asked for."""

import csv
import json
import os
import pty
import subprocess

import pytest
from shipped import LAUNCHGAP, environment, launchgap

ONE_CASE = "--benchmark_filter=launch/null.*idle"


def test_the_worker_answers_in_the_format_that_is_asked_for(tmp_path):
    done = launchgap("worker", ONE_CASE, "--benchmark_format=json", f"--benchmark_out={tmp_path / 'out.csv'}",
                     "--benchmark_out_format=csv", code=0,
                 )  # fmt: skip
    (of_json,) = json.loads(done.stdout)["benchmarks"]
    assert of_json["name"].startswith("launch/null/api:queue/mode:idle/") and of_json["api_ns"] > 0
    # Before the table there is what the machine is, which the console puts on standard error.
    for text in (
        (tmp_path / "out.csv").read_text(encoding="utf-8"),
        launchgap("worker", ONE_CASE, "--benchmark_format=csv").stdout,
    ):
        (of_csv,) = csv.DictReader(text[text.index("name,") :].splitlines())
        assert of_csv["name"].strip('"') == of_json["name"] and float(of_csv["api_ns"]) > 0


def test_a_terminal_of_the_worker_has_colours_unless_told_otherwise():
    def shown(*arguments, **extra):
        main, other = pty.openpty()
        child = subprocess.run(
            [LAUNCHGAP, "worker", ONE_CASE, *arguments],
            stdout=other, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60,
            env=environment(TERM="xterm", **extra),
        )  # fmt: skip
        os.close(other)
        assert child.returncode == 0
        with os.fdopen(main, "rb") as file:
            return os.read(file.fileno(), 1 << 16)

    assert b"\x1b[" in shown()
    assert b"\x1b[" not in shown(NO_COLOR="1")
    assert b"\x1b[" not in shown("--benchmark_format=json")


def test_the_worker_refuses_a_format_that_there_is_not():
    done = launchgap("worker", ONE_CASE, "--benchmark_format=xml")
    assert done.returncode == 2 and "console, json or csv" in done.stderr


@pytest.mark.parametrize("form", ["console", "json", "csv"])
def test_the_worker_fails_where_a_case_does_whatever_the_format(form, make_node):
    node = make_node(faults=[{"device": 0, "library": "cuda", "call": "cuLaunchKernelEx", "after": 0, "code": 719}])
    uuid = json.loads(node.read_text())["devices"][0]["uuid"]
    launchgap("worker", "--device", uuid, ONE_CASE, f"--benchmark_format={form}", node=node, code=3)
