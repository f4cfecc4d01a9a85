#!/bin/sh
# The shim exports exactly the MPI_File functions of the MPI library, in both names, and Finalize:
# a name too many misleads programs that probe for it, a name too few lets writes slip by.
# The engine beside it asks for no MPI name that the library does not have.
# Usage: exports.sh SHIM LIBRARY ENGINE
set -eu
names() {
  nm -D --defined-only "$1" | awk '$2 ~ /[TWi]/ {print $3}' | sed 's/@.*//' |
    grep -E '^P?MPI_(File_.*|Finalize)$' | grep -vE '_(c2f|f2c|fromint|toint)$' | sort
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
nm -D --defined-only "$2" | awk '{print $3}' | sed 's/@.*//' | sort -u > "$tmp/defined"
nm -D --undefined-only "$3" | awk '$1 == "U" {print $2}' | grep -E '^(P?MPI_|ompi_|opal_)' |
  sort -u > "$tmp/needed"
test "$(wc -l < "$tmp/needed")" -ge 20
if comm -23 "$tmp/needed" "$tmp/defined" | grep .; then
  echo "the engine needs these, and the library lacks them"
  exit 1
fi
if readelf -d "$3" | grep NEEDED | grep -i mpi; then
  echo "the engine names one MPI library; a process may have another of its flavour"
  exit 1
fi
