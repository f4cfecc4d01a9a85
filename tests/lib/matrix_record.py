"""What the support matrix is made of: one line of JSON for every case that a suite ran.

Suites write such lines where ``--record FILE`` says; ``scripts/support_matrix.py`` makes the page
of them. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType

OUTCOMES = ("passed", "passed_through", "expected_failure", "failed", "skipped")


@dataclass(frozen=True)
class Record:
    """How one case ended.

    ``outcome`` is *passed* when the case held and Penstock wrote its bytes (or it writes none),
    *passed_through* when it held and the MPI library wrote some of them, *expected_failure* when it
    fails without Penstock too, or *failed* or *skipped*. ``reason`` says why for all but *passed*.
    """

    suite: str  # "libraries", "conformance", ...
    mpi: str  # a name of tests/lib/mpis.py
    binding: str  # "C", "C++", "Fortran", "Python"
    library: str  # what calls MPI-IO: "HDF5 1.10.8", "MPI-IO" for a program that calls it itself
    case: str
    ranks: int
    outcome: str
    engine_bytes: int = 0
    passthrough_bytes: int = 0
    reason: str = ""
    mpi_version: str = ""  # "4.0.2"

    def __post_init__(self) -> None:
        """Raises ValueError for what the matrix could not show."""
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {', '.join(OUTCOMES)}, got {self.outcome!r}")
        if self.ranks < 1:
            raise ValueError(f"ranks must be at least 1, got {self.ranks}")
        if self.outcome != "passed" and not self.reason:
            raise ValueError(f"{self.case}: the outcome {self.outcome} needs a reason")


class Recorder:
    """Appends records to a file, each as soon as it is known; without a file it does nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, record: Record) -> None:
        if self._file is not None:
            print(json.dumps(asdict(record)), file=self._file, flush=True)


def read_records(directory: Path) -> Iterator[Record]:
    """All records of the ``*.jsonl`` files of a directory, in the order of their names.

    Raises
    ------
    ValueError
        For a line that is no record; the message names the file and the line.
    """
    known = {field.name for field in fields(Record)}
    for path in sorted(directory.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                values = json.loads(line)
                yield Record(**{k: v for k, v in values.items() if k in known})
            except (json.JSONDecodeError, TypeError, ValueError, AttributeError) as error:
                raise ValueError(f"{path}:{number}: not a record: {error}") from error
