"""Reports as a browser shows them: drawn, quiet, without network, on paper, with and without
JavaScript, light and dark, on a phone; and hostile names that stay names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import chromium
import made_reports
from chromium import Chromium
from penstock import joblog
from penstock.report import job, page

pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page on a session of two cells and three ways."""
    where = tmp_path_factory.mktemp("report")
    ways = {"two_phase": 1.4e9, "individual": 1.0e9, "cyclic": 0.7e9}
    samples = made_reports.session({"small": ways, "large": {v: r / 2 for v, r in ways.items()}})
    sizes = {"small": {"bufsize": "64KiB"}, "large": {"bufsize": "4MiB"}}
    made = made_reports.report_on(made_reports.write(where / "samples.jsonl", samples, sizes))
    return shown(made, where)


def shown(made: page.Report, where: Path) -> Path:
    path = where / "report.html"
    path.write_text(page.html(made), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Chromium, results: Path) -> Chromium:
    """The page on a large light screen, with JavaScript."""
    browser.scripts(allowed=True)
    browser.media("screen", "light")
    browser.sized(1200, 900)
    browser.open(results)
    return browser


def visible(browser: Chromium, selector: str) -> list[dict[str, float]]:
    """The boxes of what matches and is shown."""
    found = browser.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(e => e.getBoundingClientRect())"
        ".filter(b => b.width > 0 && b.height > 0)"
        ".map(b => ({x: b.x, y: b.y, width: b.width, height: b.height, right: b.right}))"
    )
    assert isinstance(found, list)
    return found


def test_every_figure_is_drawn_and_nothing_is_said_on_the_console(opened: Chromium) -> None:
    figures = opened.evaluate("document.querySelectorAll('figure').length")
    assert figures >= 9
    drawn = visible(opened, "figure svg")
    assert len(drawn) == figures
    assert all(box["height"] > 40 and box["width"] > 300 for box in drawn)
    assert opened.console == []


def test_nothing_is_asked_of_the_network(opened: Chromium, results: Path) -> None:
    assert [r for r in opened.requests if not r.startswith("data:")] == [results.as_uri()]


def test_the_policy_lets_no_script_but_ours_run_and_nothing_be_fetched(opened: Chromium) -> None:
    opened.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned=1\">');"
        "const s = document.createElement('script'); s.textContent = 'window.pwned=2';"
        "document.body.append(s)"
    )
    refused = opened.evaluate("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')")
    assert refused == "refused"
    assert opened.evaluate("typeof window.pwned") == "undefined"
    assert any("Content Security Policy" in line for line in opened.console)


def test_a_mark_says_its_numbers_when_the_pointer_is_on_it(opened: Chromium) -> None:
    opened.evaluate("document.querySelector('#fig-ranking-1').scrollIntoView()")
    mark = visible(opened, "#fig-ranking-1 .wide [data-tip]")[0]
    assert visible(opened, ".tip") == []
    opened.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    assert len(visible(opened, ".tip")) == 1
    said = opened.evaluate("document.querySelector('.tip').textContent")
    assert re.search(r"two_phase, application rate: .* \[.*\] n=10", said)
    opened.move(2, 2)
    assert visible(opened, ".tip") == []


def test_a_screen_reader_is_told_what_every_figure_shows(opened: Chromium) -> None:
    names = opened.evaluate(
        "[...document.querySelectorAll('figure svg')].map(e => [e.getAttribute('role'),"
        "e.getAttribute('aria-label'),"
        "document.getElementById(e.getAttribute('aria-describedby')).textContent])"
    )
    assert all(role == "img" and name and len(text) > 40 for role, name, text in names)


def test_ids_are_unique(opened: Chromium) -> None:
    ids = opened.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_without_javascript_the_figures_are_there(browser: Chromium, results: Path) -> None:
    browser.media("screen", "light")
    browser.sized(1200, 900)
    browser.scripts(allowed=True)
    browser.open(results)
    with_scripts = browser.screenshot(whole=True)
    browser.scripts(allowed=False)
    browser.open(results)
    without = browser.screenshot(whole=True)
    browser.scripts(allowed=True)
    assert browser.console == []
    assert without == with_scripts


def test_in_the_dark_paper_is_dark_and_ink_is_light(opened: Chromium) -> None:
    opened.media("screen", "dark")
    ground, ink, drawn_ink = opened.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        "getComputedStyle(document.querySelector('figure svg text')).fill]"
    )
    assert lightness(ground) < 40
    assert lightness(ink) > 180
    assert lightness(drawn_ink) > 140
    assert opened.console == []


def lightness(colour: str) -> float:
    """The mean of a colour's parts, 0 to 255."""
    parts = [float(n) for n in re.findall(r"[\d.]+", colour)[:3]]
    return sum(parts) / 3


def test_on_a_phone_nothing_is_wider_than_the_screen(opened: Chromium) -> None:
    opened.sized(390, 844, mobile=True)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    letters = opened.evaluate(
        "[...document.querySelectorAll('.narrow svg')].filter(s => s.getBoundingClientRect().width)"
        ".map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    )
    assert letters
    assert min(letters) > 0.85  # letters of 11 stay letters of 9 and more


def test_on_paper_there_is_no_navigation_and_every_figure(opened: Chromium) -> None:
    opened.media("print", "dark")
    assert visible(opened, "nav") == []
    assert len(visible(opened, "figure svg")) == opened.evaluate(
        "document.querySelectorAll('figure').length"
    )
    assert lightness(opened.evaluate("getComputedStyle(document.body).color")) < 80
    printed = opened.pdf()
    assert printed.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 2 <= pages <= 12


@pytest.mark.parametrize("of", ["results", "job"])
def test_hostile_names_stay_names(browser: Chromium, tmp_path: Path, of: str) -> None:
    if of == "results":
        made = made_reports.report_on(made_reports.hostile_results(tmp_path / "samples.jsonl"))
    else:
        log = made_reports.hostile_job(tmp_path / "log.json")
        made = job.report(str(log), joblog.load(log))
    browser.scripts(allowed=True)
    browser.media("screen", "light")
    browser.sized(1200, 900)
    browser.open(shown(made, tmp_path))
    assert browser.evaluate("typeof window.pwned") == "undefined"
    assert browser.console == []
    assert len(browser.requests) == 1
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.querySelectorAll('img, a[href^=\"javascript\"]').length") == 0
    assert "<script>window.pwned=1</script>" in browser.evaluate("document.body.textContent")


def test_the_test_would_see_a_script_that_runs(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    path.write_text(f"<body>{made_reports.HOSTILE[0]}<script>nope()</script></body>")
    browser.scripts(allowed=True)
    browser.open(path)
    assert browser.evaluate("window.pwned") == 1
    assert "nope is not defined" in " ".join(browser.console)
