"""A sweep from request to results: what is to be measured, where results go, and the session."""

from __future__ import annotations

import functools
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock import native
from penstock.bench import cases as cases_
from penstock.bench import matrix as matrices
from penstock.bench import parts, provenance, quick
from penstock.bench.blocks import Keep, Pair, Plan
from penstock.bench.cases import Case, Programs
from penstock.bench.estimate import remaining_s
from penstock.bench.execute import MARK, end_leftovers, execute
from penstock.bench.matrix import Matrix
from penstock.bench.parts import Gathered
from penstock.bench.sample import Provenance, RateKind, Sample
from penstock.bench.session import (
    SCRATCH,
    Ending,
    Measurement,
    Observer,
    Session,
    difference,
    environment,
    other_plan,
    process_mark,
)
from penstock.bench.settle import Scratch, Settle
from penstock.bench.statistics import Stopping
from penstock.bench.store import Store, load, mark_of, require_place
from penstock.doctor.storage import require_directory
from penstock.errors import ArgumentError
from penstock.paths import real
from penstock.plain import plain

_SEEDS = 2**31


@dataclass(frozen=True)
class Request:
    """What a person asked for. None leaves a choice to the matrix, or to the quick look.

    Attributes
    ----------
    directory : Path
        What is measured: files are written into a scratch directory in it.
    matrix : Path or None
        The sweep; None is the quick look.
    out : Path or None
        The results directory.
    part : (int, int) or None
        Measure the cells I, I + N, I + 2 N, .. only, into samples.I.jsonl.
    """

    directory: Path = Path()
    matrix: Path | None = None
    out: Path | None = None
    budget_s: float | None = None
    seed: int | None = None
    rounds: int | None = None
    mpi: tuple[str, ...] = ()
    ranks: int | None = None
    threads: int | None = None
    launcher: str | None = None
    keep: bool = False
    part: tuple[int, int] | None = None


@dataclass(frozen=True)
class Sweep:
    """A request that can be run: its cases are known to be right."""

    request: Request
    name: str
    out: Path
    cases: tuple[Case, ...]
    programs: Programs
    stopping: Stopping
    seed: int
    rate: RateKind = "application"
    budget_s: float | None = None
    timeout_s: float = 300.0
    settle_s: float = 30.0
    notes: tuple[str, ...] = ()
    elsewhere: Mapping[str, Path] = field(default_factory=dict)
    """Cells whose data lie in another directory than the request's."""
    keep: Keep | None = None
    """Which pairs the blocks after the warm-ups hold; then only whole blocks are begun."""
    keeps: Mapping[str, Any] = field(default_factory=dict)
    """What else the plan of the results keeps, as it was at the first sample."""

    @property
    def samples_file(self) -> Path:
        """Where this sweep, or this part of it, stores its samples."""
        return self.out / parts.file_name(self.request.part)

    @property
    def scratch(self) -> Path:
        """The sweep's own directory in the one that is measured."""
        return self.scratch_in(self.request.directory)

    def scratch_in(self, directory: Path) -> Path:
        """The sweep's own directory in one that is measured."""
        return real(directory) / f"{SCRATCH}{mark_of(self.samples_file)[:8]}"

    @property
    def mark(self) -> str:
        """What the sweep's processes carry in their environment, those of a pilot too."""
        return process_mark(self.samples_file, self.scratch)

    @property
    def plan(self) -> Plan:
        """What decides which sample is next."""
        pairs = tuple((case.cell, case.variant) for case in self.cases)
        return Plan(pairs, self.stopping, self.seed, self.rate, self.keep)

    def measurements(self) -> list[Measurement]:
        """The cases as commands."""
        return [self._measurement(case) for case in self.cases]

    def _measurement(self, case: Case) -> Measurement:
        directory = self.elsewhere.get(case.cell, self.request.directory)
        scratch = self.scratch_in(directory)
        made = cases_.measurement(case, self.programs, scratch, self.timeout_s)
        return replace(made, scratch=scratch)

    def earlier(self) -> list[Sample]:
        """Samples that there are already."""
        return load(self.samples_file).samples if _has_lines(self.samples_file) else []

    def check_earlier(self) -> None:
        """Refuse, as `run` does, to go on with what is there already.

        Raises
        ------
        ArgumentError
            If the results are of another plan.
        """
        if not (self.cases and _has_lines(self.samples_file)):
            return
        there = load(self.samples_file)
        plan = {"rate": self.rate, "measurements": [m.as_plan() for m in self.measurements()]}
        if why := difference(there.headers[0], plan, self.seed):
            raise other_plan(self.samples_file, why, any(s.counts for s in there.samples))

    def run(self, observer: Observer) -> Ending:
        """Take the samples that are missing.

        Raises
        ------
        ArgumentError
            If the results are of another plan, or somebody writes them.
        WriteError
            If a directory cannot be written, or the results' disk is full.
        """
        with Store(self.samples_file) as store:
            session = Session(
                self.measurements(),
                self.stopping,
                store,
                self.seed,
                self.scratch,
                Settle(self.settle_s),
                observer,
                rate=self.rate,
                budget_s=self.budget_s,
                name=self.name,
                collect=self._collector(),
                keep=self.request.keep,
                keep_pairs=self.keep,
                whole_blocks=self.keep is not None,
                part=self.request.part,
                keeps=self.keeps,
            )
            return session.run()

    def _collector(self) -> functools.partial[Provenance]:
        mpis = dict.fromkeys(case.mpi for case in self.cases)  # a pilot asked others, too
        launchers = [self.programs.of(mpi).launcher.as_json() for mpi in mpis]
        where = str(native.directory())
        return functools.partial(provenance.collect, mpi=launchers, native=where)


def prepare(request: Request, programs: Programs | None = None) -> Sweep:
    """Everything that must be known before the first sample.

    Parameters
    ----------
    programs : Programs, optional
        What measures a matrix; by default the measuring programs as they are started here.

    Raises
    ------
    ArgumentError
        If the request, its matrix or its directory is wrong.
    LaunchError
        If a measuring program or launcher is not there.
    """
    require_directory(request.directory)
    _check(request)
    if request.part is not None:
        parts.check(results_directory(request), request.part)
    if request.matrix is None:
        return _as_asked(_quick(request), replace(request, budget_s=None))  # it is within it
    matrix = matrices.load(request.matrix)
    where = str(request.matrix)
    cases = matrices.expand(matrix, where)
    cases_.check_launcher(request.launcher, [case.mpi for case in cases])
    return of_matrix(request, matrix, cases, where, programs)


def check_submission(request: Request, parts: int) -> None:
    """Refuse what every part would refuse when its turn comes.

    Ranks are looked for as in the job: where srun serves them, no mpiexec need be here.

    Raises
    ------
    ArgumentError, LaunchError
        As `prepare`.
    """
    in_a_job = {**os.environ, "SLURM_JOB_ID": "1"}
    prepare(replace(request, part=(0, parts)), Programs(request.launcher, in_a_job))
    if request.matrix is not None:
        cases = matrices.expand(matrices.load(request.matrix), str(request.matrix))
        cells = len({case.cell for case in cases})
        if parts > cells:
            raise ArgumentError(
                f"--submit must be at most the cells of {request.matrix}, {cells}, for each part "
                f"measures some of them, got {parts}: give --submit {cells}"
            )


def _as_asked(sweep: Sweep, request: Request) -> Sweep:
    """With what the command line says otherwise."""
    sweep = replace(sweep, seed=_seed(sweep, request))
    if request.rounds is not None:
        sweep = replace(sweep, stopping=matrices.fixed_rounds(request.rounds))
    if request.budget_s is not None:
        sweep = replace(sweep, budget_s=request.budget_s)
    if request.part is not None:
        sweep = replace(sweep, cases=tuple(matrices.part(sweep.cases, *request.part)))
    return sweep


def gathered(request: Request) -> Gathered | None:
    """The results of all parts, if the sweep is measured in parts (--submit, --part).

    Nothing is asked of this machine: it need not be one that can measure.

    Raises
    ------
    ArgumentError
        If the parts are not those of the request.
    """
    if request.part is not None:
        return None
    _check(request)
    out = results_directory(request)
    there = parts.division(out)
    if there is None:
        return None
    if request.matrix is None:
        raise ArgumentError(
            f"{out} holds parts of a sweep: give its --matrix, or read them with penstock report "
            f"{shlex.quote(str(out))}"
        )
    matrix = matrices.load(request.matrix)
    wanted = parts.Wanted(
        cases=matrices.expand(matrix, str(request.matrix)),
        stopping=matrices.fixed_rounds(request.rounds) if request.rounds else matrix.stopping,
        rate=matrix.rate,
        directory=request.directory,
        seed=matrix.seed if request.seed is None else request.seed,
    )
    return parts.gather(out, there, wanted)


def results_directory(request: Request) -> Path:
    """Where results go: --out, or a directory that is named for what is measured."""
    if request.out is not None:
        return request.out
    if request.matrix is not None:
        name = matrices.load(request.matrix).name
    else:
        name = real(request.directory).name or "root"
    return Path(f"penstock-bench-{name}")


def _check(request: Request) -> None:
    _check_counts(request)
    if request.part is not None:
        number, of = request.part
        if not 0 <= number < of:
            raise ArgumentError(f"--part must be I/N with I from 0 to N - 1, got {number}/{of}")
        if request.matrix is None:
            raise ArgumentError(
                "--part and --submit divide the cells of a --matrix, and the quick look chooses "
                "its own anew each time: write a matrix (docs/reference/bench-matrix.md)"
            )
    if request.matrix is not None:
        given = [n for n in ("mpi", "ranks", "threads") if getattr(request, n)]
        if given:
            raise ArgumentError(
                f"--{given[0]} is for the quick look: with --matrix, say {given[0]} in its "
                "[defaults] or [sweep]"
            )
    _check_workers(request.ranks, request.threads)


def _check_counts(request: Request) -> None:
    for name, least in (("rounds", 1), ("ranks", 1), ("threads", 1), ("seed", 0)):
        value = getattr(request, name)
        if value is not None and value < least:
            raise ArgumentError(f"--{name} must be at least {least}, got {value}")


def _check_workers(ranks: int | None, threads: int | None) -> None:
    if ranks is not None and threads is not None and ranks != threads:
        raise ArgumentError(
            "--ranks and --threads must be the same number, for ways of both are compared, got "
            f"{ranks} and {threads}: give one of them, or write a --matrix"
        )


def of_matrix(
    request: Request,
    matrix: Matrix,
    cases: Sequence[Case],
    where: str,
    programs: Programs | None = None,
) -> Sweep:
    """The sweep of a matrix that was read; ``where`` says in messages what it was read from.

    Parameters
    ----------
    cases : sequence of Case
        Those of the matrix that are to be measured.
    programs : Programs, optional
        What measures them; by default the measuring programs.

    Raises
    ------
    ArgumentError
        If a parameter or the directory is wrong.
    LaunchError
        If a program or launcher is not there.
    """
    _check_counts(request)
    require_directory(request.directory)
    out = request.out or Path(f"penstock-bench-{matrix.name}")
    require_place(out)
    known = programs or Programs(request.launcher)
    cases_.check(cases, known, where)
    sweep = Sweep(
        request=request,
        name=matrix.name,
        out=out,
        cases=tuple(cases),
        programs=known,
        stopping=matrix.stopping,
        seed=-1 if matrix.seed is None else matrix.seed,
        rate=matrix.rate,
        budget_s=matrix.budget,
        timeout_s=matrix.timeout,
        settle_s=matrix.settle,
    )
    return _as_asked(sweep, request)


def _quick(request: Request) -> Sweep:
    """The quick look; one that was begun goes on with the sizes that were chosen then."""
    out = results_directory(request)
    require_place(out)
    known = Programs(request.launcher)
    wish = quick.Wish(
        request.directory,
        quick.BUDGET_S if request.budget_s is None else request.budget_s,
        request.mpi,
        request.ranks,
        request.threads,
        request.launcher,
    )
    sweep = Sweep(
        request=request,
        name=plain(out.name).removeprefix("penstock-bench-"),
        out=out,
        cases=(),
        programs=known,
        stopping=quick.STOPPING,
        seed=-1,
        budget_s=wish.budget_s,
        timeout_s=quick.TIMEOUT_S,
        settle_s=quick.SETTLE_S,
        keeps=quick.record(wish),
    )
    if _has_lines(sweep.samples_file):
        return _begun_quick(sweep, wish)
    chosen = quick.choose(wish, known, quick.Pilot(sweep.scratch, sweep.mark))
    made = replace(sweep, cases=tuple(chosen.cases), notes=tuple(chosen.notes))
    return replace(made, budget_s=chosen.budget_s, keeps=quick.record(wish, chosen.failed))


def _begun_quick(sweep: Sweep, wish: quick.Wish) -> Sweep:
    """A quick look that was begun, with what it measures and the budget of its samples.

    Refused if that is not what is asked for.
    """
    there = load(sweep.samples_file)
    plan = there.headers[0].plan
    if not quick.is_quick(plan):
        raise ArgumentError(
            f"{sweep.out} holds the results of a sweep, not of a quick look: give its --matrix, or "
            f"read them with penstock report {shlex.quote(str(sweep.out))}"
        )
    cases = _cases_of(plan)
    if why := quick.difference(wish, plan, cases):
        raise other_plan(sweep.samples_file, why, any(s.counts for s in there.samples))
    own = quick.going_on(wish, plan)
    return replace(sweep, cases=tuple(cases), budget_s=quick.left_s(wish, plan), keeps=own)


def planned_before(sweep: Sweep) -> frozenset[Pair]:
    """What the results that a sweep goes on with planned; nothing where there are none."""
    before = plan_before(sweep.samples_file)
    return frozenset((c.cell, c.variant) for c in (_cases_of(before) if before else ()))


def plan_before(path: Path) -> Mapping[str, Any]:
    """The plan that results began with; empty where there are none."""
    return load(path).headers[0].plan if _has_lines(path) else {}


def _cases_of(plan: Mapping[str, Any]) -> list[Case]:
    return [cases_.of_plan(one) for one in plan["measurements"]]


def _seed(sweep: Sweep, request: Request) -> int:
    """Given, the matrix's, that of the results that go on or of another part, or drawn."""
    if request.seed is not None:
        return request.seed
    if sweep.seed >= 0:
        return sweep.seed
    if _has_lines(sweep.samples_file):
        return load(sweep.samples_file).headers[0].seed
    there = parts.division(sweep.out) if request.part is not None else None
    if there is not None and there.headers:
        return next(iter(there.headers.values())).seed
    return secrets.randbelow(_SEEDS)


def _has_lines(path: Path) -> bool:
    """Whether there are results: a file that was cut within its header holds none."""
    try:
        return b"\n" in path.read_bytes()
    except OSError:
        return False


@dataclass(frozen=True)
class Estimate:
    """How long a sweep will take, and what says so; ``failed`` are pilots that did."""

    seconds: float | None
    source: str
    failed: tuple[str, ...] = ()


def estimate(sweep: Sweep) -> Estimate:
    """From the samples that there are, else from a pilot of a few cases, run once each."""
    if samples := sweep.earlier():
        return Estimate(remaining_s(sweep.plan, samples), f"from {len(samples)} earlier samples")
    measurements = sweep.measurements()
    some = list({i: measurements[i] for i in (0, len(measurements) // 2, -1)}.values())
    scratch = Scratch(sweep.scratch)
    scratch.make()
    try:
        end_leftovers(sweep.mark)  # of a pilot that was killed
        ran = [(m, execute(m.command, _environment(sweep, m), m.timeout_s)) for m in some]
    finally:
        scratch.remove()
    failed = tuple(f"{m.variant} of {m.cell}: {r.failed}" for m, r in ran if r.failed)
    good = [r.wall_s for _, r in ran if not r.failed]
    usual_s = sum(good) / len(good) if good else None
    return Estimate(remaining_s(sweep.plan, [], usual_s), f"from a pilot of {len(ran)}", failed)


def _environment(sweep: Sweep, measurement: Measurement) -> dict[str, str]:
    return {**environment(measurement.env), MARK: sweep.mark}
