#!/bin/sh
# The library exports exactly the functions that its maps list; the headers declare the same ones,
# and the manual page describes them. It needs nothing but the C library (and the MPI names that the
# program's own MPI library has).
# Usage: symbols.sh LIBRARY MANUAL "HEADERS" "MAPS"
set -eu
library=$1 manual=$2 headers=$3 maps=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Names of versions are no functions.
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u > "$tmp/exported"
# shellcheck disable=SC2086  # lists of files
sed -n 's/^ *\(penstock_[a-z_]*\);$/\1/p' $maps | sort > "$tmp/listed"
# shellcheck disable=SC2086
cat $headers | tr '\n' ' ' | grep -oE 'PENSTOCK_API [^;(]*\(' | sed 's/ *($//; s/.*[ *]//' |
  grep -E '^penstock_' | sort -u > "$tmp/declared"
test "$(wc -l < "$tmp/listed")" -ge 20
diff "$tmp/listed" "$tmp/exported"
diff "$tmp/listed" "$tmp/declared"
sed 's/\\-/-/g; s/\\fB//g; s/\\fR//g' "$manual" > "$tmp/manual"
while read -r name; do
  if ! grep -qE "$name *\(" "$tmp/manual"; then
    echo "the manual page does not describe $name"
    exit 1
  fi
done < "$tmp/listed"
if ! readelf -d "$library" | grep -q NODELETE; then
  echo "a plugin that is unloaded takes the library along, which MPI and threads may still call"
  exit 1
fi
if readelf -d "$library" | grep NEEDED | grep -vE 'libc\.so|libm\.so|ld-linux|libdl|libpthread|lib[at]san|libubsan'; then
  echo "the library needs more than the C library"
  exit 1
fi
