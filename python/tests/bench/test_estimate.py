"""How long a session will take, and how that is shown."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from penstock.bench.blocks import Plan, Progress
from penstock.bench.estimate import expected_samples, remaining_s, samples_range
from penstock.bench.progress import Show, rate_text
from penstock.bench.sample import Sample
from penstock.bench.session import Measurement, Session
from penstock.bench.statistics import Stopping
from penstock.words import duration_text

RULE = Stopping(minimum=10, maximum=30, checks=(10, 15, 20, 30), precision=0.05)
PLAN = Plan((("a", "x"), ("a", "y")), RULE, 1)


def sample(block: int, variant: str = "x", wall_s: float = 2.0) -> Sample:
    return Sample(
        cell="a",
        variant=variant,
        block=block,
        place=0,
        warm_up=block == 0,
        started="",
        wall_s=wall_s,
        command=[],
    )


def test_nothing_is_known_before_anything_ran() -> None:
    assert remaining_s(PLAN, []) is None


def test_a_pilot_gives_the_first_estimate() -> None:
    # Two warm-ups, ten blocks of two and a canary.
    assert remaining_s(PLAN, [], 1.0) == 2 + 10 * 3


def test_samples_that_are_there_are_not_counted_again() -> None:
    first = remaining_s(PLAN, [sample(0, "x"), sample(0, "y")])
    assert first == 2.0 * 10 * 3
    later = remaining_s(PLAN, [sample(b, v) for b in range(3) for v in "xy"])
    assert later is not None
    assert later < first


def test_steady_rates_need_the_minimum() -> None:
    assert expected_samples(RULE, Progress(rates=[1.0] * 10)) == 10


def test_noisy_rates_are_expected_to_need_more() -> None:
    noisy = Progress(rates=[1.0, 2.0] * 5)
    assert expected_samples(RULE, noisy) == 30


def test_the_range_counts_warm_ups_and_canaries() -> None:
    assert samples_range(PLAN) == (2 * 11 + 10, 2 * 31 + 30)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.01, "0 s"),
        (0.5, "0.5 s"),
        (59, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_times_are_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_no_number_without_spread_and_count() -> None:
    assert rate_text([]) == "no sample yet"
    assert rate_text([2.0**30]) == "1.0 GiB/s n=1"
    assert rate_text([2.0**30, 2.0**31]) == "1.5 GiB/s [1.0 GiB/s - 2.0 GiB/s] n=2"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_session_is_shown(
    measurement: Callable[..., Measurement],
    session: Callable[..., Session],
    tmp_path: Path,
    terminal: bool,
) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    planned = [measurement("[cell]", "good"), measurement("[cell]", "bad", "--wrong-bytes", "2")]
    with Show(console) as show:
        session(planned, observer=show).run()
    text = out.getvalue()
    assert "[cell]" in text
    assert "2 bytes of the file are wrong" in text
    assert "dropped" in text
    assert "left" in text
