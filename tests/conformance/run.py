#!/usr/bin/env python3
"""Runs the conformance programs: alone, to see that the oracle is sound, and by every method.

Alone, the MPI library's own writer is compared with the naive expectation; under Penstock the same
cases are. So the files are byte for byte what they would have been. Cases in which a library alone
is wrong are listed in oracle-exceptions.md.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import tomllib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from cold import cold_bytes, why_none
from method_product import (
    dealt,
    degraded_problems,
    listed,
    penstock_with,
    product_problems,
)
from mpis import MPIS
from pretended import TWO_NODES, progress_problems, two_nodes_by
from run_mpi import (
    HANDED_ON,
    Bench,
    Outcome,
    Penstock,
    Suite,
    arguments,
    launch,
    program_problems,
    read_problems,
    served_problems,
)
from share import Share, add_share

HERE = Path(__file__).resolve().parent
METHODS = {
    "individual": "individual",
    "two_phase(writers=1)": "two_phase",
    "two_phase(writers=2, cycle=4KiB)": "two_phase",
    "two_phase(writers=3, cycle=64KiB)": "two_phase",
    "two_phase": "two_phase",
    "two_phase(writers=2, cycle=4KiB) + shm": "two_phase",
    "two_phase(writers=3, cycle=64KiB) + shm": "two_phase",
    "cyclic(writers=2, stripe=12KiB, cycle=4KiB)": "cyclic",
    "cyclic(writers=3, stripe=4KiB) + shm": "cyclic",
    "designated_writer(writer=1, cycle=64KiB)": "designated_writer",
    "dynamic_segmentation(writers=2, cycle=4KiB)": "dynamic_segmentation",
    "dynamic_segmentation(writers=1, cycle=64KiB) + shm": "dynamic_segmentation",
    "static_segmentation(writers=2, cycle=4KiB)": "static_segmentation",
    "static_segmentation(writers=1)": "static_segmentation",
    "dedicated_writer(writer=1, cycle=4KiB)": "dedicated_writer",
    "individual(cycle=64KiB, at_once=1)": "individual",
    "two_phase(writers=2) + messages(pack=datatype)": "two_phase",
    "two_phase(writers=3, cycle=4KiB) + node_leaders": "two_phase",
    "cyclic(writers=2, stripe=12KiB, cycle=4KiB) + node_leaders": "cyclic",
    "auto": None,
    "auto, writes behind": None,
    "auto, two nodes, writes behind": None,
    "auto, two nodes by the thread, writes behind": None,
    "auto, two nodes by rma, writes behind": None,
}
# The batch whose cases meet all methods.
PRODUCT = "views.2"
# What every batch runs; the rest some.
QUICK = ("two_phase(writers=2, cycle=4KiB) + shm", "auto", "auto, writes behind")
# Where a machine cannot pretend to be several nodes this is one node's way.
PRETENDED_NODES = {
    "node_leaders": TWO_NODES,
    "two nodes,": TWO_NODES,
    "by the thread,": two_nodes_by("thread"),
    "by rma,": two_nodes_by("rma"),
}
# Small pages and few of them, so that they make room for each other.
BEHIND = {
    "PENSTOCK_VISIBILITY": "relaxed",
    "PENSTOCK_WRITE_BEHIND_PAGE": "4KiB",
    "PENSTOCK_WRITE_BEHIND_LIMIT": "1MiB",
    "PENSTOCK_WRITE_BEHIND_SUBBUFFER": "4KiB",
}


@dataclass(frozen=True)
class Batch:
    """Cases of one program in one launch."""

    name: str
    ranks: int
    options: dict[str, int] = field(default_factory=dict)
    alone: bool = True  # the library alone can run these cases
    program: str = "views"

    def arguments(self, directory: Path) -> list[str]:
        return [f"--dir={directory}", *(f"--{k}={v}" for k, v in self.options.items())]


def views(ranks: int, seed: int, cases: int, *, name: str = "views", **more: int) -> Batch:
    kind = "".join(f".{k}" for k in more)
    return Batch(f"{name}{kind}.{ranks}", ranks, {"seed": seed, "cases": cases, **more})


def batches(family: str) -> list[Batch]:
    """More ranks than cores are slow under MPICH, which polls: fewer cases there."""
    slow = family == "mpich"
    return [
        views(1, 11, 40),
        views(2, 12, 37),
        views(3, 13, 4 if slow else 20),
        views(4, 14, 3 if slow else 20),
        views(8, 18, 1 if slow else 4),
        views(2, 22, 2, large=1),
        *(Batch(f"files.{n}", n, program="files") for n in (1, 2, 3)),
        Batch(
            "views.pairs.2",
            2,
            {"seed": 32, "cases": 20, "pairs": 2 if slow else 1},
            alone=not slow,  # ROMIO 4.0 aborts on pair types, in set_view too
        ),
    ]


def exceptions(library: str, batch: Batch) -> list[str]:
    """Cases of the batch listed for this library: `| mpich | views.2 | 3 | why |`.

    `library` is a family, or one library's name: "impi", and "impi served" under Penstock.
    """
    rows = (HERE / "oracle-exceptions.md").read_text().splitlines()
    pattern = re.compile(rf"\| {library} \| {re.escape(batch.name)} \| (\d+) \|")
    return [m.group(1) for row in rows if (m := pattern.match(row))]


def whole_batch_excused(library: str, batch: Batch) -> str:
    """Why nothing of the batch can be run on this library; empty when something can."""
    rows = (HERE / "oracle-exceptions.md").read_text().splitlines()
    pattern = re.compile(rf"\| {library} \| {re.escape(batch.name)} \| all \| (.*) \|")
    return next((m.group(1) for row in rows if (m := pattern.match(row))), "")


def command(bench: Bench, batch: Batch, directory: str, library: str) -> list[str]:
    program = [str(bench.program(batch.program)), *batch.arguments(Path(directory))]
    skipped = exceptions(library, batch)
    return [*program, f"--skip={','.join(skipped)}"] if skipped else program


def run_alone(bench: Bench, suite: Suite, batch: Batch) -> None:
    case = f"alone {batch.name}"
    if len(exceptions(bench.mpi.family, batch)) == batch.options.get("cases"):
        why = "oracle-exceptions.md lists every case: the naive oracle alone decides"
        suite.skip(case, why, fails_alone=True)
        return
    if not batch.alone:
        why = "MPICH 4.0 aborts on its own pair types: the naive oracle alone decides"
        suite.skip(case, why, fails_alone=True)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = command(bench, batch, directory, bench.mpi.family)
        if batch.program == "views":
            program.append("--holes=undefined")
        options = bench.mpi.sound_options()
        out = launch(bench, batch.ranks, program, mpi_options=options, timeout_s=120)
    suite.check(case, program_problems(out), out)


def served_oracle(bench: Bench) -> str:
    """Whose served exceptions count: Intel MPI has its own, the others their family's."""
    return f"{bench.mpi.name if bench.mpi.prefix == 'impi' else bench.mpi.family} served"


def run_served(bench: Bench, suite: Suite, batch: Batch, method: str) -> None:
    if why := whole_batch_excused(served_oracle(bench), batch):
        suite.skip(f"{method} {batch.name}", why, fails_alone=True)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = command(bench, batch, directory, served_oracle(bench))
        behind = method.endswith(", writes behind")
        if batch.program == "views":
            program += ["--forms=all", "--reads=1", f"--deferred={int(behind)}"]
        nodes = next((e for word, e in PRETENDED_NODES.items() if word in method), {})
        how = Penstock("auto", environment=BEHIND) if behind else Penstock(method)
        out = launch(bench, batch.ranks, program, penstock=how, environment=nodes, timeout_s=120)
    problems = program_problems(out) + served_problems(out, METHODS[method])
    problems += exchange_problems(out, method) + read_problems(out)
    if "two nodes" in method and bench.mpi.name == "mpich" and batch.ranks > 1:
        problems += progress_problems(out, progress_of(method))
    if behind:
        problems += behind_problems(out, batch)
    suite.check(f"{method} {batch.name}", problems, out)


def behind_problems(out: Outcome, batch: Batch) -> list[str]:
    """Something has to have gone behind. Told where nothing else is counted so: `files` makes no
    other call that returns early, and no rank that is alone copies into another's page.
    """
    if batch.program == "views" and batch.ranks > 1:
        return []
    counter = "shared_bytes" if batch.program == "views" else "staged_bytes"
    behind = sum(file["traffic"][counter] for log in out.logs for file in log["files"])
    return [] if behind else ["no byte went behind"]


def run_product(bench: Bench, suite: Suite, batch: Batch, share: Share, *, full: bool) -> None:
    """The batch's cases again, each by a method of its own, until all methods have been: with
    ``full`` the whole product, else so many that each pair of choices meets.
    """
    left_out = exceptions(served_oracle(bench), batch)
    cases = [case for case in range(batch.options["cases"]) if str(case) not in left_out]
    methods = listed(bench.build, pairs=not full)
    for number, launched in enumerate(launches(methods, cases, share)):
        run_methods(bench, suite, batch, number, launched)


def launches(methods: Sequence[str], cases: Sequence[int], share: Share) -> list[dict[int, str]]:
    """A library's part of the methods, by launches. Not a part of the launches: libraries have
    other cases, and so launches with other borders.
    """
    return list(dealt(share.of(methods), cases))


def run_methods(
    bench: Bench, suite: Suite, batch: Batch, number: int, methods: dict[int, str]
) -> None:
    """One launch of the product: as many cases as there are methods."""
    some = replace(batch, options=batch.options | {"cases": max(methods) + 1})
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = command(bench, some, directory, served_oracle(bench))
        program += ["--forms=all", "--reads=1"]
        how = penstock_with(methods, Path(directory))
        out = launch(bench, batch.ranks, program, penstock=how, timeout_s=300)
    problems = program_problems(out) + served_problems(out, None) + read_problems(out)
    problems += product_problems(out, methods) + degraded_problems(out)
    suite.check(f"product {number} {batch.name}", problems, out)


def exchange_problems(out: Outcome, method: str) -> list[str]:
    """On one node ``shm`` sends no message, and says nothing of pages that it could not share.

    Segmentation has pages that it never shares, and says so.
    """
    if "shm" not in method:
        return []
    files = [file for log in out.logs for file in log["files"]]
    degraded = [why for file in files for why in file["degraded"]]
    messages = sum(file["traffic"]["messages"] for file in files)
    if "segmentation" in method and any("scattered" in why for why in degraded):
        return []
    problems = [why for why in degraded if "not shared" in why]
    return problems + ([f"{messages} messages by {method}"] if messages else [])


def progress_of(method: str) -> str:
    ways = {"by the thread,": "thread", "by rma,": "rma"}
    return next((way for word, way in ways.items() if word in method), "calls")


def brief_batches() -> list[Batch]:
    """For libraries beside the two that the whole suite runs on."""
    return [
        views(1, 51, 15, name="brief"),
        views(2, 52, 15, name="brief"),
        views(3, 53, 4, name="brief"),
        views(4, 54, 4, name="brief"),
        Batch("files.2", 2, program="files"),
    ]


def methods(batch: Batch, number: int, share: Share, *, full: bool) -> list[str]:
    """Every method where two and three ranks meet; elsewhere three, but all with --full. Where the
    suite is dealt out each part has every method, with two ranks or with three.
    """
    everywhere = full or batch.name in ("views.2", "views.3")
    some = [m for m in METHODS if everywhere or m in QUICK]
    return [m for place, m in enumerate(some) if share.takes(number, place)]


class SumsOfCold(Suite):
    """And how many bytes went past the page cache, in all cases."""

    cold_bytes = 0

    def check(self, case: str, problems: Sequence[str], outcome: Outcome | None = None) -> bool:
        self.cold_bytes += cold_bytes(outcome) if outcome is not None else 0
        return super().check(case, problems, outcome)

    def check_cold(self) -> None:
        """Where memory was to be cold, something has to have gone past the page cache."""
        case = "some bytes go past the page cache"
        if self.cold_bytes == 0 and (why := why_none(Path(tempfile.gettempdir()))):
            self.skip(case, why)
        else:
            self.check(case, [] if self.cold_bytes else ["no byte did, in no case"])


def run_handed_on(bench: Bench, suite: Suite) -> None:
    """What this suite was started with once more is what the ranks are started with."""
    for name in (name for name in HANDED_ON if name in os.environ):
        out = launch(bench, 2, ["printenv", name])
        told = out.output.split()
        arrived = told == [os.environ[name]] * 2
        suite.check(f"{name} reaches the ranks", [] if arrived else [f"it is {told}"], out)


def run_null(bench: Bench, suite: Suite) -> None:
    """The mechanism that drops everything: the same calls, an untouched file."""
    batch = Batch("views.null.2", 2, {"seed": 42, "cases": 10, "null": 1})
    if why := whole_batch_excused(served_oracle(bench), batch):
        suite.skip(batch.name, why, fails_alone=True)
        return
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = [str(bench.program(batch.program)), *batch.arguments(Path(directory))]
        method = "two_phase + messages + null"
        out = launch(bench, 2, program, penstock=Penstock(method), timeout_s=120)
    problems = program_problems(out) + served_problems(out, "two_phase")
    suite.check(f"{method} {batch.name}", problems, out)


def passed(share: Share) -> list[tuple[str, bool]]:
    """What must not be taken over, and whether Penstock is required."""
    return [
        (name, required)
        for number, name in enumerate(must_pass_through())
        for required in (False, True)
        if share.takes(number, int(required))
    ]


def run_passed(bench: Bench, suite: Suite, name: str, *, required: bool) -> None:
    """Every byte is the library's, and right; where Penstock is required, the job stops."""
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as directory:
        program = [str(bench.program("pass_through")), name, f"--dir={directory}"]
        how = Penstock("two_phase", require=required)
        out = launch(bench, 2, program, penstock=how, timeout_s=60)
    problems = must_stop(out) if required else must_pass(out)
    suite.check(f"pass_through {name}{' required' if required else ''}", problems, out)


def must_pass(out: Outcome) -> list[str]:
    problems = program_problems(out)
    if not out.logs:
        return [*problems, "no job log"]
    wanted = {"engine_bytes": 0, "passthrough_bytes": out.result().get("bytes", -1)}
    for key, value in wanted.items():
        if out.total(key) != value:
            problems.append(f"{key} {out.total(key)}, not {value}")
    if not any(file["degraded"] for log in out.logs for file in log["files"]):
        problems.append("the log gives no reason")
    return problems


def must_stop(out: Outcome) -> list[str]:
    problems = [] if out.code != 0 and not out.hung else ["was not stopped"]
    if "PENSTOCK_REQUIRE" not in out.errors + out.output:
        problems.append("no message names PENSTOCK_REQUIRE")
    return problems


def must_pass_through() -> list[str]:
    cases = tomllib.loads((HERE / "must-pass-through.toml").read_text())["case"]
    return [case["name"] for case in cases if case["reason"]]


def run_batch(bench: Bench, suite: Suite, batch: Batch, number: int, options: Namespace) -> None:
    alone = options.share.takes(number) and not options.served_only
    if alone and options.only in f"alone {batch.name}":
        run_alone(bench, suite, batch)
    if options.alone:
        return
    for method in methods(batch, number, options.share, full=options.full):
        if options.only in f"{method} {batch.name}":
            run_served(bench, suite, batch, method)
    if batch.name == PRODUCT and options.only in f"product {batch.name}":
        run_product(bench, suite, batch, options.share, full=options.full)


def main() -> int:
    parser = arguments(__doc__ or "")
    parser.add_argument("--served-only", action="store_true", help="only under Penstock")
    parser.add_argument("--full", action="store_true", help="every method with every batch")
    parser.add_argument("--brief", action="store_true", help="few cases, only under Penstock")
    add_share(parser)
    options = parser.parse_args()
    options.served_only = options.served_only or options.brief
    bench = Bench(options.build.resolve(), MPIS[options.mpi])
    suite = SumsOfCold(f"conformance {options.mpi}", options.mpi, options.record)
    some = brief_batches() if options.brief else batches(bench.mpi.family)
    for number, batch in enumerate(some):
        run_batch(bench, suite, batch, number, options)
    if options.alone:
        return suite.finish()
    if options.only in "handed on":
        run_handed_on(bench, suite)
    if options.only in "null":
        run_null(bench, suite)
    for name, required in passed(options.share):
        if options.only in f"pass_through {name}":
            run_passed(bench, suite, name, required=required)
    if "PENSTOCK_TEST_COLD" in os.environ and not options.only:
        suite.check_cold()
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
