#!/usr/bin/env bash
# Nodes with network stacks of their own: N network namespaces on a bridge, and MPI jobs across them.
#
#   nodes.sh start DIR [N] [--mount MNT]
#                                      default: 2 nodes, node1 and node2 (10.79.0.1 and 10.79.0.2)
#       --mount MNT                    node2 sees at MNT what this machine has at MNT2, node3 MNT3, ...: mounts of one
#                                      file system by clients that know nothing of each other (ceph.sh makes two)
#   nodes.sh run DIR RANKS COMMAND...  by MPICH; ranks go round the nodes: rank 0 on node1, rank 1 on node2, ...
#   DIR/nodes/mpirun -n RANKS COMMAND...    the same by Open MPI, with whatever options its mpirun has
#   nodes.sh status DIR
#   nodes.sh stop DIR                  ends what runs in them, and removes them
#
# Ranks of different nodes talk TCP and MPI_COMM_TYPE_SHARED separates them; they have host names of their own.
# The file system is this machine's, shared by all, but for --mount. MPIEXEC names another mpiexec of the Hydra kind, MPIRUN another
# mpirun of Open MPI's.
#
# Exit: 0 or the command's, 1 failed, 2 wrong usage, 77 not possible on this machine (not root, no iproute2).
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly state=$dir/nodes network=10.79.0
[ $# -ge 2 ] || usage
shift 2

# Namespaces are known by name to the whole machine: ours begin with the process that made them.
namespace() { printf '%s-%s' "$(cat "$state/prefix")" "$1"; }

make_namespace() {
  ip netns add "$1"
  ip -n "$1" link set lo up
}

# make_node I: a namespace, and a cable from its eth0 to the bridge.
make_node() {
  local node switch
  node=$(namespace "$1") switch=$(namespace switch)
  make_namespace "$node"
  ip -n "$node" link add eth0 type veth peer name "port$1" netns "$switch"
  ip -n "$switch" link set "port$1" master bridge up
  ip -n "$node" addr add "$network.$1/24" dev eth0
  ip -n "$node" link set eth0 up
  echo "$network.$1:1" >>"$state/hosts"
}

# Launchers start their proxies by a remote shell; this one's remote end is a namespace, found by the address's end.
write_remote_shell() {
  cat >"$state/remote_shell" <<SHELL
#!/usr/bin/env bash
[ "\$1" != -x ] || shift
node=\${1##*.}
shift
exec ip netns exec "$(cat "$state/prefix")-\$node" unshare --uts --mount sh -c '
  hostname "node\$1" && { [ -z "\$2" ] || [ "\$1" = 1 ] || mount --bind "\$2\$1" "\$2"; } && exec sh -c "\$3"
' sh "\$node" "$mount" "\$*"
SHELL
  chmod +x "$state/remote_shell"
}

# Open MPI's mpirun, in the first node, where the daemons of all reach it. Its ranks wait for the CPUs that there are.
write_mpirun() {
  local i
  for ((i = 1; i <= $1; i++)); do echo "$network.$i slots=1"; done >"$state/openmpi_hosts"
  cat >"$state/mpirun" <<SHELL
#!/usr/bin/env bash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec ip netns exec "$(namespace 1)" unshare --uts sh -c 'hostname node1 && exec "\$@"' sh \
  "\${MPIRUN:-mpirun.openmpi}" --mca plm_rsh_agent "$state/remote_shell" --mca plm_rsh_no_tree_spawn 1 \
  --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --hostfile "$state/openmpi_hosts" \
  --map-by node --oversubscribe --bind-to none "\$@"
SHELL
  chmod +x "$state/mpirun"
}

take_down() {
  local name
  while read -r name; do
    end_namespace "$name"
  done < <(ip netns list | awk -v prefix="$(cat "$state/prefix")-" 'index($1, prefix) == 1 { print $1 }')
  rm -rf "$state"
}

nodes=2 mount=''
read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
    --mount)
      [ $# -ge 2 ] || stop_with $wrong_usage "--mount needs a value"
      mount=$(realpath -m "$2")
      shift
      ;;
    -*) stop_with $wrong_usage "no option is called '$1'; there is --mount" ;;
    *) nodes=$1 ;;
    esac
    shift
  done
}

must_have_mounts() {
  local i
  [[ $mount =~ ^[A-Za-z0-9_./-]+$ ]] || stop_with $wrong_usage "--mount must be a plain path, got '$mount'"
  for ((i = 2; i <= nodes; i++)); do
    mountpoint -q "$mount$i" || stop_with $wrong_usage "--mount: nothing is mounted at '$mount$i', for node$i"
  done
}

start() {
  local i
  read_options "$@"
  [[ $nodes =~ ^[0-9]+$ && $nodes -ge 1 && $nodes -le 250 ]] ||
    stop_with $wrong_usage "N must be a number of nodes, 1 to 250, got '$nodes'"
  needs_root "make network namespaces"
  needs ip iproute2
  [ -z "$mount" ] || must_have_mounts
  [ ! -e "$state" ] || stop_with 1 "there are nodes in $dir already; 'stop' them first"
  mkdir -p "$state"
  echo "penstock$$" >"$state/prefix"
  echo "$nodes" >"$state/count"
  trap take_down EXIT # half a network is none
  make_namespace "$(namespace switch)" || stop_with $not_here "network namespaces are not allowed"
  ip -n "$(namespace switch)" link add bridge type bridge
  ip -n "$(namespace switch)" link set bridge up
  for ((i = 1; i <= nodes; i++)); do make_node "$i"; done
  write_remote_shell
  write_mpirun "$nodes"
  trap - EXIT
  status
}

# mpiexec runs in the first node, where the proxies of all reach it.
run() {
  [ $# -ge 2 ] || usage
  local ranks=$1
  shift
  exec ip netns exec "$(namespace 1)" unshare --uts sh -c 'hostname node1 && exec "$@"' sh \
    "${MPIEXEC:-mpiexec.mpich}" -launcher ssh -launcher-exec "$state/remote_shell" -localhost none -iface eth0 \
    -f "$state/hosts" -n "$ranks" "$@"
}

status() { say "$(cat "$state/count") nodes: $(cut -d: -f1 "$state/hosts" | tr '\n' ' ')"; }
must_be_there() { [ -e "$state/hosts" ] || stop_with 1 "no nodes in $dir"; }

case $verb in
start) start "$@" ;;
run)
  must_be_there
  run "$@"
  ;;
status)
  must_be_there
  status
  ;;
stop)
  if [ -e "$state" ]; then take_down; fi
  ;;
*) usage ;;
esac
