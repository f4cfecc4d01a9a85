"""Figures as files, and files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import made_reports
from penstock.errors import ArgumentError, UnsupportedError, WriteError
from penstock.report import export
from penstock.report.model import Report, Verdict


@pytest.fixture
def made(tmp_path: Path) -> Report:
    samples = made_reports.session({"c": {"x": 2e9, "y": 1e9}})
    return made_reports.report_on(made_reports.write(tmp_path / "s.jsonl", samples))


def test_every_figure_becomes_an_svg_of_its_name(made: Report, tmp_path: Path) -> None:
    written = export.write_figures(made, tmp_path / "figures", "svg")
    assert [p.name for p in written] == [f"{f.name}.svg" for f in made.figures]
    assert all(p.read_text().startswith("<svg xmlns=") for p in written)


def test_a_png_has_the_pixels_of_its_svg(made: Report, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="resvg is not installed")
    for path in export.write_figures(made, tmp_path / "figures", "png"):
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG")
        width = int.from_bytes(data[16:20], "big")
        assert width in (2 * 760, 2 * 1120)
        assert len(data) > 5000  # something is drawn


def test_without_resvg_png_names_the_remedy(
    made: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(UnsupportedError, match="-m pip install resvg-py, or take"):
        export.write_figures(made, tmp_path / "figures", "png")


def test_a_report_without_figures_is_refused(tmp_path: Path) -> None:
    empty = Report("t", "s", Verdict("h", "not compared"), ())
    with pytest.raises(ArgumentError, match="has no figures"):
        export.write_figures(empty, tmp_path / "figures", "svg")
    assert not (tmp_path / "figures").exists()


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    export.write(path, b"after")
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_names_path_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as refused:
        export.write(tmp_path / "none" / "report.html", b"x")
    assert "give another --out" in str(refused.value)
    assert str(tmp_path / "none") in str(refused.value)


def test_a_pipe_is_written_into_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        export.write(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_pipe_without_a_name_is_written_into(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    link = tmp_path / "stdout"  # as /dev/stdout is one
    link.symlink_to(f"/dev/fd/{writer}")
    try:
        export.write(link, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    target.write_text("before")
    link.symlink_to(target)
    export.write(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
