"""What a report is made from is known by its content; what is not is refused with the remedy."""

from __future__ import annotations

import codecs
import lzma
import os
import shutil
import threading
from pathlib import Path

import pytest

import made_reports
from made_samples import reading, sample
from penstock.bench.store import load as load_results
from penstock.bench.summary import summarise
from penstock.errors import ArgumentError
from penstock.report.load import BenchResults, DarshanLog, Job, Source, Wanted, load, narrowed

MAGIC = (6567223).to_bytes(8, "little")


def test_sources_are_known_by_content_not_by_name(tmp_path: Path) -> None:
    results = made_reports.write(tmp_path / "a.txt", made_reports.session({"c": {"x": 1e9}}, n=2))
    job = tmp_path / "b.jsonl"
    shutil.copy(made_reports.JOB_LOG, job)
    darshan = tmp_path / "c.json"
    darshan.write_bytes(b"3.41\0\0\0\0" + MAGIC + bytes(100))
    packed = tmp_path / "d"
    packed.write_bytes(lzma.compress(results.read_bytes()))
    assert isinstance(load(results), BenchResults)
    assert isinstance(load(packed), BenchResults)
    assert isinstance(load(job), Job)
    assert isinstance(load(darshan), DarshanLog)


@pytest.mark.parametrize("kind", ["results", "packed", "log"])
def test_a_pipe_is_a_source_like_a_file(tmp_path: Path, kind: str) -> None:
    made = made_reports.write(tmp_path / "made", made_reports.session({"c": {"x": 1e9}}, n=2))
    content = (made_reports.JOB_LOG if kind == "log" else made).read_bytes()
    source = _through_a_pipe(lzma.compress(content) if kind == "packed" else content)
    assert isinstance(source, Job if kind == "log" else BenchResults)


def test_a_darshan_log_in_a_pipe_is_refused_with_the_remedy() -> None:
    with pytest.raises(ArgumentError, match=r"Darshan log in a pipe, .* give its file"):
        _through_a_pipe(b"3.41\0\0\0\0" + MAGIC + bytes(100))


def _through_a_pipe(content: bytes) -> Source:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"):
        writes = threading.Thread(target=_write_and_close, args=(writer, content))
        writes.start()
        try:
            return load(Path(f"/dev/fd/{reader}"))
        finally:
            writes.join()


def _write_and_close(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        pipe.write(content)


def test_a_directory_holds_results(tmp_path: Path) -> None:
    samples = made_reports.session({"c": {"x": 1e9}}, n=2)
    made_reports.write(tmp_path / "samples.jsonl", samples)
    source = load(tmp_path)
    assert isinstance(source, BenchResults)
    assert len(source.results.samples) == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b"hello\n", "nothing that a report is made from"),
        (b"\x89PNG\r\n", "nothing that a report is made from"),
        (b'{"schema_version": 99}', "schema_version 99"),
    ],
)
def test_what_is_no_source_is_refused_by_name_with_what_would_be(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArgumentError) as refused:
        load(path)
    assert says in str(refused.value)
    assert str(path) in str(refused.value)


def test_results_without_a_sample_are_refused(tmp_path: Path) -> None:
    path = made_reports.write(tmp_path / "samples.jsonl", [])
    for source in (path, tmp_path):
        with pytest.raises(ArgumentError, match="has no sample yet: run the penstock bench that"):
            load(source)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1", "1e999"])
def test_a_log_with_impossible_numbers_is_refused(tmp_path: Path, number: str) -> None:
    path = made_reports.job_log(tmp_path / "x.json", start_unix_s=4242)
    path.write_text(path.read_text().replace("4242", number))
    with pytest.raises(ArgumentError, match="start_unix_s"):
        load(path)


def test_narrowing_leaves_out_what_was_named_and_nothing_else(tmp_path: Path) -> None:
    levels = {c: {"x": 1e9, "y": 2e9} for c in ("a", "b")}
    path = made_reports.write(tmp_path / "s.jsonl", made_reports.session(levels, n=3))
    results = load_results(path)
    kept = narrowed(results, Wanted(cells=("a",), without=("y",)))
    assert {(s.cell, s.variant) for s in kept.samples} == {("a", "x")}
    assert len(kept.samples) == 3
    assert len(results.samples) == 12
    assert len(kept.left_out) == 9
    once_more = narrowed(results, Wanted(cells=("a",)))
    assert len(narrowed(once_more, Wanted(without=("y",))).left_out) == 9


def test_what_was_left_out_is_no_idle_pause_of_the_machine(tmp_path: Path) -> None:
    busy = [
        sample(
            "xy"[i % 2],
            i,
            machine_before=reading(2.0 * i, cpu_busy_s=1.0 * i),
            machine_after=reading(2.0 * i + 1.0, cpu_busy_s=1.0 * i + 1.0),
        )
        for i in range(1, 9)
    ]
    results = load_results(made_reports.write(tmp_path / "s.jsonl", busy))
    assert not summarise(narrowed(results, Wanted(without=("y",)))).findings


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (
            Wanted(cells=("other",)),
            '--cell names "other", and the results have no such cell; there are "a"',
        ),
        (
            Wanted(without=("other",)),
            '--without names "other", and the results have no such variant; there are "x"',
        ),
        (Wanted(without=("x",)), "--without leaves no samples"),
    ],
)
def test_a_wrong_name_is_told_with_those_that_there_are(
    tmp_path: Path, wanted: Wanted, says: str
) -> None:
    path = made_reports.write(tmp_path / "s.jsonl", made_reports.session({"a": {"x": 1e9}}, n=2))
    with pytest.raises(ArgumentError, match=says):
        narrowed(load_results(path), wanted)


def test_what_an_editor_put_before_results_does_not_hide_them(tmp_path: Path) -> None:
    path = made_reports.write(tmp_path / "s.jsonl", made_reports.session({"c": {"x": 1e9}}))
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert isinstance(load(path), BenchResults)
    log = tmp_path / "log.json"
    log.write_bytes(codecs.BOM_UTF8 + made_reports.JOB_LOG.read_bytes())
    assert isinstance(load(log), Job)
