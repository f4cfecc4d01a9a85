#!/usr/bin/env python3
"""Runs programs on the libraries above MPI-IO: alone, under Penstock, and reads back alone what
Penstock wrote.

A case holds when the program's own checks hold in all three runs, the file is the one that the
MPI library makes alone, and the job's log says that Penstock wrote it: every byte, unless
expectations.toml foresees what passes through.

  run.py --build build/release --mpi mpich [--library hdf5] [--quick | --full] [--record FILE]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from expectations import fails_alone, foreseen, left_out
from matrix_record import Record, Recorder
from mpis import MPIS, Mpi
from programs import (
    LIBRARY_PROGRAMS,
    Library,
    MissingError,
    environment,
    own_driver,
    program,
)
from run_mpi import Bench, Outcome, Penstock, Suite, arguments, launch
from same_file import difference
from verdicts import Verdict, end_problems, how_it_ended, verdicts_of, with_log

METHODS = ("auto", "two_phase(writers=2, cycle=64KiB)")
RELAXED = {"PENSTOCK_VISIBILITY": "relaxed"}  # independent writes go behind, as HDF5 opens files


@dataclass(frozen=True)
class Job:
    """One program on one MPI library with so many ranks."""

    bench: Bench
    library: Library
    ranks: int
    words: list[str]
    environment: Mapping[str, str]
    timeout_s: float = 300
    relaxed: bool = False

    def run(self, *more: str, method: str | None = None) -> Outcome:
        asked = RELAXED if self.relaxed else {}
        penstock = None if method is None else Penstock(method, require=False, environment=asked)
        return launch(
            self.bench,
            self.ranks,
            [*self.words, *more],
            penstock=penstock,
            environment=self.environment,
            timeout_s=self.timeout_s,
        )

    def complete(
        self, found: dict[str, Verdict], names: Iterable[str], *more: str, method: str | None = None
    ) -> None:
        """Runs one by one the cases that a crash or a hang before them kept from running."""
        for name in names:
            if name not in found:
                one = verdicts_of(replace(self, timeout_s=20).run(*more, name, method=method))
                found[name] = one.get(name, Verdict(name, "failed", "ends without a word"))


@dataclass(frozen=True)
class Report:
    """Where the results go."""

    suite: Suite
    recorder: Recorder

    def add(self, job: Job, case: str, problems: list[str], record: Record) -> None:
        name = f"{job.library.name} {case} on {job.ranks}"
        if record.outcome == "skipped":
            self.suite.skip(name, record.reason)
        else:
            self.suite.check(name, problems)
        self.recorder.add(record)

    def add_end(self, job: Job, how: str, problems: list[str]) -> None:
        """Of a job whose cases have spoken: no line of the matrix."""
        self.suite.check(f"{job.library.name} ends on {job.ranks} {how}", problems)


def record_of(job: Job, served: Verdict, outcome: str, reason: str = "") -> Record:
    return Record(
        suite="libraries",
        mpi=job.bench.mpi.name,
        binding=job.library.binding,
        library=served.library or job.library.title,
        case=served.case,
        ranks=job.ranks,
        outcome=outcome,
        engine_bytes=served.engine_bytes,
        passthrough_bytes=served.passthrough_bytes,
        reason=reason,
        mpi_version=served.mpi_version,
    )


# ---- judging ----


def judge(
    job: Job, alone: Verdict, served: Verdict, file_problems: list[str]
) -> tuple[list[str], Record]:
    """What is wrong with a case under Penstock, and its line for the matrix."""
    known = fails_alone(job.library.name, job.bench.mpi.name, served.case, job.ranks)
    problems = baseline_problems(alone, known is not None)
    if known is not None and not known.cured:
        return problems, record_of(job, served, "expected_failure", known.reason)
    if served.word == "skipped" and alone.word == "skipped":
        return problems, record_of(job, served, "skipped", f"leaves itself out: {served.reason}")
    if served.word != "ok":
        problems.append(f"under Penstock: {served.reason or served.word}")
    problems += file_problems + served.log_problems(job.library.name, job.bench.mpi.name)
    if problems:
        return problems, record_of(job, served, "failed", "; ".join(problems)[:400])
    if served.passthrough_bytes > 0:
        why = "; ".join(foreseen(job.library.name, job.bench.mpi.name, served.degraded))
        return problems, record_of(job, served, "passed_through", why)
    return problems, record_of(job, served, "passed")


def baseline_problems(alone: Verdict, listed: bool) -> list[str]:
    if alone.word == "failed" and not listed:
        return [
            f"fails without Penstock too, and expectations.toml does not say so: {alone.reason}"
        ]
    if alone.word == "ok" and listed:
        return ["holds without Penstock, and expectations.toml says that it fails"]
    return []


# ---- programs that write files and read them back ----


def behind_problems(job: Job, served: Verdict) -> list[str]:
    """HDF5's metadata alone is written by independent calls: there is something in every case."""
    if (job.relaxed or served.case.startswith("deferred")) and served.behind_bytes == 0:
        return ["none of it went behind"]
    return []


def run_files(job: Job, method: str, report: Report) -> None:
    how = f"by {method}, relaxed" if job.relaxed else f"by {method}"
    with tempfile.TemporaryDirectory(prefix="penstock-libraries-") as directory:
        places = {x: Path(directory) / x for x in ("alone", "served")}
        for place in places.values():
            place.mkdir()
        ended_alone = job.run("write", str(places["alone"]))
        ended = job.run("write", str(places["served"]), method=method)
        report.add_end(job, how, end_problems(ended_alone, ended))
        alone, served = verdicts_of(ended_alone), verdicts_of(ended)
        read = verdicts_of(job.run("read", str(places["served"])))
        names = sorted(alone | served)
        job.complete(alone, names, "write", str(places["alone"]))
        job.complete(served, names, "write", str(places["served"]), method=method)
        job.complete(read, names, "read", str(places["served"]))
        for case in names:
            file_problems = behind_problems(job, served[case])
            if read[case].word != "ok":
                file_problems.append("what was written under Penstock does not read back")
            if alone[case].word == "ok":
                file_problems += difference(places["alone"], places["served"], case)
            problems, record = judge(job, alone[case], served[case], file_problems)
            report.add(job, f"{case} {how}", problems, record)


# ---- mpi4py's own tests ----


def run_tests(job: Job, report: Report) -> None:
    ended_alone, ended = job.run(), job.run(method="auto")
    report.add_end(job, "by auto", end_problems(ended_alone, ended))
    alone, served = verdicts_of(ended_alone), verdicts_of(ended)
    names = sorted(alone | served)
    job.complete(alone, names)
    job.complete(served, names, method="auto")
    for case in names:
        problems, record = judge(job, alone[case], served[case], [])
        report.add(job, case, problems, record)


# ---- PnetCDF's own driver ----


def run_own_driver(bench: Bench, ranks: int, report: Report) -> None:
    """A job whose PnetCDF writes past MPI-IO is told so, and which setting changes it."""
    library = LIBRARY_PROGRAMS["pnetcdf"]
    words = own_driver(bench.build, bench.mpi)
    job = Job(bench, library, ranks, words, environment(bench.build, library, bench.mpi))
    with tempfile.TemporaryDirectory(prefix="penstock-libraries-") as directory:
        out = job.run("write", directory, method="auto")
    problems = [] if out.code == 0 and not out.hung else [f"exit code {out.code}"]
    for word in ("PnetCDF 1.15.1", "PNETCDF_HINTS=nc_driver=mpiio"):
        if out.errors.count(word) != 1:
            problems.append(f"said {out.errors.count(word)} times, not once: {word}")
    outcome = "failed" if problems else "passed_through"
    reason = "; ".join(problems) or "PnetCDF's own driver calls no MPI-IO, and the job is told so"
    verdict = Verdict("own_driver", "ok", library="PnetCDF's own driver (stand-in)")
    report.add(job, "own_driver", problems, record_of(job, verdict, outcome, reason))


# ---- the example in Python ----


def run_example(job: Job, report: Report) -> None:
    """The same file alone and under Penstock, and every byte of it Penstock's."""
    with tempfile.TemporaryDirectory(prefix="penstock-libraries-") as directory:
        files = [Path(directory) / x / "waves.dat" for x in ("alone", "served")]
        alone, served = (
            wave_verdict(job, file, method)
            for file, method in zip(files, (None, "auto"), strict=True)
        )
        problems = difference(files[0].parent, files[1].parent, "waves", holes=False)
        written = files[1].stat().st_size if files[1].exists() else 0
    if served.engine_bytes != written:
        problems.append(f"{served.engine_bytes} bytes by the engine, {written} in the file")
    problems, record = judge(job, alone, served, problems)
    report.add(job, "waves", problems, record)


def wave_verdict(job: Job, file: Path, method: str | None) -> Verdict:
    file.parent.mkdir()
    out = job.run("--points", "131", "--output", str(file), method=method)
    good = out.code == 0 and not out.hung
    verdict = Verdict(
        "waves",
        "ok" if good else "failed",
        "" if good else how_it_ended(out),
        library="mpi4py example",
    )
    return with_log(verdict, out)


# ---- which ----


def rank_counts(library: Library, full: bool, asked: str) -> tuple[int, ...]:
    if asked:
        return tuple(int(x) for x in asked.split(","))
    if not full:
        return (2,)
    return (1, 2, 3) if library.name == "mpi4py" else (1, 2, 3, 4)


def started(bench: Bench, library: Library) -> tuple[list[str], dict[str, str]]:
    """A program's words and variables; raises MissingError where there is nothing to run."""
    if reason := left_out(library.name, bench.mpi.name):
        raise MissingError(reason)
    return program(bench.build, library, bench.mpi), environment(bench.build, library, bench.mpi)


def run_library(bench: Bench, library: Library, full: bool, asked: str, report: Report) -> None:
    try:
        words, variables = started(bench, library)
    except MissingError as missing:
        job = Job(bench, library, 1, [], {})
        verdict = Verdict("all", "skipped", library=library.title)
        report.add(job, "all", [], record_of(job, verdict, "skipped", str(missing)))
        return
    if library.name == "pnetcdf":
        run_own_driver(bench, 2, report)
    for ranks in rank_counts(library, full, asked):
        job = Job(bench, library, ranks, words, variables)
        if library.name == "mpi4py":
            run_tests(job, report)
            continue
        if library.name == "example":
            run_example(job, report)
            continue
        for method in METHODS if full else METHODS[:1]:
            run_files(job, method, report)
        if full and library.name == "hdf5":
            run_files(replace(job, relaxed=True), METHODS[0], report)


def chosen(names: str) -> list[Library]:
    return [x for x in LIBRARY_PROGRAMS.values() if not names or x.name in names.split(",")]


def why_not(mpi: Mpi) -> str:
    if mpi.launcher() is None:
        return f"no mpiexec of {mpi.title}: {mpi.remedy()}"
    return "" if shutil.which("h5diff") else "no h5diff: install hdf5-tools"


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--library", default="", help="which, with commas between; all by default")
    parser.add_argument("--ranks", default="", help="numbers of ranks, with commas between")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="on 2 ranks, one method (the default)")
    size.add_argument("--full", action="store_true", help="on 1, 2, 3 and 4 ranks, all methods")
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"libraries {options.mpi}")
    if reason := why_not(bench.mpi):
        suite.skip(options.mpi, reason)
        return suite.finish()
    record = options.record
    if record is not None and record.suffix == "":
        record = record / f"libraries-{bench.mpi.name}.jsonl"
    with Recorder(record) as recorder:
        report = Report(suite, recorder)
        for library in chosen(options.library):
            run_library(bench, library, options.full, options.ranks, report)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
