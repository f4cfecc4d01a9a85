#!/usr/bin/env bash
# Puts the MPI libraries of scripts/requirements-mpi.txt into .mpi/NAME, for the checks: newer ones
# than the distribution has, and the one of the MPI-5 standard ABI.
#
#   scripts/get_mpis.sh            all of them
#   scripts/get_mpis.sh mpich5     some
set -euo pipefail
cd "$(dirname "$0")/.."

install_one() {
  local name=$1 package=$2
  [ "$(cat ".mpi/$name/stamp" 2>/dev/null)" = "$package" ] && return
  echo "get_mpis: installing $package into .mpi/$name"
  rm -rf ".mpi/$name"
  # Without its dependencies: Intel's names a network library that one node does not need.
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --prefix ".mpi/$name" "$package" </dev/null
  printf '%s' "$package" >".mpi/$name/stamp"
}

wanted() { [ $# -eq 1 ] || printf '%s\n' "${@:2}" | grep -qx "$1"; }

while read -r name package; do
  case $name in '' | '#'*) continue ;; esac
  if wanted "$name" "$@"; then install_one "$name" "$package"; fi
done <scripts/requirements-mpi.txt
