"""What disturbed a session is named, with evidence and remedy; quiet sessions find nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from made_samples import GIB, reading, sample, session
from penstock.bench import noise
from penstock.bench.noise import MachineReading
from penstock.bench.sample import Sample


def test_a_reading_tells_what_this_machine_does() -> None:
    first, second = MachineReading.read(), MachineReading.read()
    assert 0 < first.cpu_busy_s <= first.cpu_total_s
    assert second.cpu_total_s >= first.cpu_total_s
    assert first.memory_available_bytes > 0
    assert MachineReading.model_validate_json(first.model_dump_json()) == first


def proc(tmp_path: Path, *, pressure: bool) -> Path:
    (tmp_path / "stat").write_text("cpu  100 200 300 400 50 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1\n")
    (tmp_path / "meminfo").write_text(
        "MemAvailable:  1000 kB\nDirty:  3 kB\nWriteback:  2 kB\nHugePages_Total:  0\n"
    )
    if pressure:
        (tmp_path / "pressure").mkdir()
        for what in ("io", "memory"):
            line = "some avg10=12.50 avg60=0.00 avg300=0.00 total=3000000\nfull avg10=0.00\n"
            (tmp_path / "pressure" / what).write_text(line)
    return tmp_path


def test_a_readings_numbers_are_the_kernels(tmp_path: Path) -> None:
    reading = MachineReading.read(proc(tmp_path, pressure=True))
    assert reading.cpu_busy_s == pytest.approx(6.13)  # at 100 ticks a second
    assert reading.cpu_total_s == pytest.approx(11.43)
    assert reading.cpu_steal_s == pytest.approx(0.8)
    assert (reading.dirty_bytes, reading.writeback_bytes) == (3072, 2048)
    assert reading.memory_available_bytes == 1024000
    assert (reading.io_stall_s, reading.io_pressure) == (3.0, 12.5)


def test_a_kernel_without_pressure_says_none(tmp_path: Path) -> None:
    reading = MachineReading.read(proc(tmp_path, pressure=False))
    assert (reading.io_stall_s, reading.memory_stall_s, reading.io_pressure) == (None, None, None)


def names(samples: Sequence[Sample]) -> set[str]:
    return {f.name for f in noise.find(samples)}


def rates(draws: np.random.Generator, n: int = 30, cv: float = 0.05) -> list[float]:
    return list(1e9 * draws.normal(1.0, cv, n))


@pytest.fixture
def draws() -> np.random.Generator:
    return np.random.default_rng(1)


def test_quiet_sessions_find_nothing_but_rarely() -> None:
    false = 0
    for seed in range(100):
        draws = np.random.default_rng(seed)
        samples = session({v: rates(draws, 15) for v in "abc"})
        canaries = [
            sample("a", block, rate, canary=True) for block, rate in enumerate(rates(draws, 15), 1)
        ]
        false += len(noise.find([*samples, *canaries]))
    assert false <= 5  # about six checks of 1 %, in sessions of three variants


def test_a_canary_that_differs_from_its_twin_is_named(draws: np.random.Generator) -> None:
    twins = session({"a": rates(draws, 20)})
    for factor, expected in ((1.0, set()), (1.2, {"canary-disagrees"})):
        again = rates(draws, 20)
        canaries = [sample("a", b, factor * r, canary=True) for b, r in enumerate(again, 1)]
        assert names([*twins, *canaries]) == expected
    ratio, n = noise.canary_ratio([*twins, *canaries])
    assert n == 20
    assert 1.0 < ratio.low <= ratio.ratio <= ratio.high


def test_a_twin_of_another_place_is_none() -> None:
    """A session that went on within a block, on another machine or with another version."""
    elsewhere = sample(block=2, canary=True, provenance="q")
    taken = [sample(block=1), sample(block=1, canary=True), sample(block=2), elsewhere]
    assert noise.canary_ratio(taken)[1] == 1


def test_without_canaries_nothing_is_said_of_them() -> None:
    ratio, n = noise.canary_ratio([sample()])
    assert (n, ratio.confidence) == (0, 0.0)


def test_drift_is_named_with_what_it_moved(draws: np.random.Generator) -> None:
    falling = [r * (1 - 0.01 * i) for i, r in enumerate(rates(draws))]
    found = [f for f in noise.find(session({"a": falling})) if f.name == "drift"]
    assert "ran at 76 % of the rate of the first third" in found[0].evidence
    assert found[0].cell is None
    assert "interleaved" in found[0].remedy


def test_samples_follow_each_other_where_the_clock_goes_back(draws: np.random.Generator) -> None:
    begin = datetime(2025, 10, 26, tzinfo=UTC)
    falling = []
    for i, rate in enumerate(rates(draws)):
        local = timezone(timedelta(hours=2 if i < 15 else 1))  # 2:00 to 2:56, twice
        started = (begin + timedelta(minutes=4 * i)).astimezone(local).isoformat()
        falling.append(sample("a", i + 1, rate * (1 - 0.01 * i), started=started))
    found = [f for f in noise.find(falling) if f.name == "drift"]
    assert "ran at 76 % of the rate of the first third" in found[0].evidence


def test_a_sample_that_was_begun_at_no_time_is_looked_at_all_the_same() -> None:
    assert noise.find([sample(started="soon"), sample(block=2)]) == []


def test_samples_like_their_neighbours_are_named(draws: np.random.Generator) -> None:
    waves = [1e9 * (1 + 0.1 * np.sin(i / 3.0)) for i in range(60)]
    assert "neighbours-alike" in names(session({"a": waves}))


@pytest.mark.parametrize(("share", "expected"), [(0.3, True), (0.5, True), (0.03, False)])
def test_two_modes_are_named_with_their_rates(
    draws: np.random.Generator, share: float, expected: bool
) -> None:
    slow = draws.permutation(30) < 30 * share
    found = noise.find(session({"a": list(np.where(slow, 0.7, 1.0) * rates(draws, cv=0.02))}))
    modes = [f for f in found if f.name == "two-modes"]
    assert bool(modes) == expected
    assert all((m.cell, m.variant) == ("c", "a") for m in modes)
    assert all("MiB/s" in m.evidence for m in modes)


def test_an_outlier_is_named_and_kept(draws: np.random.Generator) -> None:
    samples = session({"a": [*rates(draws, 20, 0.02), 1e8]})
    found = noise.find(samples)
    assert [f.name for f in found] == ["outliers"]
    assert "1 of 21" in found[0].evidence
    assert "0.10 times" in found[0].evidence


def with_readings(**per_second: float) -> list[Sample]:
    """Samples of a second with pauses of a second, in which counters grow by so much a second."""
    found = []
    for i in range(5):
        before, after = (
            reading(at_s, **{k: v * at_s for k, v in per_second.items()})
            for at_s in (2.0 * i, 2.0 * i + 1.0)
        )
        found.append(sample("a", i + 1, machine_before=before, machine_after=after))
    return found


@pytest.mark.parametrize(
    ("per_second", "expected"),
    [
        ({}, set()),
        ({"cpu_busy_s": 1.0}, {"cpu-busy"}),
        ({"cpu_busy_s": 1.0, "own_cpu_s": 0.9}, set()),
        ({"cpu_busy_s": 0.1}, set()),
        ({"cpu_steal_s": 0.1}, {"cpu-steal"}),
        ({"memory_stall_s": 0.1}, {"memory-pressure"}),
    ],
)
def test_what_the_machine_did_meanwhile_is_named(
    per_second: dict[str, float], expected: set[str]
) -> None:
    assert names(with_readings(**per_second)) == expected


def test_a_sample_that_is_left_out_is_no_pause() -> None:
    """The CPUs are busy while samples run, by ranks of another process (srun), and idle between."""
    samples = [
        sample(
            "a",
            i,
            machine_before=reading(2.0 * i, cpu_busy_s=1.0 * i),
            machine_after=reading(2.0 * i + 1.0, cpu_busy_s=1.0 * i + 1.0),
        )
        for i in range(5)
    ]
    assert noise.find(samples) == []
    assert noise.find(samples[::2], left_out=samples[1::2]) == []
    assert names(samples[::2]) == {"cpu-busy"}


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize(
    ("provenance", "later"),
    [
        ("p", {"cpu_busy_s": 9.0, "own_cpu_s": 0.01}),  # resumed: this one's own began anew
        ("p", {"cpu_total_s": 5.0, "cpu_busy_s": 4.0, "own_cpu_s": 0.2}),  # started anew
        ("q", {"cpu_total_s": 1e6, "cpu_busy_s": 3e5, "own_cpu_s": 0.2}),  # another node
    ],
)
def test_a_pause_between_two_runs_says_nothing(
    provenance: str, later: dict[str, float], busy: bool
) -> None:
    before = with_readings(cpu_busy_s=1.0 if busy else 0.0, own_cpu_s=0.01)
    again = reading(1000.0, **later)
    last = sample("a", 6, provenance=provenance, machine_before=again, machine_after=again)
    assert names([*before, last]) == ({"cpu-busy"} if busy else set())


@pytest.mark.parametrize(("machine", "moves"), [("p", True), ("another", False)])
def test_memory_that_others_took_is_named(machine: str, moves: bool) -> None:
    sizes = [(8 * GIB, "p"), (8 * GIB, "p"), (5 * GIB, machine)]
    samples = [
        sample("a", i, machine_before=reading(i, memory_available_bytes=size), provenance=where)
        for i, (size, where) in enumerate(sizes, 1)
    ]
    assert names(samples) == ({"memory-moves"} if moves else set())


def test_a_machine_that_did_not_come_to_rest_is_named() -> None:
    settled = {"waited_s": 30.0, "dirty_bytes": 64 * 2**20, "exceeded": True}
    found = noise.find([sample(settled=settled), sample(block=2)])
    assert [f.name for f in found] == ["unsettled"]
    assert "1 of 2" in found[0].evidence
    assert "64 MiB" in found[0].evidence


def test_failed_samples_disturb_no_finding(draws: np.random.Generator) -> None:
    good = session({"a": rates(draws)})
    bad = [sample("a", 40 + i, 1e3, failed="it crashed", result=None) for i in range(10)]
    assert names([*good, *bad]) == set()
    assert noise.find([]) == []
