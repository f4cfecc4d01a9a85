"""A report as one HTML file that loads nothing.

Jinja escapes every text; figures escape their own (penstock.explain.canvas). Should either fail,
the page's Content-Security-Policy still runs no script but ours, known by its hash, and lets
nothing be fetched from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from penstock import __version__
from penstock.plain import plain
from penstock.report.figures.frame import DARK, NARROW, WIDE, Figure
from penstock.report.model import Report, Sure

# How many commands stand open; a session's own, one per measurement, are folded away.
_FEW_COMMANDS = 6
SURE: dict[Sure, str] = {
    "shown": "How sure: shown at 95 %",
    "not told apart": "How sure: not told apart",
    "mixed": "How sure: shown in part",
    "not compared": "How sure: compared with nothing",
    "single run": "How sure: one run, compared with nothing",
    "wrong": "Wrong or failed: read the warnings",
}


def html(report: Report) -> str:
    """The page."""
    environment = _environment()
    style = environment.get_template("page.css.j2").render(palette=DARK)
    script = resources.files(__package__).joinpath("templates/page.js").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        report=report,
        sure=SURE[report.verdict.sure],
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704 - ours, and made of our constants
        script=Markup(script),  # noqa: S704 - ours
        svg=_svg,
        wide=WIDE,
        narrow=NARROW,
        few=_FEW_COMMANDS,
        version=__version__,
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("penstock.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalize(value: Any) -> Any:
    """What a page cannot hold is taken out of every text; markup of ours is left alone."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _svg(figure: Figure, width: float) -> Markup:
    return Markup(figure.inline(width))  # noqa: S704 - the canvas escapes


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    """As a policy names an element whose text this is."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
