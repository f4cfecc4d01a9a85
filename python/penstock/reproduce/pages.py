"""A run as pages to be committed: NAME.md, NAME-report.html (penstock.report), raw/NAME.jsonl.xz.

NAME is the paper's; of a run across nodes, PAPER-nodes.

All of it is made from the samples, so that the raw samples make the pages again, measuring nothing.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock import whole
from penstock.bench.flat import flat
from penstock.bench.sample import Provenance, Record, Sample, as_line
from penstock.bench.store import Results, load
from penstock.bench.summary import summarise
from penstock.errors import ArgumentError, WriteError
from penstock.paths import real
from penstock.report import anew
from penstock.report import bench as bench_report
from penstock.report import page as html_page
from penstock.report.load import Wanted
from penstock.report.markdown import text as plain_text
from penstock.reproduce import plan
from penstock.reproduce.render import entry_text, number_text
from penstock.reproduce.report import Concluded, LawReport, Report, Stretches, Table, report

_PATH = re.compile(r"(?<![\w.])/(?:[^\s/,:;'\"]+/)+([^\s/,:;'\"]*)")
_OF_PLACE = ("type", "source", "options", "geometry.sharing")
_MACHINE = ("cpu_model", "cpus", "memory_bytes", "memory_limit_bytes", "kernel", "penstock")


def write(results: Results, directory: Path) -> list[Path]:
    """Write the pages of a run into a directory.

    Returns
    -------
    list of Path
        What was written; the raw samples are not when they are what was read.

    Raises
    ------
    ArgumentError
        If the results are of something else than a paper, or of an earlier design of it.
    WriteError
        If a page cannot be written.
    """
    said = report(results)
    if said.earlier_design:
        raise ArgumentError(
            f"--pages: {', '.join(map(str, results.paths))} are of {said.scale}: the version that "
            "measured them makes their pages; leave --pages out to see what is left"
        )
    name = _name(said)
    page, picture = directory / f"{name}.md", directory / f"{name}-report.html"
    raw = directory / "raw" / f"{name}.jsonl.xz"
    is_raw = [real(path) for path in results.paths] == [real(raw)]
    if not is_raw:
        _write(raw, lzma.compress(raw_samples(results).encode()))
    _write(page, markdown(said, results).encode())
    # Of these samples, since the others name this machine.
    _write(picture, html(load(raw), raw.relative_to(directory)).encode())
    return [page, picture] if is_raw else [page, picture, raw]


def _name(said: Report) -> str:
    return f"{said.paper}-nodes" if said.nodes > 1 else said.paper


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"{path.parent} cannot be made: {error.strerror}; give another directory"
        raise WriteError(error.errno, why) from error
    whole.write(path, content, "give another directory")


# ---- raw samples ------------------------------------------------------------------------------


def raw_samples(results: Results) -> str:
    """The records of a run without what names this machine: paths and host.

    Raises
    ------
    ArgumentError
        If they are of several sessions, whose headers one file cannot hold.
    """
    if len(results.headers) != 1:
        raise ArgumentError(f"raw samples are of one session, got {len(results.headers)}")
    records: list[Record] = [*results.headers, *results.provenances.values()]
    records += [*results.samples, *results.events]
    return "".join(_nameless(record) for record in records)


def _nameless(record: Record) -> str:
    values = _without_paths(json.loads(as_line(record)))
    if isinstance(record, Sample):
        values["command"] = []
    if isinstance(record, Provenance):
        values["host"] = ""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False) + "\n"


def _without_paths(value: Any) -> Any:
    """Of every absolute path its last part; of times what a clock can tell."""
    if isinstance(value, dict):
        return {key: _without_paths(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_paths(one) for one in value]
    if isinstance(value, str):
        return _PATH.sub(lambda found: found[1], value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


# ---- the page ---------------------------------------------------------------------------------


def html(results: Results, raw: Path) -> str:
    """Every cell as penstock report shows it; ``raw`` is where the samples lie beside the page."""
    session = bench_report.Session(str(raw), results, summarise(results), Wanted())
    return html_page.html(bench_report.report(session))


def markdown(said: Report, results: Results) -> str:
    """The page of a paper."""
    lines = [f"# {plain_text(said.title)}", "", plain_text(said.setting), ""]
    lines += _measured(said, results)
    lines += ["## Conclusions", "", *_conclusions(said.conclusions)]
    for table in said.tables:
        lines += _table(table)
    lines += _laws(said.laws)
    for series in said.series:
        lines += _series(series)
    lines += _machine(said, results)
    return "\n".join(lines).rstrip() + "\n"


def _measured(said: Report, results: Results) -> Iterator[str]:
    header = results.headers[0]
    places = said.places or {"": " and ".join(said.file_systems) or "an unknown file system"}
    kinds = ", ".join(f"{name}: {kind}" if name else kind for name, kind in places.items())
    across = f", across {said.nodes} nodes" if said.nodes > 1 else ""
    yield (
        f"Measured {header.created[:10]} with Penstock {header.penstock}: {said.samples} samples "
        f"in random interleaved blocks (seed {header.seed}), on {plain_text(kinds)}{across}. "
        f"Size *{said.size}*: {plain_text(said.scale)}."
    )
    yield ""
    if said.chosen:
        yield from (f"Chosen {plain_text(said.chosen)}.", "")
    yield from (f"- {plain_text(note)}" for note in said.notes)
    yield from (
        "",
        "A number of ours is the median; behind it (max - min) / median of its samples and how "
        "many they are. The conclusions and what decides them were committed before the "
        "first run ([conclusions.toml](conclusions.toml)).",
        "",
        "```sh",
        _command(said, results),
        f"penstock reproduce --table docs/reproductions/raw/{_name(said)}.jsonl.xz "
        "--pages docs/reproductions    # this page again, measuring nothing",
        "```",
        "",
        f"[The raw samples](raw/{_name(said)}.jsonl.xz); "
        f"every cell [as a report]({_name(said)}-report.html), to be opened in a browser.",
        "",
    )
    if said.failed:
        yield from ("What failed:", "", *(f"- {plain_text(one)}" for one in said.failed), "")


def _command(said: Report, results: Results) -> str:
    across = f" --launcher 'LAUNCHER -n {{ranks}}'    # across {said.nodes} nodes"
    return plan.command(anew.headers(results)[0]) + (across if said.nodes > 1 else "")


def _conclusions(conclusions: Sequence[Concluded]) -> Iterator[str]:
    counted = {v: sum(one.verdict == v for one in conclusions) for v in _VERDICTS}
    yield ", ".join(f"{number} *{verdict}*" for verdict, number in counted.items()) + "."
    yield ""
    yield from _rows(
        ["verdict", "conclusion", "the paper", "here"],
        [
            [
                f"**{one.verdict}**",
                plain_text(one.says),
                f"{plain_text(one.numbers)} ({plain_text(one.section)})",
                _here(one),
            ]
            for one in conclusions
        ],
    )


_VERDICTS = ("holds", "does not hold", "undecided", "cannot be tested here")


def _here(one: Concluded) -> str:
    if not one.places:
        return plain_text(one.why)
    told = (f"{p.place}: *{p.verdict}*, {plain_text(p.why)}" for p in one.places)
    return "<br>".join(told)


def _table(table: Table) -> Iterator[str]:
    where = f", on {table.place}" if table.place else ""
    yield from (f"## {plain_text(table.title)}{plain_text(where)}", "")
    if not any(entry for row in table.rows for entry in row.here):
        yield from ("Not measured.", "")
        return
    rows = []
    for row in table.rows:
        if any(row.paper):
            rows.append([plain_text(row.label), "paper", *map(plain_text, row.paper)])
        label = "" if any(row.paper) else plain_text(row.label)
        here = []
        for entry in row.here:
            shown = entry_text(entry).replace("\n", " ")
            spread = f" ({entry.spread:.0%}, {entry.n})" if entry and table.measured else ""
            here.append(f"{shown}{spread}")
        rows.append([label, "**here**", *here])
    yield from _rows([plain_text(table.unit), "", *map(plain_text, table.columns)], rows)


def _laws(laws: Sequence[LawReport]) -> Iterator[str]:
    """The paper's table of laws: a line for each call, the paper's and ours by file system."""
    if not laws:
        return
    places = list(dict.fromkeys(law.place for law in laws))
    systems = list(dict.fromkeys(kind for law in laws for kind in law.paper))
    heads = [f"paper, {kind}" for kind in systems] + [f"here, {p}" if p else "here" for p in places]
    rows = []
    for name in dict.fromkeys(law.law for law in laws):
        own = {law.place: law for law in laws if law.law == name}
        first = next(iter(own.values()))
        rows.append(
            [
                plain_text(name),
                *(first.paper.get(kind, "") for kind in systems),
                *(_law(own[place]) if place in own else "" for place in places),
            ]
        )
    yield from ("## Laws T = K(p) n: seconds, n in MB of 2^20 bytes", "")
    yield (
        "Ours: the better form, how far off it is (root mean square of the relative error), n, the "
        "fewest samples of a cell, and what the fit says, if these are enough. *Not crossed*: not "
        "each size was measured with each number of processes, so what processes do cannot be told "
        "from what the size does. *Not judged*: the CPUs were more than 80 % busy in some cells. "
        "*Left out*: samples below half of the median time of their cell, which a cache answered."
    )
    yield ""
    yield from _rows(["call", *heads], rows)


def _law(law: LawReport) -> str:
    if not law.here:
        return "-"
    off = f"{law.residuals[0]:.0%}, n={law.n}"
    off += f", {law.left_out} left out" if law.left_out else ""
    return f"{law.here[0]} ({off}): {law.verdict or '-'}{_cells_of(law)}"


def _cells_of(law: LawReport) -> str:
    """In how many cells of a law the CPUs were too busy."""
    found = re.search(r"in (\d+ of \d+) cells INVALID", law.why)
    return f" (CPUs busy in {found[1]})" if found else ""


def _series(series: Stretches) -> Iterator[str]:
    if not any(rate for row in series.rows for rate in row):
        return
    where = f", on {series.place}" if series.place else ""
    yield from (f"## {plain_text(series.title + where)}", "")
    number = len(series.rows)
    rows = [
        [f"{i} of {number}", *("-" if rate is None else number_text(rate) for rate in row)]
        for i, row in enumerate(series.rows, start=1)
    ]
    yield from _rows(["stretch", *map(plain_text, series.variants)], rows)


def _machine(said: Report, results: Results) -> Iterator[str]:
    """CPU and memory once, and each file system."""
    yield from ("## Machine", "")
    facts = [flat(p.model_dump()) for p in results.provenances.values()]
    for name in _MACHINE:
        values = dict.fromkeys(str(f[name]) for f in facts if f.get(name) not in (None, ""))
        if values:
            yield f"- {name}: {plain_text(', '.join(values))}"
    names = _places_of_provenances(said, results)
    for provenance in results.provenances.values():
        told = flat(provenance.file_system)
        shown = ", ".join(f"{k} {_PATH.sub(_last, str(told[k]))}" for k in _OF_PLACE if told.get(k))
        label = names.get(provenance.id, "")
        yield f"- file system{f' {label}' if label else ''}: {plain_text(shown)}"
    yield ""


def _last(found: re.Match[str]) -> str:
    return found[1]


def _places_of_provenances(said: Report, results: Results) -> dict[str, str]:
    """Two directories of one mount are one file system."""
    found: dict[str, list[str]] = {}
    for sample in results.samples:
        name, colon, _ = sample.cell.partition(": ")
        own = found.setdefault(sample.provenance, [])
        if colon and name in said.places and name not in own:
            own.append(name)
    return {provenance: " and ".join(names) for provenance, names in found.items()}


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + " --- |" * len(heads)
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""
