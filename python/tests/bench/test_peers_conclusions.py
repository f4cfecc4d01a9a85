"""bench/peers: what follows from the samples of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from peers_bench import PEERS, Bench, module

pytestmark = pytest.mark.skipif(not PEERS.is_dir(), reason="only in a checkout")

# ---- what follows -----------------------------------------------------------------------------


def test_conclusion_holds_when_the_whole_interval_is_above(bench: Bench) -> None:
    assert bench.run() == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts == {"keeps up": "holds", "every byte": "holds", "ceiling": "holds"}
    ratio = bench.report()["cells"][0]["ratio"]
    assert (ratio["median"], ratio["n"]) == (pytest.approx(1.0), 6)
    assert bench.report()["cells"][0]["as_expected"] is True


def test_a_failing_conclusion_that_gates_is_exit_code_1(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    assert bench.run() == 1
    assert "failed: keeps up" in capsys.readouterr().err


def test_a_conclusion_that_does_not_gate_is_only_shown(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=300, ceiling=200)
    assert bench.run() == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts["ceiling"] == "fails"


def test_few_blocks_decide_nothing(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    assert bench.run("--rounds", "2") == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts["keeps up"] == "undecided"


def test_a_peer_that_writes_wrong_bytes_is_shown_and_is_not_the_best(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.rates(a=100, b=80, penstock=100, ceiling=200, wrong="a")
    bench.run()
    cell = bench.report()["cells"][0]
    assert cell["best_peer"] == "b"
    assert next(v for v in cell["variants"] if v["name"] == "a")["wrong"]
    assert "bytes of the file are wrong" in capsys.readouterr().out


def test_a_sample_that_the_engine_did_not_write_whole_fails_every_byte(bench: Bench) -> None:
    log = json.loads((bench.native / "log").read_text())
    log["totals"]["passthrough_bytes"] = 7
    bench.log(log)
    assert bench.run() == 1
    conclusion = next(c for c in bench.report()["conclusions"] if c["name"] == "every byte")
    assert conclusion["verdict"] == "fails"
    assert "7 bytes passed Penstock by" in conclusion["cells"][0]["why"]


def leave_wrong(sample: dict[str, Any]) -> None:
    sample["failed"] = "5 bytes of the file are wrong"
    sample["result"]["verified"]["wrong_bytes"] = 5


@pytest.mark.parametrize("kind", ["warm_up", "canary"])
def test_wrong_bytes_count_whichever_sample_left_them(bench: Bench, kind: str) -> None:
    def change(sample: dict[str, Any]) -> None:
        if sample["canary"]:
            sample["variant"] = "penstock"
        if sample[kind] and sample["variant"] == "penstock" and sample["block"] in (0, 1):
            leave_wrong(sample)

    bench.run()
    assert bench.retake(change) == 1
    every_byte = conclusion(bench, "every byte")
    assert every_byte["verdict"] == "fails"
    assert every_byte["cells"][0]["why"] == "1 failed: 5 bytes of the file are wrong"
    ours = next(v for v in bench.report()["cells"][0]["variants"] if v["name"] == "penstock")
    assert (ours["wrong"], ours["failures"], ours["rate"]["n"]) == (True, 1, 6)


def test_a_peer_whose_warm_up_left_wrong_bytes_is_not_the_best(bench: Bench) -> None:
    def change(sample: dict[str, Any]) -> None:
        if sample["warm_up"] and sample["variant"] == "a":
            leave_wrong(sample)

    bench.run()
    bench.retake(change)
    assert bench.report()["cells"][0]["best_peer"] == "b"


@pytest.mark.parametrize(
    ("who", "verdict"), [("nobody", "fails"), ("a", "holds"), ("ceiling", "not measured")]
)
def test_what_left_wrong_bytes_is_no_ceiling_and_not_beside_it(
    bench: Bench, who: str, verdict: str
) -> None:
    """Of a, which is faster than the ceiling, all samples that count are good."""

    def change(sample: dict[str, Any]) -> None:
        if sample["variant"] == who and sample["warm_up"]:
            leave_wrong(sample)

    bench.rates(a=300, b=80, penstock=100, ceiling=200)
    bench.run()
    bench.retake(change)
    assert conclusion(bench, "ceiling")["verdict"] == verdict


def lucky_once(sample: dict[str, Any]) -> None:
    """Peer b is the fastest by far, and all but one of its samples failed."""
    if sample["variant"] == "b":
        sample["result"]["application"]["bytes_per_s"] = 9e8
        sample["failed"] = None if sample["block"] == 3 else "timed out"


def test_a_lucky_sample_of_a_peer_that_fails_excuses_nothing(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    bench.run()
    assert bench.retake(lucky_once) == 1
    assert bench.report()["cells"][0]["best_peer"] == "a"
    assert conclusion(bench, "keeps up")["verdict"] == "fails"
    assert "2.00 [2.00-2.00] n=6 of a" in conclusion(bench, "ceiling")["cells"][0]["why"]


def dropped_early(sample: dict[str, Any]) -> None:
    """Peer b is the fastest by far in its only good sample, and failed in the two behind."""
    if sample["variant"] == "b":
        sample["result"]["application"]["bytes_per_s"] = 9e8
        sample["failed"] = "timed out" if sample["block"] > 1 else None
        sample["canary"] |= sample["block"] > 3  # none of its samples


def tried_again(sample: dict[str, Any]) -> None:
    """As `dropped_early`, and good canaries are behind."""
    dropped_early(sample)
    if sample["canary"]:
        sample["failed"] = None


@pytest.mark.parametrize(("samples", "best"), [(dropped_early, "a"), (tried_again, "b")])
def test_a_peer_that_is_dropped_early_is_not_the_best(
    bench: Bench, samples: Callable[[dict[str, Any]], None], best: str
) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    bench.run()
    bench.retake(samples)
    assert bench.report()["cells"][0]["best_peer"] == best


def fails_from_the_sixth_on(sample: dict[str, Any]) -> None:
    """Peer b is faster than Penstock until it fails."""
    if sample["variant"] == "b":
        sample["result"]["application"]["bytes_per_s"] = 9e8
        sample["failed"] = None if sample["block"] < 6 else "timed out"


def test_a_peer_that_fails_after_it_was_faster_lets_nothing_hold(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=150, ceiling=200)
    bench.run()
    bench.retake(fails_from_the_sixth_on)
    said = conclusion(bench, "keeps up")
    assert said["verdict"] == "undecided"
    assert "b failed, and may be faster" in said["cells"][0]["why"]


def test_of_peers_that_all_fail_the_fastest_is_the_best(bench: Bench) -> None:
    def change(sample: dict[str, Any]) -> None:
        if sample["variant"] in ("a", "b") and sample["block"] != 3:
            sample["failed"] = "timed out"

    bench.run()
    bench.retake(change)
    assert bench.report()["cells"][0]["best_peer"] == "a"


def test_samples_of_two_places_are_no_pair(bench: Bench) -> None:
    def change(sample: dict[str, Any]) -> None:
        if (sample["block"], sample["variant"]) == (3, "penstock"):
            sample["provenance"] = "elsewhere"

    bench.run()
    bench.retake(change)
    cell = bench.report()["cells"][0]
    assert (cell["ratio"]["n"], cell["of_ceiling"]["n"]) == (5, 5)
    assert next(v for v in cell["variants"] if v["name"] == "penstock")["rate"]["n"] == 6


def conclusion(bench: Bench, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in bench.report()["conclusions"] if c["name"] == name)
    return found


def test_of_the_ceiling_is_decided_by_the_ratio_to_the_ring(bench: Bench) -> None:
    bench.conclude(against="ceiling", at_least=0.85)
    bench.rates(a=100, b=80, penstock=160, ceiling=200)
    bench.run()
    assert conclusion(bench, "asked")["verdict"] == "fails"
    assert "0.80 [0.80-0.80] n=6 of the page ring" in conclusion(bench, "asked")["cells"][0]["why"]


@pytest.mark.parametrize(("rate", "verdict"), [(96, "fails"), (97, "holds")])
def test_its_own_library_is_the_one_it_runs_on(bench: Bench, rate: int, verdict: str) -> None:
    bench.conclude(against="own library", at_least=0.97)
    bench.rates(a=100, b=800, penstock=rate, ceiling=900)
    bench.run()
    assert conclusion(bench, "asked")["verdict"] == verdict


def test_of_its_own_library_too_few_blocks_decide_nothing(bench: Bench) -> None:
    bench.conclude(against="own library", at_least=0.97)
    bench.rates(a=100, b=80, penstock=32, ceiling=900)
    bench.run("--rounds", "3")
    assert conclusion(bench, "asked")["verdict"] == "undecided"


def test_a_family_in_which_penstock_fails_is_not_left_out(bench: Bench) -> None:
    bench.conclude(families=True, at_least=2.0)
    bench.rates(a=100, b=80, penstock=500, ceiling=900, dies="penstock")
    bench.run()
    asked = conclusion(bench, "asked")
    assert asked["verdict"] == "fails"
    assert asked["cells"][0]["why"].startswith("Penstock in even-2: ")


def test_families_have_one_vote_each(bench: Bench) -> None:
    bench.conclude(families=True, at_least=2.0)
    bench.another_cell("other family")
    bench.rates(a=100, b=80, penstock=210, ceiling=900)
    bench.run()
    asked = conclusion(bench, "asked")
    assert asked["verdict"] == "holds"
    why = asked["cells"][0]["why"]
    assert why.startswith("2.10 [2.10-2.10] of 2 families: even 2.10, other")
    assert why.endswith(
        "; the page ring itself has 9.00 [9.00-9.00] of 2 families, of which Penstock has "
        "2.10 [2.10-2.10]"
    )


def test_beside_the_ring_stands_penstock_in_the_cells_of_the_ring() -> None:
    """What the ring cannot write is in the mean of all, and in neither of the two beside it."""
    values, spec = module("values"), module("spec")

    def cell(family: str, ratio: float, ring: float | None) -> Any:
        ours, rings = (
            None if r is None else values.Spread(median=r, low=r, high=r, confidence=0.97, n=6)
            for r in (ratio, ring)
        )
        return values.CellReport(
            name=family, cell=spec.Cell(work="w", ranks=2), family=family, variants=[],
            best_peer="p", ratio=ours, of_ceiling=None, ring=rings, instead={}, as_expected=None,
        )  # fmt: skip

    asked = spec.Conclusion(
        name="x", says="x", predicted="holds", gate=False, families=True, at_least=2.0
    )
    cells = [cell("one", 2.0, 3.0), cell("one", 9.0, None), cell("HDF5", 9.0, None)]
    assert module("conclusions").conclude(asked, cells).cells[0].why == (
        "7.04 [7.04-7.04] of 2 families: one 5.50, HDF5 9.00; the page ring itself has "
        "3.00 [3.00-3.00] of 1 families, of which Penstock has 2.00 [2.00-2.00]"
    )


def test_the_mean_of_families_is_geometric_of_their_medians() -> None:
    values, spec = module("values"), module("spec")

    def cell(family: str, ratio: float) -> Any:
        spread = values.Spread(median=ratio, low=ratio / 2, high=ratio * 2, confidence=0.97, n=6)
        return values.CellReport(
            name=family, cell=spec.Cell(work="w", ranks=2), family=family, variants=[],
            best_peer="p", ratio=spread, of_ceiling=None, instead={}, as_expected=None,
        )  # fmt: skip

    asked = spec.Conclusion(
        name="x", says="x", predicted="holds", gate=False, families=True, at_least=2.0
    )
    cells = [cell("one", 1.0), cell("one", 3.0), cell("one", 4.0), cell("two", 12.0)]
    found = module("conclusions").conclude(asked, cells)
    assert found.cells[0].why == "6.00 [3.00-12.00] of 2 families: one 3.00, two 12.00"
    assert found.verdict == "holds"


def test_families_do_not_hold_while_a_cell_has_no_pair(bench: Bench) -> None:
    def change(sample: dict[str, Any]) -> None:
        if sample["cell"] == "other-2" and sample["variant"] in ("a", "b"):
            sample["failed"] = "timed out"

    bench.conclude(families=True, at_least=2.0)
    bench.another_cell("other family")
    bench.rates(a=100, b=80, penstock=210, ceiling=900)
    bench.run()
    bench.retake(change)
    asked = conclusion(bench, "asked")
    assert asked["verdict"] == "undecided"
    assert asked["cells"][0]["why"].endswith("; without a pair of samples: other-2")


def test_families_hold_without_the_cells_that_a_run_was_to_leave_out(bench: Bench) -> None:
    bench.conclude(families=True, at_least=2.0)
    bench.another_cell("other family")
    bench.rates(a=100, b=80, penstock=210, ceiling=900)
    bench.run("--cells", "even-2")
    assert conclusion(bench, "asked")["verdict"] == "holds"
