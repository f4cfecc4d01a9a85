"""What a run's samples say of a law of barro-2002: penstock.model.scaling asked about them.

T(n, p) = K(p) n; K in seconds per MB of 2^20 bytes, as the paper prints it.
"""

from __future__ import annotations

from penstock.errors import ArgumentError
from penstock.model.published import MB
from penstock.model.samples import Sample
from penstock.model.scaling import FormFit, ScalingFit, fit_scaling
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import FitSpec
from penstock.reproduce.measures import seconds

LEAST_PROCESSES = 2  # of whom the law speaks


def fit(evidence: Evidence, spec: FitSpec) -> ScalingFit | None:
    """The forms fitted to a variant's samples; None where these are too few to fit anything."""
    try:
        return fit_scaling(_samples(evidence, spec))
    except ArgumentError:
        return None


def text(form: FormFit) -> str:
    """``0.0123/log2 p``"""
    return f"{form.k_s_per_byte * MB:.4g}{form.form[1:]}"


def _samples(evidence: Evidence, spec: FitSpec) -> list[Sample]:
    found = []
    for cell in evidence.cells([spec.cells]):
        for sample in evidence.of_variant(cell, spec.variant):
            elapsed_s = seconds(sample)
            if elapsed_s is None or sample.result is None:
                continue
            if sample.result.workers >= LEAST_PROCESSES:
                found.append(Sample(sample.result.bytes, sample.result.workers, elapsed_s))
    return found
