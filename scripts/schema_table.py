"""A JSON schema as Markdown: a table for each kind of object, a row for each member."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def tables(schema: Schema, *, heading: str = "##") -> str:
    """The object itself, or each that it may be one of, and then those that these are made of."""
    named: dict[str, Schema] = schema.get("$defs", {})
    tops = [_name(one) for one in schema.get("oneOf", [])]
    others = [name for name in named if name not in tops and "properties" in named[name]]
    parts = [] if tops else [_table(schema, named)]
    for name in [*tops, *others]:
        said = named[name].get("description", "").replace("``", "`")
        parts += [f"{heading} `{name}`\n", *([f"{said}\n"] if said else [])]
        parts.append(_table(named[name], named))
    return "\n".join(parts)


def _table(schema: Schema, named: dict[str, Schema]) -> str:
    rows = "".join(f"| {' | '.join(row)} |\n" for row in _rows("", schema, named))
    return f"| Member | Value | |\n|---|---|---|\n{rows}"


def _rows(prefix: str, schema: Schema, named: dict[str, Schema]) -> Iterator[tuple[str, str, str]]:
    """A member, and those of the object that it is."""
    required = schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        path = prefix + name
        missing = "" if name in required else "may be missing"
        said = [member.get("description", "").replace("``", "`").replace("|", "\\|"), missing]
        yield f"`{path}`", _value(member, named), "; ".join(s.rstrip(".") for s in said if s)
        inner = member.get("items", member)
        yield from _rows(f"{path}[]." if "items" in member else f"{path}.", inner, named)


def _name(member: Schema) -> str:
    return str(member["$ref"]).rsplit("/", 1)[-1]


def _value(member: Schema, named: dict[str, Schema]) -> str:
    """The kind of a value, in the words of JSON; objects that have a table of their own by name."""
    if "$ref" in member:
        name = _name(member)
        return f"`{name}`" if "properties" in named[name] else _value(named[name], named)
    if "anyOf" in member:
        return " or ".join(_value(one, named) for one in member["anyOf"])
    if "const" in member or "enum" in member:
        values = member.get("enum", [member.get("const")])
        return ", ".join("null" if v is None else f"`{v}`" for v in values)
    if "items" in member:
        return f"array of {_value(member['items'], named)}"
    kinds = member.get("type", "any value")
    text = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return text + _contents(member, named)


def _contents(member: Schema, named: dict[str, Schema]) -> str:
    """Of an object that holds values of one kind by name."""
    inner = member.get("additionalProperties")
    if not isinstance(inner, dict):
        return ""
    names = ", ".join(f"`{name}`" for name in member.get("required", []))
    return f" of {_value(inner, named)}" + (f": {names}, ..." if names else "")
