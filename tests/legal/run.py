#!/usr/bin/env python3
"""Runs the legal programs under Penstock: nobody hangs, bytes are right, exit codes are theirs."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS
from run_mpi import (
    Bench,
    Outcome,
    Penstock,
    Suite,
    arguments,
    launch,
    program_problems,
    served_problems,
)
from share import Share, add_share

TWO_PHASE = "two_phase(writers=2, cycle=4KiB)"
RUNS_ALONE = 5
METHODS = (TWO_PHASE, "auto")


@dataclass(frozen=True)
class Program:
    """One legal program on so many ranks."""

    name: str
    ranks: int
    bytes: int = 200_000

    @property
    def label(self) -> str:
        return f"{self.name}.{self.ranks}.{self.bytes}"


PROGRAMS = [
    Program("isend_wait", 2, 8 << 20),
    Program("isend_wait", 2),
    Program("isend_wait", 4),
    Program("send_recv", 2, 8 << 20),
    Program("send_recv", 3),
    Program("late_ranks", 3),
    Program("empty_rank", 3),
    Program("empty_rank", 8),
    Program("empty_rank", 16),
    Program("threads", 2),
    Program("meanwhile", 2),
    Program("meanwhile", 3),
    Program("meanwhile_view", 2),
    Program("meanwhile_view", 3),
    Program("sub_communicators", 4),
    Program("opened_twice", 2),
    Program("freed_early", 3),
    Program("no_io", 2),
]


def start(
    bench: Bench, program: Program, penstock: Penstock | None, timeout_s: float = 60
) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="penstock-legal-") as directory:
        command = [str(bench.program("legal")), program.name, f"--dir={directory}"]
        command.append(f"--bytes={program.bytes}")
        return launch(bench, program.ranks, command, penstock=penstock, timeout_s=timeout_s)


def run_program(bench: Bench, suite: Suite, program: Program, method: str) -> None:
    out = start(bench, program, Penstock(method))
    case = f"{program.label} {method}"
    if out.code == 77:
        suite.skip(case, next(x for x in out.output.splitlines() if x.startswith("skip")))
        return
    problems = program_problems(out)
    if program.name == "no_io":
        problems += ["a log for a program without files"] if out.logs else []
    else:
        problems += served_problems(out, "two_phase" if method == TWO_PHASE else None)
    suite.check(case, problems, out)


def tells_of_its_own_kill(out: Outcome) -> bool:
    """MPICH's launcher ends the rank that is left by SIGHUP, and may tell of that end alone."""
    return out.code == signal.SIGHUP and "Hangup (signal 1)" in out.output + out.errors


def run_ending(bench: Bench, suite: Suite, how: str) -> None:
    """However the program ends, the launcher's exit code is one that it has without Penstock.

    The launcher ends the other rank when one has ended, and which of the two it tells of differs
    from run to run: the program is run alone until the code is met, a few times at most. One that
    is too rare for that (1 of 1500 runs alone) is known by what the launcher says.
    """
    program = Program(how, 2)
    served = start(bench, program, Penstock(TWO_PHASE))
    problems, codes = [], set[int]()
    for _ in range(RUNS_ALONE):
        alone = start(bench, program, None)
        codes.add(alone.code)
        if (served.hung, served.code) == (alone.hung, alone.code) or tells_of_its_own_kill(served):
            break
    else:
        problems.append(f"exit code {served.code} (hung {served.hung}), alone {sorted(codes)}")
    if how == "kill" and [log["state"] for log in served.logs] != ["running"]:
        states = [log["state"] for log in served.logs]
        problems.append(f"the log of a killed job has to be readable and say running: {states}")
    suite.check(f"ends by {how}", problems, served)


def run_broken_engine(bench: Bench, suite: Suite) -> None:
    """Rank 1 has an engine that cannot be loaded: the job ends and says why, and nobody hangs."""
    with tempfile.TemporaryDirectory(prefix="penstock-legal-") as directory:
        broken = Path(directory) / "native"
        shutil.copytree(bench.build / "native", broken)
        for engine in broken.glob("penstock-engine-*.so"):
            engine.write_text("no library\n")
        choose = Path(directory) / "choose.sh"
        choose.write_text(
            f"#!/bin/sh\nwhere={bench.build}/native\n"
            f'case "$PMI_RANK$OMPI_COMM_WORLD_RANK" in 1*) where={broken} ;; esac\n'
            'exec "$where/penstock-exec" --all-ranks --no-log "$@"\n'
        )
        choose.chmod(0o755)
        program = [str(bench.program("legal")), "opened_twice", f"--dir={directory}"]
        out = launch(bench, 2, program, wrap=[str(choose)], timeout_s=30)
    said = out.errors + out.output
    problems = ["hangs"] if out.hung else []
    problems += ["exit code 0"] if out.code == 0 else []
    problems += [] if "cannot be loaded" in said and "--method off" in said else ["no remedy"]
    suite.check("an engine that cannot be loaded on one rank", problems, out)


def run_without_mpi(bench: Bench, suite: Suite) -> None:
    """Programs that are not MPI programs run as ever: output, exit code, signal, no log."""
    wrapper = [str(bench.penstock_exec), "--mpi", bench.flavour]
    for command, code in (
        (["/bin/true"], 0),
        (["/bin/sh", "-c", "echo $((6*7)); exit 5"], 5),
        (["/bin/sh", "-c", "kill -TERM $$"], -15),
        (["/bin/cat", "/proc/self/comm"], 0),
    ):
        with tempfile.TemporaryDirectory(prefix="penstock-log-") as log_dir:
            served = subprocess.run(
                [*wrapper, "--log-dir", log_dir, "--", *command],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            left = list(Path(log_dir).iterdir())
        alone = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        problems = []
        if served.returncode != code or alone.returncode != code:
            problems.append(f"exit code {served.returncode}, alone {alone.returncode}")
        if (served.stdout, served.stderr) != (alone.stdout, alone.stderr):
            problems.append(f"says {served.stdout!r} {served.stderr!r}, alone {alone.stdout!r}")
        if left:
            problems.append(f"leaves {left}")
        suite.check(f"not an MPI program: {json.dumps(command)}", problems)


def cases(share: Share) -> Iterator[tuple[Program, str]]:
    for number, program in enumerate(PROGRAMS):
        for place, method in enumerate(METHODS):
            if share.takes(number, place):
                yield program, method


def run_programs(bench: Bench, suite: Suite, only: str, share: Share) -> None:
    for program, method in cases(share):
        if only in program.label:
            run_program(bench, suite, program, method)


def run_programs_alone(bench: Bench, suite: Suite, only: str) -> None:
    for program in PROGRAMS:
        if only in program.label:
            out = start(bench, program, None)
            suite.check(f"alone {program.label}", program_problems(out), out)


def main() -> int:
    parser = arguments(__doc__ or "")
    add_share(parser)
    options = parser.parse_args()
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = Suite(f"legal {options.mpi}", options.mpi, options.record)
    if options.alone:
        run_programs_alone(bench, suite, options.only)
        return suite.finish()
    run_programs(bench, suite, options.only, options.share)
    for how in ("abort", "exit", "kill", "segv"):
        if options.only in how:
            run_ending(bench, suite, how)
    if options.only in "broken engine":
        run_broken_engine(bench, suite)
    if options.only in "without":
        run_without_mpi(bench, suite)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
