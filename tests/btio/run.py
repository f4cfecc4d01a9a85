#!/usr/bin/env python3
"""Does the program of bench/btio write what it says? Small classes, every subtype, every byte.

Alone and under Penstock, whose log must say that every byte went through it. A byte that is
written wrong must be found; wrong usage is refused; errors are told by every subtype.

  run.py --build build/release --mpi mpich [--only simple]
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "truth"))
from mpis import MPIS
from run_mpi import Bench, Outcome, Penstock, Suite, arguments, launch
from share import Share, add_share
from truth_cases import NotPossibleError, small_disk

RANKS = (1, 4, 9)
EDGES = {"S": 12, "W": 24}
OUTPUTS = {"S": 12, "W": 5}  # of W not all: its 40 would take a minute where ranks poll
SUBTYPES = ("full", "simple", "epio")
QUICK = ("--regime", "asis", "--warm-disk", "64KiB")
POINT_BYTES = 40
PROGRAM_OF = {"sync": "peer-btio", "close": "peer-btio-unsynced"}


@dataclass(frozen=True)
class Place:
    bench: Bench
    only: str
    share: Share

    def run(
        self,
        ranks: int,
        file: Path,
        *options: str,
        penstock: Penstock | None = None,
        name: str = "peer-btio",
    ) -> Outcome:
        program = self.bench.build / "bench" / f"{name}-{self.bench.mpi.family}"
        words = [str(program), "--file", str(file), *QUICK, *options]
        environment = self.bench.mpi.environment()
        return launch(
            self.bench, ranks, words, penstock=penstock, environment=environment, timeout_s=90
        )

    def wants(self, case: str, *choices: int) -> bool:
        """``choices``: their numbers, where the case is one that is dealt out."""
        return self.only in case and (not choices or self.share.takes(*choices))


# ---- what a run must say ----


def line_of(outcome: Outcome) -> dict[str, Any]:
    lines = outcome.output.splitlines()
    if len(lines) != 1:
        return {}
    try:
        line = json.loads(lines[0])
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


def first_ranks_calls(subtype: str, edge: int, ranks: int, outputs: int) -> int:
    """Rank 0's cells lie on layer c in z and on layer -c in y; full cuts have the same rows."""
    cells = round(ranks**0.5)
    width = [edge // cells + (i < edge % cells) for i in range(cells)]
    rows = sum(width[c] * width[-c % cells] for c in range(cells))
    return outputs * {"full": 1, "simple": rows, "epio": cells}[subtype]


def problems_of(outcome: Outcome, subtype: str, kind: str, ranks: int, end: str) -> list[str]:
    if outcome.hung:
        return ["hangs"]
    line = line_of(outcome)
    if not line:
        return [f"stdout is not one line of JSON, exit code {outcome.code}"]
    problems = [] if outcome.code == 0 else [f"exit code {outcome.code}"]
    expected = EDGES[kind] ** 3 * POINT_BYTES * OUTPUTS[kind]
    wanted = {
        "schema": "penstock.measure/1",
        "program": "btio",
        "ranks": ranks,
        "bytes": expected,
        "calls": first_ranks_calls(subtype, EDGES[kind], ranks, OUTPUTS[kind]),
        "verified": {"bytes": expected, "wrong_bytes": 0, "first_wrong": None},
        "error": None,
    }
    problems += [f"{k} is {line.get(k)}, not {v}" for k, v in wanted.items() if line.get(k) != v]
    given = line.get("parameters", {})
    if given.get("class") != kind or given.get("subtype") != subtype or given.get("end") != end:
        problems.append(f"parameters {given}")
    return problems


def served_problems(outcome: Outcome, subtype: str, kind: str, ranks: int) -> list[str]:
    if not outcome.logs:
        return ["no job log"]
    expected = EDGES[kind] ** 3 * POINT_BYTES * OUTPUTS[kind]
    problems = []
    if outcome.total("engine_bytes") != expected or outcome.total("passthrough_bytes") != 0:
        problems.append(f"of {expected} bytes the engine wrote {outcome.total('engine_bytes')}")
    name = "write_at_all" if subtype == "full" else "write_at"
    calls = sum(file["calls"][name] for log in outcome.logs for file in log["files"])
    lines = EDGES[kind] ** 2 * round(ranks**0.5)  # each is cut once per cell along it
    wanted = OUTPUTS[kind] * (ranks if subtype == "full" else lines)
    if calls != wanted:
        problems.append(f"the log counts {calls} calls of {name}, not {wanted}")
    return problems


# ---- the cases ----


def every_byte(place: Place, suite: Suite) -> None:
    for choices in itertools.product(range(len(EDGES)), range(len(RANKS)), range(len(SUBTYPES))):
        one_file(place, suite, choices)


def one_file(place: Place, suite: Suite, choices: tuple[int, int, int]) -> None:
    kind, ranks, subtype = list(EDGES)[choices[0]], RANKS[choices[1]], SUBTYPES[choices[2]]
    end = "sync" if ranks == 4 else "close"
    words = ["--class", kind, "--subtype", subtype, "--end", end]
    words += ["--outputs", str(OUTPUTS[kind])]
    ways = [("alone", None)]
    if subtype != "epio":  # which is no MPI-IO
        ways.append(("under Penstock", Penstock("auto")))
    for how, penstock in ways:
        case = f"class {kind} {subtype} {ranks} ranks {how}"
        if not place.wants(case, *choices):
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-btio-") as directory:
            data = Path(directory) / "data"
            outcome = place.run(ranks, data, *words, penstock=penstock, name=PROGRAM_OF[end])
        problems = problems_of(outcome, subtype, kind, ranks, end)
        if penstock is not None:
            problems += served_problems(outcome, subtype, kind, ranks)
        suite.check(case, problems, outcome)


def wrong_byte(place: Place, suite: Suite) -> None:
    """The first double of a row says which output it is of, the others do not."""
    for number, subtype in enumerate(SUBTYPES):
        for spoilt in ("3", "77"):
            case = f"{subtype} finds spoilt byte {spoilt}"
            if not place.wants(case, number, int(spoilt == "77")):
                continue
            with tempfile.TemporaryDirectory(prefix="penstock-btio-") as directory:
                words = ["--subtype", subtype, "--spoil", spoilt]
                outcome = place.run(4, Path(directory) / "data", *words)
            line = line_of(outcome)
            # The first double is written anew for each output, the others stay spoilt.
            wrong = 8 if spoilt == "3" else 8 * OUTPUTS["S"]
            problems = [] if outcome.code == 1 else [f"exit code {outcome.code}, not 1"]
            if (line.get("verified") or {}).get("wrong_bytes") != wrong:
                problems.append(f"verified {line.get('verified')}, not {wrong} wrong bytes")
            suite.check(case, problems, outcome)


def wrong_usage(place: Place, suite: Suite) -> None:
    cases: tuple[tuple[int, tuple[str, ...], str], ...] = (
        (2, (), "square number of ranks"),
        (1, ("--class", "D"), "--class must be one of S|W|A|B|C"),
        (1, ("--subtype", "fortran"), "--subtype must be one of"),
        (1, ("--outputs", "-1"), "--outputs must be at least 0"),
        (1, ("--iters", "3"), "--iters is no option"),
        (1, ("--clas", "A"), "--clas is no option"),
    )
    for number, (ranks, options, message) in enumerate(cases):
        case = f"refuses {ranks} ranks {' '.join(options)}"
        if not place.wants(case, number):
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-btio-") as directory:
            outcome = place.run(ranks, Path(directory) / "data", *options)
        problems = [] if outcome.code == 2 else [f"exit code {outcome.code}, not 2"]
        problems += [] if message in outcome.errors else [f"stderr does not say: {message}"]
        problems += ["there is a line on stdout"] if outcome.output.strip() else []
        suite.check(case, problems, outcome)


def never_syncs(place: Place, suite: Suite) -> None:
    """As BT-IO itself: what is not named in a program cannot be called."""
    case = "the unsynced program has no sync in it"
    if not place.wants(case):
        return
    with tempfile.TemporaryDirectory(prefix="penstock-btio-") as directory:
        data = Path(directory) / "data"
        outcome = place.run(1, data, "--end", "sync", name=PROGRAM_OF["close"])
    problems = [] if outcome.code == 2 else [f"exit code {outcome.code}, not 2"]
    problems += [] if "never syncs" in outcome.errors else ["stderr does not say why"]
    for end, name in PROGRAM_OF.items():
        program = place.bench.build / "bench" / f"{name}-{place.bench.mpi.family}"
        if (b"MPI_File_sync\0" in program.read_bytes()) != (end == "sync"):
            problems.append(f"{name} names MPI_File_sync, or should")
    suite.check(case, problems, outcome)


def failure_problems(outcome: Outcome, where: set[str]) -> list[str]:
    if outcome.hung:
        return ["hangs"]
    problems = [] if outcome.code == 1 else [f"exit code {outcome.code}, not 1"]
    error = line_of(outcome).get("error")
    if not error or error["where"] not in where:
        problems.append(f"the line tells the error {error}, none of {sorted(where)}")
    return problems


def no_directory(place: Place, suite: Suite) -> None:
    for subtype in SUBTYPES:
        case = f"{subtype} tells that there is no directory"
        if not place.wants(case):
            continue
        with tempfile.NamedTemporaryFile(prefix="penstock-btio-") as file:
            outcome = place.run(4, Path(file.name) / "data", "--subtype", subtype)
        suite.check(case, failure_problems(outcome, {"open"}), outcome)


def somebodys_directory(place: Place, suite: Suite) -> None:
    case = "leaves somebody's directory alone, and replaces its own"
    if not place.wants(case):
        return
    with tempfile.TemporaryDirectory(prefix="penstock-btio-") as directory:
        data = Path(directory) / "data"
        data.mkdir()
        (data / "thesis.tex").touch()
        outcome = place.run(1, data, "--subtype", "epio")
        problems = failure_problems(outcome, {"unlink"})
        problems += [] if (data / "thesis.tex").exists() else ["it is gone"]
        (data / "thesis.tex").rename(data / "rank.0")
        for subtype in ("epio", "full"):
            outcome = place.run(1, data, "--subtype", subtype)
            problems += [] if outcome.code == 0 else [f"{subtype}: exit code {outcome.code}"]
        suite.check(case, problems, outcome)


def full_disk(place: Place, suite: Suite) -> None:
    penstock = Penstock("auto", require=False)
    for subtype, way in (("full", penstock), ("simple", penstock), ("epio", None)):
        case = f"{subtype} on a full disk"
        if not place.wants(case):
            continue
        words = ["--class", "W", "--subtype", subtype]
        try:
            with small_disk(2 << 20) as directory:
                outcome = place.run(4, directory / "data", *words, penstock=way)
        except NotPossibleError as reason:
            suite.skip(case, str(reason))
            continue
        where = {"write", "sync", "close", "drain"}
        suite.check(case, failure_problems(outcome, where), outcome)


def main(argv: Sequence[str]) -> int:
    parser = arguments(__doc__ or "")
    add_share(parser)
    options = parser.parse_args(argv)
    mpi = MPIS[options.mpi]
    suite = Suite(f"btio {mpi.name}", mpi.name, options.record)
    place = Place(Bench(options.build.resolve(), mpi), options.only, options.share)
    for cases in (every_byte, wrong_byte, wrong_usage, never_syncs):
        cases(place, suite)
    for cases in (no_directory, somebodys_directory, full_disk):
        cases(place, suite)
    code: int = suite.finish()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
