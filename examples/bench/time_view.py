"""The time view of a long output (gotwals-1995): how fast each successive stretch of it was taken.

    penstock bench DIR --matrix examples/bench/time-view.toml --out time-view
    python3 examples/bench/time_view.py time-view

Reads the raw samples: each call's begin and duration, and the bytes that were on the device after
each bin of time. A stretch is as many calls as make a row; its rate is the median over the samples,
with the least and the largest.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.bench.store import load

ROWS = 16
MIB = 1 << 20


def rows_of_calls(result: dict[str, Any]) -> list[float]:
    """Bytes per second of each stretch, from its first call's begin to that of the next stretch."""
    calls = result["calls"]["each_s"]
    call_bytes = result["bytes"] / len(calls)
    step = -(-len(calls) // ROWS)
    rates = []
    for first in range(0, len(calls), step):
        stretch = calls[first : first + step]
        after = calls[first + step : first + step + 1]  # what a sync takes lies between calls
        end_s = after[0][0] if after else stretch[-1][0] + stretch[-1][1]
        rates.append(len(stretch) * call_bytes / (end_s - stretch[0][0]))
    return rates


def rows_of_time(result: dict[str, Any]) -> list[tuple[float, int, int]]:
    """Seconds, and the bytes taken from the program and on the device by then."""
    series = result["series"]
    taken = device = 0
    rows = []
    pairs = zip(series["application_bytes"], series["actual_bytes"], strict=True)
    for number, (by_program, by_device) in enumerate(pairs, start=1):
        taken, device = taken + by_program, device + by_device
        rows.append((number * series["bin_s"], taken, device))
    return rows[:: -(-len(rows) // ROWS)] if rows else []


def spread(rates: list[float]) -> str:
    low, high = min(rates) / MIB, max(rates) / MIB
    return f"{statistics.median(rates) / MIB:.1f} [{low:.1f} - {high:.1f}]"


def print_calls(console: Console, cell: str, by_variant: dict[str, list[dict[str, Any]]]) -> None:
    """One row per stretch of the output, one column per variant."""
    table = Table(title=f"{cell}: MiB/s of each stretch, median [least - largest]")
    table.add_column("up to, MiB", justify="right")
    columns = []
    for variant, results in by_variant.items():
        table.add_column(f"{variant}, n={len(results)}", justify="right")
        columns.append(list(zip(*(rows_of_calls(one) for one in results), strict=True)))
    total = next(iter(by_variant.values()))[0]["bytes"] / MIB
    for row, stretch in enumerate(zip(*columns, strict=True), start=1):
        place = f"{total * row / len(columns[0]):.1f}"
        table.add_row(place, *(spread(list(rates)) for rates in stretch))
    console.print(table)


def print_time(console: Console, cell: str, variant: str, result: dict[str, Any]) -> None:
    """Of one sample: what the program had handed over and what the device had, as time went."""
    table = Table(title=f"{cell}, {variant}: one sample in time, by {result['series']['source']}")
    for name in ("s", "taken, MiB", "on the device, MiB"):
        table.add_column(name, justify="right")
    for seconds, taken, device in rows_of_time(result):
        table.add_row(f"{seconds:.2f}", f"{taken / MIB:.1f}", f"{device / MIB:.1f}")
    console.print(table)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} RESULTS (what penstock bench --out wrote)")
    by_cell: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for sample in load(Path(sys.argv[1])).samples:
        if not sample.counts or sample.result is None:
            continue
        result = sample.result.model_dump(by_alias=True)
        if "each_s" not in result.get("calls", {}):
            sys.exit(f"{sample.variant} has no times of its calls: measure with each_call = true")
        by_cell[sample.cell][sample.variant].append(result)
    console = Console()
    for cell, by_variant in by_cell.items():
        print_calls(console, cell, by_variant)
        for variant, results in by_variant.items():
            if (results[0].get("series") or {}).get("actual_bytes"):
                print_time(console, cell, variant, results[0])
            else:
                why = (results[0].get("series") or {}).get("why", "bins = 0")
                console.print(f"{variant}: nobody saw when bytes reached the device: {why}")


if __name__ == "__main__":
    main()
