"""The picture of the curves: every value inside its diagram, every text readable."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from penstock.simulate import figure
from penstock.simulate.output import System

SVG = "{http://www.w3.org/2000/svg}"
SYSTEMS = {
    "paper": System(),
    "nodes": System(nodes=4, network_ratio=20),
    "file order": System(order="file"),
    "buffer": System(buffer_bytes=8 << 20),
    "model 1": System(buffer_bytes=0),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_curve_lies_inside_the_picture(name: str) -> None:
    root = ElementTree.fromstring(figure.draw(SYSTEMS[name]))  # noqa: S314 - our own
    curves = [p for p in root.iter(f"{SVG}path") if p.find(f"{SVG}title") is not None]
    assert len(curves) >= 5
    for curve in curves:
        numbers = [float(x) for x in re.findall(r"[\d.]+", curve.attrib["d"])]
        places = list(zip(numbers[::2], numbers[1::2], strict=True))
        assert len(places) == 30
        assert all(0 <= x <= figure.WIDTH and 0 <= y <= figure.HEIGHT for x, y in places)
        assert all(a[0] < b[0] for a, b in pairwise(places))


def test_the_papers_points_stand_beside_its_parameters_alone() -> None:
    assert figure.draw(SYSTEMS["paper"]).count("<title>the paper, ") == 2
    other = replace(System(), paging_ratio=0.25)
    assert "the paper" not in figure.draw(other)


def test_rates_of_several_nodes_are_in_all_their_disks() -> None:
    assert figure.draw(SYSTEMS["nodes"]).count("rate / all 4 raw disks") == 2
    assert figure.draw(SYSTEMS["paper"]).count("rate / raw disk") == 2


def test_the_words_name_what_is_drawn() -> None:
    words = re.findall(r"<desc[^>]*>([^<]*)</desc>", figure.draw(System()))[0]
    assert "At 5 times the memory" in words
