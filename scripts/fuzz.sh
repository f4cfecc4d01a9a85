#!/usr/bin/env bash
# Runs every fuzzer: scripts/fuzz.sh [EXECUTIONS]. New finds stay out of the committed corpus; a crash
# is left in build/fuzz and named.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly executions=${1:-1000000}
scripts/build.sh fuzz
found=0
for program in build/fuzz/tests/fuzz/*_fuzz; do
  [ -x "$program" ] || continue
  name=$(basename "$program" _fuzz)
  work=build/fuzz/work/$name
  mkdir -p "$work" && found=$((found + 1))
  echo "fuzz: $name, $executions executions"
  "$program" -runs="$executions" -max_total_time=3000 -artifact_prefix="build/fuzz/$name-" \
    -print_final_stats=1 "$work" "tests/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1 || {
    tail -n 30 "build/fuzz/$name.log"
    exit 1
  }
  # The time limit must not make this a check of less than was asked for.
  done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log")
  echo "fuzz: $name, $done_runs executions, no crash"
  [ "$done_runs" -ge "$executions" ] || { echo "fuzz: $name stopped early" >&2; exit 1; }
done
[ "$found" -gt 0 ] || { echo "fuzz: no fuzzer was built" >&2; exit 1; }
