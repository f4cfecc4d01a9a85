"""Parts of a suite: the quick tier deals its cases out among the MPI libraries.

A case is known by the numbers of its choices, such as which fault and which method. Neighbours fall
to different parts, so that each part has every value of every choice, though not each with every
other; all parts together are the suite. tests/lib/CMakeLists.txt says which library has which part.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """The ``part``th, from 1 on, of so many parts; by default everything."""

    part: int = 1
    parts: int = 1

    def takes(self, *choices: int) -> bool:
        return sum(choices) % self.parts == self.part - 1

    def of(self, cases: Sequence[str]) -> list[str]:
        """Of a list this part's."""
        return [case for place, case in enumerate(cases) if self.takes(place)]


WHOLE = Share()


def parse_share(text: str) -> Share:
    """``2/3``: the second of three parts."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"must be PART/PARTS, such as 2/3, got {text!r}")
    return Share(int(part), int(parts))


def add_share(parser: argparse.ArgumentParser) -> None:
    """The option of suites whose cases can be dealt out."""
    parser.add_argument(
        "--share", type=parse_share, default=WHOLE, metavar="PART/PARTS",
        help="only this part of the cases; all parts together are the suite",
    )  # fmt: skip
