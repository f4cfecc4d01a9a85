#!/usr/bin/env bash
# An NFS server, and who mounts it: this machine by a client in user space, and nodes, each a user-mode Linux, by
# the kernel's own client.
#
#   nfs.sh start DIR [N] [--mount] [--rate BYTES] [--size BYTES]
#                                      default: 2 nodes, node1 and node2 (10.80.0.1 and 10.80.0.2)
#       --mount                        this machine mounts it too, at DIR/mnt; no nodes but for N
#       --rate BYTES                   what is exported lies on a disk of so many bytes per second (slowdisk.sh)
#       --size BYTES                   the size of that disk; default 1GiB
#   nfs.sh run DIR RANKS COMMAND...    a job of MPICH: rank 0 on node1, rank 1 on node2, ...
#   nfs.sh on DIR I COMMAND...         a command on node I alone
#   nfs.sh status DIR
#   nfs.sh stop DIR                    ends what runs in them and the server; what was exported stays, but for a disk's
#
# The server exports DIR/export (a disk: DIR/disk/mnt), which is where to read what has really arrived. A node sees it
# at /mnt/nfs, this machine's files, which it cannot change, at /, and DIR/nfs/nodeI at /mnt/share. It has one CPU
# and is slow: it shows what is right, not what is fast. Its kernel is that of the package user-mode-linux.
# MPIEXEC names another mpiexec of the Hydra kind; NFS_OPTIONS other mount options than vers=4.2.
#
# The client of --mount is nfs_client.c beside this script (FUSE, libnfs, NFS 3), because not every kernel has an NFS
# client. It caches reads as any FUSE file system does, sends each write as it comes, and fsync is a COMMIT.
#
# Exit: 0 or the command's, 1 failed, 2 wrong usage, 77 not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly here=$(realpath "$(dirname "$0")")
readonly state=$dir/nfs disk=$dir/disk mnt=$dir/mnt network=10.80.0 server=10.80.0.254
readonly memory=${NFS_NODE_MEMORY:-512M} options=${NFS_OPTIONS:-vers=4.2}
[ $# -ge 2 ] || usage
shift 2

nodes='' mounts=no rate=0 size=1GiB
read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
    --mount) mounts=yes ;;
    --rate | --size)
      [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
      if [ "$1" = --rate ]; then rate=$(bytes "$2" "$1"); else size=$(bytes "$2" "$1"); fi
      shift
      ;;
    -*) stop_with $wrong_usage "no option is called '$1'; there are --mount, --rate and --size" ;;
    *) nodes=$1 ;;
    esac
    shift
  done
  if [ -z "$nodes" ]; then if [ $mounts = yes ]; then nodes=0; else nodes=2; fi; fi
  [[ $nodes =~ ^[0-9]+$ && $nodes -le 8 ]] && [ "$nodes$mounts" != 0no ] ||
    stop_with $wrong_usage "N must be a number of nodes, 1 to 8 (with --mount also 0), got '$nodes'"
  [[ $dir != *[[:space:],?]* ]] || stop_with $wrong_usage "DIR must hold no blank, comma or question mark, got '$dir'"
}

# ---- what this machine must have ----

needs_server() {
  bring "an NFS server" iproute2 util-linux nfs-ganesha nfs-ganesha-vfs
  needs ganesha.nfsd nfs-ganesha
}

needs_client() {
  bring "an NFS client in user space" rpcbind libnfs-dev libfuse3-dev fuse3 pkgconf gcc libc6-dev
  needs rpcbind rpcbind
  needs cc gcc
  pkg-config --exists libnfs fuse3 || stop_with $not_here "no libnfs or no fuse3 to build the client with"
  [ -c /dev/fuse ] || stop_with $not_here "no /dev/fuse, by which the client would mount"
}

needs_nodes() {
  bring "nodes to mount it" user-mode-linux kmod nfs-common
  needs linux.uml user-mode-linux
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

# No delegations: a client that is alone for a moment must not be trusted with a file.
server_configuration() {
  local protocols=4
  if [ $mounts = yes ]; then protocols=3,4; fi
  cat <<CONF
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; Protocols = $protocols; mount_path_pseudo = true;
                 Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = $state/recovery; Delegations = false;
        Only_Numeric_Owners = true; }
EXPORT_DEFAULTS { Access_Type = RW; Squash = none; SecType = sys; }
EXPORT { Export_Id = 1; Path = $(exported); Pseudo = /export; Protocols = $protocols; Transports = TCP; FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
CONF
}

exported() { cat "$state/exported"; }

make_export() {
  if [ "$rate" = 0 ]; then
    echo "$dir/export" >"$state/exported"
    mkdir -p "$dir/export"
  else
    # Beside the exit codes of its own: what cannot be here cannot be here for us.
    "$here/slowdisk.sh" start "$disk" --rate "$rate" --size "$size" >/dev/null || exit $?
    echo "$disk/mnt" >"$state/exported"
  fi
  chmod 1777 "$(exported)"
}

inside() { ip netns exec "$(namespace)" "$@"; }
answers() { inside bash -c "exec 3<>/dev/tcp/$server/2049"; }

# NFS 3 has to be told to a portmapper. Ours has a /run of its own, where it cannot meet the machine's: what
# `ip netns exec` runs has mounts of its own.
serve() {
  echo $BASHPID >"$state/server.pid"
  if [ $mounts = yes ]; then
    mount -t tmpfs tmpfs /run
    mkdir /run/rpcbind
    chown _rpc: /run/rpcbind 2>/dev/null || true
    rpcbind -f &
    wait_for 10 rpcinfo -p 127.0.0.1
  fi
  exec ganesha.nfsd -F -f "$state/ganesha.conf" -L "$state/ganesha.log" -p "$state/ganesha.own"
}

start_server() {
  mkdir -p "$state/recovery"
  server_configuration >"$state/ganesha.conf"
  export -f serve wait_for
  export state mounts
  inside setsid bash -c serve </dev/null >"$state/server.out" 2>&1 &
  wait_for 30 answers || stop_with 1 "the NFS server does not answer:" "$(tail -n 5 "$state/ganesha.log" "$state/server.out")"
}

# ---- this machine's own mount ----

# The client is of the server's network, and its mount is everybody's.
mount_here() {
  # shellcheck disable=SC2046  # words
  cc -O2 -o "$state/nfs_client" "$here/nfs_client.c" $(pkg-config --cflags --libs fuse3 libnfs) ||
    stop_with 1 "the client cannot be built"
  mkdir -p "$mnt"
  nsenter --net="/run/netns/$(namespace)" setsid "$state/nfs_client" \
    "nfs://$server/export?version=3&nfsport=2049&mountport=20048" "$mnt" -f \
    -o "allow_other,default_permissions,subtype=nfs,fsname=$server:/export" </dev/null >"$state/client.log" 2>&1 &
  echo $! >"$state/client.pid"
  wait_for 20 mountpoint -q "$mnt" || stop_with 1 "the server cannot be mounted:" "$(tail -n 5 "$state/client.log")"
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
  disown # how it ends is in its console
  echo "$network.$i:1" >>"$state/hosts"
}

# Debian 12's user-mode Linux starts no process on some processors (seen: one with AMX).
await_node() {
  local share=$state/node$1
  refused() { grep -q 'ptrace set fp regs failed' "$share/console"; }
  settled() { [ -e "$share/ready" ] || refused; }
  wait_for 30 settled || true
  ! refused ||
    stop_with $not_here "user-mode Linux cannot set the registers of a process on this processor"
  [ -e "$share/ready" ] ||
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

halt_nodes() {
  local share
  for share in "$state"/node*; do [ ! -d "$share" ] || touch "$share/halt"; done
  for share in "$state"/node*; do
    gone() { ! is_alive "$(pid_of "$share/pid")"; }
    wait_for 8 gone || end "$share/pid" linux.uml
  done
}

end_servers() {
  [ ! -e "$state/namespace" ] || end_namespace "$(namespace)"
}

take_down() {
  unmount "$mnt"
  halt_nodes
  end "$state/client.pid" nfs_client
  end "$state/server.pid" ganesha.nfsd
  end_servers
  if [ -d "$disk" ]; then
    "$here/slowdisk.sh" stop "$disk"
    rmdir "$disk"
  fi
  rm -rf "$state"
  rmdir "$mnt" "$dir/export" 2>/dev/null || true
}

start() {
  local i
  read_options "$@"
  needs_root "make a network and export a directory"
  needs_server
  if [ $mounts = yes ]; then needs_client; fi
  if [ "$nodes" -gt 0 ]; then needs_nodes; fi
  [ ! -e "$state" ] || stop_with 1 "there is an NFS server in $dir already; 'stop' it first"
  mkdir -p "$state"
  : >"$state/hosts"
  trap take_down EXIT # half of it is none
  make_export
  make_network
  start_server
  if [ $mounts = yes ]; then mount_here; fi
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
  if [ -e "$state/client.pid" ]; then say "$(exported) at $mnt"; fi
  if [ -s "$state/hosts" ]; then
    say "$(wc -l <"$state/hosts") nodes with $(exported) at /mnt/nfs: $(cut -d: -f1 "$state/hosts" | tr '\n' ' ')"
  fi
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
