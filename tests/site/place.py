"""Where one case runs: a directory of its own, and the same job alone and under Penstock in it.

The native files and the program are copied to a directory that every user may read, because a
checkout below a private home is closed to the other user of some cases.
"""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mpis import Mpi
from run_mpi import Bench, Outcome, Penstock, Suite, launch, program_problems, served_problems

HERE = Path(__file__).resolve().parent
TWO_PHASE = "two_phase(writers=2, cycle=4KiB)"
RANKS = 2
WARNINGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]


class NotHereError(Exception):
    """What a case needs is not on this machine; the text says what."""


def compiler(mpi: Mpi) -> str:
    """The compiler wrapper of the library that ``mpi``'s programs are built for."""
    if mpi.root is None:
        found = shutil.which(f"mpicc.{mpi.name}") or shutil.which("mpicc")
    else:
        # What was built for the distribution's Open MPI runs on a newer one.
        names = {"abi": "mpicc_abi", "mpich5": "mpicc", "openmpi": "mpicc.openmpi"}
        beside = mpi.root.parent / "mpich5" / "bin" / names[mpi.programs]
        found = shutil.which(names[mpi.programs] if mpi.programs == "openmpi" else str(beside))
    if found is None:
        raise NotHereError(f"no compiler wrapper of {mpi.title}")
    return found


class FailsAloneError(Exception):
    """The MPI library itself cannot do it here; the text says what it cannot."""


@dataclass(frozen=True)
class Site:
    """What all cases share: the library, the copies, and the suite that counts."""

    bench: Bench
    suite: Suite
    program: Path
    root: Path  # a directory that everybody may enter
    only: str = ""
    spoiler: Path | None = None  # is preloaded into served jobs

    @contextmanager
    def place(self, case: str) -> Iterator[Place]:
        with tempfile.TemporaryDirectory(prefix="case-", dir=self.root) as directory:
            Path(directory).chmod(0o755)
            yield Place(self, case, Path(directory))


@contextmanager
def site(build: Path, mpi: Mpi, suite: Suite, only: str, *, spoiled: bool) -> Iterator[Site]:
    """Copies what runs, and compiles the program; ``spoiled``: and spoiler.c."""
    with tempfile.TemporaryDirectory(prefix="penstock-site-") as directory:
        root = Path(directory)
        root.chmod(0o755)
        shutil.copytree(build / "native", root / "build" / "native")
        program, spoiler = root / "site", root / "spoiler.so" if spoiled else None
        build_program([compiler(mpi), str(HERE / "site.c"), "-lm", "-o", str(program)])
        if spoiler is not None:
            build_program(["cc", "-shared", "-fPIC", str(HERE / "spoiler.c"), "-o", str(spoiler)])
        yield Site(Bench(root / "build", mpi), suite, program, root, only, spoiler)


def build_program(command: list[str]) -> None:
    command = [command[0], *WARNINGS, *command[1:]]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if made.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{made.stderr}")


@dataclass
class Place:
    """One case. ``alone`` and ``served`` start the same job in directories of the same shape."""

    site: Site
    case: str
    directory: Path
    problems: list[str] = field(default_factory=list)
    last: Outcome | None = None

    def directory_of(self, how: str) -> Path:
        path = self.directory / how
        path.mkdir(exist_ok=True)
        return path

    def start(self, how: str, words: Sequence[str], options: Options) -> Outcome:
        directory = self.directory_of(how)
        penstock, wrap = None, [*options.wrap]
        if how != "alone":
            spoiler = self.site.spoiler
            wrap += ["env", f"LD_PRELOAD={spoiler}"] if spoiler is not None else []
            penstock = Penstock(options.method, require=options.require, log_dir=options.log_dir)
        out = launch(
            self.site.bench,
            RANKS,
            [str(self.site.program), *(w.replace("@", str(directory)) for w in words)],
            penstock=penstock,
            before=options.before,
            wrap=wrap,
            environment=dict(options.environment),
            directory=directory,
            timeout_s=60,
        )
        self.last = out
        return out

    def alone(self, *words: str, options: Options | None = None) -> Outcome:
        return self.start("alone", words, options or Options())

    def served(self, *words: str, options: Options | None = None) -> Outcome:
        return self.start("served", words, options or Options())

    def must(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)

    def must_serve(self, out: Outcome) -> None:
        """The program is content, and the engine wrote every byte of it."""
        self.problems += program_problems(out)
        self.problems += served_problems(out, "two_phase")

    def must_be_content(self, out: Outcome, how: str) -> None:
        self.problems += [f"{how}: {problem}" for problem in program_problems(out)]

    def must_be_same(self, what: str, alone: Sequence[str], served: Sequence[str]) -> None:
        if list(alone) != list(served):
            changed = difflib.unified_diff(list(alone), list(served), "alone", "served", "", "", 0)
            self.problems += [f"{what} differ", *(x for x in changed if not x.startswith("@"))]


@dataclass(frozen=True)
class Options:
    """How a job is started apart from its program; as in `launch`."""

    before: Sequence[str] = ()
    wrap: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    method: str = TWO_PHASE
    require: bool = True
    log_dir: bool = True


Case = Callable[[Place], None]


def run_case(site: Site, name: str, case: Case) -> None:
    """Runs one case; what is not on this machine is a skip with its reason."""
    if site.only not in name:
        return
    with site.place(name) as place:
        try:
            case(place)
        except NotHereError as missing:
            site.suite.skip(name, str(missing))
            return
        except FailsAloneError as alone:
            site.suite.skip(name, str(alone), fails_alone=True)
            return
        site.suite.check(name, place.problems, place.last)


def needs_root() -> None:
    if os.geteuid() != 0:
        raise NotHereError("only root can arrange it")


def needs(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        raise NotHereError(f"no {program}")
    return found


def with_mounts(script: str) -> list[str]:
    """Words before a command that run it in a mount namespace of its own, after ``script``."""
    needs_root()
    words = [needs("unshare"), "--mount", "--propagation", "private", "sh", "-c"]
    probe = subprocess.run(
        [*words, "mount -t tmpfs none /mnt"], capture_output=True, check=False, timeout=20
    )
    if probe.returncode != 0:
        raise NotHereError("mounts are not allowed")
    return [*words, f'{script} && exec "$@"', "sh"]
