"""Reads the log of a job (docs/reference/job-log.schema.json).

The log is written by rename, so it is whole whenever it is read; ``state`` is "running" until the
job's end, and stays so when the job is killed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.errors import ArgumentError
from penstock.strict import text_of, validated

SCHEMA_VERSION = 1


class _Model(BaseModel):
    # A later version of the engine may add keys; it raises schema_version when it changes them.
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


Count = Annotated[int, Field(ge=0, lt=2**63)]
Seconds = Annotated[float, Field(ge=0, le=1e15)]  # sums of them stay finite


class Times(_Model):
    """Seconds, summed over ranks. ``write_calls``: inside write calls until they return.

    ``sync`` is what the program asked for and what close pushed, ``policy_sync`` what writers
    waited for because the method pushes between writes.
    """

    plan: Seconds
    pack: Seconds
    exchange: Seconds
    write: Seconds
    sync: Seconds
    policy_sync: Seconds = 0.0  # logs of earlier versions have none
    close: Seconds
    write_calls: Seconds

    @property
    def phases(self) -> dict[str, float]:
        """Where the time went; each wait for the device is sync, whoever asked for it."""
        return {
            "plan": self.plan,
            "pack": self.pack,
            "exchange": self.exchange,
            "write": self.write,
            "sync": self.sync + self.policy_sync,
            "close": self.close,
        }


class Pattern(_Model):
    """Write calls by what they touch in the file."""

    contiguous_calls: Count
    strided_calls: Count
    irregular_calls: Count


class Traffic(_Model):
    """How the engine's bytes went."""

    cold_bytes: Count = 0  # past the page cache since memory was cold; earlier logs have none


class Verify(_Model):
    """Bytes read back at close."""

    verified_bytes: Count
    unverified_bytes: Count
    mismatched_bytes: Count


class Totals(_Model):
    """Sums over all files, those that are not listed too."""

    engine_bytes: Count
    passthrough_bytes: Count
    engine_read_bytes: Count = 0  # logs of earlier versions have none of these
    errors: Count
    degraded: dict[str, Count]
    mismatched_bytes: Count = 0
    files_not_listed: Count = 0


class SizeBucket(_Model):
    """Write calls of more bytes than the bucket before, and at most so many; None: the last."""

    up_to_bytes: Count | None
    calls: Count


class File(_Model):
    """One file of the job, summed over its ranks."""

    path: str
    ranks: Count
    closed: bool
    file_system: str
    method: str
    engine_bytes: Count
    passthrough_bytes: Count
    passthrough_calls: Count  # writes; what these look like in the file is not known
    read_bytes: Count
    engine_read_bytes: Count = 0  # logs of earlier versions have none
    errors: Count
    first_error: str | None
    algorithms: dict[str, Count]
    degraded: dict[str, Count]
    calls: dict[str, Count]
    sizes: list[SizeBucket] = []
    pattern: Pattern
    traffic: Traffic = Traffic()
    times_s: Times
    open_to_close_s: Seconds
    application_rate_bytes_per_s: float | None
    actual_rate_bytes_per_s: float | None
    actual_rate_source: str
    verify: Verify

    @property
    def is_observed(self) -> bool:
        """Nothing was to be served: the program's own MPI-IO was timed."""
        return self.method == "observe"

    @property
    def is_all_passed(self) -> bool:
        """Penstock served none of its writes: no phases but the whole and close are known."""
        return self.passthrough_calls > 0 and not self.algorithms

    @property
    def no_actual_rate(self) -> str:
        """Why it is not known; the engine's text may begin so itself."""
        return f"not known: {self.actual_rate_source.removeprefix('not known: ')}"


class JobLog(_Model):
    """A job: what it was, and its files."""

    schema_version: int
    state: Literal["running", "finished"]
    penstock_version: str
    job_id: str
    program: str
    mpi_library: str
    build: str
    host: str
    ranks: Count
    start_unix_s: Seconds
    written_unix_s: Seconds
    elapsed_s: Seconds | None = None  # logs of earlier versions have none
    totals: Totals
    files: list[File]

    @property
    def not_listed(self) -> str:
        """What is to be said where ``files`` has not all; empty where it has."""
        n = self.totals.files_not_listed
        what = (
            "more file is in the sums of the job and has"
            if n == 1
            else ("more files are in the sums of the job and have")
        )
        return f"{n} {what} no entry in the log" if n else ""

    def is_part(self, file: File) -> bool:
        """Whether what is known of it is what one rank did: nobody has put the ranks' together."""
        return not file.closed and self.ranks > 1

    @property
    def known_elapsed_s(self) -> float | None:
        """Until the log was written; None where the wall clock alone tells it, and was set back."""
        if self.elapsed_s is not None:
            return self.elapsed_s
        by_wall_s = self.written_unix_s - self.start_unix_s
        return by_wall_s if by_wall_s >= 0.0 else None


def load(path: Path) -> JobLog:
    """Read a job's log.

    Raises
    ------
    ArgumentError
        If it cannot be read, is no job log, or is of a later schema; the message says which.
    """
    return parse(text_of(path), str(path))


def parse(text: str, name: str) -> JobLog:
    """A job's log from its text; ``name`` is for messages."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # it may be nested too deep, or a number too long
        raise ArgumentError(f"{name} is not JSON: {error}") from error
    version = values.get("schema_version") if isinstance(values, dict) else None
    if not isinstance(version, int):
        raise ArgumentError(f"{name} is no job log: it has no schema_version")
    if version != SCHEMA_VERSION:
        raise ArgumentError(
            f"{name} has schema_version {version}, and this penstock reads {SCHEMA_VERSION}: "
            "use the penstock that wrote it"
        )
    return validated(JobLog, values, f"{name} is no job log")
