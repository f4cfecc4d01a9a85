"""What keeps the processors busy while a cell is written, and when the host does not run them.

    .venv/bin/python bench/limit/processors.py --spec bench/limit --regime cold
    .venv/bin/python bench/limit/processors.py --cells irregular-4 --rounds 9

Runs Penstock's default in cells of bench/limit/what_limits.py under `perf record` (all processors,
999 times a second, with call chains) and looks at the longest stretch in which somebody is inside a
write. Shares of the time of all processors together, medians of the rounds:

- *idle*: nothing to run.
- *not run*: a processor gave no sample for five periods and more. A virtual machine's is then not
  run by its host, which tells the guest of no stolen time where it has not been set up to.
- the rest, other programs included, by what the call chain has: *page cache*, *pinning* of the
  memory that the device will read, *block layer* with the driver, *waiting* of ranks for each
  other, *faults*, *other*.

Exit: 0; 2 wrong usage, nothing built, no perf, or perf may not look at all processors.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import what_limits  # noqa: E402
from beside import command, page, spec  # noqa: E402
from what_limits import OURS, Row  # noqa: E402

from penstock.bench.session import Measurement, environment  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402

HZ = 999
PAUSE_S = 0.3  # between two writes of a stretch, at most
LOST_S = 5 / HZ
WRITING = re.compile(r"vfs_write|ext4_file_write_iter|io_write|aio_write|do_sync")
GROUPS = {
    "page cache": re.compile(
        r"generic_perform_write|iomap_file_buffered_write|writeback|writepages"
    ),
    "pinning": re.compile(r"gup_fast|iov_iter_extract|bio_iov_iter_get_pages|__bio_release_pages"),
    "block layer": re.compile(r"blk_|virtblk|virtqueue|submit_bio|nvme_|scsi_"),
    "waiting": re.compile(r"sched_yield|futex|MPI|penstock::comm"),
    "faults": re.compile(r"exc_page_fault|handle_mm_fault"),
}
HEAD = re.compile(r"^\s*(?P<comm>\S.*?)\s+\d+\s+\[(?P<cpu>\d+)\]\s+(?P<at>[\d.]+):")


@dataclass(frozen=True)
class Sample:
    """Of one processor, at a moment in seconds."""

    comm: str
    cpu: int
    at: float
    chain: str


def parsed(lines: Iterable[str]) -> Iterator[Sample]:
    """From `perf script -F comm,tid,cpu,time,ip,sym`: a head, its frames, a blank line."""
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            if found := HEAD.match(line):
                head, frames = found, []
            else:
                frames.append(line.split(None, 1)[-1].strip())
        elif head is not None:
            yield Sample(head["comm"], int(head["cpu"]), float(head["at"]), " ".join(frames))
            head = None


def stretch(samples: Sequence[Sample]) -> tuple[float, float]:
    """The longest in which somebody writes. Raises PenstockError where nobody does."""
    moments = sorted(s.at for s in samples if WRITING.search(s.chain))
    if not moments:
        raise PenstockError(
            "no sample is inside a write: too short a cell, or another kernel's names"
        )
    longest, begin = (moments[0], moments[0]), moments[0]
    for before, now in pairwise(moments):
        begin = begin if now - before < PAUSE_S else now
        longest = max(longest, (begin, now), key=lambda s: s[1] - s[0])
    return longest


def group_of(sample: Sample) -> str:
    """What the processor did."""
    if sample.comm.startswith("swapper"):
        return "idle"
    return next((name for name, words in GROUPS.items() if words.search(sample.chain)), "other")


def lost(moments: Sequence[float]) -> float:
    """Seconds without a sample, where they should be 1/HZ apart."""
    gaps = (b - a for a, b in pairwise(moments))
    return sum(gap - 1 / HZ for gap in gaps if gap >= LOST_S)


def shares(samples: Sequence[Sample], cpus: int) -> dict[str, float]:
    """Of the time of all processors in the longest stretch, and its length in ms."""
    begin, end = stretch(samples)
    inside = sorted((s for s in samples if begin <= s.at <= end), key=lambda s: s.at)
    gone = sum(
        lost([begin, *(s.at for s in inside if s.cpu == cpu), end]) for cpu in range(cpus)
    ) / max((end - begin) * cpus, 1e-9)
    seen = Counter(group_of(s) for s in inside)
    found = {name: (1 - gone) * n / len(inside) for name, n in seen.items()}
    return {"ms": (end - begin) * 1e3, "not run": gone} | found


def profile(one: Measurement, out: Path) -> dict[str, float]:
    """Run it once under perf."""
    data = out / "perf.data"
    # By the clock: a processor that is halted counts no cycles.
    record = ["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", str(HZ)]
    record += ["-o", str(data), "--"]
    try:
        done = subprocess.run(
            [*record, *one.command], env=environment(one.env), capture_output=True, text=True
        )
        if done.returncode != 0:
            raise PenstockError(f"{one.cell}: exit code {done.returncode}: {done.stderr[-400:]}")
        fields = ["-F", "comm,tid,cpu,time,ip,sym"]
        said = subprocess.run(
            ["perf", "script", "-i", str(data), *fields], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise PenstockError("perf is not there: install linux-perf") from None
    samples = list(parsed(said.stdout.splitlines()))
    return shares(samples, 1 + max((s.cpu for s in samples), default=0))


def table(cell: str, rounds: Sequence[dict[str, float]]) -> str:
    """Medians, the smallest and the largest."""
    names = ["ms", "idle", "not run", *GROUPS, "other"]

    def told(name: str) -> str:
        values = [r.get(name, 0.0) for r in rounds]
        how = "{:.0f}" if name == "ms" else "{:.0%}"
        middle, least, most = (how.format(f(values)) for f in (statistics.median, min, max))
        return f"{middle} [{least}-{most}]"

    return str(page.as_markdown(("cell", *names), [[cell, *(told(name) for name in names)]]))


def measure(words: Sequence[str] | None) -> int:
    """Every cell, its rounds one after the other; the first warms up."""
    args = what_limits.understood(what_limits.parser_of_cells(__doc__), words)
    known = spec.load(args.spec)
    rows = [Row(c, OURS) for c in what_limits.cells_of(args, known)]
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=args.out) as scratch:
        args.dir = Path(scratch)
        site = command.site_of(args, [args.build])
        for name, who in what_limits.lineup(known, site, rows).items():
            print(table(name, [profile(who[0], args.dir) for _ in range(args.rounds + 1)][1:]))
    return 0


if __name__ == "__main__":
    sys.exit(command.guarded(lambda: measure(None), "processors.py"))
