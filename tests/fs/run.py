#!/usr/bin/env python3
"""The scripts of this folder keep their promises: a disk, cluster or node is what it says it is.

A script that cannot do its work on this machine says why with exit code 77, which is a skip here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
import disk_cases
from calling import MIB, NotHereError, called, must, rate_problems, script, type_problems
from mpis import MPIS
from run_mpi import Suite

# ---- slurm.sh and nodes.sh ----

HELLO = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, together;
  char host[64];
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &together);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s with %d\\n", rank, size, host, together);
  MPI_Finalize();
  return 0;
}
"""


def hello(directory: Path, flavour: str = "mpich") -> Path:
    """A program that tells where its ranks are."""
    compiler = shutil.which(f"mpicc.{flavour}")
    if compiler is None:
        raise NotHereError(f"no mpicc.{flavour}: {MPIS[flavour].remedy()}")
    program = directory / f"hello-{flavour}"
    command = [compiler, "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=HELLO, text=True, check=True, timeout=60)
    return program


def ranks_told(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith("rank "))


def slurm_starts_ranks(directory: Path) -> list[str]:
    """Four ranks of one job on two nodes; each node's are told to run there."""
    program = hello(directory)
    problems = must(script("slurm.sh", "start", directory / "slurm", "2"), says="2 nodes are up")
    command = ["srun", "--mpi=pmi2", "-N2", "-n4", "--label", str(program)]
    done = in_slurm(directory / "slurm", command)
    problems += must(done)
    ranks = [line.split(": ", 1)[1] for line in done.stdout.splitlines()]
    if len(ranks) != 4 or not all("of 4" in rank for rank in ranks):
        problems.append(f"not four ranks of one job: {done.stdout}")
    where = in_slurm(
        directory / "slurm", ["srun", "-N2", "-n2", "sh", "-c", "echo $SLURMD_NODENAME"]
    )
    if sorted(where.stdout.split()) != ["n1", "n2"]:
        problems.append(f"not on both nodes: {where.stdout}")
    return problems


def in_slurm(directory: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"SLURM_CONF": str(directory / "slurm.conf")}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def slurm_leaves_nothing(directory: Path) -> list[str]:
    """With a job that runs: its processes end, and the daemons do."""
    slurm = directory / "slurm"
    script("slurm.sh", "start", slurm, "1")
    mark = f"{time.time_ns()}"
    batch = in_slurm(slurm, ["sbatch", "-o", "/dev/null", f"--wrap=sleep 1000 # {mark}"])
    in_slurm(
        slurm,
        ["sh", "-c", "for i in $(seq 50); do squeue -h -t R | grep . && break; sleep 0.1; done"],
    )
    pids = [int(file.read_text()) for file in [*slurm.glob("*.pid"), slurm / "munge" / "pid"]]
    problems = must(batch) + must(script("slurm.sh", "stop", slurm))
    problems += [f"process {pid} still lives" for pid in pids if lives(pid)]
    return problems + [f"{left} is left" for left in slurm.iterdir() if left.name != "log"]


def lives(pid: int) -> bool:
    with suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def nodes_are_apart(directory: Path) -> list[str]:
    """Ranks of two nodes have two host names and share no memory; nothing is left afterwards."""
    program = hello(directory)
    problems = must(script("nodes.sh", "start", directory, "2"))
    done = script("nodes.sh", "run", directory, "4", str(program))
    problems += must(done)
    expected = [f"rank {rank} of 4 on node{rank % 2 + 1} with 2" for rank in range(4)]
    if ranks_told(done.stdout) != expected:
        problems.append(f"ranks are not where they should be: {done.stdout}{done.stderr}")
    problems += must(script("nodes.sh", "run", directory, "2", "false"), code=1)
    problems += openmpi_is_across(directory)
    problems += must(script("nodes.sh", "stop", directory))
    return problems + ([f"{directory}/nodes is left"] if (directory / "nodes").exists() else [])


def openmpi_is_across(directory: Path) -> list[str]:
    """The same by the mpirun that the script makes."""
    program = hello(directory, "openmpi")
    mpirun = str(directory / "nodes" / "mpirun")
    done = called([mpirun, "-n", "4", str(program)])
    expected = [f"rank {rank} of 4 on node{rank % 2 + 1} with 2" for rank in range(4)]
    problems = must(done)
    if ranks_told(done.stdout) != expected:
        problems.append(f"ranks of Open MPI are elsewhere: {done.stdout}{done.stderr}")
    return problems + must(called([mpirun, "-n", "2", "false"]), code=1)


# ---- nfs.sh ----


def nfs_mounts_on_nodes(directory: Path) -> list[str]:
    """What a node writes the server has, and another node reads; nothing is left afterwards."""
    problems = must(script("nfs.sh", "start", directory, "2"), says="2 nodes")
    write = "echo from $(hostname) >/mnt/nfs/said; stat -f -c %T /mnt/nfs"
    problems += must(script("nfs.sh", "on", directory, "1", write), says="nfs")
    said = directory / "export" / "said"
    if not said.exists() or said.read_text() != "from node1\n":
        problems.append("the server does not have what node 1 wrote")
    problems += must(script("nfs.sh", "on", directory, "2", "cat /mnt/nfs/said"), says="from node1")
    problems += must(script("nfs.sh", "on", directory, "2", "exit 3"), code=3)
    problems += ranks_on_nodes(directory)
    pids = [int(file.read_text()) for file in (directory / "nfs").glob("**/*pid")]
    problems += must(script("nfs.sh", "stop", directory)) + must(
        script("nfs.sh", "stop", directory)
    )
    problems += [f"process {pid} still lives" for pid in pids if lives(pid)]
    return problems + ([f"{directory}/nfs is left"] if (directory / "nfs").exists() else [])


def ranks_on_nodes(directory: Path) -> list[str]:
    done = script("nfs.sh", "run", directory, "2", str(hello(directory)))
    problems = must(done)
    if ranks_told(done.stdout) != [f"rank {i} of 2 on node{i + 1} with 1" for i in range(2)]:
        problems.append(f"ranks are not where they should be: {done.stdout}{done.stderr}")
    return problems


# ---- what this machine mounts itself: nfs.sh --mount, gluster.sh, with_all.sh ----


def seconds_to_sync(directory: Path, mib: int) -> float:
    begin = time.monotonic()
    dd = ["dd", "if=/dev/zero", f"of={directory}/file", "bs=1M", f"count={mib}", "conv=fsync"]
    subprocess.run(dd, check=True, capture_output=True, timeout=120)
    return time.monotonic() - begin


def leaves_nothing(name: str, directory: Path) -> list[str]:
    """Stopped twice, no process that it told of lives, and what it made is gone."""
    pids = [int(file.read_text()) for file in directory.glob("*/*.pid")]
    problems = must(script(name, "stop", directory)) + must(script(name, "stop", directory))
    problems += [f"process {pid} still lives" for pid in pids if lives(pid)]
    if not pids:
        problems.append("it told of no process")
    return problems + [f"{left} is left" for left in directory.iterdir()]


def nfs_is_mounted_here(directory: Path) -> list[str]:
    """What is written at the mount the server has; fsync waits for the server's slow disk."""
    start = ["--mount", "--rate", "20MiB", "--size", "256MiB"]
    problems = must(script("nfs.sh", "start", directory, *start), says=f"at {directory}/mnt")
    problems += type_problems(directory / "mnt", "fuse.nfs")
    (directory / "mnt" / "said").write_text("hello")
    if (directory / "disk" / "mnt" / "said").read_text() != "hello":
        problems.append("the server does not have what was written")
    seconds = seconds_to_sync(directory / "mnt", 40)
    problems += rate_problems("fsync", 40 * MIB / seconds, 20 * MIB)
    problems += must(script("nfs.sh", "start", directory, "--mount"), code=1, says="already")
    problems += must(script("nfs.sh", "start", directory, "9"), code=2, says="got '9'")
    return problems + leaves_nothing("nfs.sh", directory)


def gluster_spreads_a_file(directory: Path) -> list[str]:
    """Each brick of three has its share, which with one's redundancy is a half of the file."""
    start = ["3", "--kind", "disperse", "--rate", "20MiB", "--size", "256MiB"]
    problems = must(script("gluster.sh", "start", directory, *start), says="disperse over 3 bricks")
    problems += type_problems(directory / "mnt", "fuse.glusterfs")
    seconds = seconds_to_sync(directory / "mnt", 40)
    if 40 * MIB / seconds > 1.1 * 2 * 20 * MIB:
        problems.append(f"40 MiB were synced in {seconds:.2f} s: faster than two disks")
    shares = [share.stat().st_size for share in directory.glob("disk*/mnt/brick/file")]
    if shares != [20 * MIB] * 3:
        problems.append(f"the bricks have {shares} bytes of it")
    problems += must(script("gluster.sh", "start", directory), code=1, says="already")
    return problems + leaves_nothing("gluster.sh", directory)


def ceph_has_two_clients(directory: Path) -> list[str]:
    """What one mount writes the other reads; nothing is left afterwards."""
    problems = must(script("ceph.sh", "start", directory), says="3 stores")
    problems += type_problems(directory / "mnt", "fuse.ceph-fuse")
    (directory / "mnt" / "said").write_text("hello")
    if (directory / "mnt2" / "said").read_text() != "hello":
        problems.append("the other client does not have what was written")
    problems += must(script("ceph.sh", "start", directory), code=1, says="already")
    problems += must(script("ceph.sh", "start", directory, "9"), code=2, says="got '9'")
    problems += must(script("ceph.sh", "stop", directory)) + must(
        script("ceph.sh", "stop", directory)
    )
    return problems + [f"{left} is left" for left in directory.iterdir()]


def gluster_refuses_wrong_words(directory: Path) -> list[str]:
    cases = [
        (["--kind", "stripe"], "--kind must be shard, disperse or distribute, got 'stripe'"),
        (["2", "--kind", "disperse"], "N must be a number of bricks, 3 to 16, got '2'"),
        (["--speed", "1"], "no option is called '--speed'"),
    ]
    problems = []
    for words, says in cases:
        problems += must(script("gluster.sh", "start", directory, *words), code=2, says=says)
    return problems + [f"{left} is left" for left in directory.rglob("*")]


def all_four_are_there_while_a_command_runs(directory: Path) -> list[str]:
    """It finds each by its name in the environment, and its exit code is kept."""
    names = ("EXT4", "SLOW", "NFS", "PARALLEL")
    write = "; ".join(f'echo hello >"$PENSTOCK_FS_{name}/file"' for name in names)
    types = "; ".join(f'stat -f -c %T "$PENSTOCK_FS_{name}"' for name in names)
    options = ["--size", "256MiB"]
    command = ["sh", "-c", f"set -e; {write}; {types}; exit 3"]
    done = script("with_all.sh", "--dir", directory / "all", *options, *command)
    problems = must(done, code=3)
    if done.stdout.split() != ["ext2/ext3", "ext2/ext3", "fuseblk", "fuseblk"]:
        problems.append(f"they are not what they should be: {done.stdout}{done.stderr}")
    return problems + [f"{left} is left" for left in directory.iterdir()]


CASES: dict[Callable[[Path], list[str]], str] = {
    **disk_cases.CASES,
    slurm_starts_ranks: "slurm.sh",
    slurm_leaves_nothing: "slurm.sh",
    nodes_are_apart: "nodes.sh",
    nfs_mounts_on_nodes: "nfs.sh",
    nfs_is_mounted_here: "nfs.sh",
    gluster_spreads_a_file: "gluster.sh",
    gluster_refuses_wrong_words: "gluster.sh",
    ceph_has_two_clients: "ceph.sh",
    all_four_are_there_while_a_command_runs: "gluster.sh",
}


def run_case(suite: Suite, case: Callable[[Path], list[str]]) -> None:
    name = case.__name__
    with tempfile.TemporaryDirectory(prefix="penstock-fs-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        try:
            suite.check(name, case(place))
        except NotHereError as missing:
            suite.skip(name, str(missing))
        finally:
            for made in (place, place / "slurm", place / "memory"):
                with suppress(NotHereError):
                    script(CASES[case], "stop", made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, help="not used; every suite takes it")
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    options = parser.parse_args()
    suite = Suite("fs scripts")
    for case in CASES:
        if options.only in case.__name__:
            run_case(suite, case)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
