#!/usr/bin/env python3
"""`make demo`: what Penstock does, measured live.

A claim that does not hold is said to be broken, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

from demo_parts import full_disk, launch, pairs
from endings import exit_on_signals
from rich.console import Console
from rich.table import Table

SCRATCH = launch.ROOT / "demo-output"
HEAT = ("--cells", "128", "--steps", "20", "--every", "2")
NEURONS = ("--neurons", "150000", "--steps", "80", "--every", "1")
# MPICH busy-polls, so it gets no more ranks than cores; Open MPI yields.
PROGRAMS = [
    pairs.Program("heat", "heat, 3-D blocks", "mpich", 2, HEAT),
    pairs.Program("heat", "heat, 3-D blocks", "openmpi", 4, HEAT),
    pairs.Program("neurons", "neurons", "mpich", 2, NEURONS),
    pairs.Program("neurons", "neurons, strided", "openmpi", 4, (*NEURONS, "--strided")),
]


class Claims:
    """Says each claim with its outcome, and remembers whether all held."""

    def __init__(self, console: Console) -> None:
        """Claims are printed on `console`."""
        self.console = console
        self.broken: list[str] = []

    def claim(self, holds: bool, text: str) -> None:
        """One line: what should hold, and whether it did."""
        mark = "[green]holds [/]" if holds else "[bold red]BROKEN[/]"
        self.console.print(f"   {mark} {text}", highlight=False)
        if not holds:
            self.broken.append(text)


def mib(count: int) -> str:
    """Bytes for people."""
    return f"{count / 2**20:.1f} MiB"


def time_span(values: list[float]) -> str:
    """Median and interval in seconds."""
    middle, low, high = pairs.median_interval(values)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


# ---- 1: a disk that fills ----


def disk_table(title: str, story: full_disk.Story) -> Table:
    """What every rank was told, beside the truth."""
    table = Table(
        title=title, title_justify="left", title_style="italic", box=None, padding=(0, 0, 0, 3)
    )
    for name in ("rank", "writes said", "sync", "close", "counted", "really in file", "time"):
        table.add_column(name, justify="right" if name in {"counted", "really in file"} else "left")
    for rank in story.ranks:
        took = f"{rank.elapsed_s:.2f} s" if rank.elapsed_s is not None else "never came back"
        counts = (mib(rank.counted_bytes), mib(rank.true_bytes))
        table.add_row(str(rank.rank), rank.write, rank.sync, rank.close, *counts, took)
    return table


def show_full_disk(console: Console, claims: Claims) -> None:
    """4 ranks, 64 MiB, a disk of 24 MiB, Open MPI."""
    console.print(
        "[bold]1. A disk that fills[/]: 4 ranks write 64 MiB collectively to a disk of 24 MiB, "
        "under Open MPI"
    )
    if "openmpi" not in launch.flavours():
        console.print("   not shown: Open MPI is not here (apt-get install openmpi-bin)")
        return
    if not full_disk.can_mount(SCRATCH / "disk"):
        console.print(
            "   not shown: a disk that really fills needs the right to mount one; run as root, "
            "or allow user namespaces"
        )
        return
    alone = full_disk.tell(SCRATCH, penstock=False)
    console.print(disk_table("   alone", alone))
    told = len(alone.ranks) == full_disk.RANKS and alone.classes == {"ok"}
    claims.claim(
        told and not alone.counts_true, "every rank is told success; the bytes are not there"
    )
    claims.claim(alone.job.code is None, "and then the job hangs (stopped after 10 s)")
    served = full_disk.tell(SCRATCH, penstock=True)
    console.print(disk_table("   with Penstock: penstock run -- mpiexec -n 4 ./full_disk", served))
    claim_truth(claims, served)


def claim_truth(claims: Claims, served: full_disk.Story) -> None:
    """With Penstock: one error class everywhere, true counts, in under a second."""
    told = len(served.ranks) == full_disk.RANKS and len(served.classes) == 1
    claims.claim(told and served.classes != {"ok"}, "every rank is told the same error")
    claims.claim(told and served.counts_true, "every byte that was counted is in the file")
    times = [rank.elapsed_s for rank in served.ranks]
    ended = told and served.job.code is not None
    quick = ended and all(took is not None and took < 1.0 for took in times)
    claims.claim(quick, "in under a second, and the job ends")


# ---- 2: real programs ----


def show_programs(console: Console, claims: Claims, count: int) -> None:
    """Each program alone and with Penstock, alternating."""
    console.print(
        f"\n[bold]2. Real programs, not recompiled[/]: {count} pairs each, in turn alone and with "
        "Penstock, after a warm-up"
    )
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores + 1:
        console.print(
            f"   [yellow]the machine is busy (load {load:.1f}, {cores} cores): times mean little[/]"
        )
    table = Table(box=None, padding=(0, 0, 0, 3))
    for name in ("program", "MPI", "ranks", "alone, s", "Penstock, s", "alone/Penstock", ""):
        table.add_column(name, justify="left")
    results = []
    for program in PROGRAMS:
        if program.flavour not in launch.flavours():
            console.print(f"   not shown: {program.title}: {program.flavour} is not here")
            continue
        result = pairs.compare(program, count, SCRATCH)
        results.append(result)
        table.add_row(*program_row(result))
    console.print(table)
    console.print("   medians with 95 % order-statistic intervals; times include open and close")
    for result in results:
        claim_program(claims, result)
    if not results:
        claims.claim(False, "at least one MPI library is here to run the examples")


def program_row(result: pairs.Comparison) -> list[str]:
    """One line of the table."""
    middle, low, high = pairs.median_interval(result.ratios)
    return [
        result.program.title,
        launch.LIBRARIES[result.program.flavour],
        str(result.program.ranks),
        time_span(result.alone_s),
        time_span(result.served_s),
        f"{middle:.2f} [{low:.2f}, {high:.2f}]",
        pairs.verdict(result.ratios),
    ]


def claim_program(claims: Claims, result: pairs.Comparison) -> None:
    """Files identical, all bytes by the engine, none passed through."""
    complaints = result.complaints()
    who = f"{result.program.title}, {launch.LIBRARIES[result.program.flavour]}"
    if complaints:
        claims.claim(False, f"{who}: {'; '.join(complaints)}")
        return
    how = ", ".join(sorted(result.algorithms))
    claims.claim(
        True,
        f"{who}: files identical; {mib(result.file_bytes)} by engine ({how}), 0 B passed through",
    )


# ---- 3: your own ----


def show_your_own(console: Console) -> None:
    """How to run one's own program."""
    console.print("\n[bold]3. Your own program[/], as it is, in any of three ways")
    for line in (
        ".venv/bin/penstock run -- mpiexec -n 4 ./your_program",
        "mpiexec -n 4 build/release/native/penstock-exec ./your_program",
        'eval "$(.venv/bin/penstock env)"; mpiexec -n 4 ./your_program',
    ):
        console.print(f"   {line}", highlight=False, markup=False)
    console.print(
        "   Look only: penstock run --observe ...   Check the bytes: penstock run --verify ..."
    )


def enter_namespace() -> None:
    """Without root, starts itself over where it may mount, if the system lets anybody do so."""
    if os.geteuid() == 0 or os.environ.get("PENSTOCK_DEMO_INSIDE") or not shutil.which("unshare"):
        return
    prefix = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
        os.environ["PENSTOCK_DEMO_INSIDE"] = "1"
        os.execvp(prefix[0], [*prefix, sys.executable, *sys.argv])  # noqa: S606


def main() -> int:
    """Shows the three parts."""
    parser = argparse.ArgumentParser(description="What Penstock does, measured live.")
    parser.add_argument(
        "--pairs", type=int, default=6, help="pairs of runs per program (default 6)"
    )
    parser.add_argument("--part", type=int, choices=[1, 2, 3], help="only this part")
    options = parser.parse_args()
    enter_namespace()
    start = time.monotonic()
    exit_on_signals()  # jobs are then stopped, and the small disk is unmounted
    try:
        full_disk.fresh_directory(SCRATCH)
    except RuntimeError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 118, highlight=False)
    claims = Claims(console)
    parts = {
        1: lambda: show_full_disk(console, claims),
        2: lambda: show_programs(console, claims, options.pairs),
        3: lambda: show_your_own(console),
    }
    for part in [options.part] if options.part else parts:
        try:
            parts[part]()
        except (OSError, RuntimeError) as error:
            claims.claim(False, f"part {part} could be shown to its end: {error}")
    console.print(f"\n{closing(claims)} ({time.monotonic() - start:.0f} s)")
    return 1 if claims.broken else 0


def closing(claims: Claims) -> str:
    """The last line."""
    if not claims.broken:
        return "[green]Everything shown above held.[/]"
    return f"[bold red]{len(claims.broken)} claims did not hold:[/] " + "; ".join(claims.broken)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ndemo: interrupted; its jobs are stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
