"""The samples of a session as values by block, and the best of several variants."""

from __future__ import annotations

import fnmatch
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.bench.sample import Provenance, Sample
from penstock.bench.store import Results
from penstock.reproduce.measures import MEASURES

Values = dict[int, float]  # by block
NOT_MEASURED = "not measured in this size"
NOT_FITTING = "not measured within the budget"
NOT_YET = "not measured yet: the same command goes on"
_WRONG = "left wrong bytes in the file"  # in a warm-up too: a fast way to a wrong file is none


@dataclass(frozen=True)
class Evidence:
    """What was planned, and the samples that count: no warm-ups, canaries and failed ones.

    Nor any of a variant that left wrong bytes once: it is invalid.

    Attributes
    ----------
    planned : sequence of (cell, variant)
        What the session was to measure.
    samples : sequence of Sample
    provenances : sequence of Provenance
        Where they were taken.
    budget_s : float or None
        Of the session, since it went on last.
    chosen_for_s : float or None
        The budget that what was planned was chosen to fit.
    left_out : sequence of (cell, variant)
        What the session has not tried: of what was planned, and of what the budget left out.
    to_come : sequence of (cell, variant)
        What the same command goes on with; of these only what is left out is looked at.
    aside : sequence of Sample
        Those that do not count: of them only where they were taken is known.
    invalid : mapping of (cell, variant) to str
        Those whose samples are not about what a conclusion is about, and why.
    """

    planned: tuple[tuple[str, str], ...]
    samples: tuple[Sample, ...]
    provenances: tuple[Provenance, ...] = ()
    budget_s: float | None = None
    chosen_for_s: float | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    to_come: tuple[tuple[str, str], ...] = ()
    aside: tuple[Sample, ...] = ()
    invalid: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Results) -> Evidence:
        """That of a results file."""
        header_plan = results.headers[0].plan if results.headers else {}
        plan = header_plan.get("measurements", [])
        budget_s = results.latest[0].plan.get("budget_s") if results.headers else None
        chosen_for_s = header_plan.get("budget_s")
        wrong = {(s.cell, s.variant): _WRONG for s in results.samples if s.wrong_bytes}
        counting = tuple(
            sample
            for sample in results.samples
            if sample.counts and (sample.cell, sample.variant) not in wrong
        )
        planned = tuple((one["cell"], one["variant"]) for one in plan)
        where = tuple(results.provenances.values())
        aside = tuple(sample for sample in results.samples if not sample.counts)
        return cls(planned, counting, where, budget_s, chosen_for_s, aside=aside, invalid=wrong)

    @property
    def known(self) -> list[tuple[str, str]]:
        """What was planned, and what the budget left out of the size."""
        return list(dict.fromkeys((*self.planned, *self.left_out)))

    def cells(self, patterns: Iterable[str]) -> list[str]:
        """The cells that fit any of the patterns, in the plan's order."""
        wanted = list(patterns)
        names = dict.fromkeys(cell for cell, _ in self.known)
        return [name for name in names if _fits(name, wanted)]

    def variants(self, cell: str, patterns: Iterable[str]) -> list[str]:
        """The variants of a cell that fit any of the patterns."""
        wanted = list(patterns)
        return [v for c, v in self.known if c == cell and _fits(v, wanted)]

    def of_variant(self, cell: str, variant: str) -> list[Sample]:
        """The samples of one."""
        return [s for s in self.samples if (s.cell, s.variant) == (cell, variant)]

    def why_invalid(self, cell: str, patterns: Iterable[str]) -> str:
        """Of the first of these variants whose samples do not count; empty if all do."""
        names = (v for v in self.variants(cell, patterns) if (cell, v) in self.invalid)
        return next((f"{name}: {self.invalid[cell, name]}" for name in names), "")

    def why_left_out(self, cell: str, patterns: Iterable[str]) -> str:
        """Why these variants decide nothing; empty if all were tried."""
        untried = {(cell, v) for v in self.variants(cell, patterns)} & {*self.left_out}
        if not untried:
            return ""
        if untried <= {*self.to_come}:
            return NOT_YET
        asked_s = self.budget_s if self.chosen_for_s is None else self.chosen_for_s
        return f"{NOT_FITTING} of {asked_s:.12g} s"

    def values(self, cell: str, variant: str, measure: str) -> Values:
        """What a measure says of each sample, by block."""
        read = MEASURES[measure]
        pairs = ((s.block, read(s)) for s in self.of_variant(cell, variant))
        return {block: value for block, value in pairs if value is not None and value > 0.0}

    def best(self, cell: str, patterns: Sequence[str], measure: str) -> Values:
        """Of each block the value of the variant that is best in all *other* blocks.

        Who is chosen by the very samples that he is judged by looks better than he is, the more so
        the more there were to choose from.
        """
        names = self.variants(cell, patterns)
        rows = [v for name in names if (v := self.values(cell, name, measure))]
        return _best_of(rows)

    def best_name(self, cell: str, patterns: Sequence[str], measure: str) -> str | None:
        """The variant with the highest median."""
        medians = {
            name: statistics.median(values.values())
            for name in self.variants(cell, patterns)
            if (values := self.values(cell, name, measure))
        }
        return max(medians, key=lambda name: medians[name]) if medians else None


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _best_of(rows: Sequence[Values]) -> Values:
    if len(rows) < 2:
        return dict(rows[0]) if rows else {}
    found: Values = {}
    for block in sorted({block for row in rows for block in row}):
        elsewhere = [
            (statistics.median(others), row[block])
            for row in rows
            if block in row and (others := [v for b, v in row.items() if b != block])
        ]
        if elsewhere:
            found[block] = max(elsewhere)[1]
    return found
