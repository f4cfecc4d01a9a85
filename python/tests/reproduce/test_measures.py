"""What is read off a sample, of outputs whose every call is known."""

from __future__ import annotations

from itertools import accumulate

import pytest

from made_samples import result, sample
from penstock.bench.sample import Sample
from penstock.reproduce import measures

CALL = 64 * 1024


def output(times: list[float], pauses: dict[int, float] | None = None) -> Sample:
    """A call after the other, of so many seconds each, after pauses."""
    before = [(pauses or {}).get(i, 0.0) for i in range(len(times))]
    ends = list(accumulate(t + p for t, p in zip(times, before, strict=True)))
    each = [[end - t, t, 0] for end, t in zip(ends, times, strict=True)]
    told = result(1e9, bytes_=CALL * len(times), calls={"count": len(times), "each_s": each})
    return sample(result=told)


def test_rates_of_early_and_late_calls() -> None:
    slowing = output([0.001] * 64 + [0.1] * 64)
    assert measures.early(slowing) == pytest.approx(CALL / 0.001)
    assert measures.late(slowing) == pytest.approx(CALL / 0.1)


def test_the_knee_is_where_the_rate_falls() -> None:
    slowing = output([0.001] * 64 + [0.1] * 64)
    found = measures.knee(slowing)
    assert found is not None
    assert found / CALL == pytest.approx(64, abs=4)
    assert measures.knee(output([0.001] * 128)) is None


def test_calls_after_the_pauses_are_the_second_hump() -> None:
    times = [0.1] * 128
    for pause in (40, 80, 120):
        times[pause : pause + 4] = [0.001] * 4
    pulsed = output(times, {40: 5.0, 80: 5.0, 120: 5.0})
    assert measures.after_gap(pulsed) == pytest.approx(CALL / 0.001)
    assert measures.after_gap(output([0.1] * 8)) is None


def test_stretches_hold_the_pauses() -> None:
    rates = measures.stretches(output([0.1] * 8, {4: 0.4}), 2)
    assert rates == pytest.approx([4 * CALL / 0.8, 4 * CALL / 0.4])
    assert measures.stretches(output([0.1]), 2) == []


def test_calls_are_counted_as_if_all_arrays_had_been_written() -> None:
    told = result(1e9, calls=2 * 2601, parameters={"outputs": 2})
    assert measures.calls_of_all_outputs(sample(result=told)) == 104040
    assert measures.calls_of_all_outputs(sample(result=result(1e9))) is None


def test_a_failed_sample_says_nothing() -> None:
    failed = sample(failed="it was killed")
    assert [measure(failed) for measure in measures.MEASURES.values()] == [None] * 8
