#!/usr/bin/env python3
"""Runs what ctest would run, with the cases of a GoogleTest program by the dozen in one process.

    scripts/layers.py --test-dir build/release --junit out.xml -j 2 -- -LE full

ctest starts a process for every case, and thousands of starts take longer than the cases. Here a
program gets some cases at a time. One that dies or hangs names nobody, so the cases of which it
said nothing are run again, each in a process of its own, as ctest does. What is no GoogleTest
program is left to ctest. The report is JUnit's, a <testcase> each, by ctest's names.

Exit code: 0 all passed or skipped; 1 not all; 2 wrong usage, or ctest knows no test.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

BATCH = 48  # cases of a process: few enough that all cores end at about the same time
BATCH_S = 600.0
CASE_S = 300.0


@dataclass(frozen=True)
class Test:
    """A test that ctest knows; ``case`` is its name in a GoogleTest program, if it is of one."""

    name: str
    program: str
    case: str | None
    directory: str


@dataclass(frozen=True)
class Verdict:
    """How a test ended: ``state`` is passed, failed or skipped, ``said`` is for the reader."""

    test: Test
    state: str
    said: str = ""


# ---- what there is to run ----


def known_tests(test_dir: Path, selection: Sequence[str]) -> list[Test]:
    """What ctest would run of a build directory."""
    command = ["ctest", "--test-dir", str(test_dir), "--show-only=json-v1", *selection]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise SystemExit(f"layers: ctest cannot list {test_dir}: {told.stderr.strip()}")
    return [one_test(entry) for entry in json.loads(told.stdout)["tests"]]


def one_test(entry: dict[str, Any]) -> Test:
    """A test of ctest's list."""
    command = entry.get("command", [""])
    filters = [word.partition("=")[2] for word in command if word.startswith("--gtest_filter=")]
    properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
    directory = properties.get("WORKING_DIRECTORY", ".")
    return Test(entry["name"], command[0], filters[0] if filters else None, directory)


def batches(tests: Sequence[Test]) -> Iterator[list[Test]]:
    """Cases of one program each; neighbours, which tend to be slow alike, come apart."""
    programs: dict[str, list[Test]] = {}
    for test in tests:
        programs.setdefault(test.program, []).append(test)
    for cases in programs.values():
        count = -(-len(cases) // BATCH)
        yield from (cases[first::count] for first in range(count))


# ---- running it ----


def run_batch(batch: Sequence[Test]) -> list[Verdict]:
    """All cases in one process, and again alone those that it did not answer for."""
    told = ended(batch, BATCH_S)[0]
    return [told.get(test.case) or run_alone(test) for test in batch]


def run_alone(test: Test) -> Verdict:
    """One case in a process of its own: one that says nothing has failed."""
    told, output = ended([test], CASE_S)
    return told.get(test.case) or Verdict(test, "failed", output)


def ended(batch: Sequence[Test], limit_s: float) -> tuple[dict[str | None, Verdict], str]:
    """What a process told of its cases, and its output.

    A sanitizer speaks when the process ends, of no case: what it told then counts for nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        cases = ":".join(str(test.case) for test in batch)
        command = [batch[0].program, f"--gtest_filter={cases}", f"--gtest_output=xml:{report}"]
        code, output = printed(command, batch[0].directory, limit_s)
        told = read_report(report, {test.case: test for test in batch})
    honest = code == int(any(verdict.state == "failed" for verdict in told.values()))
    return told if honest else {}, output


def printed(command: list[str], directory: str, limit_s: float) -> tuple[int | None, str]:
    """How a command ended, and what it printed; one that takes too long is stopped: None."""
    try:
        done = subprocess.run(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        so_far = late.stdout or b""
        text = so_far if isinstance(so_far, str) else so_far.decode(errors="replace")
        return None, f"{text}\nstopped after {limit_s:.0f} s"
    return done.returncode, f"{done.stdout}\nexit code {done.returncode}"


def read_report(path: Path, tests: dict[str | None, Test]) -> dict[str | None, Verdict]:
    """The verdicts of a GoogleTest report; none when the process did not come to write it."""
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314  (our own program wrote it)
    except (OSError, ElementTree.ParseError):
        return {}
    found = {}
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if name in tests and case.get("status") == "run":
            found[name] = verdict_of(tests[name], case)
    return found


def verdict_of(test: Test, case: ElementTree.Element) -> Verdict:
    """From GoogleTest's dialect."""
    failures = [f.text or f.get("message") or "" for f in case.findall("failure")]
    if failures:
        return Verdict(test, "failed", "\n".join(failures))
    skipped = case.find("skipped")
    if skipped is not None:
        return Verdict(test, "skipped", skipped.text or skipped.get("message") or "")
    return Verdict(test, "passed")


def run_by_ctest(test_dir: Path, tests: Sequence[Test], jobs: int) -> list[ElementTree.Element]:
    """What is no GoogleTest program, as ctest reports it."""
    if not tests:
        return []
    names = "|".join(re.escape(test.name) for test in tests)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = ["ctest", "--test-dir", str(test_dir), "-R", f"^({names})$", "-j", str(jobs)]
        command += ["--output-on-failure", "--test-output-size-passed", "1000000"]
        subprocess.run([*command, "--output-junit", str(report)], check=False)
        told = list(ElementTree.parse(report).getroot().iter("testcase"))  # noqa: S314
    if len(told) != len(tests):
        raise SystemExit(f"layers: ctest reported {len(told)} of {len(tests)} tests")
    return told


# ---- telling it ----


def as_element(verdict: Verdict) -> ElementTree.Element:
    """A <testcase>, as ctest writes them."""
    status = {"passed": "run", "failed": "fail", "skipped": "notrun"}[verdict.state]
    case = ElementTree.Element("testcase", name=verdict.test.name, classname=verdict.test.name)
    case.set("status", status)
    if verdict.state == "failed":
        ElementTree.SubElement(case, "failure", message="failed")
    if verdict.state == "skipped":
        ElementTree.SubElement(case, "skipped", message=printable(verdict.said))
    ElementTree.SubElement(case, "system-out").text = printable(verdict.said)
    return case


def printable(text: str) -> str:
    """Without what XML cannot hold."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", text)


def write_report(cases: Sequence[ElementTree.Element], path: Path) -> None:
    """One suite."""
    suite = ElementTree.Element("testsuite", name="layers", tests=str(len(cases)))
    suite.extend(cases)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def state_of(case: ElementTree.Element) -> str:
    """Of a <testcase>."""
    status = case.get("status")
    if status == "fail" or case.find("failure") is not None:
        return "failed"
    return "passed" if status == "run" else "skipped"


def main() -> int:
    """Runs them, and prints what failed and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--test-dir", type=Path, required=True, help="a build directory")
    parser.add_argument("--junit", type=Path, required=True, help="the report to write")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("selection", nargs="*", help="what ctest selects by: after --, -L, -LE, -R")
    arguments = parser.parse_args()
    tests = known_tests(arguments.test_dir, arguments.selection)
    if not tests:
        print(f"layers: ctest knows no test in {arguments.test_dir}", file=sys.stderr)
        return 2
    by_case = [test for test in tests if test.case is not None]
    with ThreadPoolExecutor(arguments.j) as pool:
        verdicts = [v for some in pool.map(run_batch, batches(by_case)) for v in some]
    others = [test for test in tests if test.case is None]
    cases = [as_element(v) for v in verdicts]
    cases += run_by_ctest(arguments.test_dir, others, arguments.j)
    write_report(cases, arguments.junit)
    for verdict in verdicts:
        if verdict.state != "passed":
            print(f"{verdict.state.upper()} {verdict.test.name}: {verdict.said.strip()}")
    states = [state_of(case) for case in cases]
    counts = ", ".join(f"{states.count(s)} {s}" for s in ("passed", "failed", "skipped"))
    print(f"layers: {counts}")
    return 1 if "failed" in states else 0


if __name__ == "__main__":
    sys.exit(main())
