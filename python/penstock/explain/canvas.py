"""A small SVG writer: shapes and text with escaped content, and the colours of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape as escape_markup
from xml.sax.saxutils import quoteattr

from penstock.plain import plain

PAPER = "#ffffff"
INK = "#1f2933"
MUTED = "#5f6c7b"
RULE = "#d5dbe1"
FAINT = "#f1f4f7"

# Eight colours that the colour-blind can tell apart (after Okabe and Ito), then darker ones of the
# same hues; every rank is also named in text, so that no fact hangs on colour alone.
_COLOURS = (
    "#3b82c4", "#e69f00", "#2a9d77", "#cc6699", "#d55e00", "#74b9e8", "#b8a500", "#7a5cb8",
    "#1f4e79", "#8f6300", "#155e46", "#8a3361", "#8a3d00", "#3d7ba6", "#6e6300", "#47307a",
)  # fmt: skip
MAX_COLOURS = len(_COLOURS)

_STYLE = (
    "<style>text{font-family:'Inter','Helvetica Neue','DejaVu Sans',Arial,sans-serif}"
    ".mono{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace}</style>"
)

_HOLE = (
    '<defs><pattern id="hole" width="6" height="6" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{PAPER}"/>'
    '<line x1="0" y1="0" x2="0" y2="6" stroke="#c3cbd3" stroke-width="2"/></pattern>'
    "</defs>"
)

Point = tuple[float, float]


def colour(rank: int) -> str:
    """The fill colour of a rank's bytes."""
    return _COLOURS[rank]


def escape(text: str) -> str:
    """Text as XML holds it."""
    return escape_markup(plain(text))


class Canvas:
    """Collects elements from top to bottom; `document` wraps them."""

    def __init__(self, width: float) -> None:
        self.width = width
        self._elements: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *,
        title: str = "", stroke: str = "none", opacity: float = 1, radius: float = 0,
        stroke_width: float = 1,
    ) -> None:  # fmt: skip
        """A rectangle; ``title`` is its tooltip and what a screen reader says."""
        attributes = _numbers(x=x, y=y, width=max(width, 0), height=height)
        attributes += f" fill={quoteattr(fill)}"
        if stroke != "none":
            attributes += f' stroke="{stroke}" stroke-width="{stroke_width:g}"'
        if opacity != 1:
            attributes += f' opacity="{opacity:g}"'
        if radius:
            attributes += f' rx="{radius:g}"'
        self._add("rect", attributes, title)

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = RULE) -> None:
        """A hairline."""
        self._add("line", _numbers(x1=x1, y1=y1, x2=x2, y2=y2) + f' stroke="{stroke}"')

    def band(
        self, top: tuple[float, float], y_top: float, bottom: tuple[float, float], y_bottom: float,
        fill: str, *, opacity: float, dashed: bool = False, title: str = "",
    ) -> None:  # fmt: skip
        """A flowing band from the interval ``top`` down to the interval ``bottom``."""
        middle = (y_top + y_bottom) / 2
        path = (
            f"M{top[0]:.1f} {y_top:.1f}"
            + _curve(top[0], bottom[0], middle, y_bottom)
            + f"H{bottom[1]:.1f}"
            + _curve(bottom[1], top[1], middle, y_top)
            + "Z"
        )
        attributes = f' d="{path}" fill={quoteattr(fill)} fill-opacity="{opacity:g}"'
        if dashed:
            attributes += f' stroke="{fill}" stroke-width="1.3" stroke-dasharray="4 3"'
        self._add("path", attributes, title)

    def target(self, x: float, y: float, width: float, height: float, title: str) -> None:
        """Shows nothing: around a small mark, so that a pointer finds its ``title``."""
        self.rect(x, y, width, height, INK, title=title, opacity=0)

    def dot(self, x: float, y: float, radius: float, fill: str, *, stroke: str = "none") -> None:
        """A disc, or with ``stroke`` a ring."""
        attributes = _numbers(cx=x, cy=y, r=radius) + f" fill={quoteattr(fill)}"
        if stroke != "none":
            attributes += f' stroke="{stroke}" stroke-width="2"'
        self._add("circle", attributes)

    def trace(
        self, points: Sequence[Point], stroke: str, *, width: float = 1.8, dashed: bool = False,
        title: str = "",
    ) -> None:  # fmt: skip
        """A line through points."""
        attributes = f' d="{_path(points)}" fill="none" stroke="{stroke}" stroke-width="{width:g}"'
        if dashed:
            attributes += ' stroke-dasharray="5 4"'
        self._add("path", attributes + ' stroke-linejoin="round"', title)

    def area(self, points: Sequence[Point], fill: str, *, opacity: float = 1) -> None:
        """What a closed line through points holds."""
        self._add("path", f' d="{_path(points)}Z" fill="{fill}" fill-opacity="{opacity:g}"')

    def text(
        self, x: float, y: float, content: str, *, size: float = 12, fill: str = INK,
        anchor: str = "start", weight: int = 400, mono: bool = False, upwards: bool = False,
    ) -> None:  # fmt: skip
        """One line of text on its base line, or ``upwards`` from it."""
        attributes = _numbers(x=x, y=y) + f' font-size="{size:g}" fill="{fill}"'
        if anchor != "start":
            attributes += f' text-anchor="{anchor}"'
        if weight != 400:
            attributes += f' font-weight="{weight}"'
        if mono:
            attributes += ' class="mono"'
        if upwards:
            attributes += f' transform="rotate(-90 {x:.2f} {y:.2f})"'
        self._elements.append(f"<text{attributes}>{escape(content)}</text>")

    def document(self, height: float, title: str, description: str) -> str:
        """The whole picture as self-contained SVG text, on paper."""
        paper = f'<rect width="{self.width:g}" height="{height:g}" fill="{PAPER}"/>'
        head = self._head(height, title, description, "")
        return "\n".join([*head, _STYLE, _HOLE, paper, *self._elements, "</svg>", ""])

    def inline(self, height: float, title: str, description: str, name: str) -> str:
        """The picture as part of a page, which gives fonts and paper; ids begin with ``name``."""
        head = self._head(height, title, description, f"{name}-")
        holes = [_HOLE] if any("url(#hole)" in e for e in self._elements) else []
        return "\n".join([*head, *holes, *self._elements, "</svg>"])

    def _head(self, height: float, title: str, description: str, prefix: str) -> list[str]:
        size = f"{self.width:g} {height:g}"
        names = f"{prefix}title {prefix}desc"
        return [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
            f'width="{self.width:g}" height="{height:g}" role="img" aria-labelledby="{names}">',
            f'<title id="{prefix}title">{escape(title)}</title>',
            f'<desc id="{prefix}desc">{escape(description)}</desc>',
        ]

    def _add(self, name: str, attributes: str, title: str = "") -> None:
        if title:
            self._elements.append(f"<{name}{attributes}><title>{escape(title)}</title></{name}>")
        else:
            self._elements.append(f"<{name}{attributes}/>")


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _curve(x_from: float, x_to: float, y_middle: float, y_to: float) -> str:
    return f"C{x_from:.1f} {y_middle:.1f} {x_to:.1f} {y_middle:.1f} {x_to:.1f} {y_to:.1f}"


def _numbers(**values: float) -> str:
    return "".join(f' {name}="{value:.2f}"' for name, value in values.items())
