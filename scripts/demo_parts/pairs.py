"""The examples, alone and with Penstock, in alternating runs: times, files, bytes by engine."""

from __future__ import annotations

import filecmp
import math
import os
import re
import shutil
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from demo_parts.launch import job, read_logs, run, with_penstock

TIMES = re.compile(r"write_s +([\d.]+) total_s +([\d.]+) bytes (\d+)")


@dataclass(frozen=True)
class Program:
    """An example and the size it runs at."""

    name: str
    title: str
    flavour: str
    ranks: int
    arguments: tuple[str, ...]


@dataclass
class Comparison:
    """All runs of one program."""

    program: Program
    alone_s: list[float] = field(default_factory=list)
    served_s: list[float] = field(default_factory=list)
    file_bytes: int = 0
    identical: int = 0  # pairs whose files are equal
    engine_bytes: set[int] = field(default_factory=set)
    passthrough_bytes: set[int] = field(default_factory=set)
    algorithms: set[str] = field(default_factory=set)

    @property
    def ratios(self) -> list[float]:
        """Alone over served, pair by pair: above 1 means that Penstock was faster."""
        return [a / b for a, b in zip(self.alone_s, self.served_s, strict=True)]

    def complaints(self) -> list[str]:
        """What did not hold."""
        found = []
        if self.identical != len(self.alone_s):
            found.append(f"{len(self.alone_s) - self.identical} files differ")
        if self.engine_bytes != {self.file_bytes}:
            found.append(f"engine_bytes {sorted(self.engine_bytes)}, not {self.file_bytes}")
        if self.passthrough_bytes != {0}:
            found.append(f"passthrough_bytes {sorted(self.passthrough_bytes)}, not 0")
        return found


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """The median and the narrowest order-statistic interval that covers it with 95 %.

    With fewer than six values there is none; then it is the whole range, which covers less.
    """
    ordered, n = sorted(values), len(values)
    below = 0
    while sum(math.comb(n, i) for i in range(below + 2)) * 2 / 2**n <= 0.05:
        below += 1
    return statistics.median(ordered), ordered[below], ordered[n - 1 - below]


def verdict(ratios: list[float]) -> str:
    """In words, and only what the interval allows; inside 3 % is the same."""
    _, low, high = median_interval(ratios)
    if low > 1.03:
        return "faster"
    if high < 1 / 1.03:
        return "slower"
    return "unclear"


def one_run(program: Program, output: Path, logs: Path | None, scratch: Path) -> tuple[float, int]:
    """Runs the program once and returns its own total time and the bytes that it says it wrote."""
    output.unlink(missing_ok=True)
    os.sync()  # the last run's write-back is not charged to this one
    arguments = (*program.arguments, "--output", str(output))
    command = job(program.flavour, program.ranks, program.name, *arguments)
    if logs is not None:
        command = with_penstock(command, logs)
    finished = run(command, 60, scratch)
    times = TIMES.search(finished.output)
    if finished.code != 0 or times is None:
        how = "had to be stopped" if finished.code is None else f"ended with {finished.code}"
        raise RuntimeError(f"{' '.join(command)} {how}:\n{finished.errors[-2000:]}")
    return float(times[2]), int(times[3])


def compare(program: Program, pairs: int, scratch: Path) -> Comparison:
    """Runs `pairs` pairs after one discarded warm-up, in the order A B A B."""
    result = Comparison(program)
    plain, served, logs = scratch / "alone.dat", scratch / "penstock.dat", scratch / "logs"
    for pair in range(-1, pairs):
        shutil.rmtree(logs, ignore_errors=True)
        alone_s, result.file_bytes = one_run(program, plain, None, scratch)
        served_s, _ = one_run(program, served, logs, scratch)
        if pair < 0:
            continue
        result.alone_s.append(alone_s)
        result.served_s.append(served_s)
        result.identical += filecmp.cmp(plain, served, shallow=False)
        logged = read_logs(logs)
        result.engine_bytes.add(logged.engine_bytes)
        result.passthrough_bytes.add(logged.passthrough_bytes)
        result.algorithms.update(logged.algorithms)
    for file in (plain, served):
        file.unlink()
    return result
