"""What a run's line tells besides its rates: where its time went, and how its bytes moved.

`penstock.bench.sample` keeps these members as they were printed; here they are checked, and a run
whose members are not what they should be is counted, not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from penstock.bench.sample import RateKind, Sample

_Seconds = Annotated[float, Field(ge=0, le=1e15)]
_Bytes = Annotated[int, Field(ge=0)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Phases(_Model):
    """Seconds of a run's parts, each the slowest worker's: they may add up to more than the run."""

    open_s: _Seconds
    compute_s: _Seconds
    write_s: _Seconds
    sync_s: _Seconds
    close_s: _Seconds
    drain_s: _Seconds


class Series(_Model):
    """Bytes by bins of time: given to write calls, and on the device."""

    bin_s: Annotated[float, Field(gt=0)]
    application_bytes: Annotated[list[_Bytes], Field(max_length=1_000_000)]
    actual_bytes: list[_Bytes] | None

    @model_validator(mode="after")
    def _alike(self) -> Self:
        if self.actual_bytes is not None and len(self.actual_bytes) != len(self.application_bytes):
            raise ValueError("actual_bytes must have as many bins as application_bytes")
        return self

    def of(self, kind: RateKind) -> list[int] | None:
        """The bytes of one of the two rates."""
        return self.application_bytes if kind == "application" else self.actual_bytes


M = TypeVar("M", bound=_Model)


def _read(samples: Iterable[Sample], member: str, model: type[M]) -> tuple[list[M], int]:
    """The members that are there and right, and how many are there and wrong."""
    found: list[M] = []
    wrong = 0
    for sample in samples:
        if not sample.counts or sample.more.get(member) is None:
            continue
        try:
            found.append(model.model_validate(sample.more[member]))
        except ValidationError:
            wrong += 1
    return found, wrong


def phases(samples: Sequence[Sample]) -> tuple[list[Phases], int]:
    """The phases of the runs that count, and how many cannot be read."""
    return _read(samples, "phases", Phases)


def series(samples: Sequence[Sample]) -> tuple[list[Series], int]:
    """The series of the runs that count, of the most frequent width of bins, and how many not."""
    found, wrong = _read(samples, "series", Series)
    widths = [s.bin_s for s in found]
    usual = max(set(widths), key=widths.count, default=0.0)
    alike = [s for s in found if s.bin_s == usual and s.application_bytes]
    return alike, wrong + len(found) - len(alike)
