"""What is planned of a paper here, and what its results say of that later."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench import cases
from penstock.bench.cases import Programs
from penstock.bench.sweep import Request
from penstock.errors import LaunchError
from penstock.reproduce import cost, plan


def without_mpich(_: Programs, mpi: str) -> None:
    if mpi == "mpich":
        raise LaunchError("no mpiexec of mpich is in PATH", exit_code=1)


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
