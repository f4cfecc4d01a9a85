"""Samples as Parquet and CSV: one row per sample, one column per number, for other programs.

Columns are named as in the results file, nested names joined by dots, what the program printed
without ``result.`` before it; each row carries its provenance as ``provenance.*``. Series stay
lists in Parquet and are JSON text in CSV. Bytes, seconds and bytes per second throughout.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from penstock import whole
from penstock.bench.flat import flat
from penstock.bench.sample import Sample
from penstock.bench.store import Results
from penstock.errors import ArgumentError

Format = Literal["parquet", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
_Row = dict[str, Any]


def export(
    results: Results, directory: Path, formats: Sequence[Format] = FORMATS, stem: str = "samples"
) -> list[Path]:
    """Write the samples into ``directory`` as ``STEM.parquet`` and ``STEM.csv``.

    Parameters
    ----------
    results : Results
        What penstock.bench.store loaded.
    directory : Path
        An existing directory. A file of the same name is replaced whole, or stays as it was.
    formats : sequence of {"parquet", "csv"}
        Which to write.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    ArgumentError
        If a format is unknown.
    WriteError
        If the operating system refuses.
    """
    for one in formats:
        if one not in FORMATS:
            raise ArgumentError(f'export knows {" and ".join(FORMATS)}, got "{one}"')
    table = frame(results)
    return [_write(table, directory / f"{stem}.{one}", one) for one in formats]


def frame(results: Results) -> pl.DataFrame:
    """All samples as a table, warm-ups, canaries and failed ones too."""
    rows = [_row(sample, results) for sample in results.samples]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])


def _row(sample: Sample, results: Results) -> _Row:
    values = sample.model_dump(by_alias=True, exclude={"record"})
    result = values.pop("result", None) or {}
    row = flat(values) | flat(result)
    where = results.provenances.get(sample.provenance)
    if where is not None:
        facts = where.model_dump(exclude={"record", "id"})
        row |= {f"provenance.{name}": value for name, value in flat(facts).items()}
    return row


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    """A column of the narrowest type that holds every value; JSON text where there is none."""
    kind = _kind(values)
    if kind is None:
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        return pl.Series(name, texts, dtype=pl.String)
    return pl.Series(name, values, dtype=kind, strict=False)


def _kind(values: Sequence[Any]) -> pl.DataType | None:
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, list) for v in present):
        inside = [x for v in present for x in v]
        if all(isinstance(x, str) for x in inside):
            return pl.List(pl.String())
        inner = _number(inside)
        return pl.List(inner) if inner is not None else None
    if all(isinstance(v, str) for v in present):
        return pl.String()
    if all(isinstance(v, bool) for v in present):
        return pl.Boolean()
    return _number(present)


def _number(values: Sequence[Any]) -> pl.DataType | None:
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        return None
    whole = all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in values)
    return pl.Int64() if whole else pl.Float64()


def _write(table: pl.DataFrame, path: Path, kind: Format) -> Path:
    content = io.BytesIO()
    if kind == "parquet":
        table.write_parquet(content)
    else:
        _lists_as_text(table).write_csv(content)
    remedy = "the samples are kept: when it can, the same command writes it from them"
    whole.write(path, content.getvalue(), remedy)
    return path


def _lists_as_text(table: pl.DataFrame) -> pl.DataFrame:
    texts = [
        pl.Series(c.name, [None if v is None else json.dumps(v.to_list()) for v in c], pl.String)
        for c in table
        if isinstance(c.dtype, pl.List)
    ]
    return table.with_columns(texts) if texts else table
