#!/usr/bin/env bash
# An NFS server, and nodes that mount it by the kernel's own NFS client: each node is a user-mode Linux.
#
#   nfs.sh start DIR [N]               default: 2 nodes, node1 and node2 (10.80.0.1 and 10.80.0.2)
#   nfs.sh run DIR RANKS COMMAND...    a job of MPICH: rank 0 on node1, rank 1 on node2, ...
#   nfs.sh on DIR I COMMAND...         a command on node I alone
#   nfs.sh status DIR
#   nfs.sh stop DIR                    ends what runs in them and the server; what was exported stays
#
# The server exports DIR/export, which is where to read what has really arrived. A node sees it at /mnt/nfs, this
# machine's files, which it cannot change, at /, and DIR/nfs/nodeI at /mnt/share. It has one CPU and is slow: it
# shows what is right, not what is fast. Its kernel is that of the package user-mode-linux.
# MPIEXEC names another mpiexec of the Hydra kind; NFS_OPTIONS other mount options than vers=4.2.
#
# Exit: 0 or the command's, 1 failed, 2 wrong usage, 77 not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly state=$dir/nfs export=$dir/export network=10.80.0 server=10.80.0.254
readonly memory=${NFS_NODE_MEMORY:-512M} options=${NFS_OPTIONS:-vers=4.2}
[ $# -ge 2 ] || usage
shift 2

# ---- what this machine must have ----

exists() { compgen -G "$1" >/dev/null; }

# All that is missing is said at once, with the one command that brings it.
needs_packages() {
  local missing=() program package
  while read -r program package; do
    command -v "$program" >/dev/null || missing+=("$package")
  done <<'NEEDED'
ip iproute2
setsid util-linux
ganesha.nfsd nfs-ganesha
linux.uml user-mode-linux
modprobe kmod
mount.nfs nfs-common
NEEDED
  exists '/usr/lib/*/ganesha/libfsalvfs.so' || missing+=(nfs-ganesha-vfs)
  exists '/usr/lib/uml/modules/*' || missing+=(user-mode-linux)
  [ ${#missing[@]} = 0 ] || stop_with $not_here "an NFS server or nodes to mount it are missing; on Debian:" \
    "  apt-get install -y --no-install-recommends $(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')"
  [ -c /dev/net/tun ] || stop_with $not_here "no /dev/net/tun, by which a node would have a network"
}

# ---- server and network ----

# Namespaces are known by name to the whole machine: this one begins with the process that made it.
namespace() { cat "$state/namespace"; }

# The bridge has the name that the nodes' own interface has, because Hydra takes one name for all.
make_network() {
  echo "penstock$$-nfs" >"$state/namespace"
  ip netns add "$(namespace)" || stop_with $not_here "network namespaces are not allowed"
  ip -n "$(namespace)" link set lo up
  ip -n "$(namespace)" link add eth0 type bridge
  ip -n "$(namespace)" addr add "$server/24" dev eth0
  ip -n "$(namespace)" link set eth0 up
}

# NFS 4 needs no portmapper. No delegations: a client that is alone for a moment must not be trusted with a file.
server_configuration() {
  cat <<CONF
NFS_CORE_PARAM { NFS_Port = 2049; Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = $state/recovery; Delegations = false;
        Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RW; Squash = none; SecType = sys; }
EXPORT { Export_Id = 1; Path = $export; Pseudo = /export; Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
CONF
}

answers() { ip netns exec "$(namespace)" bash -c "exec 3<>/dev/tcp/$server/2049"; }

start_server() {
  mkdir -p "$export" "$state/recovery"
  chmod 1777 "$export"
  server_configuration >"$state/ganesha.conf"
  ip netns exec "$(namespace)" setsid ganesha.nfsd -F -f "$state/ganesha.conf" -L "$state/ganesha.log" -p "$state/ganesha.own" \
    </dev/null >"$state/server.out" 2>&1 &
  echo $! >"$state/server.pid"
  wait_for 30 answers || stop_with 1 "the NFS server does not answer:" "$(tail -n 5 "$state/ganesha.log")"
}

# ---- nodes ----

# A node's first process. Requests come as files, because a node shares nothing else with this machine at once; it
# waits for them on a pipe that nobody writes to, which costs no process as sleep would.
write_init() {
  cat >"$state/init" <<'INIT'
#!/usr/bin/env bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TMPDIR=/dev/shm
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do case $word in node_*) declare "$word" ;; esac; done
mount -t sysfs sys /sys
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
for place in /dev/shm /run /mnt; do mount -t tmpfs tmpfs $place; done
mkdir -p /mnt/share /mnt/nfs /mnt/modules/lib
mount -t hostfs -o "$node_share" none /mnt/share
cd /mnt/share
hostname "node$node_number"
ip link set lo up
ip addr add "$node_address/24" dev eth0
ip link set eth0 up
ln -s /usr/lib/uml/modules /mnt/modules/lib/modules
modprobe -d /mnt/modules nfsv4
mount -t nfs -o "proto=tcp,sec=sys,$node_options" "$node_server:/export" /mnt/nfs 2>mount.err && echo >ready
mkfifo /run/never
exec 9<>/run/never
until [ -e halt ]; do
  if [ -e request ]; then
    mv request current
    sh ./current >output 2>&1 </dev/null
    echo $? >answer.new
    mv answer.new answer
  else
    read -rt 0.05 -u 9
  fi
done
cd /
umount /mnt/nfs
sync
echo o >/proc/sysrq-trigger
sleep 10
INIT
  chmod +x "$state/init"
}

boot_node() {
  local i=$1 share=$state/node$1
  mkdir -p "$share"
  ip -n "$(namespace)" tuntap add dev "tap$i" mode tap
  ip -n "$(namespace)" link set "tap$i" master eth0 up
  ip netns exec "$(namespace)" setsid linux.uml umid="node$i" uml_dir="$share" mem="$memory" rootfstype=hostfs ro init="$state/init" \
    eth0="tuntap,tap$i" con=null con0=null,fd:1 node_number="$i" node_share="$share" node_address="$network.$i" \
    node_server="$server" node_options="$options" </dev/null >"$share/console" 2>&1 &
  echo $! >"$share/pid"
  echo "$network.$i:1" >>"$state/hosts"
}

await_node() {
  local share=$state/node$1
  wait_for 30 test -e "$share/ready" ||
    stop_with 1 "node $1 has not mounted the server:" "$(cat "$share/mount.err" 2>/dev/null)" \
      "$(tail -n 3 "$share/console")"
}

# One command at a time on a node.
on() {
  [ $# -ge 2 ] || usage
  local share=$state/node$1
  shift
  rm -f "$share/answer"
  printf '%s\n' "$*" >"$share/request.new"
  mv "$share/request.new" "$share/request"
  until [ -e "$share/answer" ]; do
    is_alive "$(pid_of "$share/pid")" || stop_with 1 "the node has died:" "$(tail -n 3 "$share/console")"
    sleep 0.02
  done
  cat "$share/output"
  return "$(cat "$share/answer")"
}

# Hydra starts its proxies by a remote shell; a node is found by the address's end.
write_remote_shell() {
  cat >"$state/remote_shell" <<SHELL
#!/usr/bin/env bash
[ "\$1" != -x ] || shift
node=\${1##*.}
shift
exec "$(realpath "$0")" on "$dir" "\$node" "\$*"
SHELL
  chmod +x "$state/remote_shell"
}

# ---- the whole ----

take_down() {
  local share
  for share in "$state"/node*; do [ ! -d "$share" ] || touch "$share/halt"; done
  for share in "$state"/node*; do
    gone() { ! is_alive "$(pid_of "$share/pid")"; }
    wait_for 8 gone || end "$share/pid" linux.uml
  done
  end "$state/server.pid" ganesha.nfsd
  if [ -e "$state/namespace" ]; then
    # shellcheck disable=SC2046  # a list of numbers
    kill -9 $(ip netns pids "$(namespace)" 2>/dev/null) 2>/dev/null || true
    ip netns del "$(namespace)" 2>/dev/null || true
  fi
  rm -rf "$state"
  rmdir "$export" 2>/dev/null || true
}

start() {
  local nodes=${1:-2} i
  [[ $nodes =~ ^[0-9]+$ && $nodes -ge 1 && $nodes -le 8 ]] ||
    stop_with $wrong_usage "N must be a number of nodes, 1 to 8, got '$nodes'"
  [[ $dir != *[[:space:],]* ]] || stop_with $wrong_usage "DIR must hold no blank and no comma, got '$dir'"
  needs_root "make a network and export a directory"
  needs_packages
  [ ! -e "$state" ] || stop_with 1 "there is an NFS server in $dir already; 'stop' it first"
  mkdir -p "$state"
  trap take_down EXIT # half of it is none
  make_network
  start_server
  write_init
  write_remote_shell
  for ((i = 1; i <= nodes; i++)); do boot_node "$i"; done
  for ((i = 1; i <= nodes; i++)); do await_node "$i"; done
  trap - EXIT
  status
}

# mpiexec runs where the server does, and the proxies reach it there.
run() {
  [ $# -ge 2 ] || usage
  local ranks=$1
  shift
  exec ip netns exec "$(namespace)" env TMPDIR=/dev/shm "${MPIEXEC:-mpiexec.mpich}" -launcher ssh \
    -launcher-exec "$state/remote_shell" -localhost none -iface eth0 -f "$state/hosts" -n "$ranks" "$@"
}

status() {
  say "$(wc -l <"$state/hosts") nodes with $export at /mnt/nfs: $(cut -d: -f1 "$state/hosts" | tr '\n' ' ')"
}
must_be_there() { [ -e "$state/hosts" ] || stop_with 1 "no NFS server in $dir"; }

case $verb in
start) start "$@" ;;
run | on | status)
  must_be_there
  "$verb" "$@"
  ;;
stop)
  if [ -e "$state" ]; then take_down; fi
  ;;
*) usage ;;
esac
