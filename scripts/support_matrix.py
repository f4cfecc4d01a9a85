#!/usr/bin/env python3
"""Makes docs/support-matrix.md of what the suites recorded.

Suites write a line of JSON per case with ``--record FILE`` (tests/lib/matrix_record.py); this
reads every ``*.jsonl`` of a directory and writes the page, or with ``--check`` says whether the
page is the one these records make. Python's standard library only.

  scripts/support_matrix.py build/records
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from matrix_record import Record, read_records  # noqa: E402
from mpis import MPIS  # noqa: E402

PAGE = ROOT / "docs" / "support-matrix.md"
HEAD = """\
# Support matrix

Made by `scripts/record_support.sh` from what the test suites recorded; nothing here is written by
hand. A case is one program, or one test of a library's own, at one number of ranks with one method.

- *ok*: the case holds, the file is what the MPI library makes alone, and Penstock wrote every byte.
- *passed*: the case holds, and the MPI library itself wrote some of the bytes, because they are not
  Penstock's to write; the job log says so.
- *alone*: the case fails without Penstock too.
- *skipped*: the case cannot be, or leaves itself out, on this MPI library.

The reasons are below the table.

"""
WORDS = {
    "passed": "ok",
    "passed_through": "passed",
    "expected_failure": "alone",
    "failed": "**failed**",
    "skipped": "skipped",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(x.replace("|", "\\|") for x in line) + " |" for line in lines]


def mpi_title(records: Sequence[Record], name: str) -> str:
    versions = sorted({r.mpi_version for r in records if r.mpi == name and r.mpi_version})
    title = MPIS[name].title if name in MPIS else name
    title = title.replace(" of the distribution", ", distribution")
    if not versions:
        return title
    brand, comma, kind = title.partition(",")  # "MPICH 5, standard ABI"
    return f"{re.sub(r' [0-9]+$', '', brand)} {versions[-1]}{comma}{kind}"


def name_and_version(library: str) -> tuple[str, str]:
    """The name ends before the first word that begins with a digit: h5py, 3.7.0 on HDF5 1.10.8."""
    match = re.fullmatch(r"(.*?)(?: ([0-9].*))?", library)
    return (match[1], match[2] or "") if match else (library, "")


def row_title(records: Sequence[Record]) -> str:
    name = name_and_version(records[0].library)[0]
    versions = sorted({v for r in records if (v := name_and_version(r.library)[1])})
    return f"{' '.join(x for x in (name, ' or '.join(versions)) if x)} ({records[0].binding})"


def cell(records: Sequence[Record]) -> str:
    if not records:
        return ""
    counts = Counter(WORDS[r.outcome] for r in records)
    return ", ".join(f"{counts[word]} {word}" for word in WORDS.values() if counts[word])


def matrix(records: Sequence[Record]) -> list[str]:
    """One row for a library and binding, one column for an MPI library."""
    mpis = [x for x in MPIS if any(r.mpi == x for r in records)]
    of_library: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        key = (name_and_version(record.library)[0], record.binding)
        of_library.setdefault(key, []).append(record)
    rows = []
    for _, of_row in sorted(of_library.items()):
        cells = [cell([r for r in of_row if r.mpi == x]) for x in mpis]
        rows.append([row_title(of_row), *cells])
    return table(["", *(mpi_title(records, x) for x in mpis)], rows)


def reasons(records: Sequence[Record], outcome: str) -> list[str]:
    """Library, MPI libraries, reason, and for which cases."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.outcome == outcome:
            found.setdefault((record.library, record.reason), []).append(record)
    rows = []
    for (library, reason), of_reason in sorted(found.items()):
        mpis = ", ".join(x for x in MPIS if any(r.mpi == x for r in of_reason))
        rows.append([library, mpis, reason, cases(of_reason)])
    return table(["Library", "MPI", "Why", "Cases"], rows) if rows else ["None."]


def cases(records: Sequence[Record]) -> str:
    names = sorted({r.case for r in records})
    shown = ", ".join(f"`{x}`" for x in names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def totals(records: Sequence[Record]) -> str:
    counts = Counter(r.outcome for r in records)
    mebibytes = sum(r.engine_bytes for r in records) / 2**20
    passed_kib = sum(r.passthrough_bytes for r in records) / 2**10
    ranks = ", ".join(str(x) for x in sorted({r.ranks for r in records}))
    return (
        f"{len(records)} cases at {ranks} ranks: {counts['passed']} ok, "
        f"{counts['passed_through']} passed, {counts['expected_failure']} alone, "
        f"{counts['failed']} failed, {counts['skipped']} skipped. "
        f"Penstock wrote {mebibytes:.1f} MiB, and {passed_kib:.1f} KiB passed through."
    )


def page(records: Sequence[Record]) -> str:
    """The whole page; the order of the records does not matter."""
    text = [HEAD.rstrip(), "", totals(records), ""]
    for suite in sorted({r.suite for r in records}):
        of_suite = [r for r in records if r.suite == suite]
        text += [f"## {suite.capitalize()}", "", *matrix(of_suite), ""]
    sections = {
        "What passed through": "passed_through",
        "What fails without Penstock too": "expected_failure",
        "What was skipped": "skipped",
        "What failed": "failed",
    }
    for title, outcome in sections.items():
        text += [f"## {title}", "", *reasons(records, outcome), ""]
    return "\n".join(text)


def main() -> int:
    """0 when the page was written, or is right with --check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("records", type=Path, help="the directory of the *.jsonl files")
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    options = parser.parse_args()
    try:
        records = list(read_records(options.records))
    except ValueError as error:
        parser.error(str(error))
    if not records:
        parser.error(f"no records in {options.records}: run a suite with --record first")
    text = page(records)
    if options.check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("docs/support-matrix.md is " + ("up to date" if same else "not what these make"))
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"docs/support-matrix.md: {len(records)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
