"""The ways to write that a quick look may try, from what the measuring programs list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.bench.cases import Case

_ITERS = 8


@dataclass(frozen=True)
class Way:
    """A candidate: how it is started and with which parameters, whatever the cell."""

    name: str
    mpi: str
    ranks: int
    parameters: Mapping[str, Any]
    syncs: bool = False  # a strategy whose point is when it syncs: twice a file here

    @property
    def plain(self) -> bool:
        """What runs without choosing a method."""
        return "method" not in self.parameters

    @property
    def is_default(self) -> bool:
        """Whether Penstock writes, by its default method."""
        return self.plain and self.parameters.get("route") == "engine"

    def case(self, cell: str, pattern: str, total_bytes: int, workers: int) -> Case:
        """This way of doing a cell's work."""
        bufsize = max(4096, total_bytes // workers // _ITERS // 4096 * 4096)
        given = {"pattern": pattern, "bufsize": bufsize, "iters": _ITERS, "regime": "asis"}
        given |= self.parameters
        if self.syncs:
            given["syncsize"] = bufsize * _ITERS // 2
        return Case(cell, self.name, self.mpi, self.ranks, parameters=given)


def labelled(ways: Sequence[Way], mpi: str, mpis: Sequence[str]) -> list[Way]:
    """The ways of one MPI, called by it where there are several: no two may have one name."""
    others = [Path(other).name for other in mpis if other not in (mpi, "none")]
    if mpi == "none" or not others:
        return list(ways)
    label = mpi if Path(mpi).name in others else Path(mpi).name
    own = f"{label} alone"
    return [w if w.name == own else replace(w, name=f"{w.name}, {label}") for w in ways]


def in_turn(by_mpi: Sequence[Sequence[Way]]) -> list[Way]:
    """Of each MPI what users have now, then of each what else there is: a budget cuts the end."""
    first = [way for ways in by_mpi for way in ways if way.plain]
    return first + [way for ways in by_mpi for way in ways if not way.plain]


def thread_ways(workers: int, listed: Mapping[str, Any]) -> list[Way]:
    """Threads of one process, writing by the engine and by write(2)."""
    own = {"threads": workers, "route": "posix", "files": "per_worker"}
    engine = engine_ways("none", workers, listed)
    return [engine[0], Way("file per thread, write(2)", "none", 1, own), *engine[1:]]


def mpi_ways(mpi: str, ranks: int, listed: Mapping[str, Any]) -> list[Way]:
    """Ranks, writing by the engine, by the MPI library itself and by write(2)."""
    library = {"route": "mpi", "access": "collective"}
    own = {"route": "posix", "files": "per_worker"}
    engine = engine_ways(mpi, ranks, listed)
    return [
        engine[0],
        Way(f"{Path(mpi).name} alone", mpi, ranks, library),
        Way("file per process, write(2)", mpi, ranks, own),
        *engine[1:],
    ]


def engine_ways(mpi: str, workers: int, listed: Mapping[str, Any]) -> list[Way]:
    """The engine's default, each algorithm by name, named strategies, and other mechanisms."""

    def way(name: str, method: str | None, syncs: bool = False) -> Way:
        parameters: dict[str, Any] = {"route": "engine"} | ({"method": method} if method else {})
        if mpi == "none":
            return Way(f"{name}, threads", mpi, 1, {**parameters, "threads": workers}, syncs)
        return Way(name, mpi, workers, parameters, syncs)

    default = str(listed.get("default_method", ""))
    strategies = [
        way(one["name"], one["name"], syncs=True)
        for one in _available(listed, "strategies")
        if one.get("least_workers", 1) <= workers
    ]
    algorithms = [
        way(one["name"], one["name"])
        for one in _available(listed, "algorithms")
        if one["name"] not in default and one["name"] != "auto"
    ]
    mechanisms = [
        way(one["name"], _with_mechanism(default, one, listed))
        for one in _available(listed, "mechanisms")
        if one.get("writes_file") and one["name"] not in default.split(" + ")
    ]
    return [way("penstock", None), *algorithms, *strategies, *mechanisms]


def _with_mechanism(method: str, mechanism: Mapping[str, Any], listed: Mapping[str, Any]) -> str:
    """A method with another mechanism, the third of its five choices.

    One that needs whole blocks goes with the first algorithm that owns them.
    """
    algorithm, exchange, _, *rest = method.split(" + ")
    if mechanism.get("alignment_bytes", 1) > 1:
        owners = [a["name"] for a in _available(listed, "algorithms") if a.get("owns_blocks")]
        algorithm = owners[0] if owners else algorithm
    return " + ".join([algorithm, exchange, mechanism["name"], *rest])


def _available(listed: Mapping[str, Any], family: str) -> list[Mapping[str, Any]]:
    return [one for one in listed.get(family, []) if one.get("available")]
