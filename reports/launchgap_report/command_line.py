"""What the package's programs have in common: how they say what is wrong, and how they end.

Exit codes are launchgap's: 0 done, 2 wrong usage, 3 something failed; with one line on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

DONE, USAGE, FAILED = 0, 2, 3


class Program:
    """A program by the name that its lines begin with: `launchgap report`."""

    def __init__(self, name: str, doing: str) -> None:
        self.name, self.doing = name, doing

    def say(self, message: str) -> None:
        """One line that is safe to show; where nobody can hear it, that is no further failure."""
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(message.split()))
        try:
            if sys.stderr is not None:
                print(f"{self.name}: {text}", file=sys.stderr, flush=True)
        except OSError:
            sys.stderr = None  # else Python fails once more when it ends

    def parser(self, **options: Any) -> argparse.ArgumentParser:
        say = self.say

        class Parser(argparse.ArgumentParser):
            def error(self, message: str) -> NoReturn:
                say(f"{message} (see --help)")
                sys.exit(USAGE)

        return Parser(**options)

    def main(self, run: Callable[[list[str]], int]) -> int:
        try:
            return run(sys.argv[1:])
        except KeyboardInterrupt:
            self.say("interrupted")
        except MemoryError:
            self.say(f"there is no memory left to {self.doing}")
        except Exception as error:
            if os.environ.get("LAUNCHGAP_DEBUG"):
                raise
            self.say(f"internal error: {type(error).__name__}: {error} (LAUNCHGAP_DEBUG=1 shows where)")
        return FAILED
