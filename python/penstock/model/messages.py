"""barro-2002's laws of messages, T(n, p) in seconds for n bytes among p processes [1]_.

Point to point ``a + b n``, broadcast ``(a + b n) log2 p``, reduction
``a log2 p + c + b n log2 p``.

.. [1] Barro, Touriño, Doallo and Gulías, "Performance Modeling and Evaluation of MPI-I/O on a
   Cluster", section 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ArgumentError
from penstock.model.samples import Minima, Sample, minima

Floats = NDArray[np.float64]
Kind = Literal["point_to_point", "broadcast", "reduction"]

# The powers of n and of log2 p that each coefficient is multiplied by.
FORMS: dict[Kind, dict[str, tuple[int, int]]] = {
    "point_to_point": {"startup_s": (0, 0), "s_per_byte": (1, 0)},
    "broadcast": {"startup_s": (0, 1), "s_per_byte": (1, 1)},
    "reduction": {"startup_s": (0, 1), "offset_s": (0, 0), "s_per_byte": (1, 1)},
}


@dataclass(frozen=True)
class MessageFit:
    """A law by the names of its coefficients."""

    kind: Kind
    coefficients: dict[str, float]
    residual: float
    """Root mean square of (T - fitted T) / T."""
    data: Minima

    def seconds(self, n_bytes: float, processes: int = 2) -> float:
        """The fitted time, of at least 2 processes."""
        return seconds(self.kind, self.coefficients, n_bytes, processes)


def seconds(
    kind: Kind, coefficients: dict[str, float], n_bytes: float, processes: int = 2
) -> float:
    """The time of a message by a law, such as one of `penstock.model.published`.

    Raises
    ------
    ArgumentError
        If there are fewer than 2 processes.
    """
    if processes < 2:  # log2 1 is 0
        raise ArgumentError(f"processes must be 2 or more for a message, got {processes}")
    row = _columns(kind, np.array([n_bytes], dtype=float), np.array([processes], dtype=float))
    return float(row[0] @ np.array([coefficients[name] for name in FORMS[kind]]))


def fit_message(kind: Kind, samples: Iterable[Sample]) -> MessageFit:
    """Fit a law to the least time of each (n, p), by least squares of relative errors.

    Relative, because sizes span decades: the start-up time, some hundred microseconds, would
    otherwise drown in the errors of the megabytes.

    Raises
    ------
    ArgumentError
        If one has fewer than 2 processes, or the samples do not determine every coefficient; for a
        reduction that takes two sizes and two numbers of processes.
    """
    data = minima(samples)
    if alone := [s for s in data.cells if s.processes < 2]:
        raise ArgumentError(f"{kind} is for 2 processes and more, got {alone[0]}")
    n, p, t = np.array([(s.n_bytes, s.processes, s.seconds) for s in data.cells], dtype=float).T
    forms = FORMS[kind]
    columns = _columns(kind, n, p) / t[:, None]
    scale = np.linalg.norm(columns, axis=0)
    if not scale.all() or np.linalg.matrix_rank(columns / scale) < len(forms):
        raise ArgumentError(
            f"{kind} needs samples that determine {', '.join(forms)}: more sizes, or more numbers "
            f"of processes, got {len(data.cells)} cells"
        )
    solution = np.linalg.lstsq(columns / scale, np.ones_like(t), rcond=None)[0] / scale
    off = 1 - columns @ solution
    named = dict(zip(forms, map(float, solution), strict=True))
    return MessageFit(kind, named, float(np.sqrt(np.mean(off**2))), data)


def _columns(kind: Kind, n: Floats, p: Floats) -> Floats:
    return np.stack([n**of_n * np.log2(p) ** of_p for of_n, of_p in FORMS[kind].values()], axis=1)
