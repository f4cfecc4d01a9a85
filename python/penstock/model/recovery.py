"""How well the fits find barro-2002's laws again: ``python -m penstock.model.recovery``.

Times are made by each published law and lengthened by random interference, at the paper's sizes
and numbers of processes; then they are fitted. Nothing is measured here.
"""

from __future__ import annotations

import itertools

import numpy as np

from penstock.model.messages import Kind, fit_message, seconds
from penstock.model.published import MB, MESSAGES, SCALING, Law
from penstock.model.samples import Sample
from penstock.model.scaling import FormFit, fit_scaling

SIZES = tuple(2**k for k in range(16, 26))  # 64 KiB to 32 MiB
MESSAGE_SIZES = tuple(2**k for k in range(23))
PROCESSES = (2, 4, 6, 8, 10, 12, 16)
REPETITIONS = 10
INTERFERENCE = 0.3  # mean of what a repetition takes longer, exponential


def made_times(law: Law, interference: float = INTERFERENCE, seed: int = 1) -> list[Sample]:
    """Repetitions of an operation by a law that scales."""
    assert law.form is not None  # noqa: S101 - a caller's mistake
    assert law.k_s_per_mb is not None  # noqa: S101
    fit = FormFit(law.form, law.k_s_per_mb / MB, residual=0, worst=0)
    draw = np.random.default_rng(seed)
    return [
        Sample(n, p, fit.seconds(n, p) * (1 + interference * float(draw.exponential())))
        for n in SIZES
        for p in PROCESSES
        for _ in range(REPETITIONS)
    ]


def made_messages(kind: Kind, interference: float = INTERFERENCE, seed: int = 1) -> list[Sample]:
    """Repetitions of a message by its published law."""
    draw = np.random.default_rng(seed)
    return [
        Sample(n, p, seconds(kind, MESSAGES[kind], n, p) * (1 + interference * draw.exponential()))
        for n in MESSAGE_SIZES
        for p in ((2,) if kind == "point_to_point" else PROCESSES)
        for _ in range(REPETITIONS)
    ]


def rows() -> list[tuple[str, str, str, str]]:
    """(what, the paper's law, the fitted one, its residual) of every law that scales."""
    seeds = itertools.count(1)  # each has its own interference
    laws = [law for law in SCALING if law.form]
    return [*map(_operation, laws, seeds), *map(_message, MESSAGES, seeds)]


def _operation(law: Law, seed: int) -> tuple[str, str, str, str]:
    found = fit_scaling(made_times(law, seed=seed))
    best = found.fits[0]
    k, form = best.k_s_per_byte * MB, found.verdict
    what = f"{law.file_system} {law.access} {law.operation}"
    paper = f"k = {law.k_s_per_mb:.4f} s/MB, {law.form}"
    return what, paper, f"k = {k:.4f} s/MB, {form}", f"{best.residual:.1%}"


def _message(kind: Kind, seed: int) -> tuple[str, str, str, str]:
    found = fit_message(kind, made_messages(kind, seed=seed))
    return (
        kind.replace("_", " "),
        _microseconds(MESSAGES[kind]),
        _microseconds(found.coefficients),
        f"{found.residual:.1%}",
    )


_LABELS = {"startup_s": "startup", "offset_s": "offset", "s_per_byte": "per byte"}


def _microseconds(coefficients: dict[str, float]) -> str:
    return ", ".join(f"{_LABELS[k]} {1e6 * v:.3g}" for k, v in coefficients.items()) + " us"


def main() -> None:
    """Print the table of docs/models.md."""
    headings = ("times made by", "the paper's law", "fitted", "residual")
    for row in (headings, ("---",) * len(headings), *rows()):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
