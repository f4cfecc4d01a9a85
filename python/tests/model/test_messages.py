"""barro-2002's message laws are found again in times that were made by them."""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError
from penstock.model import published
from penstock.model.messages import FORMS, Kind, fit_message, seconds
from penstock.model.recovery import MESSAGE_SIZES, made_messages
from penstock.model.samples import Sample


@pytest.mark.parametrize("kind", FORMS)
def test_a_published_law_is_found_again_in_noisy_times(kind: Kind) -> None:
    fitted = fit_message(kind, made_messages(kind))
    assert fitted.coefficients == pytest.approx(published.MESSAGES[kind], rel=0.1)
    assert fitted.residual < 0.05
    assert fitted.seconds(1000, 4) == pytest.approx(
        seconds(kind, published.MESSAGES[kind], 1000, 4), rel=0.05
    )


def test_the_papers_numbers_by_hand() -> None:
    point, spread = published.MESSAGES["point_to_point"], published.MESSAGES["broadcast"]
    reduce = published.MESSAGES["reduction"]
    assert seconds("point_to_point", point, 1000) == pytest.approx(312e-6)
    assert seconds("broadcast", spread, 1000, 8) == pytest.approx(3 * 311e-6)
    assert seconds("reduction", reduce, 1000, 4) == pytest.approx((435 * 2 - 103 + 370) * 1e-6)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("processes", [1, 0, -4])
def test_a_message_of_fewer_than_two_processes_has_no_time(kind: Kind, processes: int) -> None:
    with pytest.raises(ArgumentError, match=f"processes must be 2 or more .* got {processes}$"):
        seconds(kind, published.MESSAGES[kind], 1000, processes)
    with pytest.raises(ArgumentError, match="processes must be 2 or more"):
        fit_message(kind, made_messages(kind)).seconds(1000, processes)


@pytest.mark.parametrize("kind", FORMS)
def test_samples_of_one_process_are_refused(kind: Kind) -> None:
    with pytest.raises(ArgumentError, match=f"{kind} is for 2 processes and more, got .*es=1"):
        fit_message(kind, [*made_messages(kind), Sample(64, 1, 1e-4)])


@pytest.mark.parametrize("kind", FORMS)
def test_samples_that_leave_a_coefficient_open_are_refused(kind: Kind) -> None:
    with pytest.raises(ArgumentError, match=f"{kind} needs samples that determine"):
        fit_message(kind, [Sample(64, 2, 1e-4)])


def test_a_reduction_needs_two_numbers_of_processes() -> None:
    with pytest.raises(ArgumentError, match="more numbers of processes"):
        fit_message("reduction", [Sample(n, 4, 1e-4 + 1e-9 * n) for n in MESSAGE_SIZES])
