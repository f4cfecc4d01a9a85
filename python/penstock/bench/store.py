"""``samples.jsonl``: appended to, one write and fsync per line, so that a kill costs one line.

One process writes a file at a time (flock). A torn last line is cut off when the file is opened for
writing and passed over when it is read, and said both times. A line that cannot be written whole is
taken back, so that what was there before stays readable.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import lzma
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from penstock.bench.sample import (
    RECORD,
    SCHEMA,
    Event,
    Header,
    Provenance,
    Sample,
    as_line,
)
from penstock.errors import ArgumentError, WriteError
from penstock.paths import real
from penstock.strict import first_wrong

AnyRecord = Header | Provenance | Sample | Event
NAME = "samples.jsonl"
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class Results:
    """The records of one file, or of all ``samples*.jsonl`` of a directory."""

    paths: list[Path] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)
    provenances: dict[str, Provenance] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    sample_lines: set[bytes] = field(default_factory=set, repr=False)
    left_out: list[Sample] = field(default_factory=list)
    """Taken among the samples, and not looked at."""
    went_on: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Of sessions that went on: which header's, and what of its plan holds from there on."""

    @property
    def latest(self) -> list[Header]:
        """The headers with what holds since their sessions went on last."""
        now = list(self.headers)
        for number, plan in self.went_on:
            now[number] = now[number].model_copy(update={"plan": {**now[number].plan, **plan}})
        return now

    def is_copy(self, record: AnyRecord, line: bytes) -> bool:
        """Whether a sample is there already, to the byte: files were copied."""
        if not isinstance(record, Sample):
            return False
        before = len(self.sample_lines)
        self.sample_lines.add(line)
        return len(self.sample_lines) == before

    def add(self, record: AnyRecord) -> None:
        """Sort a record in."""
        if isinstance(record, Sample):
            self.samples.append(record)
        elif isinstance(record, Header):
            self.headers.append(record)
        elif isinstance(record, Provenance):
            self.provenances[record.id] = record
        else:
            self.events.append(record)
            if record.plan is not None and self.headers:
                self.went_on.append((len(self.headers) - 1, record.plan))


def files_of(path: Path) -> list[Path]:
    """The samples files that a results directory or file stands for.

    Raises
    ------
    ArgumentError
        If there is none.
    """
    if path.is_dir():
        found = sorted(path.glob("samples*.jsonl"))
        if not found:
            raise ArgumentError(
                f"{path} holds no results (samples*.jsonl): give the directory that penstock bench "
                "--out wrote"
            )
        return found
    if not path.exists():
        raise ArgumentError(
            f"there are no results at {path}: penstock bench DIR --out {shlex.quote(str(path))}"
        )
    return [path]


def require_place(out: Path) -> None:
    """See that results can come to be, before anything is tried.

    Raises
    ------
    ArgumentError
        If there is something else, or nothing to make it in.
    WriteError
        If the system will refuse.
    """
    try:
        is_there, is_directory, parent_is = out.exists(), out.is_dir(), out.parent.is_dir()
    except OSError as error:
        raise _refused("cannot be made", out / NAME, error) from error
    if not is_there and out.is_symlink():
        raise ArgumentError(f"--out {out} is a link that leads to nothing: give another --out")
    if is_there and not is_directory:
        raise ArgumentError(f"--out must be a directory, got the file {out}: give another --out")
    if not is_there and not parent_is:
        raise ArgumentError(
            f"--out {out} cannot be made, for there is no directory {out.parent}: make "
            f"{out.parent} first, or give another --out"
        )
    where = out if is_there else out.parent
    if not os.access(where, os.W_OK | os.X_OK, effective_ids=True):
        is_read_only = os.statvfs(where).f_flag & os.ST_RDONLY
        number = errno.EROFS if is_read_only else errno.EACCES
        raise _refused("cannot be made", out / NAME, OSError(number, os.strerror(number)))


def same_files(a: Path, b: Path) -> bool:
    """Whether two paths stand for the same samples files; not, where one stands for none."""
    try:
        of_a, of_b = ([real(file) for file in files_of(path)] for path in (a, b))
    except ArgumentError:
        return False
    return of_a == of_b


def load(path: Path, content: bytes | None = None) -> Results:
    """Read a results file, or all ``samples*.jsonl`` of a results directory.

    ``content`` is what a file holds, of a caller who has read it, as from a pipe.

    Raises
    ------
    ArgumentError
        If there is nothing, a line cannot be read, or another version wrote it.
    """
    results = Results()
    for one in files_of(path):
        results.paths.append(one)
        read_into(results, one, content)
    return results


def first_header(path: Path) -> Header | None:
    """The header of a results file; None where there is no file, or not yet a whole line in it.

    Raises
    ------
    ArgumentError
        If the file begins with something else.
    """
    try:
        with path.open("rb") as file:
            line = file.readline()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    return _header(_parse(line, path, 1), path) if line.endswith(b"\n") else None


def _header(record: AnyRecord, path: Path) -> Header:
    if not isinstance(record, Header):
        raise ArgumentError(
            f"{path} is not a results file of penstock bench: line 1 must be a header"
        )
    return record


def read_into(results: Results, path: Path, content: bytes | None = None) -> int:
    """Read one file, unless its content is given; how many of its bytes are whole lines."""
    text = _unpacked(_read(path) if content is None else content, path)
    whole, newline, torn = text.rpartition(b"\n")
    if torn:
        results.notices.append(
            f"{path.name} ends within a line, as a kill or a full disk leaves it: "
            f"its last {len(torn)} bytes are passed over"
        )
    if not newline:
        return 0
    copies = 0
    for number, line in enumerate(whole.split(b"\n"), start=1):
        record = _parse(line, path, number)
        if number == 1:
            _header(record, path)
        elif isinstance(record, Header):
            raise ArgumentError(
                f"{path} is not a results file of penstock bench: line {number} must not be a "
                "header"
            )
        if results.is_copy(record, line):
            copies += 1
        else:
            results.add(record)
    if copies > 0:
        results.notices.append(
            f"{path.name}: {copies} of its samples are there more than once, and count once"
        )
    return len(whole) + 1


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error


def _unpacked(content: bytes, path: Path) -> bytes:
    """What a file holds, compressed or not."""
    try:
        return lzma.decompress(content) if is_packed(content) else content
    except lzma.LZMAError as error:
        raise ArgumentError(f"{path} cannot be unpacked: {error}; copy it anew") from error


def is_packed(head: bytes) -> bool:
    """Whether a file that begins so is one of xz."""
    return head.startswith(b"\xfd7zXZ\0")


def _parse(line: bytes, path: Path, number: int) -> AnyRecord:
    where = f"{path}, line {number}"
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"{where} is not JSON ({error}); move the line away to read the others"
        ) from error
    _check_version(values, path)
    try:
        return RECORD.validate_python(values)
    except ValidationError as error:
        raise ArgumentError(f"{where} is not a record of {SCHEMA}: {first_wrong(error)}") from error


def _check_version(values: object, path: Path) -> None:
    if not isinstance(values, dict) or "record" not in values:
        raise ArgumentError(f"{path} is not a results file of penstock bench: it has no records")
    if values["record"] == "header" and values.get("schema") != SCHEMA:
        wrote = values.get("penstock", "unknown")
        raise ArgumentError(
            f"{path} has schema {values.get('schema')!r} (penstock {wrote} wrote it), and this "
            f"penstock reads {SCHEMA!r}: use the penstock that wrote it, or measure anew with "
            "another --out"
        )


def mark_of(path: Path) -> str:
    """Tells what belongs to the results at a path, which need not be UTF-8, from all others."""
    return hashlib.sha256(os.fsencode(real(path))).hexdigest()


def require_nobody_writes(path: Path) -> None:
    """Raise ArgumentError where another process is writing a results file; it may not be there."""
    try:
        descriptor = os.open(path, os.O_RDWR)  # NFS locks nothing else exclusively
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _in_use(path) from error
    except OSError:
        return  # who measures into it will say so
    finally:
        os.close(descriptor)


def _in_use(path: Path) -> ArgumentError:
    return ArgumentError(
        f"{path} is being written by another penstock bench: wait for its end, or give another "
        "--out"
    )


class Store:
    """The results file of one session, open for appending.

    Parameters
    ----------
    path : Path
        The file, or a results directory (made if its parent is there), where it is samples.jsonl.

    Attributes
    ----------
    make_room : sequence of callables
        What is done where the disk is full, before a record is written once more.

    Raises
    ------
    ArgumentError
        If another process is writing it, or what is there is not of this version.
    WriteError
        If it cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path if path.suffix == ".jsonl" else path / NAME
        self.make_room: Sequence[Callable[[], None]] = ()
        try:
            self.path.parent.mkdir(exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._descriptor = os.open(self.path, flags, 0o644)
        except OSError as error:
            raise _refused("cannot be made", self.path, error) from error
        try:
            self._lock()
            self.results = Results([self.path])
            whole_bytes = read_into(self.results, self.path)
            if os.fstat(self._descriptor).st_size > whole_bytes:
                os.ftruncate(self._descriptor, whole_bytes)
            _sync_directory(self.path.parent)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _in_use(self.path) from error
        except OSError as error:
            raise _refused("cannot be locked", self.path, error) from error

    @property
    def header(self) -> Header | None:
        """The header; None as long as nothing was written."""
        return self.results.headers[0] if self.results.headers else None

    @property
    def samples(self) -> list[Sample]:
        """All samples in the order in which they were taken."""
        return self.results.samples

    def append(self, record: AnyRecord) -> None:
        """Write a record's line and have it on the device when this returns.

        Raises
        ------
        WriteError
            If that fails; the file is as it was before.
        """
        line = as_line(record).encode()
        try:
            self._append(line)
        except OSError as error:
            raise _refused("cannot be written", self.path, error) from error
        self.results.add(record)

    def _append(self, line: bytes) -> None:
        try:
            self._append_once(line)
        except OSError as error:
            if error.errno not in _FULL or not self.make_room:
                raise
            for make in self.make_room:
                make()
            self._append_once(line)

    def _append_once(self, line: bytes) -> None:
        before_bytes = os.fstat(self._descriptor).st_size
        try:
            _write_whole(self._descriptor, line)
            os.fsync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before_bytes)
            raise

    def close(self) -> None:
        """Give the lock back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _write_whole(descriptor: int, line: bytes) -> None:
    """One write: a second one would let another reader see the line half written."""
    if os.write(descriptor, line) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _sync_directory(directory: Path) -> None:
    """A power cut must not take the file's name; some file systems cannot sync a directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(what: str, path: Path, error: OSError) -> WriteError:
    number = error.errno or errno.EIO
    remedy = "give another --out"
    if number in _FULL:
        remedy = "every earlier sample is kept; make room and run the same command again"
    elif number == errno.ENOENT:
        remedy = f"make {path.parent.parent} first, or give another --out"
    return WriteError(number, f"{path} {what}: {os.strerror(number)}; {remedy}")
