"""The page is made of the records, all of them, and a wrong record is named."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import support_matrix
from matrix_record import Record, Recorder, read_records

GOOD = Record(
    "libraries", "mpich", "C", "HDF5 1.10.8", "table", 2, "passed", 100, mpi_version="4.0.2"
)
RECORDS = [
    GOOD,
    replace(GOOD, ranks=3),
    replace(GOOD, case="ordered", outcome="passed_through", reason="shared pointer"),
    replace(GOOD, mpi="openmpi", outcome="expected_failure", reason="its own fault"),
]


def test_a_row_counts_every_outcome() -> None:
    text = support_matrix.page(RECORDS)
    assert "| HDF5 1.10.8 (C) | 2 ok, 1 passed | 1 alone |" in text
    assert "| MPICH 4.0.2, distribution | Open MPI 4.0.2, distribution |" in text
    assert "| HDF5 1.10.8 | mpich | shared pointer | `ordered` |" in text
    assert "| HDF5 1.10.8 | openmpi | its own fault | `table` |" in text


def test_versions_of_a_library_share_a_row_with_its_skips() -> None:
    other = replace(GOOD, library="HDF5 2.0", mpi="mpich5")
    skip = replace(GOOD, library="HDF5", mpi="impi", outcome="skipped", reason="not here")
    text = support_matrix.page([GOOD, other, skip])
    assert "| HDF5 1.10.8 or 2.0 (C) | 1 ok | 1 ok | 1 skipped |" in text


def test_the_order_of_the_records_does_not_matter() -> None:
    assert support_matrix.page(RECORDS) == support_matrix.page(RECORDS[::-1])


def test_what_a_recorder_writes_is_read_back(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.jsonl") as recorder:
        for record in RECORDS:
            recorder.add(record)
    assert list(read_records(tmp_path)) == RECORDS


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    wrong = asdict(GOOD) | {"outcome": "fine"}
    (tmp_path / "a.jsonl").write_text(json.dumps(asdict(GOOD)) + "\n" + json.dumps(wrong) + "\n")
    with pytest.raises(ValueError, match=r"a\.jsonl:2: .* got 'fine'"):
        list(read_records(tmp_path))


def test_an_outcome_that_is_not_passed_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="table: the outcome failed needs a reason"):
        replace(GOOD, outcome="failed")
