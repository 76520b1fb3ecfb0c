"""What every page has: its templates, its one style sheet and its one script, and the policy that forbids all else."""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from .text import breakable, count, marked

_TEMPLATES = Path(__file__).parent / "templates"


@functools.cache
def _template(name: str) -> Template:
    """It takes longer to compile than to fill."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # it would compile for longer than it saves where a template is filled once
    )
    environment.filters.update(count=count, breakable=breakable, marked=marked)
    return environment.get_template(name)


def filled(name: str, **values: Any) -> str:
    """The page of a template of templates/."""
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = (_TEMPLATES / "script.js").read_text(encoding="utf-8")
    return _template(name).render(policy=policy(style, script), style=Markup(style), script=Markup(script), **values)


def policy(style: str, script: str) -> str:
    """Forbids everything but the style and the script given; inline `style=` is blocked too."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; "
        f"script-src 'sha256-{digest(script)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
