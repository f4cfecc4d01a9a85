"""The records of a results file."""

from __future__ import annotations

import json

from penstock.bench import sample
from penstock.bench.sample import RECORD, Result, Sample

RESULT = {
    "schema": "penstock.measure/1",
    "program": "penstock-measure",
    "version": "0.1.0",
    "mpi": None,
    "parameters": {"bufsize": 1048576, "verify": "all"},
    "workers": 2,
    "ranks": 1,
    "bytes": 100,
    "application": {"seconds": 0.1, "bytes_per_s": 1000.0},
    "actual": {"seconds": 0.2, "bytes_per_s": 500.0, "source": "cachestat", "why": "it can"},
    "series": {"bin_s": 0.05, "application_bytes": [50, 50]},
    "verified": {"bytes": 100, "wrong_bytes": 0, "first_wrong": None},
    "error": None,
}


def one(**more: object) -> Sample:
    values = {
        "cell": "contiguous",
        "variant": "posix",
        "block": 3,
        "place": 1,
        "started": "2026-01-01T00:00:00.000+00:00",
        "wall_s": 1.5,
        "command": ["program"],
        "result": RESULT,
    }
    return Sample.model_validate(values | more)


def test_what_a_program_printed_is_kept_whole() -> None:
    values = json.loads(sample.as_line(one()))
    for key, value in RESULT.items():
        assert values["result"][key] == value, key


def test_a_record_survives_the_file() -> None:
    before = one(canary=True)
    assert RECORD.validate_json(sample.as_line(before)) == before


def test_a_sample_has_two_rates() -> None:
    assert one().rate("application") == 1000.0
    assert one().rate("actual") == 500.0


def test_a_failed_sample_has_none() -> None:
    failed = one(failed="timed out")
    assert failed.rate("application") is None
    assert not failed.counts


def test_programs_beside_ours_may_leave_fields_out() -> None:
    kept = ("schema", "program", "workers", "ranks", "bytes", "application")
    few = Result.model_validate({k: RESULT[k] for k in kept})
    assert few.actual is None


def test_canaries_and_warm_ups_do_not_count() -> None:
    assert one().counts
    assert not one(canary=True).counts
    assert not one(warm_up=True).counts


def test_the_canary_has_a_key_of_its_own() -> None:
    assert one().key != one(canary=True).key
