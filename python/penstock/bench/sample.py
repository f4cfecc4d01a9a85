"""The records of a results file ``samples.jsonl`` (docs/reference/bench-results.schema.json).

One JSON object per line; ``record`` tells which: a header, the provenance of what follows, samples
and events. A *cell* is a pattern of work, a *variant* one way of doing it; variants are compared
within a cell. What a measuring program printed is kept whole in a sample's ``result``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_serializer

SCHEMA = "penstock.bench/1"
PROGRAM_SCHEMA = "penstock.measure/1"

RateKind = Literal["application", "actual"]
Key = tuple[str, str, int, bool]


class _Model(BaseModel):
    # A later version may add keys; it raises the schema's number when it changes them.
    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


class Rate(_Model):
    """One of the two clocks: until the program went on, or until the device had every byte."""

    seconds: float
    bytes_per_s: float
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
    """Where and with what the samples that name its ``id`` were taken."""

    record: Literal["provenance"] = "provenance"
    id: str
    host: str = ""
    kernel: str = ""
    cpus: int = 0
    memory_bytes: int = 0
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
    machine_before: dict[str, Any] | None = None
    machine_after: dict[str, Any] | None = None
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
    def counts(self) -> bool:
        """Whether it is one of the variant's own samples: no warm-up, no canary, not failed."""
        return not (self.warm_up or self.canary) and self.failed is None

    def rate(self, kind: RateKind) -> float | None:
        """Bytes per second by one of the two clocks; None where it was not measured."""
        if self.failed is not None or self.result is None:
            return None
        rate = self.result.application if kind == "application" else self.result.actual
        return None if rate is None else rate.bytes_per_s


class Event(_Model):
    """Something that a reader of the samples should know: interrupted, resumed, dropped, .."""

    record: Literal["event"] = "event"
    at: str
    what: str
    text: str


Record = Annotated[Header | Provenance | Sample | Event, Field(discriminator="record")]
RECORD: TypeAdapter[Header | Provenance | Sample | Event] = TypeAdapter(Record)


def as_line(record: Header | Provenance | Sample | Event) -> str:
    """A record as its line of the file, with the newline."""
    return record.model_dump_json(by_alias=True) + "\n"
