"""BT-IO: independent writes through Penstock beside collective ones and beside the MPI libraries.

    python bench/btio/run.py                         six cells: a quarter of an hour; make it quiet
    python bench/btio/run.py --dry-run               what would run, and how long
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
from datetime import datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "bench" / "peers"), str(ROOT / "python")]

from beside import raw  # noqa: E402
from beside.place import Site  # noqa: E402
from rich.console import Console  # noqa: E402
from rounds import report as reports  # noqa: E402
from rounds import study as studies  # noqa: E402
from rounds.study import Cell, Class, Lineup, Study, Work  # noqa: E402

from penstock.bench.blocks import Plan  # noqa: E402
from penstock.bench.estimate import remaining_s  # noqa: E402
from penstock.bench.progress import Show, duration_text  # noqa: E402
from penstock.bench.sample import Event  # noqa: E402
from penstock.bench.session import Session  # noqa: E402
from penstock.bench.statistics import Stopping  # noqa: E402
from penstock.bench.store import NAME, Store, load  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402

USUAL_S = 3.0  # a sample, before any was taken on this machine
DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, default=ROOT / "build" / "bench-btio", help="where results go")
    add("--dir", type=Path, help="where the data goes, a directory to be made [OUT/scratch]")
    add("--build", type=Path, default=ROOT / "build" / "release", help="where programs are")
    add("--cells", help="only these, by name, separated by commas: A-4,B-16-synced")
    add("--all-libraries", action="store_true", help="those of Open MPI 5 as well")
    add("--all", action="store_true", help="every class on every number of ranks, synced and not")
    add("--rounds", type=int, help="blocks after the warm-up [cells.toml]")
    add("--whole", action="store_true", help="all outputs of every class: 6.8 GB for C")
    add("--try", dest="trial", action="store_true", help="class S and one round: no conclusions")
    add("--dry-run", action="store_true", help="what would run, and how long")
    add("--table", type=Path, metavar="RESULTS", help="measure nothing: the tables of a run")
    add("--page", type=Path, help="with --table: the Markdown page to write")
    add("--raw", type=Path, help="with --table: where compact raw samples go, beside the page")
    return parser.parse_args(words)


def site_of(args: argparse.Namespace) -> Site:
    """Where things are."""
    scratch = args.dir or args.out / "scratch"
    return Site((args.build.resolve(),), ROOT / ".mpi", scratch.resolve())


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
    if wrong := [name for name in names if name not in known]:
        raise PenstockError(f"--cells must be of {', '.join(known)}; got {', '.join(wrong)}")
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
        )
        ending = session.run()
        _tell_missing(store, line)
    if ending.reason != "complete":
        console.print("stopped; the same command goes on", style="yellow")
        return STOPPED
    return conclude(args, study, args.out)


def _tell_missing(store: Store, line: Lineup) -> None:
    """The samples say who could not be measured."""
    told = {e.text for e in store.results.events if e.what == "missing"}
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    for reason in line.reasons:
        if reason not in told:
            store.append(Event(at=now, what="missing", text=reason))


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
        site = site_of(args)
        words = {str(site.scratch): "SCRATCH", str(site.mpis): "MPIS", str(ROOT): "PENSTOCK"}
        words |= {str(build): "BUILD" for build in site.builds}
        raw.compact(results, args.raw, words)
        results = args.raw
    said = reports.report(load(results), study.conclusion)
    print("\n\n".join(reports.tables(said)))
    if results.is_dir():
        text = said.model_dump_json(by_alias=True, indent=1)
        (results / "btio.json").write_text(text + "\n", encoding="utf-8")
    if args.page:
        _write_page(args.page, said, results)
    if said.gate_failed:
        print(f"\nfailed: {', '.join(said.gate_failed)}", file=sys.stderr)
        return FAILED
    return DONE


def _write_page(page: Path, said: reports.Report, results: Path) -> None:
    where = os.path.relpath(results.resolve(), page.resolve().parent)
    command = f"bench/btio/run.py --table docs/benchmarks/{where} --page docs/benchmarks/btio.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(reports.markdown(said, where, command), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = arguments(words)
    try:
        study = studies.load()
        if args.table:
            return conclude(args, study, args.table)
        return measure(args, study)
    except PenstockError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
