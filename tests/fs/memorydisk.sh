#!/usr/bin/env bash
# A disk in memory: to compare methods where the real disk's rate changes by the hour.
#
#   memorydisk.sh start DIR [--size BYTES] [--fs ext4|xfs|btrfs] [--leave BYTES]
#   memorydisk.sh status DIR
#   memorydisk.sh stop DIR                            unmounts, and gives all memory back
#
# The file system is DIR/disk/mnt, on a loop device whose image is allocated in memory. Defaults: --size 5GiB --fs ext4
# --leave 4GiB. What is available of memory beyond --leave is held until stop (0: nothing is): a virtual machine that
# gives free memory back to its host pays for each page that it takes again, and what is left is used again before it
# goes, as long as few cells are measured by turns (docs/decisions/0055-a-disk-in-memory.md). Who writes less than a
# tenth of --leave is not throttled by the kernel.
# The disk's rate is what the processors copy, so it takes part of them, as no real disk does.
#
# Exit: 0, 1 failed, 2 wrong usage, 77 not possible on this machine (not root, too little memory).
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"

readonly verb=${1:-} dir=$(realpath -m "${2:-}" 2>/dev/null)
readonly slowdisk=${0%/*}/slowdisk.sh
[ $# -ge 2 ] || usage
shift 2

size=5GiB fs=ext4 leave=4GiB
read_options() {
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
    case $1 in
    --size) size=$2 ;;
    --fs) fs=$2 ;;
    --leave) leave=$2 ;;
    *) stop_with $wrong_usage "no option is called '$1'; there are --size, --fs and --leave" ;;
    esac
    shift 2
  done
  size=$(bytes "$size" --size)
  leave=$(bytes "$leave" --leave)
  case $fs in ext4 | xfs | btrfs) ;; *) stop_with $wrong_usage "--fs must be ext4, xfs or btrfs, got '$fs'" ;; esac
}

# Nobody else's mount is taken for a disk, nor taken down.
is_ours() { grep -q "^penstock-memorydisk $dir tmpfs " /proc/self/mounts; }

available() { awk '/^MemAvailable:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo; }

hold() {
  local held
  held=$(($(available) - leave))
  [ "$leave" -gt 0 ] && [ "$held" -gt 0 ] || return 0
  fallocate -l "$held" "$dir/held"
}

take_down() {
  "$slowdisk" stop "$dir/disk"
  unmount "$dir"
}

start() {
  read_options "$@"
  needs_root "make a disk in memory"
  ! is_ours || stop_with 1 "there is a disk in $dir already; 'stop' it"
  ! mountpoint -q "$dir" || stop_with $wrong_usage "DIR must have nothing mounted on it, got $dir"
  [ "$(available)" -gt $((size + leave)) ] ||
    stop_with $not_here "$(available) bytes of memory are available; --size $size and --leave $leave need more"
  mkdir -p "$dir"
  mount -t tmpfs -o size=100% penstock-memorydisk "$dir"
  trap take_down EXIT # half a disk is no disk
  "$slowdisk" start "$dir/disk" --rate 0 --size "$size" --fs "$fs" >/dev/null
  hold
  trap - EXIT
  status
}

status() {
  is_ours || stop_with 1 "no disk in $dir"
  say "$("$slowdisk" status "$dir/disk" | sed 's/^[^:]*: //; s/,.*//'), in memory; $(available) bytes are available"
}

case $verb in
start) start "$@" ;;
status) status ;;
stop) if is_ours; then take_down; fi ;;
*) usage ;;
esac
