"""TOML files that are read strictly: a key that is not known is an error, with the nearest."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from penstock import _core
from penstock.errors import ArgumentError


class Strict(BaseModel):
    """A value of a file, which has the keys that it may have and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Model = TypeVar("Model", bound=Strict)


def read(path: Path) -> dict[str, Any]:
    """The values of a TOML file.

    Raises
    ------
    ArgumentError
        If it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path} is not TOML: {error}") from error


def validated(model: type[Model], values: Mapping[str, Any], where: str) -> Model:
    """A model of values; ``where`` begins the message.

    Raises
    ------
    ArgumentError
        Naming the key, its value and what it must be.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ArgumentError(f"{where}: {_first(error, model)}") from error


def _first(error: ValidationError, model: type[Strict]) -> str:
    # A key that is misspelt is also missing: the first tells more.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        known = [field.alias or name for name, field in model.model_fields.items()]
        return f"there is no key {key}{hint(key, known)}"
    if first["type"] == "missing":
        return f"{key} is missing"
    what = first["msg"].removeprefix("Value error, ")
    got = "" if "got" in what else f", got {first['input']!r}"
    return f"{key}: {what[:1].lower()}{what[1:]}{got}" if key else what


def hint(word: str, known: list[str]) -> str:
    """The nearest of what there is, or all of it."""
    near = _core.nearest(word, known)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(known)}"
