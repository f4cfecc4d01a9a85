"""The check of docs/algorithms.md finds what its page lacks."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import drawings

PAGE = """# How

## `even`

penstock explain --method 'even(writers=2)' --draw docs/images/plan-even.svg

![even](images/plan-even.svg)
"""


def test_a_page_that_draws_and_shows_all_has_no_complaint() -> None:
    assert drawings.complaints(PAGE, ["even"], ["plan-even.svg"]) == []
    assert drawings.drawn_by(PAGE) == {
        "plan-even.svg": "explain --method 'even(writers=2)' --draw docs/images/plan-even.svg"
    }


def test_an_algorithm_without_a_section_is_said() -> None:
    assert drawings.complaints(PAGE, ["even", "odd"], []) == ["odd has no section with a picture"]


def test_a_section_without_an_algorithm_is_said() -> None:
    assert drawings.complaints(PAGE, [], []) == ["even is a section, but no algorithm"]


def test_pictures_that_nobody_draws_or_shows_are_said() -> None:
    shown_only = PAGE + "![old](images/plan-old.svg)\n"
    assert drawings.complaints(shown_only, ["even"], ["plan-older.svg"]) == [
        "plan-old.svg is shown, but no command draws it",
        "plan-older.svg is in docs/images, but no command draws it",
    ]
    drawn_only = PAGE.replace("![even](images/plan-even.svg)", "")
    assert drawings.complaints(drawn_only, ["even"], []) == [
        "plan-even.svg is drawn, but not shown"
    ]


def test_a_simulation_is_drawn_by_its_command_too() -> None:
    page = """penstock simulate --draw docs/images/model-x.svg

![x](images/model-x.svg)
"""
    assert drawings.complaints(page, [], ["model-x.svg"]) == []
    assert drawings.complaints(page, [], ["model-y.svg"]) == [
        "model-y.svg is in docs/images, but no command draws it"
    ]
