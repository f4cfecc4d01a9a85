"""Pages of reference that are written by hand name all that the sources have, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import schema_table

ROOT = Path(__file__).parents[2]
HINTS = (ROOT / "docs" / "reference" / "hints.md").read_text()
JOBS = (ROOT / "docs" / "reference" / "explain-example.md").read_text()
EXPLAIN = ROOT / "python" / "penstock" / "explain"


def rows(heading: str, page: str = HINTS) -> list[str]:
    """The first cells of the table below a heading."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def strings(path: str, pattern: str) -> list[str]:
    """The strings of a list in a source file."""
    match = re.search(pattern, (ROOT / path).read_text(), re.DOTALL)
    assert match, f"{path} has no list as {pattern}"
    return re.findall(r'"(\w+)"', match[1])


def test_every_hint_of_penstock_is_named() -> None:
    keys = strings("src/pmpi/hints.cpp", r"for \(const char\* key :\s*\{(.*?)\}\)")
    assert rows("Hints of Penstock") == [f"penstock_{key}" for key in keys]


def test_every_hint_of_others_is_named() -> None:
    keys = strings("src/engine/foreign_hints.cpp", r"kForeignKeys = \{(.*?)\}")
    assert sorted(rows("Hints of MPI and ROMIO")) == sorted(keys)


def test_a_table_file_takes_the_keys_that_are_hints() -> None:
    entries = re.findall(
        r'\{"(\w+)", (?:"\w+"|nullptr), "[^"]+",\s*Type::\w+,\s*(true|false),\s*(true|false)',
        (ROOT / "src" / "engine" / "config.cpp").read_text(),
    )
    per_file = [name for name, _, of_file in entries if of_file == "true"]
    assert sorted(f"penstock_{name}" for name in per_file) == sorted(rows("Hints of Penstock"))


def fields(model: str) -> list[str]:
    """The keys that a class of described jobs has itself, in its order."""
    source = ast.parse((EXPLAIN / "example.py").read_text())
    [body] = [n.body for n in source.body if isinstance(n, ast.ClassDef) and n.name == model]
    named = [n.target for n in body if isinstance(n, ast.AnnAssign)]
    return [target.id for target in named if isinstance(target, ast.Name)]


def test_every_key_of_a_described_job_is_named() -> None:
    assert rows("The job", JOBS) == fields("Example")
    assert rows("`[geometry]`", JOBS) == fields("FileGeometry")
    assert rows("`[[access]]`", JOBS) == ["kind", *fields("_Access")]


def test_every_kind_of_access_is_named_with_its_keys() -> None:
    source = (EXPLAIN / "example.py").read_text()
    kind_of = r'^class (\w+)\(_Access\):.*?kind: Literal\["(\w+)"\]'
    kinds = re.findall(kind_of, source, re.MULTILINE | re.DOTALL)
    assert kinds
    for model, kind in kinds:
        assert f'`"{kind}"`' in JOBS
        assert ["kind", *rows(f"`{kind}`", JOBS)] == fields(model)


def test_every_shipped_job_is_named_and_one_is_there_whole() -> None:
    shipped = sorted((EXPLAIN / "examples").glob("*.toml"))
    assert rows("Shipped examples", JOBS) == [file.stem for file in shipped]
    assert any(file.read_text() in JOBS for file in shipped)


SCHEMA = {
    "properties": {
        "rate": {"$ref": "#/$defs/rate"},
        "files": {"type": "array", "items": {"$ref": "#/$defs/file"}, "description": "Each."},
        "times": {"type": "object", "properties": {"open_s": {"type": "number"}}},
    },
    "required": ["rate", "times"],
    "$defs": {
        "rate": {"type": ["number", "null"]},
        "file": {"description": "One.", "properties": {"path": {"type": "string"}}},
    },
}


def test_a_schema_is_a_table_for_each_kind_of_object() -> None:
    assert schema_table.tables(SCHEMA) == (
        "| Member | Value | |\n|---|---|---|\n"
        "| `rate` | number or null |  |\n"
        "| `files` | array of `file` | Each; may be missing |\n"
        "| `times` | object |  |\n"
        "| `times.open_s` | number | may be missing |\n"
        "\n## `file`\n\nOne.\n\n"
        "| Member | Value | |\n|---|---|---|\n"
        "| `path` | string | may be missing |\n"
    )
