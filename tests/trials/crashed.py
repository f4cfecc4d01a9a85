#!/usr/bin/env python3
"""A file system goes down while ranks write: what was promised is on its device afterwards.

Each trial starts records.cpp under Penstock on a file system of a loop device, and takes that down
at a random moment, as a machine does that loses power: nothing of its journal and nothing of what
waits in memory is written any more. Then it is mounted again, and plain reads compare the file with
what the ranks had noted:

- what a sync had returned of is there, intact; where the file system is mounted with `sync`, what a
  write had returned of;
- every other byte is one that the program wrote there, or a hole;
- the job ends, because a call has said that it failed, and no rank dies of a page it cannot have.

In some trials the file system stays, and the file becomes one that nobody may write (chattr +i).
Of each way past the page cache one job is not harmed: only that one's log says that it went so.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "instrument"))
from cold import cold_bytes, why_none
from crash import crash_problems
from disks import NotHereError, mount, own_mounts
from mpis import MPIS
from records import START_S, Figures, Job
from run_mpi import Bench, Outcome, Penstock, Suite, arguments, launch

MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
PACKAGE = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
IMAGE_BYTES = 512 << 20
# linux/fs.h of 6.18 and xfs_fs.h: _IOR('X', 125, __u32), and not to write the journal before.
GO_DOWN, WITHOUT_JOURNAL = 0x8004587D, 2
TOGETHER = "two_phase(writers=2, cycle=64KiB) + shm + "
NEVER = 1 << 40
UNIT_BYTES = 4096  # at most: only whole ones go past the page cache
# Of records that have some. Few places, so that each is judged soon.
LONG = ("--bytes=20011", "--slots=60")


@dataclass(frozen=True)
class Way:
    """How the ranks write, and what they are promised."""

    method: str
    collective: bool = True
    at_once: bool = False  # independent writes
    synchronous: bool = False  # the mount: a write is promised as soon as it has returned
    immutable: bool = False  # what becomes of the file, while its file system stays
    cold: bool = False  # as if memory were: past the page cache

    @property
    def name(self) -> str:
        access = "collective" if self.collective else "independent"
        more = [" at once"] * self.at_once + [" on a synchronous mount"] * self.synchronous
        more += [" into what becomes immutable"] * self.immutable
        more += [" in cold memory"] * self.cold
        return f"{access}{''.join(more)}, {self.method}"

    @property
    def past(self) -> bool:
        """Past the page cache."""
        return self.cold or "direct" in self.method

    @property
    def says(self) -> str:
        """The class of the errors that the ranks are told."""
        return "access" if self.immutable else "io"

    def can_be_on(self, kind: str) -> bool:
        """Elsewhere who has an immutable file open goes on writing."""
        return not self.immutable or kind == "ext4"


MECHANISMS = (
    "pwrite",
    "pwritev",
    "mmap",
    "mmap(window=file)",
    "uring",
    "uring(direct, registered)",
    "linux_aio(direct)",
    "posix_aio",
)
SYNCS = ("every", "coordinated", "stream", "background", "pulse")
WAYS = [
    Way("auto"),
    *(Way(f"{TOGETHER}{mechanism}") for mechanism in MECHANISMS),
    *(Way(f"{TOGETHER}pwritev + {sync}=64KiB") for sync in SYNCS),
    Way("individual + none + pwritev"),
    Way("auto", collective=False),
    Way("auto", collective=False, at_once=True),
    Way("individual + none + mmap", collective=False, at_once=True),
    Way("auto", synchronous=True),
    Way(f"{TOGETHER}mmap", synchronous=True),
    Way("auto", collective=False, synchronous=True),
    Way("auto", cold=True),
    Way("individual", cold=True),
    Way("auto", collective=False, cold=True),
    Way("auto", collective=False, at_once=True, cold=True),
    Way("auto", immutable=True),
    Way(f"{TOGETHER}mmap", immutable=True),
    Way("auto", collective=False, immutable=True),
    Way("auto", collective=False, at_once=True, immutable=True),
]


# ---- the file system ----


@dataclass(frozen=True)
class Disk:
    """A file system in a file. Loop devices go with their mounts."""

    kind: str
    image: Path
    place: Path

    def make(self) -> None:
        name, *how = MAKE[self.kind]
        program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            raise NotHereError(f"no {name}; on Debian: apt-get install {PACKAGE[self.kind]}")
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        done = subprocess.run(
            [program, *how, str(self.image)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")

    @contextmanager
    def mounted(self, *, synchronous: bool = False) -> Iterator[Path]:
        options = "loop,sync" if synchronous else "loop"
        mount("-t", self.kind, "-o", options, str(self.image), str(self.place))
        try:
            yield self.place / "data"
        finally:
            self._unmount()

    def _unmount(self) -> None:
        """A process that was just ended may still hold it."""
        for _ in range(50):
            done = subprocess.run(["umount", str(self.place)], capture_output=True, check=False)
            if done.returncode == 0:
                return
            time.sleep(0.1)
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)

    def go_down(self) -> None:
        """A file system that knows no such call says so."""
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, GO_DOWN, struct.pack("I", WITHOUT_JOURNAL))
        except OSError as error:
            raise NotHereError(f"{self.kind} cannot be taken down: {error.strerror}") from error
        finally:
            os.close(place)


@contextmanager
def disk(kind: str) -> Iterator[Disk]:
    """One that has gone down once, and so can."""
    if os.geteuid() != 0:
        raise NotHereError("only root can mount")
    with tempfile.TemporaryDirectory(prefix="penstock-disk-") as directory:
        made = Disk(kind, Path(directory) / "image", Path(directory) / "mnt")
        made.place.mkdir()
        made.make()
        with made.mounted():
            made.go_down()
        yield made


# ---- a trial ----


@dataclass(frozen=True)
class Trial(Job):
    """One job, and what becomes of its disk."""

    way: Way
    disk: Disk
    dice: random.Random
    alone: bool

    def start(self, file: Path, *more: str) -> Outcome:
        sync_every = NEVER if self.way.synchronous else self.dice.choice([10, 40, 400])
        program = [str(self.bench.program("records")), f"--dir={self.directory}"]
        program += [f"--file={file}", f"--seed={self.dice.randrange(1 << 30)}"]
        program += [f"--sync-every={sync_every}", f"--collective={int(self.way.collective)}"]
        program += [*(LONG if self.way.past else ()), *more]
        environment = {"PENSTOCK_WRITE_BEHIND": "off"} if self.way.at_once else {}
        environment |= {"PENSTOCK_TEST_COLD": "1"} if self.way.cold else {}
        how = None if self.alone else Penstock(self.way.method, environment=environment)
        return launch(self.bench, self.ranks, program, penstock=how, timeout_s=START_S + 15)

    def run(self, pool: ThreadPoolExecutor) -> tuple[Outcome, list[str], float]:
        """What the job said, what is wrong with it, and when it was harmed."""
        with self.disk.mounted(synchronous=self.way.synchronous) as file:
            file.write_bytes(b"")
            os.sync()  # so that it has a name, whatever comes
            job = pool.submit(self.start, file)
            problems, died_s = self.harm(job, file)
            out = job.result()
            if self.way.immutable:
                change_attribute("-i", file)
            return out, problems or self.problems_of(out), died_s

    def harm(self, job: Future[Outcome], file: Path) -> tuple[list[str], float]:
        """And right before when. A sync that is under way meanwhile is not held to its word: ext4
        of Linux 6.18 says success of some whose bytes are lost."""
        if not self.wait_until_all_write(job, synced=not self.way.synchronous):
            return ["not all ranks began to write, or to sync"], 0
        time.sleep(self.dice.uniform(0, 0.25))
        if job.done():
            return ["the job ended before it was harmed"], 0
        now_s = time.monotonic()
        if self.way.immutable:
            change_attribute("+i", file)
        else:
            self.disk.go_down()
        return [], now_s

    def said(self) -> list[tuple[str, str]]:
        """Calls that failed, and the classes of their errors."""
        texts = [path.read_text().split() for path in self.directory.glob("said.*")]
        return [(words[0], words[1]) for words in texts if len(words) == 2]

    def problems_of(self, out: Outcome) -> list[str]:
        problems = ["the job did not end"] if out.hung else []
        said = self.said()
        if not said:
            problems.append("no call said that it failed")
        if not self.alone:
            problems += [f"{call} said {name}" for call, name in said if name != self.way.says]
        return problems + crash_problems(out.output + out.errors)

    def look(self, died_s: float) -> dict[str, float]:
        promised = "accepted" if self.way.synchronous else "synced"
        with self.disk.mounted() as file:
            verdict = self.judge(died_s, f"--file={file}", f"--promised={promised}")
            file.unlink()
            return verdict


def change_attribute(which: str, file: Path) -> None:
    subprocess.run(["chattr", which, str(file)], check=True)


# ---- all of them ----


def run_trial(suite: Suite, case: str, trial: Trial, figures: Figures) -> None:
    with ThreadPoolExecutor(1) as pool:
        out, problems, died_s = trial.run(pool)
    verdict = trial.look(died_s)
    figures.add(verdict)
    for what in ("missing", "damaged"):
        if verdict[what]:
            problems.append(f"{int(verdict[what])} bytes {what}")
    suite.check(case, problems, out)


def past_problems(way: Way, out: Outcome) -> list[str]:
    """A write of three units has two whole ones in it, wherever it begins."""
    if out.code != 0:
        return [f"exit code {out.code}"]
    if way.cold:
        return [] if cold_bytes(out) else ["no byte went past the page cache"]
    writes = sum(file["traffic"]["file_writes"] for log in out.logs for file in log["files"])
    long_ones = out.total("engine_bytes") >= 3 * UNIT_BYTES * writes > 0
    return [] if long_ones else [f"{out.total('engine_bytes')} bytes in {writes} writes"]


def run_whole(suite: Suite, case: str, trial: Trial) -> None:
    with trial.disk.mounted() as file:
        if trial.way.cold and (why := why_none(file.parent)):
            suite.skip(case, why)
            return
        out = trial.start(file, "--records=60")
        file.unlink()
    suite.check(case, past_problems(trial.way, out), out)


def chosen(kind: str, options: argparse.Namespace) -> list[tuple[str, Way, bool]]:
    """The cases on such a file system: name, way, and whether the job is harmed."""
    cases = []
    for way in (way for way in WAYS if way.can_be_on(kind)):
        name = f"{kind} {way.name}"
        cases += [(f"{name} {number + 1}", way, True) for number in range(options.trials)]
        if way.past and not options.alone:
            cases.append((f"{name} past the page cache", way, False))
    return [case for case in cases if options.only in case[0]]


def run_on(
    suite: Suite, bench: Bench, made: Disk, options: argparse.Namespace, seen: Figures
) -> None:
    for case, way, harmed in chosen(made.kind, options):
        with tempfile.TemporaryDirectory(prefix="penstock-crashed-") as notes:
            dice = random.Random(case)  # noqa: S311 - moments, not secrets
            trial = Trial(bench, Path(notes), way, made, dice, options.alone)
            if harmed:
                run_trial(suite, case, trial, seen)
            else:
                run_whole(suite, case, trial)


TELLING = 20  # trials of which it would be strange that none loses anything


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--trials", type=int, default=1, help="of each way, on each file system")
    options = parser.parse_args()
    own_mounts()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"crashed {options.mpi}", options.mpi, options.record)
    figures = Figures()
    for kind in MAKE:
        if not chosen(kind, options):
            continue
        try:
            with disk(kind) as made:
                run_on(suite, bench, made, options, figures)
        except NotHereError as missing:
            suite.skip(kind, str(missing))
    if figures.trials:
        print(figures.line())
        # Where nothing is ever lost nothing was in memory alone, and the trials show nothing.
        all_kept = not any(figures.lost) and figures.trials >= TELLING
        problems = [f"none of {figures.trials} trials lost anything"] * all_kept
        problems += ["nothing was synced"] * (not figures.synced and figures.trials >= TELLING)
        suite.check("the trials show something", problems)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
