"""What a plan says, collected as plain values: who sends and who writes what in each cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock import _core
from penstock.errors import ArgumentError
from penstock.explain import views
from penstock.explain.example import Example

Range = tuple[int, int]

# A picture or table of more than this helps nobody; real jobs are for the simulator.
MAX_PIECES = 20_000  # of a rank
MAX_PIECES_IN_ALL = 200_000
MAX_TURNS = 5_000


@dataclass(frozen=True)
class Delivery:
    """A piece of one rank's stream on its way to a writer, and where it lies in the file."""

    rank: int
    stream: Range
    pieces: tuple[Range, ...]  # file bytes, ascending, joined

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stream[1] - self.stream[0]


@dataclass(frozen=True)
class Turn:
    """One writer in one cycle. ``extent`` is what it may write; holes in it are not written."""

    writer: int
    rank: int  # that the writer is
    cycle: int
    extent: Range
    deliveries: tuple[Delivery, ...]

    @property
    def size(self) -> int:
        """Bytes written."""
        return sum(d.size for d in self.deliveries)

    @property
    def received(self) -> int:
        """Bytes that come from other ranks."""
        return sum(d.size for d in self.deliveries if d.rank != self.rank)


@dataclass(frozen=True)
class Story:
    """An example and what its plan says. All sizes and offsets are bytes."""

    title: str
    method: str
    ranks: int
    nodes: int
    unit_bytes: int
    owns_blocks: bool
    exchanges: bool
    scatters: bool  # extents may overlap, with bytes of other writers in between
    writes_behind: bool  # by a thread of each writer
    stages: int  # of independent writes, where the method is named write_behind, else 0
    bounds: Range
    sizes: tuple[int, ...]  # by rank
    held: tuple[tuple[Range, ...], ...]  # by rank: file bytes, ascending, joined
    writer_ranks: tuple[int, ...]
    cycles: tuple[tuple[Turn, ...], ...]

    def node_of(self, rank: int) -> int:
        """Nodes hold consecutive ranks."""
        return rank * self.nodes // self.ranks

    @property
    def size(self) -> int:
        """Bytes written by all ranks."""
        return sum(self.sizes)

    @property
    def holes(self) -> tuple[Range, ...]:
        """The parts of ``bounds`` that nobody writes."""
        covered = join(sorted(piece for pieces in self.held for piece in pieces))
        edges = [self.bounds[0], *(x for piece in covered for x in piece), self.bounds[1]]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return tuple((begin, end) for begin, end in pairs if begin < end)


def tell(example: Example) -> Story:
    """Place the example's method and collect what the plan says.

    Raises
    ------
    ArgumentError
        If the method is not valid, or the example is too large to tell.
    """
    method = _core.parse_method(example.method)
    by_rank = views.parts(example)
    crowd = _core.Crowd([_core.summarise(p.view, (0, p.size)) for p in by_rank])
    held = _held(by_rank)
    geometry = _geometry(example)
    team = _core.Team(example.ranks, example.nodes, example.cores_per_node)
    fixed = _core.fixed(method.algorithm, team, geometry)
    algorithm = fixed or _core.decide(crowd, team, geometry)
    descriptor = next(a for a in _core.algorithms() if a.name == algorithm)
    placed = _core.place(
        algorithm,
        team,
        crowd,
        geometry,
        **_parameters(method, fixed, algorithm, team),
    )
    _check_turns(placed)
    plan = placed.with_cuts([(p.view, (0, p.size)) for p in by_rank])
    return Story(
        title=example.title,
        method=str(method) if fixed else f"{method}: {algorithm} is chosen",
        ranks=example.ranks,
        nodes=example.nodes,
        unit_bytes=geometry.unit_bytes,
        owns_blocks=plan.owns_blocks,
        exchanges=plan.exchanges,
        scatters=descriptor.scatters,
        writes_behind=descriptor.writes_behind,
        stages=method.stages,
        bounds=crowd.bounds,
        sizes=tuple(p.size for p in by_rank),
        held=held,
        writer_ranks=tuple(plan.writer_rank(w) for w in range(plan.writers)),
        cycles=_cycles(plan, by_rank),
    )


def _parameters(
    method: _core.Method, fixed: str | None, algorithm: str, team: _core.Team
) -> dict[str, int]:
    """Those that the engine gives: what ``auto`` was given is meant for what exchanges."""
    if fixed is None and algorithm == "individual":
        return {}
    return {
        "writers": method.writers,
        "cycle_bytes": method.cycle_for(algorithm, team),
        "stripe_bytes": method.stripe_bytes,
        "writer": method.writer,
    }


def _geometry(example: Example) -> _core.Geometry:
    g = example.geometry
    return _core.Geometry(g.page, g.block, g.stripe, _core.Sharing[g.sharing])


def _held(by_rank: list[views.Part]) -> tuple[tuple[Range, ...], ...]:
    held: list[tuple[Range, ...]] = []
    count = 0
    for part in by_rank:
        held.append(_pieces(part.view, (0, part.size)))
        count += len(held[-1])
        _check_pieces(count)
    return tuple(held)


def _check_pieces(count: int) -> None:
    if count > MAX_PIECES_IN_ALL:
        raise ArgumentError(
            f"the example has more than {MAX_PIECES_IN_ALL} pieces in all: make it smaller"
        )


def _check_turns(plan: _core.Plan) -> None:
    turns = sum(plan.cycles_of_writer(w) for w in range(plan.writers))
    if turns > MAX_TURNS:
        raise ArgumentError(
            f"the example's writers have {turns} cycles, and {MAX_TURNS} can be told: make it "
            "smaller, or cycle larger"
        )


def _cycles(plan: _core.Plan, by_rank: list[views.Part]) -> tuple[tuple[Turn, ...], ...]:
    deliveries: dict[tuple[int, int], list[Delivery]] = {}
    count = 0
    for rank, part in enumerate(by_rank):
        slices = plan.slices(part.view, (0, part.size), rank)
        count += len(slices)
        _check_pieces(count)
        for writer, cycle, stream in slices:
            delivery = Delivery(rank, stream, _pieces(part.view, stream))
            deliveries.setdefault((cycle, writer), []).append(delivery)
    return tuple(
        tuple(
            Turn(w, plan.writer_rank(w), c, plan.extent(w, c), tuple(deliveries.get((c, w), ())))
            for w in range(plan.writers)
            if c < plan.cycles_of_writer(w)
        )
        for c in range(plan.cycles)
    )


def _pieces(view: _core.FileView, stream: Range) -> tuple[Range, ...]:
    return join(_blocks(view, stream))


def _blocks(view: _core.FileView, stream: Range) -> Iterator[Range]:
    count = 0
    for offset, block, stride, blocks in view.runs(stream):
        count += blocks
        if count > MAX_PIECES:
            raise ArgumentError(
                f"the example has more than {MAX_PIECES} pieces per rank: make it smaller"
            )
        for i in range(blocks):
            yield offset + i * stride, offset + i * stride + block


def join(ranges: Iterator[Range] | list[Range]) -> tuple[Range, ...]:
    """Ascending ranges, those that touch or overlap made one."""
    joined: list[Range] = []
    for begin, end in ranges:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return tuple(joined)
