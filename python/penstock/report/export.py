"""Figures as files: SVG, and PNG by resvg."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from penstock import whole
from penstock.errors import ArgumentError, UnsupportedError, WriteError
from penstock.extras import pip_install
from penstock.report.model import Report

_ZOOM = 2.0  # pixels per unit: sharp on a display of double density


def write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    WriteError
        If that fails; what was there before is as it was.
    """
    whole.write(path, data, "give another --out")


def write_figures(report: Report, directory: Path, kind: Literal["svg", "png"]) -> list[Path]:
    """Write every figure into a directory, which is made if its parent is there.

    Raises
    ------
    ArgumentError
        If the report has no figure.
    UnsupportedError
        If PNG is asked for and resvg is not installed.
    WriteError
        If a file cannot be written.
    """
    figures = report.figures
    if not figures:
        raise ArgumentError("this report has no figures: --format html says why")
    try:
        directory.mkdir(exist_ok=True)
    except OSError as error:
        raise WriteError(
            error.errno, f"{directory} cannot be made: {error.strerror}; give another --out"
        ) from error
    paths = []
    for figure in figures:
        path = directory / f"{figure.name}.{kind}"
        drawn = figure.svg()
        write(path, png(drawn) if kind == "png" else drawn.encode("utf-8"))
        paths.append(path)
    return paths


def png(drawn: str) -> bytes:
    """A picture's pixels, on paper.

    Raises
    ------
    UnsupportedError
        If resvg is not installed.
    """
    try:
        import resvg_py
    except ImportError as error:
        raise UnsupportedError(
            f"--format png needs resvg, which is not installed: {pip_install('resvg-py')}, or "
            "take --format svg"
        ) from error
    return bytes(
        resvg_py.svg_to_bytes(svg_string=drawn, zoom=_ZOOM, sans_serif_family="DejaVu Sans")
    )
