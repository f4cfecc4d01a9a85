"""What a report holds: a cell, who took part in it, and what it says of a conclusion.

Rates in bytes per second, of the application's clock unless ``actual`` is said.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from beside.spec import Cell, Setting, Verdict


class Value(BaseModel):
    """Read again from a report of a newer version, too."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class Spread(Value):
    """A median with its interval and the number of samples."""

    median: float
    low: float
    high: float
    confidence: float
    n: int


class Variant(Value):
    """One competitor of a cell. ``failed`` says why samples failed, warm-ups and canaries too, each
    reason once; ``lost`` counts those that left it fewer; ``dropped`` whether it was not tried
    again; ``wrong`` whether one of them left wrong bytes in the file; ``phases`` the median seconds
    of open_s, write_s, sync_s, close_s, each of its slowest rank."""

    name: str
    title: str
    kind: str
    library: str
    setting: Setting
    is_best: bool
    same_file: bool
    mpi: str | None
    bytes: int | None
    rate: Spread | None
    actual: Spread | None
    phases: dict[str, float] = {}
    failures: int
    lost: int = 0
    dropped: bool = False
    failed: list[str]
    wrong: bool

    @property
    def is_peer(self) -> bool:
        """Whether it does for a program what Penstock does: writes the file that it asked for."""
        return self.kind in ("library", "instead") and self.same_file


class CellReport(Value):
    """A cell. ``ratio`` is Penstock's rate over the best peer's, ``of_ceiling`` over the ring's,
    ``of_own`` over that of the MPI library it runs on, at its default where that was measured;
    ``ring`` is the page ring's rate over the best peer's.
    """

    name: str
    cell: Cell
    family: str
    variants: list[Variant]
    best_peer: str | None
    ratio: Spread | None
    of_ceiling: Spread | None
    of_own: Spread | None = None
    ring: Spread | None = None
    instead: dict[str, Spread]
    as_expected: bool | None


class CellVerdict(Value):
    """What one cell, or one family (``cell`` is its name), says of a conclusion."""

    cell: str
    verdict: Verdict
    why: str


Predicted = Verdict | Literal["not kept with these samples"]


class ConclusionReport(Value):
    """What became of a conclusion."""

    name: str
    says: str
    predicted: Predicted
    verdict: Verdict
    gate: bool
    cells: list[CellVerdict]
