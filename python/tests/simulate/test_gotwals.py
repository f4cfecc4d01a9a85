"""The experiment of gotwals-1995's figures: what the paper concludes of them, and what it gives."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.errors import ArgumentError
from penstock.simulate import gotwals
from penstock.simulate.output import MAX_BLOCKS, System, simulate, timeline

PAPER = System()


def test_figure_4_at_five_times_the_memory() -> None:
    (point,) = gotwals.curves(PAPER, [gotwals.PAPER_AT])
    assert point.demand.actual == pytest.approx(gotwals.PAPER["demand"], rel=0.1)
    assert point.early.actual == pytest.approx(gotwals.PAPER["early"], rel=0.1)


def test_figure_3_memory_raises_one_rate_at_the_expense_of_the_other() -> None:
    for point in gotwals.curves(PAPER, [1.5, 2, 3, 5, 8]):
        assert point.demand.application > 1.1 * point.without.application
        assert point.demand.actual < 0.9 * point.without.actual


def test_both_curves_leave_the_plateau_at_the_size_of_memory() -> None:
    fits, exceeds = gotwals.curves(PAPER, [1, 1.2])
    assert fits.paged_out_bytes == 0
    assert fits.demand == fits.without
    assert exceeds.paged_out_bytes == PAPER.block
    assert exceeds.demand.application < 0.9 * fits.demand.application
    assert exceeds.demand.actual < 0.9 * fits.demand.actual


@pytest.mark.parametrize("memory_bytes", [32 << 20, (5 << 20) + 1, (5 << 20) + 4])
def test_a_memory_of_no_whole_blocks_has_its_knee_at_its_size_all_the_same(
    memory_bytes: int,
) -> None:
    system = System(memory_bytes=memory_bytes)
    fits, *beyond = gotwals.curves(system, [1, 1.2, 6])
    assert fits.paged_out_bytes == 0
    assert fits.demand == fits.without
    assert beyond[0].paged_out_bytes > 0
    (fifth,) = (s for s in gotwals.sweep(system, 6, "block") if s.value == "1/5")
    assert (fifth.demand, fifth.early) == (beyond[1].demand, beyond[1].early)


def test_a_memory_of_few_bytes_is_all_played() -> None:
    (point,) = gotwals.curves(System(memory_bytes=3), [1])
    assert point.n_bytes == 3


def test_json_has_the_memory_that_was_played() -> None:
    system = System(memory_bytes=32 << 20)
    value = gotwals.as_json("x", system, gotwals.curves(system, [1]), "block", [])
    assert value["system"]["memory_bytes"] == value["curves"][0]["n_bytes"]


def test_beyond_memory_twice_the_data_takes_about_four_times_the_application_time() -> None:
    memory = PAPER.memory_bytes
    once, twice = (simulate(PAPER, n).times.application_s for n in (memory, 2 * memory))
    assert 3 < twice / once < 5


def test_rates_are_parts_of_all_disks_and_sizes_multiples_of_all_memories() -> None:
    system = replace(PAPER, nodes=4, network_ratio=20)
    (point,) = gotwals.curves(system, [1.0])
    assert point.n_bytes == 4 * system.memory_bytes
    assert point.demand.application == pytest.approx(5)
    assert 0.8 < point.demand.actual < 1


def test_the_sweep_over_blocks_ends_at_the_closed_form_and_tends_to_it() -> None:
    *played, limit = gotwals.sweep(PAPER, 5, "block")
    assert limit.value == "limit"
    smallest = played[-1]
    assert smallest.demand.actual == pytest.approx(limit.demand.actual, rel=0.01)
    assert smallest.early.actual == pytest.approx(limit.early.actual, rel=0.01)


def test_the_sweep_is_of_what_can_be_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gotwals, "MAX_BLOCKS", 5 * 64)
    values = [s.value for s in gotwals.sweep(PAPER, 5, "block")]
    assert values == ["1/3", "1/4", "1/5", "1/6", "1/8", "1/16", "1/64", "limit"]


def test_a_faster_paging_disk_raises_every_rate() -> None:
    steps = gotwals.sweep(PAPER, 5, "paging-disk")
    assert len(steps) == len(gotwals.PAGING_RATIOS)
    for slower, faster in pairwise(steps):
        assert faster.demand.actual >= slower.demand.actual
        assert faster.demand.application >= slower.demand.application


def test_consecutive_blocks_keep_fewer_disks_busy_than_dealt_ones() -> None:
    rates = {s.value: s.demand.actual for s in gotwals.sweep(PAPER, 5, "nodes")}
    assert set(rates) == {"1 cyclic", "2 cyclic", "2 blocked", "4 cyclic", "4 blocked",
                          "8 cyclic", "8 blocked"}  # fmt: skip
    assert rates["4 blocked"] < 0.9 * rates["4 cyclic"]


def test_without_a_closed_form_there_is_no_limit() -> None:
    for system in (replace(PAPER, nodes=2), replace(PAPER, order="file")):
        assert all(s.value != "limit" for s in gotwals.sweep(system, 2, "block"))


def test_the_paper_stands_only_beside_its_own_parameters() -> None:
    assert gotwals.is_the_papers(replace(PAPER, memory_bytes=7, disk_bytes_per_s=3.0))
    assert not gotwals.is_the_papers(replace(PAPER, network_ratio=6))
    assert not gotwals.is_the_papers(replace(PAPER, buffer_bytes=10 * PAPER.memory_bytes))


def test_json_is_complete_and_keeps_account_of_every_byte() -> None:
    points = gotwals.curves(PAPER, [1, 5])
    value = gotwals.as_json("gotwals-1995", PAPER, points, "block", [])
    value = json.loads(json.dumps(value))
    assert [p["ratio"] for p in value["curves"]] == [1, 5]
    assert value["paper"]["actual"] == {"demand": 0.6, "early": 0.85}
    for moments in value["timelines"].values():
        assert moments[-1]["disk_bytes"] == points[-1].n_bytes
        for m in moments:
            assert m["sent_bytes"] == m["memory_bytes"] + m["paged_bytes"] + m["disk_bytes"]


def test_a_timeline_is_bounded() -> None:
    outcome = simulate(replace(PAPER, block_bytes=1024), 5 * PAPER.memory_bytes, timeline_points=16)
    assert 8 <= len(timeline(outcome)) <= 16


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(ArgumentError, match="positive multiple of the memory"):
        gotwals.curves(PAPER, [ratio])


def test_a_size_beyond_64_bits_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must fit into 64 bits, got 1e\\+300 times the memory"):
        gotwals.curves(PAPER, [1e300])


def test_the_most_blocks_are_those_of_the_simulator() -> None:
    with pytest.raises(ArgumentError, match=f"at most {MAX_BLOCKS} blocks"):
        simulate(replace(PAPER, block_bytes=1), MAX_BLOCKS + 1)


def test_what_cannot_be_played_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="memory_bytes must hold a block"):
        simulate(replace(PAPER, block_bytes=PAPER.memory_bytes + 1), 1)
    with pytest.raises(ArgumentError, match="mapping must be cyclic or blocked"):
        simulate(replace(PAPER, mapping="round"), 1)  # type: ignore[arg-type]
