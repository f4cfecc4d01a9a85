"""Numbers of logs in words, whatever a log holds."""

from __future__ import annotations

from collections.abc import Collection

from penstock import _core
from penstock.bench.statistics import LEAST_FOR_INTERVAL, LEAST_TO_RESAMPLE


def size(n: int) -> str:
    """``12.4 GiB``."""
    return _core.human_size(n) if 0 <= n < 2**63 else f"{n} B"


def counts(all_n: Collection[int]) -> str:
    """``n=8``, ``n=2 to 8``."""
    least, most = min(all_n), max(all_n)
    return f"n={least}" if least == most else f"n={least} to {most}"


def intervals(what: str, all_n: Collection[int]) -> str:
    """``brackets are 95 % intervals``, of as many samples as that takes; of fewer, ranges."""
    if min(all_n) >= LEAST_FOR_INTERVAL:
        return f"{what} are 95 % intervals"
    if max(all_n) < LEAST_FOR_INTERVAL:
        return f"{what} are ranges, for a 95 % interval takes {LEAST_FOR_INTERVAL} samples"
    return f"{what} are 95 % intervals, and ranges of fewer than {LEAST_FOR_INTERVAL} samples"


def ratio_interval(all_n: Collection[int]) -> str:
    """Which interval of a ratio is looked at: of few samples it is the exact one."""
    few = [n < LEAST_TO_RESAMPLE for n in all_n]
    if not any(few):
        return "a bootstrap interval"
    if all(few):
        return "an exact interval"
    return f"an interval (a bootstrap's; the exact one of fewer than {LEAST_TO_RESAMPLE} samples)"
