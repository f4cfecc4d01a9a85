"""Measures Penstock beside what programs use otherwise, and says what follows.

    python bench/peers/run.py                        the gate set: one to two hours
    python bench/peers/run.py --dry-run              what would run, and how long
    python bench/peers/run.py --search               the best setting of each peer, into best.toml
    python bench/peers/run.py --search --unsearched  only of what best.toml has no entry for
    python bench/peers/run.py --table OUT            text, JSON and Markdown of a run's samples

Stopped, it goes on with the same command. Exit code: 0 no gating conclusion failed; 1 one did;
2 wrong usage, or nothing can be measured here; 3 stopped before the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "python")]

from beside import command, full, measured, page, search, spec, variants  # noqa: E402
from beside.command import DONE, STOPPED  # noqa: E402
from beside.report import Report, report  # noqa: E402
from rich.console import Console  # noqa: E402

from penstock import whole  # noqa: E402
from penstock.bench import provenance  # noqa: E402
from penstock.bench.blocks import Plan  # noqa: E402
from penstock.bench.estimate import remaining_s  # noqa: E402
from penstock.bench.progress import Show  # noqa: E402
from penstock.bench.session import Session  # noqa: E402
from penstock.bench.statistics import Stopping  # noqa: E402
from penstock.bench.store import NAME, Store, load  # noqa: E402
from penstock.errors import ArgumentError, PenstockError  # noqa: E402
from penstock.words import duration_text  # noqa: E402

USUAL_S = 1.5  # a sample, before any was taken on this machine
_PLAIN: dict[str, Any] = {"style": "yellow", "markup": False, "soft_wrap": True}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command.parser(__doc__, ROOT / "build" / "bench-peers")
    add = parser.add_argument
    add("--build", type=Path, action="append", help="where programs are, repeatable")
    add("--spec", type=Path, default=HERE, help="where cells.toml and the others are")
    add("--family", action="append", help="only this family, repeatable")
    add("--full", type=int, nargs="?", const=0, help="N cells of the rest of the product as well")
    add("--size", choices=variants.SIZES, default="gate", help="smaller: to try the programs")
    add("--seed", type=int, help="of the order and of --full [cells.toml]")
    add("--list", action="store_true", help="the cells and who takes part")
    add("--search", action="store_true", help="search the grids and write best.toml")
    add("--unsearched", action="store_true", help="with --search: only what best.toml has not")
    add("--readme", action="store_true", help="with --table: print the README's section")
    add("--title", help="with --page: the page's, where it is of some cells [opening.md's]")
    return parser.parse_args(words)


def site_of(args: argparse.Namespace) -> variants.Site:
    """Where things are."""
    return command.site_of(args, args.build or [ROOT / "build" / "release"], args.size)


def chosen_cells(
    args: argparse.Namespace, specification: spec.Specification
) -> tuple[list[spec.Cell], list[str]]:
    """The cells of this run, and the names of those that are of the full design."""
    design = specification.cells.design
    seed = design.seed if args.seed is None else args.seed
    extra: list[spec.Cell] = []
    if args.full is not None:
        extra = full.draw(specification, args.full or design.full_cells, seed)
    cells = [*specification.cells.cell, *extra]
    names = args.cells.split(",") if args.cells else [c.name for c in cells]
    families = args.family or specification.families
    command.must_be_among("--cells", names, [c.name for c in cells])
    command.must_be_among("--family", families, specification.families)
    kept = [c for c in cells if c.name in names and specification.family(c) in families]
    return kept, [c.name for c in extra]


def measure(args: argparse.Namespace, specification: spec.Specification) -> int:
    """Take the samples that are missing, then say what follows."""
    cells, extra = chosen_cells(args, specification)
    site = site_of(args)
    line = variants.lineup(specification, site, cells, extra)
    console = Console(stderr=True)
    absent = [*line.reasons, *variants.unsearched(specification, cells)]
    for reason in absent:
        console.print(f"missing: {reason}", **_PLAIN)
    if not line.measurements:
        raise PenstockError("nothing of this can be measured here: make build")
    design = specification.cells.design
    rounds = args.rounds or design.rounds
    seed = design.seed if args.seed is None else args.seed
    stopping = Stopping(minimum=rounds, maximum=rounds, checks=())
    if args.dry_run:
        return _dry_run(args.out, line, stopping, seed)
    args.out.mkdir(parents=True, exist_ok=True)
    here = search.machine([provenance.collect(site.scratch.parent)])
    absent += search.elsewhere(specification.bests, here)
    with Store(args.out / NAME) as store, Show(console) as show:
        session = Session(
            line.measurements,
            stopping,
            store,
            seed,
            site.scratch,
            observer=show,
            name="peers" if args.size == "gate" else f"peers ({args.size}: nothing to conclude)",
            collect=partial(provenance.collect, mpi=_libraries(specification)),
            keeps=measured.keeps(specification.cells.conclusion),
        )
        console.print(f"{_size(line, rounds)}, seed {seed}; results in {args.out}", markup=False)
        ending = session.run()
        command.tell_missing(store, absent)
    if ending.reason != "complete":
        console.print("stopped; the same command goes on", style="yellow")
        return STOPPED
    return conclude(args, specification, args.out)


def _libraries(specification: spec.Specification) -> dict[str, str]:
    return {key: library.title for key, library in specification.peers.library.items()}


def _size(line: variants.Lineup, rounds: int) -> str:
    n = len(line.measurements)
    cells = len({m.cell for m in line.measurements})
    return f"{cells} cells, {n} variants, {n * (rounds + 1) + rounds} samples"


def _dry_run(out: Path, line: variants.Lineup, stopping: Stopping, seed: int) -> int:
    pairs = tuple((m.cell, m.variant) for m in line.measurements)
    earlier = load(out / NAME).samples if (out / NAME).exists() else []
    by_cell: dict[str, list[str]] = {}
    for cell, variant in pairs:
        by_cell.setdefault(cell, []).append(variant)
    for cell, names in by_cell.items():
        print(f"{cell}: {', '.join(names)}")
    left_s = remaining_s(Plan(pairs, stopping, seed), earlier, USUAL_S) or 0.0
    print(f"{_size(line, stopping.minimum)}: about {duration_text(left_s)}", end="")
    print(f", {len(earlier)} samples are there" if earlier else f" at {USUAL_S} s a sample")
    return DONE


def look_for_best(args: argparse.Namespace, specification: spec.Specification) -> int:
    """Search the grids."""
    families = args.family or specification.families
    command.must_be_among("--family", families, specification.families)
    if args.dry_run:
        number = search.samples_of(specification, families, args.unsearched)
        print(f"at most {number} samples: about {duration_text(number * USUAL_S)}", end="")
        print(f" at {USUAL_S} s a sample")
        return DONE
    seed = specification.cells.design.seed if args.seed is None else args.seed
    console = Console(stderr=True)
    best = args.spec / "best.toml"
    stages = args.out / ("unsearched" if args.unsearched else "search")
    for family in families:  # one after the other, so that what is found is kept
        folder = stages / family.replace(" ", "-")
        try:
            with Show(console) as show:
                some, missing = search.run(
                    specification, site_of(args), [family], folder, seed, show, args.unsearched
                )
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on", style="yellow")
            return STOPPED
        for why in missing:
            console.print(f"missing: {why}", **_PLAIN)
        before = spec.read(best, spec.Bests) if best.exists() else specification.bests
        known = search.as_toml(search.merged(before, some))
        whole.write(best, known.encode(), "make room, or remove what is in the way")
        for one in some:
            setting = ", ".join(f"{k}={v}" for k, v in one.setting.items()) or "default"
            print(f"{family}, {one.ranks} ranks, {one.access}, {one.library}: {setting}", end="")
            print(f" ({one.ratio_to_default:.2f} of the default)")
    return DONE


def conclude(args: argparse.Namespace, specification: spec.Specification, results: Path) -> int:
    """Text, JSON and, when asked for, the page; the exit code."""
    said = report(load(results), specification.cells.conclusion)
    if args.readme:
        print(page.readme(said, "docs/benchmarks/peers.md"), end="")
    else:
        print(page.text(said))
    beside = results if results.is_dir() else None
    if beside is not None:
        text = said.model_dump_json(by_alias=True, indent=1)
        (beside / "peers.json").write_text(text + "\n", encoding="utf-8")
    if args.page:
        said = _with_raw(args, specification, results) if args.raw else said
        _write_page(args, specification.opening, said)
    return command.told(said.gate_failed)


def _with_raw(args: argparse.Namespace, specification: spec.Specification, results: Path) -> Report:
    """Keep the raw samples; the page is made from what is kept, so that it can be made again."""
    command.keep_raw(site_of(args), results, args.raw)
    return report(load(args.raw), specification.cells.conclusion)


def _write_page(args: argparse.Namespace, opening: str, said: Report) -> None:
    samples = (args.raw or args.table).resolve()
    where = os.path.relpath(samples, args.page.resolve().parent)
    words = [f"--spec {_in_checkout(args.spec)}"] if args.spec.resolve() != HERE else []
    words += [f"--table {_in_checkout(samples)}", f"--page {_in_checkout(args.page)}"]
    if args.title:
        words.append(f"--title {shlex.quote(args.title)}")
        opening = f"# {args.title}\n" + re.sub(r"\A# .*\n", "", opening)
    again = " ".join([".venv/bin/python bench/peers/run.py", *words])
    args.page.parent.mkdir(parents=True, exist_ok=True)
    args.page.write_text(page.markdown(said, opening, where, again), encoding="utf-8")


def _in_checkout(path: Path) -> str:
    """As a reader of the page would say it."""
    return os.path.relpath(path.resolve(), ROOT)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = arguments(words)

    def run() -> int:
        specification = spec.load(args.spec)
        if args.table:
            return conclude(args, specification, args.table)
        if args.unsearched and not args.search:
            raise ArgumentError("--unsearched says what --search leaves out: give both, or neither")
        if args.search:
            return look_for_best(args, specification)
        if args.list:
            cells, extra = chosen_cells(args, specification)
            for cell in cells:
                who = variants.of_cell(specification, cell, full=cell.name in extra)
                print(f"{cell.name}: {', '.join(c.name for c in who)}")
            return DONE
        return measure(args, specification)

    return command.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
