#!/usr/bin/env bash
# Runs what docs/support-matrix.md is made of, on every MPI library that is here, and makes the page.
#
#   scripts/record_support.sh            about ten minutes; records go to build/records
#
# Needs scripts/build.sh release after scripts/get_mpis.sh, and scripts/get_libraries.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly records=build/records
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
rm -rf "$records"
mkdir -p "$records"

suite() { # NAME MPI ARGUMENTS...
  local name=$1 mpi=$2
  shift 2
  .venv/bin/python "tests/$name/run.py" --build build/release --mpi "$mpi" "$@" | tail -n 1
}

for mpi in mpich openmpi mpich5 mpich5-abi openmpi5 impi impi-abi; do
  brief=(--brief)
  case $mpi in mpich | openmpi) brief=() ;; esac
  suite conformance "$mpi" "${brief[@]}" --record "$records/$mpi-conformance.jsonl"
  suite libraries "$mpi" --library hdf5,pnetcdf,netcdf,h5py,example --ranks 1,2,3,4 \
    --record "$records/$mpi-libraries.jsonl"
  suite libraries "$mpi" --library mpi4py,own_driver,visibility --ranks 2 \
    --record "$records/$mpi-mpi4py.jsonl"
done
PENSTOCK_TEST_RECORDS=$PWD/$records ctest --test-dir build/release -R '^pmpi' | tail -n 3
.venv/bin/python scripts/support_matrix.py "$records"
