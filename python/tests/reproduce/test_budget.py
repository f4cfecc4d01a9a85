"""A budget: what conclusions need first, whole, and by the times of the warm-ups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from made_samples import sample
from penstock.bench.blocks import Plan
from penstock.bench.matrix import fixed_rounds
from penstock.bench.sample import Sample
from penstock.errors import WriteError
from penstock.reproduce import budget, conclusions, cost
from penstock.reproduce.budget import BROADER, HOPELESS, OF_TABLES, Keeper, Unit, choose
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.places import Place, Places

A, B, C, D = (("c", name) for name in "abcd")
ALL = (A, B, C, D)


def unit(name: str, *pairs: tuple[str, str], samples: int = 6, rank: int = 0) -> Unit:
    return Unit(name, frozenset(pairs), samples, rank)


def test_what_conclusions_need_comes_before_what_tables_show() -> None:
    units = [
        unit("table", A, rank=OF_TABLES),
        unit("dear", B, C),
        unit("hopeless", D, rank=HOPELESS),
    ]
    chosen = choose(units, lambda _: 1.0, 14.0)
    assert dict(chosen.needed) == {B: 6, C: 6}
    assert chosen.seconds == 14.0
    assert choose(units, lambda _: 1.0, 21.0).needed.keys() == {A, B, C}


def test_a_conclusion_is_chosen_whole_or_left_out_and_named() -> None:
    units = [unit("two", A, B), unit("one", C)]
    chosen = choose(units, lambda _: 1.0, 13.0)
    assert dict(chosen.needed) == {C: 6}
    assert chosen.left_out == ("two",)


def test_what_is_chosen_already_costs_nothing_again() -> None:
    units = [unit("ab", A, B), unit("bc", B, C), unit("cd", C, D)]
    assert choose(units, lambda _: 1.0, 21.0).needed.keys() == {A, B, C}
    counted = choose([unit("count", A, samples=1), unit("rate", A)], lambda _: 1.0, 7.0)
    assert dict(counted.needed) == {A: 6}


def test_of_most_cells_one_is_enough_to_begin_with() -> None:
    (one,) = (
        o for o in conclusions.of_paper("liao2007") if o.id == "liao2007-two-stage-beats-collective"
    )
    cells = ("B on 16", "B on 25", "C on 16")
    pairs = tuple((c, v) for c in cells for v in ("two-stage", "one-stage", "collective"))
    costs = {pair: 9.0 if pair[0] == "B on 16" else 1.0 for pair in pairs}
    place = Place("", Evidence(pairs, ()))
    found = budget.units([one], Places(place.evidence, (place,)), costs, lambda *_: False)
    needed, *broader = [u for u in found if u.rank < OF_TABLES]
    assert needed.pairs == {("B on 25", "two-stage"), ("B on 25", "collective")}
    assert [u.rank for u in broader] == [BROADER, BROADER]
    assert len([u for u in found if u.rank == OF_TABLES]) == len(cells)


def warm_up(name: str, wall_s: float) -> Sample:
    return sample(name, 0, cell="c", wall_s=wall_s, warm_up=True)


def keeper(budget_s: float, units: Sequence[Unit]) -> Keeper:
    return Keeper(tuple(units), dict.fromkeys(ALL, 1.0), budget_s)


def test_the_times_of_the_warm_ups_decide_what_goes_on() -> None:
    units = [unit("cheap", A, B), unit("dear", C, D)]
    quick = [warm_up(v, 1.0) for v in "abcd"]
    slow = [warm_up(v, 1.0 if v in "ab" else 10.0) for v in "abcd"]
    keep = keeper(60.0, units)
    assert keep(quick) == set(ALL)
    assert keep(slow) == {A, B}
    # a pure function: samples of later blocks change nothing
    assert keep([*slow, sample("a", 1, cell="c", wall_s=99.0)]) == {A, B}


def test_what_is_counted_once_is_measured_once() -> None:
    units = [unit("calls", A, samples=1), unit("rates", B, C)]
    keep = keeper(100.0, units)
    plan = Plan(ALL, fixed_rounds(7), 1, keep=keep)
    samples = [warm_up(v, 1.0) for v in "abcd"]
    assert {t.variant for t in plan.block(1, samples)} == {"a", "b", "c"}
    for block in range(1, 8):
        turns = plan.block(block, samples)
        samples += [sample(t.variant, block, cell="c") for t in turns if not t.canary]
    assert {t.variant for t in plan.block(8, samples)} == set()
    taken = {v: sum(s.variant == v and s.block > 0 for s in samples) for v in "abcd"}
    assert taken == {"a": 1, "b": 7, "c": 7, "d": 0}


def test_a_directory_that_does_not_take_the_probe_is_named(tmp_path: Path, full_disk: None) -> None:
    says = f"--dir {re.escape(str(tmp_path))} must take a file of 8 MiB, and .*; give another"
    with pytest.raises(WriteError, match=says):
        cost.device_bytes_per_s(tmp_path)
