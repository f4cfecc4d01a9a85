"""A case: one variant of one cell, as parameters; and the measurement that takes samples of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock import _core
from penstock.bench import programs
from penstock.bench.execute import ProgramResult
from penstock.bench.programs import Program
from penstock.bench.session import Measurement
from penstock.errors import ArgumentError

# What bench itself gives a program; a sweep says the rest.
OWN = ("file", "list", "describe", "help", "version")
DATA = "data"
Expectation = Callable[[ProgramResult], str | None]


@dataclass(frozen=True)
class Case:
    """One variant of one cell.

    Attributes
    ----------
    mpi, ranks, launcher_options
        How it is started; ``none`` is without MPI.
    preload : bool or str
        Whether the program runs under penstock-exec, or with which method.
    env : mapping
        Variables of the run.
    parameters : mapping
        Options of the measuring program, spelt with ``_``.
    """

    cell: str
    variant: str
    mpi: str = "none"
    ranks: int = 1
    preload: bool | str = False
    launcher_options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_default(self) -> bool:
        """Whether Penstock writes, by its default method: none is named."""
        if self.preload:
            return self.preload is True
        by_engine = self.parameters.get("route", "engine") == "engine"
        return by_engine and "method" not in self.parameters

    def as_plan(self) -> dict[str, Any]:
        """What results keep of it, so that a sweep can go on without what it was made from."""
        told = asdict(self)
        return {k: v for k, v in told.items() if k not in ("cell", "variant")} | {
            "launcher_options": list(self.launcher_options)
        }


def of_plan(measurement: Mapping[str, Any]) -> Case:
    """The case of a measurement in a results file's header."""
    given = dict(measurement["parameters"])
    given["launcher_options"] = tuple(given["launcher_options"])
    return Case(measurement["cell"], measurement["variant"], **given)


class Programs:
    """The measuring programs of a sweep, each found and asked once."""

    def __init__(
        self, template: str | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._template = template
        self._environ = environ
        self._by_mpi: dict[str, Program] = {}
        self._options: dict[Path, dict[str, dict[str, Any]]] = {}
        self._refusals: dict[tuple[Path | str, ...], str] = {}

    def of(self, mpi: str) -> Program:
        """The program for a value of ``mpi``."""
        if mpi not in self._by_mpi:
            launcher = programs.launcher(mpi, self._environ, self._template)
            self._by_mpi[mpi] = programs.program(launcher)
        return self._by_mpi[mpi]

    def options(self, program: Program) -> dict[str, dict[str, Any]]:
        """The options of a program by their names, spelt with ``_``, as it describes them."""
        if program.path not in self._options:
            described = program.ask("--describe").get("options", [])
            by_name = {str(one["name"]).lstrip("-").replace("-", "_"): one for one in described}
            self._options[program.path] = by_name
        return self._options[program.path]

    def why_refused(self, program: Program, parameters: Mapping[str, Any]) -> str:
        """What a program has against these values together; each set is asked about once."""
        asked: tuple[Path | str, ...] = (program.path, *programs.options(parameters))
        if asked not in self._refusals:
            self._refusals[asked] = program.why_refused(parameters)
        return self._refusals[asked]


def check(cases: Sequence[Case], known: Programs, where: str) -> None:
    """Refuse parameters that the programs do not have, and more ranks than can be started.

    Raises
    ------
    ArgumentError
        Naming the parameter and the nearest that there is.
    """
    for case in cases:
        program = known.of(case.mpi)
        if why := program.launcher.why_not(case.ranks):
            raise ArgumentError(f"{where}: {why}")
        names = [n for n in known.options(program) if n not in OWN]
        for name, value in case.parameters.items():
            if name not in names:
                _refuse(name, names, program, where)
            if why := _why_wrong(value, known.options(program)[name]):
                raise ArgumentError(f"{where}: {name} {why}, got {value!r}")
        if why := known.why_refused(program, case.parameters):
            raise ArgumentError(f"{where}: {why}")


def check_launcher(template: str | None, mpis: Sequence[str]) -> None:
    """Refuse ``--launcher`` where it starts nothing.

    Raises
    ------
    ArgumentError
        If none of these values of ``mpi`` has ranks.
    """
    if template is not None and {*mpis} == {"none"}:
        raise ArgumentError(
            "--launcher is for MPI ranks, and every mpi is none: leave it out, or give another "
            f"mpi, got {template}"
        )


def _refuse(name: str, names: list[str], program: Program, where: str) -> None:
    if name in OWN:
        raise ArgumentError(f"{where}: {name} is given by penstock bench itself: leave it out")
    near = _core.nearest(name, [*names, *RUN_KEYS])
    hint = f"did you mean {near}? " if near else ""
    raise ArgumentError(
        f"{where}: there is no parameter {name}; {hint}{program.path.name} --help lists them all, "
        f"and {', '.join(RUN_KEYS)} say how it is started"
    )


def _why_wrong(value: Any, option: Mapping[str, Any]) -> str:
    """What a parameter must be, if this value is not; the program itself checks the rest."""
    kind = option.get("kind")
    if kind == "flag":
        return "" if isinstance(value, bool) else "must be true or false"
    if kind == "list":
        good = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return "" if good else "must be a list of texts"
    if kind == "choice":
        choices = list(option.get("choices", []))
        near = _core.nearest(str(value), choices)
        hint = f" (did you mean {near}?)" if near else ""
        return "" if value in choices else f"must be one of {', '.join(choices)}{hint}"
    if kind in ("size", "count", "seconds"):
        return _why_no_number(value, kind)
    return "" if isinstance(value, str) else "must be text"


def _why_no_number(value: Any, kind: str) -> str:
    if kind == "size" and isinstance(value, str):
        try:
            _core.parse_size(value)
        except ArgumentError:
            return "must be a size such as 65536, '64KiB' or '1MB'"
        return ""
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if kind == "seconds":
        good = whole or (isinstance(value, float) and 0 <= value < math.inf)
        return "" if good else "must be seconds, 0 or more"
    return "" if whole else "must be a whole number, 0 or more"


RUN_KEYS = ("mpi", "ranks", "preload", "launcher_options", "env")


def measurement(case: Case, known: Programs, scratch: Path, timeout_s: float) -> Measurement:
    """The measurement of a case; its data lie in ``scratch``."""
    program = known.of(case.mpi)
    parameters = {"file": str(scratch / DATA), **case.parameters}
    before: list[str] = []
    by_engine = case.parameters.get("route", "engine") == "engine"
    expect: Expectation = _engine_wrote if by_engine else _anything
    if case.preload:
        method = ["--method", case.preload] if isinstance(case.preload, str) else []
        before = programs.preload(scratch, method)
        expect = programs.engine_wrote_all(scratch)
    command = program.command(parameters, case.ranks, before, case.launcher_options)
    return Measurement(
        case.cell,
        case.variant,
        command,
        {**program.launcher.env, **case.env},
        _all_ranks(case.ranks, expect),
        timeout_s,
        case.as_plan(),
    )


def _all_ranks(ranks: int, expect: Expectation) -> Expectation:
    """What is expected of so many ranks that found each other: else each is a job of its own."""

    def expected(ran: ProgramResult) -> str | None:
        if ran.result is not None and ran.result.ranks != ranks:
            return (
                f"it ran as {ran.result.ranks} of {ranks} ranks: the launcher is not of the "
                "program's MPI, or speaks another PMI (srun --mpi=list): give another --mpi or "
                "--launcher"
            )
        return expect(ran)

    return expected


def _anything(_: ProgramResult) -> str | None:
    return None


def _engine_wrote(ran: ProgramResult) -> str | None:
    """The engine itself must say that it wrote all."""
    result = ran.result
    if result is None or result.engine is None or result.parameters.get("op") == "read":
        return None
    if result.engine.passed_bytes or result.engine.bytes < result.bytes:
        return f"the engine wrote {result.engine.bytes} of {result.bytes} bytes"
    return None
