"""A story says of every byte who holds it, who writes it, and nothing else."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from penstock.errors import ArgumentError
from penstock.explain import example, svg, table
from penstock.explain.shipped import shipped
from penstock.explain.story import Story, join, tell


@pytest.fixture(params=shipped())
def story(request: pytest.FixtureRequest) -> Story:
    return tell(example.load(request.param))


def test_every_held_byte_is_written_exactly_once(story: Story) -> None:
    written = sorted(
        piece
        for turns in story.cycles
        for turn in turns
        for delivery in turn.deliveries
        for piece in delivery.pieces
    )
    assert sum(end - begin for begin, end in written) == story.size
    held = sorted(piece for pieces in story.held for piece in pieces)
    assert join(written) == join(held)


def changed(name: str, method: str) -> Story:
    return tell(example.load(name).model_copy(update={"method": method}))


def test_what_auto_was_given_is_meant_for_what_exchanges() -> None:
    plain = changed("blocks", "auto")
    for method in ("auto(writers=2)", "auto(cycle=8KiB)"):
        told = changed("blocks", method)
        assert told.method.endswith("individual is chosen")
        assert told.cycles == plain.cycles


def test_what_the_file_system_lets_not_be_is_not_drawn() -> None:
    assert not changed("blocks", "individual").exchanges
    told = changed("holes", "individual")
    assert told.exchanges
    assert told.method.endswith("two_phase is chosen")


def test_each_turn_writes_only_inside_its_extent(story: Story) -> None:
    for turns in story.cycles:
        for turn in turns:
            for delivery in turn.deliveries:
                assert all(turn.extent[0] <= b and e <= turn.extent[1] for b, e in delivery.pieces)
                assert sum(e - b for b, e in delivery.pieces) == delivery.size


def test_holes_and_bytes_together_are_the_bounds(story: Story) -> None:
    held = sorted(piece for pieces in story.held for piece in pieces)
    assert join(sorted([*held, *story.holes])) == (story.bounds,)


def test_the_json_tells_the_whole_plan(story: Story) -> None:
    told = table.as_json(story)
    assert told["schema_version"] == 1
    moved = sum(
        d["stream"][1] - d["stream"][0]
        for turns in told["cycles"]
        for turn in turns
        for d in turn["deliveries"]
    )
    assert moved == sum(told["bytes_by_rank"])


def test_the_picture_is_well_formed_self_contained_and_described(story: Story) -> None:
    text = svg.draw(story)
    root = ElementTree.fromstring(text)  # noqa: S314 - we wrote it
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == story.title
    assert "writes" in (root.findtext(f"{space}desc") or "")
    assert not re.search(r"(href|url\((?!#)|@import)", text)
    for turns in story.cycles:
        for turn in turns:
            assert f"rank {turn.rank}" in text


def test_every_written_piece_is_drawn_at_its_place(story: Story) -> None:
    scale = svg.Scale(story.bounds, svg.LEFT, svg.RIGHT)
    drawn = re.findall(
        r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*><title>rank', svg.draw(story)
    )
    places = {(float(x), float(width)) for x, width in drawn}
    for turns in story.cycles:
        for turn in turns:
            for delivery in turn.deliveries:
                for piece in delivery.pieces:
                    x0, x1 = scale.span(piece)
                    assert (round(x0, 2), round(x1 - x0, 2)) in places


def test_cycles_that_are_not_drawn_are_announced() -> None:
    text = """
    title = "long"
    ranks = 2
    method = "two_phase(writers=1, cycle=4KiB)"
    [[access]]
    kind = "contiguous"
    bytes = "64KiB"
    """
    assert "20 more cycles follow and are not drawn" in svg.draw(tell(example.parse(text, "long")))


def test_more_ranks_than_colours_are_refused() -> None:
    text = 'title = "wide"\nranks = 17\n[[access]]\nkind = "contiguous"\nbytes = 4096\n'
    story = tell(example.parse(text, "wide"))
    assert len(table.rows(story)) > 0
    with pytest.raises(ArgumentError, match="16 ranks apart, got 17"):
        svg.draw(story)


def test_a_job_that_writes_nothing_is_told() -> None:
    text = 'title = "none"\nranks = 2\n[[access]]\nkind = "contiguous"\nbytes = 0\n'
    story = tell(example.parse(text, "none"))
    assert table.rows(story) == []
    assert ElementTree.fromstring(svg.draw(story)) is not None  # noqa: S314 - we wrote it


def test_auto_says_what_was_chosen() -> None:
    job = example.load("interleaved").model_copy(update={"method": "auto"})
    assert tell(job).method.endswith("two_phase is chosen")


def test_write_behind_says_what_becomes_of_independent_writes() -> None:
    job = example.load("interleaved")
    for method, told in (("write_behind(stages=1)", True), ("cyclic", False)):
        story = tell(job.model_copy(update={"method": method}))
        assert ("independent writes" in dict(table.facts(story))) is told, method


def test_too_many_pieces_are_refused() -> None:
    text = (
        'title = "many"\nranks = 1\n[[access]]\nkind = "vector"\nblock = 1\nstride = 3\n'
        "blocks = 1000000\nrank_offset = 1\n"
    )
    with pytest.raises(ArgumentError, match="make it smaller"):
        tell(example.parse(text, "many"))


def test_many_pieces_of_many_ranks_are_refused() -> None:
    text = (
        'title = "many"\nranks = 4096\n[[access]]\nkind = "interleaved"\nblock = 1\nblocks = 100\n'
    )
    with pytest.raises(ArgumentError, match="200000 pieces in all: make it smaller"):
        tell(example.parse(text, "many"))


@pytest.mark.parametrize("method", ["two_phase", "individual", "dynamic_segmentation", "cyclic"])
@pytest.mark.parametrize(
    "access",
    [
        'kind = "contiguous"\nbytes = "400TiB"',
        'kind = "vector"\nblock = "100TiB"\nstride = "400TiB"\nblocks = 2\nrank_offset = "100TiB"',
    ],
)
def test_too_many_cycles_are_refused_at_once(method: str, access: str) -> None:
    text = f'title = "large"\nranks = 2\nmethod = "{method}"\n[[access]]\n{access}\n'
    with pytest.raises(ArgumentError, match="cycles, and 5000 can be told: make it smaller"):
        tell(example.parse(text, "large"))
