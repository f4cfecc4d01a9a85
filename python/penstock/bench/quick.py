"""The quick look of ``penstock bench DIR``: which cells, ways and sizes fit into a minute here.

Candidates come from what the measuring programs list, so a method that the engine gains takes part
without a change here. Each is tried once with few bytes: one that cannot run is left out, and said;
the times say how many bytes, ways and cells the budget allows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock import _core
from penstock.bench import cases as cases_
from penstock.bench.cases import Case, Programs
from penstock.bench.execute import (
    MARK,
    ProgramResult,
    end_leftovers,
    execute,
    told_of_leftovers,
)
from penstock.bench.interruptions import interruptions_wait
from penstock.bench.matrix import seconds_word
from penstock.bench.programs import THREADS, present
from penstock.bench.session import environment
from penstock.bench.settle import Scratch
from penstock.bench.statistics import Stopping
from penstock.bench.ways import Way, in_turn, labelled, mpi_ways, thread_ways
from penstock.errors import ArgumentError, LaunchError
from penstock.words import number_of

BUDGET_S = 50.0  # of pilot and samples; starting and telling take the rest of a minute
TIMEOUT_S = 30.0
SETTLE_S = 2.0
STOPPING = Stopping(minimum=6, maximum=10, checks=(6, 8, 10))
_CELLS = {"contiguous": "contiguous", "interleaved-4KiB": "interleaved:4KiB"}
_WAYS = 6  # that a person reads at a glance; fewer where samples are slow
_MOST_WORKERS = 4
_PLANNED_ROUNDS = 8  # at least 6 are needed for an interval, and noise takes its time
_PILOT_S = 7.0
_WARM_UP_S = 0.2  # what making memory warm may take of a sample; else it is left as it is
_SLOW_S = 2.0  # a first try that takes longer is not followed by a larger one
_PILOT_BYTES = 4 * 2**20
_LARGE_PILOT_BYTES = 16 * 2**20
_LEAST_OF_BYTES = 0.1  # of the larger sample's time
_LEAST_BYTES, _MOST_BYTES = 2**20, 256 * 2**20
_RECORD = "quick_look"  # in the plan of its results
_OF_FREE_SPACE = 20  # a sample takes at most this part of it


@dataclass(frozen=True)
class Wish:
    """What a person said about a quick look; None leaves it to the machine."""

    directory: Path
    budget_s: float = BUDGET_S
    mpi: tuple[str, ...] = ()
    ranks: int | None = None
    threads: int | None = None
    launcher: str | None = None

    @property
    def for_ranks(self) -> tuple[str, object] | None:
        """The option that only MPI ranks obey, and its value; None where none was given."""
        given = {"--ranks": self.ranks, "--launcher": self.launcher}
        return next(((name, said) for name, said in given.items() if said is not None), None)


@dataclass(frozen=True)
class Pilot:
    """Where ways are tried, and the mark of the processes that do (`execute.MARK`).

    Both are those of the session that follows: the next run of a quick look that was killed while
    it tried takes over its directory, and ends its processes.
    """

    scratch: Path
    mark: str


@dataclass(frozen=True)
class Choice:
    """What a quick look measures, and what a person should know about the choice."""

    cases: list[Case]
    notes: list[str] = field(default_factory=list)
    budget_s: float = BUDGET_S
    failed: Mapping[str, str] = field(default_factory=dict)
    """Of the default method: ways that failed when they were tried, and why."""


@dataclass(frozen=True)
class Tried:
    """A way and how long one sample of few bytes took."""

    way: Way
    wall_s: float


def choose(wish: Wish, known: Programs, pilot: Pilot) -> Choice:
    """Choose, by trying.

    Raises
    ------
    ArgumentError
        If another penstock bench uses the pilot's directory, or an option is for MPI ranks and
        there is no MPI.
    LaunchError
        If no way can be measured, no measuring program is built, or not the one that was asked for.
    WriteError
        If nothing can be written into the directory.
    """
    notes: list[str] = []
    workers = wish.threads or wish.ranks or min(len(os.sched_getaffinity(0)), _MOST_WORKERS)
    mpis = list(dict.fromkeys(_mpis(wish)))
    ways = in_turn([labelled(_ways_of(m, workers, wish, known, notes), m, mpis) for m in mpis])
    if not ways:
        why = "; ".join(notes) or "there is no measuring program: make build"
        raise LaunchError(why, exit_code=1)
    scratch = Scratch(pilot.scratch)
    try:
        with interruptions_wait():
            scratch.make()
        if ended := end_leftovers(pilot.mark):
            notes.append(told_of_leftovers(ended))
        return _by_pilot(wish, ways, _Attempt(workers, known, scratch, pilot.mark), notes)
    finally:
        scratch.remove()


def _mpis(wish: Wish) -> list[str]:
    """Threads, and the MPI library that the plain mpiexec starts."""
    cases_.check_launcher(wish.launcher, wish.mpi)
    if wish.mpi:
        return list(wish.mpi)
    found = [one.flavour for one in present(os.environ)]
    if not found and wish.for_ranks is not None:
        option, said = wish.for_ranks
        raise ArgumentError(
            f"{option} is for MPI ranks, and none can be started (no mpiexec of a known MPI is in "
            f"PATH): give --mpi mpich, openmpi, abi or the path of an mpiexec, got {said}"
        )
    return [*found[:1], "none"]


def _ways_of(mpi: str, workers: int, wish: Wish, known: Programs, notes: list[str]) -> list[Way]:
    try:
        program = known.of(mpi)
        listed = program.ask("--list")
    except LaunchError as error:
        if wish.mpi or (wish.for_ranks and mpi != "none"):  # asked for
            raise
        notes.append(f"without {mpi}: {error}")
        return []
    if program.launcher.flavour == THREADS:
        return thread_ways(workers, listed)
    return mpi_ways(mpi, workers, listed)


@dataclass(frozen=True)
class _Attempt:
    """Runs a way once, in an empty directory."""

    workers: int
    known: Programs
    scratch: Scratch
    mark: str

    def __call__(self, way: Way, total_bytes: int) -> ProgramResult:
        self.scratch.empty()
        case = way.case("pilot", _CELLS["contiguous"], total_bytes, self.workers)
        made = cases_.measurement(case, self.known, self.scratch.path, TIMEOUT_S)
        ran = execute(made.command, {**environment(made.env), MARK: self.mark}, TIMEOUT_S)
        return replace(ran, failed=ran.failed or made.expect(ran))


def _by_pilot(wish: Wish, ways: Sequence[Way], attempt: _Attempt, notes: list[str]) -> Choice:
    begin_s = time.monotonic()
    tried, failed = _each_once(ways, attempt)
    notes += [f"without {way.name}: {why}" for way, why in failed]
    if not tried:
        raise LaunchError(f"no way to write could be measured: {'; '.join(notes)}", exit_code=1)
    first = tried[0]
    per_byte_s = first.wall_s / _PILOT_BYTES  # of a disk so slow that nothing else counts
    if first.wall_s < _SLOW_S:
        per_byte_s = _per_byte_s(first, attempt, notes)
        tried = _warm_if_cheap(tried, attempt)
    for_samples_s = _without_pilot_s(wish.budget_s, time.monotonic() - begin_s)
    chosen, cells, total = fit(tried, per_byte_s, for_samples_s, _room(wish.directory))
    told = {one.way.name for one in chosen} | {way.name for way, _ in failed}
    if left_out := [way.name for way in ways if way.name not in told]:
        notes.append(f"not measured, to stay within the time: {'; '.join(left_out)}")
    notes.append(
        f"{_core.human_size(total)} per sample by {number_of(attempt.workers, 'worker')}, "
        f"{number_of(len(chosen), 'way')} in {number_of(len(cells), 'cell')}; "
        f"{_about_memory(chosen[0].way)}"
    )
    made = [
        one.way.case(cell, _CELLS[cell], total, attempt.workers) for cell in cells for one in chosen
    ]
    return Choice(made, notes, for_samples_s, {w.name: why for w, why in failed if w.is_default})


def _each_once(
    ways: Sequence[Way], attempt: Callable[[Way, int], ProgramResult]
) -> tuple[list[Tried], list[tuple[Way, str]]]:
    """Few bytes by each, until there are enough ways or the pilot's time is over.

    Beside those that went well the ones that failed, and why.
    """
    begin_s = time.monotonic()
    tried: list[Tried] = []
    failed: list[tuple[Way, str]] = []
    for way in ways:
        if tried and (len(tried) >= _WAYS or time.monotonic() - begin_s > _PILOT_S):
            break
        ran = attempt(way, _PILOT_BYTES)
        if ran.failed:
            failed.append((way, ran.failed))
        else:
            tried.append(Tried(way, ran.wall_s))
    return tried, failed


def _per_byte_s(
    first: Tried, attempt: Callable[[Way, int], ProgramResult], notes: list[str]
) -> float:
    """What a further byte takes, by a larger sample; infinite where that fails.

    A first try that was slow by chance makes no byte free: at least a tenth of the larger sample's
    time is its bytes'.
    """
    large = attempt(first.way, _LARGE_PILOT_BYTES)
    if large.failed:
        size = _core.human_size(_LARGE_PILOT_BYTES)
        notes.append(f"samples stay small, for one of {size} failed: {large.failed}")
        return math.inf
    further_s = (large.wall_s - first.wall_s) / (_LARGE_PILOT_BYTES - _PILOT_BYTES)
    return max(further_s, _LEAST_OF_BYTES * large.wall_s / _LARGE_PILOT_BYTES)


def _warm_if_cheap(tried: list[Tried], attempt: Callable[[Way, int], ProgramResult]) -> list[Tried]:
    warm = attempt(_in_regime(tried[0].way, "warm"), _PILOT_BYTES)
    extra_s = max(warm.wall_s - tried[0].wall_s, 0.0)
    if warm.failed or extra_s >= _WARM_UP_S:
        return tried
    return [Tried(_in_regime(one.way, "warm"), one.wall_s + extra_s) for one in tried]


def _in_regime(way: Way, regime: str) -> Way:
    return replace(way, parameters={**way.parameters, "regime": regime})


def _about_memory(way: Way) -> str:
    if way.parameters.get("regime") == "warm":
        return "memory is made warm before each"
    return "memory is left as it is: making it warm would take too long here"


def _room(directory: Path) -> int:
    volume = os.statvfs(directory)
    return volume.f_bavail * volume.f_frsize // _OF_FREE_SPACE


def fit(
    tried: Sequence[Tried], per_byte_s: float, budget_s: float, room_bytes: int
) -> tuple[list[Tried], list[str], int]:
    """How many ways and cells, and how many bytes, the budget allows.

    Parameters
    ----------
    tried : sequence of Tried
        The candidates, the most wanted first, with what a small sample takes.
    per_byte_s : float
        What a further byte takes, written and checked; infinite where no more can be.
    budget_s : float
        For all samples.
    room_bytes : int
        The most that a sample may take of the disk.

    Returns
    -------
    ways, cells, bytes
        Fewer cells before fewer ways; at least one of each.
    """
    for n_cells, n_ways in _plans(len(tried)):
        ways = list(tried[:n_ways])
        mean_s = sum(one.wall_s for one in ways) / n_ways
        samples = n_cells * n_ways * (1 + _PLANNED_ROUNDS) + _PLANNED_ROUNDS  # warm-ups, canaries
        spare_s = budget_s - samples * mean_s
        if spare_s >= 0 or (n_cells, n_ways) == (1, 1):
            more = max(spare_s, 0.0) / samples / per_byte_s
            total = min(_PILOT_BYTES + int(more), _MOST_BYTES, room_bytes)
            return ways, list(_CELLS)[:n_cells], _rounded(total)
    raise AssertionError("one way in one cell is always a plan")


def _plans(n_ways: int) -> list[tuple[int, int]]:
    most = min(n_ways, _WAYS)
    few = [(cells, ways) for ways in range(most, 0, -1) for cells in (len(_CELLS), 1)]
    return [(c, w) for c, w in few if w >= min(3, most) or c == 1]


def _rounded(total: int) -> int:
    """Down to a power of two, so that the same machine gets the same sizes."""
    bounded = max(total, _LEAST_BYTES)
    return 1 << (bounded.bit_length() - 1)


# ---- going on with what was measured before ----


def record(wish: Wish, failed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the results of a quick look keep in their plan of what a person said, and of its pilot.

    ``failed`` are the ways of the default method that could not be measured, and why.
    """
    said = {"ranks": wish.ranks, "threads": wish.threads, "launcher": wish.launcher}
    budget_s = None if wish.budget_s == BUDGET_S else wish.budget_s
    tried = {"failed": dict(failed)} if failed else {}
    return {_RECORD: {"mpi": list(wish.mpi), **said, "budget_s": budget_s, **tried}}


def default_failed(plan: Mapping[str, Any]) -> Mapping[str, str]:
    """The ways of the default method that a quick look could not measure, and why."""
    failed: Mapping[str, str] = plan.get(_RECORD, {}).get("failed", {})
    return failed


def going_on(wish: Wish, plan: Mapping[str, Any]) -> dict[str, Any]:
    """As `record`, of one that goes on: it has the ways of the first run, and its own budget."""
    own = record(wish)[_RECORD]
    return {_RECORD: {**own, **plan.get(_RECORD, {}), "budget_s": own["budget_s"]}}


def as_begun(begun: Mapping[str, Any], latest: Mapping[str, Any]) -> dict[str, Any]:
    """As `record`, of one that went on: by the budget of its beginning its ways were chosen."""
    budget_s = begun.get(_RECORD, {}).get("budget_s")
    return {_RECORD: {**latest.get(_RECORD, {}), "budget_s": budget_s}}


def words(plan: Mapping[str, Any]) -> list[str]:
    """The options that ask for such a quick look again; earlier versions kept fewer, or none."""
    said = plan.get(_RECORD, {})
    found = [word for mpi in said.get("mpi", []) for word in ("--mpi", mpi)]
    for name in ("ranks", "threads", "launcher"):
        if said.get(name) is not None:
            found += [f"--{name}", str(said[name])]
    if said.get("budget_s") is not None:
        found += ["--budget", seconds_word(said["budget_s"])]
    return found + Stopping.of_plan(plan).words()


def left_s(wish: Wish, plan: Mapping[str, Any]) -> float:
    """Of the budget for all samples of a quick look that goes on: its pilot has had a part."""
    first_s = plan.get(_RECORD, {}).get("budget_s") or BUDGET_S
    pilot_s = max(0.0, first_s - (plan.get("budget_s") or first_s))
    return _without_pilot_s(wish.budget_s, pilot_s)


def _without_pilot_s(budget_s: float, pilot_s: float) -> float:
    return max(budget_s - pilot_s, budget_s / 2)


def is_quick(plan: Mapping[str, Any]) -> bool:
    """Whether a results file's plan is a quick look's; earlier versions kept its rule only."""
    return _RECORD in plan or Stopping.of_plan(plan) == STOPPING


def difference(wish: Wish, plan: Mapping[str, Any], cases: Sequence[Case]) -> str:
    """What was said this time that an earlier quick look is not of; empty if it can go on.

    Parameters
    ----------
    wish : Wish
        This time's. What it does not say fits any.
    plan, cases
        Of the results.
    """
    return _other_mpi(wish, plan, cases) or _other_workers(wish, cases)


def _other_mpi(wish: Wish, plan: Mapping[str, Any], cases: Sequence[Case]) -> str:
    said = plan.get(_RECORD, {}).get("mpi", [])
    used = list(dict.fromkeys(case.mpi for case in cases))
    if not wish.mpi or {*wish.mpi} in ({*said}, {*used}):
        return ""
    return f"its ways are of {', '.join(used)}, not {', '.join(wish.mpi)} (--mpi)"


def _other_workers(wish: Wish, cases: Sequence[Case]) -> str:
    """Ranks and threads are as many: the ways of both are compared."""
    option = "--ranks" if wish.threads is None else "--threads"
    said = wish.threads or wish.ranks
    used = {_workers(case) for case in cases}
    if said is None or used == {said}:
        return ""
    return f"it has {', '.join(map(str, sorted(used)))} workers, not {said} ({option})"


def _workers(case: Case) -> int:
    return case.ranks if case.mpi != "none" else int(case.parameters.get("threads", 1))
