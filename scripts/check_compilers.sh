#!/usr/bin/env bash
# Builds what is installed with the oldest compiler that Penstock promises to work with, GCC 11, warnings
# being errors, runs a program on it, and checks that no function newer than glibc 2.28 is called.
#
#   scripts/check_compilers.sh [C++ compiler]     default: g++-11
set -euo pipefail
cd "$(dirname "$0")/.."

readonly cxx=${1:-g++-11}
readonly cc=${cxx/g++/gcc}
readonly build=build/compilers/$cxx
if ! command -v "$cxx" >/dev/null; then
  echo "check-compilers: $cxx is not there: apt-get install $cxx" >&2
  exit 1
fi
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_CXX_COMPILER="$cxx" -DPENSTOCK_WERROR=ON -DPENSTOCK_TESTS=OFF -DPENSTOCK_MPI=REQUIRED \
  -DPENSTOCK_PYTHON=ON -DPENSTOCK_PYTHON_INPLACE=OFF -DPython_EXECUTABLE="$PWD/.venv/bin/python"
cmake --build "$build"
python3 scripts/check_glibc.py "$build"
PENSTOCK_TEST_BUILD=$build .venv/bin/python -m pytest -q tests/install/test_prefix.py
echo "compilers: $("$cxx" --version | head -n 1) builds it without a warning, and programs run"
