"""B against A: verdicts, and everything that a reader must know before believing them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from made_samples import MIB, result, sample, session, write
from penstock.bench import statistics
from penstock.bench.differences import Differences, Side, differences
from penstock.bench.render import print_differences
from penstock.bench.sample import Sample
from penstock.bench.store import load
from penstock.errors import ArgumentError


def noisy(level: float, seed: int = 1, n: int = 15, cv: float = 0.01) -> list[float]:
    return list(level * np.random.default_rng(seed).lognormal(0.0, cv, n))


def side(
    tmp_path: Path, name: str, samples: Sequence[Sample], variant: str | None = None, **where: Any
) -> Side:
    return Side(name, load(write(tmp_path / f"{name}.jsonl", samples, **where)), variant)


def only(found: Differences) -> Any:
    assert len(found.differences) == 1
    return found.differences[0]


@pytest.mark.parametrize(
    ("level", "cv", "verdict", "overall"),
    [
        (1.2e9, 0.01, "faster", "fine"),
        (0.8e9, 0.01, "slower", "worse"),
        (1e9, 0.01, "same", "fine"),
        (1e9, 0.5, "unclear", "unclear"),
    ],
)
def test_the_verdict_is_on_b(
    tmp_path: Path, level: float, cv: float, verdict: str, overall: str
) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    b = side(tmp_path, "b", session({"x": noisy(level, seed=2, cv=cv)}))
    found = differences(a, b)
    assert only(found).verdict == verdict
    assert only(found).worse == (verdict == "slower")
    assert found.overall == overall


def test_every_cell_and_rate_that_both_have_is_compared(tmp_path: Path) -> None:
    def both(level: float) -> list[Sample]:
        samples = session({"x": noisy(level), "y": noisy(level)})
        return samples + session({"x": noisy(level)}, cell="d")

    a = side(tmp_path, "a", both(1e9))
    b = side(tmp_path, "b", both(2e9))
    found = differences(a, b, ("application", "actual"))
    assert [(d.cell, d.variant_b, d.rate, d.verdict) for d in found.differences] == [
        ("c", "x", "application", "faster"),
        ("c", "x", "actual", "same"),
        ("c", "y", "application", "faster"),
        ("c", "y", "actual", "same"),
        ("d", "x", "application", "faster"),
        ("d", "x", "actual", "same"),
    ]


def test_two_variants_of_one_session_are_compared(tmp_path: Path) -> None:
    samples = session({"x": noisy(1e9), "y": noisy(2e9)})
    results = load(write(tmp_path / "r.jsonl", samples))
    found = differences(Side("r", results, "x"), Side("r", results, "y"))
    assert only(found).verdict == "faster"
    assert (found.a, found.b) == ("r, x", "r, y")
    assert found.notices == []  # they were interleaved, on one machine


def test_results_of_two_sessions_are_said_not_to_be_interleaved(tmp_path: Path) -> None:
    a, b = (side(tmp_path, name, session({"x": noisy(1e9)})) for name in "ab")
    (notice,) = differences(a, b).notices
    assert "not interleaved" in notice


def test_another_machine_and_other_software_are_told_apart(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}), penstock="0.1.0")
    there = {"id": "q", "kernel": "7.0", "penstock": "0.2.0"}
    samples = [s.model_copy(update={"provenance": "q"}) for s in session({"x": noisy(1e9)})]
    notices = differences(a, side(tmp_path, "b", samples, **there)).notices
    assert any("different machines" in n and "kernel 6.1 -> 7.0" in n for n in notices)
    assert any("software: penstock 0.1.0 -> 0.2.0" in n for n in notices)
    assert not any("different machines" in n and "penstock" in n.split(":")[1] for n in notices)


def resumed(samples: Sequence[Sample], block: int) -> list[Sample]:
    """From a block on of provenance q."""
    where = {"provenance": "q"}
    return [s if s.block < block else s.model_copy(update=where) for s in samples]


def places(tmp_path: Path, samples: Sequence[Sample], **other: Any) -> Side:
    """A side of provenance p, and of q, which differs by ``other``."""
    results = load(write(tmp_path / "b.jsonl", samples))
    results.provenances["q"] = results.provenances["p"].model_copy(update={"id": "q", **other})
    return Side("b", results)


def test_a_side_of_several_machines_or_versions_is_said(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    for first, then in (("p", "q"), ("q", "p")):
        moved = resumed(session({"x": noisy(1e9)}), 9)
        names = {"p": first, "q": then}
        samples = [s.model_copy(update={"provenance": names[s.provenance]}) for s in moved]
        b = places(tmp_path, samples, kernel="7.0", penstock="0.2.0", slurm_job="5")
        notices = differences(a, b).notices
        assert any(n.startswith("samples of b are of several machines") for n in notices)
        assert any(n.startswith("samples of b are of several versions: pens") for n in notices)
        assert any("a and b were taken on different" in n for n in notices) == (then == "q")


def test_a_session_that_went_on_in_another_job_is_of_one_version(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    b = places(tmp_path, resumed(session({"x": noisy(1e9)}), 9), slurm_job="5")
    assert not any("several" in n for n in differences(a, b).notices)


def test_samples_that_are_not_compared_tell_nothing_of_the_machine(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    more = [s.model_copy(update={"provenance": "q"}) for s in session({"y": noisy(1e9)})]
    b = places(tmp_path, session({"x": noisy(1e9)}) + more, kernel="7.0")
    assert not any("kernel" in n for n in differences(a, b).notices)


def test_what_only_one_side_has_is_said(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9), "old": noisy(1e9)}))
    b = side(tmp_path, "b", session({"x": noisy(1e9), "new": noisy(1e9)}))
    notices = differences(a, b).notices
    assert "only a has c/old: not compared" in notices
    assert "only b has c/new: not compared" in notices
    assert differences(a, b).only_a == ["c/old"]


def test_nothing_in_common_is_an_error_that_lists_both(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    b = side(tmp_path, "b", session({"y": noisy(1e9)}))
    with pytest.raises(ArgumentError, match='a has "c/x", b has "c/y"'):
        differences(a, b)


def test_what_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    with pytest.raises(ArgumentError, match='a has no variant "other"; there are "x"'):
        differences(Side("a", a.results, "other"), a)
    with pytest.raises(ArgumentError, match="is 3 %"):
        differences(a, a, margin=3.0)


def test_other_amounts_of_work_are_said(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    less = [sample("x", i, result=result(1e9, bytes_=32 * MIB)) for i in range(1, 11)]
    notices = differences(a, side(tmp_path, "b", less)).notices
    assert any("not the same work" in n and "67108864 -> 33554432" in n for n in notices)


def workload(**more: Any) -> list[Sample]:
    done = {"op": "write", "regime": "warm", "bufsize": MIB, "method": "auto", **more}
    return [sample("x", i, result=result(1e9, parameters=done)) for i in range(1, 11)]


def test_another_workload_of_as_many_bytes_is_said(tmp_path: Path) -> None:
    a = side(tmp_path, "a", workload())
    cold = side(tmp_path, "b", workload(regime="asis", bufsize=2 * MIB))
    says = "c/x: not the same work in A and B: bufsize 1048576 -> 2097152, regime warm -> asis"
    assert says in differences(a, cold).notices
    other_way = side(tmp_path, "w", workload(method="individual"))
    assert not [n for n in differences(a, other_way).notices if "not the same work" in n]


def test_variants_of_a_session_may_differ_in_their_workload(tmp_path: Path) -> None:
    cold = [s.model_copy(update={"variant": "y"}) for s in workload(regime="cold")]
    results = load(write(tmp_path / "r.jsonl", [*workload(), *cold]))
    assert differences(Side("r", results, "x"), Side("r", results, "y")).notices == []


def test_wrong_bytes_are_worse_however_fast(tmp_path: Path) -> None:
    good = session({"x": noisy(1e9)})
    bad = [*session({"x": noisy(9e9)}), sample("x", 99, failed="w", result=result(9e9, wrong=1))]
    a, b = side(tmp_path, "a", good), side(tmp_path, "b", bad)
    assert only(differences(a, b)).worse
    assert "INVALID" in only(differences(a, b)).why
    back = differences(b, a)
    assert (only(back).verdict, only(back).worse, back.overall) == ("unclear", False, "unclear")


def test_wrong_bytes_of_a_warm_up_are_worse(tmp_path: Path) -> None:
    bad = sample("x", 0, warm_up=True, failed="wrong bytes", result=result(2e9, wrong=3))
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    b = side(tmp_path, "b", [bad, *session({"x": noisy(2e9)})])
    assert only(differences(a, b)).why == "INVALID: B left wrong bytes in the file"
    assert only(differences(a, b)).worse


def test_what_fails_altogether_is_worse_and_says_why(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    failed = [sample("x", i, failed="no space", result=None) for i in (1, 2)]
    found = differences(a, side(tmp_path, "b", failed))
    assert only(found).worse
    assert only(found).why == "B has no application rate: no space"
    assert any("2 of 2 samples of B failed, the last: no space" in n for n in found.notices)


@pytest.mark.parametrize("good", [1, 4, 5])
def test_few_samples_of_what_failed_are_worse(tmp_path: Path, good: int) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    crashed = [sample("x", 50 + i, failed="ended by SIGSEGV", result=None) for i in range(2)]
    b = side(tmp_path, "b", [*session({"x": noisy(1e9, 2, n=good)}), *crashed])
    found = only(differences(a, b))
    few = good < statistics.LEAST_TO_COMPARE
    assert found.worse == few
    samples = "1 sample" if good == 1 else f"{good} samples"
    assert (found.why == f"B failed and has only {samples}: ended by SIGSEGV") == few
    assert not only(differences(b, a)).worse


def test_few_samples_and_a_warm_up_that_failed_are_unclear(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    warm_up = sample("x", 0, failed="timed out", result=None, warm_up=True)
    found = only(differences(a, side(tmp_path, "b", [*session({"x": noisy(1e9, n=4)}), warm_up])))
    assert (found.verdict, found.worse) == ("unclear", False)


def test_a_rate_that_neither_has_is_unclear(tmp_path: Path) -> None:
    made = [sample("x", i, result=result(1e9, actual=None)) for i in range(1, 11)]
    a, b = side(tmp_path, "a", made), side(tmp_path, "b", made)
    found = differences(a, b, ("actual",))
    assert only(found).why == "neither has an actual rate"
    assert found.overall == "unclear"


def test_too_few_samples_are_unclear_and_say_so(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": [1e9] * 3}))
    b = side(tmp_path, "b", session({"x": [2e9] * 3}))
    assert only(differences(a, b)).verdict == "unclear"
    assert "too few" in only(differences(a, b)).why


def test_all_comparisons_of_a_report_are_corrected_together(tmp_path: Path) -> None:
    draws = np.random.default_rng(5)
    weak_a, weak_b = draws.normal(1e9, 5e7, 8), draws.normal(1.07e9, 5e7, 8)
    many = {f"v{i}": noisy(1e9, i) for i in range(30)}
    a = side(tmp_path, "a", session({"weak": list(weak_a), **many}))
    b = side(tmp_path, "b", session({"weak": list(weak_b), **many}))
    alone = differences(Side("a", a.results, "weak"), Side("b", b.results, "weak"))
    among = next(d for d in differences(a, b).differences if d.variant_a == "weak")
    assert among.p > only(alone).p
    assert among.ratio == only(alone).ratio


def test_a_torn_line_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", session({"x": noisy(1e9)}))
    with path.open("a") as file:
        file.write('{"record": "sam')
    a = Side("a", load(path))
    b = side(tmp_path, "b", session({"x": noisy(1e9)}))
    assert any("ends within a line" in n for n in differences(a, b).notices)


@pytest.mark.parametrize("width", [50, 160])
def test_people_see_both_rates_the_ratio_and_the_verdict(tmp_path: Path, width: int) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9), "y": noisy(1e9)}))
    b = side(tmp_path, "b", session({"x": noisy(5e8, 2), "y": noisy(1e9, 3, cv=0.5)}))
    out = io.StringIO()
    print_differences(differences(a, b), Console(file=out, width=width))
    text = " ".join(out.getvalue().split())
    assert "above 1, B is better" in text
    assert re.search(r"0\.[45]\d \[0\.[45]\d-0\.5\d\]", text)
    assert re.search(r"9\d\d MiB/s \[", text)
    assert text.count("n=15") == 4
    assert "B is: 1 slower, 1 unclear (margin 3 %); worse: c/x" in text
    assert "c/y, application: the interval includes 1" in text


def test_programs_get_the_same_as_json(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    found = differences(a, side(tmp_path, "b", session({"x": noisy(2e9)})))
    values = found.as_json()
    assert (values["schema"], values["overall"]) == ("penstock.compare/1", "fine")
    assert Differences.model_validate(values) == found


def test_what_a_failed_run_wrote_is_not_other_work(tmp_path: Path) -> None:
    a = side(tmp_path, "a", session({"x": noisy(1e9)}))
    cut = sample("x", 16, failed="no space", result=result(1e9, bytes_=MIB))
    b = side(tmp_path, "b", [*session({"x": noisy(1e9, seed=2)}), cut])
    assert not [n for n in differences(a, b).notices if "not the same work" in n]
