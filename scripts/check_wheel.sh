#!/usr/bin/env bash
# Builds a wheel as `pip install .` does, installs it into an empty environment, and uses it from an
# empty directory, out of reach of the sources: what works in the checkout only does not count.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly work=$PWD/build/wheel
readonly base=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
rm -rf "$work"
mkdir -p "$work/empty"
"$base" -m venv "$work/builder" # pip's own isolation: what pyproject.toml asks for, and nothing else
"$work/builder/bin/pip" wheel --quiet --no-deps --wheel-dir "$work" . </dev/null
"$base" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$work"/penstock-*.whl </dev/null

cd "$work/empty"
export PATH=$work/venv/bin:/usr/local/bin:/usr/bin:/bin
unset PENSTOCK_NATIVE_DIR PYTHONPATH
penstock --version
penstock-exec --version | grep '^penstock-exec [0-9]'
python -c 'import penstock; assert penstock.__file__.startswith("'"$work/venv"'"), penstock.__file__'
penstock list --json >list.json
grep -q '"two_phase"' list.json
penstock explain --draw plan.svg >explain.txt
grep -q '<svg' plan.svg
for name in LICENSE NOTICE; do
  find "$work/venv" -path '*penstock-*.dist-info*' -name $name | grep -q . || {
    echo "wheel: $name is not in it" >&2
    exit 1
  }
done

# Python ignores signals and sets a locale, which a program that it starts must not have of it.
penstock-exec --method off grep '^SigIgn:' /proc/self/status | cmp - <(grep '^SigIgn:' /proc/self/status)
env -i PATH="$PATH" penstock-exec --method off env | sed /^PENSTOCK_/d | sort | cmp - <(env -i PATH="$PATH" env | sort)

# The native files came along, and a program of every MPI library that there is is served by them.
served=0
for mpi in mpich openmpi; do
  command -v mpicc.$mpi >/dev/null || continue
  mpicc.$mpi -o writer ../../../tests/install/writer.c
  rm -f out.dat
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    penstock run --require --quiet -- mpiexec.$mpi -n 2 ./writer out.dat >said.txt
  grep -q "^mapped $work/venv/.*/_native/penstock-engine-$mpi.so" said.txt
  cmp out.dat <(printf 'a%.0s' {1..1000} && printf 'b%.0s' {1..1000})
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    mpiexec.$mpi -n 2 penstock-exec --require --quiet ./writer out.dat >said.txt
  grep -q "^mapped $work/venv/.*/_native/penstock-engine-$mpi.so" said.txt
  served=$((served + 1))
done
[ $served -gt 0 ] || {
  echo "wheel: no MPI library is here, so that nothing was run" >&2
  exit 1
}

# The Python side alone: it takes the native part that penstock-exec in PATH belongs to.
cd ../../..
"$work/builder/bin/pip" wheel --quiet --no-deps --wheel-dir "$work/alone" \
  --config-settings=cmake.define.PENSTOCK_MPI=OFF . </dev/null
native=$(echo "$work"/venv/lib/python3*/site-packages/penstock/_native)
mv "$native" "$work/elsewhere"
"$work/venv/bin/pip" install --quiet --no-deps --force-reinstall "$work"/alone/penstock-*.whl </dev/null
[ ! -e "$native" ]
[ ! -e "$work/venv/bin/penstock-exec" ] # it would hide the other one
cd "$work/empty"
PATH=$work/elsewhere:$PATH penstock run --dry-run -- true | grep -F "$work/elsewhere/penstock-exec"

echo "wheel: installs and runs outside the checkout, on $served MPI libraries"
