"""Makes matplotlib's SVG fit to stand inside the page.

The page's content security policy blocks every `style` attribute and every <style> element, and
dark mode needs colours that the page's style sheet decides. So figures are drawn with the
stand-in colours below, and here each one becomes a class (`f-ink` fills, `k-ink` strokes);
what else was in a `style` becomes a presentation attribute.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

# Stand-ins: no two alike, none used by matplotlib itself. The real ones are in style.css.
COLOURS = {
    "ink": "#000101",
    "muted": "#000102",
    "grid": "#000103",
    "paper": "#000104",
    "band": "#000105",
    "core": "#000106",
    "tail": "#000107",
    "s0": "#000110",
    "s1": "#000111",
    "s2": "#000112",
    "s3": "#000113",
    "s4": "#000114",
    "s5": "#000115",
}
SERIES = 6
_NAME_OF = {colour: name for name, colour in COLOURS.items()}
_PREFIX = {"fill": "f", "stroke": "k"}
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
# Defaults of SVG, and properties that the style sheet sets: nothing to write.
_DROPPED = {
    "font-family",
    "font-style",
    "font-variant",
    "font-weight",
    "font-stretch",
    "text-align",
    "white-space",
}
_DEFAULTS = {
    ("stroke-linejoin", "miter"),
    ("stroke-linecap", "butt"),
    ("fill-opacity", "1"),
    ("stroke-opacity", "1"),
    ("opacity", "1"),
}
_FONT_SIZE = re.compile(r"([\d.]+)px")


def to_markup(figure: Figure, identifier: str, label: str) -> Markup:
    """Renders `figure` as an inline SVG whose ids start with `identifier`.

    `label` is what a screen reader says instead of the drawing.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    # What matplotlib has just written, so no untrusted document reaches this parser.
    root = ElementTree.fromstring(buffer.getvalue())
    _drop(root)
    names: dict[str, str] = {}
    for element in root.iter():
        if (old := element.get("id")) is not None:
            names[old] = f"{identifier}-{len(names)}"
    used: set[str] = set()
    for element in root.iter():
        _restyle(element, names, used)
    for element in root.iter():
        if (new := element.get("id")) is not None and new not in used:
            del element.attrib["id"]
    _flatten(root)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": label}
    # One decimal more than a phone can show; matplotlib writes six.
    text = ElementTree.tostring(root, encoding="unicode")
    return Markup(re.sub(r"(\d+\.\d\d)\d+", r"\1", text).replace("\n", ""))


def _drop(root: ElementTree.Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            tag = child.tag.rpartition("}")[2]
            if tag in ("style", "metadata") or (tag == "defs" and _is_empty_defs(child)):
                parent.remove(child)


def _is_empty_defs(element: ElementTree.Element) -> bool:
    return all(child.tag == f"{_SVG}style" for child in element)


def _restyle(element: ElementTree.Element, names: dict[str, str], used: set[str]) -> None:
    element.tag = element.tag.removeprefix(_SVG)
    attributes: dict[str, str] = {}
    classes: list[str] = []
    declarations = [d.partition(":") for d in element.attrib.pop("style", "").split(";") if d]
    pairs = [(k.strip(), v.strip()) for k, _, v in declarations] + [
        (k.removeprefix(_XLINK), v) for k, v in element.attrib.items()
    ]
    for key, value in pairs:
        if key in _PREFIX and value in _NAME_OF:
            classes.append(f"{_PREFIX[key]}-{_NAME_OF[value]}")
        elif key == "font":
            if size := _FONT_SIZE.search(value):
                attributes["font-size"] = size.group(1)
        elif key == "id":
            attributes["id"] = names[value]
        elif key == "href":
            used.add(names[value[1:]])
            attributes["href"] = f"#{names[value[1:]]}"
        elif key == "clip-path":
            used.add(names[value[5:-1]])
            attributes["clip-path"] = f"url(#{names[value[5:-1]]})"
        elif key not in _DROPPED and (key, value) not in _DEFAULTS:
            attributes[key] = value
    if classes:
        attributes["class"] = " ".join(classes)
    element.attrib = attributes


def _flatten(parent: ElementTree.Element) -> None:
    """Replaces groups that say nothing by their content; they are half of the bytes."""
    children: list[ElementTree.Element] = []
    for child in parent:
        _flatten(child)
        child.tail = None
        if child.tag == "g" and not child.attrib:
            children.extend(child)
        elif child.tag != "defs" or len(child):
            children.append(child)
    parent[:] = children
    if parent.tag not in ("text", "tspan", "title"):
        parent.text = None
