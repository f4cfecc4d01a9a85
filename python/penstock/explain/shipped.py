"""The examples that come with Penstock, by name. Light, since every command's help names them."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable

DEFAULT = "interleaved"


def folder() -> Traversable:
    """Where they are."""
    return resources.files(__package__) / "examples"


def shipped() -> list[str]:
    """Their names."""
    return sorted(
        f.name.removesuffix(".toml") for f in folder().iterdir() if f.name.endswith(".toml")
    )
