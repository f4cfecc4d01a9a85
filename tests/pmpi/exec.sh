#!/bin/sh
# penstock-exec: what it sets, what it refuses, and that exit codes and signals are the program's.
# Usage: exec.sh NATIVE_DIR FLAVOUR MPI_PROGRAM
set -u
native=$1 flavour=$2 program=$3
exec=$native/penstock-exec
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$1"; exit 1; }
expect() { # STATUS COMMAND...
  wanted=$1
  shift
  "$@" > "$tmp/out" 2> "$tmp/err"
  got=$?
  [ "$got" = "$wanted" ] || fail "$*: exit code $got, not $wanted: $(cat "$tmp/err")"
}
said() { grep -q -e "$1" "$tmp/out" "$tmp/err" || fail "missing '$1' in: $(cat "$tmp/out" "$tmp/err")"; }

for name in PMI_RANK PMI_FD PMIX_RANK OMPI_COMM_WORLD_SIZE LD_PRELOAD; do unset "$name"; done
expect 0 "$exec" --dry-run --writers 4 --cycle=16MiB --method two_phase --quiet "$program" a
said "^PENSTOCK_WRITERS=4$"
said "^PENSTOCK_CYCLE=16MiB$"
said "^PENSTOCK_METHOD=two_phase$"
said "^PENSTOCK_QUIET=1$"
said "^LD_PRELOAD=.*/libpenstock-$flavour.so$"
expect 0 env LD_PRELOAD=/other.so "$exec" --dry-run "$program"
said "libpenstock-$flavour.so:/other.so$"
expect 2 "$exec" --metod two_phase "$program"
said "metod"
expect 2 "$exec"
expect 2 "$exec" --method
expect 2 "$exec" --mpi lam "$program"
expect 127 "$exec" --mpi "$flavour" no-such-program-anywhere
expect 126 "$exec" --mpi "$flavour" /etc
expect 0 "$exec" --version
expect 0 "$exec" --help
# What neither the program nor a launcher tells is asked for, never guessed.
expect 2 "$exec" sh -c :
said "--mpi"
expect 0 env PMI_RANK=0 "$exec" --dry-run sh
said libpenstock-mpich
expect 0 env OMPI_COMM_WORLD_SIZE=1 PMI_RANK=0 "$exec" --dry-run sh
said libpenstock-openmpi
# Exit codes and signals.
expect 5 "$exec" --mpi "$flavour" sh -c 'exit 5'
expect 143 "$exec" --mpi "$flavour" sh -c 'kill -TERM $$'
expect 0 "$exec" --method off sh -c 'test -z "${LD_PRELOAD-}"'
# A static program cannot be served: said, and fatal only where that was asked for.
expect 0 "$exec" --mpi "$flavour" "$exec" --version
said "statically linked"
expect 2 "$exec" --mpi "$flavour" --require "$exec" --version
