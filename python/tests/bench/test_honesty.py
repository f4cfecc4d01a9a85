"""Verdicts are as rarely wrong as docs/statistics.md says, in 200 comparisons of each noise.

The whole table: ``python -m penstock.bench.honesty --recorded FILE`` (data/recorded.jsonl).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from made_samples import session, write
from penstock.bench import honesty
from penstock.bench.honesty import CV, SLOWDOWN, SYNTHETIC, Recorded, Stream, tally
from penstock.bench.statistics import Stopping

TRIALS = 200
RECORDED = honesty.recorded(Path(__file__).parent / "data" / "recorded.jsonl")
AS_TAKEN = {r.name: r.stream for r in RECORDED}
AT_TEN_PERCENT = {r.name: r.scaled(CV).stream for r in RECORDED}


@pytest.mark.parametrize("stream", (SYNTHETIC | AS_TAKEN).values(), ids=(SYNTHETIC | AS_TAKEN))
def test_equal_ways_are_called_faster_in_at_most_5_percent(stream: Stream) -> None:
    t = tally(stream, 1.0, TRIALS, seed=11)
    assert t.share("faster") <= 0.05
    assert t.share("slower") <= 0.05


@pytest.mark.parametrize(
    "stream", (SYNTHETIC | AT_TEN_PERCENT).values(), ids=(SYNTHETIC | AT_TEN_PERCENT)
)
def test_a_slowdown_of_10_percent_is_found_in_at_least_90_percent(stream: Stream) -> None:
    t = tally(stream, SLOWDOWN, TRIALS, seed=12)
    assert t.share("slower") >= 0.9
    assert t.share("faster") == 0.0
    assert t.median_n <= Stopping().maximum == 30


def test_same_is_not_said_of_what_differs_by_more_than_the_margin() -> None:
    calm = Recorded("calm", np.random.default_rng(1).normal(1.0, 0.01, 10_000)).stream
    assert tally(calm, 1.0, 50, seed=13).share("same") >= 0.9
    assert tally(calm, 0.95, 50, seed=13).share("same") == 0.0


def test_only_interleaving_makes_drift_harmless() -> None:
    apart = tally(SYNTHETIC["drifting"], 1.0, 50, seed=14, interleaved=False)
    assert apart.share("slower") > 0.5


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_noises_are_of_10_percent(name: str) -> None:
    samples = SYNTHETIC[name](np.random.default_rng(1), 20_000)
    assert samples.min() > 0.0
    assert samples.std() / samples.mean() == pytest.approx(CV, rel=0.15)


def test_a_recording_keeps_its_order_and_can_be_scaled() -> None:
    r = Recorded("r", np.arange(1.0, 101.0))
    steps = np.diff(r.stream(np.random.default_rng(3), 60))
    assert np.count_nonzero(steps != 1.0) <= 1
    assert r.scaled(0.1).cv == pytest.approx(0.1, rel=1e-6)


def test_a_session_of_many_samples_becomes_a_recording(tmp_path: Path) -> None:
    samples = session({"long": list(range(1, 61)), "short": [1e9] * 59})
    lines = list(honesty.record(write(tmp_path / "s.jsonl", samples)))
    assert [json.loads(line) for line in lines] == [
        {"recorded": "c, long", "rates": list(range(1, 61))}
    ]


def test_a_file_of_recordings_is_read(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps({"recorded": "x", "rates": [1, 2]}) + "\n\n")
    assert [(r.name, list(r.rates)) for r in honesty.recorded(file)] == [("x", [1.0, 2.0])]
    assert len(RECORDED) >= 2
    assert all(r.rates.size >= 200 for r in RECORDED)
