#!/usr/bin/env python3
"""Kills `penstock bench` with SIGKILL at random moments, and runs the same command again.

    .venv/bin/python tests/bench/kill.py [--kills 50] [--native DIR] [--dir DIR] [--seed N]

In the end the set of samples must be that of a sweep that nobody disturbed: none lost, none twice.
After every kill the results must be readable and hold all that they held before it. Half of the
kills take the measured program too, as a power cut would; the others leave it behind, and the next
run has to end it before it measures.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from run_mpi import Suite

from penstock.bench.execute import MARK
from penstock.bench.sample import Key
from penstock.bench.store import load

ROOT = Path(__file__).resolve().parents[2]
MATRIX = """
rounds = 4
settle = "1s"
[defaults]
threads = 1
regime = "asis"
warm_disk = 0
iters = 2
[sweep]
bufsize = ["4KiB", "64KiB"]
[[variant]]
name = "write"
route = "posix"
[[variant]]
name = "engine"
route = "engine"
[[variant]]
name = "null"
route = "engine"
method = "individual + none + null"
"""
START_S = 0.4  # Python and its libraries: earlier kills find nothing begun
PATIENCE_S = 120.0


@dataclass
class Run:
    """A sweep that is started again and again."""

    data: Path
    out: Path
    matrix: Path
    env: dict[str, str]
    kills: int = 0
    problems: list[str] = field(default_factory=list)

    def start(self) -> subprocess.Popen[str]:
        words = ["bench", str(self.data), "--matrix", str(self.matrix), "--out", str(self.out)]
        return subprocess.Popen(
            [sys.executable, "-m", "penstock", *words, "--seed", "11"],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def keys(self) -> list[Key]:
        """The samples that there are."""
        found = any(b"\n" in path.read_bytes() for path in self.out.glob("*.jsonl"))
        return [sample.key for sample in load(self.out).samples] if found else []

    def to_its_end(self) -> None:
        """Run undisturbed."""
        process = self.start()
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            self.problems.append(f"it does not end: {errors[-500:]}")
            return
        if process.returncode != 0:
            self.problems.append(f"exit code {process.returncode}: {errors[-500:]}")

    def killed_after(self, seconds: float, children_too: bool) -> bool:
        """Start and kill; False when it came to its end before."""
        before = self.keys()
        process = self.start()
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            if children_too:
                end_children(self.out)
            process.communicate()
            self.kills += 1
            self._check_after_kill(before)
            return True
        return False

    def _check_after_kill(self, before: list[Key]) -> None:
        after = self.keys()
        if after[: len(before)] != before:
            self.problems.append(f"kill {self.kills} lost samples: {len(before)} -> {len(after)}")


def marked(out: Path) -> list[int]:
    """Processes of the sweep's samples, by the mark that each carries."""
    mark = hashlib.sha256(str((out / "samples.jsonl").resolve()).encode()).hexdigest()[:16]
    needle = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if needle in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end_children(out: Path) -> None:
    """What a power cut takes besides the sweep itself."""
    for number in marked(out):
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue


def environment(native: Path | None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    kept["PYTHONPATH"] = str(ROOT / "python")
    return kept | ({"PENSTOCK_NATIVE_DIR": str(native)} if native else {})


def check_end(run: Run, expected: list[Key]) -> list[str]:
    """What is wrong with a sweep that was killed and has come to its end."""
    problems = list(run.problems)
    keys = run.keys()
    if len(set(keys)) != len(keys):
        problems.append(f"{len(keys) - len(set(keys))} samples were taken twice")
    if lost := set(expected) - set(keys):
        problems.append(f"{len(lost)} samples are missing, such as {min(lost)}")
    if more := set(keys) - set(expected):
        problems.append(f"{len(more)} samples are too many, such as {min(more)}")
    if left := [p.name for p in run.data.iterdir()]:
        problems.append(f"left in the measured directory: {left}")
    if still := marked(run.out):
        problems.append(f"{len(still)} processes are left")
    failed = [s for s in load(run.out).samples if s.failed]
    problems += [f"{len(failed)} samples failed: {failed[0].failed}"] if failed else []
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--native", type=Path, help="the native files (default: as penstock finds)")
    parser.add_argument("--dir", type=Path, help="where to measure (default: a temporary one)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the moments")
    args = parser.parse_args()
    draw = random.Random(args.seed)  # noqa: S311 - moments, not secrets
    suite = Suite(f"kill ({args.kills} kills, seed {args.seed})")
    with tempfile.TemporaryDirectory(prefix="penstock-kill-", dir=args.dir) as work:
        sweep(suite, Path(work), args.kills, args.native, draw)
    return suite.finish()


def sweep(suite: Suite, work: Path, kills: int, native: Path | None, draw: random.Random) -> None:
    matrix = work / "matrix.toml"
    matrix.write_text(MATRIX)
    env = environment(native)

    def run(name: str) -> Run:
        (work / f"data-{name}").mkdir()
        return Run(work / f"data-{name}", work / f"out-{name}", matrix, env)

    whole = run("whole")
    begin_s = time.monotonic()
    whole.to_its_end()
    usual_s = time.monotonic() - begin_s
    expected = whole.keys()
    if not suite.check("a sweep that nobody disturbs", check_end(whole, expected)):
        return
    left, number = kills, 0
    while left > 0:
        number += 1
        one = run(str(number))
        while left > 0 and one.killed_after(
            draw.uniform(START_S, START_S + usual_s / 3), draw.random() < 0.5
        ):
            left -= 1
        one.to_its_end()
        name = f"sweep {number}, killed {one.kills} times: {len(expected)} samples"
        suite.check(name, check_end(one, expected))
        print(name, flush=True)


if __name__ == "__main__":
    sys.exit(main())
