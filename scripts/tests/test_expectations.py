"""What the runner of the libraries makes of a program's words, the job's log and two files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "lib"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "libraries"))
import run
import same_file
from expectations import fails_alone, unforeseen
from matrix_record import Recorder
from mpis import MPIS
from programs import LIBRARY_PROGRAMS
from run_mpi import Bench, Outcome, Suite
from verdicts import Verdict, verdicts_of

BYTES = {"engine_bytes": 7, "passthrough_bytes": 0, "traffic": {"staged_bytes": 4}}
FILE = {"path": "/x/table.h5", "degraded": {}} | BYTES


def outcome(text: str, *files: dict[str, object], code: int = 0) -> Outcome:
    log = {"mpi_library": "MPICH Version: 4.0.2", "files": list(files)}
    return Outcome(code, text, "last words", 1.0, False, [log])


def test_a_case_has_the_bytes_of_its_own_file() -> None:
    text = "library HDF5 1.10.8\nbegin table\ncase table ok\n"
    found = verdicts_of(outcome(text, FILE, FILE | {"path": "/x/other.h5"}))
    assert (found["table"].engine_bytes, found["table"].behind_bytes) == (7, 4)
    assert (found["table"].library, found["table"].mpi_version) == ("HDF5 1.10.8", "4.0.2")
    assert found["table"].log_problems("hdf5", "mpich") == []


def test_the_case_that_ran_when_the_job_ended_has_failed() -> None:
    found = verdicts_of(outcome("begin a\ncase a ok\nbegin b\n", code=9))
    assert found["b"].word == "failed"
    assert "code 9" in found["b"].reason


def test_a_write_that_the_log_does_not_know_is_a_problem() -> None:
    found = verdicts_of(outcome("case table ok\n"))
    assert "was Penstock there?" in found["table"].log_problems("hdf5", "mpich")[0]


@pytest.mark.parametrize("degraded", [{}, {"write_at: not taken over": 1}])
def test_bytes_that_pass_through_unforeseen_are_a_problem(degraded: dict[str, int]) -> None:
    file = FILE | {"passthrough_bytes": 5, "degraded": degraded}
    assert verdicts_of(outcome("case table ok\n", file))["table"].log_problems("hdf5", "mpich")


def test_what_is_listed_is_foreseen() -> None:
    assert unforeseen("mpi4py", "mpich", ["write_shared_c: not taken over"]) == []
    assert unforeseen("hdf5", "mpich", ["write_shared_c: not taken over"]) != []
    known = fails_alone("visibility", "mpich5", "independent_on_nfs", 2)
    assert known is not None
    assert known.cured


def test_files_may_differ_only_where_penstock_left_a_hole(tmp_path: Path) -> None:
    for name, other in (("same", b"abc"), ("hole", b"a\0c"), ("wrong", b"axc"), ("short", b"ab")):
        alone, served = tmp_path / f"{name}.1", tmp_path / f"{name}.2"
        alone.write_bytes(b"abc")
        served.write_bytes(other)
        assert (same_file.compare(alone, served) == []) == (name in ("same", "hole"))


@pytest.mark.parametrize("spoilt", [False, True])
def test_the_example_leaves_no_hole(monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    waves = b"w" * 8192

    def verdict(_: run.Job, file: Path, method: str | None) -> Verdict:
        file.parent.mkdir()
        lost = 4096 if spoilt and method else 0
        file.write_bytes(waves[lost:] + bytes(lost))
        return Verdict("waves", "ok", engine_bytes=len(waves) if method else 0)

    monkeypatch.setattr(run, "wave_verdict", verdict)
    suite = Suite("libraries openmpi")
    job = run.Job(Bench(Path(), MPIS["openmpi"]), LIBRARY_PROGRAMS["example"], 2, [], {})
    run.run_example(job, run.Report(suite, Recorder(None)))
    assert (len(suite.failures), suite.passed) == ((1, 0) if spoilt else (0, 1))
