"""What a program of cases printed, and what its job's logs say of each case."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from expectations import unforeseen
from run_mpi import Outcome

CASE = re.compile(r"case (\S+) (ok|failed|skipped)(?: (.*))?")
BEGIN = re.compile(r"begin (\S+)")


@dataclass(frozen=True)
class Verdict:
    """How one case ended: ok, failed, or skipped by itself."""

    case: str
    word: str
    reason: str = ""
    engine_bytes: int = 0
    passthrough_bytes: int = 0
    behind_bytes: int = 0  # accepted, and put into the file later
    degraded: Mapping[str, int] = field(default_factory=dict)
    library: str = ""  # as the program names itself
    mpi_version: str = ""

    @property
    def writes(self) -> bool:
        """mpi4py's tests of properties write nothing; everything else does."""
        return not self.case.startswith(("test_file.", "test_io.TestDatarep."))

    def log_problems(self, library: str, mpi: str) -> list[str]:
        """Writes that passed through must say why, and for a reason that is foreseen; and a case
        that writes must have written something that the log knows of."""
        if self.word == "ok" and self.writes and self.engine_bytes + self.passthrough_bytes == 0:
            return ["the job log knows of no write of this case: was Penstock there?"]
        if self.passthrough_bytes > 0 and not self.degraded:
            return [f"{self.passthrough_bytes} bytes passed through, and the log does not say why"]
        wrong = unforeseen(library, mpi, self.degraded)
        if wrong and self.passthrough_bytes > 0:
            return [f"{self.passthrough_bytes} bytes passed through: {why}" for why in wrong]
        return []


def verdicts_of(out: Outcome) -> dict[str, Verdict]:
    """By case. The one that was running when the job ended without a result has failed."""
    found: dict[str, Verdict] = {}
    begun = library = ""
    for line in out.output.splitlines():
        if match := BEGIN.match(line):
            begun = match[1]
        elif line.startswith("library "):
            library = line.removeprefix("library ")
        elif match := CASE.match(line):
            found[match[1]] = Verdict(match[1], match[2], match[3] or "")
    if begun and begun not in found:
        found[begun] = Verdict(begun, "failed", how_it_ended(out))
    return {case: with_log(replace(x, library=library), out) for case, x in found.items()}


def how_it_ended(out: Outcome) -> str:
    if out.hung:
        return f"hangs (stopped after {out.seconds:.0f} s)"
    last = (out.errors.strip().splitlines() or ["no message"])[-1]
    return f"ends with code {out.code}: {last[:200]}"


def end_problems(alone: Outcome, served: Outcome) -> list[str]:
    """Behind the last case: in MPI_Finalize, and what libraries do when a process exits."""
    if alone.hung or alone.code != 0:
        return []  # a case of it is at fault, and judged
    if served.hung or served.code != 0:
        return [f"{how_it_ended(served)}, and alone with 0"]
    states = sorted({str(log["state"]) for log in served.logs})
    return [] if states in ([], ["finished"]) else [f"a job's log says {', '.join(states)}"]


def mpi_version(out: Outcome) -> str:
    """The number in what the library says of itself, which begins with it or has it soon."""
    for log in out.logs:
        if match := re.search(r"\d+(?:\.\d+)+", str(log["mpi_library"])):
            return match[0]
    return ""


def log_of_case(out: Outcome, case: str) -> Iterator[dict[str, Any]]:
    """The files of a case: CASE.suffix, or a temporary name that holds the test's."""
    for log in out.logs:
        for file in log["files"]:
            name = str(file["path"]).rsplit("/", 1)[-1].rsplit(":", 1)[-1]
            if name.rsplit(".", 1)[0] == case or name.startswith(f"mpi4py-{case}-"):
                yield file


def with_log(verdict: Verdict, out: Outcome) -> Verdict:
    files = list(log_of_case(out, verdict.case))
    degraded: dict[str, int] = {}
    for file in files:
        for why, times in file["degraded"].items():
            degraded[why] = degraded.get(why, 0) + int(times)
    return replace(
        verdict,
        engine_bytes=sum(int(x["engine_bytes"]) for x in files),
        passthrough_bytes=sum(int(x["passthrough_bytes"]) for x in files),
        behind_bytes=sum(int(x["traffic"]["staged_bytes"]) for x in files),
        degraded=degraded,
        mpi_version=mpi_version(out),
    )
