"""Decides a claim by samples: paired by block, and by the whole interval of the median.

Pure functions. A ratio *holds* when the whole interval is inside its range, *does not hold* when
the whole of it is outside, and is *undecided* else, or where there are fewer pairs than the
conclusion asks for, or too few for an interval of 95 %. What was not measured decides nothing.
"""

from __future__ import annotations

import math
import statistics as middle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.bench.statistics import CONFIDENCE, Ratio, median_interval, paired_ratio_interval
from penstock.reproduce import conclusions as c
from penstock.reproduce import simulated
from penstock.reproduce.evidence import NOT_MEASURED, Evidence, Values

Verdict = Literal["holds", "does not hold", "undecided", "cannot be tested here"]
Points = Sequence[tuple[str, Sequence[str]]]  # cells, with patterns of variants
_TOO_FEW_POINTS = "fewer than two of the points were measured together"


@dataclass(frozen=True)
class Rule:
    """What a conclusion asks of its claims."""

    effect: float
    samples: int


@dataclass(frozen=True)
class Finding:
    """What a claim says of one cell, and why."""

    where: str
    verdict: Verdict
    why: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


@dataclass(frozen=True)
class Judged:
    """A claim's verdict and its findings."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def judge(claim: c.Claim, rule: Rule, evidence: Evidence) -> Judged:
    """Decide a claim."""
    findings = next(d for kind, d in _DECIDERS if isinstance(claim, kind))(claim, rule, evidence)
    if not findings:
        none = Finding("all cells", "cannot be tested here", NOT_MEASURED)
        return Judged(none.verdict, (none,))
    together = most if isinstance(claim, c.Pair) and claim.where == "most" else every
    return Judged(together([f.verdict for f in findings]), tuple(findings))


def every(verdicts: Sequence[Verdict]) -> Verdict:
    """One that does not hold is enough; to hold, all must."""
    if "does not hold" in verdicts:
        return "does not hold"
    tested = [v for v in verdicts if v != "cannot be tested here"]
    if not tested:
        return "cannot be tested here"
    return "holds" if all(v == "holds" for v in verdicts) else "undecided"


def most(verdicts: Sequence[Verdict]) -> Verdict:
    """More than half of those that could be tested."""
    tested = [v for v in verdicts if v != "cannot be tested here"]
    if not tested:
        return "cannot be tested here"
    good, bad = tested.count("holds"), tested.count("does not hold")
    if 2 * good > len(tested):
        return "holds"
    return "does not hold" if 2 * (len(tested) - bad) <= len(tested) else "undecided"


def ranged(ratio: Ratio, n: int, rule: Rule, lowest: float, highest: float) -> tuple[Verdict, str]:
    """A ratio against its range, and why."""
    said = f"{_number(ratio.ratio)} [{_number(ratio.low)} to {_number(ratio.high)}], n={n}"
    wanted = _range(lowest, highest)
    if n < rule.samples:
        return "undecided", f"{said}: {rule.samples} pairs are needed"
    if ratio.confidence < CONFIDENCE:
        return "undecided", f"{said}: the interval covers {100 * ratio.confidence:.0f} %"
    if lowest <= ratio.low and ratio.high <= highest:
        return "holds", f"{said}, wanted {wanted}"
    if ratio.high < lowest or ratio.low > highest:
        return "does not hold", f"{said}, wanted {wanted}"
    return "undecided", f"{said}, wanted {wanted}"


def _range(lowest: float, highest: float) -> str:
    if highest == math.inf:
        return f"at least {_number(lowest)}"
    if lowest == 0.0:
        return f"at most {_number(highest)}"
    return f"{_number(lowest)} to {_number(highest)}"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _finding(where: str, ratio: Ratio, n: int, judged: tuple[Verdict, str]) -> Finding:
    return Finding(where, judged[0], judged[1], ratio.ratio, ratio.low, ratio.high, n)


# ---- pairs ------------------------------------------------------------------------------------


def range_of(claim: c.Claim, effect: float) -> tuple[float, float]:
    """From where to where the ratio of a pair, or the factor of a trend, must be."""
    inside, outside = 1.0 / (1.0 + effect), 1.0 + effect
    match claim:
        case c.WithinRatio():
            return claim.least, claim.most
        case c.Faster() | c.Rising() | c.ScalesBetter():
            return outside, math.inf
        case c.NotFaster() | c.NotRising():
            return 0.0, outside
        case c.NotSlower():
            return inside, math.inf
        case c.Falling():
            return 0.0, inside
        case c.Same() | c.Flat():
            return inside, outside
    raise AssertionError(f"{type(claim).__name__} has no range")


def _pair(claim: c.Pair, rule: Rule, evidence: Evidence) -> list[Finding]:
    found = []
    for cell, over_cell in _cells_of(claim, evidence):
        of = evidence.best(cell, claim.of, claim.measure)
        over = evidence.best(over_cell, claim.over, claim.over_measure or claim.measure)
        if missing := _missing(evidence, (cell, claim.of, of), (over_cell, claim.over, over)):
            found.append(Finding(cell, "cannot be tested here", missing))
            continue
        ratio, n = paired(of, over)
        judged = ranged(ratio, n, rule, *range_of(claim, rule.effect))
        found.append(_finding(cell, ratio, n, judged))
    return found


def _cells_of(claim: c.Pair, evidence: Evidence) -> list[tuple[str, str]]:
    """Cells, each with the cell that it is compared with; also such as this size has not."""
    if claim.over_cells:
        return list(zip(claim.cells, claim.over_cells, strict=True))
    found = [cell for one in claim.cells for cell in evidence.cells([one]) or [one]]
    return [(cell, cell) for cell in dict.fromkeys(found)]


def paired(of: Values, over: Values) -> tuple[Ratio, int]:
    """The median ratio of two measures in the blocks that have both. REQUIRES such a block."""
    blocks = sorted(of.keys() & over.keys())
    ratio = paired_ratio_interval([over[b] for b in blocks], [of[b] for b in blocks])
    return ratio, len(blocks)


def _missing(
    evidence: Evidence,
    of: tuple[str, Sequence[str], Values],
    over: tuple[str, Sequence[str], Values],
) -> str:
    """Why there is no pair; empty if there is one."""
    for cell, patterns, values in (of, over):
        if not evidence.variants(cell, patterns):
            return f"{', '.join(patterns)}: {NOT_MEASURED}"
        if why := evidence.why_invalid(cell, patterns):
            return why
        if why := evidence.why_left_out(cell, patterns):
            return why
        if not values:
            return f"{', '.join(patterns)}: no sample has it"
        if lacking := _lacking(evidence, cell, patterns):
            return f"{lacking}: no sample has it"
    return "" if of[2].keys() & over[2].keys() else "no block has both"


def _lacking(evidence: Evidence, cell: str, patterns: Sequence[str]) -> str:
    """Those called by name that were planned and have no sample; the others' best is not theirs."""
    planned = {*evidence.variants(cell, patterns)}
    return ", ".join(p for p in patterns if p in planned and not evidence.of_variant(cell, p))


# ---- trends -----------------------------------------------------------------------------------


def _trend(claim: c.Trend, rule: Rule, evidence: Evidence) -> list[Finding]:
    """One finding along the cells, or one along the variants of each cell."""
    if claim.along_cells:
        points = [(cell, claim.of) for cell in claim.along_cells]
        return [_along("along the cells", points, claim, rule, evidence)]
    return [
        _along(cell, [(cell, [variant]) for variant in claim.along], claim, rule, evidence)
        for cell in evidence.cells(claim.cells)
    ]


def _along(
    where: str,
    points: Points,
    claim: c.Trend,
    rule: Rule,
    evidence: Evidence,
) -> Finding:
    if why := _invalid(evidence, points) or _unmeasured(evidence, points, claim.measure):
        return Finding(where, "cannot be tested here", why)
    rows = _points(evidence, points, claim.measure)
    factors = factors_of(rows)
    if not factors:
        return Finding(where, "cannot be tested here", _TOO_FEW_POINTS)
    ratio = _median(list(factors.values()))
    judged = ranged(ratio, len(factors), rule, *range_of(claim, rule.effect))
    return _finding(f"{where}, {len(rows)} points", ratio, len(factors), judged)


def _invalid(evidence: Evidence, points: Points) -> str:
    """Why a trend cannot be judged: one of its points is not about what it is about."""
    told = ((cell, evidence.why_invalid(cell, patterns)) for cell, patterns in points)
    return next((f"{cell}, {why}" for cell, why in told if why), "")


def _unmeasured(evidence: Evidence, points: Points, measure: str) -> str:
    """Which points have no sample: what is left of a trend decides nothing."""
    if why := _left_out(evidence, points):
        return why
    lacking = [
        f"{cell}, {', '.join(patterns)}"
        for cell, patterns in points
        if not evidence.best(cell, patterns, measure)
    ]
    return f"{'; '.join(lacking)}: {NOT_MEASURED}" if lacking else ""


def _left_out(evidence: Evidence, points: Points) -> str:
    told = (evidence.why_left_out(cell, patterns) for cell, patterns in points)
    return next((why for why in told if why), "")


def _points(evidence: Evidence, points: Points, measure: str) -> list[Values]:
    return [evidence.best(cell, patterns, measure) for cell, patterns in points]


def factors_of(rows: Sequence[Values]) -> Values:
    """Of each block that has all points: the factor from first to last, by the line of logs."""
    if len(rows) < 2:
        return {}
    blocks = set.intersection(*(set(row) for row in rows))
    return {block: _line([math.log(row[block]) for row in rows]) for block in sorted(blocks)}


def _line(logs: Sequence[float]) -> float:
    slope = middle.linear_regression(range(len(logs)), logs).slope
    return math.exp(slope * (len(logs) - 1))


def _median(values: Sequence[float]) -> Ratio:
    interval = median_interval(values)
    return Ratio(middle.median(values), interval.low, interval.high, interval.confidence)


def _scales(claim: c.ScalesBetter, rule: Rule, evidence: Evidence) -> list[Finding]:
    over_cells = claim.over_cells or claim.along_cells
    of_points = [(cell, claim.of) for cell in claim.along_cells]
    over_points = [(cell, claim.over) for cell in over_cells]
    both = [*of_points, *over_points]
    if why := _invalid(evidence, both) or _unmeasured(evidence, both, claim.measure):
        return [Finding("along the cells", "cannot be tested here", why)]
    of = _points(evidence, of_points, claim.measure)
    over = _points(evidence, over_points, claim.measure)
    of_factors, over_factors = factors_of(of), factors_of(over)
    if len(of) != len(over) or not of_factors.keys() & over_factors.keys():
        return [Finding("along the cells", "cannot be tested here", _TOO_FEW_POINTS)]
    ratio, n = paired(of_factors, over_factors)
    judged = ranged(ratio, n, rule, *range_of(claim, rule.effect))
    return [_finding(f"along the cells, {len(of)} points", ratio, n, judged)]


# ---- the others -------------------------------------------------------------------------------


def _none_best(claim: c.NoneBest, rule: Rule, evidence: Evidence) -> list[Finding]:
    """One finding for each that might be always best."""
    cells = evidence.cells(claim.cells)
    return [f for one in claim.among if (f := _beaten(one, claim, rule, evidence, cells))]


def _beaten(
    one: str, claim: c.NoneBest, rule: Rule, evidence: Evidence, cells: Sequence[str]
) -> Finding | None:
    """Whether it is slower than another in some cell; None where it is not planned."""
    if why := next((why for cell in cells if (why := evidence.why_invalid(cell, [one]))), ""):
        return Finding(one, "cannot be tested here", why)
    others = [other for other in claim.among if other != one]
    seen: list[tuple[str, Verdict, str]] = []
    for cell in cells:
        own = evidence.best(cell, [one], claim.measure)
        best = evidence.best(cell, others, claim.measure)
        if own.keys() & best.keys():
            ratio, n = paired(own, best)
            said, why = ranged(ratio, n, rule, 0.0, 1.0 / (1.0 + rule.effect))
            seen.append((cell, said, why))
    for cell, said, why in seen:
        if said == "holds":
            return Finding(one, "holds", f"slower in {cell}: {why}")
    if why := _left_out(evidence, [(cell, claim.among) for cell in cells]):
        return Finding(one, "cannot be tested here", why)
    if not seen:
        planned = any(evidence.variants(cell, [one]) for cell in cells)
        return Finding(one, "cannot be tested here", NOT_MEASURED) if planned else None
    if all(said == "does not hold" for _, said, _ in seen):
        return Finding(one, "does not hold", f"not slower in any of {len(seen)} cells")
    return Finding(one, "undecided", f"surely slower in none of {len(seen)} cells")


def _spread(claim: c.SpreadAtLeast, rule: Rule, evidence: Evidence) -> list[Finding]:
    """The widest of all; a search for one that is wide, so there is no interval."""
    widest: tuple[float, str, int] | None = None
    cells = evidence.cells(claim.cells)
    for cell in cells:
        for variant in evidence.variants(cell, claim.of):
            values = list(evidence.values(cell, variant, claim.measure).values())
            if len(values) >= rule.samples:
                spread = max(values) / min(values) - 1.0
                widest = max(widest or (0.0, "", 0), (spread, f"{cell}, {variant}", len(values)))
    is_wide = widest is not None and widest[0] >= claim.least
    if not is_wide and (why := _left_out(evidence, [(cell, claim.of) for cell in cells])):
        return [Finding("all cells", "cannot be tested here", why)]
    if widest is None:
        why = f"no variant has {rule.samples} samples"
        return [Finding("all cells", "undecided", why)]
    spread, where, n = widest
    verdict: Verdict = "holds" if is_wide else "does not hold"
    why = f"the widest: {100 * spread:.0f} %, n={n}, wanted at least {100 * claim.least:.0f} %"
    return [Finding(where, verdict, why, n=n)]


def _varies_less(claim: c.VariesLess, rule: Rule, evidence: Evidence) -> list[Finding]:
    """By the ratios of the cells: of a variant there is one spread, so cells are what repeats."""
    ratios = []
    cells = evidence.cells(claim.cells)
    if why := _left_out(evidence, [(cell, [*claim.of, *claim.over]) for cell in cells]):
        return [Finding("all cells", "cannot be tested here", why)]
    for cell in cells:
        of, over = (
            [
                (max(values) - min(values)) / middle.median(values)
                for name in evidence.variants(cell, patterns)
                if len(values := list(evidence.values(cell, name, claim.measure).values()))
                >= rule.samples
            ]
            for patterns in (claim.of, claim.over)
        )
        if of and over and (below := middle.median(over)) > 0.0:
            ratios.append(middle.median(of) / below)
    if not ratios:
        return [Finding("all cells", "undecided", f"no cell has {rule.samples} samples of both")]
    ratio = _median(ratios)
    judged = ranged(ratio, len(ratios), rule, 0.0, 1.0 / (1.0 + rule.effect))
    return [_finding(f"spreads of {len(ratios)} cells", ratio, len(ratios), judged)]


def _equals(claim: c.Equals, rule: Rule, evidence: Evidence) -> list[Finding]:
    found = []
    for cell, expected in claim.expected.items():
        why = evidence.why_invalid(cell, claim.of) or evidence.why_left_out(cell, claim.of)
        if why:
            found.append(Finding(cell, "cannot be tested here", why))
            continue
        names = evidence.variants(cell, claim.of)
        values = [v for n in names for v in evidence.values(cell, n, claim.measure).values()]
        if len(values) < rule.samples:
            found.append(Finding(cell, "cannot be tested here", "no sample in this size"))
            continue
        wrong = sorted({v for v in values if v != expected})
        verdict: Verdict = "does not hold" if wrong else "holds"
        said = ", ".join(f"{v:g}" for v in wrong) or f"{expected:g}"
        why = f"{said}, n={len(values)}, wanted {expected:g}"
        found.append(Finding(cell, verdict, why, n=len(values)))
    return found


def _simulated(claim: c.Simulated, _: Rule, __: Evidence) -> list[Finding]:
    """By every block size; what depends on it is undecided, as the paper does not give it."""
    over_at = claim.at if claim.over_at is None else claim.over_at
    values = simulated.ratios(claim.of, claim.at, claim.over, over_at)
    inside = [claim.least <= value <= claim.most for value in values.values()]
    verdict: Verdict = "holds" if all(inside) else "undecided" if any(inside) else "does not hold"
    low, high = min(values.values()), max(values.values())
    beside = f" over {claim.over} at {over_at:g}" if claim.over else ""
    few, many = min(values), max(values)
    why = (
        f"{claim.of} at {claim.at:g} times the memory{beside}: {_number(low)} to {_number(high)} "
        f"with blocks of 1/{few} to 1/{many} of the memory, "
        f"wanted {_range(claim.least, claim.most)}"
    )
    if verdict == "undecided":
        good = [f"1/{blocks}" for blocks, ok in zip(values, inside, strict=True) if ok]
        why += f", so with blocks of {', '.join(good)}; the paper does not give their size"
    middle_value = middle.median(values.values())
    return [Finding("simulator", verdict, why, middle_value, low, high, len(values))]


Decider = Callable[[Any, Rule, Evidence], list[Finding]]
_DECIDERS: tuple[tuple[type[c.Claim], Decider], ...] = (
    (c.Pair, _pair),
    (c.Trend, _trend),
    (c.ScalesBetter, _scales),
    (c.NoneBest, _none_best),
    (c.SpreadAtLeast, _spread),
    (c.VariesLess, _varies_less),
    (c.Equals, _equals),
    (c.Simulated, _simulated),
)
