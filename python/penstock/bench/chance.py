"""When failures leave so few samples that chance may have made their rate."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.bench.blocks import FAILURES_TO_DROP
from penstock.bench.sample import Sample
from penstock.bench.statistics import CONFIDENCE, LEAST_FOR_INTERVAL


def is_chance(confidence: float, n: int, lost: int, dropped: bool) -> bool:
    """Whether chance may have made the rate of ``n`` samples, since ``lost`` more failed.

    Then these leave no interval of ``CONFIDENCE``, which all of them would have had, or which more
    would have had if it had not been ``dropped``.
    """
    short = dropped or n + lost >= LEAST_FOR_INTERVAL
    return confidence < CONFIDENCE and lost > 0 and short


def is_dropped(samples: Sequence[Sample]) -> bool:
    """Whether a variant failed so often in a row, at last, that it is not tried again.

    REQUIRES all of its samples: a good canary or warm-up counts as it does in `blocks.Progress`.
    """
    last = samples[-FAILURES_TO_DROP:]
    return len(last) == FAILURES_TO_DROP and all(s.failed is not None for s in last)
