#!/bin/sh
# Prints what Penstock adds to a call, in nanoseconds: for a machine that is otherwise idle, so it is
# no test. Usage: cost.sh NATIVE_DIR FLAVOUR COST_PROGRAM
set -eu
native=$1 flavour=$2 program=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PENSTOCK_LOG=0 PENSTOCK_QUIET=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$program" "$tmp/file" > "$tmp/alone"
LD_PRELOAD=$native/libpenstock-$flavour.so PENSTOCK_OBSERVE=1 "$program" "$tmp/file" > "$tmp/observed"
LD_PRELOAD=$native/libpenstock-$flavour.so "$program" "$tmp/file" > "$tmp/served"
printf '%-18s %10s %10s %10s %14s\n' "$flavour, ns" alone observed served "observed adds"
paste -d' ' "$tmp/alone" "$tmp/observed" "$tmp/served" | grep -v written |
  awk '{printf "%-18s %10d %10d %10d %14d\n", $1, $2, $4, $6, $4 - $2}'
