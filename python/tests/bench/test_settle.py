"""Coming to rest before a sample."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from penstock.bench.settle import Scratch, Settle, waiting_bytes
from penstock.errors import ArgumentError, WriteError


def test_waiting_bytes_are_dirty_and_on_their_way(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        "MemTotal: 1000 kB\nDirty: 3 kB\nWriteback: 2 kB\nWritebackTmp: 9 kB\nNFS_Unstable: 1 kB\n"
    )
    assert waiting_bytes(meminfo) == 6 * 1024


def test_a_machine_at_rest_is_not_waited_for(tmp_path: Path) -> None:
    settled = Settle(waiting=lambda: 5)(tmp_path)
    assert settled.dirty_bytes == 5
    assert not settled.exceeded


def test_it_waits_until_the_baseline_is_back(tmp_path: Path) -> None:
    readings = iter([0, 0, 100, 100, 60, 30, 10])
    settle = Settle(tolerance_bytes=10, waiting=lambda: next(readings))
    settle(tmp_path)
    settled = settle(tmp_path)
    assert settled.dirty_bytes == 10
    assert settled.waited_s > 0


def test_the_wait_has_a_limit_which_is_told(tmp_path: Path) -> None:
    value = [0]
    settle = Settle(limit_s=0.05, tolerance_bytes=10, waiting=lambda: value[0])
    settle(tmp_path)
    value[0] = 1000
    assert settle(tmp_path).exceeded
    # Somebody else writes all the time: the baseline rose, and the next is not waited for.
    assert not settle(tmp_path).exceeded
    value[0] = 0
    settle(tmp_path)
    assert settle.baseline_bytes == 0


def test_scratch_is_emptied_and_removed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "scratch")
    scratch.make()
    (scratch.path / "file").write_bytes(b"x")
    (scratch.path / "logs").mkdir()
    (scratch.path / "logs" / "one").touch()
    scratch.empty()
    assert [p.name for p in scratch.path.iterdir()] == [".penstock-scratch"]
    scratch.remove()
    assert not scratch.path.exists()


def test_scratch_whose_removal_was_interrupted_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Scratch(tmp_path / "scratch")
    scratch.make()
    for name in ("a", "b"):
        (scratch.path / name).touch()

    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scratch.remove()
    os.close(scratch._marker)
    again = Scratch(tmp_path / "scratch")
    again.make()
    again.remove()
    assert not again.path.exists()


def test_scratch_of_a_killed_session_is_taken_over(tmp_path: Path) -> None:
    killed = Scratch(tmp_path / "scratch")
    killed.make()
    os.close(killed._marker)  # as the end of its process does
    (tmp_path / "scratch" / "file").touch()
    Scratch(tmp_path / "scratch").make()


def test_scratch_of_a_session_that_runs_is_left_alone(tmp_path: Path) -> None:
    first, second = Scratch(tmp_path / "scratch"), Scratch(tmp_path / "scratch")
    first.make()
    (first.path / "data").touch()
    with pytest.raises(ArgumentError, match="in use by another penstock bench"):
        second.make()
    second.remove()
    assert (first.path / "data").exists()
    first.remove()
    second.make()
    second.remove()


def test_the_lock_can_be_had_on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_nfs(descriptor: int, _: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", of_nfs)
    scratch = Scratch(tmp_path / "scratch")
    scratch.make()
    scratch.remove()


@pytest.mark.parametrize(
    ("number", "refused"),
    [
        (errno.ENOSYS, False),
        (errno.ENOLCK, False),
        (errno.EOPNOTSUPP, False),
        (errno.EIO, True),
    ],
)
def test_a_mount_without_locks_is_measured_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, refused: bool
) -> None:
    def refuses(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuses)
    scratch = Scratch(tmp_path / "scratch")
    with pytest.raises(WriteError) if refused else contextlib.nullcontext():
        scratch.make()
    scratch.remove()
    assert scratch.path.exists() == refused


def test_the_name_that_nfs_keeps_of_an_open_file_stays_in_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_but_the_directory(path: Path, **_: bool) -> None:
        for entry in path.iterdir():
            entry.unlink()

    scratch = Scratch(tmp_path / "scratch")
    scratch.make()
    monkeypatch.setattr(shutil, "rmtree", all_but_the_directory)
    scratch.remove()
    assert not scratch.path.exists()


def test_somebody_elses_directory_is_never_emptied(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    scratch = Scratch(theirs)
    with pytest.raises(ArgumentError, match="was not made by penstock bench"):
        scratch.make()
    scratch.remove()
    assert (theirs / "thesis.tex").exists()
