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
FORMS: dict[str, Callable[[int], float]] = {
    "k/p": lambda p: 1 / p,
    "k/log2 p": lambda p: 1 / math.log2(p),
}


def with_cpus(one: Sample, busy: float) -> Result:
    assert one.result is not None
    return one.result.model_copy(update={"cpus": CpuTimes(busy_s=busy, total_s=1.0)})


def evidence(seconds_per_mb: Callable[[int], float], processes: tuple[int, ...]) -> Evidence:
    """Two sizes at each number of processes."""
    samples: list[Sample] = []
    for p in processes:
        for megabytes in (4, 32):
            rate = MIB / seconds_per_mb(p)
            line = result(rate, bytes_=megabytes * MIB, workers=p)
            cell = f"read,p={p},n={megabytes}"
            samples.append(sample("ROMIO", cell=cell, result=line))
    return Evidence(tuple((s.cell, s.variant) for s in samples), tuple(samples), ())


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
    first, rest = told.samples[0], told.samples[1:]
    assert first.result is not None
    calm = [s.model_copy(update={"result": with_cpus(s, 0.1)}) for s in rest]
    hot = first.model_copy(update={"result": with_cpus(first, 0.9)})
    forms, verdict, why = fits.judged(replace(told, samples=(hot, *calm)), SPEC)
    assert fits.text(forms[0]) == "0.157/p"
    assert verdict == "not judged"
    assert why.startswith("in 1 of 8 cells INVALID: the CPUs were 90 % busy")
    calm.append(first.model_copy(update={"result": with_cpus(first, 0.1)}))
    assert fits.judged(replace(told, samples=tuple(calm)), SPEC)[1] == "k/p"


@pytest.mark.parametrize("processes", [(1, 2), (1,), ()])
def test_the_law_is_for_several_numbers_of_at_least_two(processes: tuple[int, ...]) -> None:
    assert fits.fit(evidence(lambda p: 1 / p, processes), SPEC) is None
