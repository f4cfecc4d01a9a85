"""What a person sees while a session runs: a table on a terminal, else a line per sample.

Nothing is drawn while a sample is being taken: on a small machine that would disturb it.
"""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from penstock import _core
from penstock.bench.blocks import Turn, decision
from penstock.bench.estimate import remaining_s
from penstock.bench.sample import Event, Sample
from penstock.bench.session import Observer, Session
from penstock.bench.statistics import summarise
from penstock.words import duration_text

_ROWS = 24  # of the table; more cells than fit show the one that runs


def rate_text(rates: list[float]) -> str:
    """``1.31 GiB/s [1.22-1.40 GiB/s] n=10``: no number without its spread and count."""
    if not rates:
        return "no sample yet"
    s = summarise(rates)
    if s.n == 1:
        return f"{_human(s.median)} n=1"
    return f"{_human(s.median)} [{_human(s.low)} - {_human(s.high)}] n={s.n}"


def _human(bytes_per_s: float) -> str:
    return f"{_core.human_size(round(bytes_per_s))}/s"


class Show(Observer):
    """Shows a session on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._session: Session | None = None
        self._turn: tuple[Turn, int] | None = None
        self._live: Live | None = None
        self._begin_s = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None

    def begins(self, session: Session) -> None:
        """Remember whose samples are shown."""
        self._session = session

    def sample_begins(self, turn: Turn, of: int) -> None:
        """Tell which sample is next; the last drawing before it is taken."""
        self._turn = (turn, of)
        if self._live is not None:
            self._live.update(self._drawing(), refresh=True)

    def sample_ends(self, sample: Sample) -> None:
        """Tell how it turned out."""
        if self._live is not None:
            if sample.failed:
                self._console.print(Text(f"{self._place(sample)}: FAILED: {sample.failed}", "red"))
            return
        text = f"FAILED: {sample.failed}" if sample.failed else self._estimate(sample)
        self._console.print(
            f"{self._place(sample)}: {text}{self._left()}", markup=False, highlight=False
        )

    def event(self, event: Event) -> None:
        """Events are for people."""
        self._console.print(Text(f"{event.what}: {event.text}", "yellow"))

    def _place(self, sample: Sample) -> str:
        of = self._turn[1] if self._turn else 0
        kind = "warm-up" if sample.warm_up else f"block {sample.block}"
        canary = " (canary)" if sample.canary else ""
        return f"{kind}, {sample.place + 1}/{of}: {sample.cell}, {sample.variant}{canary}"

    def _estimate(self, sample: Sample) -> str:
        if self._session is None:
            return ""
        progress = self._session.progress()[sample.cell, sample.variant]
        return rate_text(progress.rates)

    def _left(self) -> str:
        if self._session is None:
            return ""
        left_s = remaining_s(self._session.plan, self._session.store.samples)
        if left_s is None:
            return ""
        if self._session.budget_s is not None:
            left_s = min(left_s, max(self._session.budget_s - self._session.spent_s, 0.0))
        return f"; about {duration_text(left_s)} left"

    def _drawing(self) -> Group:
        assert self._session is not None  # noqa: S101 - begins() comes first
        assert self._turn is not None  # noqa: S101
        turn, of = self._turn
        kind = "warm-up" if turn.warm_up else f"block {turn.block}"
        ran_s = duration_text(time.monotonic() - self._begin_s)
        now = f"{kind}, sample {turn.place + 1} of {of}: {turn.cell}, {turn.variant}"
        head = Text(f"{now}; {ran_s} so far{self._left()}", overflow="ellipsis", no_wrap=True)
        return Group(head, self._table(self._session, turn))

    def _table(self, session: Session, turn: Turn) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("cell", "variant", f"{session.plan.rate} rate", ""):
            table.add_column(name)
        progress = session.progress()
        pairs = list(progress)
        if len(pairs) > _ROWS:
            pairs = [pair for pair in pairs if pair[0] == turn.cell][:_ROWS]
        for pair in pairs:
            one = progress[pair]
            said = "dropped" if one.dropped else decision(session.plan.stopping, one)
            here = "[bold]" if pair == (turn.cell, turn.variant) else ""
            shown = "" if said == "go on" else said
            cell, variant = escape(pair[0]), escape(pair[1])
            table.add_row(f"{here}{cell}", f"{here}{variant}", rate_text(one.rates), shown)
        return table
