"""What a session runs next: a pure function of the plan, the seed and the samples so far.

Block 0 holds the warm-ups. Each later block holds every measurement that is still wanted once, and
one canary: one of them again, so that whatever differs between the two is noise. The order within a
block is drawn from the seed and the block's number: that of the cells, and that of the variants in
each. A cell's turns follow each other, so that what is compared meets the same minute of the disk
(docs/decisions/0067). Since nothing else decides, a session that was killed and one that was not
take the same samples. One that goes on with other rounds or another budget leaves the blocks that
have samples as they are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from penstock.bench.sample import Key, RateKind, Sample
from penstock.bench.statistics import Decision, Stopping

FAILURES_TO_DROP = 2
Pair = tuple[str, str]  # cell, variant


@dataclass(frozen=True)
class Turn:
    """One sample to be taken."""

    cell: str
    variant: str
    block: int
    place: int
    canary: bool = False

    @property
    def key(self) -> Key:
        """As `Sample.key`."""
        return (self.cell, self.variant, self.block, self.canary)

    @property
    def warm_up(self) -> bool:
        """Whether it is run only to warm up, and kept but not counted."""
        return self.block == 0


@dataclass
class Progress:
    """What the samples of the blocks before some block say of one variant of a cell."""

    rates: list[float] = field(default_factory=list)
    attempts: int = 0
    failures_in_a_row: int = 0
    last_failure: str = ""

    @property
    def dropped(self) -> bool:
        """Whether it failed so often in a row that it is not tried again."""
        return self.failures_in_a_row >= FAILURES_TO_DROP

    def add(self, sample: Sample, rate: RateKind) -> None:
        """Count a sample."""
        if sample.failed is not None:
            self.failures_in_a_row += 1
            self.last_failure = sample.failed
        else:
            self.failures_in_a_row = 0
        if sample.canary or sample.warm_up:
            return
        self.attempts += 1
        value = sample.rate(rate)
        if value is not None:
            self.rates.append(value)


Keep = Callable[[Sequence[Sample]], Set[Pair]]


@dataclass(frozen=True)
class Plan:
    """The pairs to measure, and what decides when each cell has been measured enough.

    ``keep`` says which pairs the blocks after the warm-ups hold, from the samples of the blocks
    before; None is all. It must be a pure function, as the plan is.
    """

    pairs: tuple[Pair, ...]
    stopping: Stopping
    seed: int
    rate: RateKind = "application"
    keep: Keep | None = None

    def block(self, number: int, samples: Iterable[Sample]) -> list[Turn]:
        """The turns of a block; none when everything has been measured.

        Only the samples of the blocks before ``number`` are looked at, so that a block that was
        begun stays as it was drawn.
        """
        wanted = self.wanted(s for s in samples if s.block < number)
        if not wanted:
            return []
        draw = random.Random(f"{self.seed}/{number}")  # noqa: S311 - an order, not a secret
        turns = [(pair, False) for pair in wanted]
        if number > 0:
            turns.append((draw.choice(wanted), True))
        draw.shuffle(turns)
        cells = list(dict.fromkeys(cell for cell, _ in wanted))
        draw.shuffle(cells)
        turns.sort(key=lambda turn: cells.index(turn[0][0]))
        return [
            Turn(cell, variant, number, place, canary)
            for place, ((cell, variant), canary) in enumerate(turns)
        ]

    def wanted(self, samples: Iterable[Sample]) -> list[Pair]:
        """Of the cells that are not done, the variants that were not dropped."""
        taken = list(samples)
        progress = self.progress(taken)
        if self.keep is not None and taken:
            kept = self.keep(taken)
            progress = {pair: one for pair, one in progress.items() if pair in kept}
        cells = dict.fromkeys(cell for cell, _ in progress)
        done = {cell for cell in cells if self._cell_done(cell, progress)}
        return [p for p, one in progress.items() if p[0] not in done and not one.dropped]

    def progress(self, samples: Iterable[Sample]) -> dict[Pair, Progress]:
        """What the samples say of every pair."""
        found = {pair: Progress() for pair in self.pairs}
        for sample in samples:
            if (sample.cell, sample.variant) in found:
                found[sample.cell, sample.variant].add(sample, self.rate)
        return found

    def _cell_done(self, cell: str, progress: dict[Pair, Progress]) -> bool:
        """All variants are done together, so that their samples stay pairs of one block."""
        active = [p for pair, p in progress.items() if pair[0] == cell and not p.dropped]
        return all(decision(self.stopping, one) != "go on" for one in active)


def decision(stopping: Stopping, progress: Progress) -> Decision:
    """What the rule says of a variant by its samples at the last number at which it looks.

    A variant that fails now and then is tried no more often than the rule's maximum.
    """
    n = len(progress.rates)
    if progress.attempts >= stopping.maximum and n < stopping.maximum:
        return stopping.decide(progress.rates, out_of_time=True) if n else "not converged"
    looks = sorted({stopping.minimum, *stopping.checks, stopping.maximum})
    reached = [look for look in looks if look <= n]
    return stopping.decide(progress.rates[: reached[-1]]) if reached else "go on"


def complete(plan: Plan, samples: Sequence[Sample]) -> bool:
    """Whether a session of the plan would take no further sample."""
    number = 0
    while turns := plan.block(number, samples):
        if pending(turns, samples):
            return False
        number += 1
    return True


def pending(turns: Sequence[Turn], samples: Iterable[Sample]) -> list[Turn]:
    """The turns of a block that are still to be taken.

    A block that later ones follow is over, and so is one that was begun in another order, as it is
    drawn with other rounds or another budget: what is added to it now would be paired with samples
    of another day. It goes into blocks of its own.
    """
    number = turns[0].block
    taken = [s for s in samples if s.block >= number]
    here = {s.key for s in taken if s.block == number}
    begun = {turn.key for turn in turns[: len(here)]}
    over = len(here) < len(taken) or here != begun
    return [] if over else list(turns[len(here) :])
