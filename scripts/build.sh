#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh release [targets...]. Quiet when all is well;
# what the tools said is in build/PRESET/build.log, and its end is shown when they fail.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly preset=$1
shift
readonly log=build/$preset/build.log
mkdir -p "build/$preset"

options=()
if [ "$preset" = release ]; then
  options+=(-DPENSTOCK_PYTHON=ON -DPENSTOCK_PYTHON_INPLACE=ON "-DPython_EXECUTABLE=$PWD/.venv/bin/python")
fi
# Beside the distribution's MPI libraries those of scripts/get_mpis.sh, where they are.
if [ -x .mpi/mpich5/bin/mpicc_abi ]; then
  options+=("-DPENSTOCK_MPICC_ABI=$PWD/.mpi/mpich5/bin/mpicc_abi"
    "-DPENSTOCK_MPICC_MPICH5=$PWD/.mpi/mpich5/bin/mpicc")
fi
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # or it keeps nothing that has precompiled headers
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # copies of the tree share what they compile alike
fi
targets=()
[ $# -gt 0 ] && targets=(--target "$@")

run() {
  echo "+ $*" >>"$log"
  if ! "$@" >>"$log" 2>&1 </dev/null; then
    grep -E 'error:|Error|FAILED:|undefined reference' "$log" | head -n 20 >&2 || true
    echo "build: preset $preset failed; the whole story is in $log" >&2
    exit 1
  fi
}
: >"$log"
run cmake --preset "$preset" "${options[@]}"
run cmake --build --preset "$preset" "${targets[@]}"
echo "build: preset $preset is up to date"
