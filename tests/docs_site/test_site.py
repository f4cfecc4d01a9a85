"""The site has every page, with all that the page has where it lies, and no dead link."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import check_links
import docs_site
import pages
import pytest
from markdown_it import MarkdownIt

ROOT = pages.ROOT
WRITTEN = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
COUNTED = [
    "table",
    "tr",
    "td",
    "th",
    "li",
    "ul",
    "ol",
    "pre",
    "img",
    "h1",
    "h2",
    "h3",
    "strong",
    "em",
    "blockquote",
]


class Elements(HTMLParser):
    """How many elements of each kind a text has, or the article of a page."""

    def __init__(self, html: str, *, article: bool) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self._within = not article
        self.feed(html)

    def handle_starttag(self, tag: str, _: object) -> None:
        self._within = self._within or tag == "article"
        if self._within and tag in COUNTED:
            self.found[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self._within = self._within and tag != "article"


def page_of(site: Path, source: Path) -> Path:
    place = pages.place_of(source.relative_to(ROOT).as_posix())
    return site / place.replace("README.md", "index.md").replace(".md", ".html")


@pytest.mark.parametrize("source", WRITTEN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_page_shows_what_commonmark_shows(site: Path, source: Path) -> None:
    """The pages are written for CommonMark; the site's own reader differs in lists and more."""
    commonmark = MarkdownIt("commonmark", {"html": True}).enable("table")
    expected = Elements(commonmark.render(source.read_text()), article=False).found
    assert Elements(page_of(site, source).read_text(), article=True).found == expected


def test_every_page_of_the_navigation_can_be_chosen(site: Path) -> None:
    """A page that the theme takes for the front of a section has no entry of its own."""
    html = (site / "bench.html").read_text()
    entries = re.findall(r'<a href="([^"]+)" class="md-nav__link(?: md-nav__link--active)?"', html)
    expected = {page_of(site, path).relative_to(site).as_posix() for path in WRITTEN}
    assert expected - set(entries) == set()


def test_every_manual_page_is_there(site: Path) -> None:
    manuals = sorted(p.name for p in (ROOT / "docs" / "man").iterdir())
    assert [f"{name}.html" for name in manuals] == sorted(p.name for p in (site / "man").iterdir())
    text = (site / "man" / "penstock-run.1.html").read_text()
    assert "<strong>--method</strong> <em>METHOD</em>" in text
    assert '<a href="penstock.1.html">penstock(1)</a>' in text


def test_no_link_is_dead_and_nothing_comes_from_elsewhere(site: Path) -> None:
    checked = check_links.Site(site)
    assert checked.complaints() == []
    assert len(checked.pages) > 80
    assert checked.links() > 5000


@pytest.mark.parametrize(
    ("sown", "why"),
    [
        ('<a href="nowhere.html">x</a>', "concepts.html: 'nowhere.html' is not there"),
        ('<a href="methods.html#no">x</a>', "'methods.html#no' names no element of methods.html"),
        ('<a href="#no">x</a>', "'#no' names no element of concepts.html"),
        ('<img src="images/no.svg">', "'images/no.svg' is not there"),
        ('<img src="https://example.org/x.png">', "is fetched from elsewhere"),
        ('<script src="//example.org/x.js"></script>', "is fetched from elsewhere"),
        ('<a href="decisions">x</a>', "'decisions' is a directory"),
        ('<a href="/methods.html">x</a>', "begins at the root"),
    ],
)
def test_a_dead_link_is_found(site: Path, tmp_path: Path, sown: str, why: str) -> None:
    copy = tmp_path / "site"
    copy.mkdir()
    for name in ("concepts.html", "methods.html"):
        shutil.copy(site / name, copy)
    (copy / "decisions").mkdir()
    page = copy / "concepts.html"
    page.write_text(page.read_text().replace("</article>", f"{sown}</article>"))
    assert [line for line in check_links.Site(copy).complaints() if why in line]


def test_what_a_style_sheet_names_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "x.css").write_text("p { background: url('no.png') }")
    assert check_links.Site(tmp_path).complaints() == ["x.css: 'no.png' is not there"]


def test_a_dead_link_in_a_page_s_source_fails_the_build(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "scripts/site_parts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("raw"))
    for name in ("bench", "examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    with (tmp_path / "docs" / "concepts.md").open("a") as page:
        page.write("\n[gone](gone.md) [changed](methods.md#gone)\n")
    assert not docs_site.build(tmp_path / "mkdocs.yml", tmp_path / "site")
    said = capfd.readouterr().err
    assert "'gone.md', but the target is not found" in said
    assert "'methods.md#gone', but the doc 'methods.md' does not contain an anchor" in said
