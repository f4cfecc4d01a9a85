"""The commands that repeat a session: how it was measured, as far as its results know it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from penstock.bench import quick
from penstock.bench.sample import Header
from penstock.bench.statistics import Stopping
from penstock.bench.store import Results
from penstock.report.model import Command
from penstock.reproduce import plan


def commands(results: Results, what: str) -> Iterator[Command]:
    """One for each seed: parts of a sweep that began at the same time have their own."""
    by_seed = {header.seed: header for header in headers(results)}
    of_part = " of a part" if len(by_seed) > 1 else ""
    for header in by_seed.values():
        yield Command(f"{what}, in the same order{of_part}", line(header))


def headers(results: Results) -> list[Header]:
    """Of each session what repeats it: stopped as it was last, with what was chosen at its start.

    What a paper's run or a quick look measures is chosen by the budget that it was begun with; one
    that it goes on with only ends it.
    """
    return [_as_begun(*pair) for pair in zip(results.headers, results.latest, strict=True)]


def _as_begun(begun: Header, latest: Header) -> Header:
    if plan.is_of_paper(begun.name):
        chosen: dict[str, Any] = {"budget_s": begun.plan.get("budget_s")}
    elif quick.is_quick(begun.plan):
        chosen = quick.as_begun(begun.plan, latest.plan)
    else:
        return latest
    return latest.model_copy(update={"plan": {**latest.plan, **chosen}})


def line(header: Header) -> str:
    """With DIR and FILE.toml where results do not say what was there."""
    return f"{_measuring(header)} --seed {header.seed}"


def _measuring(header: Header) -> str:
    if plan.is_of_paper(header.name):
        return plan.command(header)
    if quick.is_quick(header.plan):
        return shlex.join(["penstock", "bench", "DIR", *quick.words(header.plan)])
    rounds = Stopping.of_plan(header.plan).words()
    return shlex.join(["penstock", "bench", "DIR", "--matrix", "FILE.toml", *rounds])
