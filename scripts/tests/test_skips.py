"""Skips are counted with their reasons, and only foreseen ones pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import check
import skips

CTEST = """<testsuite>
<testcase name="a" classname="a" status="run"/>
<testcase name="b" classname="b" status="fail"><failure message="x"/></testcase>
<testcase name="c" classname="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>skipped: no tmpfs here</system-out></testcase>
</testsuite>"""
STEP = check.Step("mpi", [])


def cases(tmp_path: Path) -> list[skips.Case]:
    (tmp_path / "report.xml").write_text(CTEST)
    return skips.read_junit(tmp_path / "report.xml")


def test_a_report_gives_states_and_the_spoken_reason(tmp_path: Path) -> None:
    assert [case.state for case in cases(tmp_path)] == ["passed", "failed", "skipped"]
    assert cases(tmp_path)[2].reason == "skipped: no tmpfs here"


def test_an_unforeseen_skip_is_a_failure(tmp_path: Path) -> None:
    outcome = check.judge(STEP, True, cases(tmp_path)[2:], [])
    assert (outcome.failed, outcome.skipped) == (1, 1)


def test_a_failed_suite_says_which_of_its_cases_failed(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite><testcase name="legal" classname="legal" status="fail"><failure message=""/>'
        "<system-out>FAILED ends by exit\n  exit code 1\nlegal: 55 passed, 1 failed</system-out>"
        "</testcase></testsuite>"
    )
    outcome = check.judge(STEP, False, skips.read_junit(report), [])
    assert outcome.named()[0].splitlines()[:3] == [
        "failed: legal.legal",
        "  FAILED ends by exit",
        "    exit code 1",
    ]


def test_a_failed_case_without_names_says_its_end(tmp_path: Path) -> None:
    said = "\n".join(str(number) for number in range(100))
    report = tmp_path / "report.xml"
    report.write_text(
        f'<testsuite><testcase name="a" classname="a"><failure message="x">{said}</failure>'
        "</testcase></testsuite>"
    )
    assert skips.read_junit(report)[0].reason.splitlines() == [str(n) for n in range(85, 100)]


def test_a_foreseen_skip_is_only_counted(tmp_path: Path) -> None:
    foreseen = [skips.Foreseen("always", "mpi", "c.*", "needs a mount")]
    outcome = check.judge(STEP, True, cases(tmp_path)[2:], foreseen)
    assert (outcome.failed, outcome.skipped) == (0, 1)


def test_a_runner_that_fails_without_a_failed_case_is_a_failure() -> None:
    assert check.judge(STEP, False, [skips.Case("a", "passed")], []).failed == 1


def test_a_broken_report_has_no_cases(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text("<testsuite>")
    assert skips.read_junit(tmp_path / "report.xml") == []


def test_a_line_without_a_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("always mpi c.*\n")
    with pytest.raises(SystemExit, match=r"list\.txt:1"):
        skips.read_foreseen(tmp_path / "list.txt")


def test_the_committed_list_is_well_formed() -> None:
    skips.read_foreseen(Path(__file__).parents[1] / "expected-skips.txt")


def test_what_a_suite_leaves_out_inside_is_a_skip_too(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite><testcase name="libraries.mpich" classname="libraries.mpich" status="run">'
        "<system-out>SKIPPED h5py all on 2: no mpi4py\nlibraries: 1 passed</system-out>"
        "</testcase></testsuite>"
    )
    found = skips.read_junit(report)
    assert [case.state for case in found] == ["passed", "skipped"]
    assert found[1] == skips.Case("libraries.mpich: h5py all on 2", "skipped", "no mpi4py")
    assert check.judge(STEP, True, found, []).failed == 1


def test_a_suite_is_read_from_what_it_prints() -> None:
    found = skips.read_suite(
        "FAILED b\n  why\nSKIPPED c: no tmpfs\nsite mpich: 2 passed, 1 failed, 1 skipped, 3 s\n"
    )
    assert [case.state for case in found] == ["passed", "passed", "failed", "skipped"]
    assert found[3] == skips.Case("site mpich: c", "skipped", "no tmpfs")
    assert skips.read_suite("Traceback ...") == []
