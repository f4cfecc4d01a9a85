"""From a paper's name to a sweep that can be run: what can be measured here, and what cannot."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.bench import provenance
from penstock.bench import sweep as sweeps
from penstock.bench.blocks import Pair
from penstock.bench.cases import Case, Programs
from penstock.bench.matrix import seconds_word
from penstock.bench.sample import Header, Provenance
from penstock.bench.statistics import Stopping
from penstock.bench.store import Results
from penstock.bench.sweep import Request, Sweep
from penstock.doctor.storage import require_directory
from penstock.errors import ArgumentError, LaunchError
from penstock.reproduce import PAPERS, SIZES, budget, conclusions, cost, experiment
from penstock.reproduce.btio import BtioPrograms
from penstock.reproduce.conclusions import Conclusion
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.experiment import Experiment
from penstock.reproduce.needs import NEEDS, OF_FILE_SYSTEM
from penstock.reproduce.places import ALONE, Place, Places, at, split
from penstock.reproduce.places import of as of_places

_PREFIX = "reproduce"
_ON = "on"  # before the names of file systems
_ABSENT = "absent_mpis"  # of a plan: what the size needs and could not be started
_RATES = "device_bytes_per_s"  # of a plan with a budget: what each directory took before it
_NOMINAL_BYTES_PER_S = 1e8
_LEAST_TIMEOUT_S = 30.0
_SLOW_BYTES_PER_S = 2e8  # above it processes wait for the CPUs and not for the device


@dataclass(frozen=True)
class Planned:
    """A paper in a size, the sweep that measures it, and why some of it is left out."""

    paper: str
    size: str
    experiment: Experiment
    sweep: Sweep
    left_out: tuple[str, ...]
    rates: Mapping[str, float]
    """What each directory took of a few MiB with their fsync, in bytes per second."""
    all_measurements: int = 0
    """Of the size, where a budget chose some of them."""
    not_fitting: tuple[str, ...] = ()
    """Conclusions that the budget leaves out."""

    @property
    def scale(self) -> str:
        """By what the size differs from the paper."""
        return self.experiment.in_size(self.size).scale


def prepare(
    paper: str, size: str, request: Request, directories: Mapping[str, Path] | None = None
) -> Planned:
    """Everything that must be known before the first sample.

    Parameters
    ----------
    directories : mapping, optional
        Of each file system its name and a directory on it; by default the request's alone.

    Raises
    ------
    ArgumentError
        If there is no such paper or size, or a directory is wrong.
    LaunchError
        If nothing of it can be started here.
    """
    path = experiment.path_of(paper)
    found = experiment.load(paper)
    found.in_size(size)
    where = dict(directories or {ALONE: request.directory})
    for one in where.values():
        require_directory(one)
    names = [name for name in where if name]
    on = f" {_ON} {','.join(names)}" if names else ""
    matrix = found.sweep(size, path)
    matrix = matrix.model_copy(update={"name": f"{_PREFIX} {paper} {size}{on}"})
    kind = BtioPrograms if found.program == "btio" else Programs
    programs = kind(request.launcher)
    of_size = found.cases(size, path)
    cases, left_out = startable(of_size, programs)
    if not cases:
        why = "; ".join(left_out)
        raise LaunchError(f"nothing of {paper} can be measured here: {why}", exit_code=1)
    placed = [replace(case, cell=at(name, case.cell)) for name in where for case in cases]
    elsewhere = {at(name, case.cell): where[name] for name in where for case in cases}
    first = replace(request, directory=next(iter(where.values())))
    keeps = {_ABSENT: sorted({case.mpi for case in of_size} - {case.mpi for case in cases})}
    sweep = sweeps.of_matrix(first, matrix, placed, str(path), programs)
    sweep = replace(sweep, elsewhere=elsewhere, keeps=keeps)
    rates = _rates(sweep, where)
    planned = Planned(paper, size, found, sweep, tuple(left_out), rates)
    whole = replace(planned, all_measurements=len(placed))
    if request.budget_s is None:
        return replace(whole, sweep=_as_begun(sweep))
    return _within(whole, request.budget_s, where)


def _rates(sweep: Sweep, where: Mapping[str, Path]) -> dict[str, float]:
    """What directories take, in bytes per second. A session that goes on has what it was planned
    by: a budget would choose otherwise by another."""
    before = sweeps.plan_before(sweep.samples_file).get(_RATES, {})
    if set(before) == set(where):
        return {name: float(rate) for name, rate in before.items()}
    return {name: cost.device_bytes_per_s(one) for name, one in where.items()}


def estimates(planned: Planned) -> dict[Pair, float]:
    """Seconds of one sample of each pair, by what the directories took of a few MiB."""
    return _estimates(planned.sweep.cases, planned.rates)


def estimated_s(planned: Planned) -> float:
    """Of the whole session, within its budget if it has one."""
    one_block_s = sum(estimates(planned).values())
    all_s = (1 + planned.sweep.stopping.maximum) * one_block_s
    return min(all_s, planned.sweep.budget_s or all_s)


def _estimates(cases: Sequence[Case], rates: Mapping[str, float]) -> dict[Pair, float]:
    found = {}
    for case in cases:
        name, _ = split(case.cell, list(rates))
        found[case.cell, case.variant] = cost.seconds(case, rates[name])
    return found


def _as_begun(sweep: Sweep) -> Sweep:
    """With the measurements that a budget chose, where a session goes on that had one."""
    before = sweeps.planned_before(sweep)
    if not before or not before < {(case.cell, case.variant) for case in sweep.cases}:
        return sweep
    return replace(sweep, cases=tuple(c for c in sweep.cases if (c.cell, c.variant) in before))


def _within(planned: Planned, budget_s: float, where: Mapping[str, Path]) -> Planned:
    """What is begun for a budget; a session that goes on has what it began with."""
    sweep = planned.sweep
    seen = {name: provenance.file_system(directory) for name, directory in where.items()}
    units = _units(planned.paper, sweep.cases, seen, planned.rates)
    begun = sweeps.planned_before(sweep)
    if begun and not begun <= {(case.cell, case.variant) for case in sweep.cases}:
        return planned  # of another plan, which is refused
    left_out: tuple[str, ...] = ()
    if not begun:
        estimate = _estimates(sweep.cases, planned.rates)
        choice = budget.choose(units, estimate.__getitem__, budget.BEGUN * budget_s)
        if not choice.needed:
            raise ArgumentError(
                f"--budget {seconds_word(budget_s)} is too short for any conclusion of "
                f"{planned.paper}: give more time, or --size quick"
            )
        begun, left_out = frozenset(choice.needed), choice.left_out
    cases = [case for case in sweep.cases if (case.cell, case.variant) in begun]
    keeper = _keeper(units, cases, list(where), budget_s)
    timeout_s = min(sweep.timeout_s, max(budget_s / 4, _LEAST_TIMEOUT_S))
    keeps = {**sweep.keeps, _RATES: dict(planned.rates)}
    sweep = replace(sweep, cases=tuple(cases), keep=keeper, keeps=keeps, timeout_s=timeout_s)
    return replace(planned, sweep=sweep, not_fitting=left_out)


def _nominal(cases: Sequence[Case], names: Sequence[str]) -> dict[Pair, float]:
    """What does not vary from run to run: it orders units."""
    return _estimates(cases, dict.fromkeys(names, _NOMINAL_BYTES_PER_S))


def _keeper(
    units: Sequence[budget.Unit], begun: Sequence[Case], names: Sequence[str], budget_s: float
) -> budget.Keeper:
    """What says by the warm-ups of what was begun which of it goes on."""
    pairs = {(case.cell, case.variant) for case in begun}
    whole_units = tuple(unit for unit in units if unit.pairs <= pairs)
    return budget.Keeper(whole_units, _nominal(begun, names), budget_s)


def _units(
    paper: str,
    cases: Sequence[Case],
    seen: Mapping[str, Mapping[str, Any]],
    rates: Mapping[str, float],
) -> list[budget.Unit]:
    """What a budget chooses from; ``seen`` are the file systems, and ``rates`` what they took."""
    names = list(seen)
    pairs = tuple((case.cell, case.variant) for case in cases)
    each = tuple(_place(name, file_system, pairs, names) for name, file_system in seen.items())
    wanted = [one for one in conclusions.of_paper(paper) if not one.untestable]
    hopeless = functools.partial(_hopeless, rates)
    whole = Places(Evidence(pairs, ()), each)
    return budget.units(wanted, whole, _nominal(cases, names), hopeless)


def _place(
    name: str, file_system: Mapping[str, Any], pairs: Sequence[Pair], names: Sequence[str]
) -> Place:
    """As far as it is known before a run: what is planned, and the file system."""
    own = ((split(cell, names), variant) for cell, variant in pairs)
    planned = tuple((inner, variant) for (place, inner), variant in own if place == name)
    seen = Provenance(id=name, file_system=dict(file_system))
    return Place(name, Evidence(planned, (), (seen,)))


def _hopeless(rates: Mapping[str, float], one: Conclusion, place: Place) -> bool:
    """Whether what a conclusion needs is probably not there."""
    seen = {name: NEEDS[name] for name in one.needs if name in OF_FILE_SYSTEM}
    if any(need(place.evidence, []) for need in seen.values()):
        return True
    of_slow = {"idle_cpus", "slow_device"} & set(one.needs)
    fast = rates.get(place.name, 0.0) > _SLOW_BYTES_PER_S
    return "several_nodes" in one.needs or bool(of_slow and fast)


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
    name = results.headers[0].name
    if not is_of_paper(name):
        raise ArgumentError(f"{where} holds {name!r}, and not what penstock reproduce measured")
    _, paper, size, *_ = name.split()
    return paper, size


def evidence_of(results: Results) -> Evidence:
    """What a session brought, and what of its size it has neither a sample nor a failure of."""
    found = Evidence.of(results)
    tried = {(sample.cell, sample.variant) for sample in results.samples if sample.is_told}
    if found.budget_s is None and found.chosen_for_s is None:
        untried = tuple(pair for pair in found.planned if pair not in tried)
        return replace(found, left_out=untried, to_come=untried)
    cases = _of_size(results)
    pairs = [(case.cell, case.variant) for case in cases]
    if not {*found.planned} <= {*pairs}:
        return found  # of an earlier design
    left_out = tuple(pair for pair in pairs if pair not in tried)
    return replace(found, left_out=left_out, to_come=_to_come(results, found, cases))


def _of_size(results: Results) -> list[Case]:
    """All that could be started where a session was begun."""
    paper, size = of_results(results)
    absent = results.headers[0].plan.get(_ABSENT, [])
    of_size = experiment.load(paper).cases(size, experiment.path_of(paper))
    names = places_of(results) or [ALONE]
    here = [case for case in of_size if case.mpi not in absent]
    return [replace(case, cell=at(name, case.cell)) for name in names for case in here]


def _to_come(results: Results, found: Evidence, cases: Sequence[Case]) -> tuple[Pair, ...]:
    """What a session with a budget goes on with: all, until its warm-ups have chosen."""
    if found.budget_s is None:
        return found.planned
    if not _is_broken_off(results):
        return ()
    warm = {(sample.cell, sample.variant) for sample in results.samples if sample.block == 0}
    if not {*found.planned} <= warm:
        return found.planned
    kept = _keeper_of(results, found, cases)(results.samples)
    return tuple(pair for pair in found.planned if pair in kept)


def _keeper_of(results: Results, found: Evidence, cases: Sequence[Case]) -> budget.Keeper:
    """The one that chose; of what an earlier version measured as if no directory were fast."""
    each = of_places(found, places_of(results)).each
    seen = {place.name: _file_system(place.evidence) for place in each}
    rates = results.latest[0].plan.get(_RATES, {})
    paper, _ = of_results(results)
    begun = [case for case in cases if (case.cell, case.variant) in {*found.planned}]
    units = _units(paper, cases, seen, rates)
    return _keeper(units, begun, list(seen), found.budget_s or 0.0)


def _file_system(evidence: Evidence) -> Mapping[str, Any]:
    return evidence.provenances[-1].file_system if evidence.provenances else {}


def _is_broken_off(results: Results) -> bool:
    """Whether it was interrupted in its warm-ups or in block 1, which holds all that goes on."""
    last = results.events[-1].what if results.events else ""
    return last == "interrupted" and all(sample.block <= 1 for sample in results.samples)


def is_of_paper(name: str) -> bool:
    """Whether a session of that name is one of `penstock reproduce`."""
    words = name.split()
    known = words[:1] == [_PREFIX] and words[1:2] and words[1] in PAPERS and words[2:3]
    return bool(known) and words[2] in SIZES and words[3:4] in ([], [_ON]) and len(words) <= 5


def command(header: Header) -> str:
    """What measures a session anew; the results do not say where DIR is."""
    _, paper, size, *_ = header.name.split()
    where = " ".join(f"--dir {name}=DIR" for name in _names(header)) or "--dir DIR"
    budget_s = header.plan.get("budget_s")
    budget = "" if budget_s is None else f" --budget {seconds_word(budget_s)}"
    return f"penstock reproduce {paper} --size {size} {where}{budget}{_rounds(paper, size, header)}"


def _rounds(paper: str, size: str, header: Header) -> str:
    """Where somebody asked for others than the paper's file."""
    usual = experiment.load(paper).sweep(size, experiment.path_of(paper)).stopping
    rule = Stopping.of_plan(header.plan)
    return "" if rule == usual else "".join(f" {word}" for word in rule.words())


def earlier_design(paper: str, places: Places) -> str:
    """What samples are of that today's experiment does not have; empty where it has all of it."""
    known = {cell for cell, _ in experiment.pairs(paper)}
    planned = list(dict.fromkeys(cell for p in places.each for cell, _ in p.evidence.planned))
    gone = [cell for cell in planned if cell not in known]
    if not gone:
        return ""
    return (
        f"an earlier design: {len(gone)} of {len(planned)} cells, such as {gone[0]}, are not in "
        f"today's experiment, whose tables and conclusions have only the others"
    )


def places_of(results: Results) -> list[str]:
    """The names of the file systems that a session measured; none where it had one directory."""
    return _names(results.headers[0]) if results.headers else []


def _names(header: Header) -> list[str]:
    _, on, names = header.name.partition(f" {_ON} ")
    return names.split(",") if on else []
