"""barro-2002's forms are found again in times that were made by them, and in no others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.errors import ArgumentError
from penstock.model import published, recovery
from penstock.model.recovery import PROCESSES, SIZES, made_times
from penstock.model.samples import Sample, minima
from penstock.model.scaling import FORMS, FormFit, fit_scaling

SCALE = [law for law in published.SCALING if law.form is not None]
PLAIN = published.Law("PVFS", "contiguous", "read", "k/p", 1.7)
SLOW = published.Law("NFS", "contiguous", "read", "k/log2 p", 0.5)


@pytest.mark.parametrize("which", SCALE, ids=lambda w: f"{w.file_system}-{w.access}-{w.operation}")
def test_a_published_law_is_found_again_in_noisy_times(which: published.Law) -> None:
    fitted = fit_scaling(made_times(which))
    assert fitted.verdict == which.form
    assert fitted.fits[0].k_s_per_byte * published.MB == pytest.approx(which.k_s_per_mb, rel=0.08)


def test_exact_times_give_the_exact_coefficient() -> None:
    fitted = fit_scaling(made_times(PLAIN, interference=0))
    assert fitted.fits[0].k_s_per_byte == pytest.approx(1.7 / published.MB, rel=1e-12)
    assert fitted.fits[0].residual < 1e-12
    assert fitted.fits[0].seconds(published.MB, 4) == pytest.approx(1.7 / 4)


def test_the_law_says_nothing_of_one_process() -> None:
    slow = fit_scaling(made_times(SLOW, interference=0)).fits[0]
    with pytest.raises(ArgumentError, match="processes must be 2 or more for the law, got 1"):
        slow.seconds(published.MB, 1)


def test_what_does_not_get_faster_does_not_scale() -> None:
    flat = [Sample(n, p, 1e-7 * n) for n in SIZES for p in PROCESSES]
    slower = [Sample(n, p, 1e-7 * n * p) for n in SIZES for p in PROCESSES]
    assert fit_scaling(flat).verdict == "does not scale"
    assert fit_scaling(slower).verdict == "does not scale"
    assert "less than 1.1" in fit_scaling(flat).reason


def test_where_sizes_and_processes_go_together_nothing_is_said_of_processes() -> None:
    """With so many bytes from each process, the size says all: here time depends on it alone."""
    together = [Sample(p * each, p, 1e-7 * p * each) for each in (32, 256) for p in PROCESSES]
    assert fit_scaling(together).verdict == "not crossed"
    assert "go together" in fit_scaling(together).reason


def test_all_numbers_of_processes_say_what_is_gained() -> None:
    """The least and the most alone would say 2."""
    dip = {2: 2.0, 4: 8.0, 8: 8.0, 16: 1.0}
    fitted = fit_scaling([Sample(n, p, n * s) for n in SIZES for p, s in dip.items()])
    assert fitted.gain == pytest.approx(2.0**0.9)


def test_a_gain_that_neither_form_describes_is_said() -> None:
    steep = [Sample(n, p, 1e-7 * n / p**4) for n in SIZES for p in PROCESSES]
    assert fit_scaling(steep).verdict == "neither"


def test_two_and_four_processes_do_not_tell_the_forms_apart() -> None:
    few = [Sample(n, p, 1e-7 * n / p) for n in SIZES for p in (2, 4)]
    assert fit_scaling(few).verdict == "undecided"
    assert "do not tell the forms apart" in fit_scaling(few).reason


def test_the_coefficient_is_the_least_squares_solution() -> None:
    samples = made_times(SLOW, interference=0.5, seed=2)
    fitted = fit_scaling(samples)
    cells = fitted.data.cells
    for fit in fitted.fits:

        def squares(k: float, fit: FormFit = fit) -> float:
            shape = FORMS[fit.form]
            return sum((c.seconds - k * c.n_bytes * float(shape(np.array([c.processes]))[0])) ** 2
                       for c in cells)  # fmt: skip

        best = squares(fit.k_s_per_byte)
        assert best < squares(fit.k_s_per_byte * 1.001)
        assert best < squares(fit.k_s_per_byte * 0.999)


def test_stragglers_change_nothing_and_a_cached_read_is_left_out() -> None:
    clean = [Sample(2**20, 2, 1.0 + i / 100) for i in range(6)]
    straggler, cached = Sample(2**20, 2, 50.0), Sample(2**20, 2, 0.01)
    found = minima([*clean, straggler, cached])
    assert found.cells == (Sample(2**20, 2, 1.0),)
    assert found.left_out == (cached,)


def test_few_samples_leave_none_out() -> None:
    found = minima([Sample(1, 2, 1.0), Sample(1, 2, 1.0), Sample(1, 2, 0.1)])
    assert found.cells == (Sample(1, 2, 0.1),)
    assert found.left_out == ()


def test_samples_that_say_nothing_are_refused() -> None:
    with pytest.raises(ArgumentError, match="needs samples"):
        fit_scaling([])
    with pytest.raises(ArgumentError, match="2 processes and more"):
        fit_scaling([Sample(1, 1, 1.0), Sample(1, 2, 1.0)])
    with pytest.raises(ArgumentError, match="two numbers of processes"):
        fit_scaling([Sample(1, 2, 1.0), Sample(2, 4, 1.0)])
    with pytest.raises(ArgumentError, match="must be positive"):
        fit_scaling([Sample(1, 2, math.nan)])


def test_json_has_every_cell() -> None:
    value = fit_scaling(made_times(PLAIN)).as_json()
    assert len(value["cells"]) == len(SIZES) * len(PROCESSES)
    assert value["verdict"] == value["fits"][0]["form"] == "k/p"


def test_the_table_of_the_page_has_every_law_that_scales() -> None:
    rows = recovery.rows()
    assert len(rows) == len(SCALE) + len(published.MESSAGES)
    for what, paper, fitted, _ in rows[: len(SCALE)]:
        assert paper.split(",")[1] == fitted.split(",")[1], what
