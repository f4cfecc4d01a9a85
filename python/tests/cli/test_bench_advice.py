"""What ``penstock bench`` advises at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from made_samples import header, result, sample
from penstock import _core
from penstock.bench import quick
from penstock.bench.cases import Case
from penstock.bench.sample import Header, Sample
from penstock.bench.store import Results
from penstock.bench.summary import summarise
from penstock.cli.advice import advice

DEFAULT = str(_core.default_method())
OTHER = "individual + none + pwrite"
STEPS = (0.9, 0.95, 1.0, 1.05, 1.1, 1.15)


def advised(samples: Sequence[Sample], first: Header | None = None) -> str:
    """Of their one cell."""
    results = Results(headers=[first or header()], samples=list(samples))
    return "".join(advice(summarise(results), results))


def ways(rates: Mapping[str, tuple[str, float]]) -> list[Sample]:
    """Of each variant with its method and rate."""
    return [
        sample(variant, block, result=result(rate * step, engine={"method": method}))
        for variant, (method, rate) in rates.items()
        for block, step in enumerate(STEPS, start=1)
    ]


@pytest.mark.parametrize(
    ("lead", "says"),
    [
        (1.0, "c, as individual is not shown to be better than the default: penstock run -- ..."),
        (2.0, "c: penstock run --method 'individual + none + pwrite' -- ..."),
    ],
)
def test_no_method_is_advised_that_is_not_shown_to_beat_the_default(lead: float, says: str) -> None:
    samples = ways({"penstock": (DEFAULT, 1e9), "individual": (OTHER, lead * 1.01e9)})
    assert advised(samples) == f"for programs like {says}"


def on_own_files() -> list[Sample]:
    """Of a way that is fast, and has a file for each worker."""
    own = {"files": "per_worker", "end": "sync", "op": "write", "verify": "all"}
    return [
        sample("S1A", block, result=result(2e9 * step, parameters=own, engine={"method": OTHER}))
        for block, step in enumerate(STEPS, start=1)
    ]


def test_no_method_is_advised_that_was_measured_on_files_of_its_own() -> None:
    samples = [*ways({"penstock": (DEFAULT, 1e9)}), *on_own_files()]
    for one in samples[: len(STEPS)]:
        assert one.result is not None
        one.result.parameters["files"] = "shared"
    assert advised(samples) == (
        "for programs like c, as S1A writes other files than the default: penstock run -- ..."
    )
    samples[0] = sample("penstock", 1, failed="wrong", result=result(1e9, wrong=5))
    assert advised(samples) == (
        "for programs like c there is no advice: S1A is the best, on other files, and penstock, "
        "which is the default, left wrong bytes"
    )


def test_no_method_is_advised_where_the_default_was_not_measured() -> None:
    samples = ways({"a": (OTHER, 2e9), "b": ("individual + none + pwritev", 1e9)})
    assert "a is not shown to be better than the default: penstock run -- ..." in advised(samples)


def test_a_default_that_left_wrong_bytes_is_not_advised() -> None:
    samples = ways({"penstock": (DEFAULT, 2e9), "individual": (OTHER, 1e9)})
    samples[0] = sample("penstock", 1, failed="wrong", result=result(2e9, wrong=5))
    assert advised(samples) == (
        "for programs like c, as penstock, which is the default, left wrong bytes: "
        "penstock run --method 'individual + none + pwrite' -- ..."
    )


def planned(variant: str, **parameters: Any) -> Header:
    """The plan of a way in the cell, beside one that names its method."""
    return plan_of(
        Case("c", variant, parameters=parameters), Case("c", "x", parameters={"method": "m"})
    )


def plan_of(*cases: Case) -> Header:
    """A header that plans these."""
    measurements = [
        {"cell": case.cell, "variant": case.variant, "parameters": case.as_plan()} for case in cases
    ]
    return header(plan={"rate": "application", "stopping": {}, "measurements": measurements})


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({}, "penstock, which is the default, failed in 2 of 2 samples: penstock run --method "),
        ({"route": "posix"}, "individual is not shown to be better than the default: penstock run"),
    ],
)
def test_a_default_that_always_died_is_known_by_the_plan(
    parameters: dict[str, Any], says: str
) -> None:
    died = [sample("penstock", block, failed="SIGSEGV", result=None) for block in (1, 2)]
    samples = [*ways({"individual": (OTHER, 1e9)}), *died]
    assert f", as {says}" in advised(samples, planned("penstock", **parameters))


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ("shared", "c there is no advice: S1A is the best, on other files, and penstock, which "),
        ("per_worker", "c, as penstock, which is the default, failed in 2 of 2 samples: "),
    ],
)
def test_a_default_that_always_died_has_the_files_that_were_planned(files: str, says: str) -> None:
    died = [sample("penstock", block, failed="SIGSEGV", result=None) for block in (1, 2)]
    said = advised([*on_own_files(), *died], planned("penstock", files=files))
    assert said.startswith(f"for programs like {says}")


def test_a_default_of_few_samples_is_not_advised_where_the_others_failed() -> None:
    samples = ways({"penstock": (DEFAULT, 2e9), "individual": (OTHER, 1e9)})
    samples[:4] = [
        sample("penstock", block, failed="timed out", result=None) for block in range(1, 5)
    ]
    assert "penstock, which is the default, failed in 4 of 6 samples: " in advised(samples)


def test_a_default_that_was_dropped_early_is_not_advised() -> None:
    samples = ways({"penstock": (DEFAULT, 2e9), "individual": (OTHER, 1e9)})
    died = [sample("penstock", block, failed="timed out", result=None) for block in (2, 3)]
    assert "penstock, which is the default, failed in 2 of 3 samples: penstock run --method" in (
        advised([samples[0], *died, *samples[len(STEPS) :]])
    )


def test_the_default_is_not_advised_where_it_failed_in_another_way() -> None:
    samples = ways({"penstock, threads": (DEFAULT, 2e9), "penstock": (DEFAULT, 1e9)})
    wrong = result(2e9, wrong=5, engine={"method": DEFAULT})
    samples[-1] = sample("penstock", 6, failed="wrong", result=wrong)
    assert advised(samples) == (
        "for programs like c there is no advice: penstock, threads is the best, and penstock, "
        "which is the default, left wrong bytes"
    )


def test_a_default_that_failed_in_the_pilot_is_not_advised() -> None:
    kept = quick.record(quick.Wish(Path()), {"penstock": "timed out"})
    first = header(plan={"rate": "application", "stopping": {}, **kept})
    assert advised(ways({"individual": (OTHER, 1e9)}), first) == (
        "for programs like c, as penstock, which is the default, failed when it was tried "
        "(timed out): penstock run --method 'individual + none + pwrite' -- ..."
    )


class Samples(list[Sample]):
    """Which count how often they are looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Sample]:
        self.looks += 1
        return super().__iter__()


def test_advice_on_many_cells_looks_at_the_samples_as_often_as_on_one() -> None:
    """Of a matrix it would be all of them for each cell."""
    looks = set()
    for cells in (["c"], ["c", "d", "e"]):
        one = ways({"a": (DEFAULT, 1e9)})
        samples = [s.model_copy(update={"cell": cell}) for cell in cells for s in one]
        said = summarise(Results(headers=[header()], samples=samples))
        results = Results(headers=[header()], samples=Samples(samples))
        assert len(list(advice(said, results))) == len(cells)
        assert isinstance(results.samples, Samples)
        looks.add(results.samples.looks)
    assert len(looks) == 1


def test_no_method_of_other_files_is_advised_where_the_default_failed_in_the_pilot() -> None:
    kept = quick.record(quick.Wish(Path()), {"penstock": "timed out"})
    first = header(plan={"rate": "application", "stopping": {}, **kept})
    assert advised(on_own_files(), first) == (
        "for programs like c there is no advice: S1A is the best, on other files, and penstock, "
        "which is the default, failed when it was tried (timed out)"
    )


THREADS = Case("c", "penstock, threads", parameters={"route": "engine", "threads": 2})
RANKS = Case("c", "penstock", "mpich", 2, parameters={"route": "engine"})
NAMED = Case("c", "individual, threads", parameters={"route": "engine", "method": "individual"})
OWN = Case("c", "S1A", "mpich", 2, parameters={"route": "engine", "method": "S1A"})
ALONE = Case("c", "mpich alone", "mpich", 2, parameters={"route": "mpi"})
PLAN = plan_of(THREADS, RANKS, NAMED, OWN, ALONE)


def alone(rate: float, variant: str = "mpich alone") -> list[Sample]:
    """Of the MPI library without Penstock."""
    return [sample(variant, block, rate * step) for block, step in enumerate(STEPS, start=1)]


def test_the_default_is_not_advised_to_mpi_programs_for_what_threads_gain() -> None:
    samples = ways({"penstock, threads": (DEFAULT, 2e9), "penstock": (DEFAULT, 1e9)})
    assert advised([*samples, *alone(1.5e9)], PLAN) == ""
    assert advised([*samples, *alone(0.5e9)], PLAN) == "for programs like c: penstock run -- ..."


def test_no_method_is_advised_to_mpi_programs_for_what_threads_gain() -> None:
    samples = ways({"individual, threads": (OTHER, 2e9), "penstock": (DEFAULT, 1e9)})
    assert advised(samples, PLAN) == "for programs like c: penstock run -- ..."


def test_the_default_is_not_advised_where_the_library_alone_is_faster() -> None:
    samples = [*ways({"penstock": (DEFAULT, 1e9)}), *on_own_files()]
    assert advised([*samples, *alone(1.5e9)], PLAN) == (
        "for programs like c there is no advice: S1A is the best, on other files, and penstock, "
        "which is the default, is slower than mpich alone"
    )
    assert advised([*samples, *alone(1.01e9)], PLAN) == (
        "for programs like c, as S1A writes other files than the default: penstock run -- ..."
    )


def test_a_library_alone_is_compared_on_its_own_mpi_and_files() -> None:
    samples = [*ways({"penstock": (DEFAULT, 1e9)}), *on_own_files(), *alone(1.5e9, "other")]
    elsewhere = Case("c", "other", "openmpi", 2, parameters={"route": "mpi"})
    per_rank = Case("c", "other", "mpich", 2, parameters={"route": "mpi", "files": "per_worker"})
    for other in (elsewhere, per_rank):
        assert "penstock run -- ..." in advised(samples, plan_of(RANKS, OWN, other))


@pytest.mark.parametrize(
    ("preload", "says"),
    [
        (True, "c: penstock run -- ..."),
        (OTHER, "c, as under is not shown to be better than the default: penstock run -- ..."),
    ],
)
def test_a_preloaded_program_that_is_the_best_is_advice(preload: bool | str, says: str) -> None:
    under = Case("c", "under", "mpich", 2, preload, parameters={"route": "mpi"})
    samples = [*alone(2e9, "under"), *alone(1e9)]
    assert advised(samples, plan_of(under, ALONE)) == f"for programs like {says}"
