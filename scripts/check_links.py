#!/usr/bin/env python3
"""Checks the links of a built site: `scripts/check_links.py build/site`.

Every page, picture, script and style sheet that a page names has to be a file of the site, and
every anchor an element of its page. A site is read from a disk, so a link to a directory is wrong,
and so is anything that a page would fetch from elsewhere. Links to other sites are listed by
--external, and asked for by --fetch, which needs the network.

Python's standard library only. Exit code 1: a link is wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOLLOWED = {("a", "href")}
FETCHED = {
    ("img", "src"),
    ("script", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
    ("link", "href"),
}
STYLED = re.compile(r"url\(\s*['\"]?([^'\")]+)")
PATIENCE_S = 20


@dataclass
class Page(HTMLParser):
    """What a page names, and what it can be entered at."""

    anchors: set[str] = field(default_factory=set)
    followed: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif (tag, name) in FOLLOWED:
                self.followed.append(value or "")
            elif (tag, name) in FETCHED:
                self.fetched.append(value or "")


class Site:
    """The pages of a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.pages = {path: read_page(path) for path in sorted(self.root.rglob("*.html"))}

    def complaints(self) -> list[str]:
        """What is wrong, a line each with the file it stands in."""
        found = [
            f"{path.relative_to(self.root)}: {link!r} {why}"
            for path, page in self.pages.items()
            for link in dict.fromkeys([*page.followed, *page.fetched])
            if (why := self.wrong(path, link, is_fetched=link in page.fetched))
        ]
        return found + [
            f"{path.relative_to(self.root)}: {link!r} {why}"
            for path in sorted(self.root.rglob("*.css"))
            for link in STYLED.findall(path.read_text())
            if (why := self.wrong(path, link, is_fetched=True))
        ]

    def wrong(self, page: Path, link: str, *, is_fetched: bool) -> str:
        """Why a link leads nowhere; empty when it does not."""
        parts = urlsplit(link)
        if parts.scheme == "data":
            return ""
        if parts.scheme or parts.netloc:
            return "is fetched from elsewhere" if is_fetched else ""
        if parts.path.startswith("/"):
            return "begins at the root, which on a disk is another place"
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.is_file():
            return "is a directory" if target.is_dir() else "is not there"
        if not target.is_relative_to(self.root):
            return "is outside of the site"
        return self.wrong_anchor(target, unquote(parts.fragment))

    def wrong_anchor(self, target: Path, anchor: str) -> str:
        """Why an anchor is none; files that are no pages have none."""
        if not anchor or target not in self.pages or anchor in self.pages[target].anchors:
            return ""
        return f"names no element of {target.relative_to(self.root)}"

    def external(self) -> dict[str, Path]:
        """Links to other sites, each with the first page that has it."""
        found: dict[str, Path] = {}
        for path, page in self.pages.items():
            for link in page.followed:
                if urlsplit(link).scheme in ("http", "https"):
                    found.setdefault(link, path.relative_to(self.root))
        return found

    def links(self) -> int:
        """How many links were looked at."""
        return sum(len(page.followed) + len(page.fetched) for page in self.pages.values())


def read_page(path: Path) -> Page:
    """One page."""
    page = Page()
    page.feed(path.read_text())
    page.close()
    return page


def refusal(link: str) -> str:
    """Why another site does not give a page; empty when it does."""
    request = urllib.request.Request(link, method="HEAD", headers={"User-Agent": "links"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S):  # noqa: S310
            return ""
    except (urllib.error.URLError, OSError) as error:
        return str(error)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check the links of a built site.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--external", action="store_true", help="list the links to other sites")
    parser.add_argument("--fetch", action="store_true", help="and ask the network for them")
    options = parser.parse_args(arguments)
    site = Site(options.site)
    if not site.pages:
        parser.error(f"{options.site} has no pages; build them: make site")
    problems = site.complaints()
    for link, page in site.external().items() if options.external or options.fetch else ():
        why = refusal(link) if options.fetch else ""
        problems += [f"{page}: {link!r} {why}"] if why else []
        print(link)
    print(*problems, f"{site.links()} links in {len(site.pages)} pages", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
