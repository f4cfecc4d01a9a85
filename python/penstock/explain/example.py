"""A small described job, from TOML: ranks, geometry, method, and what each rank writes.

Sizes are byte counts or strings such as "4KiB". See the files in ``examples/``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from penstock import _core
from penstock.errors import ArgumentError, PenstockError
from penstock.explain.shipped import folder, shipped


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return _core.parse_size(value)
    except PenstockError as error:
        raise ValueError(str(error)) from error


Size = Annotated[int, BeforeValidator(_size), Field(ge=0)]
PositiveSize = Annotated[int, BeforeValidator(_size), Field(gt=0)]
Count = Annotated[int, Field(gt=0)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Access(_Model):
    ranks: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="Who writes so; all ranks when left out."
    )
    offset: Size = Field(default=0, description="Where the first of these ranks begins, in bytes.")


class Contiguous(_Access):
    """One run of bytes per rank, one behind the other."""

    kind: Literal["contiguous"]
    bytes: Size


class Interleaved(_Access):
    """Blocks dealt to the ranks in turn: what a loop over records does."""

    kind: Literal["interleaved"]
    block: PositiveSize
    blocks: Count


class Vector(_Access):
    """Blocks a stride apart; each rank's first is ``rank_offset`` behind the rank's before."""

    kind: Literal["vector"]
    block: PositiveSize
    stride: PositiveSize
    blocks: Count
    rank_offset: Size


class Subarray(_Access):
    """A box of a C-ordered array, of two or three dimensions, split over a grid of processes."""

    kind: Literal["subarray"]
    sizes: Annotated[list[Count], Field(min_length=1, max_length=4)]
    grid: list[Count]
    element: PositiveSize = 8

    @model_validator(mode="after")
    def _one_grid_number_per_dimension(self) -> Self:
        if len(self.grid) != len(self.sizes):
            raise ValueError("grid must have as many numbers as sizes")
        if any(g > s for g, s in zip(self.grid, self.sizes, strict=True)):
            raise ValueError("grid must not split a dimension into more parts than elements")
        return self


Access = Annotated[Contiguous | Interleaved | Vector | Subarray, Field(discriminator="kind")]


class FileGeometry(_Model):
    """Where the file may be cut."""

    page: PositiveSize = 4096
    block: PositiveSize = 4096
    stripe: Size = 0
    sharing: Literal["any", "unit_per_node", "unit_keeps_node"] = "any"


class Example(_Model):
    """A described job."""

    title: str
    ranks: Annotated[int, Field(gt=0, le=4096)]
    nodes: Count = 1
    cores_per_node: Count = 1
    method: str = "two_phase"
    geometry: FileGeometry = FileGeometry()
    access: Annotated[list[Access], Field(min_length=1)]

    @model_validator(mode="after")
    def _ranks_exist_and_write_once(self) -> Self:
        seen: set[int] = set()
        for access in self.access:
            members = members_of(access, self.ranks)
            if bad := [r for r in members if r >= self.ranks]:
                raise ValueError(f"ranks must be below {self.ranks}, got {bad[0]}")
            for rank in members:
                if rank in seen:
                    raise ValueError(f"rank {rank} has two accesses")
                seen.add(rank)
            if isinstance(access, Subarray):
                _check_grid(access, len(members))
        return self


def members_of(access: _Access, ranks: int) -> list[int]:
    """The ranks that an access is for."""
    return list(range(ranks)) if access.ranks is None else access.ranks


def _check_grid(access: Subarray, members: int) -> None:
    cells = 1
    for g in access.grid:
        cells *= g
    if cells != members:
        raise ValueError(f"grid {access.grid} has {cells} cells for {members} ranks")


def parse(text: str, name: str) -> Example:
    """Read an example.

    Raises
    ------
    ArgumentError
        If the text is not TOML or says something impossible; the message names file and key.
    """
    try:
        return Example.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{name} is not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "example"
        raise ArgumentError(f"{name}: {key}: {_plain(first['msg'], key)}") from error


def _plain(message: str, key: str) -> str:
    message = message.removeprefix("Value error, ")
    if message.startswith("Extra inputs"):
        word = key.rpartition(".")[2]
        models = (Example, FileGeometry, Contiguous, Interleaved, Vector, Subarray)
        near = _core.nearest(word, sorted({f for m in models for f in m.model_fields}))
        return "there is no such key" + (f" (did you mean {near}?)" if near else "")
    return message


def load(name_or_path: str) -> Example:
    """Read an example from a file, or one of those shipped by its name."""
    path = Path(name_or_path)
    if not path.suffix and name_or_path in shipped():
        resource = folder() / f"{name_or_path}.toml"
        return parse(resource.read_text(encoding="utf-8"), f"{name_or_path}.toml")
    try:
        return parse(path.read_text(encoding="utf-8"), name_or_path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ArgumentError(
            f"{name_or_path} cannot be read: {reason}. Shipped examples: {', '.join(shipped())}"
        ) from error
