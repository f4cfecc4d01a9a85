"""What a picture of any plan keeps: every text can be read, every byte of the file is drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

import pytest

from penstock import _core
from penstock.explain import example, svg
from penstock.explain.rows import WIDTH
from penstock.explain.shipped import shipped
from penstock.explain.story import Story, tell

ALGORITHMS = [a.name for a in _core.algorithms()]
TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" font-size="(\d+)"([^>]*)>([^<]*)</text>')


@dataclass(frozen=True)
class Text:
    """Where a line of text is, by a mean width of its letters."""

    x: float
    y: float
    size: float
    attributes: str
    content: str

    def ends(self) -> tuple[float, float]:
        """Left and right."""
        width = 0.56 * self.size * len(self.content)
        begin = self.x - (width / 2 if 'text-anchor="middle"' in self.attributes else 0)
        return begin, begin + width

    def overlaps(self, other: Text) -> bool:
        """Letters lie upon letters."""
        mine, theirs = self.ends(), other.ends()
        is_beside = mine[1] <= theirs[0] or theirs[1] <= mine[0]
        return abs(self.y - other.y) < 9 and not is_beside


def texts(picture: str) -> list[Text]:
    """Every line of text of a picture."""
    return [
        Text(float(x), float(y), float(size), attributes, content)
        for x, y, size, attributes, content in TEXT.findall(picture)
    ]


def story(name: str, method: str) -> Story:
    """A shipped example with another method."""
    return tell(example.load(name).model_copy(update={"method": method}))


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("writers", [1, 2, 4])
def test_every_text_can_be_read(name: str, algorithm: str, writers: int) -> None:
    options = "cycle=8KiB"
    if "writers" in dict(next(a for a in _core.algorithms() if a.name == algorithm).options):
        options += f", writers={writers}"
    found = texts(svg.draw(story(name, f"{algorithm}({options})")))
    assert len(found) > 10
    pairs = [(a.content, b.content) for a, b in combinations(found, 2) if a.overlaps(b)]
    assert not pairs
    assert all(t.ends()[0] >= 0 and t.ends()[1] <= WIDTH for t in found)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_byte_of_the_file_is_written_once(algorithm: str) -> None:
    told = story("interleaved", f"{algorithm}(cycle=8KiB)")
    written = sorted(
        p for turns in told.cycles for t in turns for d in t.deliveries for p in d.pieces
    )
    assert sum(end - begin for begin, end in written) == told.size
    picture = svg.draw(told)
    for begin, end in written:
        assert f"[{_core.format_size(begin)}, {_core.format_size(end)})" in picture


def test_writers_that_interleave_have_pages() -> None:
    scattered = svg.draw(story("interleaved", "dynamic_segmentation(writers=2, cycle=8KiB)"))
    divided = svg.draw(story("interleaved", "two_phase(writers=2, cycle=8KiB)"))
    assert "writers' pages" in scattered
    assert "pages" not in divided
    assert scattered.count(">one write<") == 1


def test_a_thread_that_writes_is_named() -> None:
    picture = svg.draw(story("interleaved", "dedicated_writer(cycle=8KiB)"))
    assert "writer 0 is a thread of rank 0" in picture
    assert "while cycle 3 is collected" in picture
    assert "while cycle 4" not in picture


@pytest.mark.parametrize("ranks", range(1, 17))
def test_every_rank_of_the_legend_is_in_the_picture(ranks: int) -> None:
    work = example.load("blocks").model_copy(update={"ranks": ranks, "nodes": 1})
    chips = [t for t in texts(svg.draw(tell(work))) if re.fullmatch(r"rank \d+", t.content)]
    assert len({t.content for t in chips}) == ranks
    assert all(t.ends()[1] <= WIDTH for t in chips)
    assert not [(a, b) for a, b in combinations(chips, 2) if a.overlaps(b)]
