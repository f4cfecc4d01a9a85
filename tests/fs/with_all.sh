#!/usr/bin/env bash
# Runs a command beside four file systems that are there for as long as it runs: ext4, ext4 on a slow disk, NFS and a
# parallel file system.
#
#   with_all.sh [--dir DIR] [--rate BYTES] [--bricks N] [--kind KIND] [--size BYTES] COMMAND...
#
# The command finds their directories in its environment:
#
#   PENSTOCK_FS_EXT4       ext4 on this machine's own disk, without a limit
#   PENSTOCK_FS_SLOW       ext4 on a disk of --rate bytes per second           slowdisk.sh
#   PENSTOCK_FS_NFS        a mount of an NFS server with such a disk           nfs.sh --mount
#   PENSTOCK_FS_PARALLEL   a mount of GlusterFS with such a disk in each brick gluster.sh
#
# --dir is where all of it is made and removed again; default: a new directory in TMPDIR. Other defaults: --rate 20MiB
# --bricks 4 --kind disperse --size 2GiB, which is each disk's.
#
# Exit: the command's, 1 failed, 2 wrong usage, 77 one of them is not possible on this machine.
set -euo pipefail
# shellcheck source=tests/fs/lib.sh
. "$(dirname "$0")/lib.sh"
here=$(realpath "$(dirname "$0")")

dir='' rate=20MiB bricks=4 kind=disperse size=2GiB
while [ $# -gt 0 ]; do
  case $1 in
  --dir | --rate | --bricks | --kind | --size)
    [ $# -ge 2 ] || stop_with $wrong_usage "$1 needs a value"
    declare "${1#--}=$2"
    shift 2
    ;;
  --) shift && break ;;
  -*) stop_with $wrong_usage "no option is called '$1'; there are --dir, --rate, --bricks, --kind and --size" ;;
  *) break ;;
  esac
done
[ $# -gt 0 ] || usage

# A script's own reason is on stderr already, and its exit code is ours.
begin() {
  local name=$1 script=$2
  shift 2
  "$here/$script" start "$dir/$name" "$@" || exit $?
}

take_down() {
  local made
  for made in parallel:gluster nfs:nfs slow:slowdisk ext4:slowdisk; do
    "$here/${made#*:}.sh" stop "$dir/${made%:*}" || true
    rm -rf "${dir:?}/${made%:*}/"brick[0-9]*
    if [ "${made%:*}" = ext4 ] && ! mountpoint -q "$dir/ext4/mnt"; then rm -rf "$dir/ext4"; fi
    rmdir "$dir/${made%:*}" 2>/dev/null || true
  done
  rmdir "$dir" 2>/dev/null || true
}

# The machine's own disk where that is ext4, and otherwise a disk without a limit.
begin_ext4() {
  mkdir -p "$dir/ext4/mnt"
  [ "$(stat -f -c %T "$dir/ext4/mnt")" = ext2/ext3 ] || begin ext4 slowdisk.sh --rate 0 --size "$size"
  chmod 1777 "$dir/ext4/mnt"
}

needs_root "make disks and mount"
if [ -z "$dir" ]; then dir=$(mktemp -d -t penstock-fs-XXXXXX); fi
mkdir -p "$dir"
dir=$(realpath "$dir")
chmod 755 "$dir"
for name in ext4 slow nfs parallel; do
  [ ! -e "$dir/$name" ] || stop_with 1 "$dir/$name is there already; remove it, or take another --dir"
done
trap take_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
{
  begin_ext4
  begin slow slowdisk.sh --rate "$rate" --size "$size"
  begin nfs nfs.sh --mount --rate "$rate" --size "$size"
  begin parallel gluster.sh "$bricks" --kind "$kind" --rate "$rate" --size "$size"
} >&2
export PENSTOCK_FS_EXT4=$dir/ext4/mnt PENSTOCK_FS_SLOW=$dir/slow/mnt
export PENSTOCK_FS_NFS=$dir/nfs/mnt PENSTOCK_FS_PARALLEL=$dir/parallel/mnt
env | grep ^PENSTOCK_FS_ | sort >&2
"$@"
