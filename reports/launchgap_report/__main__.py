"""The command line: `python3 -m launchgap_report --session DIR --tables DIR -o FILE.html`.

Exit codes are launchgap's: 0 done, 2 wrong usage, 3 something failed; with one line on stderr.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import sys
import tempfile
from pathlib import Path

from .command_line import DONE, FAILED, Program

NEEDED = ("numpy", "matplotlib", "jinja2")  # matplotlib would be blamed for numpy
PROGRAM = Program("launchgap report", "draw the page")


def _parser() -> argparse.ArgumentParser:
    parser = PROGRAM.parser(
        prog="python3 -m launchgap_report",
        description="Draws one self-contained page from the tables of one or more sessions.",
        epilog="example: python3 -m launchgap_report --session results/today --tables results/today -o report.html",
    )
    parser.add_argument(
        "--session",
        action="append",
        default=[],
        metavar="DIR",
        type=Path,
        help="folder with session.json; several compare their devices",
    )
    parser.add_argument(
        "--tables",
        action="append",
        default=[],
        metavar="DIR",
        type=Path,
        help="folder with that session's tables, one per --session, in order",
    )
    parser.add_argument(
        "--comparison",
        metavar="DIR",
        type=Path,
        help="folder with the tables of the comparison, gap_*.csv",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the page to write")
    parser.add_argument("--check", action="store_true", help="only say whether everything needed is installed")
    return parser


def _missing() -> str | None:
    """One line about what cannot be imported, or None."""
    # Where it can keep no cache it says so, which is nothing to whoever wants a page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"the Python package {name} is missing ({error}); install it (in a checkout, scripts/setup does)"
    return None


def _write(path: Path, text: str) -> None:
    """Writes beside `path` and renames, so that a reader never meets half a page.

    What a link leads to is replaced; what is no file, such as /dev/null, is written to."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    path = Path(os.path.realpath(path))
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".launchgap-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp's 0600 would hide the page from a web server
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def run(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    # A page makes few cycles and many objects that live until its end: looking for garbage costs a twentieth of the time.
    gc.set_threshold(100_000, 20, 20)
    if (missing := _missing()) is not None:
        PROGRAM.say(missing)
        return FAILED
    if options.check:
        return DONE
    if not options.session:
        parser.error("--session DIR is needed")
    if len(options.session) != len(options.tables):
        parser.error(f"{len(options.session)} --session need as many --tables, not {len(options.tables)}")
    if options.output is None:
        parser.error("-o FILE.html is needed")

    # After the check above, so that a missing package gets its line.
    from . import fleet, gap, page, session

    try:
        if fleet.is_fleet(options.tables[0]):
            text = fleet.render(options.session[0], options.tables[0])
        else:
            sessions = [session.load(*pair) for pair in zip(options.session, options.tables, strict=True)]
            compared = gap.load(options.comparison, sessions[0].registry)
            text = page.render(sessions, compared, warn=lambda warning: PROGRAM.say(f"mind: {warning}"))
    except session.ReportError as error:
        PROGRAM.say(str(error))
        return FAILED
    try:
        _write(options.output, text)
    except OSError as error:
        PROGRAM.say(f"{options.output}: cannot be written: {error.strerror or error}")
        return FAILED
    return DONE


def main() -> int:
    code = PROGRAM.main(run)
    gc.freeze()  # else Python looks through all of it for garbage once more, to end
    return code


if __name__ == "__main__":
    sys.exit(main())
