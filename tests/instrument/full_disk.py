#!/usr/bin/env python3
"""Full disks, and directories that cannot be written: what is said then, and what is kept.

The measuring program and `penstock bench`. Messages name the path, the reason and what helps;
nothing hangs; samples that were taken are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import ROOT, NotHereError, mount, own_mounts, small_disk
from mpis import MPIS
from run_mpi import Suite, plain_arguments

Done = subprocess.CompletedProcess[str]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

# Tiny samples, so that rounds are many and quick.
MATRIX = """
name = "full"
rounds = {rounds}
settle = "0.1s"

[defaults]
route = "posix"
regime = "asis"
threads = 1
bufsize = "{bufsize}"
iters = {iters}

[compare]
end = ["sync", "close"]
"""


@dataclass(frozen=True)
class Here:
    """Where a case is: the build tree, and an empty directory that everybody may enter."""

    build: Path
    directory: Path

    def run(self, *words: str, timeout_s: float = 120) -> Done:
        env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        env |= {"PENSTOCK_NATIVE_DIR": str(self.build / "native"), "HOME": str(self.directory)}
        env |= {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run(
            words,
            env=env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def program(self, file: Path, *words: str, mpi: str = "", before: tuple[str, ...] = ()) -> Done:
        """The measuring program: 32 MiB in all."""
        command = [str(self.build / "native" / f"penstock-measure-{mpi or 'threads'}")]
        if mpi:
            if MPIS[mpi].launcher() is None or not Path(command[0]).exists():
                raise NotHereError(f"no {MPIS[mpi].title}: {MPIS[mpi].remedy()}")
            command = [*MPIS[mpi].mpiexec(2), *command]
        size = ["--threads", "1" if mpi else "2", "--bufsize", "1MiB", "--iters", "16"]
        where = ["--file", str(file), "--regime", "asis"]
        return self.run(*before, *command, *where, *size, *words)

    def bench(self, directory: Path, *words: str, before: tuple[str, ...] = ()) -> Done:
        command = [sys.executable, "-m", "penstock", "bench", str(directory), *words]
        return self.run(*before, *command)

    def matrix(self, *, rounds: int = 5, bufsize: str = "64KiB", iters: int = 1) -> str:
        path = self.directory / "matrix.toml"
        path.write_text(MATRIX.format(rounds=rounds, bufsize=bufsize, iters=iters))
        return str(path)


def said(done: Done) -> str:
    return " ".join((done.stdout + done.stderr).split())  # as if the terminal were wide


def must(done: Done, code: int, *says: str) -> list[str]:
    """What is wrong with how a command ended."""
    problems = [] if done.returncode == code else [f"ended with {done.returncode}, not {code}"]
    problems += [f"does not say {words!r}" for words in says if words not in said(done)]
    problems += ["shows a traceback"] if "Traceback" in done.stderr else []
    return [f"{problem}: {' '.join(done.args)}: {said(done)[-800:]}" for problem in problems]


def samples(results: Path) -> list[dict[str, Any]]:
    lines = [x for p in results.glob("samples*.jsonl") for x in p.read_text().splitlines()]
    return [x for x in map(json.loads, lines) if x["record"] == "sample"]


def fill(directory: Path) -> Path:
    """Fills a disk to its last byte; the file that does it."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return filler


@contextmanager
def unwritable(directory: Path) -> Iterator[Path]:
    """Somebody else's directory."""
    if os.geteuid() != 0:
        raise NotHereError("only root can become another user")
    if shutil.which("setpriv") is None:
        raise NotHereError("no setpriv")
    checkout = [*NOBODY, "test", "-x", sys.executable]
    if subprocess.run(checkout, check=False).returncode != 0:
        raise NotHereError("another user cannot read this checkout")
    place = directory / "others"
    place.mkdir(mode=0o755, exist_ok=True)
    yield place


@contextmanager
def read_only(directory: Path) -> Iterator[Path]:
    """A file system that is mounted read-only."""
    with small_disk(directory / "read-only", "1m") as place:
        mount("-o", "remount,ro", str(place))
        yield place


# ---- the program ----


def error_problems(done: Done, text: str, *where: str) -> list[str]:
    """Exit code 1 and one line of JSON whose error says which call of which worker, and why."""
    problems = must(done, 1)
    try:
        error = json.loads(done.stdout)["error"]
    except (ValueError, KeyError) as wrong:
        return [*problems, f"no line of JSON ({wrong}): {said(done)[-500:]}"]
    if error is None:
        return [*problems, "error is null"]
    if text not in error["text"] or error["where"] not in where or not error["class"]:
        problems.append(f"error is {error}, not {text!r} of {' or '.join(where)}")
    if not isinstance(error["worker"], int):
        problems.append(f"error names no worker: {error}")
    return problems


def the_program_tells_of_a_full_disk(here: Here) -> list[str]:
    """Threads and ranks, each route: all workers stop, and the JSON says why."""
    problems = []
    with small_disk(here.directory / "small", "8m") as small:
        for mpi in ("", "mpich", "openmpi"):
            for route in ("posix", "engine"):
                done = here.program(small / "file", "--route", route, mpi=mpi)
                found = error_problems(done, "No space left on device", "write")
                problems += [f"{mpi or 'threads'} {route}: {one}" for one in found]
                for left in small.iterdir():
                    left.unlink()
    return problems


def the_program_tells_what_it_cannot_open(here: Here) -> list[str]:
    """A directory of others, a read-only one, and none; with and without a file before its own."""
    problems = []
    for words in (("--route", "posix"), ("--route", "engine", "--warm-disk", "0")):
        problems += unopened_problems(here, *words)
    return problems


def unopened_problems(here: Here, *words: str) -> list[str]:
    where = ("prepare", "open")
    done = here.program(here.directory / "none" / "file", *words)
    problems = error_problems(done, "No such file or directory", *where)
    with read_only(here.directory) as place:
        done = here.program(place / "file", *words)
        problems += error_problems(done, "Read-only file system", *where)
    with unwritable(here.directory) as place:
        done = here.program(place / "file", *words, before=NOBODY)
        problems += error_problems(done, "Permission denied", *where)
    return problems


# ---- penstock bench ----


def bench_tells_of_a_full_disk(here: Here) -> list[str]:
    """What is measured is full: samples that failed are kept with the reason, and it is said."""
    matrix = here.matrix(bufsize="1MiB", iters=32)
    with small_disk(here.directory / "small", "8m") as small:
        done = here.bench(small, "--matrix", matrix, "--out", "out")
        problems = [] if done.returncode != 0 else ["ended with 0 where nothing could be measured"]
        problems += must(done, done.returncode, "No space left on device")
        taken = samples(here.directory / "out")
        problems += ["no sample is kept"] if not taken else []
        problems += [f"not failed: {x['cell']}" for x in taken if not x["failed"]]
        problems += [f"{left} is left" for left in small.iterdir()]
    return problems


def results_on_a_full_disk_lose_nothing(here: Here) -> list[str]:
    """It stops and says what helps; with room again the same command finishes what is missing."""
    data = here.directory / "data"
    data.mkdir()
    command = ("--matrix", here.matrix(rounds=12))
    with small_disk(here.directory / "small", "64k") as small:
        out = small / "out"
        words = (*command, "--out", str(out))
        out.mkdir()
        filler = small / "filler"
        filler.write_bytes(b"\0" * (40 << 10))  # leaves room for some samples
        done = here.bench(data, *words)
        problems = must(done, 1, "No space left on device", "run the same command again")
        before = samples(out)
        problems += ["no sample before the disk was full"] if not before else []
        filler.unlink()
        mount("-o", "remount,size=4m", str(small))
        problems += must(here.bench(data, *words), 0)
        after = samples(out)
        problems += ["samples were lost"] if after[: len(before)] != before else []
        own = [x for x in after if not x["canary"] and not x.get("warm_up")]
        problems += [f"{len(own)} samples, not 24"] if len(own) != 24 else []
    return problems


def results_that_cannot_be_written_cost_nothing(here: Here) -> list[str]:
    """Known before anything is measured."""
    data = here.directory / "data"
    data.mkdir(mode=0o777)
    data.chmod(0o777)
    matrix = here.matrix()
    problems = []
    with small_disk(here.directory / "small", "64k") as small:
        fill(small)
        done = here.bench(data, "--matrix", matrix, "--out", str(small / "out"))
        problems += must(done, 1, "No space left on device")
    with read_only(here.directory) as place:
        done = here.bench(data, "--matrix", matrix, "--out", str(place / "out"))
        problems += must(done, 1, str(place / "out"), "Read-only file system", "--out")
    with unwritable(here.directory) as place:
        words = ("--matrix", matrix, "--out", str(place / "out"))
        done = here.bench(data, *words, before=NOBODY)
        problems += must(done, 1, str(place / "out"), "Permission denied", "--out")
    done = here.bench(data, "--matrix", matrix, "--out", "none/below/out")
    problems += must(done, 2, "none/below", "there is no directory", "--out")
    return problems + [f"{left} is left" for left in data.iterdir()]


def directories_that_cannot_be_measured_are_told(here: Here) -> list[str]:
    """None, a file, one of others, a read-only one; no results are begun."""
    words = ("--matrix", here.matrix(), "--out")
    out = here.directory / "out"
    missing = here.directory / "missing"
    problems = must(here.bench(missing, *words, str(out)), 2, str(missing))
    problems += must(here.bench(Path(words[1]), *words, str(out)), 2, words[1])
    with read_only(here.directory) as place:
        done = here.bench(place, *words, str(out))
        problems += must(done, 1, str(place), "Read-only file system")
    with unwritable(here.directory) as place:
        here.directory.chmod(0o777)
        done = here.bench(place, *words, str(here.directory / "own"), before=NOBODY)
        problems += must(done, 1, str(place), "Permission denied")
    taken = [x for made in here.directory.glob("o*") for x in samples(made)]
    return problems + (["samples of nothing"] if taken else [])


CASES: list[Callable[[Here], list[str]]] = [
    the_program_tells_of_a_full_disk,
    the_program_tells_what_it_cannot_open,
    bench_tells_of_a_full_disk,
    results_on_a_full_disk_lose_nothing,
    results_that_cannot_be_written_cost_nothing,
    directories_that_cannot_be_measured_are_told,
]


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    own_mounts()
    suite = Suite("full disk")
    for case in CASES:
        if options.only not in case.__name__:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-full-") as directory:
            Path(directory).chmod(0o755)
            try:
                suite.check(case.__name__, case(Here(options.build.resolve(), Path(directory))))
            except NotHereError as missing:
                suite.skip(case.__name__, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
