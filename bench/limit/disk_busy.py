#!/usr/bin/env python3
"""Was the disk busy all the time? Watches a disk while a command runs.

    bench/limit/disk_busy.py -- mpiexec -n 2 penstock-exec ./app
    bench/limit/disk_busy.py --dir /scratch --step 5 -- dd if=big of=/scratch/f bs=1M conv=fsync

A thousand times a second it reads how many writes the disk of --dir has in flight, and how many
bytes it says are done, as the kernel counts them for the whole disk. Of all that happened it shows
the burst with the most bytes: how much of it some write was in flight, and a line for each --step.
A write that is fast while the disk is never idle is as fast as the disk: see there, not in the
program. Exit code: the command's; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

SECTOR_BYTES = 512  # of /sys/dev/block/*/stat, whatever the disk's own are
SECTORS_WRITTEN = 6  # the column
LOOK_S = 0.001
PAUSE_S = 0.02  # a longer one ends a burst


@dataclass(frozen=True)
class Look:
    """What the kernel said of the disk at some moment."""

    at_s: float
    done_bytes: int
    in_flight: int


@dataclass(frozen=True)
class Burst:
    """Looks from before the first write to the one that saw none any more."""

    looks: Sequence[Look]

    @property
    def seconds(self) -> float:
        """From the first look to the last."""
        return self.looks[-1].at_s - self.looks[0].at_s

    @property
    def done_bytes(self) -> int:
        """What was written."""
        return self.looks[-1].done_bytes - self.looks[0].done_bytes

    @property
    def busy(self) -> float:
        """The part of the time between looks that ended with a write in flight or done."""
        pairs = list(zip(self.looks, self.looks[1:], strict=False))
        busy_s = sum(b.at_s - a.at_s for a, b in pairs if is_busy(a, b))
        return busy_s / self.seconds if self.seconds > 0 else 0.0

    def parts(self, step_s: float) -> list[Burst]:
        """One after the other, each of at least `step_s` but the last."""
        found, begin = [], 0
        for i, look in enumerate(self.looks):
            is_last = i + 1 == len(self.looks)
            if look.at_s - self.looks[begin].at_s < step_s and not is_last:
                continue
            if i > begin:
                found.append(Burst(self.looks[begin : i + 1]))
            begin = i
        return found


def is_busy(before: Look, after: Look) -> bool:
    """Whether writes were in flight between two looks, as far as these tell."""
    return after.in_flight > 0 or after.done_bytes > before.done_bytes


def bursts(looks: Sequence[Look]) -> list[Burst]:
    """What happened between pauses, in order."""
    found: list[Burst] = []
    begin, last_busy = 0, -1  # indices; last_busy: of this burst, -1 before its first write
    for i in range(1, len(looks)):
        if is_busy(looks[i - 1], looks[i]):
            begin = i - 1 if last_busy < 0 else begin
            last_busy = i
        elif last_busy >= 0 and looks[i].at_s - looks[last_busy].at_s > PAUSE_S:
            found.append(Burst(looks[begin : last_busy + 1]))
            last_busy = -1
    if last_busy >= 0:
        found.append(Burst(looks[begin : last_busy + 1]))
    return found


def disk_of(directory: Path) -> Path:
    """Its folder in /sys. Raises FileNotFoundError where there is none."""
    device = directory.stat().st_dev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not (folder / "inflight").exists():
        raise FileNotFoundError(f"{directory} lies on no disk that the kernel counts")
    return folder


def watch(disk: Path, command: Sequence[str], **how: Any) -> tuple[list[Look], int]:
    """Runs the command, as subprocess.Popen is told; what was seen meanwhile, and its exit code."""
    with (disk / "stat").open() as stat, (disk / "inflight").open() as inflight:
        looks = [look(stat, inflight)]
        process = subprocess.Popen(command, **how)
        while process.poll() is None:
            looks.append(look(stat, inflight))
            time.sleep(LOOK_S)
        looks.append(look(stat, inflight))  # what was done since, however late this one woke
    return looks, process.returncode


def look(stat: TextIO, inflight: TextIO) -> Look:
    """Now. Both are the kernel's files of one disk, read again from their begin."""
    stat.seek(0)
    inflight.seek(0)
    done_bytes = int(stat.read().split()[SECTORS_WRITTEN]) * SECTOR_BYTES
    return Look(time.monotonic(), done_bytes, int(inflight.read().split()[1]))


def figures(burst: Burst) -> dict[str, float]:
    """Those of a burst, or of a part of one."""
    flights = [look.in_flight for look in burst.looks[1:]]
    return {
        "seconds": round(burst.seconds, 6),
        "bytes": burst.done_bytes,
        "busy": round(burst.busy, 4),
        "in_flight_median": statistics.median(flights),
        "in_flight_most": max(flights),
    }


def show(burst: Burst, step_s: float) -> None:
    """The table."""
    begin_s = burst.looks[0].at_s
    print(f"{'ms':>8} {'MB done':>9} {'busy':>6} {'in flight':>10}")
    for part in burst.parts(step_s):
        f = figures(part)
        at_ms = (part.looks[0].at_s - begin_s) * 1e3
        print(
            f"{at_ms:8.1f} {f['bytes'] / 1e6:9.1f} {f['busy']:6.0%} {f['in_flight_median']:10.0f}"
        )
    f = figures(burst)
    print(
        f"{f['bytes'] / 1e6:.1f} MB in {f['seconds'] * 1e3:.1f} ms, "
        f"{f['bytes'] / 1e6 / f['seconds']:.0f} MB/s; some write in flight {f['busy']:.1%} of it, "
        f"at most {f['in_flight_most']:.0f} at a time"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", type=Path, default=Path(), help="on the disk [.]")
    parser.add_argument("--step", type=float, default=10, help="milliseconds of a line [10]")
    parser.add_argument(
        "--json", action="store_true", help="the burst's figures in one line, and all bursts' bytes"
    )
    parser.add_argument("command", nargs="+", help="after --")
    args = parser.parse_args()
    if args.step <= 0:
        parser.error(f"--step must be above 0, got {args.step:g}")
    try:
        looks, rc = watch(disk_of(args.dir), args.command)
    except FileNotFoundError as error:
        parser.error(f"{error}; name a directory on a disk by --dir, and a program after --")
    most = max(bursts(looks), key=lambda burst: burst.done_bytes, default=None)
    if most is None:
        print(f"nothing was written to the disk of {args.dir} meanwhile", file=sys.stderr)
    elif args.json:
        all_bytes = looks[-1].done_bytes - looks[0].done_bytes
        print(json.dumps({**figures(most), "all_bytes": all_bytes}))
    else:
        show(most, args.step / 1e3)
    return rc


if __name__ == "__main__":
    sys.exit(main())
