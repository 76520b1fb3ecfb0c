"""The complete examples in the documentation compile as what they say they are."""

import json
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
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


def test_there_are_examples():
    assert list(EXAMPLES) == ["benchmarks/memory.cpp", "benchmarks/launch_block.cpp"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_compiles(name, tmp_path):
    commands = json.loads((ROOT / "build" / "compile_commands.json").read_text())
    command = next(
        c for c in commands if "launchgap_benchmarks.dir" in c["command"]
    )  # as any benchmark, alone or with others
    flags = shlex.split(command["command"])
    flags = flags[: flags.index("-o")]
    source = tmp_path / pathlib.Path(name).name
    source.write_text(EXAMPLES[name], encoding="utf-8")
    done = subprocess.run(
        [*flags, "-Werror", "-fsyntax-only", source], cwd=command["directory"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
