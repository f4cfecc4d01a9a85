"""The closed forms in Python are those of the C++ side, where their promises are tested."""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError
from penstock.model import buffers

MB = 10**6


def test_without_memory_both_times_are_the_slower_ones() -> None:
    times = buffers.unbuffered(
        8 * MB, network_bytes_per_s=5 * MB, disk_bytes_per_s=2 * MB, startup_s=1
    )
    assert times.application_s == times.actual_s == 5


def test_a_buffer_serves_at_the_networks_rate_until_it_is_full() -> None:
    def application_s(n_bytes: float) -> float:
        return buffers.buffered(
            n_bytes, network_bytes_per_s=5 * MB, disk_bytes_per_s=MB, buffer_bytes=4 * MB
        ).application_s

    assert application_s(5 * MB) == pytest.approx(1)
    assert application_s(7 * MB) == pytest.approx(3)


@pytest.mark.parametrize(("paging", "actual_s"), [("demand", 7.5), ("early", 5.25)])
def test_the_papers_ratios_at_five_times_the_memory(
    paging: buffers.Paging, actual_s: float
) -> None:
    times = buffers.paged(
        5 * MB,
        network_bytes_per_s=5 * MB,
        disk_bytes_per_s=MB,
        memory_bytes=MB,
        paging_bytes_per_s=MB / 2,
        paging=paging,
    )
    assert times.application_s == pytest.approx(2.75)
    assert times.actual_s == pytest.approx(actual_s)


def test_wrong_values_are_named() -> None:
    with pytest.raises(ArgumentError, match="disk_bytes_per_s must be positive"):
        buffers.unbuffered(1, network_bytes_per_s=1, disk_bytes_per_s=0)
    with pytest.raises(ArgumentError, match='paging must be demand or early, got "late"'):
        buffers.paged(
            1,
            network_bytes_per_s=1,
            disk_bytes_per_s=1,
            memory_bytes=1,
            paging_bytes_per_s=1,
            paging="late",  # type: ignore[arg-type]
        )
