"""The page of a real session in a real browser."""

import json
import shutil

import pytest
from shipped import NODES, launchgap


@pytest.mark.parametrize("width", [1280, 390])
def test_it_renders_without_errors_and_without_the_network(run, tmp_path, browser, width):
    _, session = run(
        "launch/(null|flag|echo)/|allocation.*bytes:256$", devices="all", runs=2, node=NODES / "one_a100.json", page=True
    )
    gap, other = tmp_path / "gap.html", tmp_path / "other"
    shutil.copytree(session, other)
    name = json.loads((session / "session.json").read_text())["session_id"]
    for path in [other / "session.json", *(other / "records").iterdir()]:
        path.write_text(path.read_text().replace(name, "another"))
    assert launchgap("report", session, other, "-o", gap).returncode == 0
    for path in (session / "report.html", gap):
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
