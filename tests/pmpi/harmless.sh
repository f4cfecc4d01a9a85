#!/bin/sh
# Under the preload, programs that are not MPI programs behave as ever, and a job that is switched
# off is untouched. Usage: harmless.sh NATIVE_DIR FLAVOUR MPI_PROGRAM
set -eu
native=$1 flavour=$2 program=$3
shim=$native/libpenstock-$flavour.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PENSTOCK_LOG_DIR="$tmp" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fail() { echo "$1"; exit 1; }
over=
[ "$flavour" = openmpi ] && over=--oversubscribe

# Shells, tools and the launcher itself.
LD_PRELOAD=$shim /bin/true 2> "$tmp/err"
[ ! -s "$tmp/err" ] || fail "/bin/true said: $(cat "$tmp/err")"
got=$(LD_PRELOAD=$shim bash -c 'echo "$((6 * 7))"; ls / > /dev/null; exit 5' 2>&1) && fail "lost exit code"
[ "$got" = 42 ] || fail "bash said: $got"
LD_PRELOAD=$shim "mpiexec.$flavour" $over -n 2 /bin/echo hello > "$tmp/out" 2> "$tmp/err"
[ "$(grep -c hello "$tmp/out")" = 2 ] || fail "mpiexec under the preload: $(cat "$tmp/err")"

# Off is off: the engine is not even opened, nothing is said, no log is left.
for off in PENSTOCK_DISABLE=1 PENSTOCK_METHOD=off; do
  env "$off" LD_PRELOAD="$shim" LD_DEBUG=libs "$program" "$tmp/file.dat" 1 > "$tmp/out" 2> "$tmp/err"
  grep -q "written" "$tmp/out" || fail "$off: the program did not run"
  ! grep -q "penstock-engine" "$tmp/err" || fail "$off: the engine was opened"
  ! grep -q "^penstock:" "$tmp/err" || fail "$off: something was said"
done
ls "$tmp" | grep -q json && fail "a log was left by a job that was switched off"

# The engine is asked of the disk when a rank starts, so that its first open waits for none; not when
# it is switched off, nor by tools. Of a file system that keeps all in memory, it always is there.
cached() { fincore --noheadings --output PAGES "$tmp/ahead/penstock-engine-$flavour.so" | tr -d ' '; }
forget() { dd of="$tmp/ahead/penstock-engine-$flavour.so" oflag=nocache conv=notrunc,fdatasync count=0 2> "$tmp/err"; }
mkdir "$tmp/ahead"
cp "$shim" "$native/penstock-engine-$flavour.so" "$tmp/ahead/"
forget
if [ "$(cached)" = 0 ]; then
  LD_PRELOAD=$tmp/ahead/libpenstock-$flavour.so /bin/true
  PMI_RANK=0 PENSTOCK_DISABLE=1 LD_PRELOAD=$tmp/ahead/libpenstock-$flavour.so /bin/true
  [ "$(cached)" = 0 ] || fail "the engine was read for nothing: $(cached) pages"
  PMI_RANK=0 LD_PRELOAD=$tmp/ahead/libpenstock-$flavour.so /bin/true
  for wait in 1 2 3 4 5 6 7 8 9 10; do [ "$(cached)" -ge 100 ] || sleep 0.2; done
  [ "$(cached)" -ge 100 ] || fail "the engine was not read ahead: $(cached) pages"
fi

# An engine that is missing: one message, and the job runs; with PENSTOCK_REQUIRE it stops.
mkdir "$tmp/alone"
cp "$shim" "$tmp/alone/"
alone=$tmp/alone/libpenstock-$flavour.so
LD_PRELOAD=$alone "$program" "$tmp/file.dat" 1 > "$tmp/out" 2> "$tmp/err" ||
  fail "without an engine: $(cat "$tmp/err")"
[ "$(grep -c '^penstock:' "$tmp/err")" = 1 ] || fail "expected one message: $(cat "$tmp/err")"
if PENSTOCK_REQUIRE=1 LD_PRELOAD=$alone "$program" "$tmp/file.dat" 1 > "$tmp/out" 2> "$tmp/err"; then
  fail "PENSTOCK_REQUIRE did not stop a job without an engine"
fi
# The other library's shim: likewise.
other=mpich
[ "$flavour" = mpich ] && other=openmpi
if [ -e "$native/libpenstock-$other.so" ]; then
  LD_PRELOAD=$native/libpenstock-$other.so "$program" "$tmp/file.dat" 1 > "$tmp/out" 2> "$tmp/err"
  [ "$(grep -c '^penstock:' "$tmp/err")" = 1 ] || fail "wrong flavour: $(cat "$tmp/err")"
fi

# A wrong setting is named, and the job runs.
PENSTOCK_METHOD=two_fase LD_PRELOAD=$shim "$program" "$tmp/file.dat" 1 > "$tmp/out" 2> "$tmp/err"
grep -q two_phase "$tmp/err" || fail "a misspelt method: $(cat "$tmp/err")"
