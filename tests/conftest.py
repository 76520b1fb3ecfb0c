"""The browser to look at pages with: one for all tests, since Playwright allows one at a time."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator

import pytest

# Whoever runs the tests in the background may have these ignored, and every program that a test starts would inherit that.
for _which, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_which) == signal.SIG_IGN:
        signal.signal(_which, _usual)


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
