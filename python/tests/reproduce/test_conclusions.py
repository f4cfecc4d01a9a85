"""conclusions.toml is read strictly: what is wrong is named with the file, the id, the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError
from penstock.reproduce import PAPERS, conclusions
from penstock.reproduce.conclusions import PREDICATES

GOOD = """
[[conclusion]]
id = "liao2007-x"
section = "4"
says = "s"
numbers = "n"
effect = 0.1
samples = 6
[[conclusion.claim]]
predicate = "faster"
cells = ["B on *"]
of = ["two-stage"]
over = ["collective"]
"""


def read(tmp_path: Path, text: str) -> list[conclusions.Conclusion]:
    path = tmp_path / "conclusions.toml"
    path.write_text(text)
    return conclusions.load(path)


def test_the_shipped_file_has_conclusions_of_every_paper_and_uses_every_predicate() -> None:
    found = conclusions.load()
    assert {one.paper for one in found} == set(PAPERS)
    used = {type(claim) for one in found for claim in one.claims}
    assert used == set(PREDICATES.values())
    assert all(one.effect == 0.10 for one in found)
    assert all(bool(one.claims) != bool(one.untestable) for one in found)


def test_a_conclusion_is_read(tmp_path: Path) -> None:
    (one,) = read(tmp_path, GOOD)
    assert (one.paper, one.effect, one.samples) == ("liao2007", 0.1, 6)
    assert isinstance(one.claims[0], conclusions.Faster)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('numbers = "n"', 'number = "n"', "there is no key number; did you mean numbers?"),
        ("effect = 0.1\n", "", "effect is missing"),
        ("effect = 0.1", "effect = 10", "effect: input should be less than 1, got 10"),
        ("samples = 6", 'samples = "many"', "samples: input should be a valid integer"),
        ("liao2007-x", "liao2008-x", "id must begin with a paper, got liao2008; did you mean"),
        ('"faster"', '"fastest"', "there is no predicate fastest; did you mean faster?"),
        ('over = ["collective"]', 'over = ["colective"]', "has no variant colective in B on *; "),
        ('of = ["two-stage"]\n', "", "claim 1: of is missing"),
        ('of = ["two-stage"]', 'off = ["two-stage"]', "there is no key off; did you mean of?"),
        ('"B on *"', '"B auf 16"', "liao2007 has no cell B auf 16"),
        ('of = ["two', 'measure = "speed"\nof = ["two', "there is no measure speed"),
        ("samples = 6", 'samples = 6\nneeds = ["nsf"]', "there is no nsf; did you mean nfs?"),
        ("samples = 6", 'samples = 6\nuntestable = "why"', "one of the two"),
        ("over = [", 'in = "some"\nover = [', "input should be 'every' or 'most', got 'some'"),
        ("over = [", 'over_cells = ["B on 16", "B on 25"]\nover = [', "over_cells must be 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ArgumentError) as error:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert said in str(error.value)
    assert str(tmp_path / "conclusions.toml") in str(error.value)
    assert "liao200" in str(error.value)


def test_an_id_may_be_there_once(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="liao2007-x is there twice"):
        read(tmp_path, GOOD + GOOD)


def test_a_range_must_be_one(tmp_path: Path) -> None:
    text = GOOD.replace('"faster"', '"ratio"\nleast = 2.0\nmost = 1.0')
    with pytest.raises(ArgumentError, match=r"least must be below most \(1\), got 2"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "keys",
    [
        'along = ["two-stage"]\ncells = ["B on 16"]',
        'along = ["two-stage", "collective"]',
        'along_cells = ["B on 16", "B on 25"]',
        'along_cells = ["B on 16", "B on 25"]\nof = ["two-stage"]\ncells = ["B on 16"]',
    ],
)
def test_a_trend_goes_along_one_thing(tmp_path: Path, keys: str) -> None:
    head = GOOD[: GOOD.index("predicate")]
    with pytest.raises(ArgumentError, match="claim 1: "):
        read(tmp_path, head + f'predicate = "rising"\n{keys}\n')


def test_a_file_that_is_not_there_or_no_toml_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read"):
        conclusions.load(tmp_path / "none.toml")
    with pytest.raises(ArgumentError, match="is not TOML"):
        read(tmp_path, "[[conclusion")
