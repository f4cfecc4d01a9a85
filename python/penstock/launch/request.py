"""The options of a run: checked by the engine's own reader before anything is launched, and handed
to every rank on penstock-exec's command line, because not every launcher forwards variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import _core, native
from penstock.errors import ArgumentError
from penstock.launch import rewrite


@dataclass(frozen=True)
class Options:
    """What the command line says; None and False leave a choice to variables and files."""

    method: str | None = None
    observe: bool = False
    verify: bool = False
    require: bool = False
    quiet: bool = False
    log_dir: Path | None = None
    config: Path | None = None
    writers: int | None = None
    cycle: str | None = None


def variables(options: Options, environ: Mapping[str, str]) -> dict[str, str]:
    """The PENSTOCK_* variables of a run: those of the environment, overridden by the options."""
    chosen = {name: value for name, value in environ.items() if name.startswith("PENSTOCK_")}
    given: dict[str, object | None] = {
        "PENSTOCK_METHOD": options.method,
        "PENSTOCK_WRITERS": options.writers,
        "PENSTOCK_CYCLE": options.cycle,
        "PENSTOCK_LOG_DIR": options.log_dir,
        "PENSTOCK_CONFIG": options.config,
        "PENSTOCK_OBSERVE": int(options.observe) or None,
        "PENSTOCK_VERIFY": int(options.verify) or None,
        "PENSTOCK_REQUIRE": int(options.require) or None,
        "PENSTOCK_QUIET": int(options.quiet) or None,
    }
    chosen |= {name: str(value) for name, value in given.items() if value is not None}
    # A rank's working directory may be another one than ours.
    for name in ("PENSTOCK_LOG_DIR", "PENSTOCK_CONFIG"):
        if chosen.get(name):
            chosen[name] = str(Path(chosen[name]).absolute())
    return chosen


def configure(options: Options, environ: Mapping[str, str]) -> tuple[_core.Config, dict[str, str]]:
    """Check a run's configuration as the engine will read it.

    Raises
    ------
    ArgumentError
        If a value is not valid; the message names it and the nearest valid one.
    """
    if options.observe and options.method not in (None, "observe"):
        raise ArgumentError(
            f"--observe takes over nothing, so --method {options.method} would have no effect: "
            "give one of them"
        )
    chosen = variables(options, environ)
    try:
        return _core.load_config(chosen), chosen
    except ArgumentError as error:
        raise ArgumentError(_in_options_words(str(error), options)) from error


def _in_options_words(message: str, options: Options) -> str:
    """The reader names variables; whoever gave an option should read its name."""
    for option in ("method", "writers", "cycle", "log_dir", "config"):
        if getattr(options, option) is not None:
            variable = f"PENSTOCK_{option.upper()}"
            message = message.replace(variable, "--" + option.replace("_", "-"))
    return message


def exec_options(config: _core.Config, chosen: Mapping[str, str]) -> list[str]:
    """The options of penstock-exec that say on every rank what ``chosen`` says here."""
    words: list[str] = []
    observe = config.mode == _core.Mode.observe
    valued = {
        "--method": None if observe else chosen.get("PENSTOCK_METHOD"),
        "--writers": chosen.get("PENSTOCK_WRITERS"),
        "--cycle": chosen.get("PENSTOCK_CYCLE"),
        "--log-dir": chosen.get("PENSTOCK_LOG_DIR"),
        "--config": chosen.get("PENSTOCK_CONFIG"),
    }
    for option, value in valued.items():
        if value:
            words += [option, value]
    flags = {
        "--observe": observe,
        "--verify": config.verify,
        "--require": config.require,
        "--quiet": config.quiet,
    }
    return words + [option for option, on in flags.items() if on]


def command_line(words: Sequence[str], options: Options, environ: Mapping[str, str]) -> list[str]:
    """The words to execute for ``penstock run OPTIONS -- words``.

    Raises
    ------
    ArgumentError
        If an option's value is not valid.
    LaunchError
        If the command cannot be taken apart (exit code 2) or something is missing (127).
    """
    config, chosen = configure(options, environ)
    if config.mode == _core.Mode.off:
        return list(words)  # a true no-op: the command as it was given
    command = rewrite.parse(words)
    rewrite.require_commands(command)
    preload = [str(native.executable(native.directory(environ)))]
    preload += exec_options(config, chosen)
    if command.launcher is not None:
        preload.append("--all-ranks")
    return rewrite.rewrite(command, preload)
