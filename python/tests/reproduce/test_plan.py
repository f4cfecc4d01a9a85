"""What is planned of a paper here, and what its results say of that later."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import cases
from penstock.bench.cases import Programs
from penstock.bench.sample import Header
from penstock.bench.sweep import Request, Sweep
from penstock.errors import LaunchError
from penstock.reproduce import cost, plan


def without_mpich(_: Programs, mpi: str) -> None:
    if mpi == "mpich":
        raise LaunchError("no mpiexec of mpich is in PATH", exit_code=1)


def as_begun(sweep: Sweep) -> None:
    """Results that have a plan, and no sample yet."""
    measurements = [m.as_plan() for m in sweep.measurements()]
    header = Header(
        penstock="0", created="2026-11-30T00:00:00+00:00", name=sweep.name, seed=sweep.seed,
        plan={"measurements": measurements, **sweep.keeps},
    )  # fmt: skip
    sweep.samples_file.parent.mkdir(parents=True)
    sweep.samples_file.write_text(header.model_dump_json(by_alias=True) + "\n")


@pytest.mark.parametrize("budget_s", [None, 3600.0])
def test_results_keep_what_could_not_be_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, budget_s: float | None
) -> None:
    monkeypatch.setattr(Programs, "of", without_mpich)
    monkeypatch.setattr(cases, "check", lambda *_: None)
    monkeypatch.setattr(cost, "device_bytes_per_s", lambda _: 1e8)
    request = Request(directory=tmp_path, out=tmp_path / "r", budget_s=budget_s)
    planned = plan.prepare("benson2003", "quick", request)
    assert {case.mpi for case in planned.sweep.cases} == {"none"}
    chosen_by = {} if budget_s is None else {"device_bytes_per_s": {"": 1e8}}
    assert planned.sweep.keeps == {"absent_mpis": ["mpich"], **chosen_by}


def test_a_session_with_a_budget_goes_on_by_the_rates_that_it_was_planned_by(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cases, "check", lambda *_: None)
    request = Request(directory=tmp_path, out=tmp_path / "r", budget_s=3600.0)
    monkeypatch.setattr(cost, "device_bytes_per_s", lambda _: 1e8)
    first = plan.prepare("barro2002", "quick", request)
    as_begun(first.sweep)
    monkeypatch.setattr(cost, "device_bytes_per_s", lambda _: 1e9)
    again = plan.prepare("barro2002", "quick", request)
    assert first.rates == again.rates == {"": 1e8}
    assert again.sweep.keep == first.sweep.keep
