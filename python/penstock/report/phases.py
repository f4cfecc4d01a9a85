"""Where the time of a cell's runs went, by their variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from penstock.bench.sample import Sample
from penstock.report import runs
from penstock.report.figures import bars
from penstock.report.model import Drawn, Table

_PHASES = tuple(runs.Phases.model_fields)


def of_cell(number: int, cell: str, own: Mapping[str, Sequence[Sample]]) -> Drawn | None:
    """The phases of a cell's ways, medians over their runs; None where none of them told."""
    words = [name.removesuffix("_s") for name in _PHASES]
    stacks, rows, unread = [], [], 0
    for variant, samples in own.items():
        found, wrong = runs.phases(samples)
        unread += wrong
        if found:
            bar, own_rows = _bar(variant, words, found)
            stacks.append(bar)
            rows += own_rows
    if not stacks:
        return None
    caption = (
        "Medians over runs. Each part is the slowest worker's, so they may add up to more than the "
        "run; drain is after the program has gone on."
    )
    if unread:
        caption += f" {unread} runs whose phases cannot be read are not counted."
    figure = bars.stacked(f"phases-{number}", f"Phases: {cell}", words, stacks, caption)
    heads = ("variant", "phase", "lowest s", "median s", "highest s", "n")
    return Drawn(figure, Table(heads, tuple(rows)))


def _bar(
    variant: str, words: Sequence[str], found: Sequence[runs.Phases]
) -> tuple[bars.Bar, list[tuple[str, ...]]]:
    middles, said, rows = [], [], []
    for name, word in zip(_PHASES, words, strict=True):
        seconds = [float(getattr(p, name)) for p in found]
        low, middle, high = min(seconds), median(seconds), max(seconds)
        middles.append(middle)
        said.append(f"{word} {middle:.4g} s [{low:.4g}-{high:.4g}] n={len(found)}")
        numbers = tuple(f"{s:.6f}" for s in (low, middle, high))
        rows.append((variant, word, *numbers, str(len(found))))
    return bars.Bar(variant, tuple(middles), tuple(said)), rows
