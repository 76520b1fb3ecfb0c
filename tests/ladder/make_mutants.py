"""Writes a rung as many times as its list has slips, each with one of them: make_mutants.py RUNG.cu LIST OUTPUT.cpp

A line of the list is `what | what stands there | what stands there then`. The second must be in the rung's code, and its
first occurrence is replaced; `\\n` is a new line. An error of the list ends with what is wrong with it.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def slips(text: str):
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        parts = [part.strip(" ").replace("\\n", "\n") for part in line.split(" | ")]
        if len(parts) != 3:
            sys.exit(f"line {number} of the list has {len(parts)} parts, and must have 3")
        yield number, *parts


def main() -> None:
    source, listed, output = (pathlib.Path(name) for name in sys.argv[1:])
    family, rung = source.parent.name, source.stem
    name = f"{family}_{rung}"
    # Comments stay: a slip may be in front of one.
    code = source.read_text()
    included = re.compile(r'#include "(.*)"\n')
    headers = [(source.parent / header).resolve().relative_to(ROOT) for header in included.findall(code)]
    code = included.sub("", code)
    kernel = re.compile(rf'extern "C" __global__ (?:LAUNCHGAP_THREADS\(kThreads\) )?void launchgap_{name}\(')
    if len(kernel.findall(code)) != 1 or code.count("namespace launchgap::kernels {") != 1:
        sys.exit(f"{source} is no rung of this form")
    code = kernel.sub("void run(", code)
    parts, table = [], []
    for number, what, old, new in slips(listed.read_text()):
        if old not in code:
            sys.exit(f"line {number} of {listed.name}: {source.name} has no {old!r}")
        own = code.replace(old, new, 1).replace("launchgap::kernels {", f"launchgap::kernels::{name}_{number} {{")
        parts.append(f"// {what}\n{own}")
        table.append(f'      {{"{what}", kernel_of(&{name}_{number}::run)}},')
    rows = "\n".join(table)
    output.write_text(
        f"""{"".join(f'#include "{header}"{chr(10)}' for header in headers)}#include "tests/ladder/mutants.h"

{"".join(parts)}
namespace launchgap::kernels {{

const std::vector<Mutant>& mutants_of_{name}() {{
  static const std::vector<Mutant> all = {{
{rows}
  }};
  return all;
}}

}}  // namespace launchgap::kernels
"""
    )


if __name__ == "__main__":
    main()
