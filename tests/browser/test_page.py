"""The page in a real browser: wide and narrow, light and dark.

Only a browser knows whether the content security policy lets the style through, whether a phone
must scroll sideways, and whether the text of a figure can be seen on a dark page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KINDS = "host_only eight_gpus traced costs checked recorded beside replays simulated hostile killed empty gap".split()
PageOf = Callable[[str], Path]

# Contrast as WCAG 2 defines it, of each text against the page behind it.
CONTRAST = """
() => {
  const channel = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (css) => {
    const [r, g, b] = css.match(/[\\d.]+/g).map(Number).map((v) => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== "transparent" && !colour.endsWith(", 0)")) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const bad = [];
  let count = 0;
  for (const element of document.querySelectorAll(SELECTOR)) {
    if (!element.textContent.trim() || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const value = ratio(colour, behind(element));
    count += 1;
    if (!(value >= 4.5)) bad.push([element.textContent.trim().slice(0, 40), colour, value]);
  }
  return [count, bad.slice(0, 5)];
}
"""


class Watch:
    """Collects what a page complained about and asked for."""

    def __init__(self, page: object) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda m: self.errors.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda e: self.errors.append(str(e)))
        page.on("request", lambda r: self.requests.append(r.url))


@contextmanager
def opened(browser, path: Path, width: int = 1280, scheme: str = "light", **options) -> Iterator:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
    page = context.new_page()
    watch = Watch(page)
    # Before the page's own policy is read, so that no violation is missed.
    page.add_init_script(
        "window.violations = []; document.addEventListener('securitypolicyviolation',"
        " (e) => window.violations.push(e.violatedDirective + ' ' + e.blockedURI));"
    )
    page.goto(path.as_uri())
    try:
        yield page, watch
    finally:
        context.close()


def open_details(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


def complaints(page, watch: Watch) -> list:
    """Violations of its policy, and errors of its script."""
    return [*page.evaluate("window.violations"), *watch.errors]


def cut_figures(page, width: int) -> list:
    """Those that cannot be seen whole, or at all."""
    boxes = page.evaluate(
        "Array.from(document.querySelectorAll('figure svg'), (s) => {"
        " const b = s.getBoundingClientRect(); return [b.left, b.width, b.height]; })"
    )
    return [box for box in boxes if box[0] < 0 or box[0] + box[1] > width or box[1] <= 200 or box[2] <= 30]


def unreadable(page) -> list:
    bad = []
    for selector, least in (("svg text", 100), ("p, td, th, dt, dd, li, a, summary, .chip", 99)):
        count, of_selector = page.evaluate(CONTRAST.replace("SELECTOR", repr(selector)))
        assert count > least
        bad += of_selector
    return bad


def smallest_text_of_a_figure(page) -> float:
    sizes = page.evaluate(
        "Array.from(document.querySelectorAll('figure svg'), (s) => Math.min("
        "...Array.from(s.querySelectorAll('text'), (t) => parseFloat("
        "getComputedStyle(t).fontSize) * s.getScreenCTM().a)))"
    )
    return min(sizes)


def clashes(page) -> list[str]:
    """Texts of a figure that lie on each other."""
    return page.evaluate("""
        () => Array.from(document.querySelectorAll("figure svg"), (svg) => {
          const boxes = Array.from(svg.querySelectorAll("text"),
            (t) => [t.textContent, t.getBoundingClientRect()]);
          const found = [];
          boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
            const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
            const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
            if (across > 1 && down > 4) found.push(a + " / " + b);
          }));
          return found;
        }).flat()
    """)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_shown_whole_and_readable_and_without_complaint(browser, page_of: PageOf, kind: str) -> None:
    """At once, since a page takes longer to load than to look at."""
    with opened(browser, page_of(kind)) as (page, watch):
        assert bool(page.locator("figure svg").count()) == (kind != "empty")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            if kind in ("eight_gpus", "traced", "recorded", "replays", "gap"):
                assert clashes(page) == []
                assert width > 390 or smallest_text_of_a_figure(page) >= 9
            open_details(page)
            for scheme, background in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 27)")):
                page.emulate_media(color_scheme=scheme)
                # The style came through, and follows the scheme.
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert cut_figures(page, width) == []
                assert complaints(page, watch) == []
                if width == 1280 and kind in ("eight_gpus", "traced", "beside", "replays", "hostile", "gap"):
                    assert unreadable(page) == []
        # It asks for nothing but itself, and that once.
        assert [url for url in watch.requests if not url.startswith("data:")] == [page_of(kind).as_uri()]


def test_the_table_filters_and_sorts(browser, page_of: PageOf) -> None:
    with opened(browser, page_of("eight_gpus")) as (page, _):
        rows = page.locator("#case-table tbody tr")
        total = rows.count()
        page.fill("#filter", "host launch/null")
        shown = page.locator("#case-table tbody tr:visible")
        assert 0 < shown.count() < total
        assert page.locator("#shown").inner_text() == f"{shown.count()} of {total} rows"
        page.fill("#filter", "")
        page.select_option("#status", "failed")
        assert set(page.locator("#case-table tbody tr:visible .chip").all_inner_texts()) == {"failed"}
        page.select_option("#status", "")
        head = page.locator("#case-table thead button", has_text="median")
        head.click()
        first = rows.first.locator("td").nth(1).get_attribute("title")
        head.click()
        last = rows.first.locator("td").nth(1).get_attribute("title")
        assert float(first.split()[0]) < float(last.split()[0])


def test_the_table_shows_one_arm_where_one_is_chosen(browser, page_of: PageOf) -> None:
    with opened(browser, page_of("traced")) as (page, watch):
        total = page.locator("#case-table tbody tr").count()
        page.select_option("#arm", "traced")
        shown = page.locator("#case-table tbody tr:visible")
        assert 0 < shown.count() < total
        assert page.locator("#shown").inner_text() == f"{shown.count()} of {total} rows"
        page.select_option("#arm", "")
        page.fill("#filter", "plain h200")
        assert 0 < shown.count() < total
        assert watch.errors == []


def test_a_long_name_of_a_kernel_wraps(browser, page_of: PageOf) -> None:
    with opened(browser, page_of("traced"), 390) as (page, _):
        open_details(page)
        cell = page.locator("#kernels td.long").first.bounding_box()
        assert 150 < cell["width"] <= 360


@pytest.mark.parametrize("width", [1280, 390])
def test_the_verdict_on_a_recorded_job_is_in_view(browser, page_of: PageOf, width: int) -> None:
    with opened(browser, page_of("recorded"), width) as (page, _):
        row = page.locator("table.recorded tbody tr").first
        # On a phone it stands below the device's name, which stays while the rest scrolls.
        words = row.locator("th strong" if width < 640 else "td.verdict strong")
        assert words.inner_text() == "launch-bound"
        box = words.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert row.locator("th strong").is_visible() == (width < 640)


@pytest.mark.parametrize(("kind", "answer"), [("gap", "before launching it is worth it"), ("host_only", "p50")])
def test_the_answer_is_on_a_phones_first_screen(browser, page_of: PageOf, kind: str, answer: str) -> None:
    with opened(browser, page_of(kind), 390) as (page, _):
        first = page.locator("p.answer").first
        box = first.bounding_box()
        assert answer in first.inner_text().replace("\u00a0", " ")
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844


def test_it_is_complete_without_its_script(browser, page_of: PageOf) -> None:
    with opened(browser, page_of("eight_gpus"), java_script_enabled=False) as (page, _):
        assert page.locator(".controls").is_hidden()
        assert page.locator("#case-table tbody tr").count() > 100
        assert page.locator("figure svg").count() > 20


def test_the_first_column_stays_while_a_phone_scrolls(browser, page_of: PageOf) -> None:
    with opened(browser, page_of("host_only"), 390) as (page, _):
        first = page.locator("#case-table tbody th").first
        before = first.bounding_box()["x"]
        page.evaluate("document.querySelector('#case-table').parentElement.scrollLeft = 500")
        assert first.bounding_box()["x"] == pytest.approx(before, abs=1)
