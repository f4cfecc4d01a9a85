"""The three models of an output of n bytes of gotwals-1995, in closed form [1]_.

The *application time* ends when the call returns, the *actual time* when the last byte is on the
output disk. The rates are n over each. The formulas are in C++ (``src/model``); what they are the
limit of is played block by block by `penstock.simulate.output`.

.. [1] Gotwals, Srinivas and Yang, "Parallel I/O from the User's Perspective", section 3.
"""

from __future__ import annotations

from typing import Literal

from penstock import _core
from penstock._core import Times

Paging = Literal["demand", "early"]


def unbuffered(
    n_bytes: float, *, network_bytes_per_s: float, disk_bytes_per_s: float, startup_s: float = 0
) -> Times:
    """Model 1: the I/O node has no memory (section 3.1).

    Both times are ``startup_s + n / min(network, disk)``.

    Parameters
    ----------
    n_bytes : float
        The output, of all compute nodes together, in bytes; at least 0.
    network_bytes_per_s, disk_bytes_per_s : float
        From the compute nodes to the I/O node, and from there to the disk; positive.
    startup_s : float
        Before the first byte moves, in seconds; it makes the rate rise with n.

    Raises
    ------
    ArgumentError
        If a value is out of its range; the message names it.
    """
    return _core.unbuffered_times(
        n_bytes,
        network_bytes_per_s=network_bytes_per_s,
        disk_bytes_per_s=disk_bytes_per_s,
        startup_s=startup_s,
    )


def buffered(
    n_bytes: float,
    *,
    network_bytes_per_s: float,
    disk_bytes_per_s: float,
    buffer_bytes: float,
    startup_s: float = 0,
) -> Times:
    """Model 2: a buffer that fills from the network while it drains to the disk (section 3.2).

    The program is served at the network's rate up to ``b / (1 - disk/network)`` bytes, at which
    the buffer is full, and at the disk's rate from there on. For a network much faster than the
    disk that is the paper's knee at b bytes.

    Parameters
    ----------
    n_bytes, network_bytes_per_s, disk_bytes_per_s, startup_s : float
        As in `unbuffered`.
    buffer_bytes : float
        b; 0 gives model 1.

    Raises
    ------
    ArgumentError
        If a value is out of its range; the message names it.
    """
    return _core.buffered_times(
        n_bytes,
        network_bytes_per_s=network_bytes_per_s,
        disk_bytes_per_s=disk_bytes_per_s,
        buffer_bytes=buffer_bytes,
        startup_s=startup_s,
    )


def paged(
    n_bytes: float,
    *,
    network_bytes_per_s: float,
    disk_bytes_per_s: float,
    memory_bytes: float,
    paging_bytes_per_s: float,
    paging: Paging = "demand",
    buffer_bytes: float | None = None,
    startup_s: float = 0,
) -> Times:
    """Model 3: a buffer larger than the I/O node's memory (section 3.3), for ever smaller blocks.

    When memory is full, the program goes on at ``disk + min(paging, network - disk)``, the second
    part to the paging disk; when the buffer is full too, at the disk's rate. With
    ``paging="demand"`` the output disk waits for each byte that comes back, so that the actual
    time is ``n / disk + paged / paging``; with ``"early"`` paged bytes come back into unused memory
    while it writes others, and it is ``max(n / disk, application time + paged / paging)``.

    Parameters
    ----------
    n_bytes, network_bytes_per_s, disk_bytes_per_s, startup_s : float
        As in `unbuffered`.
    memory_bytes : float
        m, of the I/O node.
    paging_bytes_per_s : float
        Of the paging disk, for both directions together; positive.
    paging : "demand" or "early"
        When paged bytes come back.
    buffer_bytes : float, optional
        b, at least m, which gives model 2. By default it has no bound.

    Raises
    ------
    ArgumentError
        If a value is out of its range; the message names it.
    """
    return _core.paged_times(
        n_bytes,
        network_bytes_per_s=network_bytes_per_s,
        disk_bytes_per_s=disk_bytes_per_s,
        memory_bytes=memory_bytes,
        paging_bytes_per_s=paging_bytes_per_s,
        paging=paging,
        buffer_bytes=buffer_bytes,
        startup_s=startup_s,
    )
