"""The coefficients that barro-2002 printed, to stand beside ours.

Sections 3 and 4. The paper's MB is taken as 2^20 bytes, since its file sizes are powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.model.messages import Kind

MB = 2**20


@dataclass(frozen=True)
class Law:
    """T = K(p) n of one operation; ``k_s_per_mb`` and ``form`` are None where it does not scale."""

    file_system: Literal["NFS", "PVFS"]
    access: Literal["contiguous", "interleaved"]
    operation: Literal["read", "write", "read_all", "write_all"]
    form: Literal["k/p", "k/log2 p"] | None = None
    k_s_per_mb: float | None = None


SCALING = (
    Law("NFS", "contiguous", "read"),
    Law("NFS", "contiguous", "write"),
    Law("NFS", "contiguous", "read_all"),
    Law("NFS", "contiguous", "write_all"),
    Law("NFS", "interleaved", "read"),
    Law("NFS", "interleaved", "write"),
    Law("NFS", "interleaved", "read_all", "k/p", 1.7045),
    Law("NFS", "interleaved", "write_all", "k/log2 p", 2.0048),
    Law("PVFS", "contiguous", "read", "k/p", 0.1524),
    Law("PVFS", "contiguous", "write", "k/log2 p", 0.0790),
    Law("PVFS", "contiguous", "read_all", "k/p", 0.1570),
    Law("PVFS", "contiguous", "write_all", "k/log2 p", 0.0773),
    Law("PVFS", "interleaved", "read"),
    Law("PVFS", "interleaved", "write"),
    Law("PVFS", "interleaved", "read_all", "k/p", 1.3222),
    Law("PVFS", "interleaved", "write_all", "k/log2 p", 0.7327),
)

# Of the cluster with Fast Ethernet.
MESSAGES: dict[Kind, dict[str, float]] = {
    "point_to_point": {"startup_s": 206e-6, "s_per_byte": 0.106e-6},
    "broadcast": {"startup_s": 206e-6, "s_per_byte": 0.105e-6},
    "reduction": {"startup_s": 435e-6, "offset_s": -103e-6, "s_per_byte": 0.185e-6},
}
