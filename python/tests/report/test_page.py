"""The page and its Markdown: self-contained, complete, and of strangers' texts only text."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import made_reports
from penstock import joblog
from penstock.plain import plain
from penstock.report import job, markdown, page
from penstock.report.model import Caution, Command, Report, Section, Table, Verdict

REPORTS = ["results", "hostile results", "job", "hostile job"]


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Report:
    match request.param:
        case "results":
            levels = {c: {"x": 2e9, "y": 1e9} for c in ("a", "b")}
            samples = made_reports.session(levels)
            return made_reports.report_on(made_reports.write(tmp_path / "s.jsonl", samples))
        case "hostile results":
            return made_reports.report_on(made_reports.hostile_results(tmp_path / "s.jsonl"))
        case "job":
            return job.report("log.json", joblog.load(made_reports.JOB_LOG))
        case _:
            log = joblog.load(made_reports.hostile_job(tmp_path / "log.json"))
            return job.report(made_reports.HOSTILE[0], log)


class Seen(HTMLParser):
    """Elements with their attributes, and the texts of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in = tag

    def handle_data(self, data: str) -> None:
        self.texts[self._in] = self.texts.get(self._in, "") + data

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - as the base class calls it
        self._in = ""


@pytest.mark.parametrize("made", REPORTS, indirect=True)
def test_the_page_is_one_file_without_addresses(made: Report) -> None:
    seen = Seen(page.html(made))
    for tag, attributes in seen.elements:
        assert tag not in {"img", "iframe", "object", "embed", "base", "form", "input"}
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("href", "src", "xlink:href", "action"):
            target = attributes.get(name)
            assert target is None or re.match(r"#[a-z]+$|data:,$", target)
    assert [tag for tag, _ in seen.elements].count("script") == 1


@pytest.mark.parametrize("made", REPORTS, indirect=True)
def test_the_policy_knows_the_script_and_the_style_by_their_hashes(made: Report) -> None:
    seen = Seen(page.html(made))
    policy = next(a["content"] for t, a in seen.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(seen.texts[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("made", ["results"], indirect=True)
def test_the_verdict_comes_first_and_every_part_is_there(made: Report) -> None:
    text = page.html(made)
    parts = ("time", "ranked", "maps", "phases", "plan", "machine", "warnings", "commands")
    order = [text.index("<h1>"), *(text.index(f'<section id="{n}">') for n in parts)]
    assert order == sorted(order)
    assert made.verdict.headline in text


@pytest.mark.parametrize("made", ["results"], indirect=True)
def test_every_figure_is_in_the_page_for_both_widths_with_its_numbers(made: Report) -> None:
    text = page.html(made)
    assert made.figures
    for f in made.figures:
        figure = text.partition(f'<figure id="fig-{f.name}">')[2].partition("</figure>")[0]
        assert figure.count("<svg") == (1 if f.fixed else 2)
        assert "<table>" in figure


@pytest.mark.parametrize("make", [page.html, markdown.markdown])
@pytest.mark.parametrize("made", ["hostile results", "hostile job"], indirect=True)
def test_what_cannot_be_shown_is_replaced(made: Report, make: object) -> None:
    text = make(made)  # type: ignore[operator]
    assert plain(text) == text
    text.encode("utf-8")
    assert "\ufffd" in text


@pytest.mark.parametrize("made", ["hostile results", "hostile job"], indirect=True)
def test_markdown_of_hostile_names_holds_no_markup(made: Report) -> None:
    text = re.sub(r"(?ms)^```+sh\n.*?\n```+$", "", markdown.markdown(made))
    assert "<" not in text
    assert not re.search(r"!\[|\]\(|://|@\w", text)


def small(**more: object) -> Report:
    values: dict[str, object] = {
        "title": "t",
        "subtitle": "s",
        "verdict": Verdict("x is the fastest.", "shown"),
        "sections": (Section("ranked", "Ranked", (), (Table(("a", "b"), (("1|2", "@bob"),)),)),),
    }
    return Report(**(values | more))  # type: ignore[arg-type]


def test_a_table_of_markdown_keeps_its_columns_and_mentions_nobody() -> None:
    lines = markdown.markdown(small()).splitlines()
    row = next(line for line in lines if "bob" in line)
    assert row == "| 1&#124;2 | &#64;&#8203;bob |"


def test_a_command_cannot_leave_its_fence() -> None:
    line = "penstock report '```\n<b>'"
    text = markdown.markdown(small(commands=(Command("again", line),)))
    assert "````sh\npenstock report '``` <b>'\n````" in text


def test_grave_cautions_say_so_without_colour() -> None:
    report = small(cautions=(Caution("bytes are wrong", "keep the file", grave=True),))
    assert "Grave:" in page.html(report)
    assert "**Grave:** bytes are wrong (keep the file)" in markdown.markdown(report)


def test_words_of_markdown_stay_readable_where_they_can() -> None:
    assert markdown.text("two_phase (writers=4)") == "two_phase (writers=4)"
    assert markdown.text("950 MiB/s [935-973] n=8") == "950 MiB/s [935-973] n=8"
    assert markdown.text("_x_ *y*") == "&#95;x&#95; &#42;y&#42;"
    assert markdown.text("[a](b) ![c][d]") == "[a&#93;(b) &#33;[c&#93;[d]"
    assert markdown.text("[a]: b, #12") == "[a&#93;: b, &#35;&#8203;12"


def test_nothing_is_mentioned_or_linked_when_entities_are_resolved() -> None:
    """GitHub resolves them first."""
    names = "@bob, @org/team, (a@b.org) owner/repo#12 #12, www.x.org WWW.x.org http://www.x.org"
    resolved = html.unescape(markdown.text(names))
    assert not re.search(r"@\w|#\d|\bwww\.", resolved, re.IGNORECASE)
    assert resolved.replace("\u200b", "") == names
