"""penstock._core: what Python may rely on. The arithmetic itself is tested beside the C++."""

from __future__ import annotations

import ast
import gc
import itertools
from pathlib import Path

import pytest

import penstock
from penstock import _core, errors
from penstock._core import Crowd, FileView, Geometry, LoopTree, Team

STUB = Path(penstock.__file__).with_name("_core.pyi")


def test_the_stub_names_everything_that_the_module_has() -> None:
    stub = ast.parse(STUB.read_text(encoding="utf-8"))
    named = {n.name for n in stub.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    named |= {
        n.target.id
        for n in stub.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    assert named == {n for n in vars(_core) if not n.startswith("__")}


@pytest.mark.parametrize("name", ["FileView", "LoopTree", "Plan", "Config", "Geometry"])
def test_the_stub_names_every_member(name: str) -> None:
    stub = ast.parse(STUB.read_text(encoding="utf-8"))
    body = next(n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == name).body
    named = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    members = {n for n in vars(getattr(_core, name)) if not n.startswith("_")}
    assert members == {n for n in named if not n.startswith("_")}


def test_a_million_strided_blocks_stay_under_4_kib() -> None:
    tree = LoopTree.strided(10**6, 1, 24, LoopTree.bytes(8))
    assert tree.size == 8 * 10**6
    assert tree.memory_bytes < 4096


def test_equal_structures_are_equal_and_hash_alike() -> None:
    a = LoopTree.contiguous(4, LoopTree.bytes(2))
    b = LoopTree.bytes(8)
    assert a == b
    assert hash(a) == hash(b)
    assert a != LoopTree.bytes(9)
    assert a != "not a tree"


def test_a_subarray_names_the_bytes_that_mpi_says() -> None:
    tree = LoopTree.subarray([4, 6], [2, 3], [1, 2], LoopTree.bytes(8))
    named = [row * 48 + column * 8 for row in (1, 2) for column in (2, 3, 4)]
    view = FileView(0, 8, tree)
    assert [view.offset_of(8 * i) for i in range(6)] == named
    assert tree.extent == 4 * 6 * 8


def test_runs_are_the_bytes_of_a_stream_range() -> None:
    view = FileView(100, 1, LoopTree.resized(LoopTree.bytes(4), 0, 10))
    expected = [100 + 10 * (i // 4) + i % 4 for i in range(3, 17)]
    named = [
        offset + i * stride + j
        for offset, block, stride, count in view.runs((3, 17))
        for i in range(count)
        for j in range(block)
    ]
    assert named == expected


def crowd_of(size: int, ranks: int) -> tuple[list[FileView], Crowd]:
    views = [FileView(r * size) for r in range(ranks)]
    return views, Crowd([_core.summarise(v, (0, size)) for v in views])


def test_every_byte_of_a_plan_goes_to_exactly_one_writer_inside_its_extent() -> None:
    views, crowd = crowd_of(40_000, 3)
    plan = _core.place("two_phase", Team(3), crowd, Geometry(), writers=2, cycle_bytes=8192)
    covered: list[tuple[int, int]] = []
    for rank, view in enumerate(views):
        for writer, cycle, (begin, end) in plan.slices(view, (0, 40_000), rank):
            assert plan.part(view, (0, 40_000), rank, writer, cycle) == (begin, end)
            low, high = view.extent_of((begin, end))
            assert plan.extent(writer, cycle)[0] <= low
            assert high <= plan.extent(writer, cycle)[1]
            covered.append((low, high))
    assert sum(high - low for low, high in covered) == 120_000
    covered.sort()
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(covered))


def test_a_plan_whose_cycles_end_where_views_say_asks_for_them() -> None:
    views, crowd = crowd_of(40_000, 3)
    bare = _core.place(
        "dynamic_segmentation", Team(3), crowd, Geometry(), writers=1, cycle_bytes=8192
    )
    with pytest.raises(errors.ArgumentError, match="with_cuts"):
        bare.slices(views[0], (0, 40_000), 0)
    plan = bare.with_cuts([(v, (0, 40_000)) for v in views])
    assert plan.cycles == 15
    assert [plan.extent(0, c) for c in (0, 1)] == [(0, 8192), (8192, 16384)]
    assert (
        sum(end - begin for _, _, (begin, end) in plan.slices(views[2], (0, 40_000), 2)) == 40_000
    )


def test_an_algorithm_gets_its_own_parameters() -> None:
    _, crowd = crowd_of(40_000, 3)
    dealt = _core.place("cyclic", Team(3), crowd, Geometry(), writers=3, stripe_bytes=8192)
    assert [dealt.extent(w, 1)[0] for w in range(3)] == [3 * 8192, 4 * 8192, 5 * 8192]
    alone = _core.place("designated_writer", Team(3), crowd, Geometry(), writer=2)
    assert (alone.writers, alone.writer_rank(0)) == (1, 2)
    method = _core.parse_method("cyclic(stripe=64KiB)")
    assert (method.stripe_bytes, method.writer) == (65536, 0)


def test_equal_patterns_of_many_ranks_are_one_class() -> None:
    _, crowd = crowd_of(4096, 1000)
    assert crowd.classes == [(0, 1000, 4096)]
    assert crowd.bounds == (0, 4096 * 1000)


def test_a_method_is_read_back_as_it_is_spelt() -> None:
    method = _core.parse_method("two_phase(writers=4, cycle=16MiB)")
    assert (method.algorithm, method.writers, method.cycle_bytes) == ("two_phase", 4, 2**24)
    assert str(_core.parse_method(str(method))) == str(method)


def test_auto_leaves_the_algorithm_to_each_call() -> None:
    assert _core.default_method().algorithm is None
    _, crowd = crowd_of(4096, 2)
    chosen = _core.decide(crowd, Team(2), Geometry())
    assert chosen in [a.name for a in _core.algorithms()]


def test_sizes_are_binary_and_decimal_as_written() -> None:
    assert _core.parse_size("4MiB") == 4 * 2**20
    assert _core.parse_size("4MB") == 4 * 10**6
    assert _core.parse_size(_core.format_size(64 * 1024)) == 65536


@pytest.mark.parametrize(
    ("method", "algorithm", "team", "cycle"),
    [
        ("two_phase + shm", "two_phase", Team(4), 1 << 20),
        ("auto + shm", "two_phase", Team(4), 1 << 20),
        ("auto + shm", "individual", Team(4), 0),
        ("two_phase + shm", "two_phase", Team(4, 2), 0),
        ("two_phase + shm", "two_phase", Team(1), 0),
        ("two_phase + messages", "two_phase", Team(4), 0),
        ("dynamic_segmentation + shm", "dynamic_segmentation", Team(4), 0),
        ("two_phase(cycle=4KiB) + shm", "two_phase", Team(4), 4096),
    ],
)
def test_a_cycle_that_is_left_out_suits_the_exchange(
    method: str, algorithm: str, team: Team, cycle: int
) -> None:
    assert _core.parse_method(method).cycle_for(algorithm, team) == cycle


def test_descriptors_outlive_the_list_that_gave_them() -> None:
    first = _core.mechanisms()[0]
    gc.collect()
    assert first.name
    assert first.summary


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (lambda: LoopTree.bytes(-1), "-1"),
        (lambda: LoopTree.contiguous(-2, LoopTree.bytes(1)), "got -2"),
        (lambda: LoopTree.subarray([2], [3], [0], LoopTree.bytes(1)), "sub-array"),
        (lambda: LoopTree.subarray([2, 2], [1], [0], LoopTree.bytes(1)), "one length"),
        (lambda: FileView(-1), "displacement"),
        (lambda: FileView(0, 3, LoopTree.bytes(4)), "etype"),
        (lambda: FileView().offset_of(-1), "offset_of"),
        (lambda: FileView().runs((2, 1)), "runs"),
        (lambda: Geometry(page_bytes=0), "page_bytes"),
        (lambda: Team(2, 3), "nodes"),
        (lambda: _core.parse_size("4XiB"), "4XiB"),
        (lambda: _core.parse_method("two_phaze"), "two_phase"),
        (lambda: _core.parse_method("auto").cycle_for("nothing", Team(1)), "nothing"),
        (lambda: _core.place("nothing", Team(1), crowd_of(1, 1)[1], Geometry()), "nothing"),
        (lambda: _core.place("two_phase", Team(2), crowd_of(1, 1)[1], Geometry()), "ranks"),
        (lambda: crowd_of(1, 2)[1].summary(2), "rank"),
    ],
)
def test_a_wrong_argument_is_a_value_error_that_names_it(wrong: object, names: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=names) as caught:
        wrong()
    assert isinstance(caught.value, errors.ArgumentError)
    assert caught.value.error_class == "argument"


def test_what_the_system_refuses_is_an_os_error_with_its_errno() -> None:
    with pytest.raises(OSError, match=r"missing\.toml") as caught:
        _core.load_config({"PENSTOCK_CONFIG": "/no/missing.toml"})
    assert isinstance(caught.value, errors.PenstockError)
    assert caught.value.errno == 2


@pytest.mark.parametrize(
    ("error_class", "sys_errno", "kind"),
    [
        ("no_space", 28, errors.WriteError),
        ("io", 5, OSError),
        ("no_memory", 12, MemoryError),
        ("communication", 0, ConnectionError),
        ("unsupported", 0, NotImplementedError),
        ("internal", 0, errors.PenstockError),
    ],
)
def test_each_class_of_error_has_its_python_class(
    error_class: str, sys_errno: int, kind: type[Exception]
) -> None:
    error = errors.from_core(error_class, sys_errno, "pwrite", "out.dat", "message")
    assert isinstance(error, kind)
    assert isinstance(error, errors.PenstockError)
    assert error.error_class == error_class
