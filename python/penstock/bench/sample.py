"""The records of a results file ``samples.jsonl`` (docs/reference/bench-results.schema.json).

One JSON object per line; ``record`` tells which: a header, the provenance of what follows, samples
and events. A *cell* is a pattern of work, a *variant* one way of doing it; variants are compared
within a cell. What a measuring program printed is kept whole in a sample's ``result``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_serializer,
)

from penstock.strict import first_wrong

SCHEMA = "penstock.bench/1"
PROGRAM_SCHEMA = "penstock.measure/1"

RateKind = Literal["application", "actual"]
Key = tuple[str, str, int, bool]
_Digits = Annotated[str, Field(pattern="^[0-9]{1,19}$")]


class _Model(BaseModel):
    # A later version may add keys; it raises the schema's number when it changes them.
    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


def _no_speck(rate: float) -> float:
    """Ratios of rates are finite."""
    if 0 < rate < 1e-9:
        raise ValueError(f"must be 0, or 1e-9 and more, got {rate}")
    return rate


class Rate(_Model):
    """One of the two clocks: until the program went on, or until the device had every byte."""

    seconds: float = Field(ge=0)
    bytes_per_s: Annotated[float, AfterValidator(_no_speck)] = Field(ge=0, le=1e21)
    source: str | None = None
    why: str | None = None


class Verified(_Model):
    """Bytes read back after the clock had stopped."""

    bytes: int
    wrong_bytes: int
    first_wrong: Any = None


class ProgramError(_Model):
    """The first I/O call that failed, as all workers agreed on it."""

    worker: int | None = None
    where: str = ""
    error_class: str = Field(default="", alias="class")
    text: str = ""


class EngineFacts(_Model):
    """What Penstock's engine did in the run."""

    method: str = ""
    bytes: int = 0
    passed_bytes: int = 0
    degraded: list[str] = []


class CpuTimes(_Model):
    """Of all CPUs of the nodes while the clock ran and until the device had every byte."""

    busy_s: float
    total_s: float


class Result(_Model):
    """What a measuring program printed. Programs beside ours have only the first fields."""

    schema_name: str = Field(alias="schema")
    program: str
    version: str = ""
    mpi: str | None = None
    parameters: dict[str, Any] = {}
    workers: int
    ranks: int
    bytes: int
    application: Rate
    actual: Rate | None = None
    verified: Verified | None = None
    engine: EngineFacts | None = None
    cpus: CpuTimes | None = None
    error: ProgramError | None = None


class Settled(_Model):
    """How long the machine took to come to rest before a sample, and how much was still dirty."""

    waited_s: float
    dirty_bytes: int
    exceeded: bool = False


class Reading(_Model):
    """The machine at one moment. None: this kernel does not tell.

    Attributes
    ----------
    at_s : float
        Unix time.
    cpu_total_s, cpu_busy_s, cpu_steal_s : float
        Since boot, summed over CPUs. Busy is neither idle, waiting for I/O nor stolen.
    own_cpu_s : float
        CPU time of this process and of its children that have ended: no disturbance.
    dirty_bytes, writeback_bytes, memory_available_bytes : int
        Of /proc/meminfo.
    io_stall_s, memory_stall_s : float or None
        Since boot: how long some task waited for I/O or memory (pressure stall information).
    io_pressure : float or None
        Percent of the last 10 s in which some task waited for I/O.
    """

    at_s: float
    cpu_total_s: float
    cpu_busy_s: float
    cpu_steal_s: float
    own_cpu_s: float
    dirty_bytes: int
    writeback_bytes: int
    memory_available_bytes: int
    io_stall_s: float | None = None
    memory_stall_s: float | None = None
    io_pressure: float | None = None


def _whole(reading: dict[str, Any]) -> dict[str, Any]:
    """What is found in readings relies on all of them."""
    try:
        return Reading.model_validate(reading).model_dump()
    except ValidationError as error:
        raise ValueError(first_wrong(error)) from error


class Header(_Model):
    """The first line: what was planned, and by which seed it is drawn."""

    record: Literal["header"] = "header"
    schema_name: str = Field(default=SCHEMA, alias="schema")
    penstock: str
    created: str
    name: str
    seed: int
    plan: dict[str, Any]


class Provenance(_Model):
    """Where and with what the samples that name its ``id`` were taken.

    ``write_back`` holds settings of /proc/sys/vm; None: this kernel has none of that name.
    """

    record: Literal["provenance"] = "provenance"
    id: str
    host: str = ""
    kernel: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int | None = None
    write_back: dict[str, _Digits | None] = {}
    file_system: dict[str, Any] = {}
    mpi: Any = None
    penstock: str = ""
    python: str = ""


class Sample(_Model):
    """One run of a measuring program: measured, or ``failed`` with the reason."""

    record: Literal["sample"] = "sample"
    cell: str
    variant: str
    block: int
    place: int
    canary: bool = False
    warm_up: bool = False
    started: str
    wall_s: float
    provenance: str = ""
    command: list[str]
    settled: Settled | None = None
    machine_before: Annotated[dict[str, Any], AfterValidator(_whole)] | None = None
    machine_after: Annotated[dict[str, Any], AfterValidator(_whole)] | None = None
    result: Result | None = None
    failed: str | None = None

    @field_serializer("result")
    def _as_printed(self, result: Result | None) -> dict[str, Any] | None:
        return None if result is None else result.model_dump(by_alias=True, exclude_unset=True)

    @property
    def key(self) -> Key:
        """What a resumed session knows a sample by. Block 0 holds the warm-ups."""
        return (self.cell, self.variant, self.block, self.canary)

    @property
    def more(self) -> dict[str, Any]:
        """What the program printed besides the members of :class:`Result`."""
        return (self.result.model_extra or {}) if self.result else {}

    @property
    def off_regime(self) -> str:
        """What the program noted of memory, or of the moment it began, that was not as asked."""
        notes = self.more.get("notes")
        told = map(str, notes) if isinstance(notes, list) else ()
        return "; ".join(n for n in told if n.startswith(("regime ", "page-reports ")))

    @property
    def counts(self) -> bool:
        """Whether it is one of the variant's own samples: no warm-up, no canary, not failed."""
        return not (self.warm_up or self.canary) and self.failed is None

    @property
    def is_lost(self) -> bool:
        """Whether it would have counted and failed."""
        return not (self.warm_up or self.canary) and self.failed is not None

    @property
    def is_told(self) -> bool:
        """Whether a summary looks at it: of warm-ups and canaries only at those that went wrong."""
        wrong = self.failed is not None or self.wrong_bytes > 0
        return wrong or not (self.warm_up or self.canary)

    @property
    def wrong_bytes(self) -> int:
        """How many bytes were read back other than they were written."""
        verified = self.result.verified if self.result else None
        return verified.wrong_bytes if verified else 0

    def rate(self, kind: RateKind) -> float | None:
        """Bytes per second by one of the two clocks; None where it was not measured."""
        if self.failed is not None or self.result is None:
            return None
        rate = self.result.application if kind == "application" else self.result.actual
        return None if rate is None else rate.bytes_per_s


def last_result(samples: Sequence[Sample]) -> Result | None:
    """Of those that count, where one has any: a run that failed may have done less."""
    told = [s for s in samples if s.result is not None]
    chosen = [s for s in told if s.counts] or told
    return chosen[-1].result if chosen else None


class Event(_Model):
    """Something that a reader of the samples should know: interrupted, resumed, dropped, ..

    ``plan`` is what a session that goes on does otherwise than the header says, from there on.
    """

    record: Literal["event"] = "event"
    at: str
    what: str
    text: str
    plan: dict[str, Any] | None = None


Record = Annotated[Header | Provenance | Sample | Event, Field(discriminator="record")]
RECORD: TypeAdapter[Header | Provenance | Sample | Event] = TypeAdapter(Record)


def as_line(record: Header | Provenance | Sample | Event) -> str:
    """A record as its line of the file, with the newline."""
    return record.model_dump_json(by_alias=True) + "\n"
