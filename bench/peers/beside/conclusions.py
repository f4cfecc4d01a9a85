"""What becomes of the conclusions that cells.toml asks for, from the cells of a report."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

from beside.samples import by_chance, not_by_chance
from beside.spec import Conclusion, Verdict
from beside.values import CellReport, CellVerdict, ConclusionReport, Spread
from penstock.bench.statistics import CONFIDENCE


def conclude(conclusion: Conclusion, cells: Sequence[CellReport]) -> ConclusionReport:
    """What becomes of a conclusion: of each of its cells, or of its families, and together."""
    covered = [cell for cell in cells if conclusion.covers(cell.cell)]
    if conclusion.ceiling or conclusion.against == "ceiling":
        covered = [cell for cell in covered if any(v.kind == "ceiling" for v in cell.variants)]
    if conclusion.families:
        verdicts = _families(conclusion, covered)
    else:
        verdicts = [_verdict(conclusion, cell) for cell in covered]
    return ConclusionReport(
        name=conclusion.name,
        says=conclusion.says,
        predicted=conclusion.predicted,
        verdict=together([v.verdict for v in verdicts]),
        gate=conclusion.gate,
        cells=verdicts,
    )


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """One failure is enough; to hold, every cell must."""
    worst_first: tuple[Verdict, ...] = ("fails", "undecided", "not measured")
    return next((v for v in worst_first if v in verdicts), "holds" if verdicts else "not measured")


def _verdict(conclusion: Conclusion, cell: CellReport) -> CellVerdict:
    if conclusion.every_sample:
        return _every_sample(cell)
    if conclusion.ceiling:
        return _below_ceiling(conclusion.at_least, cell)
    if failed := _failed(cell):
        return CellVerdict(cell=cell.name, verdict="fails", why=f"Penstock: {failed}")
    ratio, whom = _compared(conclusion, cell)
    if ratio is None:
        return CellVerdict(cell=cell.name, verdict="not measured", why="no pair of samples")
    verdict = decide(ratio, conclusion.at_least)
    if conclusion.against == "own library" and verdict == "undecided" and _is_sure(ratio):
        verdict = "holds"  # it asks that no interval lies wholly below
    why = _of(ratio, whom)
    if conclusion.against == "best peer" and verdict == "holds" and (faster := _unsure(cell)):
        verdict = "undecided"
        why += f"; {' and '.join(faster)} failed, and may be faster"
    return CellVerdict(cell=cell.name, verdict=verdict, why=why)


def _unsure(cell: CellReport) -> list[str]:
    """Peers that failures left too few samples to be the best, whose few are faster."""
    best = next((v.rate for v in cell.variants if v.name == cell.best_peer), None)
    few = [v for v in cell.variants if v.is_peer and not v.wrong and by_chance(v)]
    return [v.name for v in few if best and v.rate and v.rate.median > best.median]


def _failed(cell: CellReport) -> str:
    """Why Penstock has no sample of a cell; empty where it has some, or none was to be taken."""
    ours = next((v for v in cell.variants if v.kind == "penstock"), None)
    return ours.failed[0] if ours is not None and ours.rate is None and ours.failed else ""


def _compared(conclusion: Conclusion, cell: CellReport) -> tuple[Spread | None, str]:
    """The ratio that a conclusion asks for, and to whom."""
    if conclusion.against == "ceiling":
        return cell.of_ceiling, "the page ring"
    if conclusion.against == "own library":
        return cell.of_own, "its own library"
    return cell.ratio, str(cell.best_peer)


# ---- by families ------------------------------------------------------------------------------


def _families(conclusion: Conclusion, cells: Sequence[CellReport]) -> list[CellVerdict]:
    """One verdict, of the geometric mean of the families' medians, and what each brought to it.

    It does not hold while a cell of the run is missing, that may be the one that would not let it.
    Beside it what the page ring has of the cells that it can write, more than which is hardly to be
    had on this machine, and what Penstock has of these.
    """
    for cell in cells:
        if failed := _failed(cell):
            why = f"Penstock in {cell.name}: {failed}"
            return [CellVerdict(cell="families", verdict="fails", why=why)]
    known = _by_family((cell.family, _compared(conclusion, cell)[0]) for cell in cells)
    if not known:
        return [CellVerdict(cell="families", verdict="not measured", why="no pair of samples")]
    mean = _mean(list(known.values()))
    each = ", ".join(f"{name} {ratio.median:.2f}" for name, ratio in known.items())
    why = f"{_shown(mean)} of {len(known)} families: {each}"
    ring = _by_family((cell.family, cell.ring) for cell in cells)
    if ring and conclusion.against == "best peer":
        of_ring = _shown(_mean(list(ring.values())))
        same = _by_family((c.family, c.ratio) for c in cells if c.ring is not None)
        ours = f", of which Penstock has {_shown(_mean(list(same.values())))}" if same else ""
        why += f"; the page ring itself has {of_ring} of {len(ring)} families{ours}"
    verdict = decide(mean, conclusion.at_least)
    if missing := [c.name for c in cells if _compared(conclusion, c)[0] is None]:
        verdict = "undecided" if verdict == "holds" else verdict
        why += f"; without a pair of samples: {', '.join(missing)}"
    if conclusion.against == "best peer" and (faster := [n for c in cells for n in _unsure(c)]):
        verdict = "undecided" if verdict == "holds" else verdict
        why += f"; {', '.join(faster)} failed, and may be faster"
    return [CellVerdict(cell="families", verdict=verdict, why=why)]


def _by_family(ratios: Iterable[tuple[str, Spread | None]]) -> dict[str, Spread]:
    """The middle of each family's ratios, as far as they are known."""
    of_family: dict[str, list[Spread]] = {}
    for family, ratio in ratios:
        if ratio is not None:
            of_family.setdefault(family, []).append(ratio)
    return {family: _middle(ratios) for family, ratios in of_family.items()}


def _middle(ratios: Sequence[Spread]) -> Spread:
    """The median of a family's cells, and of their intervals' ends."""
    return _combined(ratios, statistics.median)


def _mean(ratios: Sequence[Spread]) -> Spread:
    """Geometric, and of the intervals' ends: wider than an interval of the mean need be."""
    return _combined(ratios, statistics.geometric_mean)


def _combined(ratios: Sequence[Spread], by: Callable[[list[float]], float]) -> Spread:
    return Spread(
        median=by([r.median for r in ratios]),
        low=by([r.low for r in ratios]),
        high=by([r.high for r in ratios]),
        confidence=min(r.confidence for r in ratios),
        n=min(r.n for r in ratios),
    )


# ---- the rules --------------------------------------------------------------------------------


def decide(ratio: Spread, at_least: float) -> Verdict:
    """By the whole interval; one that covers less than 95 % decides nothing."""
    if not _is_sure(ratio):
        return "undecided"
    if ratio.low >= at_least:
        return "holds"
    return "fails" if ratio.high < at_least else "undecided"


def _is_sure(ratio: Spread) -> bool:
    return ratio.confidence >= CONFIDENCE


def _of(ratio: Spread, whom: str) -> str:
    return f"{_shown(ratio)} n={ratio.n} of {whom}"


def _shown(ratio: Spread) -> str:
    return f"{ratio.median:.2f} [{ratio.low:.2f}-{ratio.high:.2f}]"


def _every_sample(cell: CellReport) -> CellVerdict:
    ours = [v for v in cell.variants if v.kind == "penstock"]
    if not ours or (ours[0].rate is None and not ours[0].failures):
        return CellVerdict(cell=cell.name, verdict="not measured", why="no sample")
    if ours[0].failures:
        why = f"{ours[0].failures} failed: {ours[0].failed[0]}"
        return CellVerdict(cell=cell.name, verdict="fails", why=why)
    n = ours[0].rate.n if ours[0].rate else 0
    return CellVerdict(cell=cell.name, verdict="holds", why=f"{n} samples")


def _below_ceiling(at_least: float, cell: CellReport) -> CellVerdict:
    """Medians over the run: a ceiling is looked at from everywhere, not paired with one.

    Who left wrong bytes has not written the file: no ceiling, and nothing beside it.
    """
    right = [v for v in cell.variants if v.rate is not None and not v.wrong]
    ceiling = next((v.rate for v in right if v.kind == "ceiling"), None)
    same = [v for v in right if v.kind != "ceiling" and v.same_file]
    others = [(v.rate, v.name) for v in not_by_chance(same) if v.rate is not None]
    if ceiling is None or not others:
        return CellVerdict(cell=cell.name, verdict="not measured", why="no ceiling here")
    top, name = max(others, key=lambda one: one[0].median)
    ratio = Spread(
        median=ceiling.median / top.median,
        low=ceiling.low / top.high,
        high=ceiling.high / top.low,
        confidence=min(ceiling.confidence, top.confidence),
        n=min(ceiling.n, top.n),
    )
    return CellVerdict(cell=cell.name, verdict=decide(ratio, at_least), why=_of(ratio, name))
