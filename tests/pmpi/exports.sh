#!/bin/sh
# The shim exports exactly the MPI_File functions of the MPI library, in both names, and Finalize:
# a name too many misleads programs that probe for it, a name too few lets writes slip by.
# Usage: exports.sh SHIM LIBRARY
set -eu
names() {
  nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ {print $3}' | sed 's/@.*//' |
    grep -E '^P?MPI_(File_.*|Finalize)$' | grep -vE '_(c2f|f2c)$' | sort
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
names "$1" > "$tmp/shim"
names "$2" > "$tmp/library"
test "$(wc -l < "$tmp/shim")" -ge 120
diff "$tmp/library" "$tmp/shim"
nm -D --defined-only "$1" | awk '{print $3}' | grep -vE '^P?MPI_' > "$tmp/others" || true
if [ -s "$tmp/others" ]; then
  echo "the shim exports more than MPI functions:"
  cat "$tmp/others"
  exit 1
fi
# It must live in processes that have no MPI at all.
if nm -D --undefined-only "$1" | grep -iE '(mpi_|_mpi)'; then
  echo "the shim needs MPI symbols"
  exit 1
fi
if readelf -d "$1" | grep NEEDED | grep -vE 'libc\.so|ld-linux|libdl|libpthread'; then
  echo "the shim needs more than libc"
  exit 1
fi
