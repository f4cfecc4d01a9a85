"""Takes the samples of a plan: in random interleaved blocks, resumable, each on a rested machine.

What runs next is decided in blocks.py from the samples alone, so the same session run again goes on
where it was stopped, by Ctrl-C, a kill or a power cut, and loses at most the sample in flight.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from penstock import __version__
from penstock.bench import provenance as provenances
from penstock.bench.blocks import Keep, Pair, Plan, Progress, Turn, decision, pending
from penstock.bench.estimate import seconds_per_sample
from penstock.bench.execute import (
    MARK,
    ProgramResult,
    end_leftovers,
    execute,
    told_of_leftovers,
)
from penstock.bench.interruptions import heeded, interruptions_wait
from penstock.bench.noise import MachineReading
from penstock.bench.sample import Event, Header, Provenance, RateKind, Sample, Settled
from penstock.bench.settle import Scratch, Settle
from penstock.bench.statistics import Decision, Stopping
from penstock.bench.store import Store, mark_of
from penstock.errors import ArgumentError
from penstock.launch.shell import others_preloaded
from penstock.words import duration_text

TIMEOUT_S = 300.0
SCRATCH = ".penstock-bench-"  # how the names of scratch directories begin
Reason = Literal["complete", "budget", "interrupted"]


def _expects_nothing(_: ProgramResult) -> str | None:
    return None


@dataclass(frozen=True)
class Measurement:
    """One variant of a cell: the command that takes a sample of it.

    ``env`` is added to the environment of the session, without its PENSTOCK_* variables.
    ``expect`` looks at a run that went well and says why it does not count, or None.
    ``parameters`` is kept in the plan, to tell what the variant is. ``scratch`` is where its data
    lie, if not in the session's own scratch directory: on another file system.
    """

    cell: str
    variant: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    expect: Callable[[ProgramResult], str | None] = _expects_nothing
    timeout_s: float = TIMEOUT_S
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scratch: Path | None = None

    def as_plan(self) -> dict[str, Any]:
        """What a resumed session must have in common with the first."""
        return {
            "cell": self.cell,
            "variant": self.variant,
            "command": list(self.command),
            "env": dict(self.env),
            "parameters": dict(self.parameters),
        }


class Observer:
    """Told of what a session does; this one does nothing with it."""

    def begins(self, session: Session) -> None:
        """The session has its results file and begins, or goes on."""

    def sample_begins(self, turn: Turn, of: int) -> None:
        """A sample is about to be taken: one of ``of`` in its block."""

    def sample_ends(self, sample: Sample) -> None:
        """It was taken and stored."""

    def event(self, event: Event) -> None:
        """Something that a person should know, and that was stored."""


@dataclass(frozen=True)
class Ending:
    """How a session ended: everything measured, out of time, or interrupted."""

    reason: Reason
    decisions: dict[Pair, Decision]
    dropped: dict[Pair, str]


class Session:
    """Samples of measurements, until each cell is known precisely enough.

    Parameters
    ----------
    measurements : sequence of Measurement
        Their (cell, variant) must differ.
    stopping : Stopping
        When a cell has been measured enough.
    store : Store
        Where samples go, and which are there already.
    seed : int
        Draws the order. A resumed session goes on with the seed of the results.
    directory : Path
        The session's scratch directory: must not be there, or be one that a session left.
        Emptied before each sample, removed at the end. The measurements' data belong in it.
    settle : Settle
        Brings the machine to rest before each sample.
    observer : Observer
        Told of what happens.
    rate : {"application", "actual"}
        Which rate must be precise.
    budget_s : float, optional
        Seconds of samples and waits, over all runs of the session, after which none is begun.
    name : str
        What the results call themselves.
    collect : callable
        Makes the provenance of a directory.
    keep : bool
        Leave the scratch directory, with the last sample's files, at the end.
    keep_pairs : callable, optional
        Which pairs the blocks after the warm-ups hold (`Plan.keep`).
    whole_blocks : bool
        Begin no block that would probably end after the budget, instead of no sample.
    part : (int, int), optional
        Which part of a sweep this is, and of how many.
    keeps : mapping, optional
        What else results keep in their plan as it was when the first sample was taken.

    Raises
    ------
    ArgumentError
        If the results file holds another plan, or the scratch directory somebody's files.
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        stopping: Stopping,
        store: Store,
        seed: int,
        directory: Path,
        settle: Settle | None = None,
        observer: Observer | None = None,
        *,
        rate: RateKind = "application",
        budget_s: float | None = None,
        name: str = "bench",
        collect: Callable[[Path], Provenance] = provenances.collect,
        keep: bool = False,
        keep_pairs: Keep | None = None,
        whole_blocks: bool = False,
        part: tuple[int, int] | None = None,
        keeps: Mapping[str, Any] | None = None,
    ) -> None:
        self._keeps = dict(keeps or {})
        self.measurements = {(m.cell, m.variant): m for m in measurements}
        if len(self.measurements) != len(measurements):
            raise ArgumentError("two measurements have the same cell and variant: rename one")
        if not measurements:
            raise ArgumentError("there is nothing to measure: the plan holds no measurement")
        self.plan = Plan(tuple(self.measurements), stopping, seed, rate, keep_pairs)
        self.store = store
        self.scratch = Scratch(directory)
        self.budget_s = budget_s
        self.name = name
        self._settle = settle or Settle()
        self._observer = observer or Observer()
        self._collect = collect
        self._keep = keep
        self._whole_blocks = whole_blocks
        self._part = part
        self._resumes = ""
        self._goes_on: dict[str, Any] = {}
        elsewhere = {m.scratch for m in measurements if m.scratch not in (None, directory)}
        self._scratches = {directory: self.scratch}
        self._scratches |= {path: Scratch(path) for path in elsewhere if path is not None}
        self._provenance_ids: dict[Path, str] = {}
        self._begin_s, self._spent_before_s = time.monotonic(), 0.0
        self._marks = {path: process_mark(store.path, path) for path in self._scratches}
        self._said_dropped: set[Pair] = set()

    def run(self) -> Ending:
        """Take the samples that are missing.

        Returns
        -------
        Ending
            Why it ended. After ``interrupted`` and ``budget`` the same session can go on.

        Raises
        ------
        WriteError
            If a sample cannot be stored; those before it are.
        """
        self._begin_s, self._spent_before_s = time.monotonic(), self._sampled_s()
        try:
            with terminations_interrupt():
                self._begin()
                reason = self._blocks()
        except KeyboardInterrupt:
            if self.store.header is not None:
                self._say("interrupted", "stopped by Ctrl-C or a termination signal")
            reason = "interrupted"
        finally:
            if not self._keep:
                for scratch in self._scratches.values():
                    scratch.remove()
        return self._ending(reason)

    @property
    def spent_s(self) -> float:
        """Seconds of this run, and of the samples of earlier ones, waits included."""
        return self._spent_before_s + time.monotonic() - self._begin_s

    def _sampled_s(self) -> float:
        return sum(s.wall_s + (s.settled.waited_s if s.settled else 0) for s in self.store.samples)

    @property
    def block(self) -> int:
        """The block that the next sample is of, as far as the samples tell."""
        return max((s.block for s in self.store.samples), default=0)

    def progress(self) -> dict[Pair, Progress]:
        """What the samples so far say of every pair."""
        return self.plan.progress(self.store.samples)

    def _blocks(self) -> Reason:
        number = 0
        while turns := self.plan.block(number, self.store.samples):
            left = pending(turns, self.store.samples)
            for turn in left:
                if self._out_of_budget(left if turn is left[0] else []):
                    self._say_budget()
                    return "budget"
                self._say_resumed()
                self._observer.sample_begins(turn, len(turns))
                self._observer.sample_ends(self._take(turn))
            number += 1
            self._say_dropped()
        if self._resumes:
            self._tell("complete", f"all {len(self.store.samples)} samples were there already")
        return "complete"

    def _out_of_budget(self, block: Sequence[Turn]) -> bool:
        """Before a turn; ``block`` are the turns of the block that it would begin, if it does."""
        if self.budget_s is None:
            return False
        if not self._whole_blocks:
            return self.spent_s >= self.budget_s
        return bool(block) and self.spent_s + self._probably_takes_s(block) > self.budget_s

    def _probably_takes_s(self, turns: Sequence[Turn]) -> float:
        """As long as the samples of the same pairs have taken on average; unknown ones nothing."""
        took = seconds_per_sample(self.store.samples)
        return sum(took.get((turn.cell, turn.variant), 0.0) for turn in turns)

    def _take(self, turn: Turn) -> Sample:
        measurement = self.measurements[turn.cell, turn.variant]
        scratch = self._scratches[measurement.scratch or self.scratch.path]
        scratch.empty()
        settled = self._settle(scratch.path)
        if settled.exceeded:
            self._say_unsettled(settled)
        started = _now()
        before = MachineReading.read()
        variables = {**environment(measurement.env), MARK: self._marks[scratch.path]}
        ran = execute(measurement.command, variables, measurement.timeout_s)
        after = MachineReading.read()
        sample = Sample(
            **vars(turn),
            warm_up=turn.warm_up,
            started=started,
            wall_s=ran.wall_s,
            provenance=self._provenance_ids[scratch.path],
            command=list(measurement.command),
            settled=settled,
            machine_before=before.model_dump(),
            machine_after=after.model_dump(),
            result=ran.result,
            failed=ran.failed or measurement.expect(ran),
        )
        self.store.append(sample)
        return sample

    def _begin(self) -> None:
        plan: dict[str, Any] = {
            "measurements": [m.as_plan() for m in self.measurements.values()],
            "rate": self.plan.rate,
            "stopping": vars(self.plan.stopping),
            "budget_s": self.budget_s,
            **self._keeps,
        }
        if self._part is not None:
            plan["part"] = list(self._part)
        if self.store.header is None:
            self._start(plan)
        else:
            self._resume(self.store.header, plan)
        if not self._resumes:
            self._record_provenances()
        self._observer.begins(self)

    def _start(self, plan: dict[str, Any]) -> None:
        self._make_scratches()  # refused while a dry run's pilot is at work there
        ended = self._end_leftovers()
        header = Header(
            penstock=__version__,
            created=_now(),
            name=self.name,
            seed=self.plan.seed,
            plan=plan,
        )
        self.store.append(header)
        if ended:
            self._say("leftovers", told_of_leftovers(ended))

    def _end_leftovers(self) -> int:
        """Of one that was killed, in directories that are this session's: how many."""
        return sum(map(end_leftovers, self._marks.values()))

    def _make_scratches(self) -> None:
        with interruptions_wait():  # what was made in part could not be told from somebody else's
            for scratch in self._scratches.values():
                scratch.make()
        self.store.make_room = [] if self._keep else [s.empty for s in self._scratches.values()]

    def _resume(self, header: Header, plan: dict[str, Any]) -> None:
        if why := difference(header, plan, self.plan.seed):
            raise other_plan(self.store.path, why, any(s.counts for s in self.store.samples))
        self._make_scratches()
        ended = self._end_leftovers()
        text = f"goes on after {len(self.store.samples)} samples"
        if ended:
            text += f"; {ended} processes of the earlier run were still there and were ended"
        for notice in self.store.results.notices:
            text += f"; {notice}"
        self._resumes = text  # said when a sample follows: who only looks resumes nothing
        self._goes_on = {name: plan[name] for name in ("stopping", "budget_s", *self._keeps)}

    def _record_provenances(self) -> None:
        for scratch in self._scratches.values():
            self._record_provenance(scratch.path)

    def _record_provenance(self, directory: Path) -> None:
        now = self._collect(directory)
        last = self._last_provenance(now.file_system.get("mount"))
        if last is not None and last.id != now.id:
            self._say("provenance", f"changed since the last run: {provenances.changes(last, now)}")
        if now.id not in self.store.results.provenances:
            self.store.append(now)
        self._provenance_ids[directory] = now.id

    def _last_provenance(self, mount: object) -> Provenance | None:
        """Of the last sample on a mount; where there is none, the last that was recorded of it."""
        known = self.store.results.provenances
        alone = len(self._scratches) == 1
        of_samples = [known[s.provenance] for s in self.store.samples if s.provenance in known]
        both = [*known.values(), *of_samples]
        of_here = [p for p in both if alone or p.file_system.get("mount") == mount]
        return of_here[-1] if of_here else None

    def _say(self, what: str, text: str, plan: dict[str, Any] | None = None) -> None:
        self.store.append(self._tell(what, text, plan))

    def _tell(self, what: str, text: str, plan: dict[str, Any] | None = None) -> Event:
        """As `_say`, and leave the results as they are."""
        event = Event(at=_now(), what=what, text=text, plan=plan)
        self._observer.event(event)
        return event

    def _say_resumed(self) -> None:
        if self._resumes:
            self._say("resumed", self._resumes, self._goes_on)
            self._resumes = ""
            self._record_provenances()

    def _say_budget(self) -> None:
        """Kept once, however often somebody looks at the results."""
        events = self.store.results.events
        say = self._tell if self._resumes and events and events[-1].what == "budget" else self._say
        say("budget", f"the budget of {duration_text(self.budget_s or 0)} is used up")

    def _say_unsettled(self, settled: Settled) -> None:
        self._say(
            "unsettled",
            f"after {settled.waited_s:.1f} s {settled.dirty_bytes} bytes were still waiting for "
            "write-back: something else writes on this machine",
        )

    def _say_dropped(self) -> None:
        for pair, progress in self.progress().items():
            if progress.dropped and pair not in self._said_dropped:
                self._said_dropped.add(pair)
                say = self._tell if self._resumes else self._say  # the earlier run kept it
                say(
                    "dropped",
                    f"{pair[1]} of {pair[0]} failed {progress.failures_in_a_row} times in a row "
                    f"and is not tried again: {progress.last_failure}",
                )

    def _ending(self, reason: Reason) -> Ending:
        progress = self.progress()
        decisions: dict[Pair, Decision] = {}
        for pair, one in progress.items():
            said = decision(self.plan.stopping, one)
            decisions[pair] = "not converged" if said == "go on" else said
        dropped = {pair: one.last_failure for pair, one in progress.items() if one.dropped}
        return Ending(reason, decisions, dropped)


def process_mark(results: Path, scratch: Path) -> str:
    """What all processes carry that measure in a directory into a results file, and no others.

    Who holds the directory's lock may end them (`execute.MARK`).
    """
    return f"{mark_of(results)[:16]}-{mark_of(scratch)[:16]}"


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measured program: nothing that a user set for other runs changes it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    kept.pop("LD_PRELOAD", None)
    if preload := others_preloaded(os.environ):
        kept["LD_PRELOAD"] = ":".join(preload)
    return {**kept, **own}


def other_plan(path: Path, why: str, measured: bool = True) -> ArgumentError:
    """What is wrong with results that a session cannot go on with, or that are not to be shown.

    ``measured`` is whether there is something to lose.
    """
    remedy = "Give another --out, or the options of the first run"
    if not measured:
        remedy = "Nothing in it was measured: remove it, or give another --out"
    return ArgumentError(f"{path} holds the results of another plan: {why}. {remedy}")


def difference(header: Header, plan: dict[str, Any], seed: int) -> str:
    """What the plan of the results and this one do not share; empty if a session may go on."""
    if header.seed != seed:
        return f"its seed is {header.seed}, not {seed}"
    return plan_difference(header.plan, plan)


def plan_difference(there: dict[str, Any], plan: dict[str, Any]) -> str:
    """What two plans do not share: the rate that must be precise, or what is measured."""
    if there.get("rate") != plan["rate"]:
        return f"its rate is {there.get('rate')}, not {plan['rate']}"
    before = {(m["cell"], m["variant"]): m for m in there.get("measurements", [])}
    now = {(m["cell"], m["variant"]): m for m in plan["measurements"]}
    for pair in [*before, *now]:
        if pair not in now:
            return f"{pair[1]} of {pair[0]} is no longer in the plan"
        if pair not in before:
            return f"{pair[1]} of {pair[0]} is new in the plan"
        if before[pair] != now[pair]:
            return f"the command of {pair[1]} of {pair[0]} differs"
    return ""


@contextmanager
def terminations_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a session as Ctrl-C does; a batch system sends them.

    One that is ignored, as SIGHUP under nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = heeded(signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
