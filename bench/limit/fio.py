#!/usr/bin/env python3
"""One run of fio, or of a plain copy, told in the line of a measuring program (penstock.measure/1).

    limit-fio --file F --bufsize 16MiB --iters 8 --ranks 2 [--engine psync --block 1MiB ..]

Writes bufsize x iters x ranks bytes into F, one file: with --jobs all in as many parts as there are
ranks, one thread for each. --engine copy: `dd` from memory, with an fsync. The clock is the
program's own, from its first write to the end of its fsync. Memory is as the measuring program's
regimes make it.

Exit code: 0 measured; 1 fio failed, or did not write all bytes; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1}
IN_MEMORY = Path(__file__).resolve().parent / "limit-in-memory"  # in_memory.c
IN_C = os.environ | {"LC_ALL": "C"}  # dd tells its seconds in words
MEMORY = "/dev/shm"  # noqa: S108 - a copy's source is to be in memory


def size(text: str) -> int:
    """Bytes of 16MiB or 47008."""
    number = text.rstrip("KMGiB")
    if not number.isdigit() or text[len(number) :] not in UNITS:
        raise argparse.ArgumentTypeError(f"must be like 16MiB or 47008, got {text}")
    return int(number) * UNITS[text[len(number) :]]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--file", type=Path, required=True)
    add("--bufsize", type=size, required=True, help="bytes of a rank and call")
    add("--iters", type=int, required=True, help="calls")
    add("--ranks", type=int, required=True)
    add("--regime", choices=["warm", "cold", "asis"], default="warm")
    add("--warm-memory", type=size, default=3 << 30, help="bytes touched and released")
    add("--page-reports", choices=["asis", "wait"], default="asis", help="begin right after one")
    add("--end", choices=["sync", "close"], default="sync")
    add("--engine", default="psync", help="of fio (psync, io_uring, libaio, mmap), or copy")
    add("--block", type=size, default=1 << 20, help="bytes of a write")
    add("--jobs", choices=["one", "all"], default="all", help="one thread, or one for each rank")
    add("--direct", action="store_true", help="O_DIRECT")
    add("--depth", type=int, default=1, help="writes under way at a time")
    add("--reserve", action="store_true", help="all blocks before the first write, by fallocate")
    add("--stream", type=size, help="start write-back every so many bytes, and do not wait")
    return parser.parse_args()


# ---- before the clock -------------------------------------------------------------------------


def prepare(args: argparse.Namespace) -> None:
    """No old file, and nothing on its way to a disk."""
    args.file.unlink(missing_ok=True)
    if args.engine == "mmap":  # which cannot make a file longer: fio would write all of it before
        with args.file.open("wb") as hole:
            hole.truncate(args.bufsize * args.iters * args.ranks)
    os.sync()


def in_memory(args: argparse.Namespace) -> list[str]:
    """Words before a command that is to meet memory as the measuring program does."""
    if args.regime == "asis":
        return []
    return [str(IN_MEMORY), args.regime, str(args.warm_memory), args.page_reports]


# ---- measured ---------------------------------------------------------------------------------


def fio_words(args: argparse.Namespace, total: int) -> list[str]:
    """The command."""
    jobs = args.ranks if args.jobs == "all" else 1
    part = total // jobs
    words = ["fio", "--name=limit", f"--filename={args.file}", "--rw=write", "--thread"]
    words += [f"--bs={args.block}", f"--ioengine={args.engine}", f"--iodepth={args.depth}"]
    words += [f"--numjobs={jobs}", f"--size={part}", f"--offset_increment={part}"]
    words += ["--group_reporting", "--output-format=json"]
    words += [f"--fallocate={'native' if args.reserve else 'none'}"]  # before its clock
    # Buffers as they are: scrambling them would be counted as writing.
    words += ["--scramble_buffers=0", f"--direct={int(args.direct)}"]
    words += [f"--end_fsync={int(args.end == 'sync')}"]
    if args.stream:
        words.append(f"--sync_file_range=write:{max(1, args.stream // args.block)}")
    return words


def run_fio(args: argparse.Namespace, total: int) -> tuple[int, float]:
    """Bytes and seconds, as fio tells them."""
    words = [*in_memory(args), *fio_words(args, total)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    write = json.loads(done.stdout)["jobs"][0]["write"]
    return int(write["io_bytes"]), max(1, int(write["runtime"])) / 1e3


def check_written(file: Path, told: int) -> None:
    """A limit that was reached by writing less is none: fio's mmap maps every job's part at 0."""
    has = file.stat().st_blocks * 512
    if has < told:
        raise RuntimeError(f"{told} bytes were told, and the file has blocks for {has}")


def run_copy(args: argparse.Namespace, total: int) -> tuple[int, float]:
    """Bytes and seconds of dd, from a file in memory."""
    with tempfile.NamedTemporaryFile(dir=MEMORY, prefix="penstock-limit-") as source:
        block = os.urandom(1 << 20)
        for at in range(0, total, len(block)):
            source.write(block[: total - at])
        source.flush()
        words = ["dd", f"if={source.name}", f"of={args.file}", f"bs={args.block}"]
        words += ["conv=fsync"] if args.end == "sync" else []
        done = subprocess.run(
            [*in_memory(args), *words], env=IN_C, capture_output=True, text=True, check=False
        )
    told = re.search(r"copied, (\S+) s,", done.stderr)
    if done.returncode != 0 or told is None:
        raise RuntimeError(f"dd ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return args.file.stat().st_size, float(told.group(1))


def line(args: argparse.Namespace, count: int, seconds: float, error: str | None) -> dict[str, Any]:
    """What a measuring program prints."""
    rate = {"seconds": seconds, "bytes_per_s": count / seconds}
    return {
        "schema": "penstock.measure/1",
        "program": "limit-fio",
        "version": version("dd" if args.engine == "copy" else "fio"),
        "parameters": {k: str(v) for k, v in vars(args).items()},
        "workers": args.ranks,
        "ranks": 1,
        "bytes": count,
        "application": rate,
        "actual": rate if args.end == "sync" else None,
        "error": {"where": args.engine, "text": error} if error else None,
    }


def version(program: str) -> str:
    """Its first line."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()[0]


def main() -> int:
    """One run."""
    args = arguments()
    total = args.bufsize * args.iters * args.ranks
    try:
        prepare(args)
        count, seconds = (run_copy if args.engine == "copy" else run_fio)(args, total)
        check_written(args.file, count)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as failure:
        print(f"limit-fio: {failure}", file=sys.stderr)
        return 1
    finally:
        args.file.unlink(missing_ok=True)
    error = None if count == total else f"wrote {count} of {total} bytes"
    print(json.dumps(line(args, count, seconds, error)))
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
