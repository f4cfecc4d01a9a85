"""The laws of barro-2002 are found again in times that follow them."""

from __future__ import annotations

import math

import pytest

from penstock.reproduce.fits import FORMS, Point, fit


@pytest.mark.parametrize("form", FORMS)
def test_the_form_and_its_constant_are_found(form: str) -> None:
    points = [Point(n, p, 0.157 * n * FORMS[form](p)) for n in (0.1, 1, 32) for p in (2, 4, 8, 16)]
    best = fit(points)[0]
    assert best.form == form
    assert best.k == pytest.approx(0.157)
    assert best.error_s == pytest.approx(0.0, abs=1e-12)


def test_k_is_the_least_squares_one() -> None:
    law = next(law for law in fit([Point(1, 2, 1.0), Point(2, 4, 1.0)]) if law.form == "k/log2 p")
    assert law.k == pytest.approx(1.0)  # both shapes are 1: 1/log2 2 and 2/log2 4
    assert law.text == f"{law.k:.4g}/log2 p"
    assert math.isclose(law.error_s, 0.0, abs_tol=1e-12)


def test_too_few_points_give_no_law() -> None:
    assert fit([Point(1, 2, 1.0)]) == []
    assert fit([Point(1, 1, 1.0), Point(2, 1, 1.0)]) == []
