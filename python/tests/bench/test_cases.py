"""Cases: parameters are checked before anything runs, and make the command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock.bench import cases
from penstock.bench.cases import Case, Programs, check, measurement, of_plan
from penstock.bench.execute import execute
from penstock.errors import ArgumentError


@pytest.fixture(autouse=True)
def where(native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE_DIR", str(native))


def one(**parameters: object) -> Case:
    return Case("c", "v", parameters=parameters)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bufsiz": 1}, "no parameter bufsiz; did you mean bufsize?"),
        ({"rank": 1}, "no parameter rank; did you mean ranks?"),
        ({"quux": 1}, "penstock-measure-threads --help lists them all"),
        ({"file": "x"}, "file is given by penstock bench itself"),
        ({"bufsize": "5 apples"}, "bufsize must be a size such as"),
        ({"iters": "many"}, "iters must be a whole number, 0 or more, got 'many'"),
        ({"iters": True}, "iters must be a whole number"),
        ({"comptime": -1}, "comptime must be seconds, 0 or more"),
        ({"comptime": float("inf")}, "comptime must be seconds, 0 or more, got inf"),
        ({"sync_each": 1}, "sync_each must be true or false, got 1"),
        ({"hint": "a=b"}, "hint must be a list of texts"),
        ({"files": "per-worker"}, r"must be one of .* \(did you mean per_worker\?\)"),
        ({"pattern": 3}, "pattern must be text, got 3"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as raised:
        check([one(**parameters)], Programs(), "sweep.toml")
    assert str(raised.value).startswith("sweep.toml")


def test_good_parameters_pass() -> None:
    good = one(bufsize="64KiB", iters=3, comptime=0.5, sync_each=True, hint=["a=b"], verify="all")
    check([good], Programs(), "sweep.toml")


def test_a_measurement_is_a_command(tmp_path: Path) -> None:
    made = measurement(one(bufsize="64KiB", sync_each=True), Programs(), tmp_path, 5.0)
    assert made.command[1:] == [
        *("--file", str(tmp_path / cases.DATA)),
        *("--bufsize", "64KiB", "--sync-each"),
    ]
    assert made.timeout_s == 5.0


@pytest.mark.parametrize("route", ["engine", "mpi"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_that_did_not_find_each_other_are_no_sample(
    native: Path, tmp_path: Path, route: str, ranks: int
) -> None:
    shutil.copy(native / "penstock-measure-threads", native / "penstock-measure-mpich")
    case = Case("c", "v", "mpich", ranks, parameters={"route": route})
    made = measurement(case, Programs("env RANKS={ranks}"), tmp_path, 30.0)
    ran = execute(made.command, {**os.environ, **made.env}, made.timeout_s)
    assert ran.failed is None
    why = made.expect(ran)
    assert (why is None) == (ranks == 1)
    assert why is None or why.startswith("it ran as 1 of 2 ranks: the launcher is not of the")


def test_a_case_can_be_read_back_from_the_results() -> None:
    case = Case("c", "v", "mpich", 2, "S1A", ("-l",), {"X": "1"}, {"iters": 3})
    assert of_plan({"cell": "c", "variant": "v", "parameters": case.as_plan()}) == case
