"""What people read: no number without spread and count, on narrow terminals too."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from made_samples import GIB, MIB, result, sample, session, write
from penstock.bench.render import print_summary, rate_text, ratio_text, verdict_text
from penstock.bench.store import load
from penstock.bench.summary import RateSummary, Summary, summarise


def rate(median: float, half: float = 0.1, n: int = 10) -> RateSummary:
    return RateSummary(
        n=n,
        median_bytes_per_s=median,
        low_bytes_per_s=median * (1 - half),
        high_bytes_per_s=median * (1 + half),
        confidence=0.95,
        trimmed_mean_bytes_per_s=median,
        spread=0.2,
        mad_bytes_per_s=1.0,
    )


@pytest.mark.parametrize(
    ("median", "text"),
    [
        (1.31 * GIB, "1.31 GiB/s [1.18-1.44] n=10"),
        (999.0 * MIB, "999 MiB/s [899-1099] n=10"),
        (12.5 * MIB, "12.5 MiB/s [11.2-13.8] n=10"),
        (0.5 * MIB, "0.50 MiB/s [0.45-0.55] n=10"),
        (20.0 * GIB, "20.0 GiB/s [18.0-22.0] n=10"),
    ],
)
def test_a_rate_has_its_interval_and_its_count(median: float, text: str) -> None:
    assert rate_text(rate(median)) == text
    assert rate_text(None) == "-"


def test_a_small_ratio_keeps_its_digits() -> None:
    assert ratio_text(0.93, 0.9, 0.961) == "0.93 [0.90-0.96]"
    assert ratio_text(0.0071, 0.0068, 0.0074) == "0.0071 [0.0068-0.0074]"


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    draws = np.random.default_rng(1)
    levels = {"fast": 1e9, "alike": 0.999e9, "slow [x]": 5e8, "wild": 0.95e9}
    ways = {
        name: list(level * draws.lognormal(0.0, 0.5 if name == "wild" else 0.01, 20))
        for name, level in levels.items()
    }
    wrong = sample("wrong", 1, 9e9, failed="wrong bytes", result=result(9e9, wrong=1))
    canaries = [sample("fast", b, 1e9, canary=True) for b in range(1, 20)]
    samples = [*session(ways), wrong, *canaries]
    return summarise(load(write(tmp_path / "s.jsonl", samples, file_system={"type": "ext4"})))


def printed(summary: Summary, width: int) -> str:
    out = io.StringIO()
    print_summary(summary, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 100, 160])
def test_every_rate_that_is_printed_has_its_spread_and_count(summary: Summary, width: int) -> None:
    text = " ".join(printed(summary, width).split())
    rates = re.findall(r"[\d.]+ [MG]iB/s(?! \[[\d.]+-[\d.]+\] n=\d+)", text)
    assert rates == []
    assert text.count("n=20") == 9  # two rates of four variants, and who did not converge
    assert "spread" in text


@pytest.mark.parametrize("width", [50, 80, 160])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_cut(
    summary: Summary, width: int
) -> None:
    text = printed(summary, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name in ("fast", "alike", "slow [x]", "wild", "wrong", "INVALID", "not converged"):
        assert name in text


def test_the_verdict_says_who_is_best_and_how_sure(summary: Summary) -> None:
    assert verdict_text(summary.cells[0]) == (
        "best: fast; as good within 3 %: alike; not told apart from it: wild; slower: slow [x]"
    )
    assert "canaries: the same measured twice: 1.0" in printed(summary, 160)


def test_without_valid_samples_there_is_no_best(tmp_path: Path) -> None:
    failed = [sample("x", failed="it crashed", result=None)]
    made = summarise(load(write(tmp_path / "s.jsonl", failed)))
    assert verdict_text(made.cells[0]) == "no best: no variant has valid samples"
    assert "it crashed" in printed(made, 80)


def test_what_disturbed_is_said_with_its_remedy(tmp_path: Path) -> None:
    samples = session({"x": [1e9, 1.001e9, 0.999e9] * 5 + [1e7]})
    text = printed(summarise(load(write(tmp_path / "s.jsonl", samples))), 160)
    assert "noise: outliers of x in c: 1 of 16" in text
    assert "they are kept" in text


def test_a_quiet_session_is_said_to_be_quiet(tmp_path: Path) -> None:
    text = printed(summarise(load(write(tmp_path / "s.jsonl", session({"x": [1e9] * 10})))), 160)
    assert "nothing that disturbed was found" in text
