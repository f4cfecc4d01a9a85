"""The best setting of every library in every family, by successive halving on the committed grid.

All settings of a library in two interleaved rounds (the session's warm-up round is one of them:
each sample warms its own memory); then the best two and the default in three more. What is best
then, and more than the margin better than the default, is stored; else the default is.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from beside.spec import Best, Bests, Cell, Library, Setting, Specification
from beside.variants import Competitor, MissingError, Site, measurement
from penstock.bench.sample import Provenance, Sample
from penstock.bench.session import Measurement, Observer, Session
from penstock.bench.statistics import MARGIN, Stopping
from penstock.bench.store import Store

SCREENING, FINAL = 1, 2  # blocks after the first, which counts here
FINALISTS = 2

_HEAD = """\
# The best setting of every library in every family, as `bench/peers/run.py --search` found it,
# with when and where. A family without an entry was not searched yet: its library is then measured
# at its default.
# An empty setting: no other of the grid was more than 3 % better than the default.
"""


@dataclass(frozen=True)
class Contest:
    """One library in one cell: its settings by the names of their variants."""

    cell: Cell
    key: str
    library: Library
    settings: dict[str, Setting]

    @property
    def default(self) -> str:
        """The name of the variant that sets nothing."""
        return next(iter(self.settings))


def contests(
    spec: Specification, families: Sequence[str], unsearched: bool = False
) -> list[Contest]:
    """What is to be searched: the first gate cell of each family, access and number of ranks;
    ``unsearched``: without the libraries whose best setting there is known."""
    known = {_place(best) for best in spec.bests.best} if unsearched else set()
    first: dict[tuple[str, str, int], Cell] = {}
    for cell in spec.cells.cell:
        if spec.family(cell) in families:
            first.setdefault((spec.family(cell), cell.access, cell.ranks), cell)
    return [
        Contest(cell, key, library, _named(key, spec.peers.grid[library.grid].settings(cell.ranks)))
        for cell in first.values()
        for key, library in spec.peers.library.items()
        if cell.ranks in library.ranks
        and (spec.family(cell), cell.access, cell.ranks, key) not in known
    ]


def _named(key: str, settings: Iterable[Setting]) -> dict[str, Setting]:
    return {
        f"{key} {', '.join(f'{k}={v}' for k, v in s.items()) or 'default'}": s for s in settings
    }


def run(
    spec: Specification,
    site: Site,
    families: Sequence[str],
    folder: Path,
    seed: int,
    observer: Observer,
    unsearched: bool = False,
) -> tuple[list[Best], list[str]]:
    """Search; resumable in ``folder``. What was found, and what could not be searched.

    Raises
    ------
    KeyboardInterrupt
        If it was stopped; the same call goes on.
    """
    wanted = contests(spec, families, unsearched)
    missing: dict[str, None] = {}
    screening = _Stage(spec, site, folder / "screening.jsonl", seed, SCREENING, observer)
    samples = screening.take([(c, list(c.settings)) for c in wanted], missing)
    finalists = [(c, chosen) for c in wanted if (chosen := _finalists(c, samples))]
    final = _Stage(spec, site, folder / "final.jsonl", seed, FINAL, observer)
    last = final.take([(c, names) for c, names in finalists if len(names) > 1], missing)
    decided = [
        _best(spec, c, names, last if len(names) > 1 else samples, screening.machine)
        for c, names in finalists
    ]
    return [best for best in decided if best is not None], list(missing)


def samples_of(spec: Specification, families: Sequence[str], unsearched: bool = False) -> int:
    """How many samples a search takes at most, canaries included."""
    wanted = contests(spec, families, unsearched)
    stages = 0
    for family in dict.fromkeys(spec.family(c.cell) for c in wanted):
        own = [c for c in wanted if spec.family(c.cell) == family]
        stages += sum(len(c.settings) for c in own) * (SCREENING + 1) + SCREENING
        stages += len(own) * (FINALISTS + 1) * (FINAL + 1) + FINAL
    return stages


@dataclass
class _Stage:
    """One session of the search."""

    spec: Specification
    site: Site
    path: Path
    seed: int
    blocks: int
    observer: Observer
    machine: str = ""

    def take(
        self, wanted: Sequence[tuple[Contest, list[str]]], missing: dict[str, None]
    ) -> list[Sample]:
        measurements = [m for c, names in wanted for n in names if (m := self._of(c, n, missing))]
        if not measurements:
            return []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with Store(self.path) as store:
            session = Session(
                measurements,
                Stopping(minimum=self.blocks, maximum=self.blocks, checks=()),
                store,
                self.seed,
                self.site.scratch,
                observer=self.observer,
                name="peers-search",
            )
            if session.run().reason == "interrupted":
                raise KeyboardInterrupt
            self.machine = machine(list(store.results.provenances.values()))
            return store.samples

    def _of(self, contest: Contest, name: str, missing: dict[str, None]) -> Measurement | None:
        competitor = Competitor(
            name, contest.library.title, "library", contest.key,
            self.spec.cells.work[contest.cell.work].program, contest.settings[name],
        )  # fmt: skip
        try:
            return measurement(self.spec, self.site, contest.cell, competitor)
        except MissingError as why:
            missing[str(why)] = None
            return None


def _rates(contest: Contest, name: str, samples: Sequence[Sample]) -> list[float]:
    """Of a setting, warm-ups too; none if a sample failed: such a setting is not used."""
    own = [s for s in samples if (s.cell, s.variant, s.canary) == (contest.cell.name, name, False)]
    rates = [r for s in own if (r := s.rate("application")) is not None]
    return rates if len(rates) == len(own) else []


def _finalists(contest: Contest, samples: Sequence[Sample]) -> list[str]:
    """The default, and the best of those that may be better: by their better sample, since noise
    only ever slows."""
    rated = {n: max(r) for n in contest.settings if (r := _rates(contest, n, samples))}
    least = rated.get(contest.default, 0.0) * (1 + MARGIN)
    others = sorted((n for n in rated if rated[n] > least), key=lambda n: -rated[n])
    return [contest.default, *others[:FINALISTS]] if rated else []


def _best(
    spec: Specification, contest: Contest, names: list[str], samples: Sequence[Sample], machine: str
) -> Best | None:
    medians = {n: statistics.median(r) for n in names if (r := _rates(contest, n, samples))}
    if not medians:
        return None
    base = medians.get(contest.default)
    top = max(medians, key=lambda n: medians[n])
    if base is not None and medians[top] <= base * (1 + MARGIN):
        top = contest.default
    return Best(
        family=spec.family(contest.cell),
        access=contest.cell.access,
        ranks=contest.cell.ranks,
        library=contest.key,
        setting=contest.settings[top],
        ratio_to_default=round(medians[top] / base, 3) if base else 0.0,
        found=date.today().isoformat(),
        machine=machine,
    )


def elsewhere(bests: Bests, here: str) -> list[str]:
    """A notice where settings were searched on another machine than this; else none."""
    others = sorted({b.machine for b in bests.best if b.machine != here})
    if not others:
        return []
    return [f"best settings of this machine: they were searched on {' and on '.join(others)}"]


def machine(provenances: Sequence[Provenance]) -> str:
    """What the settings were found on, as far as they depend on it."""
    if not provenances:
        return ""
    p = provenances[-1]
    model = getattr(p, "cpu_model", None) or "unknown CPU"
    kind = p.file_system.get("type", "?")
    return f"{p.cpus} x {model}, {p.memory_bytes / 2**30:.0f} GiB, {kind}, Linux {p.kernel}"


def merged(before: Bests, found: Sequence[Best]) -> Bests:
    """What was found replaces what was known of the same."""
    known = {_place(b): b for b in before.best}
    known |= {_place(b): b for b in found}
    return Bests(best=list(known.values()))


def _place(best: Best) -> tuple[str, str, int, str]:
    return (best.family, best.access, best.ranks, best.library)


def as_toml(bests: Bests) -> str:
    """best.toml."""
    return _HEAD + "".join(_entry(best) for best in bests.best)


def _entry(best: Best) -> str:
    setting = ", ".join(f'{k} = "{v}"' for k, v in best.setting.items())
    values = {
        "family": f'"{best.family}"',
        "access": f'"{best.access}"',
        "ranks": str(best.ranks),
        "library": f'"{best.library}"',
        "setting": f"{{ {setting} }}" if setting else "{}",
        "ratio_to_default": str(best.ratio_to_default),
        "found": f'"{best.found}"',
        "machine": f'"{best.machine}"',
    }
    return "\n[[best]]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())
