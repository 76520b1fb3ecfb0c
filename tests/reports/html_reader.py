"""Reads a page back, as far as the tests must."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "input", "img", "hr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    @property
    def words(self) -> str:
        """Its text, with single blanks."""
        return " ".join(self.text.replace("\u200b", "").split())

    def section(self, identifier: str) -> Node:
        (found,) = self.all("section", id=identifier)
        return found

    def all(self, tag: str | None = None, **attributes: str) -> list[Node]:
        """Every node below with this tag and these attributes, in the page's order."""
        wanted = [(k.rstrip("_"), v) for k, v in attributes.items()]
        found: list[Node] = []
        waiting = self.children[::-1]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                continue
            if tag in (None, node.tag) and all(node.attributes.get(k) == v for k, v in wanted):
                found.append(node)
            waiting += node.children[::-1]
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]
        self.unbalanced: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self.open[-1].tag != tag:
            self.unbalanced.append(tag)
        while len(self.open) > 1 and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


@functools.lru_cache(maxsize=16)  # to read a page takes about as long as to draw it, and many tests look at the same ones
def read(text: str) -> Node:
    """The page as a tree, not to be changed; fails where a tag is closed that is not the one open."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.unbalanced == []
    assert len(reader.open) == 1
    return reader.root
