"""Darshan logs: those that come with pydarshan, where it is installed; else the remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from penstock.errors import ArgumentError, UnsupportedError
from penstock.report import darshan_log, page
from penstock.report.darshan_log import Accessed, Darshan
from penstock.report.load import DarshanLog, load
from penstock.report.runs import Series


def accessed(path: str = "/scratch/a", written: int = 1 << 30) -> Accessed:
    sizes = (0, 0, 100, 0, 0, 0, 0, 0, 0, 0)
    return Accessed(path, written, 0, (0.5, 4.0, 0.0), 1.0, 5.0, sizes, 60, 40)


def log(*files: Accessed, module: str = "MPI-IO", course: Series | None = None) -> Darshan:
    return Darshan(
        exe="/home/me/heat --steps 3",
        job_id="7",
        ranks=16,
        run_time_s=9.5,
        begun_unix_s=1_700_000_000,
        log_version="3.41",
        mounts=(("/", "ext4"), ("/scratch", "lustre"), ("/boot", "vfat")),
        modules={module: files},
        course=course,
    )


def test_it_says_how_it_wrote_and_what_darshan_cannot_know() -> None:
    report = darshan_log.report("x.darshan", log(accessed()))
    said = report.verdict
    assert said.headline == (
        "heat wrote 1.0 GiB by MPI-IO, most of it, 1.0 GiB, to /scratch/a at 256.0 MiB/s "
        "between first and last write (n=1)."
    )
    assert said.details[0] == "100 % of 100 write calls are of at most 100 KiB."
    assert said.details[1].startswith("60 write calls are collective, 40 independent")
    assert said.sure == "single run"
    assert "no actual rate" in report.cautions[0].text


def test_only_the_mounts_of_its_files_are_told() -> None:
    table = darshan_log.report("x", log(accessed())).sections[-1].parts[0]
    rows = [" ".join(row) for row in table.rows]  # type: ignore[union-attr]
    assert "mounted at /scratch lustre" in rows
    assert not any("vfat" in row for row in rows)


def test_a_program_past_mpi_io_is_told_that_penstock_does_not_take_over() -> None:
    said = darshan_log.report("x", log(accessed(), module="POSIX")).verdict
    assert "past MPI-IO" in said.details[1]


def test_a_course_is_drawn_and_a_log_of_nothing_is_reported() -> None:
    course = Series(bin_s=0.1, application_bytes=[10, 20, 0, 5], actual_bytes=None)
    names = [f.name for f in darshan_log.report("x", log(accessed(), course=course)).figures]
    assert names == ["run-1", "phases-1", "sizes"]
    empty = darshan_log.report("x", log())
    assert empty.figures == []
    assert "wrote nothing" in page.html(empty)


def test_hostile_names_are_text() -> None:
    html = page.html(darshan_log.report("x", log(accessed("</svg><script>alert(1)</script>"))))
    assert "<script>alert" not in html


def test_without_pydarshan_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "darshan", None)
    with pytest.raises(UnsupportedError, match=r"-m pip install darshan$"):
        darshan_log.read(tmp_path / "x.darshan")


def examples() -> Iterator[Path]:
    """The logs that pydarshan ships."""
    where = resources.files("darshan") / "examples" / "example_logs"
    yield from sorted(Path(str(where)).glob("*.darshan"))


def test_the_logs_that_pydarshan_ships_are_reported() -> None:
    pytest.importorskip("darshan", reason="pydarshan is not installed")
    seen = {}
    for path in examples():
        assert isinstance(load(path), DarshanLog)
        found = darshan_log.read(path)
        assert page.html(darshan_log.report(str(path), found))
        seen[path.name] = found
    assert len(seen) >= 3
    ior = seen["ior_hdf5_example.darshan"]
    assert ior.module == "MPI-IO"
    assert ior.ranks > 0
    assert sum(a.written_bytes for a in ior.files) > 0
    assert sum(sum(a.sizes) for a in ior.files) == sum(
        a.collective_writes + a.independent_writes for a in ior.files
    )


def test_a_log_that_pydarshan_cannot_read_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("darshan", reason="pydarshan is not installed")
    path = tmp_path / "cut.darshan"
    path.write_bytes(next(examples()).read_bytes()[:64])
    with pytest.raises(ArgumentError, match=r"cut\.darshan cannot be read by pydarshan"):
        darshan_log.read(path)
