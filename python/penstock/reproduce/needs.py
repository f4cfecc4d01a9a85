"""What must be so where files are written, for a conclusion to be about what the paper means.

Each is a function of the evidence that says why not, or nothing. A hook for real file systems:
start one, give a directory in it with --dir, and what it was needed for is judged.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from penstock.bench.noise import MachineReading
from penstock.bench.sample import CpuTimes, Sample
from penstock.reproduce.evidence import Evidence
from penstock.reproduce.measures import actual, application

Need = Callable[[Evidence, Sequence[Sample]], str]

BUSIEST = 0.8  # of the CPUs' time; above it a sweep of processes measures the scheduler
COLD_S = 8.0  # so long bench/measure/node_memory.c waits with --regime cold
APART = 5.0  # memory is so many times as fast as the device in gotwals-1995's simulator
FITS = 2.0  # taken so much faster than the device writes, at least half of an output was kept
_A_DISK = (
    "a slow disk with little memory (tests/fs/slowdisk.sh start DISK --rate 20MB --cache 8MiB)"
)
_PARALLEL = ("lustre", "gpfs", "beegfs", "pvfs2", "orangefs", "ceph", "glusterfs", "moosefs")


def slow_device(evidence: Evidence, _: Sequence[Sample]) -> str:
    """Memory is five times as fast as the device, and the largest output does not fit it."""
    writes = [
        ((s.cell, s.variant), s.result.bytes, a, d)
        for s in evidence.samples
        if s.result and s.result.parameters.get("op") != "read"
        if (a := application(s)) and (d := actual(s))
    ]
    if not writes:
        return "nobody saw the device's rate"
    most = max(size for _, size, _, _ in writes)
    device = statistics.median(d for _, size, _, d in writes if size == most)
    taken = statistics.median(a for _, size, a, _ in writes if size == most)
    fastest = max(
        statistics.median(a for name, _, a, _ in writes if name == one)
        for one in {name for name, _, _, _ in writes}
    )
    if fastest < APART * device:
        return (
            f"the device takes {_mb(device)}, and memory at most {_mb(fastest)} of these writes, "
            f"less than {APART:g} times as much: give --dir on {_A_DISK}"
        )
    if taken > FITS * device:
        return (
            f"the largest output is taken at {_mb(taken)}, and the device takes {_mb(device)}: "
            f"the kernel's memory holds most of it; give --dir on {_A_DISK}"
        )
    return ""


def idle_cpus(_: Evidence, samples: Sequence[Sample]) -> str:
    """The device was the limit, and not the CPUs."""
    told = [times for sample in samples if (times := _cpus(sample))]
    busy_s, whole_s = sum(t.busy_s for t in told), sum(t.total_s for t in told)
    if whole_s <= 0.0:
        return "nobody saw how busy the CPUs were"
    if busy_s > BUSIEST * whole_s:
        return (
            f"INVALID: the CPUs were {100 * busy_s / whole_s:.0f} % busy, more than "
            f"{100 * BUSIEST:g} %, so processes waited for them and not for the device; give "
            "--dir on a throttled disk or server"
        )
    return ""


def _cpus(sample: Sample) -> CpuTimes | None:
    """While the clock ran; of a program that does not tell, from its start to its end."""
    if sample.result and sample.result.cpus:
        return sample.result.cpus
    if sample.machine_before is None or sample.machine_after is None:
        return None
    before = MachineReading.model_validate(sample.machine_before)
    after = MachineReading.model_validate(sample.machine_after)
    return CpuTimes(
        busy_s=after.cpu_busy_s - before.cpu_busy_s,
        total_s=(after.cpu_total_s - before.cpu_total_s) * _at_work(sample),
    )


def _at_work(sample: Sample) -> float:
    """The part of a run in which it does not only wait for its memory to go cold."""
    regime = sample.result.parameters.get("regime") if sample.result else None
    return max(0.0, 1.0 - COLD_S / sample.wall_s) if regime == "cold" else 1.0


def nfs(evidence: Evidence, _: Sequence[Sample]) -> str:
    """Files are on NFS."""
    kinds = file_systems(evidence)
    # a client in user space is named by its program: fuse.nfsfuse
    good = kinds and all(any(w.startswith("nfs") for w in kind.split(".")) for kind in kinds)
    return "" if good else f"needs NFS, and this is {_named(kinds)}: give --dir in an NFS mount"


def parallel(evidence: Evidence, _: Sequence[Sample]) -> str:
    """Files are on a parallel file system."""
    kinds = file_systems(evidence)
    if kinds and all(any(name in kind for name in _PARALLEL) for kind in kinds):
        return ""
    return (
        f"needs a parallel file system ({', '.join(_PARALLEL)}), and this is {_named(kinds)}: "
        "give --dir in one"
    )


def several_nodes(_: Evidence, samples: Sequence[Sample]) -> str:
    """The ranks of a job ran on several nodes."""
    told = [sample.more.get("nodes") for sample in samples if sample.result]
    if told and all(isinstance(nodes, int) and nodes > 1 for nodes in told):
        return ""
    return "needs jobs of several nodes: on one both stages store straight into the owner's page"


OF_FILE_SYSTEM = ("nfs", "parallel")  # known before any sample
OF_EACH = ("idle_cpus",)  # of each variant of each cell: a long one would hide what a short one is
NEEDS: dict[str, Need] = {
    "slow_device": slow_device,
    "idle_cpus": idle_cpus,
    "nfs": nfs,
    "parallel": parallel,
    "several_nodes": several_nodes,
}


def invalid(evidence: Evidence, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """The variants of cells that are invalid, or do not have what is needed of each, and why."""
    by_pair: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in evidence.samples:
        by_pair[sample.cell, sample.variant].append(sample)
    asked = [NEEDS[name] for name in names if name in OF_EACH]
    told = {
        pair: "; ".join(why for need in asked if (why := need(evidence, samples)))
        for pair, samples in by_pair.items()
    }
    return {pair: why for pair, why in told.items() if why} | dict(evidence.invalid)


def file_systems(evidence: Evidence) -> list[str]:
    """The types of the file systems on which samples were taken, each once."""
    kinds = (str(p.file_system.get("type", "")).lower() for p in evidence.provenances)
    return [kind for kind in dict.fromkeys(kinds) if kind]


def _named(kinds: Sequence[str]) -> str:
    return " and ".join(kinds) or "not known, as nothing was measured"


def _mb(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e6:.0f} MB/s"
