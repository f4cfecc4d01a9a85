#!/usr/bin/env bash
# A parallel file system: GlusterFS with N servers of bricks, all on this machine, and this machine's mount of it.
#
#   gluster.sh start DIR [N] [--kind shard|disperse|distribute] [--rate BYTES] [--size BYTES]
#       N                default: 4 bricks
#       --kind           how a file lies on them; default: shard
#           shard        in pieces of 4 MiB, each whole on one brick: what other parallel file systems call a stripe
#           disperse     each 512 bytes x (N-1) over all, with redundancy for one brick; N from 3
#           distribute   whole on one brick
#       --rate BYTES     each brick lies on a disk of so many bytes per second (slowdisk.sh)
#       --size BYTES     the size of that disk; default 1GiB
#   gluster.sh status DIR
#   gluster.sh stop DIR                   ends the servers and removes what start made, but for bricks without a disk
#
# The mount is DIR/mnt. One mount only for shard: two that write one file at once leave its size wrong.
# The bricks are DIR/brickN, or DIR/diskN/mnt/brick, and the servers have a network of their own.
#
# Exit: 0, 1 failed, 2 wrong usage, 77 not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly here=$(realpath "$(dirname "$0")")
readonly state=$dir/gluster mnt=$dir/mnt server=10.81.0.1 volume=pv
[ $# -ge 2 ] || usage
shift 2

bricks=4 kind=shard rate=0 size=1GiB
read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
    --kind | --rate | --size)
      [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
      case $1 in
      --kind) kind=$2 ;;
      --rate) rate=$(bytes "$2" "$1") ;;
      --size) size=$(bytes "$2" "$1") ;;
      esac
      shift
      ;;
    -*) stop_with $wrong_usage "no option is called '$1'; there are --kind, --rate and --size" ;;
    *) bricks=$1 ;;
    esac
    shift
  done
  case $kind in shard | distribute | disperse) ;; *)
    stop_with $wrong_usage "--kind must be shard, disperse or distribute, got '$kind'"
    ;;
  esac
  local fewest=1
  if [ "$kind" = disperse ]; then fewest=3; fi
  if ! [[ $bricks =~ ^[0-9]+$ && $bricks -ge $fewest && $bricks -le 16 ]]; then
    stop_with $wrong_usage "N must be a number of bricks, $fewest to 16, got '$bricks'"
  fi
  [[ $dir != *[[:space:],:]* ]] || stop_with $wrong_usage "DIR must hold no blank, comma or colon, got '$dir'"
}

# ---- servers ----

namespace() { cat "$state/namespace"; }
inside() { ip netns exec "$(namespace)" "$@"; }

make_network() {
  echo "penstock$$-gluster" >"$state/namespace"
  ip netns add "$(namespace)" || stop_with $not_here "network namespaces are not allowed"
  ip -n "$(namespace)" link set lo up
  ip -n "$(namespace)" addr add "$server/32" dev lo # the manager refuses bricks on 127.0.0.1
}

# Where brick I lies; on a disk of its own where there is a rate.
brick() { if [ "$rate" = 0 ]; then echo "$dir/brick$1"; else echo "$dir/disk$1/mnt/brick"; fi; }

make_brick() {
  if [ "$rate" != 0 ]; then
    "$here/slowdisk.sh" start "$dir/disk$1" --rate "$rate" --size "$size" >/dev/null || exit $?
  fi
  mkdir -p "$(brick "$1")"
}

server_configuration() {
  cat <<CONF
volume management
    type mgmt/glusterd
    option working-directory $state/work
    option run-directory $state/run
    option transport-type socket
    option transport.address-family inet
    option transport.socket.bind-address $server
    option transport.socket.listen-port 24007
    option glusterd-sockfile $state/glusterd.socket
    option ping-timeout 0
end-volume
CONF
}

# Logs and sockets of the bricks have fixed places: here they are of the servers alone, as are the mounts that
# `ip netns exec` gives them.
serve() {
  echo $BASHPID >"$state/server.pid"
  mount --bind "$state/log" /var/log/glusterfs
  mount --bind "$state/run" /var/run/gluster
  exec glusterd -N -f "$state/glusterd.vol" -l "$state/log/glusterd.log" -L WARNING
}

manage() {
  inside gluster --glusterd-sock="$state/glusterd.socket" --log-file="$state/log/cli.log" --mode=script "$@"
}

start_server() {
  mkdir -p "$state"/{work,run,log/bricks} /var/log/glusterfs /var/run/gluster
  server_configuration >"$state/glusterd.vol"
  export -f serve
  export state
  inside setsid bash -c serve </dev/null >"$state/log/server" 2>&1 &
  wait_for 30 manage volume list || stop_with 1 "glusterd does not answer:" "$(tail -n 5 "$state/log/glusterd.log")"
}

make_volume() {
  local layout=() places=() i
  if [ "$kind" = disperse ]; then layout=(disperse "$bricks" redundancy 1); fi
  for ((i = 1; i <= bricks; i++)); do places+=("$server:$(brick "$i")"); done
  # force: a brick at the root of its disk, and several on one machine, are what is wanted here.
  manage volume create $volume "${layout[@]}" transport tcp "${places[@]}" force
  if [ "$kind" = shard ]; then manage volume set $volume features.shard on; fi
  if [ "$kind" = shard ]; then manage volume set $volume features.shard-block-size 4MB; fi
  manage volume set $volume network.ping-timeout 0 # a server that waits for its disk is not dead
  manage volume start $volume
}

# The client is of the servers' network, and its mount is everybody's.
mount_here() {
  mkdir -p "$mnt"
  nsenter --net="/run/netns/$(namespace)" glusterfs -s $server --volfile-id=$volume -p "$state/client.pid" \
    -l "$state/log/client.log" --attribute-timeout=0 --entry-timeout=0 "$mnt" ||
    stop_with 1 "the volume cannot be mounted:" "$(tail -n 5 "$state/log/client.log")"
  wait_for 20 mountpoint -q "$mnt" || stop_with 1 "the volume is not mounted:" "$(tail -n 5 "$state/log/client.log")"
  chmod 1777 "$mnt"
}

# ---- the whole ----

end_servers() {
  [ ! -e "$state/namespace" ] || end_namespace "$(namespace)"
}

take_down() {
  local disk
  unmount "$mnt"
  end "$state/client.pid" glusterfs
  end_servers
  for disk in "$dir"/disk[0-9]*; do
    [ -d "$disk" ] || continue
    "$here/slowdisk.sh" stop "$disk"
    rmdir "$disk"
  done
  rm -rf "$state"
  rmdir "$mnt" 2>/dev/null || true
}

start() {
  local i
  read_options "$@"
  needs_root "make a network and mount"
  bring "GlusterFS" glusterfs-server glusterfs-client fuse3 iproute2 util-linux
  needs glusterd glusterfs-server
  [ -c /dev/fuse ] || stop_with $not_here "no /dev/fuse, by which a client would mount"
  [ ! -e "$state" ] || stop_with 1 "there are servers in $dir already; 'stop' them first"
  if [ "$rate" = 0 ] && compgen -G "$dir/brick[0-9]*" >/dev/null; then
    stop_with 1 "$dir has bricks of another volume; remove them, or take another DIR"
  fi
  mkdir -p "$state"
  trap take_down EXIT # half of it is none
  for ((i = 1; i <= bricks; i++)); do make_brick "$i"; done
  make_network
  start_server
  make_volume >"$state/log/volume" || stop_with 1 "no volume:" "$(tail -n 5 "$state/log/volume" "$state/log/cli.log")"
  mount_here
  echo "$kind over $bricks bricks, $rate B/s each (0: no limit)" >"$state/kind"
  trap - EXIT
  status
}

status() {
  [ -s "$state/kind" ] || stop_with 1 "no GlusterFS in $dir"
  say "$(cat "$state/kind") at $mnt"
}

case $verb in
start) start "$@" ;;
status) status ;;
stop)
  if [ -e "$state" ]; then take_down; fi
  ;;
*) usage ;;
esac
