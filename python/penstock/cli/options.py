"""Options of several commands: those of a run, from the fields of ``Options``, and of results."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from penstock.launch.request import Options


def fraction(given: str | float) -> float:
    """A number, or what was given instead of one."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"must be a fraction such as 0.03, got {given!r}") from error


Margin = Annotated[
    float,
    typer.Option(metavar="FRACTION", parser=fraction, help="What does not matter: 0.03 is 3 %."),
]
Cell = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this cell; repeatable.")]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="VARIANT", help="Leave this variant out, and say so; repeatable."),
]


def given(context: typer.Context) -> list[str]:
    """The options that the command line has, by their names, whatever their values."""
    of_line = [
        one
        for one in context.command.params
        if one.param_type_name == "option"
        and one.name is not None
        and (source := context.get_parameter_source(one.name)) is not None
        and source.name == "COMMANDLINE"
    ]
    return [one.opts[0] for one in of_line]


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one parameter per field of `Options` in place of its ``options``."""
    hints = typing.get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "options"
    ]
    shared = _parameters()
    names = [parameter.name for parameter in shared]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        options = Options(**{name: given.pop(name) for name in names})
        command(options=options, **given)

    required = [p for p in own if p.default is inspect.Parameter.empty]
    others = [p for p in own if p.default is not inspect.Parameter.empty]
    parameters = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*required, *shared, *others)
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def _parameters() -> list[inspect.Parameter]:
    hints = typing.get_type_hints(Options)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[
                hints[field.name],
                typer.Option(
                    "--" + field.name.replace("_", "-"),
                    metavar=field.metadata["metavar"],
                    help=field.metadata["help"],
                ),
            ],
        )
        for field in dataclasses.fields(Options)
    ]
