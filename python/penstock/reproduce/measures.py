"""What is read off a sample: the two rates, times, calls, and where a long output slowed down.

Each is a positive number of one sample, or None where the sample does not tell.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence

from penstock.bench.sample import Sample

Measure = Callable[[Sample], float | None]
Call = tuple[float, float]  # begin and seconds

CLASS_OUTPUTS = 40  # BT-IO appends so many arrays
_EDGE = 16  # the first and last sixteenth of the calls are early and late
_WINDOW = 4  # calls whose common rate is one step of the time view


def application(sample: Sample) -> float | None:
    """Bytes per second until the program went on."""
    return sample.rate("application")


def actual(sample: Sample) -> float | None:
    """Bytes per second until the device had every byte."""
    return sample.rate("actual")


def seconds(sample: Sample) -> float | None:
    """Until the program went on."""
    if sample.failed is not None or sample.result is None:
        return None
    return sample.result.application.seconds


def calls_of_all_outputs(sample: Sample) -> float | None:
    """Write calls of the first process, as if all arrays of the class had been written."""
    if sample.failed is not None or sample.result is None:
        return None
    calls = sample.more.get("calls")
    outputs = sample.result.parameters.get("outputs")
    if not isinstance(calls, int) or not isinstance(outputs, int) or outputs < 1:
        return None
    return calls * CLASS_OUTPUTS / outputs


def early(sample: Sample) -> float | None:
    """Bytes per second of the first sixteenth of the calls."""
    calls = calls_of(sample)
    return None if calls is None else rate_of(sample, calls[: max(1, len(calls) // _EDGE)])


def late(sample: Sample) -> float | None:
    """Bytes per second of the last quarter of the calls."""
    calls = calls_of(sample)
    return None if calls is None else rate_of(sample, calls[-max(1, len(calls) // 4) :])


def after_gap(sample: Sample) -> float | None:
    """Bytes per second of the first calls after each of the longest pauses: the syncs."""
    calls = calls_of(sample)
    if calls is None or len(calls) < 2 * _EDGE:
        return None
    ends = itertools.accumulate((sum(call) for call in calls), max)
    gaps = [
        (begin - end, i)
        for i, ((begin, _), end) in enumerate(zip(calls[1:], ends, strict=False), 1)
    ]
    starts = [i for _, i in sorted(gaps, reverse=True)[:3] if i + _WINDOW <= len(calls)]
    rates = [r for i in starts if (r := rate_of(sample, calls[i : i + _WINDOW]))]
    return statistics.median(rates) if rates else None


def knee(sample: Sample) -> float | None:
    """Bytes taken until the rate of the calls has fallen half of the way, on a logarithmic scale.

    None where the late calls are as fast as the early ones.
    """
    calls, fast, slow = calls_of(sample), early(sample), late(sample)
    if calls is None or fast is None or slow is None or fast < 2.0 * slow:
        return None
    halfway = (fast * slow) ** 0.5
    for i in range(len(calls) - _WINDOW):
        if (rate_of(sample, calls[i : i + _WINDOW]) or fast) < halfway:
            return max(i, 1) * _call_bytes(sample, calls)
    return None


MEASURES: dict[str, Measure] = {
    "application": application,
    "actual": actual,
    "seconds": seconds,
    "calls_of_all_outputs": calls_of_all_outputs,
    "early": early,
    "late": late,
    "after_gap": after_gap,
    "knee": knee,
}


def calls_of(sample: Sample) -> list[Call] | None:
    """Begin and seconds of every call, in the order in which they began."""
    told = sample.more.get("calls")
    each = told.get("each_s") if isinstance(told, dict) else None
    if sample.failed is not None or not each:
        return None
    return sorted((float(call[0]), float(call[1])) for call in each)


def rate_of(sample: Sample, stretch: list[Call]) -> float | None:
    """Bytes per second of some calls, from the first's begin to the last's end."""
    all_calls = calls_of(sample)
    if not stretch or all_calls is None:
        return None
    took_s = max(sum(call) for call in stretch) - stretch[0][0]
    return len(stretch) * _call_bytes(sample, all_calls) / took_s if took_s > 0 else None


def stretches(sample: Sample, rows: int) -> list[float]:
    """Bytes per second of each of so many successive parts of the calls, pauses included."""
    calls = calls_of(sample)
    if calls is None or len(calls) < rows:
        return []
    edges = [len(calls) * i // rows for i in range(rows + 1)]
    rates = []
    for first, last in itertools.pairwise(edges):
        end_s = calls[last][0] if last < len(calls) else max(sum(c) for c in calls)
        took_s = end_s - calls[first][0]
        rates.append((last - first) * _call_bytes(sample, calls) / max(took_s, 1e-9))
    return rates


def median_stretches(samples: Sequence[Sample], rows: int) -> list[float | None]:
    """Of each stretch the median over the samples, in MB/s."""
    rates = [r for sample in samples if (r := stretches(sample, rows))]
    if not rates:
        return [None] * rows
    return [statistics.median(one[i] for one in rates) / 1e6 for i in range(rows)]


def _call_bytes(sample: Sample, calls: list[Call]) -> float:
    return sample.result.bytes / len(calls) if sample.result else 0.0
