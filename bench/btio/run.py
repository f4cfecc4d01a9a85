"""BT-IO: independent writes through Penstock beside collective ones and beside the MPI libraries.

    python bench/btio/run.py                         six cells: twenty minutes; make it quiet
    python bench/btio/run.py --dry-run               what would run, and how long
    python bench/btio/run.py --study own             Penstock's two ways alone, 40 rounds of each
    python bench/btio/run.py --try                   whether everything works: class S, one round
    python bench/btio/run.py --table OUT             text, JSON and Markdown of a run's samples

Stopped, it goes on with the same command. Exit code: 0 no gating conclusion failed; 1 one did;
2 wrong usage, or nothing can be measured here; 3 stopped before the end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "bench" / "peers"), str(ROOT / "python")]

from beside import command, measured  # noqa: E402
from beside.command import DONE, STOPPED  # noqa: E402
from beside.place import Site  # noqa: E402
from rich.console import Console  # noqa: E402
from rounds import report as reports  # noqa: E402
from rounds import study as studies  # noqa: E402
from rounds.study import Cell, Class, Lineup, Study, Work  # noqa: E402

from penstock.bench.blocks import Plan  # noqa: E402
from penstock.bench.estimate import remaining_s  # noqa: E402
from penstock.bench.progress import Show  # noqa: E402
from penstock.bench.session import Session  # noqa: E402
from penstock.bench.statistics import Stopping  # noqa: E402
from penstock.bench.store import NAME, Store, load  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402
from penstock.words import duration_text  # noqa: E402

USUAL_S = 3.0  # a sample, before any was taken on this machine


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command.parser(__doc__, ROOT / "build" / "bench-btio")
    add = parser.add_argument
    add("--study", default="cells", choices=studies.names(), help="what is measured [cells]")
    add("--build", type=Path, default=ROOT / "build" / "release", help="where programs are")
    add("--all-libraries", action="store_true", help="those of Open MPI 5 as well")
    add("--all", action="store_true", help="every class on every number of ranks, synced and not")
    add("--whole", action="store_true", help="all outputs of every class: 6.8 GB for C")
    add("--try", dest="trial", action="store_true", help="class S and one round: no conclusions")
    return parser.parse_args(words)


def site_of(args: argparse.Namespace) -> Site:
    """Where things are."""
    return command.site_of(args, [args.build])


def work_of(args: argparse.Namespace, study: Study) -> Work:
    """What is measured of the study."""
    classes = dict(study.classes)
    cells = studies.cells_of(study)
    if args.trial:
        classes = {"S": Class(outputs=2, of=12, own_files=True)}
        cells = [Cell("S", ranks, end) for end in studies.ENDS for ranks in study.design.ranks]
    if args.whole:
        whole = {name: {"outputs": one.of} for name, one in classes.items()}
        classes = {name: one.model_copy(update=whole[name]) for name, one in classes.items()}
    if args.cells:
        cells = _chosen(args.cells.split(","), cells)
    elif not (args.all or args.trial):
        cells = _chosen(study.design.usual, cells)
    peers = [peer for peer in study.peer if args.all_libraries or not peer.extra]
    return Work(cells, classes, peers)


def _chosen(names: Sequence[str], cells: Sequence[Cell]) -> list[Cell]:
    known = {cell.name: cell for cell in cells}
    command.must_be_among("--cells", names, list(known))
    return [known[name] for name in names]


def measure(args: argparse.Namespace, study: Study) -> int:
    """Take the samples that are missing, then say what follows."""
    site = site_of(args)
    line = studies.lineup(study, work_of(args, study), site)
    console = Console(stderr=True)
    for reason in line.reasons:
        console.print(f"missing: {reason}", style="yellow", markup=False, soft_wrap=True)
    if not line.measurements:
        raise PenstockError("nothing of this can be measured here: make build")
    rounds = args.rounds or (1 if args.trial else study.design.rounds)
    stopping = Stopping(minimum=rounds, maximum=rounds, checks=())
    if args.dry_run:
        return _dry_run(args.out, line, stopping, study.design.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    with Store(args.out / NAME) as store, Show(console) as show:
        session = Session(
            line.measurements,
            stopping,
            store,
            study.design.seed,
            site.scratch,
            observer=show,
            name="btio (to try it: nothing to conclude)" if args.trial else "btio",
            keeps=measured.keeps(study.conclusion),
        )
        ending = session.run()
        command.tell_missing(store, line.reasons)
    if ending.reason != "complete":
        console.print("stopped; the same command goes on", style="yellow")
        return STOPPED
    return conclude(args, study, args.out)


def _dry_run(out: Path, line: Lineup, stopping: Stopping, seed: int) -> int:
    pairs = tuple((m.cell, m.variant) for m in line.measurements)
    earlier = load(out / NAME).samples if (out / NAME).exists() else []
    for one in line.measurements:
        print(f"{one.cell} {one.variant}: {' '.join(one.command)}")
    left_s = remaining_s(Plan(pairs, stopping, seed), earlier, USUAL_S) or 0.0
    total = len(pairs) * (stopping.minimum + 1) + stopping.minimum
    print(f"{total} samples, {len(earlier)} of them there: about {duration_text(left_s)} left")
    return DONE


def conclude(args: argparse.Namespace, study: Study, results: Path) -> int:
    """Text, JSON and, when asked for, the page; the exit code."""
    if args.raw:
        command.keep_raw(site_of(args), results, args.raw)
        results = args.raw
    said = reports.report(load(results), study.conclusion)
    print("\n\n".join(reports.tables(said)))
    if results.is_dir():
        text = said.model_dump_json(by_alias=True, indent=1)
        (results / "btio.json").write_text(text + "\n", encoding="utf-8")
    if args.page:
        _write_page(args, study.design.title, said, results)
    return command.told(said.gate_failed)


def _write_page(args: argparse.Namespace, title: str, said: reports.Report, results: Path) -> None:
    page: Path = args.page
    where = os.path.relpath(results.resolve(), page.resolve().parent)
    chosen = "" if args.study == "cells" else f" --study {args.study}"
    made = reports.Made(
        title=title,
        study=f"bench/btio/{args.study}.toml",
        raw=where,
        measure=f".venv/bin/python bench/btio/run.py{chosen}",
        page=page.name,
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(reports.markdown(said, made), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = arguments(words)

    def run() -> int:
        study = studies.load(studies.path_of(args.study))
        if args.table:
            return conclude(args, study, args.table)
        return measure(args, study)

    return command.guarded(run)


if __name__ == "__main__":
    sys.exit(main())
