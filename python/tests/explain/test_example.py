"""Described jobs: what they may say, and that mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError
from penstock.explain import example, views
from penstock.explain.shipped import DEFAULT, shipped

SMALL = """
title = "small"
ranks = 2
[[access]]
kind = "contiguous"
bytes = "4KiB"
"""


def test_sizes_may_have_units() -> None:
    job = example.parse(SMALL, "small.toml")
    access = job.access[0]
    assert isinstance(access, example.Contiguous)
    assert access.bytes == 4096


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_example_is_read(name: str) -> None:
    assert example.load(name).title


def test_at_least_three_examples_are_shipped() -> None:
    assert len(shipped()) >= 3
    assert DEFAULT in shipped()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ranks = 2", "rank = 2"), "small.toml: there is no key rank; did you mean ranks."),
        (("bytes =", "byte ="), r"access\.0"),
        (('"contiguous"', '"contigous"'), r"access\.0"),
        (('"4KiB"', '"4KiBi"'), "4KiBi"),
        (("ranks = 2", "ranks = 0"), "ranks"),
        (("ranks = 2", 'ranks = "2"'), "ranks"),
        (("title", "= ="), "small.toml is not TOML"),
        (("[[access]]", f"deep = {'[' * 5000}{']' * 5000}\n[[access]]"), "small.toml is not TOML"),
        (("ranks = 2", f"ranks = {'9' * 5000}"), "small.toml is not TOML"),
        (("[[access]]", "[[access]]\nranks = [0, 2]"), "below 2, got 2"),
        (("[[access]]", "[[access]]\nranks = [0, 0]"), "rank 0 has two"),
        (("ranks = 2", "ranks = 5000"), "equal to 4096, got 5000"),
        (('"4KiB"', "9223372036854775808"), r"access\.0\.contiguous\.bytes: .*, got 9223372036854"),
        (
            ('"4KiB"', "1000000000000000"),
            "contiguous ends at byte 2000000000000000: it must end at",
        ),
        (('"4KiB"', '"1PiB"'), "contiguous ends at byte 2251799813685248: it must end at 1125"),
        (
            ("bytes =", "offset = 9223372036854775800\nbytes ="),
            "offset: .*, got 9223372036854775800",
        ),
        (("ranks = 2", f"ranks = 2\nnodes = {10**20}"), f"nodes: .*, got {10**20}"),
        (("ranks = 2", "ranks = 2\ncores_per_node = 3000000000"), "cores_per_node: .* 2147483647"),
        (("[[access]]", "[geometry]\nstripe = '5GiB'\n[[access]]"), "stripe: .*, got .5GiB"),
        (("[[access]]", "[geometry]\nblock = 9223372036854775807\n[[access]]"), "geometry.block: "),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        example.parse(SMALL.replace(*change), "small.toml")


def test_a_misspelt_key_names_the_nearest() -> None:
    text = SMALL.replace("bytes =", "offsett = 1\nbytes =")
    with pytest.raises(ArgumentError, match="did you mean offset"):
        example.parse(text, "small.toml")


def test_a_title_moves_no_cursor() -> None:
    text = SMALL.replace("small", "\\u001b[2Jsmall")
    assert example.parse(text, "small.toml").title == "\ufffd[2Jsmall"


def test_a_file_that_cannot_be_read_names_the_shipped_examples(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="interleaved"):
        example.load(str(tmp_path / "none.toml"))


def test_a_grid_must_have_one_cell_per_rank() -> None:
    text = SMALL.replace('"contiguous"', '"subarray"').replace(
        'bytes = "4KiB"', "sizes = [8, 8]\ngrid = [3, 1]"
    )
    with pytest.raises(ArgumentError, match="3 cells for 2 ranks"):
        example.parse(text, "small.toml")


@pytest.mark.parametrize(
    ("access", "message"),
    [
        ('"interleaved"\nblock = 1125899906842624\nblocks = 2', "interleaved ends at byte 450"),
        ('"vector"\nblock = 1\nstride = "1PiB"\nblocks = 2\nrank_offset = 1', "vector ends at"),
        ('"vector"\nblock = 2\nstride = 1\nblocks = 2\nrank_offset = 2', "least block, 2, got 1"),
        (f'"subarray"\nsizes = [{10**20}, 2]\ngrid = [2, 1]', f"sizes.0: .*, got {10**20}"),
        ('"subarray"\nsizes = [67108864, 67108864]\ngrid = [2, 1]', "subarray ends at byte 3602"),
    ],
)
def test_an_access_beyond_64_bits_is_refused_by_name(access: str, message: str) -> None:
    text = SMALL.replace('"contiguous"', access).replace('bytes = "4KiB"', "")
    with pytest.raises(ArgumentError, match=message):
        example.parse(text, "small.toml")


def test_boxes_of_a_grid_cover_the_array_once() -> None:
    text = """
    title = "box"
    ranks = 6
    [[access]]
    kind = "subarray"
    sizes = [5, 7, 3]
    grid = [3, 2, 1]
    element = 4
    """
    named: list[int] = []
    for part in views.parts(example.parse(text, "box.toml")):
        for offset, block, stride, count in part.view.runs((0, part.size)):
            named += [offset + i * stride + j for i in range(count) for j in range(block)]
    assert sorted(named) == list(range(5 * 7 * 3 * 4))
