#!/usr/bin/env bash
# A real Slurm on this machine: one controller and N nodes that are all this machine, on loopback.
#
#   slurm.sh start DIR [N]     default: 2 nodes, n1 and n2, of 8 CPUs each
#   slurm.sh env DIR           what tells the clients where it is: eval "$(slurm.sh env DIR)"
#   slurm.sh status DIR
#   slurm.sh stop DIR          ends its jobs and its daemons; its logs stay in DIR/log until it starts again
#
# Then: srun -N2 -n4 hostname; srun --mpi=pmi2 -n4 PROGRAM (MPICH); sbatch job.sh; squeue.
#
# Needs no root: the daemons and the jobs are the user's who starts it. Ports are free ones, so that several
# can run beside each other. All it writes is below DIR; no installed configuration is read.
#
# Exit: 0, 1 failed, 2 wrong usage, 77 not possible on this machine (no Slurm, no munge).
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null) nodes=${3:-2}
[ $# -ge 2 ] || usage
readonly host=$(hostname -s) user=$(id -un)
export SLURM_CONF=$dir/slurm.conf

# ---- configuration ----

# Ports that nobody listens on now, all held at once, so that they differ. None of those which the
# kernel gives (from 32768): others would be given one before Slurm has it.
free_ports() {
  python3 - "$1" <<'PYTHON'
import contextlib
import random
import socket
import sys

sockets = []
ports = iter(random.sample(range(10000, 32768), 1000))
while len(sockets) < int(sys.argv[1]):
    one = socket.socket()
    with contextlib.suppress(OSError):
        one.bind(("127.0.0.1", next(ports)))
        sockets.append(one)
print(*(one.getsockname()[1] for one in sockets))
PYTHON
}

configuration() {
  cat <<CONF
ClusterName=penstock
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmctldPort=$1
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmdLogFile=$dir/log/slurmd.%n
SlurmdSpoolDir=$dir/state/slurmd.%n
StateSaveLocation=$dir/state
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny
ReturnToService=2
KillWait=5
MinJobAge=300
CONF
  shift
  local i=0 port
  for port in "$@"; do
    i=$((i + 1))
    echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=8 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1024"
  done
  echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
}

write_configuration() {
  mkdir -p "$dir"/{state,log,munge}
  chmod 700 "$dir/munge"
  rm -rf "$dir"/log/* "$dir"/state/*
  (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
  # shellcheck disable=SC2046  # a list of numbers
  configuration $(free_ports $((nodes + 1))) >"$SLURM_CONF"
  echo "CgroupAutomount=no" >"$dir/cgroup.conf"
  echo "$nodes" >"$dir/nodes"
}

# ---- daemons ----

# munged trusts no directory that others can write to, and /tmp is one.
start_munge() {
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --log-file="$dir/log/munged" --seed-file="$dir/munge/seed" 2>>"$dir/log/munged"
}

all_idle() { [ "$(sinfo -h -t idle -o %D)" = "$nodes" ]; }

show_logs() {
  tail -n 5 "$dir"/log/* >&2
  take_down
}

start() {
  [[ $nodes =~ ^[1-9][0-9]*$ ]] || stop_with $wrong_usage "N must be a number of nodes, at least 1, got '$nodes'"
  local daemon
  for daemon in slurmctld slurmd munged srun; do needs $daemon slurm-wlm; done
  ! is_running "$dir/slurmctld.pid" slurmctld || stop_with 1 "there is a Slurm in $dir already; 'stop' it first"
  write_configuration
  trap show_logs EXIT # half a Slurm is none
  start_munge
  slurmctld
  wait_for 20 scontrol ping || stop_with 1 "the controller does not answer"
  local i
  for ((i = 1; i <= nodes; i++)); do slurmd -N "n$i"; done
  wait_for 30 all_idle || stop_with 1 "not all $nodes nodes are idle"
  trap - EXIT
  say "$nodes nodes are up; eval \"\$($0 env $dir)\""
}

take_down() {
  if is_running "$dir/slurmctld.pid" slurmctld; then
    timeout 10 scancel --user "$user" 2>/dev/null || true
    no_jobs() { [ -z "$(squeue -h -o %i)" ]; }
    wait_for 15 no_jobs || true
  fi
  local i
  for ((i = 1; i <= $(cat "$dir/nodes"); i++)); do end "$dir/slurmd.n$i.pid" slurmd; done
  end "$dir/slurmctld.pid" slurmctld
  end "$dir/munge/pid" munged
  rm -rf "$dir"/{state,munge,nodes,slurm.conf,cgroup.conf}
}

case $verb in
start) start ;;
env)
  [ -e "$SLURM_CONF" ] || stop_with 1 "no Slurm in $dir"
  echo "export SLURM_CONF=$SLURM_CONF"
  ;;
status)
  [ -e "$SLURM_CONF" ] || stop_with 1 "no Slurm in $dir"
  sinfo -N -l
  ;;
stop)
  if [ -e "$dir/nodes" ]; then take_down; fi
  ;;
*) usage ;;
esac
