"""The laws of barro-2002 are found again in a run's samples that follow them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from made_samples import MIB, result, sample
from penstock.bench.sample import CpuTimes, Result, Sample
from penstock.reproduce import fits
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import FitSpec

SPEC = FitSpec(law="contiguous read", cells="read*", variant="ROMIO")
ROUNDS = 6
FORMS: dict[str, Callable[[int], float]] = {
    "k/p": lambda p: 1 / p,
    "k/log2 p": lambda p: 1 / math.log2(p),
}


def with_cpus(one: Sample, busy: float) -> Result:
    assert one.result is not None
    return one.result.model_copy(update={"cpus": CpuTimes(busy_s=busy, total_s=1.0)})


def evidence(
    seconds_per_mb: Callable[[int], float], processes: tuple[int, ...], rounds: int = ROUNDS
) -> Evidence:
    """Two sizes at each number of processes."""
    samples: list[Sample] = []
    for p in processes:
        for megabytes in (4, 32):
            rate = MIB / seconds_per_mb(p)
            line = result(rate, bytes_=megabytes * MIB, workers=p)
            cell = f"read,p={p},n={megabytes}"
            blocks = range(1, rounds + 1)
            samples += [sample("ROMIO", block, cell=cell, result=line) for block in blocks]
    planned = dict.fromkeys((s.cell, s.variant) for s in samples)
    return Evidence(tuple(planned), tuple(samples), ())


@pytest.mark.parametrize("form", FORMS)
def test_the_form_and_its_constant_are_found(form: str) -> None:
    found = fits.fit(evidence(lambda p: 0.157 * FORMS[form](p), (2, 4, 8, 16)), SPEC)
    assert found is not None
    assert found.verdict == form
    assert fits.text(found.fits[0]) == f"0.157{form[1:]}"


def test_what_does_not_get_faster_does_not_scale() -> None:
    found = fits.fit(evidence(lambda _: 0.157, (2, 4, 8)), SPEC)
    assert found is not None
    assert found.verdict == "does not scale"


def test_of_busy_cpus_no_law_is_judged() -> None:
    """One cell of eight is enough: its coefficient stands, its verdict does not."""
    told = evidence(lambda p: 0.157 / p, (2, 4, 8, 16))
    calm = [s.model_copy(update={"result": with_cpus(s, 0.1)}) for s in told.samples]
    hot = [s.model_copy(update={"result": with_cpus(s, 0.9)}) for s in told.samples[:ROUNDS]]
    found = fits.judged(replace(told, samples=(*hot, *calm[ROUNDS:])), SPEC, ROUNDS)
    assert fits.text(found.forms[0]) == "0.157/p"
    assert found.verdict == "not judged"
    assert found.why.startswith("in 1 of 8 cells INVALID: the CPUs were 90 % busy")
    assert fits.judged(replace(told, samples=tuple(calm)), SPEC, ROUNDS).verdict == "k/p"


def with_idle_cpus(told: Evidence) -> Evidence:
    calm = (s.model_copy(update={"result": with_cpus(s, 0.1)}) for s in told.samples)
    return replace(told, samples=tuple(calm))


def test_of_fewer_samples_than_rounds_in_a_cell_no_law_is_judged() -> None:
    """As of a session that was interrupted: its coefficient stands, its verdict does not."""
    whole = with_idle_cpus(evidence(lambda p: 0.157 / p, (2, 4, 8, 16)))
    found = fits.judged(whole, SPEC, ROUNDS)
    assert (found.verdict, found.n) == ("k/p", ROUNDS)
    one_less = fits.judged(replace(whole, samples=whole.samples[:-1]), SPEC, ROUNDS)
    assert (one_less.verdict, one_less.n) == (None, ROUNDS - 1)
    assert one_less.why == "too few samples: 5 in a cell, and 6 are needed"
    assert one_less.forms == found.forms


def test_what_a_law_does_not_rest_on_is_told() -> None:
    """One of a cell's samples was answered by a cache: n is that of the others."""
    whole = with_idle_cpus(evidence(lambda p: 0.157 / p, (2, 4, 8, 16)))
    short = whole.samples[0]
    assert short.result is not None
    quick = {"seconds": short.result.actual.seconds / 10}
    rate = short.result.actual.model_copy(update=quick)
    line = short.result.model_copy(update={"actual": rate, "application": rate})
    first = short.model_copy(update={"result": line})
    found = fits.judged(replace(whole, samples=(first, *whole.samples[1:])), SPEC, ROUNDS - 1)
    assert (found.verdict, found.n, found.left_out) == ("k/p", ROUNDS - 1, 1)
    assert found.why.endswith("1 sample is left out, below 0.5 of the median time of the cell")


@pytest.mark.parametrize("processes", [(1, 2), (1,), ()])
def test_the_law_is_for_several_numbers_of_at_least_two(processes: tuple[int, ...]) -> None:
    assert fits.fit(evidence(lambda p: 1 / p, processes), SPEC) is None
