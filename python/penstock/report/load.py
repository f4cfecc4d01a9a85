"""What a report can be made from, known by its content, whatever the file is called."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import joblog
from penstock.bench import store
from penstock.bench.sample import Sample
from penstock.errors import ArgumentError
from penstock.strict import decoded
from penstock.words import instead_of

_DARSHAN_MAGIC = 6567223  # the second 8 bytes of a log, in the byte order of who wrote it
_KINDS = (
    "a report is made from a results directory of penstock bench, its samples.jsonl, the JSON log "
    "of a penstock run, or a Darshan log"
)


@dataclass(frozen=True)
class BenchResults:
    """What penstock bench --out wrote."""

    path: Path
    results: store.Results


@dataclass(frozen=True)
class Job:
    """The log of one penstock run."""

    path: Path
    log: joblog.JobLog


@dataclass(frozen=True)
class DarshanLog:
    """A log of Darshan, not yet read."""

    path: Path


Source = BenchResults | Job | DarshanLog


def load(path: Path) -> Source:
    """Read a source.

    Raises
    ------
    ArgumentError
        If there is nothing at ``path``, or it is nothing that a report is made from, as results
        without a sample.
    """
    if path.is_dir():
        return _measured(path)
    content = _content(path)  # once: a pipe gives its bytes once
    head = content[:4096].removeprefix(codecs.BOM_UTF8)
    if _is_darshan(head):
        return _darshan(path)
    first_line = head.split(b"\n", 1)[0]
    is_results = b'"record"' in first_line and first_line.lstrip().startswith(b"{")
    if is_results or store.is_packed(head):
        return _measured(path, content)
    if head.lstrip().startswith(b"{"):
        return Job(path, joblog.parse(decoded(content, str(path)), str(path)))
    raise ArgumentError(f"{path} is nothing that a report is made from: {_KINDS}")


def _darshan(path: Path) -> DarshanLog:
    if not path.is_file():
        raise ArgumentError(
            f"{path} is a Darshan log in a pipe, and those are read from files: give its file"
        )
    return DarshanLog(path)


def _measured(path: Path, content: bytes | None = None) -> BenchResults:
    results = store.load(path, content)
    if results.headers and not results.samples:
        raise ArgumentError(
            f"{path} has no sample yet: run the penstock bench that began it once more"
        )
    return BenchResults(path, results)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}; {_KINDS}") from error
    if not content.removeprefix(codecs.BOM_UTF8):
        raise ArgumentError(f"{path} is empty: {_KINDS}")
    return content


def _is_darshan(head: bytes) -> bool:
    return any(int.from_bytes(head[8:16], order) == _DARSHAN_MAGIC for order in ("little", "big"))


@dataclass(frozen=True)
class Wanted:
    """What of bench results is reported or compared: only these cells, without these variants."""

    cells: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def has(self, sample: Sample) -> bool:
        """Whether a sample is of it."""
        return (not self.cells or sample.cell in self.cells) and sample.variant not in self.without

    def words(self) -> list[str]:
        """The options of ``penstock report`` and ``penstock compare`` that ask for it."""
        words = [w for name in self.cells for w in ("--cell", name)]
        return words + [w for name in self.without for w in ("--without", name)]

    def notes(self) -> Iterator[str]:
        """That not everything is there, for who has the report alone."""
        if self.without:
            named = ", ".join(self.without)
            yield f"Left out, as asked for by --without: {named}."
        if self.cells:
            named = ", ".join(self.cells)
            yield f"Only these cells, as asked for by --cell: {named}."


def narrowed(results: store.Results, wanted: Wanted, name: str = "") -> store.Results:
    """The results, which messages call ``name``, without what is not wanted.

    Raises
    ------
    ArgumentError
        If a cell or variant is not there, or nothing is left.
    """
    have = f"{name} has" if name else "the results have"
    for option, what, names, there in (
        ("--cell", "cell", wanted.cells, {s.cell for s in results.samples}),
        ("--without", "variant", wanted.without, {s.variant for s in results.samples}),
    ):
        for one in names:
            if one not in there:
                raise ArgumentError(
                    f'{option} names "{one}", and {have} no such {what}; '
                    f"{instead_of(one, sorted(there))}"
                )
    kept = [s for s in results.samples if wanted.has(s)]
    if results.samples and not kept:
        raise ArgumentError("--without leaves no samples: leave one of its variants in")
    others = [s for s in results.samples if not wanted.has(s)]
    return replace(results, samples=kept, left_out=[*results.left_out, *others])
