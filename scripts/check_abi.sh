#!/usr/bin/env bash
# The binary interface of the C API has not changed but by additions: abidiff (Debian: abigail-tools)
# compares a library with the description in src/capi/penstock.abi, as it was at the last tag that has
# one, else as it is committed.
#
#   scripts/check_abi.sh LIBRARY            exit code 0: the same or more; 77: cannot be compared here
#   scripts/check_abi.sh --record LIBRARY   writes the description anew, before a tag
#
# What can be held without that tool is held by tests: names by tests/capi/symbols.sh, layouts and codes
# by tests/capi/abi.c.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly description=src/capi/penstock.abi

need() {
  command -v "$1" >/dev/null && return
  echo "skip: $1 is not installed (Debian: apt-get install abigail-tools)"
  exit 77
}

# The library's own types and functions: paths and line numbers differ from build to build.
record() {
  need abidw
  abidw --headers-dir include/penstock --drop-private-types --exported-interfaces-only --no-comp-dir-path --no-corpus-path \
    --no-show-locs --out-file "$description" "$1"
  sed -i "s|$PWD/||g" "$description"  # where it was built is nobody's business
  echo "$description: written"
}

# Of the last tag when it has a description; a tree that is no checkout has the committed one.
baseline() {
  local tag
  tag=$(git describe --tags --abbrev=0 2>/dev/null) || tag=
  if [ -n "$tag" ] && git cat-file -e "$tag:$description" 2>/dev/null; then
    git show "$tag:$description" >"$1"
    echo "compared with $tag"
  elif [ -f "$description" ]; then
    cp "$description" "$1"
    echo "compared with $description: no tag has one yet"
  else
    echo "skip: there is no $description yet: scripts/check_abi.sh --record LIBRARY"
    exit 77
  fi
}

compare() {
  need abidiff
  local before status=0
  before=$(mktemp --suffix=.abi)
  # shellcheck disable=SC2064  # its name is known now
  trap "rm -f '$before'" EXIT
  baseline "$before"
  abidiff --headers-dir2 include/penstock --drop-private-types --no-added-syms "$before" "$1" || status=$?
  # Bits of abidiff: 1 an error, 2 wrong usage, 4 a change, 8 an incompatible one.
  [ $((status & 11)) -eq 0 ]
}

if [ "${1:-}" = --record ]; then
  record "$2"
else
  compare "${1:?usage: check_abi.sh [--record] LIBRARY}"
fi
