"""Figures: well-formed whatever they are called, with their numbers, and every text within."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import made_reports
from penstock import joblog
from penstock.bench.differences import Side, differences
from penstock.bench.store import Results, load
from penstock.bench.summary import summarise
from penstock.report import job
from penstock.report.figures import plan, ranking, ratios
from penstock.report.figures.frame import (
    DARK,
    NARROW,
    PHASES,
    WIDE,
    Figure,
    shortened,
    text_width,
    ticks,
)
from penstock.report.figures.rates import KINDS
from penstock.report.model import Report

SVG = "{http://www.w3.org/2000/svg}"


def of_session(tmp_path: Path) -> Report:
    ways = {"two_phase": 1.4e9, "a variant with a name that is longer than its column": 1.0e9}
    samples = made_reports.session({"small": ways, "large": {v: 2 * r for v, r in ways.items()}})
    sizes = {"small": {"bufsize": "64KiB"}, "large": {"bufsize": "4MiB"}}
    return made_reports.report_on(made_reports.write(tmp_path / "s.jsonl", samples, sizes))


def of_hostile_session(tmp_path: Path) -> Report:
    return made_reports.report_on(made_reports.hostile_results(tmp_path / "s.jsonl"))


def of_job(tmp_path: Path) -> Report:
    return job.report("log.json", joblog.load(made_reports.JOB_LOG))


def of_hostile_job(tmp_path: Path) -> Report:
    return job.report("log.json", joblog.load(made_reports.hostile_job(tmp_path / "log.json")))


REPORTS = [of_session, of_hostile_session, of_job, of_hostile_job]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - ours


@pytest.mark.parametrize("report", REPORTS)
def test_every_figure_is_well_formed_and_says_what_it_shows(report: object, tmp_path: Path) -> None:
    figures = report(tmp_path).figures  # type: ignore[operator]
    assert figures
    assert len({f.name for f in figures}) == len(figures)
    for f in figures:
        assert re.fullmatch(r"[a-z0-9-]+", f.name)
        for svg in (f.svg(), f.inline(WIDE), f.inline(NARROW)):
            root = parsed(svg)
            assert len(root.findtext(f"{SVG}title") or "") > 4
            assert len(root.findtext(f"{SVG}desc") or "") > 20


@pytest.mark.parametrize("report", REPORTS)
def test_no_script_no_link_and_no_handler_is_in_a_figure(report: object, tmp_path: Path) -> None:
    allowed = {"svg", "title", "desc", "style", "defs", "pattern", "rect", "line", "path",
               "circle", "text"}  # fmt: skip
    for f in report(tmp_path).figures:  # type: ignore[operator]
        for element in parsed(f.svg()).iter():
            assert element.tag.removeprefix(SVG) in allowed
            assert not any(a.startswith("on") or "href" in a for a in element.attrib)


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_text_leaves_its_figure(report: object, width: float, tmp_path: Path) -> None:
    for f in report(tmp_path).figures:  # type: ignore[operator]
        if f.fixed:
            continue
        for begin, end, content in text_ends(f, width):
            assert begin >= -2, (f.name, content)
            assert end <= width + 2, (f.name, content)


def text_ends(figure: Figure, width: float) -> list[tuple[float, float, str]]:
    """Where texts begin and end, by a mean width of letters as narrow as DejaVu's are."""
    found = []
    for t in parsed(figure.inline(width)).iter(f"{SVG}text"):
        if t.get("transform"):  # upwards
            continue
        content = t.text or ""
        length = text_width(content, float(t.get("font-size", "12"))) * 0.95
        x = float(t.get("x", "0"))
        begin = {"end": x - length, "middle": x - length / 2}.get(t.get("text-anchor", ""), x)
        found.append((begin, begin + length, content))
    return found


def test_the_ranking_shows_both_rates_with_intervals_and_the_verdict(tmp_path: Path) -> None:
    figure = next(f for f in of_session(tmp_path).figures if f.name == "ranking-1")
    texts = " ".join(parsed(figure.svg()).itertext())
    assert re.search(r"two_phase, application rate: \S+ [MG]iB/s \[\S+\] n=10, spread \d+ %", texts)
    assert re.search(r"two_phase, actual rate: ", texts)
    assert "slower: 0.7" in texts


def test_a_longer_interval_is_drawn_longer(tmp_path: Path) -> None:
    """The picture is of the numbers: a noisy way's line is wider than a quiet one's."""
    quiet = made_reports.session({"c": {"x": 1e9}}, cv=0.002, n=12)
    noisy = made_reports.session({"c": {"y": 1e9}}, cv=0.2, n=12)
    made = made_reports.report_on(made_reports.write(tmp_path / "s.jsonl", quiet + noisy))
    figure = next(f for f in made.figures if f.name == "ranking-1")
    widths = {
        (t.text or "").split(",")[0]: float(rect.get("width", "0"))
        for rect in parsed(figure.svg()).iter(f"{SVG}rect")
        for t in rect.findall(f"{SVG}title")
        if "application" in (t.text or "")
    }
    assert widths["y"] > 3 * widths["x"]


def test_a_run_that_recorded_its_course_shows_median_and_range_by_bin(tmp_path: Path) -> None:
    figure = next(f for f in of_session(tmp_path).figures if f.name.startswith("run-"))
    texts = list(parsed(figure.svg()).itertext())
    # 64 MiB in 8 bins of 0.05 s: 8 MiB in each
    assert any("0 to 0.05 s; application rate 160 MiB/s [160-160]" in t for t in texts)


def test_phases_are_as_long_as_their_seconds(tmp_path: Path) -> None:
    figure = next(f for f in of_session(tmp_path).figures if f.name == "phases-1")
    widths = {
        (t.text or "").split()[1]: float(rect.get("width", "0"))
        for rect in parsed(figure.svg()).iter(f"{SVG}rect")
        for t in rect.findall(f"{SVG}title")
        if (t.text or "").startswith("two_phase:")
    }
    assert widths["write"] == pytest.approx(2 * widths["sync"], rel=0.1)
    assert "compute" not in widths


def test_a_comparison_is_drawn_around_one() -> None:
    sides = []
    for name, seed in (("a", 1), ("b", 2)):
        results = Results()
        level = {"x": 1e9 * seed, "y": 1e9 / seed}
        for s in made_reports.session({"c": level}, seed=seed):
            results.add(s)
        sides.append(Side(name, results))
    found = differences(*sides)
    root = parsed(ratios.figure(found.differences, found.margin).svg())
    dots = [float(c.get("cx", "0")) for c in root.iter(f"{SVG}circle")]
    one = next(float(t.get("x", "0")) for t in root.iter(f"{SVG}text") if t.text == "1")
    assert dots[0] > one > dots[1]
    assert dots[0] - one == pytest.approx(one - dots[1], rel=0.2)  # twice as far as half


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_rows_of_a_comparison_are_told_apart(width: float) -> None:
    results = Results()
    names = [f"bufsize={size}KiB,pattern=interleaved:{n},ranks=4" for size in (4, 64) for n in "12"]
    for s in made_reports.session({name: {"designated_writer": 1e9} for name in names}, n=6):
        results.add(s)
    found = differences(Side("a", results), Side("b", results), KINDS)
    figure = ratios.figure(found.differences, 0.03)
    drawn = " ".join(content for _, _, content in text_ends(figure, width))
    for name in names:
        assert drawn.count(name.replace(",", ", ")) == len(KINDS)
    assert drawn.count("designated_writer, actual rate") == len(names)


def test_no_line_crosses_words_where_a_comparison_is_narrow() -> None:
    results = Results()
    for s in made_reports.session({"c": {"x": 1e9, "y": 1e9}}, n=6):
        results.add(s)
    found = differences(Side("a", results), Side("b", results), KINDS)
    root = parsed(ratios.figure(found.differences, 0.03).inline(NARROW))
    heights = [float(t.get("y", "0")) for t in root.iter(f"{SVG}text")]
    for line in root.iter(f"{SVG}line"):
        y1, y2 = float(line.get("y1", "0")), float(line.get("y2", "0"))
        assert not any(y1 < y < y2 for y in heights)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_numbers_are_never_shortened(tmp_path: Path, width: float) -> None:
    levels = {"own writes of an application": {"a": 1e9, "b": 1e9}, "c": {"a": 1e9, "b": 7e6}}
    made = made_reports.session(levels, cv=1.5, n=6)
    path = made_reports.write(tmp_path / "s.jsonl", made)
    results = load(path)
    found = differences(Side("a", results, "a"), Side("b", results, "b"), KINDS)
    drawn = [content for _, _, content in text_ends(ratios.figure(found.differences, 0.03), width)]
    for d in found.differences:
        assert any(ratios.said(d) in t for t in drawn), drawn
        assert any(f"{d.rate} rate" in t for t in drawn), drawn
    cells = summarise(results).cells
    ranked = [t for c in cells for _, _, t in text_ends(ranking.figure(1, c), width)]
    for cell in cells:
        for v in cell.writing:
            assert ranking.standing(cell, v) in ranked


@pytest.mark.parametrize(
    ("pattern", "draws"),
    [
        ("contiguous", True),
        ("interleaved:47008", True),
        ("slabs3d", True),
        ("cubes3d", True),
        ("irregular", False),
        ("<script>", False),
    ],
)
@pytest.mark.parametrize("workers", [1, 2, 6, 64])
def test_a_plan_is_drawn_small_or_said_not_to_be(pattern: str, draws: bool, workers: int) -> None:
    work = plan.Work("two_phase + messages + pwrite + none + written", workers, pattern)
    made = plan.figure(work)
    assert isinstance(made, Figure) == draws
    if isinstance(made, Figure):
        assert "two_phase" in made.title
        assert (f"8 of its {workers} workers" in made.caption) == (workers > 8)
        parsed(made.svg())
    else:
        assert "no small example" in made.why


def test_a_method_that_is_none_is_not_drawn() -> None:
    made = plan.figure(plan.Work("nonsense", 2, "contiguous"))
    assert isinstance(made, plan.NotDrawn)
    assert "nonsense" in made.why


@pytest.mark.parametrize("end", [1e-9, 0.03, 1, 7, 999, 1e12])
def test_axes_begin_at_zero_and_reach_the_end_in_round_steps(end: float) -> None:
    marks = ticks(end)
    assert marks[0] == 0
    assert marks[-1] >= end * (1 - 1e-9)
    assert marks[-2] < end
    assert 3 <= len(marks) <= 7


def test_a_long_name_keeps_both_ends() -> None:
    text = shortened("romio-openmpi5,cb_buffer_size=4194304", 120, 12)
    assert text.startswith("romio")
    assert text.endswith("304")
    assert text_width(text, 12) <= 120
    assert shortened("short", 120, 12) == "short"


def test_in_the_dark_phases_are_as_many_colours_as_in_the_light() -> None:
    assert len({DARK.get(colour, colour) for colour in PHASES}) == len(PHASES)
