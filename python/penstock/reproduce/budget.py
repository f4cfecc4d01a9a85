"""What of a paper is measured in a given time: first what its conclusions need, the cheapest first.

A conclusion is chosen whole or not at all on a file system, as half of its points decide nothing.
What is chosen before the run by estimates is begun; after the warm-ups the same rule chooses again,
by their times, what the further blocks hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.bench.blocks import Pair
from penstock.bench.estimate import seconds_per_sample
from penstock.bench.sample import Sample
from penstock.reproduce import conclusions as c
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.needs import OF_FILE_SYSTEM
from penstock.reproduce.places import Place, Places, across, at

BEGUN = 1.2  # times the budget: so much is begun, as estimates may be too high
FILLED = 0.9  # of the budget, by the times of the warm-ups: they vary
SAMPLES = 6  # of what only tables show

# Ranks: what only some file systems can show, what any can, the same in more cells and on more file
# systems, what only tables show, and what will probably turn out to be untestable.
OF_FILE_SYSTEMS, OF_ANY, BROADER, OF_TABLES, HOPELESS = range(5)

Cost = Callable[[Pair], float]


@dataclass(frozen=True)
class Unit:
    """Pairs that decide something together, how many samples of each that takes, and its rank."""

    name: str
    pairs: frozenset[Pair]
    samples: int
    rank: int = OF_FILE_SYSTEMS


@dataclass(frozen=True)
class Choice:
    """What fits: of each pair how many samples it needs, and the seconds of all of it."""

    needed: Mapping[Pair, int]
    seconds: float
    left_out: tuple[str, ...]


def choose(units: Sequence[Unit], cost: Cost, budget_s: float, warm: bool = True) -> Choice:
    """Units until the budget is full: by rank, then by what each would add."""
    needed: dict[Pair, int] = {}
    spent_s, waiting = 0.0, list(units)
    left_out: list[str] = []
    while waiting:
        prices = [(unit.rank, _added_s(unit, needed, cost, warm)) for unit in waiting]
        place = min(range(len(waiting)), key=lambda i: prices[i])
        unit, price_s = waiting.pop(place), prices[place][1]
        if spent_s + price_s > budget_s:
            if unit.rank in (OF_FILE_SYSTEMS, OF_ANY):
                left_out.append(unit.name)
            continue
        spent_s += price_s
        for pair in unit.pairs:
            needed[pair] = max(needed.get(pair, 0), unit.samples)
    return Choice(needed, spent_s, tuple(left_out))


def _added_s(unit: Unit, needed: Mapping[Pair, int], cost: Cost, warm: bool) -> float:
    """With warm-ups where they are still to be run; each block's canary is one sample of many."""
    total_s = 0.0
    for pair in unit.pairs:
        more = max(unit.samples - needed.get(pair, 0), 0) + (warm and pair not in needed)
        total_s += more * cost(pair)
    return total_s


def units(wanted: Sequence[c.Conclusion], places: Places, costs: Mapping[Pair, float],
          hopeless: Callable[[c.Conclusion, Place], bool]) -> list[Unit]:  # fmt: skip
    """What could be chosen from what was planned: conclusions by place, then cells for tables."""
    found: list[Unit] = []
    for one in wanted:
        if any(claim.roles() for claim in one.claims):
            found += _across(one, places)
            continue
        begun = False
        for place in places.each:
            if hopeless(one, place):
                rank = HOPELESS
            elif set(one.needs) & set(OF_FILE_SYSTEM):
                rank = OF_FILE_SYSTEMS
            else:
                rank, begun = (BROADER if begun else OF_ANY), True
            found += _at_place(one, place, costs, rank)
    cells = dict.fromkeys(cell for cell, _ in places.whole.planned)
    for cell in cells:
        pairs = frozenset(pair for pair in places.whole.planned if pair[0] == cell)
        found.append(Unit(cell, pairs, SAMPLES, OF_TABLES))
    return found


def _across(one: c.Conclusion, places: Places) -> list[Unit]:
    pairs: set[Pair] = set()
    for claim in one.claims:
        placed = across(claim, places)
        if isinstance(placed, str):
            return []
        pairs |= _pairs_of(placed.names(), places.whole.planned)
    return [Unit(one.id, frozenset(pairs), one.samples)] if pairs else []


def _at_place(
    one: c.Conclusion, place: Place, costs: Mapping[Pair, float], rank: int
) -> list[Unit]:
    """All of the claims that must hold everywhere, and one cell of those that are of most."""
    core: set[Pair] = set()
    broader: list[frozenset[Pair]] = []
    for claim in one.claims:
        if isinstance(claim, c.SpreadAtLeast):
            continue  # a search among whatever is measured
        if isinstance(claim, c.Pair) and claim.where == "most" and not claim.over_cells:
            cells = _cell_by_cell(claim, place)
            cells.sort(key=lambda pairs: sum(costs[_in(place, pair)] for pair in pairs))
            core |= cells[0] if cells else frozenset()
            broader += cells[1:]
        else:
            core |= _pairs_of(claim.names(), place.evidence.planned)
    label = f"{one.id} on {place.name}" if place.name else one.id
    made = [Unit(label, _all_in(place, core), one.samples, rank)] if core else []
    return made + [Unit(label, _all_in(place, b), one.samples, max(rank, BROADER)) for b in broader]


def _cell_by_cell(claim: c.Pair, place: Place) -> list[frozenset[Pair]]:
    names = [*claim.of, *claim.over]
    cells = place.evidence.cells(claim.cells)
    found = (
        frozenset((cell, variant) for variant in place.evidence.variants(cell, names))
        for cell in cells
    )
    return [pairs for pairs in found if pairs]


def _pairs_of(
    names: Iterable[tuple[Sequence[str], Sequence[str]]], planned: Sequence[Pair]
) -> set[Pair]:
    evidence = Evidence(tuple(planned), ())
    return {
        (cell, variant)
        for cells, variants in names
        for cell in evidence.cells(cells)
        for variant in evidence.variants(cell, variants)
    }


def _in(place: Place, pair: Pair) -> Pair:
    return at(place.name, pair[0]), pair[1]


def _all_in(place: Place, pairs: Iterable[Pair]) -> frozenset[Pair]:
    return frozenset(_in(place, pair) for pair in pairs)


@dataclass(frozen=True)
class Keeper:
    """`Plan.keep`: of what was begun, what fits by the times of the warm-ups; a pure function."""

    units: tuple[Unit, ...]
    estimates: Mapping[Pair, float]
    budget_s: float

    def __call__(self, samples: Sequence[Sample]) -> frozenset[Pair]:
        """What the block behind these samples may hold."""
        warm_ups = [s for s in samples if s.block == 0]
        needed = self.choice(warm_ups).needed
        taken = {(s.cell, s.variant) for s in samples if s.counts}
        return frozenset(pair for pair, n in needed.items() if n > 1 or pair not in taken)

    def choice(self, warm_ups: Sequence[Sample]) -> Choice:
        """By the time that is left behind the warm-ups."""
        took = seconds_per_sample(warm_ups)
        spent_s = sum(s.wall_s + (s.settled.waited_s if s.settled else 0.0) for s in warm_ups)
        left_s = FILLED * self.budget_s - spent_s
        canary = 1.0 + 1.0 / max(len(self.estimates), 1)
        return choose(
            self.units,
            lambda pair: canary * took.get(pair, self.estimates[pair]),
            left_s,
            warm=False,
        )
