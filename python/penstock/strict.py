"""Files that are read strictly, and how is told what is wrong with one: the key, its value, what it
must be, and the nearest of what there is.
"""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock import _core
from penstock.errors import ArgumentError


class Strict(BaseModel):
    """A value of a file, which has the keys that it may have and no others; numbers are finite."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


Model = TypeVar("Model", bound=BaseModel)


def read(path: Path) -> dict[str, Any]:
    """The values of a TOML file.

    Raises
    ------
    ArgumentError
        If it cannot be read.
    """
    return parsed(text_of(path), str(path))


def text_of(path: Path) -> str:
    """What a file holds.

    Raises
    ------
    ArgumentError
        If it cannot be read, or is not text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    return decoded(content, str(path))


def decoded(content: bytes, name: str) -> str:
    """The text that a file's bytes are; ``name`` is for messages.

    Raises
    ------
    ArgumentError
        If they are not text.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{name} cannot be read: it is not UTF-8 text") from error


def parsed(text: str, name: str) -> dict[str, Any]:
    """The values of a TOML text; ``name`` is for messages.

    Raises
    ------
    ArgumentError
        If it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{name} is not TOML: {error}") from error


def validated(model: type[Model], values: object, where: str) -> Model:
    """A model of values; ``where`` begins the message.

    Raises
    ------
    ArgumentError
        Naming the key, its value and what it must be.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ArgumentError(f"{where}: {first_wrong(error, model)}") from error


def first_wrong(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """What tells most of what is wrong; ``model`` is what a misspelt key is looked up in."""
    # A key that is misspelt is also missing.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = [] if model is None else _keys_at(model, first["loc"][:-1])
        return f"there is no key {key}{hint(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        return f"{key} is missing"
    what = first["msg"].removeprefix("Value error, ")
    got = "" if "got" in what else f", got {_short.repr(first['input'])}"
    return f"{key}: {what[:1].lower()}{what[1:]}{got}" if key else what


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


def _keys_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys there are at a place of a model's value: of each kind that may stand there."""
    models = [model]
    for part in place:
        below = [m for one in models for m in _models_below(one, part)]
        models = below or models  # not a field: an index, or which kind it is
    return sorted({field.alias or name for m in models for name, field in m.model_fields.items()})


def _models_below(model: type[BaseModel], part: str | int) -> Iterable[type[BaseModel]]:
    for name, field in model.model_fields.items():
        if part in (name, field.alias):
            yield from _models_in(field.annotation)


def _models_in(annotation: object) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def hint(word: str, known: Sequence[str]) -> str:
    """The nearest of what there is, or all of it."""
    if not known:
        return ""
    near = _core.nearest(word, list(known))
    return f"; did you mean {near}?" if near else f"; there are {', '.join(known)}"
