"""What all tests share: a browser to look at pages with, what is made once for all processes of the tests, and what
becomes of a test that compares times on a busy machine."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

# Whoever runs the tests in the background may have these ignored, and every program that a test starts would inherit that.
for _which, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_which) == signal.SIG_IGN:
        signal.signal(_which, _usual)
# Nor is what a program writes to depend on how wide the terminal was that the tests were started in. GNU readline, which
# debuggers import, sets the variable too, below Python: programs inherit it, and os.environ does not show it.
with contextlib.suppress(ImportError):
    importlib.import_module("readline")
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """`made_once(name, make)` is a path of that name, which `make(path)` wrote for all processes of the tests: the first
    that asks makes it, the others wait. Not to be changed."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made-once"

    def made(name: str, make: Callable[[Path], None]) -> Path:
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        with open(own / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (own / "done").exists():
                make(own / name)
                (own / "done").touch()
        return own / name

    return made


def _required() -> bool:
    return bool(os.environ.get("CI") or os.environ.get("LAUNCHGAP_REQUIRE_BROWSER"))


@pytest.fixture(scope="session")
def browser() -> Iterator:
    executable = os.environ.get("LAUNCHGAP_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        if _required():
            pytest.fail("chromium is required here; LAUNCHGAP_CHROMIUM may name it")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield chromium
        chromium.close()


# --- tests that compare times ---

TRIES = 3
MOST_OF_OTHERS = 0.1  # of the machine's CPU time, while a test runs


class BusyMachine(AssertionError):
    """A comparison of times that failed while other programs took the CPUs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--put-off", type=Path, help="where to name the tests that compare times and failed beside others, to be run alone"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # A fake GPU computes for real; what one test's has computed, those of all processes take from here.
        results = tempfile.TemporaryDirectory(prefix="launchgap-test-results-")
        config.add_cleanup(results.cleanup)
        os.environ["LAUNCHGAP_TEST_RESULTS"] = results.name
    config.addinivalue_line(
        "markers",
        "compares_times: what it measures needs a CPU. If it fails while others have them, it is put off, or tried again"
        " and then skipped; with alone=True it is put off at once, since it fails beside others",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--put-off"):
        return
    for item in items:
        if item.get_closest_marker("compares_times"):
            item.add_marker(pytest.mark.flaky(reruns=TRIES - 1, only_rerun=["BusyMachine"]))


def _busy_seconds() -> float:
    """CPU time that this machine has spent on anything; what a hypervisor kept for others is anything too."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Of it, the part of this process and of the children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _put_off(item: pytest.Item, why: str) -> None:
    if put_off := item.config.getoption("--put-off"):
        with put_off.open("a", encoding="utf-8") as file:
            file.write(f"{item.nodeid}\n")
        pytest.skip(f"put off: {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before its fixtures."""
    marker = item.get_closest_marker("compares_times")
    if marker and marker.kwargs.get("alone"):
        _put_off(item, "it is to run alone")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """On a machine that nothing else uses, a failure is a failure."""
    if not pyfuncitem.get_closest_marker("compares_times"):
        return (yield)
    begin, busy, own = time.monotonic(), _busy_seconds(), _own_seconds()
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as failure:
        whole = (time.monotonic() - begin) * (os.cpu_count() or 1)
        others = (_busy_seconds() - busy - (_own_seconds() - own)) / whole
        if others <= MOST_OF_OTHERS:
            raise
        said = f"other programs had {100 * others:.0f} % of the CPUs meanwhile"
        _put_off(pyfuncitem, said)
        if getattr(pyfuncitem, "execution_count", TRIES) >= TRIES:
            pytest.skip(f"invalid: {said}, {TRIES} times in a row")
        raise BusyMachine(said) from failure
