"""What the conformance suite asks of the ways that it names: bytes have to have gone so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lib"))
from run_mpi import Outcome
from suites import suite

RUN = suite("conformance")


def outcome(**traffic: int) -> Outcome:
    none = {"cold_bytes": 0, "staged_bytes": 0, "shared_bytes": 0}
    file = {"traffic": none | traffic, "degraded": {}}
    totals = {"engine_bytes": 9, "passthrough_bytes": 0}
    log = {"files": [file], "totals": totals, "ranks": 1}
    return Outcome(0, "", "", 1.0, False, [log])


@pytest.mark.parametrize(("batch", "counter"), [(1, "shared_bytes"), (2, "staged_bytes")])
def test_something_has_to_have_gone_behind(batch: int, counter: str) -> None:
    some = RUN.views(1, 51, 15) if batch == 1 else RUN.Batch("files.2", 2, program="files")
    assert RUN.behind_problems(outcome(), some) == ["no byte went behind"]
    assert RUN.behind_problems(outcome(**{counter: 7}), some) == []


@pytest.mark.parametrize(
    ("cold", "why", "expected"),
    [
        (0, "", (0, 1, 0)),
        (7, "", (1, 0, 0)),
        (0, "of overlayfs", (0, 0, 1)),
        (7, "of x", (1, 0, 0)),
    ],
)
def test_something_has_to_have_gone_past_the_page_cache(
    monkeypatch: pytest.MonkeyPatch, cold: int, why: str, expected: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(RUN, "why_none", lambda _: why)
    suite = RUN.SumsOfCold("conformance mpich")
    suite.check("auto views.2", [], outcome(cold_bytes=cold))
    suite.passed = 0
    suite.check_cold()
    assert (suite.passed, len(suite.failures), len(suite.skips)) == expected
