"""A report on a Darshan log (by pydarshan): how a program wrote, before it tries Penstock.

Darshan counts what a program asked for and how long calls took. It says nothing of when the device
had the bytes, and one run compares with nothing; the report says both.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import moment
from penstock.errors import ArgumentError, UnsupportedError
from penstock.extras import pip_install
from penstock.report.figures import bars, series
from penstock.report.model import Caution, Command, Drawn, Report, Section, Table, Verdict
from penstock.report.runs import Series
from penstock.report.words import size

_MODULES = {"MPI-IO": "MPIIO", "POSIX": "POSIX"}  # as Darshan names them: prefix of its counters
_SIZES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M",
          "100M_1G", "1G_PLUS")  # fmt: skip
_SMALL = _SIZES[:4]
_PHASES = ("metadata", "write", "read")
_MOST_FILES = 20


@dataclass(frozen=True)
class Accessed:
    """One file as one module saw it, summed over ranks. ``ranks`` is None where all shared it."""

    path: str
    written_bytes: int
    read_bytes: int
    seconds: tuple[float, ...]  # of _PHASES
    write_begin_s: float  # since the program's begin; 0: it never wrote
    write_end_s: float
    sizes: tuple[int, ...]  # write calls by _SIZES
    collective_writes: int
    independent_writes: int


@dataclass(frozen=True)
class Darshan:
    """What a log says, as far as a report uses it."""

    exe: str
    job_id: str
    ranks: int
    run_time_s: float
    begun_unix_s: int
    log_version: str
    mounts: tuple[tuple[str, str], ...]
    modules: Mapping[str, tuple[Accessed, ...]]
    course: Series | None  # bytes written over time, all ranks

    @property
    def program(self) -> str:
        """The name of what ran."""
        return Path(self.exe.split()[0]).name if self.exe.split() else "a program"

    @property
    def module(self) -> str:
        """The one that says most about MPI programs and has written."""
        return next((m for m, a in self.modules.items() if _written(a)), "none")

    @property
    def files(self) -> tuple[Accessed, ...]:
        """What that module saw, most written first."""
        own = self.modules.get(self.module, ())
        return tuple(sorted(own, key=lambda a: -a.written_bytes))


def _written(accessed: Sequence[Accessed]) -> int:
    return sum(a.written_bytes for a in accessed)


# --- Reading ---


def read(path: Path) -> Darshan:
    """Read a log with pydarshan.

    Raises
    ------
    UnsupportedError
        If pydarshan is not installed.
    ArgumentError
        If it cannot read the log.
    """
    try:
        import darshan
    except ImportError as error:
        raise UnsupportedError(
            f"{path} is a Darshan log, and pydarshan, which reads them, is not installed: "
            + pip_install("darshan")
        ) from error
    try:
        return _told(darshan.DarshanReport(str(path), read_all=True))
    except (RuntimeError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{path} cannot be read by pydarshan: {error}") from error


def _told(log: Any) -> Darshan:
    job = log.metadata["job"]
    return Darshan(
        exe=str(log.metadata["exe"]),
        job_id=str(job["jobid"]),
        ranks=int(job["nprocs"]),
        run_time_s=float(job["run_time"]),
        begun_unix_s=int(job["start_time_sec"]),
        log_version=str(job["log_ver"]),
        mounts=tuple((str(point), str(kind)) for point, kind in log.mounts),
        modules={
            module: tuple(_accessed(log, module, prefix))
            for module, prefix in _MODULES.items()
            if module in log.records
        },
        course=_course(log),
    )


def _accessed(log: Any, module: str, prefix: str) -> Iterator[Accessed]:
    """Files summed over ranks: a log has one record per rank where not all ranks shared a file."""
    frames = log.records[module].to_df()
    both = frames["counters"].merge(frames["fcounters"], on=["id", "rank"])
    for name, own in both.groupby("id"):
        yield _summed(str(log.name_records.get(name, name)), own, prefix)


def _summed(path: str, own: Any, prefix: str) -> Accessed:
    def total(*names: str) -> int:
        return sum(max(0, int(own[f"{prefix}_{n}"].sum())) for n in names)

    sizes = "SIZE_WRITE_AGG" if prefix == "MPIIO" else "SIZE_WRITE"
    begins = own[f"{prefix}_F_WRITE_START_TIMESTAMP"]
    is_mpi = prefix == "MPIIO"
    return Accessed(
        path=path,
        written_bytes=total("BYTES_WRITTEN"),
        read_bytes=total("BYTES_READ"),
        seconds=tuple(
            max(0.0, float(own[f"{prefix}_F_{n}_TIME"].sum())) for n in ("META", "WRITE", "READ")
        ),
        write_begin_s=float(begins[begins > 0].min()) if (begins > 0).any() else 0.0,
        write_end_s=float(own[f"{prefix}_F_WRITE_END_TIMESTAMP"].max()),
        sizes=tuple(total(f"{sizes}_{s}") for s in _SIZES),
        collective_writes=total("COLL_WRITES", "SPLIT_WRITES") if is_mpi else 0,
        independent_writes=total("INDEP_WRITES", "NB_WRITES") if is_mpi else total("WRITES"),
    )


def _course(log: Any) -> Series | None:
    """Bytes by time, of the first module of ours whose heat map the log has."""
    for module in ("MPIIO", "POSIX"):
        found = log.heatmaps.get(module)
        if found is None:
            continue
        frame = found.to_df(ops=["write"], interval_index=False)
        width_s = float(found._bin_width_seconds)  # it has no other name
        by_bin = [max(0, int(b)) for b in frame.sum(axis=0)]
        if width_s > 0 and any(by_bin):
            return Series(bin_s=width_s, application_bytes=by_bin, actual_bytes=None)
    return None


# --- Reporting ---


def report(name: str, log: Darshan) -> Report:
    """The whole report; ``name`` is what the command line called the log."""
    program = log.program
    return Report(
        title=f"Penstock report: {program}, as Darshan saw it",
        subtitle=f"{log.ranks} ranks, begun {moment.utc(log.begun_unix_s)}, "
        f"{log.run_time_s:.1f} s, job {log.job_id}, Darshan log version {log.log_version}",
        verdict=_verdict(program, log),
        sections=(_over_time(log), _files(log), _phases(log), _calls(log), _machine(log)),
        cautions=(
            Caution(
                "Darshan does not know when the device had the bytes: there is no actual rate.",
                "penstock run and penstock bench measure it",
            ),
        ),
        commands=tuple(_commands(name, log)),
    )


def _verdict(program: str, log: Darshan) -> Verdict:
    nothing = "One run, n=1: it compares with nothing, and no method of Penstock ran in it."
    if not log.files:
        return Verdict(f"{program} wrote nothing that Darshan counted.", "single run", (nothing,))
    largest = log.files[0]
    headline = (
        f"{program} wrote {size(_written(log.files))} by {log.module}, most of it, "
        f"{size(largest.written_bytes)}, to {largest.path} at {_rate(largest)}."
    )
    return Verdict(headline, "single run", (*_observed(log), nothing))


def _observed(log: Darshan) -> Iterator[str]:
    calls = sum(sum(a.sizes) for a in log.files)
    small = sum(sum(a.sizes[: len(_SMALL)]) for a in log.files)
    if calls:
        yield f"{100 * small / calls:.0f} % of {calls} write calls are of at most 100 KiB."
    if log.module == "MPI-IO":
        collective = sum(a.collective_writes for a in log.files)
        independent = sum(a.independent_writes for a in log.files)
        yield (
            f"{collective} write calls are collective, {independent} independent: Penstock takes "
            "over both (docs/methods.md); penstock run tries it, penstock bench measures it."
        )
    else:
        yield "It wrote past MPI-IO, where Penstock does not take over (docs/libraries.md)."


def _rate(a: Accessed) -> str:
    """Bytes over the time from the first write's begin to the last one's end."""
    seconds = a.write_end_s - a.write_begin_s
    if not (a.written_bytes and a.write_begin_s > 0 and seconds > 0):
        return "a rate that is not known"
    return f"{a.written_bytes / seconds / 2**20:,.1f} MiB/s between first and last write (n=1)"


def _over_time(log: Darshan) -> Section:
    title = "The rate over time"
    if log.course is None:
        return Section("time", title, ("The log has no heat map of writes (Darshan 3.4 has).",))
    figure = series.within_runs(1, f"Within the run: {log.program}", [log.course])
    width = log.course.bin_s
    rows = tuple(
        (f"{i * width:.4g}-{(i + 1) * width:.4g}", size(b))
        for i, b in enumerate(log.course.application_bytes)
        if b
    )
    return Section("time", title, (), (Drawn(figure, Table(("seconds", "written"), rows)),))


def _files(log: Darshan) -> Section:
    rows = tuple(
        (
            a.path,
            size(a.written_bytes),
            size(a.read_bytes),
            _rate(a) if a.written_bytes else "-",
            str(a.collective_writes) if log.module == "MPI-IO" else "-",
            str(a.independent_writes),
        )
        for a in log.files
    )
    heads = ("file", "written", "read", "rate", "collective writes", "independent writes")
    parts = (Table(heads, rows),) if rows else ()
    return Section("files", f"Files, as {log.module} saw them", (), parts)


def _phases(log: Darshan) -> Section:
    title = "Where the time went"
    own = [a for a in log.files if sum(a.seconds) > 0][:_MOST_FILES]
    if not own:
        return Section("phases", title, ("Darshan counted no time in calls.",))
    stacks = [
        bars.Bar(
            a.path,
            a.seconds,
            tuple(f"{p} {s:.4g} s" for p, s in zip(_PHASES, a.seconds, strict=True)),
        )
        for a in own
    ]
    caption = "Seconds summed over ranks, of one run (n=1)."
    figure = bars.stacked("phases-1", f"Phases, by {log.module}", _PHASES, stacks, caption)
    rows = tuple((a.path, *(f"{s:.4f}" for s in a.seconds)) for a in own)
    rest = sum(sum(a.seconds) > 0 for a in log.files) - len(own)
    text = (f"{rest} more files are not drawn.",) if rest else ()
    numbers = Table(("file", *(f"{p} s" for p in _PHASES)), rows)
    return Section("phases", title, text, (Drawn(figure, numbers),))


def _calls(log: Darshan) -> Section:
    counts = [sum(a.sizes[i] for a in log.files) for i in range(len(_SIZES))]
    shown = [(s.replace("_PLUS", " and more").replace("_", " to "), n)
             for s, n in zip(_SIZES, counts, strict=True)]  # fmt: skip
    used = [i for i, (_, n) in enumerate(shown) if n]
    if not used:
        return Section("calls", "How it wrote", ("Darshan counted no write calls.",))
    bars_ = shown[used[0] : used[-1] + 1]
    figure = bars.counted(
        "sizes", "Write calls by size", bars_, "calls", f"All files and ranks, by {log.module}."
    )
    numbers = Table(("bytes", "calls"), tuple((s, str(n)) for s, n in bars_))
    return Section("calls", "How it wrote", (), (Drawn(figure, numbers),))


def _machine(log: Darshan) -> Section:
    mounts = [(point, kind) for point, kind in log.mounts if _is_below(log, point)]
    rows = (("ranks", str(log.ranks)), *((f"mounted at {p}", k) for p, k in mounts))
    return Section("machine", "File system and machine", (), (Table(("", ""), rows),))


def _is_below(log: Darshan, point: str) -> bool:
    """Whether a file lies below a mount point; of the others nobody needs to know."""
    return any(a.path == point or a.path.startswith(f"{point.rstrip('/')}/") for a in log.files)


def _commands(name: str, log: Darshan) -> Iterator[Command]:
    yield Command("this report", shlex.join(["penstock", "report", name]))
    words = shlex.join(log.exe.split())
    yield Command(
        "the job anew, observed by Penstock",
        f"penstock run --observe -- mpiexec -n {log.ranks} {words}",
    )
    yield Command(
        "the job anew, served by Penstock", f"penstock run -- mpiexec -n {log.ranks} {words}"
    )
