"""The page of a real session in a real browser."""

import json
import shutil

import pytest
from shipped import NODES, UNTRACED, launchgap


def two_pages(folder):
    """That of a session, and that of two."""
    folder.mkdir()
    session, other = folder / "session", folder / "other"
    what = ("--filter", "launch/(null|flag|echo)/|allocation.*bytes:256$", "--devices", "all", "--runs", 2, "--seed", 7)
    launchgap(
        *("run", *what, *UNTRACED, "--no-observer-effect", "-o", session),
        node=NODES / "one_a100.json",
        code=0,
        LAUNCHGAP_LOCK_DIR=str(folder),
    )
    shutil.copytree(session, other)
    name = json.loads((session / "session.json").read_text())["session_id"]
    for path in [other / "session.json", *(other / "records").iterdir()]:
        path.write_text(path.read_text().replace(name, "another"))
    launchgap("report", session, other, "-o", folder / "gap.html", code=0)


@pytest.mark.parametrize("width", [1280, 390])
def test_it_renders_without_errors_and_without_the_network(made_once, browser, width):
    folder = made_once("pages-of-a-real-session", two_pages)
    for path in (folder / "session" / "report.html", folder / "gap.html"):
        page = browser.new_page(viewport={"width": width, "height": 900})
        said, asked = [], []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(path.as_uri())
        text = page.inner_text("body")
        assert "NVIDIA A100-SXM4-80GB" in text and "SIMULATED" in text
        assert "unnamed" not in text and "nan" not in text.lower().split()
        assert page.locator("svg").count() >= 6
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (said, asked) == ([], [path.as_uri()])
        page.close()
