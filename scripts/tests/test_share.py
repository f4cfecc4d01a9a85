"""Suites are dealt out among MPI libraries, and all parts together are the suite."""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "truth"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "histories"))
from mpis import ROOT
from share import WHOLE, Share, parse_share
from suites import suite

DISTRIBUTION = ("mpich", "openmpi")
OTHERS = ("mpich5", "mpich5-abi", "openmpi5", "impi", "impi-abi")
CHOICES = tuple(itertools.product(range(3), range(5)))


def truth_cases(share: Share) -> list[Hashable]:
    return [(fault.name, *how) for fault, *how in suite("truth").cases("", share)]


def legal_cases(share: Share) -> list[Hashable]:
    return [(program.label, method) for program, method in suite("legal").cases(share)]


def passed_cases(share: Share) -> list[Hashable]:
    return list(suite("conformance").passed(share))


def histories(share: Share) -> list[Hashable]:
    run = suite("histories")
    return list(run.dealt(list(run.SEEDS["mpich"]), run.QUICK, "", share))


def brief_histories(share: Share) -> list[Hashable]:
    run = suite("histories")
    return list(run.dealt(list(run.BRIEF), run.QUICK[:1], "", share))


def batches_by_method(share: Share) -> list[Hashable]:
    run = suite("conformance")
    return [
        (batch.name, method)
        for number, batch in enumerate(run.batches("mpich"))
        for method in run.methods(batch, number, share, full=False)
    ]


SUITES = (
    truth_cases,
    legal_cases,
    passed_cases,
    histories,
    brief_histories,
    batches_by_method,
)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("cases", SUITES)
def test_all_parts_together_are_the_suite(
    cases: Callable[[Share], Sequence[Hashable]], parts: int
) -> None:
    dealt = [case for part in range(1, parts + 1) for case in cases(Share(part, parts))]
    whole = cases(WHOLE)
    assert len(whole) >= parts
    assert sorted(map(str, dealt)) == sorted(map(str, whole))


@pytest.mark.parametrize("part", [1, 2])
def test_each_part_of_two_has_every_fault_and_every_way_to_write(part: int) -> None:
    assert {case[0] for case in truth_cases(Share(part, 2))} == {
        case[0] for case in truth_cases(WHOLE)
    }
    assert {case[2] for case in truth_cases(Share(part, 2))} == {
        case[2] for case in truth_cases(WHOLE)
    }


@pytest.mark.parametrize("part", [1, 2])
def test_each_part_of_two_has_every_method_where_several_ranks_meet(part: int) -> None:
    methods = {method for _, method in batches_by_method(Share(part, 2))}
    assert methods == set(suite("conformance").METHODS)


def test_every_method_of_the_product_runs_on_some_library() -> None:
    """Though one of them runs fewer cases."""
    methods = [f"method {number}" for number in range(150)]
    ran = [
        method
        for part, cases in ((1, 36), (2, 37))
        for launch in suite("conformance").launches(methods, range(cases), Share(part, 2))
        for method in launch.values()
    ]
    assert sorted(ran) == sorted(methods)


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/", "/2", "-1/2", "1/2/3", "a/b"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="PART/PARTS"):
        parse_share(text)


def told_by_cmake(tmp_path: Path, libraries: Sequence[str]) -> dict[str, set[tuple[int, ...]]]:
    """The choices of CHOICES that PenstockSuites.cmake deals to each library."""
    script = tmp_path / "dealt.cmake"
    asked = "".join(
        f"penstock_dealt({library} dealt {choice[0]} {choice[1]})\n"
        f'message(NOTICE "{library} {choice[0]} {choice[1]} ${{dealt}}")\n'
        for library in libraries
        for choice in CHOICES
    )
    script.write_text(
        "cmake_minimum_required(VERSION 3.25)\n"
        f"include({ROOT}/cmake/PenstockSuites.cmake)\n"
        f"set(PENSTOCK_TESTED_MPIS {' '.join(libraries)})\n{asked}"
    )
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    dealt: dict[str, set[tuple[int, ...]]] = {library: set() for library in libraries}
    for line in done.stderr.splitlines():
        library, first, second, takes = line.split()
        if takes == "TRUE":
            dealt[library].add((int(first), int(second)))
    return dealt


@pytest.mark.parametrize(
    "libraries",
    [("mpich",), ("openmpi", "mpich5"), (*DISTRIBUTION, *OTHERS), (*DISTRIBUTION, *OTHERS[:2])],
)
def test_each_group_of_libraries_has_the_whole(tmp_path: Path, libraries: tuple[str, ...]) -> None:
    dealt = told_by_cmake(tmp_path, libraries)
    for group in (set(libraries) & set(DISTRIBUTION), set(libraries) & set(OTHERS)):
        if group:
            assert set().union(*(dealt[library] for library in group)) == set(CHOICES)


def test_cmake_deals_as_the_suites_do(tmp_path: Path) -> None:
    dealt = told_by_cmake(tmp_path, DISTRIBUTION)
    for part, library in enumerate(DISTRIBUTION, 1):
        takes = Share(part, len(DISTRIBUTION)).takes
        assert dealt[library] == {choice for choice in CHOICES if takes(*choice)}
