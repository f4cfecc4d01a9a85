"""What a summary says of samples: rates with spread and count, a ranking, and what to doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_samples import GIB, MIB, header, reading, result, sample, session, write
from penstock import _core
from penstock.bench.doubts import Doubt, free_run_bytes
from penstock.bench.sample import Provenance, Sample
from penstock.bench.store import as_line, load
from penstock.bench.summary import Summary, summarise
from penstock.errors import ArgumentError


def noisy(level: float, n: int = 20, cv: float = 0.01, seed: int = 1) -> list[float]:
    return list(level * np.random.default_rng(seed).lognormal(0.0, cv, n))


def summary_of(tmp_path: Path, samples: Sequence[Sample], **more: Any) -> Summary:
    return summarise(load(write(tmp_path / "samples.jsonl", samples)), **more)


def doubt(summary: Summary, name: str) -> Doubt | None:
    return next((w for w in summary.warnings if w.name == name), None)


def test_every_rate_has_its_spread_and_count(tmp_path: Path) -> None:
    values = noisy(1e9, 20)
    s = summary_of(tmp_path, session({"x": values}))
    (cell,) = s.cells
    (x,) = cell.variants
    assert x.application is not None
    assert x.actual is not None
    assert x.application.n == 20
    assert x.application.median_bytes_per_s == pytest.approx(np.median(values))
    assert x.application.low_bytes_per_s == pytest.approx(sorted(values)[5])
    assert x.application.spread == pytest.approx(np.ptp(values) / np.median(values))
    assert (x.actual.n, x.actual.source) == (20, "cachestat")
    assert (x.converged, x.samples, x.failures, s.samples) == (True, 20, 0, 20)
    assert s.warnings == []


def test_the_ranking_tells_worse_from_as_good_from_not_told_apart(tmp_path: Path) -> None:
    ways = {
        "slow": noisy(8e8, seed=2),
        "best": noisy(1.01e9, seed=3),
        "good": noisy(1.0e9, seed=4),
        "wild": noisy(0.98e9, cv=0.4, seed=5),
    }
    ranking = summary_of(tmp_path, session(ways)).cells[0].ranking
    assert ranking.best == "best"
    assert ranking.as_good == ["good"]
    assert ranking.not_told_apart == ["wild"]
    assert ranking.slower == ["slow"]
    slow = next(a for a in ranking.against if a.variant == "slow")
    assert slow.low < slow.ratio < slow.high < 1.0


def test_the_rate_that_ranks_can_be_chosen(tmp_path: Path) -> None:
    fast = [sample("a", b, 2e9, result=result(2e9, actual=1e8)) for b in range(1, 11)]
    sure = [sample("b", b, 1e9, result=result(1e9, actual=2e8)) for b in range(1, 11)]
    assert summary_of(tmp_path, fast + sure).cells[0].ranking.best == "a"
    by_actual = summary_of(tmp_path, fast + sure, rate="actual")
    assert (by_actual.rate, by_actual.cells[0].ranking.best) == ("actual", "b")


def test_wrong_bytes_are_never_best(tmp_path: Path) -> None:
    wrong = session({"wrong": noisy(9e9)})
    bad = result(9e9, wrong=3)
    wrong[4] = sample("wrong", 5, failed="wrong bytes", result=bad)
    s = summary_of(tmp_path, wrong + session({"right": noisy(1e9)}))
    cell = s.cells[0]
    assert cell.ranking.best == "right"
    assert cell.variants[-1].variant == "wrong"
    assert "1 of 20 samples left wrong bytes" in (cell.variants[-1].invalid or "")
    found = doubt(s, "invalid")
    assert found is not None
    assert found.text.startswith("INVALID")


@pytest.mark.parametrize("kind", ["warm_up", "canary"])
def test_wrong_bytes_count_whichever_sample_left_them(tmp_path: Path, kind: str) -> None:
    what = {kind: True, "failed": "wrong bytes", "result": result(9e9, wrong=3)}
    extra = [sample("wrong", 0 if kind == "warm_up" else 1, **what)]
    s = summary_of(tmp_path, session({"wrong": noisy(9e9), "right": noisy(1e9)}) + extra)
    cell = s.cells[0]
    assert cell.ranking.best == "right"
    wrong = cell.variants[-1]
    assert (wrong.variant, wrong.samples, wrong.failures) == ("wrong", 20, 1)
    assert wrong.invalid == "1 of 21 samples left wrong bytes in the file, up to 3"
    assert wrong.application is not None
    assert wrong.application.n == 20


def test_a_warm_up_that_failed_is_said(tmp_path: Path) -> None:
    extra = [sample("x", 0, failed="no space", result=None, warm_up=True)]
    found = doubt(summary_of(tmp_path, session({"x": noisy(1e9)}) + extra), "failed")
    assert found is not None
    assert "x failed in 1 of 21 samples, the last time: no space" in found.text


def test_a_lucky_sample_of_what_fails_is_not_the_best(tmp_path: Path) -> None:
    ways = session({"lucky": [9e9, *[1e9] * 9], "right": noisy(1e9, 10)})
    tried = [s if s.variant == "right" or s.block == 1 else s.model_copy(update=NO) for s in ways]
    ranking = summary_of(tmp_path, tried).cells[0].ranking
    assert (ranking.best, ranking.not_told_apart) == ("right", ["lucky"])


@pytest.mark.parametrize("canary", [False, True])
def test_what_is_dropped_early_is_not_the_best(tmp_path: Path, canary: bool) -> None:
    lucky = [sample("lucky", 1, 9e9), sample("lucky", 2, **NO)]
    lucky.append(sample("lucky", 2 if canary else 3, canary=canary, **NO))
    s = summary_of(tmp_path, [*lucky, *session({"right": noisy(1e9, 10)})])
    ranking = s.cells[0].ranking
    assert (ranking.best, ranking.not_told_apart) == ("right", ["lucky"])
    found = doubt(s, "few-samples")
    assert found is not None
    assert found.variants == ["lucky (n=1)"]
    assert (
        found.remedy == "mend what failed twice in a row, which is not tried again, and give "
        "another --out"
    )


def test_what_a_good_canary_let_be_tried_again_is_not_dropped(tmp_path: Path) -> None:
    right = session({"right": noisy(1e9, 10)})
    fast = [sample("fast", 1, 9e9), sample("fast", 2, **NO)]
    fast += [sample("fast", 2, 9e9, canary=True), sample("fast", 3, **NO)]
    (cell,) = summary_of(tmp_path, [*fast, *right]).cells
    (found,) = (v for v in cell.variants if v.variant == "fast")
    assert (found.dropped, found.samples, found.failures) == (False, 1, 2)
    assert cell.ranking.best == "fast"


def test_a_canary_that_fails_takes_nothing_from_a_short_measurement(tmp_path: Path) -> None:
    ways = session({"a": [3e9] * 5, "b": [1e9] * 5})
    canary = sample("a", 3, failed="timed out", result=None, canary=True)
    ranking = summary_of(tmp_path, [*ways, canary]).cells[0].ranking
    assert ranking.best == "a"


def test_of_what_is_not_measured_to_the_end_the_fastest_is_the_best(tmp_path: Path) -> None:
    ranking = summary_of(tmp_path, session({"a": [2e9] * 5, "b": [1e9] * 6})).cells[0].ranking
    assert ranking.best == "a"


NO = {"failed": "timed out", "result": None}


def through(mechanism: str, variant: str, rate: float) -> list[Sample]:
    method = f"two_phase(writers=1) + shm + {mechanism} + written"
    engine = {"method": method, "bytes": 64 * MIB, "passed_bytes": 0, "degraded": []}
    made = [result(r, engine=engine) for r in noisy(rate, 10)]
    return [sample(variant, block, result=one) for block, one in enumerate(made, start=1)]


def test_what_writes_nothing_is_a_bound_and_not_the_best(tmp_path: Path) -> None:
    bound, real = through("null", "bound", 9e9), through("pwrite", "real", 1e9)
    (cell,) = summary_of(tmp_path, bound + real).cells
    assert cell.ranking.best == "real"
    assert cell.ranking.against == []
    assert [v.variant for v in cell.writing] == ["real"]
    assert [v.variant for v in cell.not_writing] == ["bound"]
    assert [v.variant for v in cell.variants] == ["real", "bound"]


def test_where_nobody_writes_they_are_ranked(tmp_path: Path) -> None:
    ways = through("null", "fast", 2e9) + through("null", "slow", 1e9)
    (cell,) = summary_of(tmp_path, ways).cells
    assert cell.ranking.best == "fast"
    assert cell.ranking.slower == ["slow"]
    assert cell.not_writing == []


def test_failures_are_counted_and_said(tmp_path: Path) -> None:
    failed = [sample("x", 30 + i, failed=f"no space {i}", result=None) for i in range(2)]
    s = summary_of(tmp_path, session({"x": noisy(1e9)}) + failed)
    assert (s.cells[0].variants[0].samples, s.cells[0].variants[0].failures) == (20, 2)
    found = doubt(s, "failed")
    assert found is not None
    assert "2 of 22 samples, the last time: no space 1" in found.text


def test_a_cell_of_failures_has_no_best(tmp_path: Path) -> None:
    s = summary_of(tmp_path, [sample("x", failed="it crashed", result=None)])
    assert s.cells[0].ranking.best is None
    assert s.cells[0].variants[0].converged is None
    assert [w.name for w in s.warnings] == ["failed"]


def test_a_rate_that_was_not_measured_is_said(tmp_path: Path) -> None:
    made = result(1e9, actual=None)
    s = summary_of(tmp_path, [sample("x", b, result=made) for b in range(10)], rate="actual")
    found = doubt(s, "no-rate")
    assert found is not None
    assert found.variants == ["x"]


def test_what_did_not_converge_is_said_with_how_far(tmp_path: Path) -> None:
    s = summary_of(tmp_path, session({"x": noisy(1e9, 30, 0.5)}))
    found = doubt(s, "not-converged")
    assert found is not None
    assert "n=30" in found.text
    assert "±" in found.text


def test_too_few_samples_are_said(tmp_path: Path) -> None:
    s = summary_of(tmp_path, session({"x": [1e9] * 3, "y": [2e9] * 3}))
    assert s.cells[0].ranking.not_told_apart == ["x"]
    found = doubt(s, "few-samples")
    assert found is not None
    assert found.variants == ["y (n=3)", "x (n=3)"]
    assert found.remedy.endswith("run the same command again")


def test_more_time_helps_where_there_is_a_budget(tmp_path: Path) -> None:
    plan = header().plan | {"budget_s": 40.0}
    records = [header(plan=plan), *session({"x": [1e9] * 3})]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(as_line(r) for r in records))
    found = doubt(summarise(load(path)), "few-samples")
    assert found is not None
    assert found.remedy.endswith("run the same command again with more time")


def test_of_fixed_rounds_more_are_asked_for(tmp_path: Path) -> None:
    results = load(write(tmp_path / "samples.jsonl", session({"x": [1e9] * 3})))
    results.headers[0].plan["stopping"] = {"minimum": 3, "maximum": 3, "checks": [3]}
    found = doubt(summarise(results), "few-samples")
    assert found is not None
    assert found.remedy.endswith("run the same command again with --rounds 10")


def unsynced(bytes_: int, own: Mapping[str, Any] | None = None, **more: Any) -> list[Sample]:
    parameters = {"end": "close", "op": "write", **(own or {})}
    made = result(1e9, bytes_=bytes_, parameters=parameters, **more)
    return [sample("x", b, result=made) for b in range(1, 11)]


@pytest.mark.parametrize(
    ("samples", "warned"),
    [
        (unsynced(GIB), True),
        (unsynced(3 * GIB), False),
        (unsynced(3 * GIB, nodes=3), True),
        (unsynced(GIB, engine={"method": "individual + none + pwrite(direct)"}), False),
        (unsynced(GIB, engine={"method": "auto + shm + pwrite(direct=cold)"}), True),
        (session({"x": [1e9] * 10}), False),
        (unsynced(GIB, engine={"method": "individual + none + pwrite + end + written"}), False),
        (unsynced(GIB, engine={"method": "auto + shm + pwrite + pulse=8MiB + written"}), False),
        (unsynced(GIB, engine={"method": "auto + shm + pwrite + stream=8MiB + written"}), True),
        (unsynced(GIB, {"sync_each": True}), False),
        (unsynced(GIB, {"syncsize": 8 * MIB}), False),
        (unsynced(GIB, {"syncsize": 2 * GIB}), True),
        (unsynced(GIB, {"syncsize": GIB, "files": "per_worker"}), True),
    ],
    ids=[
        *("fits", "exceeds", "fits each node", "direct", "direct while cold", "synced", "end"),
        *("pulse", "stream", "each", "syncsize", "never so much", "never so much of a file"),
    ],
)
def test_bytes_that_fit_into_the_page_cache_measure_memory(
    tmp_path: Path, samples: list[Sample], warned: bool
) -> None:
    s = summary_of(tmp_path, samples)  # 16 GiB: 2.4 GiB until writers are throttled
    assert (doubt(s, "free-run-memory") is not None) == warned
    assert doubt(summary_of(tmp_path, samples, rate="actual"), "free-run-memory") is None


@pytest.mark.parametrize(
    ("preload", "warned"),
    [
        ("two_phase + shm + pwrite + end", False),
        ("individual + none + pwrite(direct)", False),
        ("two_phase + shm + pwrite", True),
        ("a_method_of_an_earlier_version + end", False),
        ("individual + none(x=1) + pwrite", True),  # known, and not supported here
        (True, True),
    ],
)
def test_a_preloaded_method_syncs_as_planned(
    tmp_path: Path, preload: bool | str, warned: bool
) -> None:
    results = load(write(tmp_path / "samples.jsonl", unsynced(GIB, {"route": "mpi"})))
    planned = {"parameters": {"route": "mpi"}, "preload": preload}
    results.headers[0].plan["measurements"] = [
        {"cell": cell, "variant": "x", "parameters": planned} for cell in ("c", "another")
    ]
    assert (doubt(summarise(results), "free-run-memory") is not None) == warned


@pytest.mark.parametrize(
    ("preload", "method", "best"),
    [
        (True, str(_core.default_method()), "x"),
        ("individual + none + pwrite", str(_core.parse_method("individual + none + pwrite")), "x"),
        ("individual + none + null", str(_core.parse_method("individual + none + null")), "real"),
        (False, None, "x"),
    ],
)
def test_a_preloaded_program_has_the_method_that_was_planned(
    tmp_path: Path, preload: bool | str, method: str | None, best: str
) -> None:
    ways = session({"x": noisy(9e9), "real": noisy(1e9)})
    results = load(write(tmp_path / "samples.jsonl", ways))
    planned = {"parameters": {"route": "mpi"}, "preload": preload}
    results.headers[0].plan["measurements"] = [
        {"cell": cell, "variant": "x", "parameters": planned} for cell in ("c", "another")
    ]
    (cell,) = summarise(results).cells
    assert {v.variant: v.method for v in cell.variants} == {"x": method, "real": None}
    assert cell.ranking.best == best


def test_what_a_failed_run_wrote_is_no_conclusion(tmp_path: Path) -> None:
    cut = result(1e9, bytes_=MIB, parameters={"end": "close", "op": "write"})
    failed = sample("x", 11, failed="no space", result=cut)
    s = summary_of(tmp_path, [*unsynced(3 * GIB), failed])
    assert doubt(s, "free-run-memory") is None
    assert s.cells[0].variants[0].bytes == 3 * GIB


def test_the_free_run_ceiling_is_the_kernels() -> None:
    s = sample(machine_before=reading(0.0, memory_available_bytes=10 * GIB))
    assert free_run_bytes(s, None) == pytest.approx(1.5 * GIB, abs=1)
    where = Provenance.model_validate(
        {"id": "p", "memory_limit_bytes": 2 * GIB, "write_back": {"dirty_ratio": "40"}}
    )
    assert free_run_bytes(s, where) == pytest.approx(0.5 * GIB, abs=1)
    fixed = {"dirty_bytes": str(300 * MIB), "dirty_background_bytes": str(100 * MIB)}
    assert free_run_bytes(s, Provenance.model_validate({"id": "p", "write_back": fixed})) == (
        200 * MIB
    )
    low = Provenance.model_validate({"id": "p", "write_back": {"dirty_bytes": str(256 * MIB)}})
    assert free_run_bytes(s, low) == 192 * MIB
    assert free_run_bytes(sample(), None) is None


def test_bytes_that_were_not_read_back_are_said(tmp_path: Path) -> None:
    unread = result(1e9, verified=None)
    s = summary_of(tmp_path, [sample("x", b, result=unread) for b in range(1, 11)])
    assert doubt(s, "unverified") is not None


def test_what_writes_nothing_cannot_be_read_back(tmp_path: Path) -> None:
    unread = {"verified": None, "engine": {"method": "two_phase + shm + null + none"}}
    s = summary_of(tmp_path, [sample("x", b, result=result(1e9, **unread)) for b in range(1, 11)])
    assert doubt(s, "unverified") is None


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("regime cold: 5 bytes of warm memory are left on a node", True),
        ("page-reports wait: nothing was waited for", True),
        ("bufsize 70: the pattern gives 64 bytes per iteration to a file's worker 0", False),
    ],
)
def test_samples_out_of_their_regime_are_said(tmp_path: Path, note: str, told: bool) -> None:
    noted = [sample("a", b, result=result(1e9, notes=[note])) for b in (1, 2)]
    asked = [sample("a", 3, result=result(1e9, notes=[])), *session({"b": [1e9] * 3})]
    found = doubt(summary_of(tmp_path, noted + asked), "off-regime")
    assert (found is not None) == told
    if found is not None:
        assert found.variants == ["a"]
        assert found.text == f"not in the regime asked for: a (2 of 3 samples), the last: {note}"


def test_warm_ups_and_canaries_are_not_counted(tmp_path: Path) -> None:
    extra = [sample("x", 0, 5e9, warm_up=True), sample("x", 3, 1e9, canary=True)]
    s = summary_of(tmp_path, session({"x": [1e9] * 10}) + extra)
    assert s.cells[0].variants[0].samples == 10
    assert (s.canaries.n, s.canaries.ratio) == (1, 1.0)


def test_outliers_name_their_blocks(tmp_path: Path) -> None:
    s = summary_of(tmp_path, session({"x": [*noisy(1e9, 15), 1e7]}))
    application = s.cells[0].variants[0].application
    assert application is not None
    assert application.outlier_blocks == [16]
    assert [f.name for f in s.findings] == ["outliers"]


def test_a_session_that_had_not_begun_is_said(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").touch()
    with pytest.raises(ArgumentError, match="stopped at its start"):
        summarise(load(tmp_path))


def test_a_summary_is_json_and_comes_back(tmp_path: Path) -> None:
    s = summary_of(tmp_path, session({"x": noisy(1e9), "y": noisy(2e9)}))
    values = s.as_json()
    assert values["schema"] == "penstock.summary/1"
    assert values["cells"][0]["ranking"]["best"] == "y"
    assert Summary.model_validate(values) == s


def test_a_bound_beside_failed_writers_is_not_the_best(tmp_path: Path) -> None:
    failed = [sample("real", block, failed="ENOSPC") for block in range(1, 11)]
    (cell,) = summary_of(tmp_path, through("null", "bound", 9e9) + failed).cells
    assert [v.variant for v in cell.writing] == ["real"]
    assert cell.ranking.best is None
