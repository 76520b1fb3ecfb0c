"""What keeps the tree fit to live in, counted."""

import collections
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
    """Add to `Can` in harness/device/backend.h instead."""
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
        path.name for path in sources("harness", "benchmarks", "kernels", suffixes=(".cpp",)) if "harness/device/" not in str(path)
    )
    assert [name for name, count in names.items() if count > 1] == []
