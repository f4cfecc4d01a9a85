"""The options of a run: resolved by the engine's own reader before anything is launched, and handed
to every rank whole on penstock-exec's command line. Not every launcher forwards variables, files
differ between nodes, and a hundred thousand ranks need not read them."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock import _core, native
from penstock.errors import ArgumentError, LaunchError
from penstock.launch import rewrite

PREFIX = "PENSTOCK_"
_ALONE = "; it runs without Penstock"  # the end of penstock-exec's word for it (src/pmpi/exec.c)
_ABSENT = "penstock-exec: no such program"
Told = dict[str, str | None]


def _told(help_text: str, variable: str, metavar: str | None = None, value: str = "1") -> Told:
    """Of a switch that sets ``variable`` to ``value``, or, with a metavar, of a value."""
    return {"help": help_text, "variable": variable, "metavar": metavar, "value": value}


@dataclass(frozen=True)
class Options:
    """What the command line says; None and False leave a choice to variables and files.

    The commands take their options, with help, from these fields: each is declared here alone.
    """

    method: str | None = field(
        default=None,
        metadata=_told(
            'How to write, such as "two_phase(writers=4, cycle=16MiB) + messages + pwrite". '
            "auto (the default) lets the engine choose per call; off runs the program untouched.",
            "METHOD",
            "METHOD",
        ),
    )
    writers: str | None = field(
        default=None,
        metadata=_told("Ranks that write. 0 lets the team decide; leave it alone.", "WRITERS", "N"),
    )
    cycle: str | None = field(
        default=None,
        metadata=_told(
            "Collective buffer of one writer, such as 16MiB (binary) or 16MB (decimal).",
            "CYCLE",
            "SIZE",
        ),
    )
    observe: bool = field(
        default=False,
        metadata=_told("Take over nothing: time the program's own MPI-IO.", "OBSERVE"),
    )
    verify: bool = field(
        default=False,
        metadata=_told("Read back what was written at close and compare checksums.", "VERIFY"),
    )
    require: bool = field(
        default=False,
        metadata=_told("Stop wherever a write would pass Penstock by.", "REQUIRE"),
    )
    quiet: bool = field(
        default=False,
        metadata=_told("Print no line at the end; the log is still written.", "QUIET"),
    )
    no_log: bool = field(
        default=False,
        metadata=_told("Write no log of the job.", "LOG", value="0"),
    )
    log_dir: Path | None = field(
        default=None,
        metadata=_told("Where the job log goes. Default: the job's directory.", "LOG_DIR", "DIR"),
    )
    config: Path | None = field(
        default=None,
        metadata=_told(
            "A TOML file of settings; wins over variables and other files.", "CONFIG", "FILE"
        ),
    )
    isolated: bool = field(
        default=False,
        metadata=_told(
            "Read no configuration file of the system, the user or the project.", "ISOLATED"
        ),
    )


@dataclass(frozen=True)
class Start:
    """How penstock-exec starts a program, which no configuration says."""

    mpi: str | None = None  # None: as the program or its launcher tells
    thread_multiple: bool = False

    def options(self) -> list[str]:
        """They, as penstock-exec takes them."""
        mpi = ["--mpi", self.mpi] if self.mpi else []
        return mpi + (["--thread-multiple"] if self.thread_multiple else [])


_AS_USUAL = Start()


@dataclass(frozen=True)
class Launch:
    """What to execute, and what a person must be told before."""

    words: list[str]
    notices: tuple[str, ...] = ()
    untouched: bool = False  # Penstock has no part in it, though the shell may preload it


def variables(options: Options, environ: Mapping[str, str]) -> dict[str, str]:
    """The PENSTOCK_* variables of a run: those of the environment, overridden by the options.

    PENSTOCK_OPTIONS lists those that are options, which win over hints and files.
    """
    chosen = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    given = {}
    for one in dataclasses.fields(options):
        value = getattr(options, one.name)
        if value is not None and value is not False:
            text = one.metadata["value"] if value is True else str(value)
            given[one.metadata["variable"]] = text
    chosen |= {PREFIX + name: value for name, value in given.items()}
    if given:
        before = [name for name in chosen.get("PENSTOCK_OPTIONS", "").split(",") if name]
        chosen["PENSTOCK_OPTIONS"] = ",".join(dict.fromkeys([*before, *given]))
    # A rank's working directory may be another one than ours.
    for name in ("PENSTOCK_LOG_DIR", "PENSTOCK_CONFIG"):
        if chosen.get(name):
            chosen[name] = str(Path(chosen[name]).absolute())
    return chosen


def reader_arguments(environ: Mapping[str, str]) -> dict[str, str]:
    """Where the engine's reader looks for configuration files besides the variables."""
    try:
        directory = str(Path.cwd())
    except OSError:  # it was removed under us
        directory = ""
    if not is_utf8(directory):
        directory = "."  # the same place, by a name that the engine's reader can say
    try:
        return {"directory": directory, "library_directory": str(native.directory(environ))}
    except LaunchError:  # said when it is needed
        return {"directory": directory, "library_directory": ""}


def reader_variables(chosen: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the engine's reader looks at.

    Raises
    ------
    ArgumentError
        If one of them is not UTF-8.
    """
    homes = {n: environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in environ}
    read = homes | dict(chosen)
    for name, value in read.items():
        if not is_utf8(name + value):
            raise ArgumentError(f"{name!a} must be UTF-8, got {value!a}")
    return read


def is_utf8(text: str) -> bool:
    """Whether the engine's readers, which take UTF-8 only, can be told it."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def configure(options: Options, environ: Mapping[str, str]) -> tuple[_core.Config, dict[str, str]]:
    """Resolve a run's configuration as the engine reads it: files, variables, options.

    Raises
    ------
    ArgumentError
        If a value or a file is not valid; the message names it and the nearest valid one.
    """
    _refuse_idle(options)
    _require_name(options.config)
    chosen = variables(options, environ)
    read = reader_variables(chosen, environ)
    try:
        return _core.load_config(read, **reader_arguments(environ)), chosen
    except OSError as error:  # a file that somebody named is a value, and this one is wrong
        raise ArgumentError(str(error.strerror)) from error


def _refuse_idle(options: Options, start: Start = _AS_USUAL) -> None:
    """Raise ArgumentError where one option leaves another without effect.

    Off or observe by a variable is a person's way to switch off what a script says, and refuses
    nothing.
    """
    for ruling, idle in (*_idle_by_method(options, start), _idle_by_log(options)):
        if idle:
            raise ArgumentError(f"{ruling}, so {idle[0]} would have no effect: give one of them")


def _idle_by_method(options: Options, start: Start) -> Iterator[tuple[str, list[str]]]:
    """What says how to write, where nothing is written: why, and which options."""
    how = Options(
        writers=options.writers,
        cycle=options.cycle,
        verify=options.verify,
        require=options.require,
    )
    if options.observe:
        method = None if options.method == "observe" else options.method
        yield "--observe takes over nothing", _given(replace(how, method=method))
    elif options.method == "observe":
        yield "--method observe takes over nothing", _given(how)
    elif options.method == "off":
        at_all = replace(how, config=options.config, log_dir=options.log_dir)
        yield "--method off runs the program untouched", _given(at_all, start)


def _idle_by_log(options: Options) -> tuple[str, list[str]]:
    where = Options(log_dir=options.log_dir if options.no_log else None)
    return "--no-log writes no log", _given(where)


def _require_name(config: Path | None) -> None:
    """Raise ArgumentError for ``--config=``, as of an empty variable: Path makes a . of it."""
    if config == Path():
        raise ArgumentError(
            '--config must name a TOML file of settings, got "" or ".": name one or leave it out'
        )


def exec_options(config: _core.Config) -> list[str]:
    """The options of penstock-exec that make every rank obey ``config`` and nothing else.

    ``--require`` is told apart, because it also rules what comes before the engine.
    """
    return ["--resolved", config.resolved()] + (["--require"] if config.require else [])


def command_line(
    words: Sequence[str],
    options: Options,
    environ: Mapping[str, str],
    start: Start = _AS_USUAL,
) -> Launch:
    """What to execute for ``penstock run OPTIONS -- words``.

    Raises
    ------
    ArgumentError
        If an option's value or a configuration file is not valid.
    LaunchError
        If the command cannot be taken apart, or starts penstock-exec itself and options are given
        (exit code 2), or if something is missing (127).
    """
    native.require_flavour(start.mpi)
    _refuse_idle(options, start)
    config, _ = configure(options, environ)
    _require_taker(words, config, _given(options, start))
    notices = tuple(config.notices)
    if config.mode == _core.Mode.off:
        return Launch(list(words), notices + _off_notice(config), untouched=True)
    command = rewrite.parse(words)
    rewrite.require_commands(command)
    if why := _left_alone(config, command):
        return Launch(list(words), notices + _unless_quiet(why, config), untouched=True)
    rewrite.require_in_place(command, environ)
    executable = str(native.executable(native.directory(environ)))
    if why := _some_cannot(config, command, [executable, *start.options()]):
        return Launch(list(words), notices + _unless_quiet(why, config), untouched=True)
    preload = [executable, *exec_options(config)]
    if command.launcher is not None:
        preload.append("--all-ranks")
    return Launch(rewrite.rewrite(command, [*preload, *start.options()]), notices)


def _unless_quiet(why: str, config: _core.Config) -> tuple[str, ...]:
    return () if config.quiet else (why,)


def _given(options: Options, start: Start = _AS_USUAL) -> list[str]:
    """The options that were given, as the command line has them."""
    values = vars(options) | vars(start)
    given = {n: v for n, v in values.items() if v is not None and v is not False}
    flags = {"--" + name.replace("_", "-"): value for name, value in given.items()}
    return [f if v is True else f"{f} {shlex.quote(str(v))}" for f, v in flags.items()]


def _require_taker(words: Sequence[str], config: _core.Config, given: Sequence[str]) -> None:
    """Raise LaunchError where the command's own penstock-exec would not get what was given.

    One behind a wrapper is served as this run says, unless this run puts nothing before it.
    """
    alone = rewrite.starts_penstock_exec(words) or (
        _off_by_option(config) and rewrite.wraps_penstock_exec(words)
    )
    if given and alone:
        raise LaunchError(
            f"the command starts penstock-exec itself, which would not get {', '.join(given)}: "
            "give it these options, or leave it out"
        )


def _off_by_option(config: _core.Config) -> bool:
    """Off as the command line says, which only this process reads."""
    return config.mode == _core.Mode.off and _layer_of_method(config) in ("option", "--config")


def _layer_of_method(config: _core.Config) -> str:
    method = next((s for s in config.settings() if s.key == "method"), None)
    return "default" if method is None else method.layer


def _off_notice(config: _core.Config) -> tuple[str, ...]:
    """Off by a file is said; whoever gave the option or the variable knows it."""
    by_person = _layer_of_method(config) in ("option", "variable", "default")
    return () if by_person or config.quiet else (config.left_alone,)


def _left_alone(config: _core.Config, command: rewrite.Command) -> str:
    """Why this command is left alone; empty when it is not.

    One program of the list is enough: its ranks would not meet those of the other programs.
    """
    for part in command.parts:
        name = part.program[0]
        found = shutil.which(name)
        names = [name, found, str(Path(found).resolve())] if found else [name]
        if why := config.why_left_alone([_spelt(n) for n in names]):
            if config.require:
                raise ArgumentError(f"{why}, but require is set; --method auto overrides the list")
            return why
    return ""


def _some_cannot(config: _core.Config, command: rewrite.Command, starter: Sequence[str]) -> str:
    """Why a job of several programs runs without Penstock; empty when it does not.

    A program that cannot be taken over (set-user-id, linked statically) has ranks without an
    engine, for which those of the other programs would wait. So may one that is not seen here.
    """
    if len(command.parts) < 2:
        return ""
    reasons = [_why_not(part, starter) for part in command.parts]
    if None not in reasons and any(reasons) == all(reasons):  # all alike: each says so itself
        return ""
    first = next((why for why in reasons if why), None)
    if first is None:
        name = command.parts[reasons.index(None)].program[0]
        first = f"{name} is not seen from here, and may take no preloaded library"
    if config.require:
        raise ArgumentError(f"{first}, but require is set")
    return f"{first}; the other programs' ranks would wait for its ranks, so none has Penstock"


def _why_not(part: rewrite.Part, starter: Sequence[str]) -> str | None:
    """Why penstock-exec starts a program alone; empty where it does not, None if there is none."""
    command = [*starter, "--dry-run", "--", rewrite.spelt_for_exec(part)]
    try:
        said = subprocess.run(  # noqa: S603
            command,
            cwd=part.directory or None,
            env=_without_settings(os.environ),
            capture_output=True,
            text=True,
            errors="backslashreplace",  # a program's name may be of any bytes
            check=False,
        ).stderr.strip()
    except OSError:  # a directory of the nodes alone
        return None
    if said.startswith(_ABSENT):
        return None
    if not said.endswith(_ALONE):
        return ""
    return said.removeprefix("penstock-exec: ").removesuffix(_ALONE)


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that have penstock-exec judge a program alone: the settings of this run, which may
    overrule them, are in `configure`'s result."""
    return {n: v for n, v in environ.items() if n != "LD_PRELOAD" and not n.startswith(PREFIX)}


def _spelt(name: str) -> str:
    """A program's name for patterns, which are UTF-8: no pattern has what is not."""
    return name.encode("utf-8", "replace").decode()
