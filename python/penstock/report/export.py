"""Figures as files: SVG, and PNG by resvg."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

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
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe or a device: nothing to put in its place
            path.write_bytes(data)
            return
        temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}")
        try:
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise WriteError(
            error.errno, f"{path} cannot be written: {error.strerror}; give another --out"
        ) from error


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
