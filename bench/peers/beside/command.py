"""What the commands that measure beside peers share: options, exit codes, what is left of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from beside import raw
from beside.place import Site
from penstock.bench.sample import Event
from penstock.bench.store import Store
from penstock.errors import PenstockError

ROOT = Path(__file__).resolve().parents[3]
DONE, FAILED, USAGE, STOPPED = 0, 1, 2, 3


def parser(description: str | None, out: Path) -> argparse.ArgumentParser:
    """The options of both commands; ``out`` is where results go unless it is said."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("--out", type=Path, default=out, help="where results go")
    add("--dir", type=Path, help="where the data goes, a directory to be made [OUT/scratch]")
    add("--cells", help="only these cells, by name, separated by commas")
    add("--rounds", type=int, help="blocks after the warm-up [cells.toml]")
    add("--dry-run", action="store_true", help="what would run, and how long")
    add("--table", type=Path, metavar="RESULTS", help="measure nothing: the tables of a run")
    add("--page", type=Path, help="with --table: the Markdown page to write")
    add("--raw", type=Path, help="with --table: where compact raw samples go, beside the page")
    return made


def site_of(args: argparse.Namespace, builds: Sequence[Path], size: str = "gate") -> Site:
    """Where things are, or were when the results were taken that --table names."""
    scratch = args.dir or (args.table or args.out) / "scratch"
    known = tuple(b.resolve() for b in builds)
    return Site(known, ROOT / ".mpi", ROOT / ".peers", scratch.resolve(), size)


def must_be_among(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    """A name that is none is refused."""
    if wrong := [name for name in given if name not in known]:
        raise PenstockError(f"{option} must be of {', '.join(known)}; got {', '.join(wrong)}")


def tell_missing(store: Store, reasons: Sequence[str]) -> None:
    """The samples say who could not be measured."""
    told = {e.text for e in store.results.events if e.what == "missing"}
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    for reason in reasons:
        if reason not in told:
            store.append(Event(at=now, what="missing", text=reason))


def keep_raw(site: Site, results: Path, kept: Path) -> None:
    """Raw samples without the paths of this machine."""
    words = {str(site.scratch): "SCRATCH", str(site.mpis): "MPIS", str(site.peers): "PEERS"}
    words |= {str(ROOT): "PENSTOCK"}
    words |= {str(build): "BUILD" for build in site.builds}
    raw.compact(results, kept, words)


def told(gate_failed: Sequence[str]) -> int:
    """The exit code of a run with these gating conclusions failed."""
    if gate_failed:
        print(f"\nfailed: {', '.join(gate_failed)}", file=sys.stderr)
        return FAILED
    return DONE


def guarded(command: Callable[[], int], name: str = "run.py") -> int:
    """Errors of the command line, and what the system refuses, are told in a line."""
    try:
        return command()
    except (PenstockError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return USAGE
