"""What limits each family: the disk, the processors, or opening?

    .venv/bin/python bench/limit/what_limits.py                     24 cells: 7 minutes
    .venv/bin/python bench/limit/what_limits.py --cells btio-4,irregular-4 --rounds 9
    .venv/bin/python bench/limit/what_limits.py --access independent
    .venv/bin/python bench/limit/what_limits.py --regime cold
    .venv/bin/python bench/limit/what_limits.py --spec bench/limit --beside fio-direct-4MiB
    .venv/bin/python bench/limit/what_limits.py --page docs/benchmarks/what-limits.md

Runs Penstock's default and the page ring (or who else takes part, by --beside) by turns, in the
synced and warm cells of bench/peers/cells.toml that write collectively (or others, by --access,
--regime and --spec), and looks at the disk a thousand times a second meanwhile (disk_busy.py). What
limits one:

- the disk, where some write is in flight for most of its time;
- the processors, where they are busy for most of it, whoever keeps them busy: make it quiet;
- opening, where that takes more than a quarter of it;
- none of these: then the rest is waiting, for each other or for the disk's last answer.

Exit: 0; 2 wrong usage, nothing built, or no disk that the kernel counts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers"), str(ROOT / "python")]

import disk_busy  # noqa: E402
from beside import command, page, spec, variants  # noqa: E402
from beside.place import MissingError  # noqa: E402

from penstock.bench import provenance  # noqa: E402
from penstock.bench.execute import ProgramResult  # noqa: E402
from penstock.bench.sample import Result  # noqa: E402
from penstock.bench.session import Measurement, environment  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402

MOST = 0.75  # of the time: then it is what limits
OPENING = 0.25
OURS, RING = "penstock", "ceiling"


def head(beside: str) -> tuple[str, ...]:
    """Of the table."""
    other = "page ring" if beside == RING else beside
    return (
        "cell", "ms", "opening, ms", "disk, ms", "disk busy", "processors busy", "limited by",
        f"{other}, ms", "its disk, ms", "its disk busy",
    )  # fmt: skip


PAGE = """\
# What limits each family: {access} writes{cold}

Measured {date} with Penstock {penstock} at its default method on {place};
medians of {rounds} rounds, Penstock and {beside} by turns, in the {access}, synced and {regime}
cells of `{spec}/cells.toml`. This page was made by
`.venv/bin/python bench/limit/what_limits.py {words}`.

- *ms*: from before the open to after the close. *opening*: of the slowest rank, the view included.
- *disk*: of the burst with the most bytes, from the first write in flight to the last; it may begin
  before the open and end after the close. *disk busy*: the part of this burst in which some was in
  flight, times its length over *ms*, at most 1: a burst longer than *ms* counts as long as that.
- *processors busy*: of all cores, by whomever, until the device had every byte; programs that do
  not say it have none.
- *limited by*: what took {most} of the time or more, or opening with {opening}; *waiting*: none of
  these.
- The *page ring* and fio open no file of the MPI library.

"""


@dataclass(frozen=True)
class Seen:
    """One sample: seconds by the program's clock, and what the disk did meanwhile."""

    total_s: float
    open_s: float | None  # None: the program does not say
    disk_s: float  # from the first write of the burst to the last, by another clock
    disk_busy: float  # the part of disk_s with a write in flight
    cpus_busy: float | None  # the part of all processors' time; None: the program does not say


@dataclass
class Row:
    """The samples of a cell."""

    cell: spec.Cell
    beside: str = RING
    samples: dict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))

    def median(self, who: str, name: str) -> float | None:
        """Of one figure; None where nobody tells it."""
        told = [v for s in self.samples[who] if (v := getattr(s, name)) is not None]
        return statistics.median(told) if told else None

    def disk_share(self, who: str) -> float | None:
        """The part of its time in which the disk wrote, as far as its burst tells."""
        shares = [min(s.disk_s, s.total_s) * s.disk_busy / s.total_s for s in self.samples[who]]
        return statistics.median(shares) if shares else None

    @property
    def limits(self) -> str:
        """In a word or two."""
        total, opening = self.median(OURS, "total_s"), self.median(OURS, "open_s")
        cpus = self.median(OURS, "cpus_busy")
        found = []
        if (self.disk_share(OURS) or 0) >= MOST:
            found.append("the disk")
        if cpus is not None and cpus >= MOST:
            found.append("the processors")
        if total and opening and opening / total >= OPENING:
            found.append("opening")
        return ", ".join(found) or "waiting"

    def words(self) -> list[str]:
        """For the table."""
        ours, other = (partial(self.median, who) for who in (OURS, self.beside))
        return [
            self.cell.name, _ms(ours("total_s")), _ms(ours("open_s")), _ms(ours("disk_s")),
            _part(self.disk_share(OURS)), _part(ours("cpus_busy")), self.limits,
            _ms(other("total_s")), _ms(other("disk_s")), _part(self.disk_share(self.beside)),
        ]  # fmt: skip


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _part(share: float | None) -> str:
    """Rounded down, so that what is below a limit does not look as if it reached it."""
    return "-" if share is None else f"{math.floor(100 * share + 1e-9)}%"


def sample(disk: Path, one: Measurement, scratch: Path) -> Seen:
    """Run it once. Raises PenstockError when it fails, or is not what was to be measured."""
    for log in scratch.glob("*.json"):  # of earlier runs, which would count for this one
        log.unlink()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        looks, code = disk_busy.watch(
            disk, one.command, stdout=out, stderr=err, env=environment(one.env)
        )
        out.seek(0)
        err.seek(0)
        lines = [line for line in out if line.startswith("{")]
        if code != 0 or not lines:
            raise PenstockError(f"{one.cell}, {one.variant}: exit code {code}: {err.read()[-400:]}")
    record = json.loads(lines[-1])
    ran = ProgramResult(code, Result.model_validate(record), "", 0.0, None)
    if why := one.expect(ran):
        raise PenstockError(f"{one.cell}, {one.variant}: {why}")
    return seen(record, looks)


def seen(record: dict[str, Any], looks: Sequence[disk_busy.Look]) -> Seen:
    """From what the program said and what was seen of the disk."""
    burst = max(disk_busy.bursts(looks), key=lambda b: b.done_bytes, default=None)
    cpus = record.get("cpus")
    return Seen(
        record["application"]["seconds"],
        record.get("phases", {}).get("open_s"),
        burst.seconds if burst else 0.0,
        burst.busy if burst else 0.0,
        cpus["busy_s"] / cpus["total_s"] if cpus and cpus["total_s"] > 0 else None,
    )


def lineup(
    known: spec.Specification, site: variants.Site, rows: Sequence[Row]
) -> dict[str, list[Measurement]]:
    """What can be measured of each cell, Penstock first. Raises PenstockError when that cannot."""
    line = {row.cell.name: {v.name: v for v in variants.of_cell(known, row.cell)} for row in rows}
    command.must_be_among(
        "--beside", [row.beside for row in rows], sorted(set().union(*line.values()))
    )
    found: dict[str, list[Measurement]] = {}
    for row in rows:
        there = line[row.cell.name]
        try:
            found[row.cell.name] = [
                variants.measurement(known, site, row.cell, there[who])
                for who in (OURS, row.beside)
                if who in there
            ]
        except MissingError as why:
            raise PenstockError(f"{row.cell.name}: {why}") from None
    return found


def cells_of(args: argparse.Namespace, known: spec.Specification) -> list[spec.Cell]:
    """Those that are asked for."""
    usual = (args.access, "sync", args.regime)
    cells = [c for c in known.cells.cell if (c.access, c.end, c.regime) == usual]
    names = args.cells.split(",") if args.cells else [c.name for c in cells]
    command.must_be_among("--cells", names, [c.name for c in cells])
    return [c for c in cells if c.name in names]


def measure(args: argparse.Namespace, known: spec.Specification) -> list[Row]:
    """One round more than is kept: the first warms up."""
    rows = {c.name: Row(c, args.beside) for c in cells_of(args, known)}
    site = command.site_of(args, [args.build])
    line = lineup(known, site, list(rows.values()))
    disk = disk_busy.disk_of(site.scratch)
    for turn in range(args.rounds + 1):
        for name, both in line.items():
            print(f"\rround {turn} of {args.rounds}: {name:<40}", end="", file=sys.stderr)
            for one in both:
                found = sample(disk, one, site.scratch)
                if turn > 0:
                    rows[name].samples[one.variant].append(found)
    print(file=sys.stderr)
    return list(rows.values())


def text(args: argparse.Namespace, rows: Sequence[Row]) -> str:
    """The page."""
    found = provenance.collect(command.site_of(args, [args.build]).scratch)
    where = os.path.relpath(args.spec, ROOT)
    usual = {"access": "collective", "regime": "warm", "beside": RING}
    words = [f"--{key} {told}" for key in usual if (told := getattr(args, key)) != usual[key]]
    words += [f"--spec {where}"] if where != "bench/peers" else []
    words += [f"--rounds {args.rounds}"] + ([f"--cells {args.cells}"] if args.cells else [])
    if args.page:
        words.append(f"--page {shlex.quote(os.path.relpath(args.page, ROOT))}")
    opening = PAGE.format(
        date=time.strftime("%Y-%m-%d"), penstock=found.penstock, place=page.machine(found),
        rounds=args.rounds, access=args.access, words=" ".join(words), most=f"{MOST:.0%}",
        opening=f"{OPENING:.0%}", spec=where, regime=args.regime,
        cold=" in cold memory" if args.regime == "cold" else "",
        beside="the page ring" if args.beside == RING else args.beside,
    )  # fmt: skip
    return opening + page.as_markdown(head(args.beside), [row.words() for row in rows]) + "\n"


def parser_of_cells(description: str) -> argparse.ArgumentParser:
    """What says which cells, and how often."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--build", type=Path, default=ROOT / "build" / "release", help="where programs are")
    add("--out", type=Path, default=ROOT / "build" / "what-limits", help="where the data goes")
    add("--access", choices=("collective", "independent"), default="collective",
        help="of which cells [collective]")  # fmt: skip
    add("--regime", choices=("warm", "cold"), default="warm", help="of their memory [warm]")
    add("--spec", type=Path, default=ROOT / "bench" / "peers", help="where cells.toml is")
    add("--cells", help="only these cells, by name, separated by commas")
    add("--rounds", type=int, default=5, help="samples of each that count [5]")
    return parser


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = parser_of_cells(__doc__)
    add = parser.add_argument
    add("--beside", default=RING, metavar="WHO",
        help="another program of the cells, by its name [ceiling: the page ring]")  # fmt: skip
    add("--page", type=Path, help="the Markdown page to write")
    return understood(parser, words)


def understood(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> argparse.Namespace:
    """With what all programs of the cells have."""
    args = parser.parse_args(words)
    args.dir = args.table = None
    if args.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {args.rounds}")
    return args


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = arguments(words)

    def run() -> int:
        try:
            args.out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="scratch-", dir=args.out) as scratch:
                args.dir = Path(scratch)
                said = text(args, measure(args, spec.load(args.spec)))
        except OSError as error:
            raise PenstockError(f"{error}; name a directory on a disk by --out") from None
        if args.page:
            args.page.write_text(said, encoding="utf-8")
        print(said)
        return 0

    return command.guarded(run, "what_limits.py")


if __name__ == "__main__":
    sys.exit(main())
