"""A small described job, from TOML: ranks, geometry, method, and what each rank writes.

Sizes are byte counts or strings such as "4KiB". See the files in ``examples/``, and
docs/reference/explain-example.md, where a test wants every key.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from penstock import _core
from penstock.errors import ArgumentError, PenstockError
from penstock.explain.shipped import folder, shipped
from penstock.plain import plain
from penstock.strict import Strict, parsed, validated


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return _core.parse_size(value)
    except PenstockError as error:
        raise ValueError(str(error)) from error


_MOST_TEXT = 1 << 20  # characters; no description has as many, and some files never end
MAX_BYTES = 1 << 50  # where files end, so that sums over all ranks fit into 64 bits
Size = Annotated[int, BeforeValidator(_size), Field(ge=0, le=MAX_BYTES)]
PositiveSize = Annotated[int, BeforeValidator(_size), Field(gt=0, le=MAX_BYTES)]
UnitSize = Annotated[int, BeforeValidator(_size), Field(gt=0, le=1 << 30)]
StripeSize = Annotated[int, BeforeValidator(_size), Field(ge=0, le=4 << 30)]  # Lustre's most
Count = Annotated[int, Field(gt=0, le=MAX_BYTES)]
Number = Annotated[int, Field(gt=0, le=2**31 - 1)]


class _Model(Strict):
    model_config = ConfigDict(strict=True)


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

    @model_validator(mode="after")
    def _blocks_do_not_overlap(self) -> Self:
        if self.stride < self.block:
            raise ValueError(f"stride must be at least block, {self.block}, got {self.stride}")
        return self


class Subarray(_Access):
    """A box of a C-ordered array, of one to four dimensions, split over a grid of processes."""

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

    page: UnitSize = 4096
    block: UnitSize = 4096
    stripe: StripeSize = 0
    sharing: Literal["any", "unit_per_node", "unit_keeps_node"] = "any"


class Example(_Model):
    """A described job."""

    title: Annotated[str, AfterValidator(plain)]
    ranks: Annotated[int, Field(gt=0, le=4096)]
    nodes: Number = 1
    cores_per_node: Number = 1
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
            _check_end(access, len(members))
        return self


def members_of(access: _Access, ranks: int) -> list[int]:
    """The ranks that an access is for."""
    return list(range(ranks)) if access.ranks is None else access.ranks


def _check_grid(access: Subarray, members: int) -> None:
    cells = math.prod(access.grid)
    if cells != members:
        raise ValueError(f"grid {access.grid} has {cells} cells for {members} ranks")


def _check_end(access: Access, members: int) -> None:
    end = access.offset + _span(access, members)
    if end > MAX_BYTES:
        raise ValueError(f"{access.kind} ends at byte {end}: it must end at {MAX_BYTES} at most")


def _span(access: Access, members: int) -> int:
    """From the first byte that so many ranks write to behind the last."""
    match access:
        case Contiguous():
            return members * access.bytes
        case Interleaved():
            return members * access.block * access.blocks
        case Vector():
            between = (members - 1) * access.rank_offset + (access.blocks - 1) * access.stride
            return between + access.block
        case Subarray():
            return math.prod(access.sizes) * access.element


def parse(text: str, name: str) -> Example:
    """Read an example.

    Raises
    ------
    ArgumentError
        If the text is not TOML or says something impossible; the message names file and key.
    """
    return validated(Example, parsed(text, name), name)


def load(name_or_path: str) -> Example:
    """Read an example from a file, or one of those shipped by its name."""
    path = Path(name_or_path)
    if not path.suffix and name_or_path in shipped():
        resource = folder() / f"{name_or_path}.toml"
        return parse(resource.read_text(encoding="utf-8"), f"{name_or_path}.toml")
    try:
        return parse(_text_of(path), name_or_path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ArgumentError(
            f"{name_or_path} cannot be read: {reason}. Shipped examples: {', '.join(shipped())}"
        ) from error


def _text_of(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        text = file.read(_MOST_TEXT + 1)
    if len(text) > _MOST_TEXT:
        raise ArgumentError(
            f"{path} must be a described job of at most {_MOST_TEXT} characters, and has more: "
            f"give another file, or one of {', '.join(shipped())}"
        )
    return text
