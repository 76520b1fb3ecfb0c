"""The commands that README and the guides show."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
LAUNCHGAP = ROOT / "build" / "bin" / "launchgap"
DOCUMENTS = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def commands(page: str) -> list[str]:
    """Each command line of launchgap in a code block, without its comment and what it is piped to."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    found = []
    for block in blocks:
        lines = block.replace("\\\n", " ").splitlines()
        for line in lines:
            shown = re.match(r"(?:\$ )?(?:build/bin/|\./)?launchgap ((?:[a-z])(?:(?!   ).)*)", line)
            if shown:
                command = re.split(r"\s+#\s|\s+\||\s+&&|\s+>", shown[1])[0].strip()
                if "…" not in command and not re.match(r"\w+ +the ", command) and "[" not in command.split("'")[0]:
                    found.append(command)
    return found


def launchgap(*arguments: str, cwd: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LAUNCHGAP, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, stdin=subprocess.DEVNULL
    )
