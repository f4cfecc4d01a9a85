"""A sweep in parts: which there are, whether they are of one sweep, and what of it is missing.

A part measures the cells I, I + N, I + 2 N, .. into ``samples.I.jsonl``, whose header holds I and
N. A sweep that was submitted is in parts before the first begins: ``submit.json`` says so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench import matrix as matrices
from penstock.bench.blocks import Plan, complete
from penstock.bench.cases import Case
from penstock.bench.sample import Header, RateKind, Sample
from penstock.bench.session import SCRATCH, other_plan, plan_difference
from penstock.bench.statistics import Stopping
from penstock.bench.store import NAME, Results, first_header, read_into
from penstock.bench.submit import listed, submitted_before
from penstock.errors import ArgumentError
from penstock.paths import real

_NAMED = re.compile(r"samples\.([0-9]+)\.jsonl")


@dataclass(frozen=True)
class Division:
    """How results are divided.

    ``of`` is the number of parts, None where an earlier version did not write it down; ``headers``
    are those of the parts that have begun, by their numbers.
    """

    of: int | None
    headers: dict[int, Header] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """The sweep that parts are to be of. Any seed fits where ``seed`` is None."""

    cases: Sequence[Case]
    stopping: Stopping
    rate: RateKind
    directory: Path
    seed: int | None = None


@dataclass(frozen=True)
class Gathered:
    """What the parts hold together, and what a person should know of those that lack something.

    ``results`` are None as long as no part has begun.
    """

    out: Path
    results: Results | None
    notes: tuple[str, ...]


def file_name(part: tuple[int, int] | None) -> str:
    """Where in the results directory a part stores its samples; None is a whole sweep."""
    return NAME if part is None else f"samples.{part[0]}.jsonl"


def division(out: Path) -> Division | None:
    """How the results in ``out`` are divided; None where they are not.

    Raises
    ------
    ArgumentError
        If there are parts of more than one division.
    """
    state = submitted_before(out)
    headers = {number: first_header(path) for number, path in _files(out).items()}
    if state is None and not headers:
        return None
    begun = {number: one for number, one in headers.items() if one is not None}
    counts = {number: _of(one) for number, one in begun.items()}
    known = {count for count in counts.values() if count is not None}
    known |= {state.parts} if state else set()
    if len(known) > 1:
        told = ", ".join(f"{file_name((i, 0))} of {n}" for i, n in sorted(counts.items()) if n)
        submitted = f", submitted in {state.parts}" if state else ""
        raise ArgumentError(
            f"{out} holds parts of several divisions ({told}{submitted}), so a cell may be there "
            "twice: move those of one away"
        )
    return Division(min(known, default=None), begun, state.jobs if state else ())


def _files(out: Path) -> dict[int, Path]:
    """The files of parts by number."""
    named = ((_NAMED.fullmatch(path.name), path) for path in sorted(out.glob("samples.*.jsonl")))
    return {int(match[1]): path for match, path in named if match}


def _of(header: Header) -> int | None:
    match header.plan.get("part"):
        case [int(), int(of)]:
            return of
    return None


def check(out: Path, part: tuple[int, int]) -> None:
    """Refuse a part that would measure what the results hold already, or hold otherwise.

    Raises
    ------
    ArgumentError
        If a whole sweep is there, or one in another number of parts.
    """
    _refuse_whole(out)
    there = division(out)
    if there is not None and there.of not in (None, part[1]):
        how = "submitted" if there.jobs else "begun"
        raise ArgumentError(
            f"{out} was {how} in {there.of} parts, and each knows its own cells: say {there.of} "
            f"again, got {part[1]}, or give another --out"
        )


def _refuse_whole(out: Path) -> None:
    if first_header(out / NAME) is not None:
        raise ArgumentError(
            f"{out} holds {NAME}, of a sweep that was not measured in parts: move it out of there, "
            "or give another --out"
        )


def gather(out: Path, there: Division, wanted: Wanted) -> Gathered:
    """The results of all parts that have begun.

    Raises
    ------
    ArgumentError
        If a part is of another plan, or the directory holds more than parts.
    """
    _refuse_whole(out)
    if there.of is None:
        raise ArgumentError(
            f"the parts in {out} do not say of how many they are (an earlier penstock wrote them): "
            f"read them with penstock report {shlex.quote(str(out))}, or measure anew with another "
            "--out"
        )
    for number, header in there.headers.items():
        if why := _difference(header, wanted, number, there.of):
            raise other_plan(out / file_name((number, there.of)), why)
    if not there.headers:
        return Gathered(out, None, (_about_none(out, there),))
    results = Results()
    for number in sorted(there.headers):  # and no other file, such as one that was moved away
        results.paths.append(out / file_name((number, there.of)))
        read_into(results, results.paths[-1])
    return Gathered(out, results, tuple(_notes(out, there, wanted, results.samples)))


def _difference(header: Header, wanted: Wanted, number: int, of: int) -> str:
    """What a part and the sweep do not share. How ranks are started may differ: a job has srun."""
    if wanted.seed is not None and header.seed != wanted.seed:
        return f"its seed is {header.seed}, not {wanted.seed}"
    mine = matrices.part(wanted.cases, number, of)
    now = [_stripped({**vars(case), "parameters": case.as_plan()}) for case in mine]
    before = header.plan.get("measurements", [])
    told = {"rate": header.plan.get("rate"), "measurements": [_stripped(one) for one in before]}
    if why := plan_difference(told, {"rate": wanted.rate, "measurements": now}):
        return why
    prefix = str(real(wanted.directory) / SCRATCH)
    if all(any(word.startswith(prefix) for word in one["command"]) for one in before):
        return ""
    return f"it did not measure {wanted.directory}"


def _stripped(measurement: dict[str, Any]) -> dict[str, Any]:
    return {key: measurement[key] for key in ("cell", "variant", "parameters")}


def _about_none(out: Path, there: Division) -> str:
    said = f"no part of {out} has begun"
    if not there.jobs:
        return said
    return f"{said}: squeue -j {there.jobs[-1]} tells whether job {there.jobs[-1]} waits"


def _notes(out: Path, there: Division, wanted: Wanted, samples: Sequence[Sample]) -> list[str]:
    assert there.of is not None  # noqa: S101 - gather() has seen to it
    n_cells = len({case.cell for case in wanted.cases})
    with_cells = range(min(there.of, n_cells))
    missing = [number for number in with_cells if number not in there.headers]
    unfinished = [
        number
        for number, header in there.headers.items()
        if not _is_complete(matrices.part(wanted.cases, number, there.of), header, wanted, samples)
    ]
    notes = [f"{listed(list(there.headers))} of {there.of} in {out}"]
    notes += [f"not begun: {listed(missing)}"] if missing else []
    notes += [f"not complete: {listed(unfinished)}"] if unfinished else []
    if left := [*missing, *unfinished]:
        of = there.of
        notes.append(f"to go on: the same command with --submit {of}, or --part {left[0]}/{of}")
    return notes


def _is_complete(
    cases: Sequence[Case], header: Header, wanted: Wanted, samples: Sequence[Sample]
) -> bool:
    pairs = tuple((case.cell, case.variant) for case in cases)
    plan = Plan(pairs, wanted.stopping, header.seed, wanted.rate)
    return complete(plan, [s for s in samples if (s.cell, s.variant) in set(pairs)])
