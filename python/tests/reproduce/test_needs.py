"""What must be so where files are written, and what is said when it is not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from made_runs import evidence
from made_samples import MIB, result, sample
from peers_bench import ROOT
from penstock.bench.sample import Sample
from penstock.reproduce import needs
from penstock.reproduce.evidence import Evidence

NONE = evidence({})


def busy(fraction: float, **more: Any) -> Sample:
    reading: dict[str, Any] = {"at_s": 0, "cpu_steal_s": 0, "own_cpu_s": 0}
    reading |= {"dirty_bytes": 0, "writeback_bytes": 0, "memory_available_bytes": 1}
    return sample(
        machine_before={**reading, "cpu_total_s": 10.0, "cpu_busy_s": 1.0},
        machine_after={**reading, "cpu_total_s": 30.0, "cpu_busy_s": 1.0 + 20.0 * fraction},
        **more,
    )


def test_cpus_that_are_busy_make_a_sweep_of_processes_invalid() -> None:
    assert needs.idle_cpus(NONE, [busy(0.79)]) == ""
    assert "INVALID: the CPUs were 81 % busy" in needs.idle_cpus(NONE, [busy(0.81)])
    assert "nobody saw" in needs.idle_cpus(NONE, [sample()])


def test_launching_is_no_part_of_what_the_cpus_are_asked() -> None:
    """A program that tells how busy they were while its clock ran is believed."""
    waiting = result(1e9, cpus={"busy_s": 0.1, "total_s": 1.0})
    assert needs.idle_cpus(NONE, [busy(0.95, result=waiting)]) == ""
    computing = result(1e9, cpus={"busy_s": 0.9, "total_s": 1.0})
    assert "90 % busy" in needs.idle_cpus(NONE, [busy(0.1, result=computing)])


def test_waiting_for_cold_memory_is_no_idleness() -> None:
    """Of 20 s the program waits for 8 s: 0.5 of the whole are 0.83 of the rest."""
    cold = result(1e9, parameters={"regime": "cold"})
    assert "83 % busy" in needs.idle_cpus(NONE, [busy(0.5, wall_s=20.0, result=cold)])
    assert needs.idle_cpus(NONE, [busy(0.45, wall_s=20.0, result=cold)]) == ""


def test_memory_goes_cold_for_as_long_as_the_measuring_program_waits() -> None:
    program = (ROOT / "bench/measure/node_memory.c").read_text()
    waits = re.findall(r"\b(kSettles_s|kGoesCold_s) = (\d+)", program)
    assert {name for name, _ in waits} == {"kSettles_s", "kGoesCold_s"}
    assert sum(int(seconds) for _, seconds in waits) == needs.COLD_S


def outputs(*runs: tuple[int, float, float | None]) -> Evidence:
    """Of each run its bytes and its two rates."""
    made = [sample(str(n), result=result(a, bytes_=n, actual=d)) for n, a, d in runs]
    return Evidence((), tuple(made))


def test_a_device_must_be_much_slower_than_memory_and_the_largest_output_larger() -> None:
    small = (MIB, 3e9, 2e7)
    assert needs.slow_device(outputs(small, (64 * MIB, 2.3e7, 2e7)), []) == ""
    kept = needs.slow_device(outputs(small, (64 * MIB, 1e9, 2e7)), [])
    assert "the kernel's memory holds most of it" in kept
    fast = needs.slow_device(outputs(small, (64 * MIB, 2e9, 1.5e9)), [])
    assert "less than 5 times as much" in fast
    assert "slowdisk.sh" in fast
    assert "nobody saw" in needs.slow_device(outputs((MIB, 3e9, None)), [])


def test_one_lucky_sample_makes_no_memory_fast() -> None:
    usual, lucky = (MIB, 1e9, 1e9), (MIB, 9e9, 1e9)
    said = needs.slow_device(outputs(usual, usual, lucky, (64 * MIB, 1e9, 1e9)), [])
    assert "less than 5 times as much" in said


@pytest.mark.parametrize(
    ("kind", "is_nfs", "is_parallel"),
    [
        ("ext4", False, False),
        ("nfs4", True, False),
        ("fuse.nfs", True, False),
        ("lustre", False, True),
        ("fuse.glusterfs", False, True),
        ("", False, False),
    ],
)
def test_file_systems_are_known_by_their_type(kind: str, is_nfs: bool, is_parallel: bool) -> None:
    where = evidence({}, file_system=kind)
    assert (needs.nfs(where, []) == "") is is_nfs
    assert (needs.parallel(where, []) == "") is is_parallel


def test_jobs_of_one_node_do_not_show_what_happens_between_nodes() -> None:
    two = sample(result=result(1e9, nodes=2))
    assert needs.several_nodes(NONE, [two]) == ""
    assert needs.several_nodes(NONE, [two, sample()]) != ""
    assert needs.several_nodes(NONE, []) != ""
