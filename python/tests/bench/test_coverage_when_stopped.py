"""What docs/statistics.md says of intervals in sessions that stop on precision."""

from __future__ import annotations

import pytest

import coverage_when_stopped as stopped


@pytest.mark.parametrize("noise", ["normal, 3 %", "normal, 10 %", "two modes, 55/45"])
def test_of_all_sessions_about_95_of_100_intervals_cover(noise: str) -> None:
    assert stopped.coverage(stopped.NOISES[noise], 800).covered >= 0.92


def test_those_that_converge_by_luck_cover_less() -> None:
    """It is printed beside the table, so that nobody takes *converged* for more."""
    steady = stopped.coverage(stopped.NOISES["normal, 3 %"], 800)
    lucky = stopped.coverage(stopped.NOISES["normal, 15 %"], 800)
    assert steady.converged > 0.99
    assert steady.of_converged >= 0.95
    assert lucky.converged < 0.25
    assert 0.7 <= lucky.of_converged <= 0.9
