"""The site as a browser shows it from a disk: quiet, drawn, light and dark, searched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import chromium
from chromium import Chromium

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is not installed")
PAGES = [
    "index.html",
    "algorithms.html",
    "report.html",
    "benchmarks/peers.html",
    "man/penstock-run.1.html",
    "source/examples/bench/index.html",
]
PATIENCE_S = 10


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        started.sized(1400, 1000)
        started.call(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        yield started


def until(browser: Chromium, expression: str) -> object:
    """The first value of an expression that is not empty."""
    end = time.monotonic() + PATIENCE_S
    while not (value := browser.evaluate(expression)) and time.monotonic() < end:
        time.sleep(0.05)
    return value


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_and_whole(browser: Chromium, site: Path, page: str) -> None:
    browser.open(site / page)
    images = "[...document.querySelectorAll('article img')]"
    assert browser.evaluate(f"{images}.filter(i => i.naturalWidth == 0).map(i => i.src)") == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= 1400
    assert browser.console == []
    here = site.resolve().as_uri()
    assert [r for r in browser.requests if not r.startswith((here, "data:"))] == []


def test_the_plans_are_drawn(browser: Chromium, site: Path) -> None:
    browser.open(site / "algorithms.html")
    widths = browser.evaluate("[...document.querySelectorAll('article img')].map(i => i.width)")
    assert len(widths) >= 8
    assert min(widths) > 500


def test_it_is_as_light_or_dark_as_the_system(browser: Chromium, site: Path) -> None:
    light = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    for scheme in ("light", "dark"):
        browser.media("screen", scheme)
        browser.open(site / "concepts.html")
        seen[scheme] = [int(n) for n in browser.evaluate(f"{light}.match(/[0-9]+/g)")[:3]]
    browser.media("screen", "light")
    assert min(seen["light"]) > 240
    assert max(seen["dark"]) < 80


def test_searching_finds_a_word_and_leads_to_it(browser: Chromium, site: Path) -> None:
    browser.open(site / "tutorial.html")
    browser.evaluate("document.querySelector('.md-search__input').focus()")
    browser.call("Input.insertText", text="striping_unit")
    link = until(browser, "document.querySelector('.md-search-result__link')?.href")
    assert browser.console == []
    found = browser.evaluate(
        "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href.split('?')[0])"
    )
    assert link
    assert (site / "reference" / "hints.html").resolve().as_uri() in found


def test_a_phone_shows_it_without_scrolling_sideways(browser: Chromium, site: Path) -> None:
    browser.sized(390, 844, mobile=True)
    for page in PAGES:
        browser.open(site / page)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390, page
    browser.sized(1400, 1000)
