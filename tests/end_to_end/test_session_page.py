"""The page of a real session in a real browser."""

import os
import shutil

import pytest
from shipped import NODES, launchgap

CHROMIUM = os.environ.get("LAUNCHGAP_CHROMIUM") or shutil.which("chromium")


@pytest.mark.skipif(not CHROMIUM and not os.environ.get("CI"), reason="no chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_it_renders_without_errors_and_without_the_network(run, tmp_path, width):
    from playwright.sync_api import sync_playwright

    done, session = run("--runs", 2, "--filter", "launch|allocation.*bytes:256$", node=NODES / "one_a100.json")
    assert done.returncode == 0, done.stderr
    gap = tmp_path / "gap.html"
    assert launchgap("report", session, session, "-o", gap).returncode == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for path in (session / "report.html", gap):
            page = browser.new_page(viewport={"width": width, "height": 900})
            said, asked = [], []
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(path.as_uri())
            text = page.inner_text("body")
            assert "NVIDIA A100-SXM4-80GB" in text and "SIMULATED" in text
            assert "unnamed" not in text and "nan" not in text.lower().split()
            assert page.locator("svg").count() >= 6
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert (said, asked) == ([], [path.as_uri()])
        browser.close()
