"""The command line: thin commands that parse, call a library function and render its answer."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

import typer

from penstock import __version__, errors
from penstock.cli import (
    bench,
    compare,
    completion,
    config,
    doctor,
    env,
    explain,
    listing,
    log,
    report,
    reproduce,
    run,
    simulate,
)
from penstock.cli.output import print_whatever_comes, unwrapped
from penstock.extras import pip_install
from penstock.launch.request import is_utf8

_NOBODY_READS = 128 + signal.SIGPIPE  # as of a program that the signal ends
_PRINT = ("typer", "click", "rich")
_OUR_FAULT = 70  # EX_SOFTWARE of sysexits.h: no command's verdict
_NOT_THERE = 127  # as of the launcher, which misses what all commands need

app = typer.Typer(
    name="penstock",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
run.register(app)
env.register(app)
config.register(app)
doctor.register(app)
listing.register(app)
explain.register(app)
simulate.register(app)
log.register(app)
bench.register(app)
compare.register(app)
reproduce.register(app)
report.register(app)
completion.register(app)
for registered in app.registered_commands:
    registered.help = unwrapped(registered.callback)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def penstock(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Faster, truthful file writes for unmodified MPI programs.

    Examples:

        penstock run -- mpiexec -n 4 ./app

        penstock explain --draw plan.svg

        penstock log penstock-app-1234.json
    """


def main() -> None:
    """Run the command line; whatever ends it is one line on stderr and an exit code."""
    print_whatever_comes()
    try:
        app()
    except errors.LaunchError as error:
        _fail(error, error.exit_code)
    except errors.ArgumentError as error:
        _fail(error, 2)
    except errors.PenstockError as error:
        _fail(error, 1)
    except OSError as error:
        _fail_for_the_system(error)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # of which Click and Rich make a 1
            _leave_what_stdout_holds()
            sys.exit(_NOBODY_READS)
        raise
    except ModuleNotFoundError as error:
        _fail_for_a_package(error)
    except Exception as error:
        _fail_for_what_nobody_foresaw(error)


def _fail_for_a_package(error: ModuleNotFoundError) -> NoReturn:
    """What only some commands need is imported when they begin; pip has nothing of ours."""
    package = str(error.name).partition(".")[0]
    if package in {"None", "penstock", *sys.stdlib_module_names}:
        _fail_for_what_nobody_foresaw(error)
    said = f"the Python package {package!r} is not there for {sys.executable}: install it with "
    _fail(errors.UnsupportedError(said + pip_install(package)), _NOT_THERE)


def _fail_for_what_nobody_foresaw(error: Exception) -> NoReturn:
    """A traceback says nothing to a user, and Python's code for one, 1, is a verdict of compare.

    Python's development mode is for those to whom it says something.
    """
    given = [word for word in sys.argv[1:] if not is_utf8(word)]
    if given and isinstance(error, TypeError):  # _core takes nothing else
        _fail(errors.ArgumentError(f"{given[0]!a} must be UTF-8"), 2)
    if sys.flags.dev_mode:
        raise error
    said = " ".join(f"{type(error).__name__}: {error}".split())
    remedy = "please report it, with the traceback that PYTHONDEVMODE=1 in front of it shows"
    _fail(
        errors.PenstockError(f"a fault of Penstock ended the command ({said}); {remedy}"),
        _OUR_FAULT,
    )


def _fail_for_the_system(error: OSError) -> NoReturn:
    """What was named cannot be reached, or what is printed cannot be written.

    Its code is no command's verdict: 1 says of penstock compare that B is slower.
    """
    with suppress(OSError):
        typer.echo(f"penstock: {_refused(error)}", err=True)
    _leave_what_stdout_holds()
    sys.exit(2)


def _refused(error: OSError) -> str:
    said = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {said}"
    if _comes_of_printing(error):
        return f"stdout cannot be written: {said}"
    try:
        os.getcwd()  # noqa: PTH109 - as what was refused
    except FileNotFoundError:
        return "the working directory was removed: go to one that is there"
    return said


def _comes_of_printing(error: OSError) -> bool:
    """Whether what raised it, last, was one of the packages that print, which open no files."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0] in _PRINT


def _leave_what_stdout_holds() -> None:
    """Where it could not be written, Python would try once more at its end, and complain."""
    if sys.stdout is None:  # it was closed before the start
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: errors.PenstockError, exit_code: int) -> NoReturn:
    refused = error.strerror if isinstance(error, OSError) else None  # without "[Errno 2]"
    typer.echo(f"penstock: {refused or error}", err=True)
    _leave_what_stdout_holds()
    sys.exit(exit_code)
