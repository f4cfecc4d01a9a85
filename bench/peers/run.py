"""Measure Penstock against an MPI library's own path, interleaved, and say what follows.

    python bench/peers/run.py [--cells FILE] [--build DIR] [--dir DIR] [--json FILE]

Each round runs every cell alone and with Penstock, in an order drawn anew from a printed seed.
The output gives medians with their order-statistic intervals and the paired ratios; the exit code
is 1 when a cell's median ratio is below the file's ``least_ratio``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def median_interval(samples: list[float]) -> tuple[float, float]:
    """The order-statistic interval of the median, at least 95 % where n allows (n=6: all)."""
    n = len(samples)
    ordered = sorted(samples)
    # Largest k with P(Binomial(n, 1/2) < k) <= 2.5 %.
    cumulative, k = 0.0, 0
    probability = 0.5**n
    for i in range(n):
        cumulative += probability
        if cumulative > 0.025:
            break
        k = i + 1
        probability = probability * (n - i) / (i + 1)
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def run_once(command: list[str], log_dir: Path) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}:\n{done.stderr}")
    sample: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    logs = sorted(log_dir.glob("*.json"))
    for log in logs:
        totals = json.loads(log.read_text())
        sample["log"] = totals
        log.unlink()
    return sample


def commands(
    spec: dict[str, Any], cell: dict[str, Any], build: Path, data: Path, logs: Path
) -> dict[str, list[str]]:
    program = [
        str(build / "bench" / f"cell_{spec['mpi']}"),
        cell["pattern"],
        str(data),
        str(cell["mib_per_rank"]),
        str(cell["calls"]),
        str(cell["sync"]),
    ]
    launcher = [f"mpiexec.{spec['mpi']}", "-n", str(spec["ranks"])]
    if spec["mpi"] == "openmpi":
        launcher += ["--oversubscribe"]
    penstock = [
        str(build / "native" / "penstock-exec"),
        "--quiet",
        "--require",
        "--log-dir",
        str(logs),
        "--",
    ]
    return {"alone": launcher + program, "penstock": launcher + penstock + program}


def measure(spec: dict[str, Any], build: Path, directory: Path, seed: int) -> list[dict[str, Any]]:
    shuffle = random.Random(seed)
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory(dir=directory) as work:
        data, logs = Path(work) / "data", Path(work) / "logs"
        logs.mkdir()
        for round_number in range(-spec["warm_up"], spec["rounds"]):
            for cell in spec["cell"]:
                pair = commands(spec, cell, build, data, logs)
                order = list(pair)
                shuffle.shuffle(order)
                for who in order:
                    os.sync()
                    sample = run_once(pair[who], logs)
                    if round_number >= 0:
                        results.setdefault(cell["name"], {}).setdefault(who, []).append(sample)
            print(f"round {max(round_number + 1, 0)} of {spec['rounds']}", file=sys.stderr)
    return [summarise(name, by_who) for name, by_who in results.items()]


def summarise(name: str, by_who: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    alone = [s["seconds"] for s in by_who["alone"]]
    ours = [s["seconds"] for s in by_who["penstock"]]
    ratios = [a / b for a, b in zip(alone, ours, strict=True)]
    engine = [s["log"]["totals"]["engine_bytes"] for s in by_who["penstock"]]
    if any(e != s["bytes"] for e, s in zip(engine, by_who["penstock"], strict=True)):
        sys.exit(f"{name}: the engine did not write all bytes: {engine}")
    return {
        "cell": name,
        "bytes": by_who["alone"][0]["bytes"],
        "alone_s": alone,
        "penstock_s": ours,
        "ratio": ratios,
        "median_ratio": statistics.median(ratios),
        "ratio_interval": median_interval(ratios),
    }


def show(rows: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    print(f"{'cell':20} {'alone MB/s':>11} {'penstock MB/s':>14} {'ratio':>6}  interval      n")
    for r in rows:
        mb = r["bytes"] / 1e6
        lo, hi = r["ratio_interval"]
        alone, ours = mb / statistics.median(r["alone_s"]), mb / statistics.median(r["penstock_s"])
        verdict = "" if r["median_ratio"] >= spec["least_ratio"] else "  BELOW"
        print(
            f"{r['cell']:20} {alone:11.0f} {ours:14.0f} {r['median_ratio']:6.2f}  "
            f"{lo:.2f}-{hi:.2f}  {len(r['ratio']):4d}{verdict}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=HERE / "romio_cells.toml")
    parser.add_argument("--build", type=Path, default=HERE.parent.parent / "build" / "release")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the data goes"
    )
    parser.add_argument("--json", type=Path, help="keep every raw sample in this file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="instead of the file's")
    parser.add_argument("--cell", action="append", help="only this cell")
    args = parser.parse_args()
    spec = tomllib.loads(args.cells.read_text())
    spec["rounds"] = args.rounds or spec["rounds"]
    if args.cell:
        spec["cell"] = [c for c in spec["cell"] if c["name"] in args.cell]
    print(
        f"seed {args.seed}, {spec['rounds']} rounds, {spec['ranks']} ranks, {spec['mpi']}",
        file=sys.stderr,
    )
    rows = measure(spec, args.build, args.dir, args.seed)
    show(rows, spec)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(r["median_ratio"] >= spec["least_ratio"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
