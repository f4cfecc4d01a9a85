"""barro-2002's law of a parallel I/O operation, T(n, p) = K(p) n, fitted to measured times [1]_.

K(p) is k/p or k/log2 p; an operation whose time does not fall as processes are added is said not
to scale, and has no law (as in the paper's table 1). There is no start-up time: the law is for
files large enough that it does not count.

.. [1] Barro, Touriño, Doallo and Gulías, "Performance Modeling and Evaluation of MPI-I/O on a
   Cluster", section 4.1 and table 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ArgumentError
from penstock.model.samples import Minima, Sample, minima

Floats = NDArray[np.float64]
Verdict = Literal["k/p", "k/log2 p", "undecided", "neither", "does not scale", "not crossed"]

FORMS: dict[Literal["k/p", "k/log2 p"], Callable[[Floats], Floats]] = {
    "k/p": lambda p: 1 / p,
    "k/log2 p": lambda p: 1 / np.log2(p),
}
LEAST_GAIN = 1.10  # the least effect that counts: so many times as fast with the most processes
MOST_RESIDUAL = 0.25  # of the time, root mean square: beyond it a form describes nothing
AS_GOOD = 1.10  # residuals closer than this do not tell two forms apart
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FormFit:
    """One form: its coefficient, and how far times are from it."""

    form: Literal["k/p", "k/log2 p"]
    k_s_per_byte: float
    residual: float
    """Root mean square of (T - fitted T) / T."""
    worst: float
    """The largest of them, by magnitude."""

    def seconds(self, n_bytes: float, processes: int) -> float:
        """The fitted time of an operation on ``n_bytes`` by ``processes``.

        Raises
        ------
        ArgumentError
            If these are fewer than 2: log2 1 is 0.
        """
        if processes < 2:
            raise ArgumentError(f"processes must be 2 or more for the law, got {processes}")
        p = np.array([processes], dtype=float)
        return float(self.k_s_per_byte * n_bytes * FORMS[self.form](p)[0])


@dataclass(frozen=True)
class ScalingFit:
    """What the samples say; ``fits`` has the better form first."""

    verdict: Verdict
    fits: tuple[FormFit, ...]
    gain: float
    """Times as fast with the most processes as with the fewest: by the line through the logarithms
    of all numbers of processes of a size, geometric mean over sizes."""
    data: Minima

    @property
    def reason(self) -> str:
        """The verdict in words, with the numbers that it rests on."""
        residuals = " and ".join(f"{f.form} is off by {f.residual:.0%}" for f in self.fits)
        texts: dict[str, str] = {
            "not crossed": "sizes and numbers of processes go together: measure each size with "
            "each number of processes",
            "does not scale": f"with the most processes {self.gain:.2f} times as fast as with the "
            f"fewest, which is less than {LEAST_GAIN:g}",
            "neither": f"it scales ({self.gain:.1f} times), but {residuals}, and more than "
            f"{MOST_RESIDUAL:.0%} describes nothing",
            "undecided": f"{residuals}: these processes do not tell the forms apart",
        }
        return texts.get(self.verdict, residuals)

    def as_json(self) -> dict[str, Any]:
        """Values in bytes and seconds."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "gain": self.gain,
            "fits": [vars(fit) for fit in self.fits],
            "cells": [vars(cell) for cell in self.data.cells],
            "left_out": [vars(sample) for sample in self.data.left_out],
        }


def fit_scaling(samples: Iterable[Sample]) -> ScalingFit:
    """Fit both forms of barro-2002 to the least time of each (n, p), and say which holds.

    Parameters
    ----------
    samples : iterable of Sample
        Repetitions, of at least 2 processes each (log2 1 is 0; the paper begins at 2), with at
        least two different numbers of processes for some size.

    Returns
    -------
    ScalingFit
        ``k_s_per_byte`` is the least-squares solution of T = k n g(p) over all cells, unweighted
        as in the paper, so that large files count most. The verdict is ``"not crossed"`` where not
        each size was measured with each number of processes: what processes do cannot be told from
        what the size does. It is ``"does not scale"`` when the time does not fall by a tenth from
        the fewest processes to the most; ``"neither"`` when both forms are off by more than a
        quarter; ``"undecided"`` when they are off by about as much as each other, as with 2 and 4
        processes alone, where both say the same.

    Raises
    ------
    ArgumentError
        If there are no samples, one has fewer than 2 processes, or no size has two numbers of
        processes.
    """
    data = minima(samples)
    if alone := [s for s in data.cells if s.processes < 2]:
        raise ArgumentError(f"the law is for 2 processes and more, got {alone[0]}")
    gain = _gain(data.cells)
    fits = tuple(sorted((_fit(form, data.cells) for form in FORMS), key=lambda f: f.residual))
    verdict = _verdict(gain, *fits) if _crossed(data.cells) else "not crossed"
    return ScalingFit(verdict, fits, gain, data)


def _fit(form: Literal["k/p", "k/log2 p"], cells: Sequence[Sample]) -> FormFit:
    n, p, seconds = np.array([(s.n_bytes, s.processes, s.seconds) for s in cells], dtype=float).T
    x = n * FORMS[form](p)
    k = float(x @ seconds / (x @ x))
    off = (seconds - k * x) / seconds
    return FormFit(form, k, float(np.sqrt(np.mean(off**2))), float(np.max(np.abs(off))))


def _crossed(cells: Sequence[Sample]) -> bool:
    sizes, processes = {c.n_bytes for c in cells}, {c.processes for c in cells}
    return len(cells) == len(sizes) * len(processes)


def _gain(cells: Sequence[Sample]) -> float:
    by_size: dict[float, list[Sample]] = defaultdict(list)
    for cell in cells:
        by_size[cell.n_bytes].append(cell)
    logs = [_log_gain(c) for c in by_size.values() if len(c) > 1]
    if not logs:
        raise ArgumentError(
            "whether an operation scales needs two numbers of processes for the same n_bytes, got "
            f"{len(cells)} cells of {len(by_size)} sizes with one each"
        )
    return math.exp(sum(logs) / len(logs))


def _log_gain(cells: Sequence[Sample]) -> float:
    """Of one size, by ascending processes."""
    p, seconds = np.log([(c.processes, c.seconds) for c in cells]).T
    slope = np.polyfit(p, seconds, 1)[0]
    return float(-slope * (p[-1] - p[0]))


def _verdict(gain: float, best: FormFit, other: FormFit) -> Verdict:
    if gain < LEAST_GAIN:
        return "does not scale"
    if best.residual > MOST_RESIDUAL:
        return "neither"
    if other.residual <= best.residual * AS_GOOD + _ROUNDING:
        return "undecided"
    return best.form
