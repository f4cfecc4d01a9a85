"""What MkDocs asks of us while it builds the site (mkdocs.yml)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import manual
import pages

_LIST = re.compile(r"^( *)(?:[-*+]|\d+\.) ")
_INTERVAL = re.compile(r"\[[\d.]+-[\d.]+\]")  # [1.30-2.52]
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Entries of the navigation that are directories become their pages."""
    config.theme.static_templates -= {"404.html", "sitemap.xml"}  # a server's, not a disk's
    for section in config.nav or []:
        for entries in section.values():
            entries[:] = [_expanded(entry) for entry in entries]
    return config


def _expanded(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    [(name, place)] = entry.items()
    if place == "man/":
        return {name: [f"man/{p.name}.md" for p in _manual_pages()]}
    if place.endswith("/"):
        files = sorted((pages.ROOT / "docs" / place).glob("*.md"))
        return {name: [f"{place}README.md", *(f"{place}{p.name}" for p in files)]}
    return entry


def _manual_pages() -> list[Path]:
    """Those of the whole first, then the commands."""
    found = (pages.ROOT / "docs" / "man").glob("penstock*.[0-9]")
    return sorted(found, key=lambda page: (page.stem != "penstock", page.name))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages that are not in docs/."""
    for page in _manual_pages():
        text = manual.markdown(page.read_text())
        files.append(File.generated(config, f"man/{page.name}.md", content=text))
    beside = pages.front_pages()
    of_docs = [f"{pages.DOCS}{file.src_uri}" for file in files if _is_read(file)]
    for path, text in (beside | pages.made_up([*beside, *of_docs])).items():
        files.append(_generated(config, path, text))
    return files


def _is_read(file: File) -> bool:
    return file.is_documentation_page() and file.abs_src_path is not None


def _generated(config: MkDocsConfig, path: str, text: str) -> File:
    """Sources are for who follows a link: neither in the navigation nor found by searching."""
    place = pages.place_of(path)
    is_source = place.startswith("source/")
    return File.generated(
        config,
        place,
        content=(_NOT_SEARCHED if is_source else "") + pages.on_site(text, path),
        inclusion=InclusionLevel.NOT_IN_NAV if is_source else InclusionLevel.INCLUDED,
    )


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """What is written for CommonMark, as Python-Markdown reads it."""
    if page.file.generated_by is None:
        markdown = pages.on_site(markdown, pages.DOCS + page.file.src_uri)
    return "\n".join(_lists(markdown.replace("<details>", '<details markdown="1">')))


def on_page_content(html: str, **_: Any) -> str:
    """An interval stays in one line."""
    return _INTERVAL.sub(r'<span class="interval">\g<0></span>', html)


def _lists(markdown: str) -> Iterator[str]:
    """A list needs an empty line before it, and what continues an entry stands four columns in."""
    depth = 0  # columns of the text of the entry that a line may continue
    before = ""
    for line, is_code in pages.with_code(markdown):
        entry = None if is_code else _LIST.match(line)
        indent = len(line) - len(line.lstrip())
        if line.strip() and not entry and not is_code and indent < depth:
            depth = 0
        if entry and depth == 0 and before.strip():
            yield ""
        yield "    " + line[depth:] if depth and indent >= depth else line
        depth = entry.end() if entry else depth
        before = line
