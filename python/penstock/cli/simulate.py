"""``penstock simulate``: an output through an I/O system, played block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from penstock import _core
from penstock.cli.output import console, print_json, require_one_on_stdout, write_picture
from penstock.errors import ArgumentError
from penstock.simulate import figure, gotwals
from penstock.simulate.gotwals import Over, Point, Step
from penstock.simulate.output import MAX_BLOCKS, Mapping, Order, System

_USUAL: Over = "block"  # what is varied where nothing is asked for
_MOST_NODES = 100_000  # more than any machine has
_MOST_RATE = 9e18  # bytes/s
_MOST_RATIO = 1e9  # either way, so that times stay finite


def simulate(
    name: Annotated[
        Literal["gotwals-1995"], typer.Argument(metavar="SYSTEM", help="What: gotwals-1995.")
    ] = "gotwals-1995",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Of each I/O node.")] = "5MiB",
    disk: Annotated[
        str, typer.Option(metavar="SIZE", help="Each output disk's rate: so many bytes a second.")
    ] = "1MiB",
    network: Annotated[
        float, typer.Option(metavar="RATIO", help="The network's rate, in output disks.")
    ] = 5.0,
    paging_disk: Annotated[
        float, typer.Option(metavar="RATIO", help="Each paging disk's rate, in output disks.")
    ] = 0.5,
    block: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Default: a fifth of the memory.")
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="What may wait on an I/O node, paged out or not; 0: none. Default: no limit.",
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(metavar="N", help="I/O nodes on the one network.")] = 1,
    mapping: Annotated[
        Mapping, typer.Option(metavar="cyclic|blocked", help="Which I/O node has a block.")
    ] = "cyclic",
    order: Annotated[
        Order,
        typer.Option(
            metavar="memory|file",
            help="What a disk writes next: what is in memory, or what is next in the file.",
        ),
    ] = "memory",
    startup: Annotated[
        float, typer.Option(metavar="SECONDS", help="Before the first byte moves.")
    ] = 0.0,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Outputs, in memories of all I/O nodes: 0.5,1,2,5."),
    ] = None,
    sweep: Annotated[
        Over | None,
        typer.Option(
            metavar="block|paging-disk|nodes",
            help="What is varied at the largest output. Default: block, without what is too large.",
        ),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the curves. - is stdout.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="All values and two timelines, for programs.")
    ] = False,
) -> None:
    """Play outputs of growing size through an I/O system with buffers, and tell both rates.

    gotwals-1995: an application sends to I/O nodes, whose memory drains to output disks and pages
    to paging disks when it is full. Application rate: until the call returns; actual rate: until
    the bytes are on the output disks. Rates are printed in units of all raw output disks
    (docs/models.md).

    Examples:

        penstock simulate

        penstock simulate gotwals-1995 --memory 32MiB --block 1MiB --sizes 0.5,1,2,4,8

        penstock simulate --nodes 4 --network 20 --sweep paging-disk

        penstock simulate --draw curves.svg

        penstock simulate --buffer 20MiB --json
    """
    require_one_on_stdout(draw, as_json=as_json)
    system = System(
        memory_bytes=_core.parse_size(memory, "--memory"),
        disk_bytes_per_s=float(_core.parse_size(disk, "--disk")),
        network_ratio=network,
        paging_ratio=paging_disk,
        block_bytes=None if block is None else _core.parse_size(block, "--block"),
        buffer_bytes=None if buffer is None else _core.parse_size(buffer, "--buffer"),
        nodes=nodes,
        mapping=mapping,
        order=order,
        startup_s=startup,
    )
    ratios = _ratios(sizes)
    _check(system)
    _check_outputs(system, max(ratios), drawn=draw is not None)
    _check_sweep(system, max(ratios), sweep)
    over = sweep or _USUAL
    points = gotwals.curves(system, ratios)
    steps = gotwals.sweep(system, max(ratios), over)
    if draw is not None:
        write_picture(draw, figure.draw(system))
    if as_json:
        print_json(gotwals.as_json(name, system, points, over, steps))
    elif draw is None or str(draw) != "-":
        _print(name, system, points, over, steps)


def _check(system: System) -> None:
    """What the simulator would refuse, in the words of the command line."""
    if not 1 <= system.disk_bytes_per_s <= _MOST_RATE:
        raise ArgumentError(
            f"--disk must be from 1 to {_MOST_RATE:g} bytes a second, "
            f"got {system.disk_bytes_per_s:g}"
        )
    ratios = {"--network": system.network_ratio, "--paging-disk": system.paging_ratio}
    for option, value in ratios.items():
        if not 1 / _MOST_RATIO <= value <= _MOST_RATIO:
            raise ArgumentError(
                f"{option} must be from {1 / _MOST_RATIO:g} to {_MOST_RATIO:g} disks, got {value:g}"
            )
    if not 0 <= system.startup_s < math.inf:
        raise ArgumentError(
            f"--startup must be finite and not negative, got {system.startup_s:g} seconds"
        )
    if not 1 <= system.nodes <= _MOST_NODES:
        raise ArgumentError(f"--nodes must be from 1 to {_MOST_NODES}, got {system.nodes}")
    _check_room(system)


def _check_room(system: System) -> None:
    if system.memory_bytes < 1:
        raise ArgumentError("--memory must be at least 1 byte, got 0")
    block, memory = _core.human_size(system.block), _core.human_size(system.memory_bytes)
    if system.block < 1:
        raise ArgumentError("--block must be at least 1 byte, got 0")
    if system.block > system.memory_bytes:
        raise ArgumentError(f"--block must fit into --memory, {memory}, got {block}")
    if system.buffer_bytes is not None and 0 < system.buffer_bytes < system.block:
        raise ArgumentError(
            f"--buffer must be 0 (none) or hold a --block, {block}, "
            f"got {_core.human_size(system.buffer_bytes)}"
        )


def _check_outputs(system: System, largest: float, *, drawn: bool) -> None:
    """Whether the sizes can be played, and those of the picture."""
    _check_blocks("--sizes", system, largest, "a larger --block or smaller --sizes")
    if drawn:
        _check_blocks("--draw", system, figure.MOST, "a larger --block")


def _check_sweep(system: System, largest: float, asked: Over | None) -> None:
    """Refuse one that was asked for and cannot be played; say what the usual one is without."""
    steps = gotwals.systems(system, asked or _USUAL)
    if asked is not None:
        for _, varied in steps:
            remedy = "smaller --sizes or --sweep paging-disk"
            _check_blocks(f"--sweep {asked}", varied, largest, remedy)
    elif left_out := [value for value, varied in steps if not gotwals.fits(varied, largest)]:
        blocks = f"that would be more than {MAX_BLOCKS} blocks"
        typer.echo(f"the sweep over blocks is without {', '.join(left_out)}: {blocks}", err=True)


def _check_blocks(option: str, system: System, ratio: float, remedy: str) -> None:
    if not gotwals.fits(system, ratio):
        size = _core.human_size(gotwals.bytes_of(system, ratio))
        raise ArgumentError(
            f"{option} plays an output of {ratio:g} memories, {size}, as more "
            f"than {MAX_BLOCKS} blocks of {_core.human_size(system.block)}: give {remedy}"
        )


def _ratios(sizes: str | None) -> Sequence[float]:
    if sizes is None:
        return gotwals.RATIOS
    try:
        return [float(word) for word in sizes.split(",")]
    except ValueError as error:
        raise ArgumentError(f"--sizes must be numbers like 0.5,1,2, got {sizes!r}") from error


def _print(
    name: str, system: System, points: Sequence[Point], over: Over, steps: Sequence[Step]
) -> None:
    out = console()
    out.print(f"[bold]{name}[/]: {_facts(system)}", highlight=False)
    unit = f"units of all {system.nodes} " if system.nodes > 1 else ""
    said = f"Rates in {unit}raw output disks; without: the buffer is in memory alone.\n"
    out.print(said, highlight=False)
    _show(_curves(points), out)
    largest = max(points, key=lambda p: p.ratio)
    out.print(f"\nAt {largest.ratio:g} times the memory, by {_VARIED[over]}:\n", highlight=False)
    _show(_steps(over, steps), out)
    papers = [p for p in points if p.ratio == gotwals.PAPER_AT]
    if papers and gotwals.is_the_papers(system):
        out.print(f"\n{_beside_the_paper(papers[0])}", highlight=False)


_VARIED: dict[Over, str] = {
    "block": "the size of a block, in memories",
    "paging-disk": "the paging disk's rate, in output disks",
    "nodes": "the number of I/O nodes on the same network, in units of all their disks",
}


def _facts(system: System) -> str:
    nodes = f"{system.nodes} I/O nodes, {system.mapping}" if system.nodes > 1 else "1 I/O node"
    buffer = "no limit" if system.buffer_bytes is None else _core.human_size(system.buffer_bytes)
    return (
        f"{nodes}; memory {_core.human_size(system.memory_bytes)}, buffer {buffer}, "
        f"blocks {_core.human_size(system.block)}; disk "
        f"{_core.human_size(round(system.disk_bytes_per_s))}/s, network {system.network_ratio:g}, "
        f"paging disk {system.paging_ratio:g} times that"
    )


Rows = list[tuple[str, ...]]  # the first are headings


def _show(rows: Rows, out: Console) -> None:
    """A table; lines, where the terminal is too narrow for it."""
    from penstock.bench.render import fits, say

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in rows[0]:
        table.add_column(heading, justify="right")
    for row in rows[1:]:
        table.add_row(*row)
    if fits(table, out):
        out.print(table)
        return
    for row in rows[1:]:
        first, *others = (f"{what} {value}" for what, value in zip(rows[0], row, strict=True))
        say(out, first)
        say(out, ", ".join(others), 2)


def _curves(points: Sequence[Point]) -> Rows:
    rows: Rows = [
        ("n/m", "output", "application: without", "with", "actual: without", "demand", "early",
         "paged out"),
    ]  # fmt: skip
    for p in points:
        rates = (p.without.application, p.demand.application, p.without.actual, p.demand.actual)
        numbers = (f"{rate:.2f}" for rate in (*rates, p.early.actual))
        size, paged_out = map(_core.human_size, (p.n_bytes, p.paged_out_bytes))
        rows.append((f"{p.ratio:g}", size, *numbers, paged_out))
    return rows


def _steps(over: Over, steps: Sequence[Step]) -> Rows:
    rows: Rows = [(over, "application", "actual: demand", "early")]
    for step in steps:
        rates = (step.demand.application, step.demand.actual, step.early.actual)
        rows.append((step.value, *(f"{rate:.2f}" for rate in rates)))
    return rows


def _beside_the_paper(point: Point) -> str:
    return (
        f"The paper's figure 4 at {gotwals.PAPER_AT:g} times the memory: "
        f"{gotwals.PAPER['demand']:.2f} on demand and {gotwals.PAPER['early']:.2f} early; "
        f"here {point.demand.actual:.2f} and {point.early.actual:.2f}."
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)
