"""Sweeps that go on with results: which are theirs, and what is said of the others."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from made_samples import header
from penstock.bench import quick, sweep
from penstock.bench.cases import Case
from penstock.bench.sample import as_line
from penstock.bench.statistics import Stopping
from penstock.bench.sweep import Request
from penstock.errors import ArgumentError

TWO_THREADS = Case("contiguous", "penstock, threads", parameters={"threads": 2})
TWO_RANKS = Case("contiguous", "penstock", "mpich", 2)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    """A quick look's, with a results directory whose name has a blank."""
    (tmp_path / "my results").mkdir()
    return Request(directory=tmp_path, out=tmp_path / "my results")


def begun(
    request: Request,
    cases: Sequence[Case],
    stopping: Stopping = quick.STOPPING,
    name: str = "samples.jsonl",
    **more: Any,
) -> None:
    """Results in which nothing was measured yet."""
    measurements = [
        {"cell": case.cell, "variant": case.variant, "command": [], "parameters": case.as_plan()}
        for case in cases
    ]
    plan = {"measurements": measurements, "rate": "application", "stopping": asdict(stopping)}
    assert request.out is not None
    (request.out / name).write_text(as_line(header(plan={**plan, **more})))


def of(*mpi: str, **workers: int) -> dict[str, Any]:
    """What the results of a quick look keep of what was said."""
    return quick.record(quick.Wish(Path(), mpi=mpi, **workers))


def test_a_launcher_of_a_sweep_without_ranks_is_refused(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "sizes.toml").write_text("[sweep]\nthreads = [1, 2]\n")
    given = replace(request_, matrix=tmp_path / "sizes.toml", launcher="true")
    with pytest.raises(ArgumentError, match="--launcher is for MPI ranks, and every mpi is none"):
        sweep.prepare(given)


@pytest.mark.parametrize(
    ("cases", "kept", "given"),
    [
        ([TWO_RANKS, TWO_THREADS], of(), {}),
        ([TWO_RANKS, TWO_THREADS], of(), {"mpi": ("none", "mpich"), "ranks": 2, "threads": 2}),
        ([TWO_RANKS, TWO_THREADS], {}, {"threads": 2}),  # of an earlier version
        ([TWO_THREADS], of("none", ranks=2), {"mpi": ("none",), "ranks": 2}),
        ([TWO_RANKS], of("mpich", "none"), {"mpi": ("none", "mpich")}),  # none had no time
        ([TWO_RANKS], of("mpich", "none"), {}),
    ],
)
def test_a_quick_look_goes_on_with_what_was_chosen_then(
    request_: Request, cases: list[Case], kept: dict[str, Any], given: dict[str, Any]
) -> None:
    begun(request_, cases, **kept)
    assert sweep.prepare(replace(request_, **given)).cases == tuple(cases)


@pytest.mark.parametrize("kept", [of(), {}])
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mpi": ("none",)}, r"its ways are of mpich, none, not none \(--mpi\)"),
        ({"mpi": ("openmpi", "none")}, r"its ways are of mpich, none, not openmpi, none \(--mpi\)"),
        ({"ranks": 3}, r"it has 2 workers, not 3 \(--ranks\)"),
        ({"threads": 1}, r"it has 2 workers, not 1 \(--threads\)"),
    ],
)
def test_a_quick_look_of_other_ways_is_refused(
    request_: Request, kept: dict[str, Any], given: dict[str, Any], why: str
) -> None:
    begun(request_, [TWO_RANKS, TWO_THREADS], **kept)
    with pytest.raises(ArgumentError, match=f"results of another plan: {why}"):
        sweep.prepare(replace(request_, **given))


def test_ranks_and_threads_are_one_number(request_: Request, tmp_path: Path) -> None:
    says = r"the same number, for ways of both are compared, got 2 and 4: give one of them"
    with pytest.raises(ArgumentError, match=f"--ranks and --threads must be {says}"):
        sweep.prepare(replace(request_, ranks=2, threads=4))
    (tmp_path / "sizes.toml").write_text("")
    with pytest.raises(ArgumentError, match="--ranks is for the quick look"):
        sweep.prepare(replace(request_, ranks=2, threads=4, matrix=tmp_path / "sizes.toml"))


@pytest.mark.parametrize("stopping", [quick.STOPPING, Stopping(3, 3, (3,))])
def test_a_quick_look_is_known_by_what_it_kept(request_: Request, stopping: Stopping) -> None:
    begun(request_, [TWO_THREADS], stopping, **of())
    assert sweep.prepare(request_).keeps == of()


def test_a_quick_look_that_goes_on_keeps_its_ways_and_this_times_budget(request_: Request) -> None:
    first = quick.record(quick.Wish(Path(), 20.0, ("none",), threads=2))
    begun(request_, [TWO_THREADS], **first, budget_s=18.0)
    for budget_s, words in ((None, []), (90.0, ["--budget", "90s"])):
        made = sweep.prepare(replace(request_, budget_s=budget_s))
        assert quick.words(made.keeps) == ["--mpi", "none", "--threads", "2", *words]


def test_what_only_a_pilot_asked_is_not_where_samples_are_from(
    request_: Request, native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    (native / "penstock-measure-mpich").touch()
    begun(request_, [TWO_THREADS], **of())
    made = sweep.prepare(replace(request_, launcher="true"))
    assert made.programs.of("mpich").launcher.flavour == "mpich"
    assert [one["flavour"] for one in made._collector().keywords["mpi"]] == ["threads"]


def test_results_of_a_name_that_is_not_utf8_can_be_written(
    request_: Request, native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setattr(quick, "_by_pilot", lambda *_: quick.Choice([TWO_THREADS]))
    made = sweep.prepare(replace(request_, out=tmp_path / "a\udcff", mpi=("none",)))
    assert made.name == "a\ufffd"
    assert made.name in as_line(header(name=made.name))


def test_a_quick_look_does_not_end_the_pilot_of_another_directory(
    request_: Request,
    native: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leftover: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    """Of one that stores its samples where this one does: a directory of the same name, say."""
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))
    monkeypatch.setattr(quick, "_by_pilot", lambda *_: quick.Choice([TWO_THREADS]))
    (tmp_path / "other").mkdir()
    here, other = (
        replace(request_, directory=where, mpi=("none",))
        for where in (tmp_path, tmp_path / "other")
    )
    trying = leftover(sweep.prepare(other).mark)
    assert sweep.prepare(here).cases == (TWO_THREADS,)
    assert trying.poll() is None
    sweep.prepare(other)
    assert trying.wait(timeout=10) == -signal.SIGKILL


def test_a_quick_look_does_not_go_on_with_a_sweep(request_: Request) -> None:
    begun(request_, [TWO_THREADS], Stopping())
    with pytest.raises(ArgumentError, match="the results of a sweep, not of a quick") as raised:
        sweep.prepare(request_)
    assert shlex.split(str(raised.value))[-3:] == ["penstock", "report", str(request_.out)]


def test_parts_are_read_by_the_command_that_is_told(request_: Request, tmp_path: Path) -> None:
    begun(request_, [TWO_THREADS], name="samples.0.jsonl")
    (tmp_path / "sizes.toml").write_text("rounds = 3\n")
    for matrix in (None, tmp_path / "sizes.toml"):
        with pytest.raises(ArgumentError, match="read them with penstock report") as raised:
            sweep.gathered(replace(request_, matrix=matrix))
        words = shlex.split(str(raised.value).replace(",", " "))
        assert words[words.index("report") + 1] == str(request_.out)
