"""A vibrating membrane on a square grid, dealt out in blocks of rows and columns, in Python.

Every rank steps its own block and exchanges edges with its neighbours. Every few steps all ranks
write the whole membrane to one file, collectively: each rank's block is many short pieces of the
file, which is what MPI-IO has file views for.

    mpiexec -n 4 python3 waves.py --points 512 --steps 40 --every 10 --output waves.dat

The file holds one frame after another, each ``points x points`` doubles in rows; the same bytes
for any number of ranks. Read it with ``numpy.fromfile(name).reshape(-1, points, points)``.
"""

from __future__ import annotations

import argparse

import numpy as np
from mpi4py import MPI

SPEED = 0.25  # of the wave, squared, in grid steps per time step; below 0.5 it is stable


class Membrane:
    """This rank's block of the displacement, now and a step ago, with a ghost cell on each side."""

    def __init__(self, comm: MPI.Intracomm, points: int) -> None:
        shape = MPI.Compute_dims(comm.size, 2)
        self.grid = comm.Create_cart(shape, periods=[False, False])
        self.points = points
        self.begin, self.end = self.bounds(shape)
        inner = [e - b for b, e in zip(self.begin, self.end, strict=True)]
        self.now = np.zeros([n + 2 for n in inner])
        self.before = self.now.copy()
        self.pluck()

    def bounds(self, shape: list[int]) -> tuple[list[int], list[int]]:
        places = list(zip(self.grid.coords, shape, strict=True))
        begin = [self.points * i // n for i, n in places]
        end = [self.points * (i + 1) // n for i, n in places]
        return begin, end

    def pluck(self) -> None:
        """Displaced where a finger was, and at rest."""
        row, column = np.ogrid[self.begin[0] : self.end[0], self.begin[1] : self.end[1]]
        center = 0.3 * self.points
        distance = (row - center) ** 2 + (column - center) ** 2
        self.now[1:-1, 1:-1] = np.maximum(0.0, 1.0 - distance / (0.05 * self.points) ** 2)
        self.before[...] = self.now

    def exchange(self) -> None:
        """Ghost cells get the neighbours' edges; at the rim they stay 0."""
        u = self.now
        for axis in (0, 1):
            low, high = self.grid.Shift(axis, 1)
            v = u if axis == 0 else u.T
            for to, source, edge, ghost in ((high, low, v[-2], v[0]), (low, high, v[1], v[-1])):
                got = np.zeros(edge.shape)
                self.grid.Sendrecv(np.ascontiguousarray(edge), to, recvbuf=got, source=source)
                ghost[...] = got

    def step(self) -> None:
        self.exchange()
        u = self.now
        inner = u[1:-1, 1:-1]
        pull = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * inner
        after = np.zeros_like(u)
        after[1:-1, 1:-1] = 2.0 * inner - self.before[1:-1, 1:-1] + SPEED * pull
        self.before, self.now = u, after

    def view(self) -> MPI.Datatype:
        """Where this rank's block lies in a frame."""
        sizes = [e - b for b, e in zip(self.begin, self.end, strict=True)]
        whole = [self.points, self.points]
        return MPI.DOUBLE.Create_subarray(whole, sizes, self.begin).Commit()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A vibrating membrane, written collectively.")
    parser.add_argument("--points", type=int, default=512, help="along an edge of the grid")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between two frames")
    parser.add_argument("--output", default="waves.dat")
    return parser.parse_args()


def main() -> None:
    asked = options()
    world = MPI.COMM_WORLD
    membrane = Membrane(world, asked.points)
    view = membrane.view()
    mode = MPI.MODE_CREATE | MPI.MODE_WRONLY
    file = MPI.File.Open(membrane.grid, asked.output, mode)
    file.Set_size(0)
    file.Set_view(0, MPI.DOUBLE, view)
    for number in range(1, asked.steps + 1):
        membrane.step()
        if number % asked.every == 0:
            file.Write_all(np.ascontiguousarray(membrane.now[1:-1, 1:-1]))
    file.Close()
    view.Free()
    if world.rank == 0:
        frames = asked.steps // asked.every
        print(f"{asked.output}: {frames} frames of {asked.points} x {asked.points}")


if __name__ == "__main__":
    main()
