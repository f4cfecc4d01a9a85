"""What Python programs do with h5py on parallel HDF5. ``h5py_cases.py write|read DIR [CASE]``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
ROWS_EACH, COLUMNS = 12, 37
ROWS = RANKS * ROWS_EACH
MINE = slice(RANK * ROWS_EACH, (RANK + 1) * ROWS_EACH)


def values(array: int, rows: int = ROWS) -> np.ndarray:
    """The whole of an array, as every rank knows it."""
    places = np.arange(rows * COLUMNS, dtype=np.int64).reshape(rows, COLUMNS)
    return ((array + 1) * 2654435761 + places * 40503) % (1 << 30)


def opened(path: Path, mode: str) -> h5py.File:
    return h5py.File(path, mode, driver="mpio", comm=WORLD)


def expect(file: h5py.File, name: str, wanted: np.ndarray) -> None:
    got = file[name][...]
    if not np.array_equal(got, wanted):
        raise AssertionError(f"{name}: {np.count_nonzero(got != wanted)} elements differ")


def write_independent(path: Path) -> None:
    with opened(path, "w") as file:
        data = file.create_dataset("data", (ROWS, COLUMNS), "i8")
        data[MINE] = values(0)[MINE]
        data.attrs["units"] = "volts"


def write_collective(path: Path) -> None:
    with opened(path, "w") as file:
        data = file.create_dataset("data", (ROWS, COLUMNS), "i8")
        with data.collective:
            data[MINE] = values(0)[MINE]


def write_chunked(path: Path) -> None:
    with opened(path, "w") as file:
        data = file.create_dataset("data", (ROWS, COLUMNS), "i8", chunks=(5, 8))
        first, end = RANK * COLUMNS // RANKS, (RANK + 1) * COLUMNS // RANKS
        with data.collective:
            data[:, first:end] = values(0)[:, first:end]


def write_append(path: Path) -> None:
    with opened(path, "w") as file:
        shape, limit = (0, COLUMNS), (None, COLUMNS)
        file.create_dataset("data", shape, "i8", maxshape=limit, chunks=(ROWS_EACH, COLUMNS))
    for step in range(2):
        with opened(path, "r+") as file:
            data = file["data"]
            before = data.shape[0]
            data.resize(before + ROWS // 2, axis=0)
            half = ROWS_EACH // 2
            rows = slice(before + RANK * half, before + (RANK + 1) * half)
            with data.collective:
                data[rows] = values(0)[rows]
            file.attrs[f"step{step}"] = step
            file.flush()


def read_table(path: Path) -> None:
    with opened(path, "r") as file:
        expect(file, "data", values(0))


def write_many(path: Path) -> None:
    with opened(path, "w") as file:
        for i in range(24):
            data = file.create_dataset(f"group{i % 4}/data{i}", (2, COLUMNS), "i8")
            data.attrs["number"] = i
            if i % RANKS == RANK:
                data[...] = values(i, 2)


def read_many(path: Path) -> None:
    with opened(path, "r") as file:
        for i in range(24):
            name = f"group{i % 4}/data{i}"
            expect(file, name, values(i, 2))
            if file[name].attrs["number"] != i:
                raise AssertionError(f"{name}: wrong attribute")


Case = Callable[[Path], None]
CASES: dict[str, tuple[Case, Case]] = {
    "independent": (write_independent, read_table),
    "collective": (write_collective, read_table),
    "chunked": (write_chunked, read_table),
    "append": (write_append, read_table),
    "many_datasets": (write_many, read_many),
}


def held(case: Case, path: Path) -> bool:
    """Whether it held on every rank. A rank that raises leaves no other waiting for long: the
    watchdog ends a job that hangs."""
    problem = ""
    try:
        case(path)
    except (AssertionError, OSError, RuntimeError, ValueError) as error:
        problem = f"rank {RANK}: {type(error).__name__}: {error}"
        print(problem, file=sys.stderr, flush=True)
    return not any(WORLD.allgather(problem))


def main() -> int:
    """One line a case; the exit code says whether all went well."""
    how, directory = sys.argv[1], Path(sys.argv[2])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    ran = failed = 0
    if RANK == 0:
        print(f"library h5py {h5py.__version__} on HDF5 {h5py.version.hdf5_version}", flush=True)
    for name, (write, read) in CASES.items():
        if only not in ("", name):
            continue
        if RANK == 0:
            print(f"begin {name}", flush=True)
        ok = held(write if how == "write" else read, directory / f"{name}.h5")
        ran, failed = ran + 1, failed + (not ok)
        if RANK == 0:
            print(f"case {name} {'ok' if ok else 'failed'}", flush=True)
    if RANK == 0:
        print(f'result {{"checks": {ran}, "failed": {failed}}}', flush=True)
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
