"""What a run's samples say of a law of barro-2002: penstock.model.scaling asked about them.

T(n, p) = K(p) n; K in seconds per MB of 2^20 bytes, as the paper prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ArgumentError
from penstock.model.published import MB
from penstock.model.samples import TOO_SHORT, Sample
from penstock.model.scaling import FormFit, ScalingFit, Verdict, fit_scaling
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import FitSpec
from penstock.reproduce.measures import seconds
from penstock.reproduce.needs import invalid

LEAST_PROCESSES = 2  # of whom the law speaks
NEEDS = ("idle_cpus",)  # a law of processes is none of the scheduler


@dataclass(frozen=True)
class Judged:
    """The forms, the best first, the verdict and why, the fewest samples of a cell, and how many
    of all cells were left out as too short: something else than the disk answered them."""

    forms: tuple[FormFit, ...]
    verdict: Verdict | Literal["not judged"] | None
    why: str
    n: int = 0
    left_out: int = 0


def fit(evidence: Evidence, spec: FitSpec) -> ScalingFit | None:
    """The forms fitted to a variant's samples; None where these are too few to fit anything."""
    try:
        return fit_scaling(_samples(evidence, spec))
    except ArgumentError:
        return None


def judged(evidence: Evidence, spec: FitSpec, least: int) -> Judged:
    """What is said of a law; no verdict where a cell has fewer than ``least`` samples."""
    found = fit(evidence, spec)
    if found is None:
        return Judged((), None, "too few samples: sizes or numbers of processes")
    left_out = found.data.left_out
    n = _fewest(_samples(evidence, spec), left_out)
    verdict, why = _verdict(found, _why_invalid(evidence, spec), n, least)
    return Judged(found.fits, verdict, _with(why, len(left_out)), n, len(left_out))


def _verdict(
    found: ScalingFit, busy: str, n: int, least: int
) -> tuple[Verdict | Literal["not judged"] | None, str]:
    if found.verdict == "not crossed":
        return found.verdict, f"{found.reason}; {busy}" if busy else found.reason
    if busy:
        return "not judged", busy
    if n < least:
        return None, f"too few samples: {n} in a cell, and {least} are needed"
    return found.verdict, found.reason


def _with(why: str, left_out: int) -> str:
    if not left_out:
        return why
    samples = "1 sample is" if left_out == 1 else f"{left_out} samples are"
    return f"{why}; {samples} left out, below {TOO_SHORT:g} of the median time of the cell"


def _fewest(samples: Sequence[Sample], left_out: Sequence[Sample]) -> int:
    """Of those that the fit goes by."""
    cells = Counter((s.n_bytes, s.processes) for s in samples)
    cells.subtract((s.n_bytes, s.processes) for s in left_out)
    return min(cells.values())


def _why_invalid(evidence: Evidence, spec: FitSpec) -> str:
    """Why these samples say nothing of a law of processes; empty if they do."""
    cells = [c for c in evidence.cells([spec.cells]) if evidence.of_variant(c, spec.variant)]
    bad = invalid(evidence, NEEDS)
    told = [why for cell in cells if (why := bad.get((cell, spec.variant), ""))]
    return f"in {len(told)} of {len(cells)} cells {told[0]}" if told else ""


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
