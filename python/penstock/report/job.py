"""A report on the log of one penstock run.

One run compares with nothing: the report says what was done and how fast, and where to measure
whether another method would be faster.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from penstock import _core, joblog, moment
from penstock.report.figures import bars, plan
from penstock.report.figures.frame import Figure
from penstock.report.model import Caution, Command, Drawn, Report, Section, Table, Verdict
from penstock.report.words import size

_PHASES = ("plan", "pack", "exchange", "write", "sync", "close")  # of `joblog.Times.phases`
_MOST_FILES = 40  # drawn; the table has all


def report(name: str, job: joblog.JobLog) -> Report:
    """The whole report; ``name`` is what the command line called the log."""
    begun = moment.utc(job.start_unix_s)
    seconds = job.known_elapsed_s
    took = "a time not known" if seconds is None else f"{seconds:.1f} s"
    return Report(
        title=f"Penstock report: {job.program}, job {job.job_id}",
        subtitle=f"{job.ranks} ranks, begun {begun}, {took} until the log was written, "
        f"penstock {job.penstock_version}",
        verdict=_verdict(job),
        sections=(
            _files(job),
            _phases(job),
            _calls(job),
            _plan(job),
            _machine(job),
        ),
        cautions=tuple(_cautions(job)),
        commands=tuple(_commands(name, job)),
    )


def _verdict(job: joblog.JobLog) -> Verdict:
    totals = job.totals
    wrong = max(totals.mismatched_bytes, _wrong_of_listed(job))
    if wrong or totals.errors:
        what = f"{size(wrong)} read back differ" if wrong else f"{totals.errors} calls failed"
        return Verdict(f"{job.program}: {what}; see the warnings.", "wrong", (_NOT_COMPARED,))
    written = [f for f in job.files if _written(f)]
    if not written and job.not_listed and totals.engine_bytes:
        said = f"Penstock wrote {size(totals.engine_bytes)} for {job.program}, "
        said += "to files that its log does not list."
        return Verdict(said, "single run", (_NOT_COMPARED,))
    if not written:
        headline = f"Penstock wrote nothing for {job.program}"
        headline += f": {size(totals.passthrough_bytes)} were passed through to the MPI library."
        return Verdict(headline, "single run", (_NOT_COMPARED,))
    largest = max(written, key=_written)
    said = f"{_wrote(largest)} to {largest.path} at an "
    said += f"application rate of {_rate(largest.application_rate_bytes_per_s)}; "
    said += f"actual rate: {_actual(largest)}."
    listed = " that the log lists" if job.not_listed else ""
    files = len({f.path for f in job.files})
    details = (f"It is the largest of {files} files{listed}.",) if files > 1 else ()
    return Verdict(said, "single run", (*details, *_part(job, largest), _NOT_COMPARED))


def _wrote(file: joblog.File) -> str:
    """Who wrote how much: both, where the rates are of both."""
    said = f"{_who(file)} wrote {size(_written(file))}"
    if file.passthrough_bytes and not file.is_observed:
        said += f", and the MPI library {size(file.passthrough_bytes)}, together"
    return said


def _part(job: joblog.JobLog, file: joblog.File) -> Iterator[str]:
    if job.is_part(file):
        yield _ONE_RANK


_ONE_RANK = (
    "The file was not closed when the log was written: what is said of it is one rank's part, not "
    "the job's."
)
_NOT_COMPARED = (
    "One run, n=1: there is no interval, and it compares with nothing. Whether another method is "
    "faster here, and how sure that is, penstock bench tells."
)


def _wrong_of_listed(job: joblog.JobLog) -> int:
    return sum(f.verify.mismatched_bytes for f in job.files)


def _written(file: joblog.File) -> int:
    """By the engine, or where it only looked, by the MPI library."""
    return file.passthrough_bytes if file.is_observed else file.engine_bytes


def _who(file: joblog.File) -> str:
    return "The MPI library, observed," if file.is_observed else _ran(file)


def _rate(bytes_per_s: float | None) -> str:
    return "not known" if bytes_per_s is None else f"{bytes_per_s / 2**20:,.1f} MiB/s (n=1)"


def _actual(file: joblog.File) -> str:
    """The source says how it was measured, or why it was not."""
    if file.actual_rate_bytes_per_s is None:
        return file.no_actual_rate
    between = ", by " if file.actual_rate_bytes_per_s else ": "
    return f"{_rate(file.actual_rate_bytes_per_s)}{between}{file.actual_rate_source}"


def _ran(file: joblog.File) -> str:
    """The algorithm that served most calls."""
    if not file.algorithms:
        return "no algorithm"
    return max(file.algorithms, key=lambda name: file.algorithms[name])


def _files(job: joblog.JobLog) -> Section:
    rows = tuple(
        (
            f.path,
            f.method,
            ", ".join(f"{name} ({n})" for name, n in f.algorithms.items()) or "-",
            size(f.engine_bytes),
            size(f.passthrough_bytes),
            _rate(f.application_rate_bytes_per_s),
            _actual(f),
            str(f.ranks),
        )
        for f in job.files
    )
    heads = (
        "file", "method", "ran (calls)", "by the engine", "passed through", "application rate",
        "actual rate", "ranks",
    )  # fmt: skip
    text = (
        "A job's log has one rate of each file, so there is no course over time: the measuring "
        "programs of penstock bench record it.",
        *_cold(job),
    )
    return Section("files", "Files and both rates", text, (Table(heads, rows),) if rows else ())


def _cold(job: joblog.JobLog) -> Iterator[str]:
    past = sum(f.traffic.cold_bytes for f in job.files)
    if past:
        yield (
            f"{size(past)} went past the page cache, since the memory that the system would have "
            "taken for it was cold (direct=cold)."
        )


def _phases(job: joblog.JobLog) -> Section:
    title = "Where the time went"
    passed = [f for f in job.files if f.is_all_passed]
    own = [f for f in job.files if sum(_seconds(f)) > 0 and not f.is_all_passed]
    if not (own or passed):
        return Section("phases", title, ("No time was spent in write calls that Penstock served.",))
    text = []
    if passed:
        text.append("What the MPI library does in calls that Penstock did not serve is not known.")
    if len(own) > _MOST_FILES:
        text.append(f"{len(own) - _MOST_FILES} more files are not drawn.")
    drawn = (_drawn(job, own[:_MOST_FILES]),) if own else ()
    return Section("phases", title, tuple(text), (*drawn, *_passed(passed)))


def _drawn(job: joblog.JobLog, own: list[joblog.File]) -> Drawn:
    stacks = [
        bars.Bar(
            f.path,
            _seconds(f),
            tuple(f"{p} {s:.4g} s" for p, s in zip(_PHASES, _seconds(f), strict=True)),
        )
        for f in own
    ]
    rows = tuple((f.path, *(f"{s:.4f}" for s in _seconds(f))) for f in own)
    caption = (
        "Seconds summed over ranks, of one run (n=1). Sync is what the program, close and the "
        "method pushed to the device."
    )
    figure = bars.stacked("phases-1", f"Phases: {job.program}", _PHASES, stacks, caption)
    return Drawn(figure, Table(("file", *(f"{p} s" for p in _PHASES)), rows))


def _passed(files: list[joblog.File]) -> Iterator[Table]:
    """The seconds of those files of which no write was served."""
    times = [(f.path, f.times_s.write_calls, f.times_s.close) for f in files]
    rows = tuple((path, f"{calls:.4f}", f"{close:.4f}") for path, calls, close in times)
    if rows:
        yield Table(("file, not served", "in write calls s", "close s"), rows)


def _seconds(file: joblog.File) -> tuple[float, ...]:
    return tuple(file.times_s.phases[phase] for phase in _PHASES)


def _calls(job: joblog.JobLog) -> Section:
    """How large the write calls were, of all files together."""
    counts: dict[int | None, int] = {}
    for f in job.files:
        for bucket in f.sizes:
            counts[bucket.up_to_bytes] = counts.get(bucket.up_to_bytes, 0) + bucket.calls
    shown = [(_upto(limit), n) for limit, n in counts.items()]
    used = [i for i, (_, n) in enumerate(shown) if n]
    title = "How it wrote"
    if not used:
        return Section("calls", title, ("The log counts no write calls by size.",))
    bars_ = shown[used[0] : used[-1] + 1]
    figure = bars.counted(
        "sizes", "Write calls by size", bars_, "calls", "Write calls of all ranks and files."
    )
    numbers = Table(("size of a rank's part", "calls"), tuple((s, str(n)) for s, n in bars_))
    return Section("calls", title, (_pattern(job),), (Drawn(figure, numbers),))


def _pattern(job: joblog.JobLog) -> str:
    """How the calls of all files lie in them, as far as they were served."""
    kinds = ("contiguous", "strided", "irregular")
    known = {k: sum(getattr(f.pattern, f"{k}_calls") for f in job.files) for k in kinds}
    passed = sum(f.passthrough_calls for f in job.files)
    if passed and not any(known.values()):
        return "How the calls lay in the file is not known, for none was served."
    words = [f"{n} {'calls were ' if k == kinds[0] else ''}{k}" for k, n in known.items()]
    rest = f"; of {passed} that were not served it is not known" if passed else ""
    return f"In the file {', '.join(words)}{rest}."


def _upto(limit: int | None) -> str:
    return "more" if limit is None else f"to {_core.format_size(limit)}"


def _plan(job: joblog.JobLog) -> Section:
    title = "The plan of the method"
    made = _plan_of(job)
    if isinstance(made, plan.NotDrawn):
        return Section("plan", title, (f"Not drawn: {made.why}.",))
    numbers = Table(("what",), tuple((line,) for line in made.description.split(". ") if line))
    return Section("plan", title, (), (Drawn(made, numbers),))


def _plan_of(job: joblog.JobLog) -> Figure | plan.NotDrawn:
    served = [f for f in job.files if f.engine_bytes and f.algorithms]
    if not served:
        where = " to the files that the log lists" if job.not_listed else ""
        return plan.NotDrawn(f"Penstock's engine wrote nothing{where}")
    f = max(served, key=lambda f: f.engine_bytes)
    calls = f.pattern
    pattern = "contiguous"
    if calls.strided_calls + calls.irregular_calls > calls.contiguous_calls:
        pattern = "interleaved"
    ranks = job.ranks if job.is_part(f) else f.ranks
    return plan.figure(plan.Work(_decided(f), max(1, ranks), pattern))


def _decided(file: joblog.File) -> str:
    """Its method, with what ``auto`` chose; ``writers`` is no option of individual."""
    word, plus, rest = file.method.partition(" + ")
    if not word.startswith("auto"):
        return file.method
    ran = _ran(file)
    options = "" if ran == "individual" else word.removeprefix("auto")
    return ran + options + plus + rest


def _machine(job: joblog.JobLog) -> Section:
    systems = ", ".join(dict.fromkeys(f.file_system or "not known" for f in job.files)) or "-"
    rows = (
        ("file systems", systems),
        ("host that wrote the log", job.host),
        ("MPI library", job.mpi_library),
        ("Penstock for", job.build or "-"),
        ("Penstock", job.penstock_version),
        ("ranks", str(job.ranks)),
    )
    return Section("machine", "File system and machine", (), (Table(("", ""), rows),))


def _cautions(job: joblog.JobLog) -> Iterator[Caution]:
    if job.state == "running":
        yield Caution(
            "The log was written before the job's end: it is running, or was killed.",
            "report again when the job has ended",
            grave=True,
        )
    if job.not_listed:
        yield Caution(f"{job.not_listed}: rates, times, calls and warnings are of those it lists")
    elsewhere = job.totals.mismatched_bytes - _wrong_of_listed(job)
    if elsewhere > 0:
        yield Caution(
            f"{size(elsewhere)} read back DIFFER in files that the log does not list", grave=True
        )
    for f in job.files:
        yield from _cautions_of(job, f)


def _cautions_of(job: joblog.JobLog, f: joblog.File) -> Iterator[Caution]:
    if f.verify.mismatched_bytes:
        yield Caution(f"{f.path}: {size(f.verify.mismatched_bytes)} read back DIFFER", grave=True)
    if f.errors:
        yield Caution(f"{f.path}: {f.errors} calls failed, first: {f.first_error}", grave=True)
    for why, times in f.degraded.items():
        yield Caution(f"{f.path}: {why} ({times} times)")
    if f.passthrough_bytes and not f.is_observed:
        yield Caution(
            f"{f.path}: {size(f.passthrough_bytes)} were passed through to the MPI library",
            "docs/methods.md says what is served",
        )
    if not f.closed:
        part = ": its numbers are one rank's part" if job.is_part(f) else ""
        yield Caution(f"{f.path} was not closed when the log was written{part}")
    if f.verify.unverified_bytes:
        yield Caution(f"{f.path}: {size(f.verify.unverified_bytes)} were not verified")


def _commands(name: str, job: joblog.JobLog) -> Iterator[Command]:
    yield Command("this report", shlex.join(["penstock", "report", name]))
    yield Command("the log in a terminal", shlex.join(["penstock", "log", name]))
    yield Command(
        "the job anew (its log does not hold its arguments)",
        f"penstock run {_method(job)}-- mpiexec -n {job.ranks} {shlex.quote(job.program)} ...",
    )
    yield Command("which method is best there", "penstock bench DIR")


def _method(job: joblog.JobLog) -> str:
    """The option that gives all files the method they had; where they had several, none can."""
    methods = {f.method for f in job.files}
    if methods == {"observe"}:
        return "--observe "
    if len(methods) != 1 or methods == {str(_core.default_method())}:
        return ""
    return f"--method {shlex.quote(methods.pop())} "
