#!/usr/bin/env bash
# A parallel file system whose clients share by capabilities: CephFS with N object stores, all on this machine, and
# two mounts of it by clients that know nothing of each other.
#
#   ceph.sh start DIR [N] [--rate BYTES] [--size BYTES]
#       N                default: 3 object stores; files are striped over all in units of 1 MiB, in one copy
#       --rate BYTES     each store lies on a disk of so many bytes per second (slowdisk.sh)
#       --size BYTES     the size of a store; default 4GiB
#   ceph.sh status DIR
#   ceph.sh stop DIR             ends the servers and removes what start made
#
# The mounts are DIR/mnt and DIR/mnt2: a file that both write is one that two nodes write. The servers have a network
# of their own and ask nobody who he is.
#
# Exit: 0, 1 failed, 2 wrong usage, 77 not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly here=$(realpath "$(dirname "$0")")
readonly state=$dir/ceph unit=1048576 server=10.82.0.1
[ $# -ge 2 ] || usage
shift 2

stores=3 rate=0 size=4GiB
read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
    --rate | --size)
      [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
      if [ "$1" = --rate ]; then rate=$(bytes "$2" "$1"); else size=$2; fi
      shift
      ;;
    -*) stop_with $wrong_usage "no option is called '$1'; there are --rate and --size" ;;
    *) stores=$1 ;;
    esac
    shift
  done
  size=$(bytes "$size" --size)
  if ! [[ $stores =~ ^[0-9]+$ && $stores -ge 1 && $stores -le 8 ]]; then
    stop_with $wrong_usage "N must be a number of object stores, 1 to 8, got '$stores'"
  fi
  [[ $dir != *[[:space:],]* ]] || stop_with $wrong_usage "DIR must hold no blank and no comma, got '$dir'"
}

# ---- configuration ----

namespace() { cat "$state/namespace"; }
inside() { nsenter --net="/run/netns/$(namespace)" "$@"; }

make_network() {
  echo "penstock$$-ceph" >"$state/namespace"
  ip netns add "$(namespace)" || stop_with $not_here "network namespaces are not allowed"
  ip -n "$(namespace)" link set lo up
  ip -n "$(namespace)" addr add "$server/32" dev lo
}

new_id() { cat /proc/sys/kernel/random/uuid; }
store() { if [ "$rate" = 0 ]; then echo "$state/store$1"; else echo "$dir/disk$1/mnt/store"; fi; }

configuration() {
  local i
  cat <<CONF
[global]
fsid = $1
mon host = [v1:$server:6789]
mon initial members = a
public addr = $server
cluster addr = $server
auth cluster required = none
auth service required = none
auth client required = none
run dir = $state/run
admin socket = $state/run/\$name.asok
pid file = $state/run/\$name.pid
log file = $state/log/\$name.log
mon cluster log file = $state/log/cluster.log
crash dir = $state/log
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail warn = 2
mon data avail crit = 1
mgr initial modules =
[mon.a]
mon data = $state/mon
[mgr]
mgr data = $state/mgr
mgr module path = /usr/share/ceph/mgr
[mds]
mds data = $state/mds
mds cache memory limit = 128Mi
[osd]
osd objectstore = bluestore
bluestore block size = $size
bluestore block wal create = false
bluestore block db create = false
osd memory target = 939524096
osd memory cache min = 33554432
bluestore cache size = 33554432
bluestore cache autotune = false
osd op num shards = 2
osd op num threads per shard = 1
[client]
client mount timeout = 20
CONF
  for ((i = 0; i < stores; i++)); do printf '[osd.%s]\nosd data = %s\n' "$i" "$(store "$i")"; done
}

# ---- servers ----

ceph_cli() { inside timeout 30 ceph -c "$state/ceph.conf" "$@" 2>>"$state/log/cli"; }
daemon() { inside "$1" -c "$state/ceph.conf" -i "$2" >>"$state/log/daemons" 2>&1; }
failed() { stop_with 1 "$1:" "$(tail -n 5 "$state/log/daemons" "$state/log/cli" 2>/dev/null)"; }

start_monitor() {
  local id
  id=$(new_id)
  mkdir -p "$state"/{log,run,mon,mgr,mds}
  configuration "$id" >"$state/ceph.conf"
  monmaptool --create --addv a "[v1:$server:6789]" --fsid "$id" "$state/monmap" >>"$state/log/daemons"
  inside ceph-mon -c "$state/ceph.conf" --mkfs -i a --monmap "$state/monmap" >>"$state/log/daemons" 2>&1 ||
    failed "no monitor can be made"
  daemon ceph-mon a || failed "the monitor does not start"
  wait_for 30 ceph_cli -s || failed "the monitor does not answer"
  daemon ceph-mgr x || failed "the manager does not start"
}

# Without keys a store may ask before it knows the cluster, which refuses it: it asks again.
start_store() {
  local id
  id=$(new_id)
  if [ "$rate" != 0 ]; then
    "$here/slowdisk.sh" start "$dir/disk$1" --rate "$rate" --size $((size + size / 4)) >/dev/null || exit $?
  fi
  mkdir -p "$(store "$1")"
  ceph_cli osd new "$id" "$1" >/dev/null || failed "the monitor takes no store"
  inside ceph-osd -c "$state/ceph.conf" -i "$1" --mkfs --osd-uuid "$id" >>"$state/log/daemons" 2>&1 ||
    failed "store $1 cannot be made"
  wait_for 10 daemon ceph-osd "$1" || failed "store $1 does not start"
}

stores_are_up() { ceph_cli osd stat | grep -q "$stores up"; }
files_are_served() { ceph_cli mds stat | grep -q up:active; }

make_file_system() {
  wait_for 60 stores_are_up || failed "the stores do not come up"
  { ceph_cli osd pool create names 8 && ceph_cli osd pool create data 16 && ceph_cli fs new penstock names data; } \
    >>"$state/log/daemons" || failed "no file system can be made"
  daemon ceph-mds a || failed "the server of names does not start"
  wait_for 60 files_are_served || failed "the server of names does not become active"
}

mount_at() {
  mkdir -p "$dir/$1"
  inside ceph-fuse -c "$state/ceph.conf" -n "client.$1" --client_die_on_failed_remount=false "$dir/$1" \
    >>"$state/log/daemons" 2>&1 || failed "$dir/$1 cannot be mounted"
  wait_for 20 mountpoint -q "$dir/$1" || failed "$dir/$1 is not mounted"
}

stripe_over_all() {
  setfattr -n ceph.dir.layout.stripe_unit -v $unit "$dir/mnt"
  setfattr -n ceph.dir.layout.stripe_count -v "$stores" "$dir/mnt"
  chmod 1777 "$dir/mnt"
}

# ---- the whole ----

end_servers() {
  [ ! -e "$state/namespace" ] || end_namespace "$(namespace)"
}

take_down() {
  local disk
  unmount "$dir/mnt"
  unmount "$dir/mnt2"
  end_servers
  for disk in "$dir"/disk[0-9]*; do
    [ -d "$disk" ] || continue
    "$here/slowdisk.sh" stop "$disk"
    rmdir "$disk"
  done
  rm -rf "$state"
  rmdir "$dir/mnt" "$dir/mnt2" 2>/dev/null || true
}

start() {
  local i
  read_options "$@"
  needs_root "make a network and mount"
  bring "CephFS" ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse ceph-common attr fuse3 iproute2 util-linux
  needs ceph-osd ceph-osd
  needs setfattr attr
  [ -c /dev/fuse ] || stop_with $not_here "no /dev/fuse, by which a client would mount"
  [ ! -e "$state" ] || stop_with 1 "there are servers in $dir already; 'stop' them first"
  mkdir -p "$state"
  trap take_down EXIT # half of it is none
  make_network
  start_monitor
  for ((i = 0; i < stores; i++)); do start_store "$i"; done
  make_file_system
  mount_at mnt
  mount_at mnt2
  stripe_over_all
  echo "$stores stores, $rate B/s each (0: no limit), in units of $unit B" >"$state/kind"
  trap - EXIT
  status
}

status() {
  [ -s "$state/kind" ] || stop_with 1 "no CephFS in $dir"
  say "$(cat "$state/kind") at $dir/mnt and $dir/mnt2"
}

case $verb in
start) start "$@" ;;
status) status ;;
stop)
  if [ -e "$state" ]; then take_down; fi
  ;;
*) usage ;;
esac
