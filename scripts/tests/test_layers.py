"""scripts/layers.py: many cases in a process, and a verdict for each all the same."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import layers
from skips import read_junit

# A GoogleTest program as far as layers.py knows one: its cases end as their names say, and `starts`
# counts processes.
PROGRAM = """#!{python} -IS
import os, sys, time
from pathlib import Path
options = dict(w[2:].split("=", 1) for w in sys.argv[1:] if "=" in w)
cases = options["gtest_filter"].split(":")
with open(Path(__file__).parent / "starts", "a") as starts:
    starts.write(" ".join(cases) + "\\n")
if any("Dies" in c for c in cases):
    os.kill(os.getpid(), 11)
if any("Hangs" in c for c in cases):
    time.sleep(60)
lines = []
for case in cases:
    suite, name = case.split(".")
    inner = '<failure message="3 is not 4"/>' if "Fails" in name else ""
    inner = '<skipped message="no disk"/>' if "Skips" in name else inner
    if "Silent" not in name:
        told = f'name="{{name}}" classname="{{suite}}" status="run"'
        lines.append(f"<testcase {{told}}>{{inner}}</testcase>")
report = options["gtest_output"].split(":", 1)[1]
Path(report).write_text("<testsuites><testsuite>" + "".join(lines) + "</testsuite></testsuites>")
print("printed by", cases)
if any("Leaks" in c for c in cases):
    sys.exit(23)
sys.exit(1 if any("Fails" in c for c in cases) else 0)
"""


class Place:
    """A directory with a program; ``run`` gives each case's state and reason."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "x_tests"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run(self, *cases: str) -> dict[str, tuple[str, str]]:
        tests = [
            layers.one_test(
                {
                    "name": f"x.Suite.{case}",
                    "command": [str(self.program), f"--gtest_filter=Suite.{case}"],
                    "properties": [{"name": "WORKING_DIRECTORY", "value": str(self.folder)}],
                }
            )
            for case in cases
        ]
        verdicts = [v for batch in layers.batches(tests) for v in layers.run_batch(batch)]
        report = self.folder / "report.xml"
        layers.write_report([layers.as_element(v) for v in verdicts], report)
        found = {c.name.rpartition(".")[2]: (c.state, c.reason) for c in read_junit(report)}
        assert len(found) == len(cases)
        return found

    @property
    def starts(self) -> int:
        return len((self.folder / "starts").read_text().splitlines())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_cases_that_end_well_share_a_process(place: Place) -> None:
    found = place.run("One", "Two", "Skips", "Fails")
    assert [state for state, _ in found.values()] == ["passed", "passed", "skipped", "failed"]
    assert found["Skips"][1] == "no disk"
    assert place.starts == 1


@pytest.mark.parametrize("broken", ["Dies", "Leaks", "Silent"])
def test_one_that_gives_no_account_is_the_only_one_that_fails(place: Place, broken: str) -> None:
    found = place.run("One", broken, "Two")
    assert {case: state for case, (state, _) in found.items()} == {
        "One": "passed",
        broken: "failed",
        "Two": "passed",
    }


def test_one_that_hangs_is_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "BATCH_S", 1.0)
    monkeypatch.setattr(layers, "CASE_S", 5.0)
    found = place.run("One", "Hangs")
    assert (found["One"][0], found["Hangs"][0]) == ("passed", "failed")


def test_a_great_many_cases_are_several_processes(place: Place) -> None:
    count = 2 * layers.BATCH + 1
    assert len(place.run(*(f"Case{i}" for i in range(count)))) == count
    assert place.starts == 3


def test_ctest_is_asked_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "CTestTestfile.cmake").write_text('add_test(one "true")\nadd_test(two "false")\n')
    junit = tmp_path / "out.xml"
    known = layers.known_tests(tmp_path, ["-R", "one"])
    assert [(t.name, t.case) for t in known] == [("one", None)]
    layers.write_report(layers.run_by_ctest(tmp_path, known, 1), junit)
    assert [(c.state) for c in read_junit(junit)] == ["passed"]


def test_a_directory_without_tests_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CTestTestfile.cmake").touch()
    words = ["layers", "--test-dir", str(tmp_path), "--junit", str(tmp_path / "out.xml")]
    monkeypatch.setattr(sys, "argv", words)
    assert layers.main() == 2


def test_what_xml_cannot_hold_is_replaced(tmp_path: Path) -> None:
    test = layers.Test("x.y", "p", "y", ".")
    layers.write_report(
        [layers.as_element(layers.Verdict(test, "failed", "bell \a"))], tmp_path / "r.xml"
    )
    assert "bell ?" in (tmp_path / "r.xml").read_text()
    assert [c.state for c in read_junit(tmp_path / "r.xml")] == ["failed"]
