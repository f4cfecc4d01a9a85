#!/usr/bin/env bash
# Gets a machine ready: system packages, then a Python environment in .venv.
#
#   scripts/bootstrap.sh build    what `make build` and `make demo` need
#   scripts/bootstrap.sh site     and what `make site` needs besides
#   scripts/bootstrap.sh check    and what `make check` needs besides
#   scripts/bootstrap.sh full     and what `make check-full` needs besides
#
# On Debian as root it installs what is missing. Otherwise it prints the command that would and stops:
# nothing is installed behind anybody's back. A second run finds its stamps and returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly tier=${1:-build}
readonly stamps=build/.bootstrap
case $tier in build | site | check | full) ;; *)
  echo "bootstrap: the tier must be 'build', 'site', 'check' or 'full', got '$tier'" >&2
  exit 2
  ;;
esac

say() { printf 'bootstrap: %s\n' "$*"; }
stop() {
  printf 'bootstrap: %s\n' "$@" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Blanks part the words of make and of the first lines of scripts, and colons the directories of PATH.
check_directory() {
  case $1 in
  *[[:space:]:]*)
    stop "the path of this checkout must be without blanks and colons, got '$1'" \
      "move it, then run this again:  mv '$1' \$HOME/penstock"
    ;;
  esac
}

# ---- system packages ----

packages=(g++ gfortran cmake ninja-build make git ccache
  mpich libmpich-dev openmpi-bin libopenmpi-dev
  nlohmann-json3-dev libtomlplusplus-dev libexpected-dev libcli11-dev liburing-dev
  libgtest-dev librapidcheck-dev python3 python3-dev python3-venv)
if [ "$tier" = check ] || [ "$tier" = full ]; then
  packages+=(clang clang-format clang-tidy libclang-rt-14-dev man-db lmod fio slurm-wlm e2fsprogs xfsprogs btrfs-progs iproute2 util-linux util-linux-extra strace abigail-tools
    libtool autoconf automake m4 chromium fonts-dejavu-core
    libhdf5-mpich-dev libhdf5-openmpi-dev libpnetcdf-dev libnetcdf-mpi-dev hdf5-tools python3-mpi4py python3-h5py-mpi)
fi
if [ "$tier" = full ]; then
  packages+=(g++-11 debootstrap nfs-ganesha nfs-ganesha-vfs nfs-common user-mode-linux kmod
    rpcbind libnfs-dev libfuse3-dev fuse3 pkgconf glusterfs-server glusterfs-client
    ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse ceph-common attr)
fi

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  local package
  for package in "${packages[@]}"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

# Debian's packages, where there is a dpkg.
install_packages() {
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  [ -z "$missing" ] && return
  local command="apt-get install -y --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ]; then
    stop "these packages are missing: $missing" "install them, then run this again:" "  sudo apt-get update && sudo $command"
  fi
  say "installing $missing"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086  # a list of words
  { apt-get update -q && $command; } >"$stamps/apt.log" 2>&1 </dev/null || {
    tail -n 15 "$stamps/apt.log" >&2
    stop "apt-get failed (all of it in $stamps/apt.log); the command was:" "  $command"
  }
}

# Elsewhere only look, and name what to install.
require_tools() {
  have c++ || stop "no C++ compiler; install GCC 12 or newer"
  have cmake || stop "no cmake; install CMake 3.25 or newer"
  have ninja || stop "no ninja; install ninja-build"
  have mpicc || have mpicc.mpich || have mpicc.openmpi ||
    stop "no MPI compiler; install MPICH or Open MPI with its development files"
  [ "$tier" = build ] || [ "$tier" = site ] || have clang-format || stop "no clang-format; install LLVM 14 or newer"
}

# ---- Python ----

usable_python() {
  "$1" -c 'import os, sys, sysconfig, venv, ensurepip
ok = sys.version_info >= (3, 11) and os.path.exists(sysconfig.get_path("include") + "/Python.h")
sys.exit(not ok)' >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in ${PENSTOCK_BASE_PYTHON:-} /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
    if have "$candidate" && usable_python "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  stop "no Python 3.11 or newer with venv and headers; install python3-dev and python3-venv," \
    "or name one: PENSTOCK_BASE_PYTHON=/path/to/python3 make"
}

make_venv() {
  local python=$1 stamp
  stamp="$(cksum <scripts/requirements-dev.txt) $PWD"
  if [ -x .venv/bin/python ] && [ "$(cat .venv/stamp 2>/dev/null)" = "$stamp" ]; then return; fi
  [ ! -L .venv ] || stop ".venv is a link to $(readlink .venv), which is not of this checkout; making it anew would empty that" \
    "remove the link, then run this again:" "  rm .venv"
  say "making .venv with $python"
  "$python" -m venv --clear .venv
  pip_install scripts/requirements-dev.txt
  use_checkout
  printf '%s' "$stamp" >.venv/stamp
}

add_docs_tools() {
  local stamp
  stamp=$(cksum <scripts/requirements-docs.txt)
  if [ "$(cat .venv/stamp-docs 2>/dev/null)" = "$stamp" ]; then return; fi
  say "adding MkDocs to .venv"
  pip_install scripts/requirements-docs.txt
  printf '%s' "$stamp" >.venv/stamp-docs
}

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$1" </dev/null ||
    stop "pip failed; is the network there? The command was:" "  .venv/bin/python -m pip install -r $1"
}

# The package is used from the checkout: no second copy that could be stale.
use_checkout() {
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  printf '%s\n' "$PWD/python" >"$site/penstock-checkout.pth"
  cat >.venv/bin/penstock <<SCRIPT
#!$PWD/.venv/bin/python
import sys

sys.argv[0] = "penstock"
from penstock.__main__ import main

sys.exit(main())
SCRIPT
  chmod +x .venv/bin/penstock
}

check_directory "$PWD"
check_directory "$(pwd -P)"  # what make sees, where $PWD goes through a link
mkdir -p "$stamps"
if have dpkg-query && have apt-get; then
  install_packages
else
  require_tools
fi
if [ ! -x .venv/bin/python ] || [ ! -e .venv/stamp ]; then python=$(find_python); fi
make_venv "${python:-.venv/bin/python}"
if [ "$tier" != build ]; then add_docs_tools; fi
if [ "$tier" = check ] || [ "$tier" = full ]; then scripts/get_mpis.sh; fi
if [ "$tier" = full ]; then scripts/get_libraries.sh && scripts/get_peers.sh; fi
