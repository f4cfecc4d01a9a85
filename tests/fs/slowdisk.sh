#!/usr/bin/env bash
# A disk of a known speed: a loop device with a file system, held to a rate by the kernel's block throttle.
#
#   slowdisk.sh start DIR [--rate BYTES] [--iops N] [--cache BYTES] [--fs ext4|xfs|btrfs] [--size BYTES] [--block BYTES]
#   slowdisk.sh set DIR [--rate BYTES] [--iops N] [--cache BYTES]     other limits, at once; 0: none
#   slowdisk.sh run DIR -- COMMAND...                 a command that the limit holds for
#   slowdisk.sh status DIR
#   slowdisk.sh stop DIR                              unmounts, and removes what start made
#
# The file system is DIR/mnt. Defaults: --rate 40MiB --iops 0 --cache 0 --fs ext4 --size 1GiB, and
# blocks as the file system has them. --cache is how
# much of it may wait in memory to be written (Linux 6.3): a buffer memory of a known size. Rate and calls hold
# for reads and writes alike, each for itself. With cgroup v1 the limit is the root group's, so that it holds for every
# process and for write-back by the kernel too, and `run` only runs. With cgroup v2 it is a group's, and only
# `run` puts a command into that. Start measures that the limit is kept, and fails when it is not.
#
# Exit: 0, 1 failed, 2 wrong usage, 77 not possible on this machine (not root, no block throttle).
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly state=$dir/slowdisk image=$dir/slowdisk/image mnt=$dir/mnt
readonly v1=/sys/fs/cgroup/blkio v2=/sys/fs/cgroup
[ $# -ge 2 ] || usage
shift 2

rate=40MiB iops=0 cache=0 fs=ext4 size=1GiB block=0
read_options() {
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
    case $1 in
    --rate) rate=$2 ;;
    --iops) iops=$2 ;;
    --cache) cache=$2 ;;
    --fs) fs=$2 ;;
    --size) size=$2 ;;
    --block) block=$2 ;;
    *) stop_with $wrong_usage "no option is called '$1'; there are --rate, --iops, --cache, --fs, --size and --block" ;;
    esac
    shift 2
  done
  rate=$(bytes "$rate" --rate)
  cache=$(bytes "$cache" --cache)
  size=$(bytes "$size" --size)
  block=$(bytes "$block" --block)
  [[ $iops =~ ^[0-9]+$ ]] || stop_with $wrong_usage "--iops must be a whole number, 0 for no limit, got '$iops'"
  case $fs in ext4 | xfs | btrfs) ;; *) stop_with $wrong_usage "--fs must be ext4, xfs or btrfs, got '$fs'" ;; esac
}

# ---- the throttle ----

# v1 lets the root group be limited; v2 does not, so there a group of our own is.
throttle_of_this_machine() {
  if [ -w $v1/blkio.throttle.write_bps_device ]; then
    echo v1
  elif grep -qw io $v2/cgroup.controllers 2>/dev/null; then
    echo v2
  else
    stop_with $not_here "no block throttle: neither $v1/blkio.throttle.write_bps_device (cgroup v1)" \
      "nor the controller 'io' in $v2/cgroup.controllers (cgroup v2) is there"
  fi
}

# The device's numbers are kept, because the node may be gone when the limit is lifted.
limit_v1() {
  local what
  for what in read write; do
    echo "$(cat "$state/device") $1" >"$v1/blkio.throttle.${what}_bps_device"
    echo "$(cat "$state/device") $2" >"$v1/blkio.throttle.${what}_iops_device"
  done
}

limit_v2() {
  local group
  group=$(cat "$state/group")
  echo "$(cat "$state/device") rbps=${1/#0/max} wbps=${1/#0/max} riops=${2/#0/max} wiops=${2/#0/max}" >"$group/io.max"
}

# A disk that was started without a limit needs no throttle, and cannot be limited later.
limit_none() {
  [ "$1 $2" = "0 0" ] || stop_with 1 "this disk was started without a limit; 'stop' it, and start it with one"
}

# limit RATE IOPS; 0 is none.
limit() { "limit_$(cat "$state/throttle")" "$1" "$2"; }

# Write-back is the group's own only where it accounts memory too.
make_group() {
  local group="$v2/penstock-$(basename "$(cat "$state/loop")")"
  echo "+io +memory" >"$v2/cgroup.subtree_control"
  mkdir -p "$group"
  echo "$group" >"$state/group"
}

run_limited() {
  if [ -e "$state/group" ]; then echo $$ >"$(cat "$state/group")/cgroup.procs"; fi
  exec "$@"
}

# What waits in memory counts against the device's own share only where that is strict.
limit_cache() {
  local bdi
  bdi=/sys/class/bdi/$(cat "$state/device")
  if [ "$1" = 0 ]; then
    [ ! -e "$bdi/strict_limit" ] || { echo 0 >"$bdi/strict_limit" && echo 100 >"$bdi/max_ratio"; }
    return
  fi
  [ -e "$bdi/max_bytes" ] || stop_with $not_here "--cache needs Linux 6.3: there is no $bdi/max_bytes"
  echo 1 >"$bdi/strict_limit"
  echo "$1" >"$bdi/max_bytes"
}

# A limit that the kernel takes and does not keep would spoil every test in silence.
measure_limit() {
  [ "$rate" -gt 0 ] || return 0
  local begin end_ns mib=$((rate / 1048576 + 1))
  begin=$(date +%s%N)
  "$0" run "$dir" -- dd if=/dev/zero of="$mnt/.limit" bs=1M count=$mib oflag=direct status=none
  end_ns=$(date +%s%N)
  rm -f "$mnt/.limit"
  local took_us=$(((end_ns - begin) / 1000))
  [ $((rate * took_us / 1000000)) -ge $((mib * 1048576 * 3 / 4)) ] ||
    fail "the kernel does not keep the limit of $rate B/s: $((mib * 1048576)) bytes took $took_us us"
}

# ---- the disk ----

# Each would give the image's room back first; ext4 would initialise its tables in the background, at the cost of
# what is measured.
format() {
  local options
  case $fs in
  ext4) options=(-E "nodiscard,lazy_itable_init=0,lazy_journal_init=0") ;;
  xfs | btrfs) options=(-K) ;;
  esac
  if [ "$block" != 0 ]; then
    case $fs in
    ext4) options+=(-b "$block") ;;
    xfs) options+=(-b "size=$block") ;;
    btrfs) options+=(-s "$block") ;;
    esac
  fi
  "mkfs.$fs" -q "${options[@]}" "$image"
}

make_disk() {
  mkdir -p "$state" "$mnt"
  # Really allocated: a hole filled under the measurement would cost the host's time.
  fallocate -l "$size" "$image" || fail "no room for $size bytes in $dir"
  format || fail "mkfs.$fs failed"
  losetup --find --show --direct-io=on "$image" >"$state/loop" || fail "no loop device"
  cat "/sys/block/$(basename "$(cat "$state/loop")")/dev" >"$state/device"
  mount -t "$fs" "$(cat "$state/loop")" "$mnt" || {
    [ "$block" -le "$(getconf PAGESIZE)" ] || stop_with $not_here "this kernel mounts no $fs with blocks of $block bytes"
    fail "$fs cannot be mounted here"
  }
  chmod 1777 "$mnt"
}

fail() { stop_with 1 "$@"; }

take_down() {
  unmount "$mnt"
  if [ -s "$state/loop" ]; then
    if [ -s "$state/throttle" ]; then limit 0 0 || true; fi
    limit_cache 0 || true
    losetup -d "$(cat "$state/loop")" || true
  fi
  if [ -s "$state/group" ]; then rmdir "$(cat "$state/group")" || true; fi
  rm -rf "$state"
  rmdir "$mnt" 2>/dev/null || true
}

start() {
  read_options "$@"
  needs_root "make a loop device and limit it"
  needs "mkfs.$fs" "$(case $fs in ext4) echo e2fsprogs ;; xfs) echo xfsprogs ;; btrfs) echo btrfs-progs ;; esac)"
  local throttle=none
  if [ "$rate $iops" != "0 0" ]; then throttle=$(throttle_of_this_machine); fi
  [ ! -e "$state" ] || stop_with 1 "there is a disk in $dir already; 'stop' it, or 'set' another limit"
  trap take_down EXIT # half a disk is no disk
  make_disk
  echo "$throttle" >"$state/throttle"
  if [ "$throttle" = v2 ]; then make_group; fi
  limit "$rate" "$iops" || fail "the kernel does not take the limit"
  measure_limit
  limit_cache "$cache"
  echo "$rate $iops $cache $fs" >"$state/limits"
  trap - EXIT
  status
}

status() {
  [ -s "$state/limits" ] || stop_with 1 "no disk in $dir"
  read -r rate iops cache fs <"$state/limits"
  say "$fs at $mnt on $(cat "$state/loop"), $rate B/s, $iops IOPS, $cache B in memory (0: no limit)," \
    "cgroup $(cat "$state/throttle")"
}

set_limit() {
  [ -s "$state/limits" ] || stop_with 1 "no disk in $dir"
  read -r rate iops cache fs <"$state/limits"
  read_options --fs "$fs" "$@"
  limit "$rate" "$iops"
  limit_cache "$cache"
  echo "$rate $iops $cache $fs" >"$state/limits"
  status
}

case $verb in
start) start "$@" ;;
set) set_limit "$@" ;;
run)
  [ -e "$state" ] || stop_with 1 "no disk in $dir"
  [ "${1:-}" != -- ] || shift
  [ $# -gt 0 ] || usage
  run_limited "$@"
  ;;
status) status ;;
stop)
  if [ -e "$state" ]; then take_down; fi
  ;;
*) usage ;;
esac
