"""The quick look: which ways are candidates, and how much fits into a minute."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import quick
from penstock.bench.cases import Programs
from penstock.bench.execute import ProgramResult
from penstock.bench.programs import Launcher, Program
from penstock.bench.quick import (
    Pilot,
    Tried,
    Wish,
    choose,
    fit,
)
from penstock.bench.settle import Scratch
from penstock.bench.ways import Way, in_turn, labelled, mpi_ways, thread_ways
from penstock.errors import ArgumentError, LaunchError, WriteError

MIB = 2**20


Listed = dict[str, Any]


@pytest.fixture
def listed(native: Path) -> Listed:
    """What the stand-in lists: two algorithms, S1A, two further mechanisms."""
    return Program(native / "penstock-measure-threads", Launcher("threads")).ask("--list")


def pilot(directory: Path) -> Pilot:
    return Pilot(directory / ".penstock-bench-pilot", "of the tests of the quick look")


def tried(*walls_s: float) -> list[Tried]:
    return [Tried(Way(f"w{i}", "none", 1, {}), s) for i, s in enumerate(walls_s)]


def ran(wall_s: float, failed: str | None = None) -> ProgramResult:
    return ProgramResult(0, None, "", wall_s, failed)


def test_ways_come_from_what_the_program_lists(listed: Listed) -> None:
    names = [way.name for way in thread_ways(2, listed)]
    assert names == [
        "penstock, threads",
        "file per thread, write(2)",
        "two_phase, threads",
        "S1A, threads",
        "mmap, threads",
        "uring, threads",
    ]


def test_a_mechanism_is_put_into_the_default_method(listed: Listed) -> None:
    way = thread_ways(2, listed)[-1]
    assert way.parameters["method"] == "auto + shm + uring + anticipate=1MiB + written"


def test_a_mechanism_of_whole_blocks_goes_with_an_algorithm_that_owns_them(listed: Listed) -> None:
    way = next(w for w in thread_ways(2, listed) if w.name.startswith("mmap"))
    assert way.parameters["method"] == "two_phase + shm + mmap + anticipate=1MiB + written"


@pytest.mark.parametrize(
    "mpis", [("mpich", "openmpi"), ("/opt/a/bin/mpiexec", "/opt/b/bin/mpiexec"), ("mpich", "none")]
)
def test_ways_of_several_mpis_have_names_of_their_own(
    listed: Listed, mpis: tuple[str, str]
) -> None:
    made = [thread_ways(2, listed) if m == "none" else mpi_ways(m, 2, listed) for m in mpis]
    ways = in_turn([labelled(own, m, mpis) for own, m in zip(made, mpis, strict=True)])
    names = [way.name for way in ways]
    assert len(set(names)) == len(names)
    assert ("penstock" in names) == ("none" in mpis)


def test_what_users_have_now_comes_first(listed: Listed) -> None:
    ways = in_turn([mpi_ways("mpich", 2, listed), thread_ways(2, listed)])
    assert [way.name for way in ways[:5]] == [
        "penstock",
        "mpich alone",
        "file per process, write(2)",
        "penstock, threads",
        "file per thread, write(2)",
    ]


def test_a_strategy_syncs_within_the_file(listed: Listed) -> None:
    strategy = next(w for w in thread_ways(2, listed) if w.name.startswith("S1A"))
    case = strategy.case("c", "contiguous", 16 * MIB, 2)
    assert case.parameters["bufsize"] == MIB
    assert case.parameters["syncsize"] == 4 * MIB


def test_a_fast_machine_gets_both_cells_and_large_samples() -> None:
    ways, cells, total = fit(tried(*[0.05] * 9), 1e-9, 48.0, 2**40)
    assert (len(ways), len(cells)) == (6, 2)
    assert total >= 64 * MIB


def test_a_slow_machine_gets_fewer_of_everything() -> None:
    ways, cells, total = fit(tried(*[1.2] * 9), 1e-7, 48.0, 2**40)
    assert len(ways) * len(cells) < 12
    assert total <= 4 * MIB


def test_the_slowest_machine_gets_one_way_in_one_cell() -> None:
    ways, cells, total = fit(tried(9.0, 9.0), 1e-6, 48.0, 2**40)
    assert (len(ways), len(cells), total) == (1, 1, 4 * MIB)


def test_samples_leave_room_on_the_disk() -> None:
    assert fit(tried(0.05), 1e-9, 48.0, 3 * MIB)[2] == 2 * MIB


@pytest.mark.parametrize("wall_s", [0.02, 0.1, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("per_byte_s", [1e-9, 1e-8, 1e-7])
def test_what_was_chosen_fits_the_budget(wall_s: float, per_byte_s: float) -> None:
    ways, cells, total = fit(tried(*[wall_s] * 6), per_byte_s, 48.0, 2**40)
    samples = len(ways) * len(cells) * (1 + quick._PLANNED_ROUNDS) + quick._PLANNED_ROUNDS
    more_s = max(total - 4 * MIB, 0) * per_byte_s
    assert samples * (wall_s + more_s) <= 48.0


@pytest.mark.parametrize(
    ("large", "most_bytes", "says"),
    [
        (ran(1.4), 32 * MIB, ""),  # sooner than the smaller one
        (ran(0.1, "no room"), 4 * MIB, "samples stay small, for one of 16.0 MiB failed: no room"),
    ],
)
def test_a_larger_try_that_tells_no_speed_makes_no_byte_free(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    large: ProgramResult,
    most_bytes: int,
    says: str,
) -> None:
    monkeypatch.setattr(quick, "_room", lambda _: 2**40)
    monkeypatch.setattr(
        quick._Attempt, "__call__", lambda _, _way, n: large if n > 4 * MIB else ran(1.5)
    )
    attempt = quick._Attempt(1, Programs(), Scratch(tmp_path / "scratch"), "mark")
    ways = [one.way for one in tried(1.5)]
    chosen = quick._by_pilot(Wish(tmp_path), ways, attempt, [])
    parameters = chosen.cases[0].parameters
    assert parameters["bufsize"] * parameters["iters"] <= most_bytes
    assert says in " ".join(chosen.notes)


def test_a_default_that_fails_when_it_is_tried_is_kept_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: Listed
) -> None:
    """Others that fail are told alone: nobody would run them without asking for them."""

    def attempt(_: object, way: Way, _bytes: int) -> ProgramResult:
        failed = way.name in ("penstock, threads", "two_phase, threads")
        return ran(0.1, "no room" if failed else None)

    monkeypatch.setattr(quick._Attempt, "__call__", attempt)
    tries = quick._Attempt(2, Programs(), Scratch(tmp_path / "scratch"), "mark")
    chosen = quick._by_pilot(Wish(tmp_path), thread_ways(2, listed), tries, [])
    assert chosen.failed == {"penstock, threads": "no room"}
    assert chosen.notes[:2] == [
        "without penstock, threads: no room",
        "without two_phase, threads: no room",
    ]
    plan = quick.record(Wish(tmp_path), chosen.failed)
    assert quick.default_failed(quick.going_on(Wish(tmp_path), plan)) == chosen.failed


def test_where_no_way_can_be_tried_nothing_could_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick._Attempt, "__call__", lambda *_: ran(0.1, "no room"))
    tries = quick._Attempt(2, Programs(), Scratch(tmp_path / "scratch"), "mark")
    ways = [one.way for one in tried(0.1, 0.1)]
    with pytest.raises(
        LaunchError, match="no way to write could be measured: without w0: no room; "
    ) as raised:
        quick._by_pilot(Wish(tmp_path), ways, tries, [])
    assert raised.value.exit_code == 1


def test_choosing_tries_each_and_names_what_cannot_run(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setenv("PATH", str(tmp_path))  # no MPI here
    chosen = choose(Wish(tmp_path, threads=2), Programs(), pilot(tmp_path))
    assert {case.cell for case in chosen.cases} == {"contiguous", "interleaved-4KiB"}
    assert {case.parameters["threads"] for case in chosen.cases} == {2}
    assert "ways in 2 cells" in chosen.notes[-1]
    assert not pilot(tmp_path).scratch.exists()


def test_an_mpi_that_was_asked_for_must_be_there(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="no mpiexec of mpich"):
        choose(Wish(tmp_path, mpi=("mpich",)), Programs(), pilot(tmp_path))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ranks": 8}, r"--ranks is for MPI ranks, .* none can be .*--mpi mpich, .*, got 8$"),
        ({"launcher": "myrun"}, r"--launcher is for MPI ranks, and none can .*, got myrun$"),
    ],
)
def test_what_is_for_ranks_is_not_dropped_where_there_is_no_mpi(
    native: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    says: str,
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setenv("PATH", str(tmp_path))
    known = Programs(given.get("launcher"))
    with pytest.raises(ArgumentError, match=says):
        choose(Wish(tmp_path, **given), known, pilot(tmp_path))
    (tmp_path / "mpiexec").write_text("#!/bin/sh\necho HYDRA build details: 4.0\n")
    (tmp_path / "mpiexec").chmod(0o755)
    (tmp_path / "myrun").symlink_to("mpiexec")
    with pytest.raises(LaunchError, match="penstock-measure-mpich is not in"):
        choose(Wish(tmp_path, **given), known, pilot(tmp_path))


def test_a_launcher_is_not_dropped_where_no_ranks_are_asked_for(tmp_path: Path) -> None:
    wish = Wish(tmp_path, mpi=("none",), launcher="myrun")
    with pytest.raises(ArgumentError, match="--launcher is for MPI ranks, and every mpi is none"):
        choose(wish, Programs("myrun"), pilot(tmp_path))


def test_ranks_may_be_said_of_threads(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    chosen = choose(Wish(tmp_path, mpi=("none",), ranks=2), Programs(), pilot(tmp_path))
    assert {case.parameters["threads"] for case in chosen.cases} == {2}


def test_a_directory_that_cannot_be_written_is_named(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    with pytest.raises(WriteError, match=r"makes its files in /proc/.*, and the system refuses"):
        choose(Wish(Path("/proc")), Programs(), pilot(Path("/proc")))


def test_what_a_killed_pilot_left_is_taken_over(
    native: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leftover: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    where = pilot(tmp_path)
    killed = Scratch(where.scratch)
    killed.make()
    (where.scratch / "data.0").touch()
    os.close(killed._marker)  # as the end of its process does
    left = leftover(where.mark)
    chosen = choose(Wish(tmp_path, mpi=("none",), threads=2), Programs(), where)
    assert left.wait(timeout=10) == -signal.SIGKILL
    assert chosen.notes[0] == "1 process of an earlier run was still there and was ended"
    assert not where.scratch.exists()


@pytest.mark.parametrize(
    ("asked_s", "first_asked_s", "first_left_s", "left_s"),
    [
        (quick.BUDGET_S, quick.BUDGET_S, 43.0, 43.0),  # unchanged: nothing is left to go on with
        (100.0, quick.BUDGET_S, 43.0, 93.0),
        (20.0, 20.0, 13.0, 13.0),
        (4.0, 20.0, 13.0, 2.0),
        (50.0, 50.0, 50.0, 50.0),  # of a version that did not count the pilot
    ],
)
def test_a_quick_look_goes_on_with_what_its_pilot_left(
    asked_s: float, first_asked_s: float, first_left_s: float, left_s: float
) -> None:
    plan = quick.record(quick.Wish(Path(), first_asked_s)) | {"budget_s": first_left_s}
    assert quick.left_s(quick.Wish(Path(), asked_s), plan) == left_s
