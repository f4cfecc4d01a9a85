"""A sweep described in a TOML file (docs/reference/bench-matrix.md): cells, variants, exclusions.

A cell is an entry of ``[[cell]]`` times every combination of ``[sweep]``; a variant is an entry of
``[[variant]]`` times every combination of ``[compare]``. What is not known is refused with the
nearest that is, before anything runs.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictInt,
    model_validator,
)

from penstock import _core, strict
from penstock.bench.cases import RUN_KEYS, Case
from penstock.bench.sample import RateKind
from penstock.bench.statistics import Stopping
from penstock.errors import ArgumentError, PenstockError
from penstock.launch.request import is_utf8

_UNITS_S = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_MOST_H = 500  # poll(2), by which a program's end is waited for, takes 596 h at most
_NAMES = ("cell", "variant")  # what an exclusion may name besides parameters


def seconds(value: Any) -> float:
    """Seconds of ``90``, ``"90s"``, ``"1.5min"`` or ``"2h"``."""
    number, unit_s = _number_and_unit(value)
    if not number > 0:  # nan, too
        raise ValueError(f"must be more than 0, got {value!r}")
    if number > _MOST_H * 3600.0 / unit_s:
        raise ValueError(f"must be at most '{_MOST_H}h', got {value!r}")
    return number * unit_s


def seconds_word(time_s: float) -> str:
    """As an option has it: ``seconds`` reads the same number back, for it has no exponent."""
    return f"{Decimal(repr(float(time_s))):f}".removesuffix(".0") + "s"


def _number_and_unit(value: Any) -> tuple[float, float]:
    """What a time says, and how many seconds its unit has."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value, 1.0
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", str(value))
    if found is None or (found[2] or "s") not in _UNITS_S:
        raise ValueError(f"must be a time such as 90, '90s', '5min' or '2h', got {value!r}")
    return float(found[1]), _UNITS_S[found[2] or "s"]


def _file_name(value: str) -> str:
    """Results go where a matrix's name says."""
    if "/" in value or "\0" in value:
        raise ValueError(f"must be a name that a file can have, without /, got {value!r}")
    return value


Seconds = Annotated[float, BeforeValidator(seconds)]
FileName = Annotated[str, AfterValidator(_file_name)]
Count = Annotated[StrictInt, Field(ge=1)]
Parameters = dict[str, Any]


class Stop(strict.Strict):
    """When a cell has been measured enough."""

    minimum: Count = 10
    maximum: Count = 30
    checks: tuple[Count, ...] = (10, 15, 20, 30)
    precision: float = Field(default=0.05, gt=0, strict=True)

    @model_validator(mode="after")
    def _ordered(self) -> Stop:
        if self.minimum > self.maximum:
            raise ValueError(
                f"minimum must be at most maximum ({self.maximum}), got {self.minimum}"
            )
        return self


class Matrix(strict.Strict):
    """The whole file."""

    name: FileName = ""
    seed: Annotated[StrictInt, Field(ge=0)] | None = None
    rate: RateKind = "application"
    budget: Seconds | None = None
    rounds: Count | None = None
    timeout: Seconds = 300.0
    settle: Seconds = 30.0
    stop: Stop = Stop()
    defaults: Parameters = Field(default_factory=dict)
    sweep: dict[str, list[Any]] = Field(default_factory=dict)
    compare: dict[str, list[Any]] = Field(default_factory=dict)
    cell: list[Parameters] = Field(default_factory=list)
    variant: list[Parameters] = Field(default_factory=list)
    exclude: list[Parameters] = Field(default_factory=list)

    @property
    def stopping(self) -> Stopping:
        """The rule: so many rounds, or by precision."""
        if self.rounds is not None:
            return fixed_rounds(self.rounds)
        return Stopping(self.stop.minimum, self.stop.maximum, self.stop.checks, self.stop.precision)


def fixed_rounds(rounds: int) -> Stopping:
    """So many samples of each, whatever their spread."""
    return Stopping(minimum=rounds, maximum=rounds, checks=(rounds,))


def load(path: Path) -> Matrix:
    """Read a matrix file.

    Raises
    ------
    ArgumentError
        If it cannot be read or is wrong; the message names the key, its value and the remedy.
    """
    values = strict.read(path)
    if not values:
        raise ArgumentError(
            f"{path} says nothing, and a matrix has [defaults], [sweep] or [[cell]], and [compare] "
            "or [[variant]]: docs/reference/bench-matrix.md shows one"
        )
    return parse(values, path)


def parse(values: Mapping[str, Any], path: Path) -> Matrix:
    """A matrix from the file's values; ``path`` is for messages and the name."""
    matrix = strict.validated(Matrix, values, str(path))
    if not matrix.name and not is_utf8(path.stem):
        raise ArgumentError(
            f"the name of {str(path)!a} must be UTF-8, for results are called by it: rename it, or "
            "give name = '...' in it"
        )
    return matrix.model_copy(update={"name": matrix.name or path.stem})


def expand(matrix: Matrix, where: str) -> list[Case]:
    """Every case of a matrix, in the file's order, without those that are excluded.

    Raises
    ------
    ArgumentError
        If a name is twice there, an axis is empty or belongs to cells and variants at once, an
        exclusion excludes nothing, or nothing is left.
    """
    _check_axes(matrix, where)
    cases: list[Case] = []
    seen: list[Parameters] = []
    for cell_name, cell in _entries(matrix.cell, matrix.sweep, "cell", where):
        for variant_name, variant in _entries(matrix.variant, matrix.compare, "variant", where):
            parameters = {**_spelt(matrix.defaults), **cell, **variant}
            cases.append(_case(cell_name or matrix.name, variant_name, parameters, where))
            seen.append(_excludable(cases[-1], parameters))
    _check_names(cases, where)
    left = _without_excluded(list(zip(cases, seen, strict=True)), matrix.exclude, where)
    if not left:
        raise ArgumentError(f"{where}: nothing is left to measure: remove an [[exclude]]")
    return left


def part(cases: Sequence[Case], number: int, of: int) -> list[Case]:
    """The cases of every ``of``-th cell, beginning with the cell ``number``."""
    cells = list(dict.fromkeys(case.cell for case in cases))
    mine = set(cells[number::of])
    return [case for case in cases if case.cell in mine]


def _spelt(parameters: Mapping[str, Any]) -> Parameters:
    return {name.replace("-", "_"): value for name, value in parameters.items()}


def _check_axes(matrix: Matrix, where: str) -> None:
    for table, axes in (("sweep", matrix.sweep), ("compare", matrix.compare)):
        for name, values in axes.items():
            if not values:
                raise ArgumentError(f"{where}: [{table}] {name} must have at least one value")
    _check_entries(matrix.cell, "cell", matrix.sweep, "sweep", where)
    _check_entries(matrix.variant, "variant", matrix.compare, "compare", where)
    of_variants = {*_spelt(matrix.compare), *(k for v in matrix.variant for k in _spelt(v))}
    for name in sorted(of_variants & {*_spelt(matrix.sweep)}):
        raise ArgumentError(
            f"{where}: {name} is in [sweep], which makes cells, and in [compare] or [[variant]], "
            "which are compared within a cell: leave it in one of them"
        )


def _check_entries(
    entries: Sequence[Parameters], kind: str, axes: Mapping[str, list[Any]], table: str, where: str
) -> None:
    """An entry is measured with each value of an axis, so that its own would be none."""
    for entry in map(_spelt, entries):
        for name in sorted(entry.keys() & _spelt(axes).keys()):
            raise ArgumentError(
                f"{where}: {name} is in [[{kind}]] ({entry[name]!r}) and in [{table}], with every "
                "value of which each is measured: leave it in one of them"
            )


def _entries(
    entries: Sequence[Parameters], axes: Mapping[str, list[Any]], kind: str, where: str
) -> Iterator[tuple[str, Parameters]]:
    """The names and parameters of all entries times all combinations of the axes."""
    names = [name.replace("-", "_") for name in axes]
    for entry in entries or [{}]:
        given = _spelt(entry)
        own = given.pop("name", None)
        if own is not None and not isinstance(own, str):
            raise ArgumentError(f"{where}: name of a [[{kind}]] must be text, got {own!r}")
        for values in itertools.product(*axes.values()):
            chosen = dict(zip(names, values, strict=True))
            shown = [f"{name}={_shown(value)}" for name, value in chosen.items()]
            parts = [own or ",".join(f"{k}={_shown(v)}" for k, v in given.items()), *shown]
            name = ",".join(p for p in parts if p)
            yield name or ("" if kind == "cell" else "default"), {**given, **chosen}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "+".join(_shown(one) for one in value)
    return str(value)


def _case(cell: str, variant: str, parameters: Parameters, where: str) -> Case:
    rest = dict(parameters)
    label = f"{where}: {variant} of {cell}"
    mpi = rest.pop("mpi", "none")
    if not isinstance(mpi, str):
        raise ArgumentError(f"{label}: mpi must be text such as 'mpich' or 'none', got {mpi!r}")
    ranks = rest.pop("ranks", 1)
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise ArgumentError(f"{label}: ranks must be a whole number, at least 1, got {ranks!r}")
    if mpi == "none" and ranks != 1:
        raise ArgumentError(
            f"{label}: ranks must be 1 without MPI, got {ranks}: use threads, or set mpi"
        )
    preload = _preload(rest.pop("preload", False), label)
    if preload and mpi == "none":
        raise ArgumentError(f"{label}: preload needs MPI: set mpi, or route = 'engine'")
    if preload and rest.get("route") != "mpi":
        raise ArgumentError(
            f"{label}: preload takes over MPI-IO, so route must be 'mpi', got "
            f"{rest.get('route', 'engine')!r}"
        )
    options = _words(rest.pop("launcher_options", []), label)
    env = _environment(rest.pop("env", {}), label)
    if "total" in rest:
        rest["bufsize"] = _share(rest, ranks, mpi, label)
    return Case(cell, variant, mpi, ranks, preload, options, env, rest)


def _preload(value: Any, label: str) -> bool | str:
    if not isinstance(value, bool | str):
        raise ArgumentError(f"{label}: preload must be true, false or a method, got {value!r}")
    if isinstance(value, bool):
        return value
    try:
        _core.parse_method(value)
    except ArgumentError as error:
        raise ArgumentError(f"{label}: preload: {str(error).removeprefix('method: ')}") from None
    except PenstockError:
        return value  # what this machine lacks, the one that runs it may have
    return value


def _share(rest: Parameters, ranks: int, mpi: str, label: str) -> int:
    """Of the bytes of all workers those of one; takes ``total`` away."""
    total = rest.pop("total")
    if "bufsize" in rest:
        raise ArgumentError(
            f"{label}: give total (bytes of all workers, {total!r}) or bufsize (of one, "
            f"{rest['bufsize']!r}), not both"
        )
    threads = rest.get("threads", 2 if mpi == "none" else 1)
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ArgumentError(f"{label}: threads must be at least 1 beside total, got {threads!r}")
    try:
        all_bytes = _core.parse_size(total) if isinstance(total, str) else int(total)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{label}: total must be a size such as '16MiB', got {total!r}"
        ) from error
    workers = ranks * threads
    if all_bytes < workers or all_bytes % workers:
        raise ArgumentError(
            f"{label}: total must be a multiple of the {workers} workers (ranks x threads) that "
            f"share it, got {total!r}: {all_bytes - all_bytes % workers or workers} bytes would do"
        )
    return all_bytes // workers


def _words(value: Any, label: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ArgumentError(
            f"{label}: launcher_options must be a list of words such as ['--mca', 'io', "
            f"'romio321'], got {value!r}"
        )
    return tuple(value)


def _environment(value: Any, label: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ArgumentError(f"{label}: env must be a table of variables, got {value!r}")
    return {name: str(one) for name, one in value.items()}


def _check_names(cases: Sequence[Case], where: str) -> None:
    seen = set()
    for case in cases:
        if (case.cell, case.variant) in seen:
            raise ArgumentError(
                f"{where}: {case.variant} of {case.cell} is there twice: give each [[cell]] and "
                "[[variant]] a name of its own"
            )
        seen.add((case.cell, case.variant))


def _excludable(case: Case, given: Parameters) -> Parameters:
    """What an exclusion may name of a case; ``total`` too, which the case has no longer."""
    total = {name: given[name] for name in ("total",) if name in given}
    run = {name: getattr(case, name) for name in (*_NAMES, *RUN_KEYS)}
    return {**case.parameters, **total, **run}


def _without_excluded(
    cases: Sequence[tuple[Case, Parameters]], exclusions: Sequence[Parameters], where: str
) -> list[Case]:
    left = list(cases)
    known = {name for _, seen in cases for name in seen}
    for exclusion in exclusions:
        rule = _spelt(exclusion)
        if unknown := sorted({*rule} - known):
            near = _core.nearest(unknown[0], sorted(known))
            hint = f"did you mean {near}?" if near else "no case has it"
            raise ArgumentError(f"{where}: [[exclude]] {unknown[0]} is not known; {hint}")
        if not any(_matches(seen, rule) for _, seen in cases):
            raise ArgumentError(f"{where}: [[exclude]] {exclusion} matches nothing: remove it")
        left = [(case, seen) for case, seen in left if not _matches(seen, rule)]
    return [case for case, _ in left]


def _matches(seen: Parameters, rule: Mapping[str, Any]) -> bool:
    return bool(rule) and all(_fits(seen.get(k), v, k) for k, v in rule.items())


def _fits(value: Any, wanted: Any, key: str) -> bool:
    if isinstance(value, list | tuple):
        return list(value) == wanted or (isinstance(wanted, list) and list(value) in wanted)
    if isinstance(wanted, list):
        return any(_fits(value, one, key) for one in wanted)
    if key in _NAMES:
        return fnmatch.fnmatchcase(str(value), str(wanted))
    return bool(value == wanted)
