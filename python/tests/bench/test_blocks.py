"""What a session runs next."""

from __future__ import annotations

from penstock.bench.blocks import Plan, decision, pending
from penstock.bench.sample import Sample
from penstock.bench.statistics import Stopping

PAIRS = tuple((cell, variant) for cell in ("a", "b") for variant in ("x", "y", "z"))
RULE = Stopping(minimum=6, maximum=12, checks=(6, 9, 12), precision=0.05)


def plan(seed: int = 1, stopping: Stopping = RULE) -> Plan:
    return Plan(PAIRS, stopping, seed)


def taken(turn: object, rate: float = 1e9, failed: str | None = None) -> Sample:
    result = {
        "schema": "penstock.measure/1",
        "program": "fake",
        "workers": 1,
        "ranks": 1,
        "bytes": 1,
        "application": {"seconds": 1, "bytes_per_s": rate},
    }
    return Sample.model_validate(
        vars(turn)
        | {"warm_up": turn.warm_up, "started": "", "wall_s": 1.0, "command": []}  # type: ignore[attr-defined]
        | {"failed": failed, "result": None if failed else result}
    )


def run(made: Plan, rates: object = None, failing: object = None) -> list[Sample]:
    """All samples of a plan; ``rates(turn)`` and ``failing(turn)`` say how each turns out."""
    samples: list[Sample] = []
    number = 0
    while turns := made.block(number, samples):
        for turn in turns:
            bad = failing(turn) if callable(failing) else None
            rate = rates(turn) if callable(rates) else 1e9
            samples.append(taken(turn, rate, bad))
        number += 1
    return samples


def noisy_x_of_a(turn: object) -> float:
    noisy = (turn.cell, turn.variant) == ("a", "x")  # type: ignore[attr-defined]
    return 1e9 * (1 + turn.block % 3) if noisy else 1e9  # type: ignore[attr-defined]


def test_block_0_warms_each_up_once_without_canary() -> None:
    turns = plan().block(0, [])
    assert sorted((t.cell, t.variant) for t in turns) == sorted(PAIRS)
    assert all(t.warm_up and not t.canary for t in turns)


def test_a_block_holds_each_once_and_one_canary() -> None:
    turns = plan().block(1, [])
    assert sorted((t.cell, t.variant) for t in turns if not t.canary) == sorted(PAIRS)
    assert sum(t.canary for t in turns) == 1
    assert [t.place for t in turns] == list(range(len(PAIRS) + 1))


def test_the_order_is_the_seeds_and_the_blocks() -> None:
    assert plan(1).block(3, []) == plan(1).block(3, [])
    assert plan(1).block(3, []) != plan(2).block(3, [])
    assert [t.key[:2] for t in plan(1).block(3, [])] != [t.key[:2] for t in plan(1).block(4, [])]


def test_what_is_compared_follows_each_other() -> None:
    """In each block, the canary too; the cells' order and the variants' in a cell are drawn."""
    blocks = [plan().block(number, []) for number in range(40)]
    for turns in blocks:
        cells = [turn.cell for turn in turns]
        assert cells == sorted(cells, key=cells.index)
    for drawn in (lambda turn: turn.cell, lambda turn: turn.variant):
        first = [drawn(turns[0]) for turns in blocks]
        assert all(5 <= first.count(one) <= 35 for one in set(first))
        assert len(set(first)) > 1


def test_steady_cells_stop_at_the_minimum() -> None:
    samples = run(plan())
    for pair in PAIRS:
        assert sum(s.counts and (s.cell, s.variant) == pair for s in samples) == 6


def test_a_cell_goes_on_until_all_its_variants_are_done() -> None:
    """One noisy variant keeps its cell going, and its cell alone."""

    samples = run(plan(), noisy_x_of_a)
    counts = {p: sum(s.counts and (s.cell, s.variant) == p for s in samples) for p in PAIRS}
    assert {counts["a", v] for v in "xyz"} == {12}
    assert {counts["b", v] for v in "xyz"} == {6}


def test_two_failures_in_a_row_drop_a_variant() -> None:
    def failing(turn: object) -> str | None:
        return "broken" if turn.variant == "y" and turn.cell == "a" else None  # type: ignore[attr-defined]

    samples = run(plan(), failing=failing)
    tried = [s for s in samples if (s.cell, s.variant) == ("a", "y")]
    assert {s.block for s in tried} == {0, 1}
    assert plan().progress(samples)["a", "y"].dropped
    assert sum(s.counts and (s.cell, s.variant) == ("a", "x") for s in samples) == 6


def test_a_variant_that_fails_now_and_then_ends_too() -> None:
    def failing(turn: object) -> str | None:
        return "flaky" if turn.variant == "y" and turn.block % 2 else None  # type: ignore[attr-defined]

    samples = run(plan(), failing=failing)
    assert max(s.block for s in samples) <= RULE.maximum
    assert decision(RULE, plan().progress(samples)["a", "y"]) != "go on"


def test_a_block_that_was_begun_stays_as_it_was_drawn() -> None:
    samples = run(plan())
    before = [s for s in samples if s.block < 6]
    drawn = plan().block(6, before)
    for done in range(len(drawn) + 1):
        partly = [*before, *(taken(t) for t in drawn[:done])]
        assert plan().block(6, partly) == drawn
        assert pending(drawn, partly) == drawn[done:]


def test_what_other_rounds_add_goes_into_blocks_of_their_own() -> None:
    before = run(plan(), noisy_x_of_a)  # b ends after 6 blocks, and a after 12
    more = plan(stopping=Stopping(minimum=15, maximum=15, checks=(15,)))
    blocks = [more.block(number, before) for number in range(1, 14)]
    assert [bool(pending(turns, before)) for turns in blocks] == [False] * 12 + [True]


def test_what_another_budget_keeps_goes_into_blocks_of_its_own() -> None:
    kept = {pair for pair in PAIRS if pair[0] == "a"}
    narrow = Plan(PAIRS, RULE, 1, keep=lambda _: kept)
    before = [s for s in run(narrow) if s.block <= 4]
    added = [t for number in range(1, 5) for t in pending(plan().block(number, before), before)]
    assert added == []
    anew = plan().block(5, before)
    assert pending(anew, before) == anew
    assert {(t.cell, t.variant) for t in anew} == {*PAIRS}


def test_nothing_is_wanted_of_a_cell_whose_variants_all_failed() -> None:
    samples = run(plan(), failing=lambda turn: "broken" if turn.cell == "a" else None)
    assert max(s.block for s in samples if s.cell == "a") == 1
    assert max(s.block for s in samples if s.cell == "b") == 6
