"""Histories that fail are cut until only what makes them fail is left."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "histories"))
from shrink import Lines, shrink

HISTORY = [
    "ranks 3",
    "open 0 all rw",
    "open 2 all w",
    "view 0 all 4 16:2:6 24:2:6 32:2:6",
    "write_at 0 @1 later 100:30",
    "write_at_all 0 all split 0:3 3:3 6:3",
    "seek 0 @2 set 40",
    "write 2 @2 now 0:5",
    "point 0 all -",
    "read_at 0 @1 now 100:30",
]


def go_on() -> bool:
    return True


def test_only_what_fails_is_left() -> None:
    def fails(history: Lines) -> bool:
        verbs = [line.split()[0] for line in history]
        return "write_at" in verbs and "read_at" in verbs

    assert shrink(HISTORY, fails, go_on) == [
        "ranks 2",
        "write_at 0 @1 now 0:0",
        "read_at 0 @1 now 0:0",
    ]


def test_ranks_that_do_not_matter_are_left_out() -> None:
    def fails(history: Lines) -> bool:
        return any(line.startswith("write_at_all") for line in history)

    assert shrink(HISTORY, fails, go_on) == ["ranks 1", "write_at_all 0 all now 0:0"]


def test_numbers_become_small_as_far_as_it_still_fails() -> None:
    def fails(history: Lines) -> bool:
        counts = [int(line.split()[-1].split(":")[1]) for line in history if "write_at 0" in line]
        return any(count >= 7 for count in counts)

    assert shrink(HISTORY, fails, go_on)[1:] == ["write_at 0 @1 now 0:7"]


def test_what_is_found_by_the_end_of_its_time_still_fails() -> None:
    tries = 0

    def fails(history: Lines) -> bool:
        nonlocal tries
        tries += 1
        return "open 0 all rw" in history

    shortest = shrink(HISTORY, fails, lambda: tries < 3)
    assert "open 0 all rw" in shortest
