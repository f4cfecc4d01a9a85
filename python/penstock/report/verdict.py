"""The verdict in words: which method, how much faster, how sure.

It never says more than was shown: "faster" where the statistics say it (docs/statistics.md), "not
told apart" where they do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.bench import statistics
from penstock.bench.differences import Difference, Differences
from penstock.bench.render import rate_text, ratio_text
from penstock.bench.sample import RateKind
from penstock.bench.summary import Against, CellSummary, Summary, VariantSummary
from penstock.report.figures.ratios import called
from penstock.report.model import Sure, Verdict
from penstock.report.words import counts, intervals, ratio_interval

_WORDS: dict[statistics.Verdict, str] = {
    "faster": "faster",
    "same": "the same",
    "slower": "slower",
    "unclear": "not told apart from A",
}


@dataclass(frozen=True)
class Chosen:
    """The variant that a session speaks for, and in which cells how well."""

    variant: str
    best: tuple[CellSummary, ...]
    level: tuple[CellSummary, ...]  # as good, or not told apart from the best
    slower: tuple[CellSummary, ...]

    @property
    def shown(self) -> tuple[CellSummary, ...]:
        """Where it is best and everything else is shown to be slower."""
        return tuple(c for c in self.best if is_shown(c))


def is_shown(cell: CellSummary) -> bool:
    """Whether the best of a cell is shown to be faster than all others."""
    r = cell.ranking
    return bool(r.slower) and not r.as_good and not r.not_told_apart


def choose(cells: Sequence[CellSummary]) -> Chosen | None:
    """Who is best in most cells; of equals, who is level with the best in most."""
    names = list(dict.fromkeys(c.ranking.best for c in cells if c.ranking.best))
    made = [_of(name, cells) for name in names]
    return max(made, key=lambda c: (len(c.best), len(c.level)), default=None)


def _of(name: str, cells: Sequence[CellSummary]) -> Chosen:
    def where(among: str) -> tuple[CellSummary, ...]:
        return tuple(c for c in cells if name in getattr(c.ranking, among))

    best = tuple(c for c in cells if c.ranking.best == name)
    return Chosen(name, best, where("as_good") + where("not_told_apart"), where("slower"))


def lead(cell: CellSummary) -> tuple[Against, str] | None:
    """The next best of a cell, and how many times its rate the best has, with the interval."""
    next_best = max(cell.ranking.against, key=lambda a: a.ratio, default=None)
    if next_best is None:
        return None
    a = next_best
    return a, ratio_text(1 / a.ratio, 1 / a.high, 1 / a.low)


def of_session(summary: Summary) -> Verdict:
    """Of bench results."""
    chosen = choose(summary.cells)
    if chosen is None:
        return Verdict("No way of writing has valid samples, so none can be recommended.", "wrong")
    if len(summary.cells) == 1:
        return _of_one(chosen.best[0], summary.rate)
    if not any(c.ranking.against for c in summary.cells):
        return Verdict(
            f"In none of {len(summary.cells)} cells was a way of writing compared with another.",
            "not compared",
        )
    return _of_many(chosen, summary)


def _of_one(cell: CellSummary, kind: RateKind) -> Verdict:
    ranking = cell.ranking
    best = next(v for v in cell.variants if v.variant == ranking.best)
    rate = rate_text(best.rate(kind))
    next_best = lead(cell)
    if next_best is None:
        headline = f"{best.variant} wrote at {rate}; it was compared with nothing."
        return Verdict(headline, "not compared")
    other, ratio = next_best
    if is_shown(cell):
        headline = (
            f"{best.variant} is the fastest at {rate}: {ratio} times the next, {other.variant}."
        )
        return Verdict(headline, "shown", (_how_sure((cell,), kind),))
    level = [*ranking.as_good, *ranking.not_told_apart]
    of_these = " of what has enough samples" if _is_passed_by_chance(cell, best, kind) else ""
    who = f"{best.variant} has the highest rate{of_these}"
    headline = (
        f"{who}, {rate}, but is not told apart from {_listed(ranking.not_told_apart)}."
        if ranking.not_told_apart
        else f"{who}, {rate}; within {100 * ranking.margin:g} % as good: "
        f"{_listed(ranking.as_good)}."
    )
    details = [f"It is {ratio} times the next, {other.variant}."]
    if ranking.slower:
        details.append(f"Shown to be slower: {_listed(ranking.slower)}.")
    details.append(_how_sure((cell,), kind))
    return Verdict(headline, "not told apart" if level else "shown", tuple(details))


def _is_passed_by_chance(cell: CellSummary, best: VariantSummary, kind: RateKind) -> bool:
    """Whether a way is ranked below for its failures alone: the few that they left are faster."""
    top = best.rate(kind)
    few = [found for v in cell.writing if v.is_chance(kind) and (found := v.rate(kind))]
    return top is not None and any(f.median_bytes_per_s > top.median_bytes_per_s for f in few)


def _of_many(chosen: Chosen, summary: Summary) -> Verdict:
    cells = len(summary.cells)
    best = len(chosen.best)
    words = "is the fastest" if len(chosen.shown) == best else "has the highest rate"
    headline = f"{chosen.variant} {words} in {best} of {cells} cells"
    if chosen.level:
        headline += (
            f", and is level with the best or not told apart from it in {len(chosen.level)} more"
        )
    wrong = [c.cell for c in summary.cells if _is_wrong(chosen, c)]
    details = [_left_wrong(wrong)] if wrong else []
    details.append(_shown(chosen))
    if chosen.slower:
        named = _listed([c.cell for c in chosen.slower])
        details.append(f"It is shown to be slower than the best in {len(chosen.slower)}: {named}.")
    absent = cells - len(chosen.best) - len(chosen.level) - len(chosen.slower) - len(wrong)
    if absent:
        details.append(f"In {absent} it has no valid rate, or did not take part.")
    details.append(_how_sure(summary.cells, summary.rate))
    sure: Sure = "wrong" if wrong else _sure_of_many(chosen, cells)
    return Verdict(f"{headline}.", sure, tuple(details))


def _is_wrong(chosen: Chosen, cell: CellSummary) -> bool:
    return any(v.invalid for v in cell.variants if v.variant == chosen.variant)


def _left_wrong(cells: Sequence[str]) -> str:
    return (
        f"It left wrong bytes in {len(cells)}: {_listed(cells)}. Do not use it before that is "
        "understood."
    )


def _sure_of_many(chosen: Chosen, cells: int) -> Sure:
    if len(chosen.shown) == cells:
        return "shown"
    return "mixed" if chosen.shown else "not told apart"


def _shown(chosen: Chosen) -> str:
    """In how many of its cells nothing else may be as good, and by how much."""
    if not chosen.shown:
        return "In none of them is everything else shown to be slower."
    leads = [1 / max(a.ratio for a in c.ranking.against) for c in chosen.shown]
    span = f"{min(leads):.2f}" if len(leads) == 1 else f"{min(leads):.2f} to {max(leads):.2f}"
    return (
        f"In {len(leads)} of them everything else is shown to be slower; there it has {span} times "
        "the rate of the next (intervals below)."
    )


def _how_sure(cells: Sequence[CellSummary], kind: RateKind) -> str:
    all_n = [rate.n for c in cells for v in c.writing if (rate := v.rate(kind))]
    return (
        f"By the {kind} rate, {counts(all_n)} of each; {intervals('brackets', all_n)}. Slower is "
        f"said only where {ratio_interval(all_n)} and a Mann-Whitney test, corrected for all "
        "comparisons of a cell, both exclude equality and the ratio is beyond the margin."
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


# --- Two results ---


def of_differences(found: Differences) -> Verdict:
    """Of B against A."""
    if len(found.differences) == 1:
        return _of_one_difference(found)
    broken = [d for d in found.differences if is_broken(d)]
    verdicts = Counter(d.verdict for d in found.differences if not is_broken(d))
    said = [f"{word} in {verdicts[v]}" for v, word in _WORDS.items() if verdicts[v]]
    said += [f"wrong or failed in {len(broken)}"] if broken else []
    headline = f"Of {len(found.differences)} comparisons B is {', '.join(said)}."
    details = [f"Wrong or failed in {called(d)} ({d.rate} rate): {d.why}." for d in broken[:3]]
    details += [
        f"{word} in {called(d)} ({d.rate} rate): {_ratio(d)} times A's."
        for verdict, word in (("slower", "Slower"), ("faster", "Faster"))
        for d in _extremes(found.differences, verdict)
    ]
    details.append(_how_compared(found))
    return Verdict(headline, _sure_of(found), tuple(details))


def is_broken(d: Difference) -> bool:
    """Whether B is worse for what it left in the file or for its failures, whatever its rate."""
    return d.worse and d.verdict != "slower"


def _extremes(differences: Sequence[Difference], verdict: str) -> list[Difference]:
    """The three that differ most."""
    own = [d for d in differences if d.verdict == verdict and d.ratio]
    return sorted(own, key=lambda d: d.ratio or 1.0, reverse=verdict == "faster")[:3]


def _of_one_difference(found: Differences) -> Verdict:
    (d,) = found.differences
    if d.ratio is None:
        return Verdict(f"B cannot be compared with A: {d.why}.", _sure_of(found))
    rates = f"A {rate_text(d.a)}, B {rate_text(d.b)}"
    if is_broken(d):
        details = (f"{rates}.", _how_compared(found))
        return Verdict(f"B is worse than A: {d.why}.", _sure_of(found), details)
    words = {
        "faster": "B is faster than A",
        "slower": "B is slower than A",
        "same": f"B and A are the same within {100 * found.margin:g} %",
        "unclear": "B and A are not told apart",
    }[d.verdict]
    headline = f"{words}: {_ratio(d)} times A's {d.rate} rate."
    why = (f"Why: {d.why}.",) if d.verdict == "unclear" else ()
    return Verdict(headline, _sure_of(found), (f"{rates}.", *why, _how_compared(found)))


def _ratio(d: Difference) -> str:
    if d.ratio is None or d.low is None or d.high is None:
        return "an unknown number of"
    return ratio_text(d.ratio, d.low, d.high)


def _sure_of(found: Differences) -> Sure:
    verdicts = {d.verdict for d in found.differences}
    if any(is_broken(d) for d in found.differences):
        return "wrong"
    if "unclear" not in verdicts:
        return "shown"
    return "not told apart" if verdicts == {"unclear"} else "mixed"


def _how_compared(found: Differences) -> str:
    all_n = [rate.n for d in found.differences for rate in (d.a, d.b) if rate is not None]
    said = f"; {intervals('brackets', all_n)}" if all_n else ""
    return (
        f"The margin is {100 * found.margin:g} %{said}. Faster and slower are said only where "
        f"{ratio_interval(all_n)} and a Mann-Whitney test, corrected for all comparisons, both "
        "exclude equality and the ratio is beyond the margin."
    )
