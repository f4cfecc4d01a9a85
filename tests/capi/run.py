#!/usr/bin/env python3
"""The examples of the C API write what they should, and docs/c-api.md shows them as they are; on an
MPI library, every case of the C API on ranks and on ranks x threads, too.

``--mpi threads`` runs what needs no MPI library.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from mpis import MPIS, ROOT
from run_mpi import Bench, Suite, launch, plain_arguments, program_problems

EXAMPLES = ROOT / "examples" / "c-api"
PAGE = ROOT / "docs" / "c-api.md"
# (ranks, threads). MPI libraries poll: workers that outnumber cores by far starve each other.
TEAMS = [(1, 1), (2, 1), (3, 1), (4, 1), (1, 4), (2, 2)]
BRIEF = [(2, 1), (2, 2)]


# ---- what the examples' files must hold, computed anew


def toward_zero(a: int, b: int) -> int:
    """Division as C does it."""
    return a // b if a >= 0 else -(-a // b)


def shade(column: int, row: int) -> int:
    x0 = -10240 + column * 14336 // 360
    y0 = -4800 + row * 9600 // 240
    x = y = step = 0
    while step < 96 and x * x + y * y < 4 * 4096 * 4096:
        x, y = toward_zero(x * x - y * y, 4096) + x0, toward_zero(2 * x * y, 4096) + y0
        step += 1
    return 0 if step == 96 else 255 - 2 * step


def picture() -> bytes:
    pixels = bytes(shade(column, row) for row in range(240) for column in range(360))
    return b"P5 360 240 255\n" + pixels


def collatz_steps(n: int) -> int:
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def collatz(last: int) -> bytes:
    return "".join(f"{n} {collatz_steps(n)}\n" for n in range(1, last + 1)).encode()


def triangle(order: int) -> bytes:
    values = [float(i * 1000 + j) for i in range(order) for j in range(i + 1)]
    return struct.pack(f"={len(values)}d", *values)


# ---- running them


def example(
    suite: Suite, label: str, command: list[str], environment: dict[str, str], expected: bytes
) -> None:
    """One run of an example; its last argument but what is given here is the file."""
    with tempfile.TemporaryDirectory(prefix="penstock-capi-") as directory:
        file = Path(directory) / "file"
        file.write_bytes(b"what was there before" * 100_000)
        words = [str(file) if word == "FILE" else word for word in command]
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        problems = []
        if done.returncode != 0:
            problems.append(f"exit code {done.returncode}: {done.stderr[-500:]}")
        elif file.read_bytes() != expected:
            problems.append("the file is not what it should be")
        suite.check(label, problems)


def threads(suite: Suite, build: Path, only: str) -> None:
    for count in ("1", "2", "4", "7"):
        if only in f"picture.{count}":
            command = [str(build / "suites" / "capi_picture"), "FILE", count]
            example(suite, f"picture.{count}", command, {}, picture())
    program = build / "suites" / "capi_collatz"
    if not program.exists():
        suite.skip("collatz", "the compiler has no OpenMP, or ThreadSanitizer does not know it")
        return
    for count in ("1", "3", "4"):
        if only in f"collatz.{count}":
            environment = {"OMP_NUM_THREADS": count}
            example(
                suite,
                f"collatz.{count}",
                [str(program), "FILE", "5000"],
                environment,
                collatz(5000),
            )


def documented(suite: Suite) -> None:
    """The page shows each example whole, and has a line for each function of the headers."""
    page = PAGE.read_text(encoding="utf-8")
    for path in sorted(EXAMPLES.glob("*.c")):
        shown = f"```c\n{path.read_text(encoding='utf-8')}```" in page
        suite.check(
            f"docs.{path.name}", [] if shown else [f"{PAGE.name} does not show it as it is"]
        )
    headers = "".join(p.read_text() for p in (ROOT / "include" / "penstock").glob("*.h"))
    functions = set(re.findall(r"^PENSTOCK_API [^;(]*?(penstock_\w+)\(", headers, re.MULTILINE))
    missing = sorted(name for name in functions if f"`{name}`" not in page)
    problems = [f"{PAGE.name} does not name {name}" for name in missing]
    suite.check("docs.functions", problems if functions else ["no function was found"])


def ranks(suite: Suite, bench: Bench, teams: list[tuple[int, int]], only: str) -> None:
    for n, t in teams:
        label = f"cases.{n}x{t}"
        if only not in label:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-capi-") as directory:
            program = [str(bench.program("capi_mpi")), str(t), directory]
            out = launch(bench, n, program, timeout_s=120)
        suite.check(label, program_problems(out), out)
    for n in sorted({n for n, _ in teams}):
        if only not in f"triangle.{n}":
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-capi-") as directory:
            file = Path(directory) / "file"
            out = launch(bench, n, [str(bench.program("capi_triangle")), str(file), "100"])
            problems = [] if out.code == 0 else [f"exit code {out.code}"]
            if "written 40400" not in out.output:
                problems.append("does not say what was written")
            if not file.exists() or file.read_bytes() != triangle(100):
                problems.append("the file is not what it should be")
        suite.check(f"triangle.{n}", problems, out)


def main() -> int:
    parser = plain_arguments(__doc__)
    parser.add_argument("--mpi", required=True, choices=["threads", *MPIS])
    parser.add_argument("--brief", action="store_true", help="two teams only")
    given = parser.parse_args()
    suite = Suite("capi", given.mpi)
    build = given.build.resolve()
    if given.mpi == "threads":
        threads(suite, build, given.only)
        documented(suite)
    else:
        ranks(suite, Bench(build, MPIS[given.mpi]), BRIEF if given.brief else TEAMS, given.only)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
