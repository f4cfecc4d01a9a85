"""Where room is short: directories that cannot be written, full ones, and a memory limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from place import FailsAloneError, NotHereError, Options, Place, needs, needs_root, with_mounts
from run_mpi import program_problems

LIMIT_BYTES, TIGHT_BYTES = 256 << 20, 96 << 20
WRITTEN_BYTES = 160 << 20  # by each of two ranks: more than the limit, so the cache must give way
# Of a disk with blocks of 1 KiB: two ranks' pieces of 48 bytes, one in 2038, are nearer than pages.
SMALL_DISK_BYTES, CRUMBS_BYTES = 24 << 20, 48 * 7000
FAR_APART_BYTES = 1_280_000  # likewise, of 1000 in 64 KiB: they touch 160 pages of 1 MiB
FAR_APART_MANY_BYTES = 480_000  # the same: 60 pages of each file


def read_only_working_directory(place: Place) -> None:
    """The file goes elsewhere; the log cannot be kept, which is said once and costs nothing."""
    for how in ("alone", "served"):
        place.directory_of(how)
    elsewhere = place.directory / "elsewhere"
    elsewhere.mkdir()
    # cd again: the working directory was entered before the mount hid it
    script = (
        f"mount --bind '{place.directory}/served' '{place.directory}/served'"
        f" && mount -o remount,bind,ro '{place.directory}/served' && cd '{place.directory}/served'"
    )
    options = Options(before=with_mounts(script), log_dir=False)
    out = place.served("write", str(elsewhere / "out"), options=options)
    place.must_be_content(out, "served")
    place.must("the job log cannot be written" in out.errors, f"says {out.errors!r}")
    place.must(out.errors.count("the job log cannot be written") == 1, "says it more than once")
    place.must("Read-only file system" in out.errors, "the reason is not said")
    place.must("PENSTOCK_LOG_DIR" in out.errors, "the remedy is not said")
    place.must("8000 B by engine" in out.errors or "KiB by engine" in out.errors, "not served")


def full_temporary_directory(place: Place) -> None:
    """Nothing of Penstock needs TMPDIR."""
    full = place.directory / "tmp"
    full.mkdir()
    script = (
        f"mount -t tmpfs -o size=64k none '{full}'"
        f" && {{ cat /dev/zero > '{full}/filler' 2> /dev/null; test -s '{full}/filler'; }}"
    )
    wrap = ["env", f"TMPDIR={full}", f"TMP={full}", f"TEMP={full}"]
    options = Options(before=with_mounts(script), wrap=wrap)
    compare(place, "write", options, "a full TMPDIR")


def full_shared_memory(place: Place) -> None:
    """Full after MPI has taken its own: a write that is served needs nothing of it."""
    compare_mounted(place, "mount -t tmpfs -o size=256m none /dev/shm", "full-shm")


def shared_memory_full_for_a_later_file(place: Place) -> None:
    """What the first file has left is taken again, and what it lacks is nowhere to be had."""
    compare_mounted(place, "mount -t tmpfs -o size=256m none /dev/shm", "later-shm")


def tiny_shared_memory(place: Place) -> None:
    """64 KiB from the start, as containers have it."""
    compare_mounted(place, "mount -t tmpfs -o size=64k none /dev/shm", "write")


def without_proc(place: Place) -> None:
    """As in a chroot that has none."""
    compare_mounted(place, "mount -t tmpfs none /proc", "write")


def compare_mounted(place: Place, script: str, what: str) -> None:
    compare(place, what, Options(before=with_mounts(script)), script)


# Where MPI libraries by themselves do not work. A job that fails alone for another reason tells
# nothing of Penstock, so that is no excuse.
_FAILS_ALONE = {
    "openmpi": ("full_shared_memory", "shared_memory_full_for_a_later_file"),
    "mpich": ("tiny_shared_memory", "without_proc"),
}


def compare(place: Place, what: str, options: Options, why: str) -> None:
    """It must be served wherever it works alone."""
    mpi = place.site.bench.mpi
    alone = program_problems(place.alone(what, "@/out", options=options))
    if alone and place.case in _FAILS_ALONE[mpi.family]:
        raise FailsAloneError(f"{mpi.title} fails alone: {why}")
    place.problems += [f"alone: {problem}" for problem in alone]
    place.must_serve(place.served(what, "@/out", options=options))


@contextmanager
def memory_group(name: str) -> Iterator[Path]:
    """A memory cgroup of this process's own, of version 2 or 1; removed at the end."""
    needs_root()
    own = ""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            own = f"/sys/fs/cgroup/memory{path}"
        elif number == "0" and not own and Path(f"/sys/fs/cgroup{path}/memory.max").exists():
            own = f"/sys/fs/cgroup{path}"
    group = Path(own or "/nowhere") / name
    try:
        group.mkdir()
    except OSError as error:
        raise NotHereError(f"no memory cgroup can be made: {error.strerror}") from error
    try:
        yield group
    finally:
        empty = Path(own)  # what is left in the group goes back to where it came from
        for pid in (group / "cgroup.procs").read_text().split():
            (empty / "cgroup.procs").write_text(pid)
        group.rmdir()


def write_within(place: Place, limit_bytes: int, what: str, written_bytes: int) -> None:
    """By both ranks, in a memory group of their own."""
    with memory_group(f"penstock-site-{os.getpid()}") as group:
        version_2 = (group / "memory.max").exists()
        limit = group / ("memory.max" if version_2 else "memory.limit_in_bytes")
        try:
            limit.write_text(str(limit_bytes))
        except OSError as error:
            raise NotHereError(f"{limit.name} cannot be set: {error.strerror}") from error
        enter = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh"]
        options = Options(before=enter)
        out = place.served(what, "@/out", str(written_bytes), options=options)
        place.must_serve(out)
        place.must(f'"bytes": {2 * written_bytes}' in out.output, "not all was written")


def under_a_memory_limit(place: Place) -> None:
    """Files larger than the limit are written: no buffer grows with the file."""
    write_within(place, LIMIT_BYTES, "write", WRITTEN_BYTES)


def deferred_under_a_memory_limit(place: Place) -> None:
    """Pages in which writes wait take no more than the limit leaves; nobody is killed."""
    write_within(place, TIGHT_BYTES, "far-apart", FAR_APART_BYTES)


def several_deferred_under_a_memory_limit(place: Place) -> None:
    """Nor do those of files that are opened before any of them is written."""
    write_within(place, TIGHT_BYTES, "far-apart-many", 8 * FAR_APART_MANY_BYTES)


def small_blocks(place: Place) -> None:
    """Short pieces take room for the blocks that they lie in, not for pages of memory."""
    image, mounted = place.directory / "image", place.directory / "small"
    mounted.mkdir()
    needs("mkfs.ext4")
    with image.open("wb") as file:
        file.truncate(SMALL_DISK_BYTES)
    made = ["mkfs.ext4", "-q", "-b", "1024", "-m", "0", str(image)]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode != 0:
        raise NotHereError("no loop device")
    mount = with_mounts(f"mount -o loop '{image}' '{mounted}'")
    options = Options(before=mount, method="two_phase")
    place.must_serve(place.served("crumbs", f"{mounted}/out", str(CRUMBS_BYTES), options=options))


def without_home_and_user(place: Place) -> None:
    """Batch systems start programs with next to no environment."""
    options = Options(wrap=["env", "-u", "HOME", "-u", "USER"])
    compare(place, "write", options, "no HOME and no USER")


def a_log_directory_that_cannot_be_made(place: Place) -> None:
    """It is named once, and the job is served all the same."""
    file = place.directory / "file"
    file.write_text("in the way")
    wrap = ["env", f"PENSTOCK_LOG_DIR={file}/logs"]
    options = Options(wrap=wrap, log_dir=False)
    out = place.served("write", "@/out", options=options)
    place.must_be_content(out, "served")
    place.must(out.errors.count("the job log cannot be written") == 1, f"says {out.errors!r}")
    place.must(f"{file}" in out.errors, "the directory is not named")


def no_segment_is_left(place: Place) -> None:
    """Nothing of Penstock stays in /dev/shm, also when a rank is killed."""
    listing = place.directory / "left"
    script = f'"$@"; code=$?; ls -A /dev/shm > "{listing}"; exit $code'
    before = [*with_mounts("mount -t tmpfs -o size=256m none /dev/shm"), "sh", "-c", script, "sh"]
    out = place.served("killed", "@/out", options=Options(before=before))
    place.must(not out.hung, "hangs")
    lines = listing.read_text().splitlines() if listing.exists() else ["not listed"]
    left = [x for x in lines if "penstock" in x or x == "not listed"]
    place.must(not left, f"left behind: {left}")


def a_program_that_is_not_mpi(place: Place) -> None:
    """It runs as ever under the preload, with every byte of its output its own."""
    command = [str(place.site.bench.penstock_exec), "--mpi", place.site.bench.flavour]
    command += ["sh", "-c", "umask; ulimit -n; pwd; exit 3"]
    plain = command[3:]
    results = []
    for words in (plain, command):
        done = subprocess.run(
            words, cwd=place.directory, capture_output=True, text=True, timeout=30, check=False
        )
        results.append([done.stdout, done.stderr, str(done.returncode)])
    place.must_be_same("output", *results)


ROOM_CASES = (
    read_only_working_directory,
    full_temporary_directory,
    full_shared_memory,
    shared_memory_full_for_a_later_file,
    tiny_shared_memory,
    without_proc,
    under_a_memory_limit,
    deferred_under_a_memory_limit,
    several_deferred_under_a_memory_limit,
    small_blocks,
    without_home_and_user,
    a_log_directory_that_cannot_be_made,
    no_segment_is_left,
    a_program_that_is_not_mpi,
)
