"""How often the verdicts are wrong: comparisons whose truth is known, many of them.

    python -m penstock.bench.honesty [--trials N] [--recorded FILE] [--seed N]
    python -m penstock.bench.honesty --record RESULTS >> FILE

Samples of two ways of writing are drawn as a session takes them, in blocks of one of each in
random order from one disturbed stream, until the stopping rule is content. When both are equal,
every "faster" and "slower" is false; when B is made slower, everything but "slower" is a miss.
docs/statistics.md holds the tables that this prints.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.bench.statistics import Floats, Stopping, Verdict, compare

CV = 0.1  # coefficient of variation of the synthetic noises
SLOWDOWN = 0.9
Draws = np.random.Generator
Stream = Callable[[Draws, int], Floats]


def _normal(draws: Draws, n: int) -> Floats:
    rates: Floats = np.maximum(draws.normal(1.0, CV, n), 0.01)
    return rates


def _lognormal(draws: Draws, n: int) -> Floats:
    return draws.lognormal(0.0, np.sqrt(np.log(1.0 + CV**2)), n)


def _bimodal(share: float, slow: float) -> Stream:
    """A ``share`` of the samples is in a mode ``slow`` times as fast."""

    def stream(draws: Draws, n: int) -> Floats:
        modes = np.where(draws.random(n) < share, slow, 1.0)
        rates: Floats = modes * draws.normal(1.0, 0.02, n)
        return rates

    return stream


def _heavy(draws: Draws, n: int) -> Floats:
    """Logarithms of Student's t with 3 degrees of freedom: a sample in 50 is 40 % off."""
    rates: Floats = np.exp(CV / np.sqrt(3.0) * draws.standard_t(3, n))
    return rates


def _stragglers(draws: Draws, n: int) -> Floats:
    """One sample in 15 takes longer, half as long again on average."""
    late = np.where(draws.random(n) < 1 / 15, draws.exponential(0.5, n), 0.0)
    rates: Floats = np.maximum(draws.normal(1.0, 0.04, n), 0.01) / (1.0 + late)
    return rates


def _drifting(draws: Draws, n: int) -> Floats:
    """Falls by 30 % from the first sample to the last."""
    rates: Floats = np.linspace(1.15, 0.85, n) * draws.normal(1.0, 0.05, n)
    return rates


def _autocorrelated(draws: Draws, n: int) -> Floats:
    """Neighbours correlate with 0.7."""
    noise = draws.normal(0.0, 1.0, n)
    for i in range(1, n):
        noise[i] = 0.7 * noise[i - 1] + np.sqrt(1.0 - 0.7**2) * noise[i]
    rates: Floats = np.exp(CV * noise)
    return rates


SYNTHETIC: dict[str, Stream] = {
    "normal": _normal,
    "lognormal": _lognormal,
    "bimodal 70/30": _bimodal(0.3, 0.79),
    "bimodal 50/50": _bimodal(0.5, 0.82),
    "heavy tails": _heavy,
    "stragglers": _stragglers,
    "drifting": _drifting,
    "autocorrelated": _autocorrelated,
}


@dataclass(frozen=True)
class Recorded:
    """Rates of one thing done again and again, in the order taken."""

    name: str
    rates: Floats

    @property
    def cv(self) -> float:
        """Standard deviation over mean."""
        return float(self.rates.std() / self.rates.mean())

    def stream(self, draws: Draws, n: int) -> Floats:
        """``n`` samples in their order, from a random place on; the end meets the beginning."""
        start = int(draws.integers(self.rates.size))
        return np.resize(np.roll(self.rates, -start), n)

    def scaled(self, cv: float) -> Recorded:
        """The same shape with a noise of ``cv``: logarithms are stretched about their median."""
        logs = np.log(self.rates / np.median(self.rates))
        low, high = 0.0, 100.0
        for _ in range(60):
            middle = (low + high) / 2.0
            rates = np.exp(middle * logs)
            low, high = (middle, high) if rates.std() / rates.mean() < cv else (low, middle)
        return Recorded(self.name, np.exp(low * logs))


def recorded(path: Path) -> list[Recorded]:
    """The recordings of a file: a line is ``{"recorded": NAME, "rates": [bytes per s, ..]}``."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [Recorded(r["recorded"], np.asarray(r["rates"], dtype=np.float64)) for r in lines]


def take(
    stream: Stream, ratio: float, draws: Draws, stopping: Stopping, *, interleaved: bool = True
) -> tuple[Floats, Floats]:
    """Samples of A, and of B that is ``ratio`` times as fast, until the rule stops both.

    Not interleaved, all of B's are taken after all of A's, as two sessions would.
    """
    taken = stream(draws, 2 * stopping.maximum)
    if interleaved:
        blocks = taken.reshape(-1, 2)
        swapped = draws.random(len(blocks)) < 0.5
        blocks[swapped] = blocks[swapped, ::-1]
    else:
        blocks = taken.reshape(2, -1).T
    a, b = blocks[:, 0], ratio * blocks[:, 1]
    n = stopping.minimum
    while n < stopping.maximum and "go on" in (stopping.decide(a[:n]), stopping.decide(b[:n])):
        n += 1
    return a[:n], b[:n]


@dataclass(frozen=True)
class Tally:
    """The verdicts of many comparisons of one truth."""

    ratio: float
    trials: int
    verdicts: Counter[Verdict]
    median_n: float

    def share(self, verdict: Verdict) -> float:
        """How often it was said, 0 to 1."""
        return self.verdicts[verdict] / self.trials


def tally(
    stream: Stream, ratio: float, trials: int, seed: int, *, interleaved: bool = True
) -> Tally:
    """Compare ``trials`` times A with a B that is ``ratio`` times as fast."""
    verdicts: Counter[Verdict] = Counter()
    counts = []
    for trial in range(trials):
        draws = np.random.default_rng([seed, trial])
        a, b = take(stream, ratio, draws, Stopping(), interleaved=interleaved)
        verdicts[compare(a, b, seed=trial).verdict] += 1
        counts.append(a.size)
    return Tally(ratio, trials, verdicts, float(np.median(counts)))


def _streams(recordings: list[Recorded]) -> Iterator[tuple[str, float, Stream]]:
    for name, stream in SYNTHETIC.items():
        yield name, CV, stream
    for r in recordings:
        yield f"recorded: {r.name}", r.cv, r.stream
        yield f"recorded: {r.name}, scaled", CV, r.scaled(CV).stream


def _row(name: str, cv: float, stream: Stream, trials: int, seed: int, **how: bool) -> str:
    equal = tally(stream, 1.0, trials, seed, **how)
    slowed = tally(stream, SLOWDOWN, trials, seed + 1, **how)
    said = (equal.share(v) for v in ("faster", "slower", "same", "unclear"))
    found = slowed.share("slower")
    cells = [f"{100 * s:.1f} %" for s in (*said, found, 1 - found)]
    return f"| {name} | {100 * cv:.0f} % | {' | '.join(cells)} | {slowed.median_n:.0f} |"


def _noises(recordings: list[Recorded], trials: int, seed: int) -> Iterator[str]:
    yield "| noise | CV | A/A: faster | slower | same | unclear | 10 % slower: found | missed | n |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, cv, stream in _streams(recordings):
        yield _row(name, cv, stream, trials, seed)
    for name in ("drifting", "autocorrelated"):
        yield _row(f"{name}, not interleaved", CV, SYNTHETIC[name], trials, seed, interleaved=False)


def _truths(trials: int, seed: int) -> Iterator[str]:
    yield "| CV | true ratio | faster | slower | same | unclear | n |"
    yield "|---|---|---|---|---|---|---|"
    for cv in (0.01, 0.03, 0.1, 0.2):
        noise = Recorded("", _normal(np.random.default_rng(seed), 10_000)).scaled(cv)
        for ratio in (1.0, 0.97, 0.95, 0.9, 0.8):
            t = tally(noise.stream, ratio, trials, seed)
            said = (t.share(v) for v in ("faster", "slower", "same", "unclear"))
            cells = " | ".join(f"{100 * s:.1f} %" for s in said)
            yield f"| {100 * cv:.0f} % | {ratio:g} | {cells} | {t.median_n:.0f} |"


def record(path: Path) -> Iterator[str]:
    """Lines for a file of recordings: of each cell and variant with at least 60 good samples."""
    from penstock.bench.noise import by_variant
    from penstock.bench.store import load

    for (cell, variant), samples in by_variant(load(path).samples).items():
        rates = [round(r) for s in samples if (r := s.rate("application")) is not None]
        if len(rates) >= 2 * Stopping().maximum:
            yield json.dumps({"recorded": f"{cell}, {variant}", "rates": rates})


def main() -> None:
    """Print both tables, or lines made of the samples of a session."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200, help="comparisons per row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recorded", type=Path, help="a file of recordings")
    parser.add_argument("--record", type=Path, metavar="RESULTS", help="make lines of samples")
    options = parser.parse_args()
    if options.record is not None:
        for line in record(options.record):
            print(line)
        return
    recordings = recorded(options.recorded) if options.recorded else []
    for line in _noises(recordings, options.trials, options.seed):
        print(line, flush=True)
    print()
    for line in _truths(options.trials, options.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
