"""From a paper's name to a sweep that can be run: what can be measured here, and what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.bench import sweep as sweeps
from penstock.bench.cases import Case, Programs
from penstock.bench.store import Results
from penstock.bench.sweep import Request, Sweep
from penstock.errors import ArgumentError, LaunchError
from penstock.reproduce import PAPERS, SIZES, experiment
from penstock.reproduce.btio import BtioPrograms
from penstock.reproduce.experiment import Experiment

_PREFIX = "reproduce"


@dataclass(frozen=True)
class Planned:
    """A paper in a size, the sweep that measures it, and why some of it is left out."""

    paper: str
    size: str
    experiment: Experiment
    sweep: Sweep
    left_out: tuple[str, ...]


def prepare(paper: str, size: str, request: Request) -> Planned:
    """Everything that must be known before the first sample.

    Raises
    ------
    ArgumentError
        If there is no such paper or size, or the directory is wrong.
    LaunchError
        If nothing of it can be started here.
    """
    path = experiment.path_of(paper)
    if size not in SIZES:
        raise ArgumentError(f"--size must be {' or '.join(SIZES)}, got {size}")
    found = experiment.load(paper)
    matrix = found.sweep(size, path)
    matrix = matrix.model_copy(update={"name": f"{_PREFIX} {paper} {size}"})
    kind = BtioPrograms if found.program == "btio" else Programs
    programs = kind(request.launcher)
    cases, left_out = startable(found.cases(size, path), programs)
    if not cases:
        raise LaunchError(f"nothing of {paper} can be measured here: {'; '.join(left_out)}")
    sweep = sweeps.of_matrix(request, matrix, cases, str(path), programs)
    return Planned(paper, size, found, sweep, tuple(left_out))


def startable(cases: Sequence[Case], programs: Programs) -> tuple[list[Case], list[str]]:
    """The cases whose program and launcher are here, and why the others' are not."""
    why: dict[str, str] = {}
    for mpi in dict.fromkeys(case.mpi for case in cases):
        try:
            programs.of(mpi)
        except LaunchError as error:
            why[mpi] = str(error)
    left_out = [
        f"{sum(case.mpi == mpi for case in cases)} of {len(cases)} measurements: {text}"
        for mpi, text in why.items()
    ]
    return [case for case in cases if case.mpi not in why], left_out


def default_out(paper: str, size: str) -> Path:
    """Where results go if nobody says it."""
    return Path(f"penstock-reproduce-{paper}-{size}")


def of_results(results: Results) -> tuple[str, str]:
    """The paper and the size that results are of.

    Raises
    ------
    ArgumentError
        If they are of something else.
    """
    where = ", ".join(map(str, results.paths))
    if not results.headers:
        raise ArgumentError(f"{where} holds no results: the run was stopped at its start")
    words = results.headers[0].name.split()
    if len(words) != 3 or words[0] != _PREFIX or words[1] not in PAPERS or words[2] not in SIZES:
        raise ArgumentError(
            f"{where} holds {results.headers[0].name!r}, and not what penstock reproduce measured"
        )
    return words[1], words[2]
