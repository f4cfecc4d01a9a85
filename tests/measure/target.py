"""A measuring program that is tested, and what a line of it must say."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import jsonschema
except ImportError:  # of the distribution's Python; then the end says that it was not looked at
    jsonschema = None

from mpis import ROOT, Mpi
from run_mpi import Bench, Outcome, launch

SCHEMA = ROOT / "docs" / "reference" / "measure-sample.schema.json"


@dataclass(frozen=True)
class Target:
    """A program under test and how it is started."""

    build: Path
    mpi: Mpi | None

    @property
    def program(self) -> Path:
        flavour = self.mpi.flavour if self.mpi else "threads"
        return self.build / "native" / f"penstock-measure-{flavour}"

    @property
    def name(self) -> str:
        return self.mpi.name if self.mpi else "threads"

    def start(self, words: list[str], ranks: int = 1, timeout_s: float = 60) -> Outcome:
        """Run it with these words after its name; without MPI `ranks` become threads."""
        if self.mpi is not None:
            command = [str(self.program), *words]
            return launch(Bench(self.build, self.mpi), ranks, command, timeout_s=timeout_s)
        threads = [] if "--threads" in words else ["--threads", str(ranks)]
        try:
            done = subprocess.run(
                [str(self.program), *words, *threads],
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(1, "", "", timeout_s, True, [])
        return Outcome(done.returncode, done.stdout, done.stderr, 0, False, [])


def line_of(out: Outcome) -> dict[str, Any]:
    """The line of JSON; Open MPI's own warnings may stand around it."""
    lines = [x for x in out.output.splitlines() if x.startswith('{"schema":"penstock.measure/1"')]
    return dict(json.loads(lines[0])) if len(lines) == 1 else {}


def problems_of(out: Outcome, workers: int) -> list[str]:
    """What is wrong with a run that should have gone well."""
    if out.hung:
        return ["hangs"]
    line = line_of(out)
    if out.code != 0 or not line:
        return [f"exit code {out.code}, {out.errors.strip()[-300:]}"]
    found = [f"schema: {x}" for x in schema_problems(line)]
    if line["error"] is not None:
        found.append(f"error {line['error']}")
    if line["workers"] != workers:
        found.append(f"{line['workers']} workers, not {workers}")
    verified = line["verified"]
    if verified is None or verified["wrong_bytes"] or verified["bytes"] != line["bytes"]:
        found.append(f"{line['bytes']} bytes, verified {verified}")
    if line["actual"]["seconds"] < line["application"]["seconds"]:
        found.append("the device was done before the application")
    return [*found, *series_problems(line)]


def series_problems(line: dict[str, Any]) -> list[str]:
    series = line["series"]
    if series is None:
        return []
    found = []
    for name in ("application_bytes", "actual_bytes"):
        values = series[name]
        if values is not None and (sum(values) != line["bytes"] or min(values) < 0):
            found.append(f"{name}: {sum(values)} of {line['bytes']} bytes")
    return found


def schema_problems(line: dict[str, Any]) -> list[str]:
    """Against the schema, where the validator is there; else nothing is claimed."""
    if jsonschema is None:
        return []
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    return [f"{e.json_path}: {e.message}" for e in validator.iter_errors(line)]
