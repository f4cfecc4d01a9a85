#!/usr/bin/env python3
"""The measuring program end to end: every route, pattern, access and number of workers writes what
it should, says so in one line of JSON of the documented form, and tells of every error.

``--mpi threads`` runs the program without MPI, else the one of that library.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS, ROOT
from run_mpi import Bench, Outcome, Suite, launch
from share import add_share
from target import Target, jsonschema, line_of, problems_of, schema_problems

PAGE = ROOT / "docs" / "reference" / "measure.md"
PATTERNS = (
    "contiguous",
    "interleaved:8",
    "interleaved:4700",
    "slabs3d",
    "cubes3d",
    "btio",
    "irregular",
    "particles",
)
BUFSIZE = 60000
QUICK = ("--iters", "3", "--bufsize", str(BUFSIZE), "--regime", "asis")


# ---- what goes well


def write_words(target: Target, full: bool, brief: bool) -> Iterator[tuple[list[str], int]]:
    """Command lines and numbers of ranks that must all be verified."""
    routes = ("engine", "posix") if target.mpi is None else ("mpi", "engine")
    ranks = (1, 2, 3, 4) if full or target.mpi is None else (2, 3) if not brief else (2,)
    for n, (pattern, route) in itertools.product(ranks, itertools.product(PATTERNS, routes)):
        square = n if pattern != "btio" else {2: 1, 3: 4}.get(n, n)
        if route == "engine" and target.mpi is not None and not full and n != 2:
            continue  # the engine's own suites cover it; here it is the plumbing
        yield ["--pattern", pattern, "--route", route], square
    yield from odd_words(target, routes[0])


def odd_words(target: Target, route: str) -> Iterator[tuple[list[str], int]]:
    memory = ["--len", "12", "--stride", "32"]
    independent = ["--access", "independent"]
    for words in (
        ["--files", "per_worker"],
        ["--files", "per_node", "--pattern", "irregular"],
        [*memory, "--pattern", "cubes3d"],
        [*memory, *independent, "--pattern", "particles"],
        [*independent, "--pattern", "interleaved:8"],
        ["--syncsize", "100000", "--barrier", "start"],
        ["--end", "close", "-Y", "--bins", "0.001", "--each-call"],
        ["--comptime", "0.05", "--bins", "0"],
    ):
        yield [*words, "--route", route], 2
    for strategy in ("S1A", "S1B", "S2", "S3", "S5"):
        yield ["--method", strategy, "--syncsize", "100000"], 3
    for strategy in ("S2DT", "S3DT", "S3 + pwritev"):
        yield ["--method", strategy, *memory, "--barrier", "start"], 2
    for pattern in ("interleaved:4700", "particles"):
        yield ["--method", "S3 + posix_aio", "--pattern", pattern, "--comptime", "0.01"], 3
    read_route = "posix" if target.mpi is None else "mpi"
    yield ["--op", "read", "--route", read_route, "--pattern", "irregular"], 2
    yield ["--op", "read", "--route", read_route, *independent, *memory], 3


def run_writes(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    for number, (words, ranks) in enumerate(write_words(target, options.full, options.brief)):
        case = f"{' '.join(words)} of {ranks}"
        # Routes alternate: pairs of neighbours are dealt out in turn, too.
        if options.only in case and options.share.takes(number, number // 2):
            with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
                out = target.start([*QUICK, "-o", f"{directory}/f", *words], ranks)
            problems = problems_of(out, ranks)
            if problems and library_ends_job(target, words):
                suite.skip(case, "MPI_File_set_view ends the job on a subarray", fails_alone=True)
                continue
            suite.check(case, problems, out)


def library_ends_job(target: Target, words: list[str]) -> bool:
    """Intel MPI by the standard ABI, on every subarray as a view; no part of ours is there."""
    boxes = {"slabs3d", "cubes3d"}.intersection(words)
    return target.name == "impi-abi" and bool(boxes) and "mpi" in words


def run_threads_of_ranks(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    if target.mpi is None:
        return
    every = (
        ["--route", "engine", "--pattern", "cubes3d"],
        ["--route", "mpi", "--pattern", "irregular"],
        ["--route", "mpi", "--files", "per_worker"],
        ["--route", "posix", "--pattern", "particles"],
        ["--method", "S1B", "--syncsize", "100000"],
        ["--method", "S3DT", "--len", "8", "--stride", "32"],
    )
    for number, words in enumerate(every):
        case = f"{' '.join(words)} of 2 x 2"
        if options.only in case and options.share.takes(number):
            with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
                command = [*QUICK, "-o", f"{directory}/f", *words, "--threads", "2"]
                out = target.start(command, 2)
            suite.check(case, problems_of(out, 4), out)
    if options.only in "uneven shares of 2 x 4" and options.share.takes(len(every)):
        run_uneven_shares(target, suite)


def run_uneven_shares(target: Target, suite: Suite) -> None:
    """Seven workers cannot share that evenly: whole chunks, by datatype, and it is told."""
    words = ["--method", "S3DT", "--len", "8", "--stride", "32", "--threads", "4"]
    with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
        out = target.start([*QUICK, "-o", f"{directory}/f", *words], 2)
    problems = [*problems_of(out, 8), *share_problems(out, 8 * BUFSIZE)]
    suite.check("uneven shares of 2 x 4", problems, out)


def share_problems(out: Outcome, total: int) -> list[str]:
    notes = (line_of(out) or {}).get("notes", [])
    told = any(f"bytes per iteration together, not {total}" in note for note in notes)
    packed = any("so they are packed" in note for note in notes)
    return [] if told and not packed else [f"notes: {notes}"]


# ---- what goes wrong


def error_problems(out: Outcome, where: set[str], text: str = "") -> list[str]:
    """A failed run ends by itself, with exit code 1 and a line that says where it failed."""
    line = line_of(out)
    if out.hung:
        return ["hangs"]
    if out.code != 1 or not line or line["error"] is None:
        return [f"exit code {out.code}, error {line.get('error') if line else 'no line'}"]
    found = [f"schema: {x}" for x in schema_problems(line)]
    if line["error"]["where"] not in where:
        found.append(f"where: {line['error']['where']}")
    if text not in line["error"]["text"]:
        found.append(f"text: {line['error']['text']}")
    return found


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A tmpfs of its own; raises PermissionError where mounting is not allowed."""
    with tempfile.TemporaryDirectory(prefix="penstock-measure-disk-") as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", place]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            raise PermissionError("mounting needs root")
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=False)


def run_full_disk(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    other = "posix" if target.mpi is None else "mpi"
    every: tuple[tuple[str, list[str]], ...] = (
        ("engine", []),
        ("engine", ["--method", "S3"]),
        ("engine", ["--method", "S3", "--barrier", "start"]),
        ("engine", ["--method", "dedicated_writer"]),
        ("engine", ["--method", "individual(cycle=64KiB, at_once=1)"]),
        (other, []),
    )
    for number, (route, extra) in enumerate(every):
        case = f"a full disk, route {' '.join([route, *extra])}"
        # What the library's own route does then is its own: every library runs that.
        mine = route == other or options.share.takes(number)
        if options.only not in case or not mine:
            continue
        try:
            with small_disk(4) as disk:
                words = ["--iters", "8", "--pattern", "interleaved:4096", "--regime", "asis"]
                patience = ["--patience", "4"] if route == "mpi" else []
                words += ["-o", f"{disk}/f", "--route", route, *extra, *patience]
                out = target.start(words, 2)
        except PermissionError as why:
            suite.skip(case, str(why))
            continue
        # An MPI library may tell late, tell some ranks only, or hang: each must end as an error.
        anywhere = {"write", "sync", "close", "barrier", "drain", "verify"}
        suite.check(case, error_problems(out, anywhere if route == "mpi" else {"write"}), out)


def run_errors(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    run_full_disk(target, suite, options)
    route = "posix" if target.mpi is None else "mpi"
    for place, extra, where in (
        ("/nonexistent/f", ["--warm-disk", "0"], "open"),
        ("/nonexistent/f", [], "prepare"),
        ("/proc/f", ["--warm-disk", "0"], "open"),
    ):
        case = f"no file can be made: {place} {' '.join(extra)}"
        if options.only in case:
            out = target.start([*QUICK, "-o", place, "--route", route, *extra], 2)
            suite.check(case, error_problems(out, {where}), out)


def run_own_files(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    """Were they alike, one in the other's place would be right, and a disk would keep them once."""
    case = "no two files are alike"
    if options.only not in case:
        return
    with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
        file = Path(directory) / "f"
        out = target.start([*QUICK, "-o", str(file), "--files", "per_worker"], 2)
        problems = problems_of(out, 2)
        if (
            not problems
            and file.with_suffix(".0").read_bytes() == file.with_suffix(".1").read_bytes()
        ):
            problems.append("two workers' files hold the same bytes")
    suite.check(case, problems, out)


def run_fifo(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    """Only files and links are old files: a device or a fifo stays."""
    case = "what is no file is not removed"
    if options.only not in case:
        return
    with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
        fifo = Path(directory) / "f"
        os.mkfifo(fifo)
        out = target.start([*QUICK, "-o", str(fifo)], 2)
        problems = error_problems(out, {"prepare"}, "neither a file nor a link")
        problems += [] if fifo.is_fifo() else ["it was removed"]
    suite.check(case, problems, out)


def run_wrong_usage(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    every: tuple[tuple[list[str], str], ...] = (
        ([], "--file"),
        (["-o", "f", "--pattern", "spiral"], "interleaved:BYTES"),
        (["-o", "f", "--pattern", "btio", *QUICK], "square number"),
        (["-o", "f", "--op", "read"], "no reads"),
        (["-o", "f", "--regime", "asis", "--bufsize", "4096PiB"], "2^62"),
        (["-o", "f", "--regime", "asis", "--bufsize", "1", "--iters", "1000000000000"], "--iters"),
        (["-o", "f", "--regime", "asis", "--bufsize", "1", "--iters", "67108864"], "--iters"),
    )
    for number, (words, text) in enumerate(every):
        case = f"wrong usage: {' '.join(words)}"
        if options.only not in case or not options.share.takes(number):
            continue
        out = target.start(words, 2)
        problems = [] if out.code == 2 else [f"exit code {out.code}"]
        if text not in out.errors:
            problems.append(f"stderr: {out.errors[-300:]}")
        if line_of(out):
            problems.append("a line of JSON for what was not measured")
        suite.check(case, problems, out)


def run_little_memory(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    """Memory for one worker of two: the other does not wait for it."""
    case = "wrong usage: memory for one worker of two"
    if options.only not in case or target.mpi is not None:
        return
    words = [
        "-o",
        "f",
        "--method",
        "S1A",
        "--bufsize",
        "300MiB",
        "--iters",
        "1",
        "--regime",
        "asis",
    ]
    limited = ["sh", "-c", 'ulimit -v 600000; exec "$0" "$@"', str(target.program), *words]
    try:
        done = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        suite.check(case, ["hangs"])
        return
    told = done.returncode == 2 and "lower --bufsize" in done.stderr
    problems = [] if told else [f"exit code {done.returncode}, {done.stderr[-300:]}"]
    suite.check(case, problems)


# ---- what is claimed, and what is not


def run_claims(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    if options.only not in "claims":
        return
    with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
        file = f"{directory}/f"
        method = ["--method", "individual + none + null"]
        out = target.start(["-o", file, *method, "--iters", "200", "--regime", "asis"], 2)
        line = line_of(out)
        problems = [] if out.code == 0 and line else [f"exit code {out.code}"]
        if line and (line["verified"] is not None or "null" not in line["verified_why"]):
            problems.append("a mechanism that writes nothing was verified")
        if line and line["actual"] is not None:
            problems.append("an actual rate of bytes that no device has")
        if line and not 0 < line["overhead"]["per_iteration_s"] < 0.1:
            problems.append(f"overhead {line['overhead']}")
        suite.check("mechanism null claims nothing", problems, out)
        if target.mpi is None:
            damaged(target, suite, file)
            slowly_drained(target, suite, file)


def run_page(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    """The page's table of options is the program's."""
    if options.only not in "page" or target.mpi is None:
        return
    described = json.loads(target.start(["--describe"]).output)["options"]
    page = PAGE.read_text()
    missing = [o["name"] for o in described if not described_in(page, o)]
    suite.check("the page has every option", [f"not as on the page: {x}" for x in missing])


def described_in(page: str, option: dict[str, Any]) -> bool:
    rows = [x for x in page.splitlines() if x.startswith(f"| `--{option['name']}`")]
    default = "" if option["default"] is None else f"`{option['default']}`"
    return len(rows) == 1 and option["help"] in rows[0] and f"| {default} |" in rows[0]


def damaged(target: Target, suite: Suite, file: str) -> None:
    """A byte that is changed between the clock and the read-back is found.

    The read-back itself is tested in verify_test.cpp; here a preloaded pwrite changes one byte.
    """
    out = preloaded(target, "damage", file, ["--route", "posix"])
    line = line_of(out)
    problems = [] if out.code == 1 and line else [f"exit code {out.code}"]
    if line and (line["verified"]["wrong_bytes"] != 1 or not line["verified"]["first_wrong"]):
        problems.append(f"verified {line['verified']}")
    suite.check("a byte that was damaged is found", problems, out)


def slowly_drained(target: Target, suite: Suite, file: str) -> None:
    """The node is watched until the device has the last of its files."""
    words = ["--route", "posix", "--files", "per_worker", "--end", "close"]
    out = preloaded(target, "slow_sync", file, words, SLOW_SYNC_1="1")
    problems = problems_of(out, 2)
    line = line_of(out)
    actual, watched = (line.get(x) or {} for x in ("actual", "cpus"))
    seconds = (actual.get("seconds", 0), watched.get("total_s", 0))
    if min(seconds) < 0.9:
        problems.append(f"drained and CPUs watched for {seconds} s, not for 1 s")
    suite.check("the last file's drain is watched", problems, out)


def preloaded(target: Target, name: str, file: str, words: list[str], **more: str) -> Outcome:
    """A run of the program of threads with a library made of ``name``.c of this folder."""
    library = made_library(name, Path(file).parent)
    done = subprocess.run(
        [str(target.program), *QUICK, "-o", file, *words],
        env={**os.environ, "LD_PRELOAD": str(library), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, 0, False, [])


def made_library(name: str, directory: Path) -> Path:
    library = directory / f"{name}.so"
    compiler = os.environ.get("CC", "cc")
    source = Path(__file__).resolve().parent / f"{name}.c"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def slowly_synced(target: Target, first_s: float, second_s: float, patience_s: float) -> Outcome:
    """Two ranks with a file each, of which each fsync takes as long."""
    with tempfile.TemporaryDirectory(prefix="penstock-measure-") as directory:
        library = made_library("slow_sync", Path(directory))
        slow = ["env", f"LD_PRELOAD={library}", f"SLOW_SYNC_0={first_s}", f"SLOW_SYNC_1={second_s}"]
        words = [*QUICK, "-o", f"{directory}/f", "--route", "posix", "--files", "per_worker"]
        command = [*slow, str(target.program), *words, "--patience", str(patience_s)]
        return launch(Bench(target.build, target.mpi), 2, command)


def run_hang(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    """A rank hangs, and rank 0 comes seconds later to where it waits for it: the line is there. One
    that is slower than the patience, but rank 0 waits less for it, does not hang."""
    case = "a rank that hangs, and rank 0 late"
    if options.only not in case or target.mpi is None or not options.share.takes(0):
        return
    out = slowly_synced(target, 6.5, 100, 7)
    suite.check(case, error_problems(out, {"barrier"}, "not back after"), out)
    out = slowly_synced(target, 1.5, 3, 2)
    suite.check(f"{case}: but comes", problems_of(out, 2), out)


def run_types(target: Target, suite: Suite, options: argparse.Namespace) -> None:
    if target.mpi is None or options.only not in "datatypes":
        return
    bench = Bench(target.build, target.mpi)
    out = launch(bench, 1, [str(bench.program("measure_types"))])
    problems = [] if out.code == 0 else [f"exit code {out.code}: {out.output[-500:]}"]
    suite.check("datatypes name the bytes of their loop trees", problems, out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="the build tree")
    parser.add_argument("--mpi", required=True, choices=["threads", *MPIS])
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    parser.add_argument("--full", action="store_true", help="every number of ranks")
    parser.add_argument("--brief", action="store_true", help="two ranks alone")
    add_share(parser)
    parser.add_argument("--record", type=Path, help="not used: no case for the support matrix")
    options = parser.parse_args()
    target = Target(options.build.resolve(), MPIS.get(options.mpi))
    suite = Suite("measure", options.mpi)
    for part in (
        run_writes,
        run_threads_of_ranks,
        run_errors,
        run_own_files,
        run_fifo,
        run_hang,
        run_wrong_usage,
        run_little_memory,
        run_claims,
        run_types,
        run_page,
    ):
        part(target, suite, options)
    if jsonschema is None:
        print("the form of the lines was not looked at: this Python has no jsonschema")
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
