"""Reports for tests: sessions with phases and series, and names that try to be code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from made_samples import BEGIN, MIB, header, result, sample
from penstock.bench.sample import Provenance, Sample, as_line
from penstock.bench.store import load
from penstock.bench.summary import summarise
from penstock.report import bench
from penstock.report.load import Wanted
from penstock.report.model import Report

JOB_LOG = Path(__file__).resolve().parent / "data" / "job-log.json"

# What runs if any of it reaches a page as markup. Each sets window.pwned; alert() would hang.
HOSTILE = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=2">',
    "</title></svg></style></script><script>window.pwned=3</script>",
    "javascript:window.pwned=4",
    "{{ 7*7 }}{% for x in y %}",
    "<svg onload=window.pwned=5><a xlink:href='javascript:window.pwned=6'>x</a></svg>",
    "\u202egnp.exe\x1b[31m\x00",
    "]]><![CDATA[ &amp; &#60;script&#62;",
)


def phases(seconds: float) -> dict[str, float]:
    """Where a run's time went, as the measuring program prints it."""
    return {
        "open_s": 0.01 * seconds,
        "compute_s": 0.0,
        "write_s": 0.6 * seconds,
        "sync_s": 0.3 * seconds,
        "close_s": 0.02 * seconds,
        "drain_s": 0.1 * seconds,
    }


def series(bytes_: int, bins: int = 8) -> dict[str, Any]:
    """How its bytes moved."""
    own = [bytes_ // bins] * bins
    return {
        "bin_s": 0.05,
        "application_bytes": own,
        "actual_bytes": list(reversed(own)),
        "source": "cachestat",
        "why": "made",
        "readings": bins,
        "busy_s": 0.0,
    }


def run(variant: str, block: int, rate: float, cell: str = "c", **more: Any) -> Sample:
    """A sample that tells its phases, its series and the engine's method."""
    printed = result(
        rate,
        actual=0.8 * rate,
        phases=phases(64 * MIB / rate),
        series=series(64 * MIB),
        engine={"method": "two_phase + messages + pwrite + none + written", "bytes": 64 * MIB},
    )
    return sample(variant, block, rate, cell=cell, result=printed, **more)


def session(
    levels: Mapping[str, Mapping[str, float]], *, cv: float = 0.01, n: int = 10, seed: int = 3
) -> list[Sample]:
    """By cell and variant: ``n`` runs around a rate."""
    draws = np.random.default_rng(seed)
    return [
        run(variant, block, float(level * draws.lognormal(0.0, cv)), cell)
        for cell, own in levels.items()
        for block in range(1, n + 1)
        for variant, level in own.items()
    ]


def write(
    path: Path,
    samples: Sequence[Sample],
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    **provenance: Any,
) -> Path:
    """A results file; ``parameters`` are of cells, and every variant has them."""
    parameters = parameters or {}
    pairs = dict.fromkeys((s.cell, s.variant) for s in samples)
    plan = {
        "rate": "application",
        "stopping": {},
        "measurements": [
            {
                "cell": cell,
                "variant": variant,
                "command": ["penstock-measure-threads", "--file", "DIR/data"],
                "env": {},
                "parameters": {"ranks": 1, "parameters": dict(parameters.get(cell, {}))},
            }
            for cell, variant in pairs
        ],
    }
    where = {
        "id": "p",
        "host": "here",
        "kernel": "6.1",
        "cpus": 2,
        "file_system": {"type": "ext4", "mount": "/scratch"},
    } | provenance
    records = [header(plan=plan, created=BEGIN.isoformat()), Provenance(**where), *samples]
    path.write_text("".join(as_line(r) for r in records))
    return path


def report_on(path: Path) -> Report:
    """The report on a results file."""
    results = load(path)
    return bench.report(bench.Session(str(path), results, summarise(results), Wanted()))


def job_log(path: Path, **changes: Any) -> Path:
    """The committed log of a job, changed; ``file`` changes its first file."""
    values = json.loads(JOB_LOG.read_text(encoding="utf-8"))
    values["files"][0] |= changes.pop("file", {})
    path.write_text(json.dumps(values | changes))
    return path


def observed_log(path: Path) -> Path:
    """The same under ``--observe``: nothing was served."""
    phases = ("plan", "pack", "exchange", "write", "sync")
    file = {
        "method": "observe",
        "algorithms": {},
        "degraded": {},
        "engine_bytes": 0,
        "passthrough_bytes": 64 << 20,
        "passthrough_calls": 32,
        "file_system": "",
        "pattern": dict.fromkeys(("contiguous_calls", "strided_calls", "irregular_calls"), 0),
        "times_s": {**dict.fromkeys(phases, 0.0), "close": 0.25, "write_calls": 1.5},
    }
    totals = {"engine_bytes": 0, "passthrough_bytes": 64 << 20, "errors": 0, "degraded": {}}
    return job_log(path, totals=totals, file=file)


def hostile_results(path: Path) -> Path:
    """Results in which every name that a stranger chooses tries to be code."""
    levels = {text: {v: 1e9 * (1 + i) for i, v in enumerate(HOSTILE)} for text in HOSTILE[:3]}
    write(
        path,
        session(levels, n=6),
        {cell: dict.fromkeys(HOSTILE, i) for i, cell in enumerate(levels)},
        host=HOSTILE[0],
        kernel=HOSTILE[1],
        file_system={"type": HOSTILE[2], HOSTILE[3]: HOSTILE[4]},
    )
    return path


def hostile_job(path: Path) -> Path:
    """A job's log of the same kind."""
    return job_log(
        path,
        program=HOSTILE[0],
        job_id=HOSTILE[1],
        host=HOSTILE[2],
        mpi_library=HOSTILE[5],
        build=HOSTILE[6],
        file={
            "path": HOSTILE[2],
            "method": HOSTILE[1],
            "algorithms": {HOSTILE[0]: 3},
            "degraded": {HOSTILE[5]: 2},
            "errors": 1,
            "first_error": HOSTILE[7],
            "file_system": HOSTILE[0],
            "actual_rate_source": HOSTILE[4],
        },
    )
