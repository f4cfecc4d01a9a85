"""The laws of barro-2002 are found again in a run's samples that follow them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from made_samples import MIB, result, sample
from penstock.bench.sample import Sample
from penstock.reproduce import fits
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import FitSpec

SPEC = FitSpec(law="contiguous read", cells="read*", variant="ROMIO")
FORMS: dict[str, Callable[[int], float]] = {
    "k/p": lambda p: 1 / p,
    "k/log2 p": lambda p: 1 / math.log2(p),
}


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


@pytest.mark.parametrize("processes", [(1, 2), (1,), ()])
def test_the_law_is_for_several_numbers_of_at_least_two(processes: tuple[int, ...]) -> None:
    assert fits.fit(evidence(lambda p: 1 / p, processes), SPEC) is None
