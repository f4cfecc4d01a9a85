#!/usr/bin/env python3
"""`penstock bench` under a real Slurm: inside an allocation, and as a job array that is submitted.

The Slurm is tests/fs/slurm.sh's: this machine as two nodes, without root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from disks import ROOT, NotHereError, script, working_disk
from run_mpi import Suite, plain_arguments

NODES = 2
PARTS = 3
ROUNDS = 4
Done = subprocess.CompletedProcess[str]

# Four cells in three parts: one part has two. {comptime}: how long a sample takes.
MATRIX = """
name = "slurm"
rounds = {rounds}
settle = "0.1s"

[defaults]
route = "posix"
regime = "asis"
threads = 1
bufsize = "64KiB"
comptime = {comptime}

[sweep]
iters = [1, 2, 3, 4]

[compare]
end = ["sync", "close"]
"""
RANKS = """
rounds = 2

[defaults]
mpi = "mpich"
ranks = 4
bufsize = "64KiB"
iters = 4
regime = "asis"
"""
CELLS = 4
VARIANTS = 2


@dataclass(frozen=True)
class Cluster:
    """A Slurm, and a directory to measure in."""

    env: dict[str, str]
    directory: Path

    def run(self, *words: str, timeout_s: float = 120) -> Done:
        return subprocess.run(
            words,
            env=self.env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def bench(self, *words: str, before: tuple[str, ...] = ()) -> Done:
        """Measures in ./data, with the checkout's penstock."""
        command = [*before, sys.executable, "-m", "penstock", "bench", "data", *words]
        return self.run(*command, timeout_s=300)

    def matrix(self, *, comptime: float = 0.0) -> str:
        path = self.directory / "matrix.toml"
        path.write_text(MATRIX.format(rounds=ROUNDS, comptime=comptime))
        return path.name

    def queued(self) -> list[str]:
        """Elements that wait, run or end: ``JOB_INDEX``."""
        told = self.run("squeue", "--noheader", "--array", "--format=%i").stdout
        return told.split()

    def wait(self, seconds: float = 120) -> list[str]:
        """Waits for every job; what is wrong."""
        ended = until(lambda: not self.queued(), seconds)
        return [] if ended else [f"jobs do not end: {self.queued()}; {self.logs()}"]

    def logs(self) -> str:
        return "\n".join(
            f"{p.name}: {p.read_text()[-1500:]}" for p in self.directory.rglob("slurm-*")
        )


def until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@contextmanager
def cluster(build: Path) -> Iterator[Cluster]:
    """A Slurm for one case, with an empty directory on the working disk."""
    with working_disk("slurm") as disk, tempfile.TemporaryDirectory(prefix="penstock-slurm-") as at:
        script("slurm.sh", "start", at, str(NODES))
        # What a job of Slurm's around this suite set is not ours.
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PENSTOCK_"))}
        env |= {"SLURM_CONF": f"{at}/slurm.conf", "PYTHONPATH": str(ROOT / "python")}
        env |= {"PENSTOCK_NATIVE_DIR": str(build / "native")}
        (disk.directory / "data").mkdir()
        try:
            yield Cluster(env, disk.directory)
        finally:
            script("slurm.sh", "stop", at)


def must(done: Done, *, code: int = 0, says: str = "") -> list[str]:
    """What is wrong with how a command ended."""
    problems = [] if done.returncode == code else [f"ended with {done.returncode}, not {code}"]
    output = " ".join((done.stdout + done.stderr).split())  # as if the terminal were wide
    if says not in output:
        problems.append(f"does not say {says!r}")
    return [f"{' '.join(done.args)}: {problem}: {done.stdout}{done.stderr}" for problem in problems]


def samples(results: Path) -> list[dict[str, Any]]:
    """The samples of all parts; a line that is being written is none yet."""
    found = []
    for path in sorted(results.glob("samples*.jsonl")):
        for line in path.read_text().split("\n")[:-1]:
            record = json.loads(line)
            if record["record"] == "sample":
                found.append(record | {"part": path.name})
    return found


def keys(taken: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter((x["cell"], x["variant"], x["block"], x["canary"]) for x in taken)


def whole_problems(results: Path) -> list[str]:
    """Every cell and variant has its rounds, nothing was measured twice, and nothing failed."""
    taken = samples(results)
    problems = [f"failed: {x['failed']}" for x in taken if x["failed"]]
    problems += [f"measured {n} times: {key}" for key, n in keys(taken).items() if n > 1]
    own = [x for x in taken if not x["canary"] and not x.get("warm_up")]
    rounds = Counter((x["cell"], x["variant"]) for x in own)
    if len(rounds) != CELLS * VARIANTS:
        problems.append(f"{len(rounds)} cells and variants, not {CELLS * VARIANTS}: {rounds}")
    problems += [f"{pair}: {n} rounds, not {ROUNDS}" for pair, n in rounds.items() if n != ROUNDS]
    parts_of = {x["cell"]: x["part"] for x in taken}
    if any(x["part"] != parts_of[x["cell"]] for x in taken):
        problems.append("a cell was measured by two parts")
    if len(set(parts_of.values())) != PARTS:
        problems.append(f"not {PARTS} parts: {sorted(set(parts_of.values()))}")
    return problems


# ---- cases ----


def submitted_parts_make_the_whole(slurm: Cluster) -> list[str]:
    """An array of three elements measures all, and the same command without --submit shows it."""
    sweep = ("--matrix", slurm.matrix(), "--out", "out")
    problems = must(slurm.bench(*sweep, "--submit", str(PARTS)), says=f"parts 0-{PARTS - 1} of")
    problems += slurm.wait()
    problems += whole_problems(slurm.directory / "out")
    before = keys(samples(slurm.directory / "out"))
    problems += must(slurm.bench(*sweep))
    if keys(samples(slurm.directory / "out")) != before:
        problems.append("gathering measured again")
    return [*problems, slurm.logs()] if problems else []


def a_cancelled_part_resumes(slurm: Cluster) -> list[str]:
    """scancel ends one element; the same command submits it alone, and it goes on."""
    results = slurm.directory / "out"
    command = ("--matrix", slurm.matrix(comptime=0.15), "--out", "out", "--submit", str(PARTS))
    problems = must(slurm.bench(*command))
    others = [x for x in slurm.queued() if not x.endswith("_0")]
    problems += must(slurm.run("scontrol", "hold", *others))  # however slow this machine is
    until(lambda: len(samples(results)) >= 4, 60)
    victim = next((x for x in slurm.queued() if x.endswith("_0")), "")
    if not victim:
        return [f"part 0 does not run: {slurm.queued()}; {slurm.logs()}"]
    problems += must(slurm.run("scancel", victim))
    if not until(lambda: victim not in slurm.queued(), 60):
        problems.append(f"{victim} does not end")
    taken = samples(results)
    problems += must(slurm.bench(*command), says="part 0 of 3; parts 1-2 of an earlier job still")
    problems += must(slurm.run("scontrol", "release", *others))
    problems += slurm.wait()
    problems += whole_problems(results)
    lost = set(keys(taken)) - set(keys(samples(results)))
    problems += [f"lost: {key}" for key in lost]
    return [*problems, slurm.logs()] if problems else []


def parts_that_are_queued_are_not_submitted_again(slurm: Cluster) -> list[str]:
    """And what cannot be submitted is refused with the reason and the remedy."""
    command = ("--matrix", slurm.matrix(comptime=5), "--out", "out")
    problems = must(slurm.bench(*command, "--submit", "2"))
    again = slurm.bench(*command, "--submit", "2")
    problems += must(again, code=2, says="queued or running already")
    problems += must(slurm.bench(*command, "--submit", "3"), code=2, says="submitted in 2 parts")
    slurm.run("scancel", "--user", slurm.run("id", "-un").stdout.strip())
    problems += slurm.wait()
    elsewhere = ("--matrix", "matrix.toml", "--out", "other", "--submit", "2")
    refused = slurm.bench(*elsewhere, "--sbatch=--partition=nowhere")
    problems += must(refused, code=1, says="invalid partition specified: nowhere")
    return problems


def a_dry_run_submits_nothing(slurm: Cluster) -> list[str]:
    """It prints a script that bash can read."""
    sweep = ("--matrix", slurm.matrix(), "--out", "out", "--submit", "2", "--dry-run")
    done = slurm.bench(*sweep, "--sbatch=--time=5")
    problems = must(done, says="#SBATCH --time=5")
    if slurm.queued() or (slurm.directory / "out" / "submit.json").exists():
        problems.append("something was submitted")
    (slurm.directory / "script").write_text(done.stdout)
    return problems + must(slurm.run("bash", "-n", "script"))


def inside_an_allocation_srun_starts_the_ranks(slurm: Cluster) -> list[str]:
    """Ranks of MPICH on two nodes, verified by the program; the launcher is srun."""
    (slurm.directory / "ranks.toml").write_text(RANKS)
    allocate = ("salloc", f"--nodes={NODES}", "--ntasks=4")
    done = slurm.bench("--matrix", "ranks.toml", "--out", "out", before=allocate)
    problems = must(done)
    taken = samples(slurm.directory / "out")
    problems += [f"failed: {x['failed']}" for x in taken if x["failed"]]
    problems += [
        f"not by srun: {x['command']}" for x in taken if Path(x["command"][0]).name != "srun"
    ]
    problems += [f"{x['result']['ranks']} ranks" for x in taken if x["result"]["ranks"] != 4]
    return problems if taken else [*problems, "no sample"]


CASES = [
    submitted_parts_make_the_whole,
    a_cancelled_part_resumes,
    parts_that_are_queued_are_not_submitted_again,
    a_dry_run_submits_nothing,
    inside_an_allocation_srun_starts_the_ranks,
]


def main() -> int:
    options = plain_arguments(__doc__).parse_args()
    suite = Suite("slurm")
    for case in CASES:
        if options.only not in case.__name__:
            continue
        try:
            with cluster(options.build.resolve()) as slurm:
                suite.check(case.__name__, case(slurm))
        except NotHereError as missing:
            suite.skip(case.__name__, str(missing))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
