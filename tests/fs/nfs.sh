#!/usr/bin/env bash
# NFS with several clients: a server (nfs-ganesha), and N nodes that mount from it with the kernel's own client.
# A node is a kernel of its own (user-mode Linux), so that no two of them share a cache.
#
#   nfs.sh start DIR [N]               default: 2 nodes, node1 and node2
#   nfs.sh run DIR RANKS COMMAND...    an MPICH job; ranks go round the nodes: rank 0 on node1, rank 1 on node2, ...
#   nfs.sh node DIR I COMMAND...       a command on node I
#   nfs.sh status DIR
#   nfs.sh stop DIR                    ends nodes and server; what was exported stays in DIR/export
#
# What is in DIR/export on this machine is in /mnt/nfs on the nodes. Of this machine's files a node sees all,
# and can change none but those of DIR/node.I, which is /mnt/own there. Nodes are slow, and have one core each:
# for what is right, not for what is fast. VERSION=4.2 (or 4.1, 4.0) is the protocol.
#
# Exit: 0 or the command's, 1 failed, 2 wrong usage, 77 not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly state=$dir/nfs network=10.80.0 server=10.80.0.254
[ $# -ge 2 ] || usage
shift 2

fail() { stop_with 1 "$@"; }
namespace() { cat "$state/namespace"; }
inside() { nsenter --net="/run/netns/$(namespace)" "$@"; }
node_dir() { printf '%s/node.%s' "$dir" "$1"; }

# ---- the network: a bridge in a namespace of its own, whose name on all sides is eth0, as Hydra wants it ----

make_network() {
  echo "penstock$$-nfs" >"$state/namespace"
  ip netns add "$(namespace)" || stop_with $not_here "network namespaces are not allowed"
  ip -n "$(namespace)" link set lo up
  ip -n "$(namespace)" link add eth0 type bridge
  ip -n "$(namespace)" addr add "$server/24" dev eth0
  ip -n "$(namespace)" link set eth0 up
}

make_port() {
  ip -n "$(namespace)" tuntap add dev "port$1" mode tap || stop_with $not_here "no /dev/net/tun"
  ip -n "$(namespace)" link set "port$1" master eth0 up
}

# ---- the server ----

server_configuration() {
  cat <<CONF
NFS_CORE_PARAM { Protocols = 4; NFS_Port = 2049; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = $state/recovery; Minor_Versions = 0,1,2;
  Delegations = false; Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RW; Squash = none; SecType = sys; }
EXPORT { Export_Id = 1; Path = $dir/export; Pseudo = /export; Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
CONF
}

# With a /run of its own its rpcbind never meets the machine's.
start_server() {
  mkdir -p "$dir/export" "$state/recovery"
  chmod 1777 "$dir/export"
  server_configuration >"$state/ganesha.conf"
  # shellcheck disable=SC2016  # it is the inner shell's
  inside setsid unshare --mount --propagation private bash -c '
    mount -t tmpfs tmpfs /run && mkdir /run/rpcbind /run/ganesha && chown _rpc /run/rpcbind
    rpcbind -f & echo $! >"$1/rpcbind.pid"
    for _ in $(seq 50); do rpcinfo -p 127.0.0.1 >/dev/null 2>&1 && break; sleep 0.1; done
    exec ganesha.nfsd -F -f "$1/ganesha.conf" -L "$1/ganesha.log" -p /run/ganesha.pid' _ "$state" \
    </dev/null >"$state/server.log" 2>&1 &
  echo $! >"$state/ganesha.pid"
  wait_for 30 inside timeout 2 rpcinfo -t 127.0.0.1 100003 4 ||
    fail "the server does not answer: $(tail -n 3 "$state/ganesha.log" 2>/dev/null)"
}

# ---- a node ----

# The first program of a node. It takes commands from a file, one at a time.
node_init() {
  cat <<'INIT'
#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TMPDIR=/run
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do case $word in penstock_*) declare "${word%%=*}=${word#*=}" ;; esac; done
mount -t sysfs sys /sys
mkdir -p /dev/shm /dev/pts
mount -t devpts pts /dev/pts
for place in /dev/shm /run /mnt; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /mnt/own /mnt/nfs /mnt/modules/lib
ln -s /usr/lib/uml/modules /mnt/modules/lib/modules
mount -t hostfs -o "$penstock_dir" none /mnt/own
ip link set lo up
ip addr add "$penstock_address/24" dev eth0
ip link set eth0 up
hostname "node$penstock_node"
modprobe -d /mnt/modules nfsv4
cd /mnt/own
mount -t nfs -o "vers=$penstock_version,proto=tcp,sec=sys" "$penstock_server:/export" /mnt/nfs 2>mount.log && : >ready
while [ ! -e halt ]; do
  if [ -e request ]; then
    mv request current
    bash ./current >output 2>&1 </dev/null
    echo $? >code.new
    mv code.new code
  else
    sleep 0.05
  fi
done
cd /
umount /mnt/nfs
sync
echo o >/proc/sysrq-trigger
sleep 9
INIT
}

start_node() {
  local own
  own=$(node_dir "$1")
  make_port "$1"
  mkdir -p "$own"
  rm -f "$own"/{ready,halt,request,current,code}
  node_init >"$own/init"
  chmod +x "$own/init"
  inside setsid linux.uml "umid=penstock$$-$1" "uml_dir=$own" mem=512M rootfstype=hostfs ro "init=$own/init" \
    "eth0=tuntap,port$1" con=null con0=null,fd:1 "penstock_dir=$own" "penstock_node=$1" \
    "penstock_address=$network.$1" "penstock_server=$server" "penstock_version=${VERSION:-4.2}" \
    </dev/null >"$own/console" 2>&1 &
  echo $! >"$own/pid"
}

wait_for_node() {
  local own
  own=$(node_dir "$1")
  wait_for 30 test -e "$own/ready" ||
    fail "node $1 does not mount: $(cat "$own/mount.log" 2>/dev/null; tail -n 3 "$own/console")"
  echo "$network.$1:1" >>"$state/hosts"
}

# on_node I COMMAND: one string, for the node's shell.
on_node() {
  local own
  own=$(node_dir "$1")
  rm -f "$own/code"
  printf '%s\n' "$2" >"$own/request.new"
  mv "$own/request.new" "$own/request"
  until [ -e "$own/code" ]; do
    sleep 0.02
    is_alive "$(pid_of "$own/pid")" || fail "node $1 died: $(tail -n 3 "$own/console")"
  done
  cat "$own/output"
  return "$(cat "$own/code")"
}

# Hydra starts its proxies by a remote shell: this script, as `shell`.
write_remote_shell() {
  cat >"$state/remote_shell" <<SHELL
#!/usr/bin/env bash
[ "\$1" != -x ] || shift
node=\${1##*.}
shift
exec "$(realpath "$0")" node "$dir" "\$node" "\$*"
SHELL
  chmod +x "$state/remote_shell"
}

# ---- verbs ----

end_node() {
  local own
  own=$1
  [ -s "$own/pid" ] || return 0
  : >"$own/halt"
  gone() { ! is_alive "$(pid_of "$own/pid")"; }
  wait_for 8 gone || true
  end "$own/pid" linux.uml
}

take_down() {
  local own
  for own in "$dir"/node.[0-9]*; do end_node "$own"; done
  end "$state/ganesha.pid" ganesha.nfsd
  end "$state/rpcbind.pid" rpcbind
  if [ -s "$state/namespace" ]; then
    # shellcheck disable=SC2046  # a list of numbers; only ours can be in there
    kill -9 $(ip netns pids "$(namespace)") 2>/dev/null || true
    ip netns del "$(namespace)" || true
  fi
  rm -rf "$state" "$dir"/node.[0-9]*
}

start() {
  local nodes=${1:-2} i
  [[ $nodes =~ ^[0-9]+$ && $nodes -ge 1 && $nodes -le 8 ]] ||
    stop_with $wrong_usage "N must be a number of nodes, 1 to 8, got '$nodes'"
  needs_root "start a server and kernels in a network of their own"
  needs ip iproute2
  needs ganesha.nfsd "nfs-ganesha nfs-ganesha-vfs"
  needs rpcbind rpcbind
  needs linux.uml user-mode-linux
  needs mount.nfs nfs-common
  [ -w /dev/net/tun ] || stop_with $not_here "no /dev/net/tun"
  [ ! -e "$state" ] || stop_with 1 "there is a server in $dir already; 'stop' it first"
  mkdir -p "$state"
  trap take_down EXIT # half of it is nothing
  make_network
  start_server
  for ((i = 1; i <= nodes; i++)); do start_node "$i"; done
  for ((i = 1; i <= nodes; i++)); do wait_for_node "$i"; done
  write_remote_shell
  trap - EXIT
  status
}

# mpiexec runs beside the server, where the proxies of all nodes reach it.
run() {
  [ $# -ge 2 ] || usage
  local ranks=$1
  shift
  inside "${MPIEXEC:-mpiexec.mpich}" -launcher ssh -launcher-exec "$state/remote_shell" -localhost none \
    -iface eth0 -f "$state/hosts" -n "$ranks" "$@"
}

status() { say "NFS ${VERSION:-4.2} of $dir/export on nodes $(cut -d: -f1 "$state/hosts" | tr '\n' ' ')"; }
must_be_there() { [ -e "$state/hosts" ] || stop_with 1 "no server in $dir"; }

case $verb in
start) start "$@" ;;
run)
  must_be_there
  run "$@"
  ;;
node)
  must_be_there
  [ $# -ge 2 ] || usage
  on_node "$1" "${*:2}"
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
