"""When failures leave so few samples that chance may have made their rate."""

from __future__ import annotations

from penstock.bench.statistics import CONFIDENCE, LEAST_FOR_INTERVAL


def is_chance(confidence: float, n: int, lost: int, dropped: bool) -> bool:
    """Whether chance may have made the rate of ``n`` samples, since ``lost`` more failed.

    Then these leave no interval of ``CONFIDENCE``, which all of them would have had, or which more
    would have had if it had not been ``dropped``.
    """
    short = dropped or n + lost >= LEAST_FOR_INTERVAL
    return confidence < CONFIDENCE and lost > 0 and short
