"""Every number of a sample is in its row, in Parquet and in CSV."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from made_samples import result, sample, write
from penstock.bench.export import Format, export, frame
from penstock.bench.store import Results, load
from penstock.errors import ArgumentError, WriteError

SERIES = {"bin_s": 0.05, "application_bytes": [1, 2, 3], "actual_bytes": [0.5, 1]}
CALLS = {"count": 2, "each_s": [[0.0, 0.1], [0.2, 0.1]]}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    samples = [
        sample("x", 0, 1e9, warm_up=True),
        sample("x", 1, 1e9, result=result(1e9, series=SERIES, calls=CALLS)),
        sample("x", 1, 2e9, canary=True),
        sample("y", 1, failed="no space", result=None),
        sample("y", 2, result=result(1e9, parameters={"end": 3, "cycle": 1.5, "big": 2**70})),
    ]
    return load(write(tmp_path / "samples.jsonl", samples, file_system={"type": "ext4"}))


def test_a_row_holds_what_a_sample_holds(results: Results) -> None:
    table = frame(results)
    rows = table.to_dicts()
    assert len(rows) == 5
    assert [r["variant"] for r in rows] == ["x", "x", "x", "y", "y"]
    assert [r["canary"] for r in rows] == [False, False, True, False, False]
    assert rows[1]["application.bytes_per_s"] == 1e9
    assert rows[1]["actual.source"] == "cachestat"
    assert rows[1]["series.application_bytes"] == [1, 2, 3]
    assert rows[1]["command"] == ["true"]
    assert (rows[3]["failed"], rows[3]["bytes"]) == ("no space", None)
    assert {r["provenance.file_system.type"] for r in rows} == {"ext4"}
    assert {r["provenance.host"] for r in rows} == {"here"}


def test_values_of_several_types_become_text_not_nothing(results: Results) -> None:
    table = frame(results)
    assert table["parameters.end"].to_list() == ["sync", "sync", "sync", None, "3"]
    assert table["parameters.cycle"].to_list()[4] == 1.5
    assert table["parameters.big"].to_list()[4] == float(2**70)
    assert json.loads(table["calls.each_s"].to_list()[1]) == CALLS["each_s"]


def test_parquet_comes_back_as_it_went(results: Results, tmp_path: Path) -> None:
    (path,) = export(results, tmp_path, ["parquet"])
    assert pl.read_parquet(path).equals(frame(results))


def test_csv_comes_back_with_series_as_json(results: Results, tmp_path: Path) -> None:
    (path,) = export(results, tmp_path, ["csv"])
    back, table = pl.read_csv(path), frame(results)
    assert back.columns == table.columns
    assert json.loads(back["series.application_bytes"][1]) == [1, 2, 3]
    assert json.loads(back["command"][1]) == ["true"]
    for name in ("application.bytes_per_s", "variant", "block", "failed", "canary"):
        assert back[name].to_list() == table[name].to_list()


def test_both_stand_beside_the_results_and_nothing_else(results: Results, tmp_path: Path) -> None:
    written = export(results, tmp_path)
    assert written == [tmp_path / "samples.parquet", tmp_path / "samples.csv"]
    assert len(list(tmp_path.iterdir())) == 3


def test_results_without_samples_can_be_exported(tmp_path: Path) -> None:
    empty = load(write(tmp_path / "samples.jsonl", []))
    assert frame(empty).is_empty()
    assert [p.exists() for p in export(empty, tmp_path)] == [True, True]


def test_what_cannot_be_written_is_named(results: Results, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match='parquet and csv, got "xlsx"'):
        export(results, tmp_path, [cast("Format", "xlsx")])
    for kind in ("parquet", "csv"):
        with pytest.raises(WriteError, match="missing/samples"):
            export(results, tmp_path / "missing", [cast("Format", kind)])


def test_a_full_disk_is_told_and_nothing_of_the_file_stays(
    results: Results, tmp_path: Path, full_disk: None
) -> None:
    with pytest.raises(WriteError, match=r"samples\.parquet cannot be written: File too large"):
        export(results, tmp_path, ["parquet"])
    assert [path.name for path in tmp_path.iterdir()] == ["samples.jsonl"]
