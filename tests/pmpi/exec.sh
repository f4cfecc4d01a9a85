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
said_not() { ! grep -e "$1" "$tmp/out" "$tmp/err" || fail "says '$1'"; }

for name in PMI_RANK PMI_FD PMIX_RANK OMPI_COMM_WORLD_SIZE LD_PRELOAD; do unset "$name"; done
expect 0 "$exec" --dry-run --writers 4 --cycle=16MiB --method two_phase --quiet "$program" a
said "^PENSTOCK_WRITERS=4$"
said "^PENSTOCK_CYCLE=16MiB$"
said "^PENSTOCK_METHOD=two_phase$"
said "^PENSTOCK_QUIET=1$"
said "^LD_PRELOAD=.*/libpenstock-$flavour.so$"
expect 0 "$exec" --thread-multiple --thread-multiple --dry-run "$program"
said "^MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE$"
said "^OMPI_MPI_THREAD_LEVEL=3$"
expect 0 env LD_PRELOAD=/other.so "$exec" --dry-run "$program"
said "libpenstock-$flavour.so:/other.so$"
expect 0 env LD_PRELOAD="/old/libpenstock-mpich.so /other.so:/old/libpenstock-openmpi.so" \
  "$exec" --dry-run "$program"
said "^LD_PRELOAD=[^:]*/libpenstock-$flavour.so:/other.so$"
expect 2 "$exec" --metod two_phase "$program"
said "metod"
expect 2 "$exec"
expect 2 "$exec" --method
expect 2 "$exec" --mpi lam "$program"
expect 127 "$exec" --mpi "$flavour" no-such-program-anywhere
expect 126 "$exec" --mpi "$flavour" /etc
# An empty name in PATH is the working directory, at its end too, as execvp has it.
cp /bin/true "$tmp/only-here"
for path in /usr/bin: :/usr/bin /usr/bin::/bin; do
  (cd "$tmp" && PATH=$path "$exec" --mpi "$flavour" --dry-run only-here) > "$tmp/out" 2>&1 ||
    fail "PATH=$path: $(cat "$tmp/out")"
done
# A directory of its name is passed by, as execvp does.
mkdir -p "$tmp/d/only-there" "$tmp/e"
cp "$program" "$tmp/e/only-there"
expect 0 env PATH="$tmp/d:$tmp/e" "$exec" --dry-run only-there
said "libpenstock-$flavour.so"
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
expect 0 env PENSTOCK_METHOD=off "$exec" --mpi "$flavour" sh -c 'test -z "${LD_PRELOAD-}"'
expect 0 env PENSTOCK_METHOD=off "$exec" --mpi "$flavour" --observe sh -c 'test -n "${LD_PRELOAD-}"'
# What was resolved where the job was launched is not said again by this node.
for name in READ VISIBILITY WRITE_BEHIND WRITE_BEHIND_PAGE WRITE_BEHIND_LIMIT WRITE_BEHIND_SECONDS \
  WRITE_BEHIND_PROGRESS WRITE_BEHIND_SUBBUFFER METHOD WRITERS CYCLE VERIFY; do
  expect 0 env "PENSTOCK_$name=x" "$exec" --mpi "$flavour" --resolved '{}' env
  said_not "^PENSTOCK_$name="
done
# A static program cannot be served: said, and fatal only where that was asked for.
echo 'int main(void) { return 0; }' > "$tmp/plain.c"
cc -static -o "$tmp/static" "$tmp/plain.c"
expect 0 "$exec" --mpi "$flavour" "$tmp/static"
said "statically linked"
expect 2 "$exec" --mpi "$flavour" --require "$tmp/static"
# `penstock run`, whose programs are all alike, has one rank say so; started by hand each does.
expect 0 env PMI_RANK=1 "$exec" --all-ranks "$tmp/static"
said_not "without Penstock"
expect 0 env PMI_RANK=0 "$exec" --all-ranks "$tmp/static"
said "without Penstock"
expect 0 "$exec" --all-ranks "$tmp/static"
said "without Penstock"
expect 0 env PMI_RANK=1 "$exec" "$tmp/static"
said "without Penstock"
expect 2 env PMI_RANK=1 "$exec" --all-ranks --require "$tmp/static"
said "not started"
# Nor can one of another word size, or of another C library.
cp "$program" "$tmp/narrow"
printf '\001' | dd of="$tmp/narrow" bs=1 seek=4 conv=notrunc 2> "$tmp/err"
expect 2 "$exec" --mpi "$flavour" --require "$tmp/narrow"
said "another machine, word size or C library"
cc -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1 -o "$tmp/musl" "$tmp/plain.c"
expect 2 "$exec" --mpi "$flavour" --require "$tmp/musl"
said "another machine, word size or C library"
# AddressSanitizer's library finds malloc though the shim comes before it.
if cc -fsanitize=address -o "$tmp/asan" "$tmp/plain.c" 2> "$tmp/err"; then
  expect 0 "$exec" --mpi "$flavour" "$tmp/asan"
  expect 0 env ASAN_OPTIONS=a=1 "$exec" --mpi "$flavour" --dry-run "$tmp/asan"
  said "^ASAN_OPTIONS=a=1:verify_asan_link_order=0$"
fi
# Started by itself, as by a script of a script, it serves the program: with the options of both.
expect 0 "$exec" --require --cycle 4KiB "$exec" --no-log "$program" "$tmp/file" 1
said "^written"
said "no log"
said_not "penstock-exec:"
expect 0 "$exec" --quiet "$exec" --dry-run "$program"
said "^PENSTOCK_QUIET=1$"
said "^LD_PRELOAD=.*/libpenstock-$flavour.so$"
# An MPI library that no engine is built for, and one that is in the program itself.
cat > "$tmp/mpi.c" <<'C'
int PMPI_File_open(void) { return 0; }
C
cat > "$tmp/main.c" <<'C'
int PMPI_File_open(void);
int main(void) { return PMPI_File_open(); }
C
cc -shared -fPIC -Wl,-soname,libmpi.so.20 -o "$tmp/libmpi.so.20" "$tmp/mpi.c"
cc -o "$tmp/other" "$tmp/main.c" "$tmp/libmpi.so.20"
expect 0 env LD_LIBRARY_PATH="$tmp" "$exec" "$tmp/other"
said "needs libmpi.so.20"
expect 2 env LD_LIBRARY_PATH="$tmp" "$exec" --require "$tmp/other"
cc -o "$tmp/inside" "$tmp/main.c" "$tmp/mpi.c"
expect 0 "$exec" "$tmp/inside"
said "linked statically"
cc -shared -fPIC -Wl,-soname,libmpi_abi.so.1 -o "$tmp/libmpi_abi.so.1" "$tmp/mpi.c"
cc -o "$tmp/abi" "$tmp/main.c" "$tmp/libmpi_abi.so.1"
if [ -e "$native/libpenstock-abi.so" ]; then
  expect 0 "$exec" --dry-run "$tmp/abi"
  said "libpenstock-abi.so$"
fi
# Cray's MPICH has a library for each compiler; Intel's of long integers is another interface.
of_library() { # NAME: a program that needs it
  cc -shared -fPIC -Wl,-soname,"$1" -o "$tmp/$1" "$tmp/mpi.c"
  cc -o "$tmp/of_$1" "$tmp/main.c" "$tmp/$1"
}
if [ -e "$native/libpenstock-mpich.so" ]; then
  for name in libmpi_gnu_91.so.12 libmpi_cray.so.12 libmpifort_gnu_91.so.12 libmpifort_cray.so.12; do
    of_library $name
    expect 0 "$exec" --dry-run "$tmp/of_$name"
    said "libpenstock-mpich.so$"
  done
fi
of_library libmpi_ilp64.so.12
expect 0 "$exec" --dry-run "$tmp/of_libmpi_ilp64.so.12"
said "needs libmpi_ilp64.so.12"
# The wrong launcher's program.
if [ "$flavour" = openmpi ]; then
  expect 0 env PMI_RANK=0 HYDI_CONTROL_FD=9 "$exec" --dry-run "$program"
else
  expect 0 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$exec" --dry-run "$program"
fi
said "its own mpiexec"
