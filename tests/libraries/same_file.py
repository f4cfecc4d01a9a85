"""Whether a file that was written under Penstock is the one that the MPI library makes alone."""

from __future__ import annotations

import subprocess
from pathlib import Path


def difference(alone: Path, served: Path, case: str, *, holes: bool = True) -> list[str]:
    """Compares ``case.*`` of two directories; what is wrong, in words.

    Byte for byte, with one exception: bytes that nobody wrote. ROMIO writes whatever its collective
    buffer holds there, where Penstock and Open MPI leave a hole, so a byte may differ where
    Penstock's file has a zero; for HDF5, h5diff then has to find nothing. Without ``holes`` every
    byte was written, and there is no exception.
    """
    problems = []
    for one in sorted(alone.glob(f"{case}.*")):
        other = served / one.name
        if not other.exists():
            problems.append(f"{one.name} was not made under Penstock")
            continue
        problems += compare(one, other, holes=holes)
    return problems


def compare(alone: Path, served: Path, *, holes: bool = True) -> list[str]:
    wanted, got = alone.read_bytes(), served.read_bytes()
    if wanted == got:
        return []
    if len(wanted) != len(got):
        return [f"{alone.name}: {len(got)} bytes under Penstock, {len(wanted)} alone"]
    differ = [i for i, (a, b) in enumerate(zip(wanted, got, strict=True)) if a != b]
    written = [i for i in differ if got[i] != 0 or not holes]
    if written:
        return [f"{alone.name}: {len(written)} bytes differ from byte {written[0]} on"]
    if alone.suffix == ".h5":
        return h5diff(alone, served)
    return []


def h5diff(alone: Path, served: Path) -> list[str]:
    command = ["h5diff", str(alone), str(served)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if made.returncode == 0:
        return []
    return [f"h5diff: {(made.stdout + made.stderr).strip()[:300]}"]
