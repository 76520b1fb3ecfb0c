"""The complete examples in the documentation are what they say they are: they are built, and measure."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / "build"
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
from shipped import environment, table  # noqa: E402  (found through the path above)

DOCUMENT = ROOT / "docs" / "add-a-benchmark.md"
EXAMPLES = dict(re.findall(r"`(benchmarks/\w+\.cpp)`:\n\n```cpp\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL))


def test_the_readmes_first_answer_is_what_the_program_says(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.compile(r"^\$ (build/bin/launchgap import [^\n]*)\n(.*?)^Tables: ", re.MULTILINE | re.DOTALL)
    command, shown = example.search(readme).groups()
    *arguments, output = shlex.split(command)
    assert output == "results/my-job" and arguments[-1] == "-o"
    done = subprocess.run([*arguments, tmp_path / "my-job"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith(shown), done.stdout
    assert "\nact " in shown, "there is something to do for somebody with a GPU"


LONGEST = {"benchmarks/memory_fill.cpp": 12, "benchmarks/memory_copy.cpp": 40, "benchmarks/launch_block.cpp": 40}


def test_the_examples_are_short():
    assert list(EXAMPLES) == list(LONGEST)
    assert all(len(text.splitlines()) <= LONGEST[name] for name, text in EXAMPLES.items())


@pytest.fixture(scope="module")
def with_examples(tmp_path_factory):
    """launchgap with the examples in it, built of exactly these files."""
    folder = tmp_path_factory.mktemp("examples")
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    command = next(c for c in commands if "launchgap_benchmarks.dir" in c["command"])  # as any benchmark
    flags = shlex.split(command["command"])
    flags = flags[: flags.index("-o")]
    objects = []
    for name, text in EXAMPLES.items():
        source = folder / pathlib.Path(name).name
        source.write_text(text, encoding="utf-8")
        objects.append(source.with_suffix(".o"))
        compile_it = [*flags, "-Werror", "-o", objects[-1], "-c", source]
        done = subprocess.run(compile_it, cwd=command["directory"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    program = folder / "launchgap"
    steps = subprocess.run(
        ["ninja", "-t", "commands", "bin/launchgap"], cwd=BUILD, capture_output=True, text=True, check=True
    )
    link = next(line for line in reversed(steps.stdout.splitlines()) if " -o bin/launchgap " in line)
    link = link.replace(" -o bin/launchgap ", f" -o {program} {' '.join(map(str, objects))} ")
    link = next(part for part in link.split("&&") if str(program) in part)
    done = subprocess.run(link, shell=True, cwd=BUILD, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("devices", ["host", "gpu"])
def test_the_examples_run(with_examples, devices, tmp_path):
    session = tmp_path / "session"
    node = BUILD.parent / "tests" / "fake_cuda" / "nodes" / "one_a100.json"
    command = [with_examples, "run", "--devices", devices, "--filter", "^memory/|^launch/block/", "--profile", "quick"]
    command += ["--runs", "1", "--trace", "off", "--no-report", "-o", session]
    env = environment(node=node if devices == "gpu" else None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    rows = table(session / "summary.csv")
    assert rows and {row["status"] for row in rows} <= {"ok", "unsupported"}, done.stdout + done.stderr
    ok = {(row["benchmark"], row["metric"]) for row in rows if row["status"] == "ok"}
    assert {("memory/fill", "device_ns"), ("memory/copy", "device_ns"), ("memory/copy", "piece_gbs")} <= ok
    assert devices == "host" or ("launch/block", "api_ns") in ok
    found = [row for row in table(session / "findings.csv") if row["code"] == "memory-copy"]
    assert found, "it says which is faster, or that neither is"
    (copied,) = (row for row in rows if row["params"] == "bytes:1048576/pieces:1" and row["metric"] == "piece_gbs")
    (took,) = (row for row in rows if row["params"] == "bytes:1048576/pieces:1" and row["metric"] == "device_ns")
    assert float(copied["p50"]) * float(took["p50"]) == pytest.approx(1048576, rel=0.05)
