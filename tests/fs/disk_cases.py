"""slowdisk.sh and memorydisk.sh: a disk is what it says it is, and goes when it is stopped."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from calling import (
    HANGS_S,
    HERE,
    MIB,
    SKIPPED,
    NotHereError,
    called,
    must,
    rate_problems,
    script,
    type_problems,
)

RATE = 40 * MIB

# ---- slowdisk.sh ----


def seconds_to_write(directory: Path, mib: int, *how: str) -> float:
    begin = time.monotonic()
    dd = ["dd", "if=/dev/zero", f"of={directory}/mnt/file", "bs=1M", f"count={mib}", *how]
    done = script("slowdisk.sh", "run", directory, "--", *dd)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return time.monotonic() - begin


def limit_holds(directory: Path) -> list[str]:
    """Direct writes and write-back alike; another limit holds at once."""
    problems = must(script("slowdisk.sh", "start", directory, "--rate", str(RATE)))
    direct = seconds_to_write(directory, 80, "oflag=direct")
    problems += rate_problems("direct", 80 * MIB / direct, RATE)
    written_back = seconds_to_write(directory, 80, "conv=fdatasync")
    problems += rate_problems("write-back", 80 * MIB / written_back, RATE)
    problems += must(
        script("slowdisk.sh", "set", directory, "--rate", "20MiB"), says="20971520 B/s"
    )
    slower = seconds_to_write(directory, 40, "conv=fdatasync")
    return problems + rate_problems("after set", 40 * MIB / slower, 20 * MIB)


def calls_are_limited(directory: Path) -> list[str]:
    """100 calls a second, of 4 KiB: 100 of them take a second, whatever the rate."""
    problems = must(script("slowdisk.sh", "start", directory, "--rate", "0", "--iops", "100"))
    begin = time.monotonic()
    dd = ["dd", "if=/dev/zero", f"of={directory}/mnt/file", "bs=4k", "count=200", "oflag=direct"]
    problems += must(script("slowdisk.sh", "run", directory, "--", *dd))
    seconds = time.monotonic() - begin
    return problems + ([] if seconds >= 1.5 else [f"200 calls took {seconds:.2f} s"])


def _seconds_on_a_clean_disk(directory: Path) -> float:
    script("slowdisk.sh", "run", directory, "--", "sync")
    return seconds_to_write(directory, 32)


def memory_is_limited(directory: Path) -> list[str]:
    """A writer who does not sync waits for the disk once so many bytes are not written."""
    start = ["--rate", "20MiB", "--cache", "8MiB"]
    problems = must(script("slowdisk.sh", "start", directory, *start), says="8388608 B in memory")
    limited = seconds_to_write(directory, 32)
    problems += must(script("slowdisk.sh", "set", directory, "--cache", "0"))
    free = min(_seconds_on_a_clean_disk(directory) for _ in range(3))
    if limited < 3 * free:
        problems.append(f"32 MiB took {limited:.2f} s limited and {free:.2f} s not")
    return problems


def nothing_is_left(directory: Path) -> list[str]:
    """No mount, no loop device, no limit and no file; a second stop does no harm."""
    script("slowdisk.sh", "start", directory)
    told = script("slowdisk.sh", "status", directory).stdout
    loop = re.search(r"/dev/loop\d+", told)
    problems = must(script("slowdisk.sh", "stop", directory))
    problems += must(script("slowdisk.sh", "stop", directory))
    problems += [f"{left} is left" for left in directory.rglob("*")]
    if loop is None:
        return [*problems, f"status names no loop device: {told}"]
    backing = Path(f"/sys/block/{Path(loop.group()).name}/loop/backing_file")
    if backing.exists() and str(directory) in backing.read_text():
        problems.append(f"{loop.group()} is left")
    return problems


def wrong_words_are_refused(directory: Path) -> list[str]:
    """The message names the option, the value and what may stand there."""
    cases = [
        (["--rate", "fast"], "--rate must be bytes, as 40MiB, 40MB or 41943040, got 'fast'"),
        (["--iops", "-1"], "--iops must be a whole number, 0 for no limit, got '-1'"),
        (["--fs", "fat"], "--fs must be ext4, xfs or btrfs, got 'fat'"),
        (["--speed", "1"], "no option is called '--speed'"),
        (["--rate"], "--rate needs a value"),
    ]
    problems = []
    for words, says in cases:
        problems += must(script("slowdisk.sh", "start", directory, *words), code=2, says=says)
    problems += [f"{left} is left" for left in directory.rglob("*")]
    script("slowdisk.sh", "start", directory)
    again = script("slowdisk.sh", "start", directory)
    return problems + must(again, code=1, says="there is a disk in")


def allocated_bytes(file: Path) -> int:
    return file.stat().st_blocks * 512


def image_is_allocated(directory: Path) -> list[str]:
    """Whatever the file system: what is written first waits for no room on the host's disk."""
    problems = []
    for fs in ("ext4", "xfs", "btrfs"):
        place = directory / fs
        problems += must(script("slowdisk.sh", "start", place, "--fs", fs, "--rate", "0"))
        image = place / "slowdisk" / "image"
        if allocated_bytes(image) < 0.9 * image.stat().st_size:
            problems.append(f"{fs}: {allocated_bytes(image)} bytes of the image are allocated")
        problems += must(script("slowdisk.sh", "stop", place))
    return problems


# ---- memorydisk.sh ----


def memory_is_a_disk(directory: Path) -> list[str]:
    """Its image is in memory; what is held and the mounts go with it."""
    place = directory / "memory"
    start = ["--size", "256MiB", "--leave", "0"]
    problems = must(script("memorydisk.sh", "start", place, *start), says="in memory")
    problems += type_problems(place, "tmpfs") + type_problems(place / "disk" / "mnt", "ext4")
    (place / "disk" / "mnt" / "file").write_bytes(bytes(MIB))
    problems += must(script("memorydisk.sh", "status", place), says=f"{place}/disk/mnt")
    problems += must(script("memorydisk.sh", "start", place), code=1, says="already")
    problems += must(script("memorydisk.sh", "stop", place))
    problems += must(script("memorydisk.sh", "stop", place))
    problems += must(script("memorydisk.sh", "status", place), code=1, says="no disk in")
    return problems + [f"{left} is left" for left in place.iterdir()]


def another_mount_stays(directory: Path) -> list[str]:
    """A DIR on which something else is mounted is no disk, and is not taken down."""
    if os.geteuid() != 0:
        raise NotHereError("only root can mount")
    place = directory / "memory"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "another", str(place)], check=True, timeout=HANGS_S)
    try:
        start = script("memorydisk.sh", "start", place)
        problems = must(start, code=2, says="nothing mounted on it")
        problems += must(script("memorydisk.sh", "stop", place))
        return problems + type_problems(place, "tmpfs")
    finally:
        subprocess.run(["umount", str(place)], check=False, timeout=HANGS_S)


def memory_beyond_what_is_left_is_held(directory: Path) -> list[str]:
    """768 MiB, give or take what the rest of the machine takes meanwhile."""
    place = directory / "memory"
    leave = available_bytes() - 1024 * MIB
    start = ["--size", "256MiB", "--leave", str(leave)]
    problems = must(script("memorydisk.sh", "start", place, *start))
    held = allocated_bytes(place / "held")
    if not 256 * MIB < held < 1280 * MIB:
        problems.append(f"{held} bytes are held to leave {leave}")
    return problems + must(script("memorydisk.sh", "stop", place))


def available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def memory_disk_refuses_wrong_words(directory: Path) -> list[str]:
    """Nothing is mounted for a wrong word, nor for more than there is."""
    place = directory / "memory"
    cases = [
        (["--size", "big"], 2, "--size must be bytes, as 40MiB, 40MB or 41943040, got 'big'"),
        (["--fs", "fat"], 2, "--fs must be ext4, xfs or btrfs, got 'fat'"),
        (["--rate", "1"], 2, "no option is called '--rate'"),
    ]
    problems = []
    for words, code, says in cases:
        problems += must(script("memorydisk.sh", "start", place, *words), code=code, says=says)
    too_much = called([str(HERE / "memorydisk.sh"), "start", str(place), "--size", "1PiB"])
    problems += must(too_much, code=SKIPPED, says="need more")
    return problems + [f"{left} is left" for left in directory.rglob("*")]


CASES: dict[Callable[[Path], list[str]], str] = {
    limit_holds: "slowdisk.sh",
    calls_are_limited: "slowdisk.sh",
    memory_is_limited: "slowdisk.sh",
    nothing_is_left: "slowdisk.sh",
    wrong_words_are_refused: "slowdisk.sh",
    image_is_allocated: "slowdisk.sh",
    memory_is_a_disk: "memorydisk.sh",
    another_mount_stays: "memorydisk.sh",
    memory_beyond_what_is_left_is_held: "memorydisk.sh",
    memory_disk_refuses_wrong_words: "memorydisk.sh",
}
