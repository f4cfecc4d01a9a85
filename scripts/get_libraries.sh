#!/usr/bin/env bash
# Puts the libraries above MPI-IO that the distribution does not have for every MPI library into
# .libraries/, for the checks:
#
#   python       mpi4py's wheel in an environment of its own, and h5py on parallel HDF5 of MPICH
#   mpi4py       its source, for its own tests
#   mpi4py-abi   mpi4py for the standard ABI (needs scripts/get_mpis.sh mpich5)
#   pnetcdf      for MPICH, from the distribution's source package
#   netcdf       parallel netCDF-4 for MPICH, likewise
#
#   scripts/get_libraries.sh            all of them
#   scripts/get_libraries.sh pnetcdf    some
#
# Needs the distribution's parallel HDF5 for MPICH and, for the last two, libtool, cmake and m4. A
# second run finds its stamps and returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly out=.libraries
readonly list=scripts/requirements-libraries.txt
readonly hdf5=/usr/lib/x86_64-linux-gnu/hdf5/mpich
readonly jobs=$(nproc)
readonly program=get_libraries
. scripts/stamped.sh

pinned() { grep "^$1==" "$list"; }

pip() { "$out/python/bin/python" -m pip --disable-pip-version-check "$@"; }

# ---- Python ----

make_python() {
  rm -rf "$out/python"
  .venv/bin/python -m venv "$out/python"
  pip install "$(pinned setuptools)" "$(pinned cython)" "$(pinned pkgconfig)" \
    "$(pinned numpy)" "$(pinned mpi4py)"
  # Without isolation, so that it is built with this numpy and this mpi4py.
  HDF5_MPI=ON HDF5_DIR=$hdf5 CC=mpicc.mpich pip install --no-build-isolation --no-deps \
    --no-binary h5py "$(pinned h5py)"
}

make_mpi4py() {
  rm -rf "$out/mpi4py"
  mkdir -p "$out/mpi4py"
  pip download --no-deps --no-binary mpi4py --dest "$out/mpi4py" "$(pinned mpi4py)"
  tar xf "$out"/mpi4py/mpi4py-*.tar.gz -C "$out/mpi4py" --strip-components=1
}

make_mpi4py_abi() {
  rm -rf "$out/mpi4py-abi"
  MPICC=$PWD/.mpi/mpich5/bin/mpicc_abi pip install --no-deps --no-binary mpi4py \
    --target "$out/mpi4py-abi" "$(pinned mpi4py)"
}

# ---- from the distribution's source packages ----

# What apt knows of this machine's sources, with the source packages added, in a state of its own:
# nothing of the system is changed.
source_package() {
  local name=$1 apt=$PWD/$out/apt
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources" "$out/$name.source"
  apt-get indextargets --format 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Created-By: Packages' | grep -v security | sort -u >"$apt/sources/source.list"
  local options=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$apt/sources"
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache")
  apt-get "${options[@]}" update
  (cd "$out/$name.source" && apt-get "${options[@]}" source --tar-only "$name")
  tar xf "$out/$name.source"/*.orig.tar.* -C "$out/$name.source" --strip-components=1
}

make_pnetcdf() {
  rm -rf "$out/pnetcdf" "$out/pnetcdf.source"
  source_package pnetcdf
  (
    cd "$out/pnetcdf.source"
    autoreconf -i
    ./configure --prefix="$PWD/../pnetcdf" --disable-fortran --disable-cxx --enable-shared \
      --disable-static MPICC=mpicc.mpich
    make -j"$jobs" -C src
    make -C src install
  )
  rm -rf "$out/pnetcdf.source"
}

make_netcdf() {
  rm -rf "$out/netcdf" "$out/netcdf.source"
  source_package netcdf
  cmake -S "$out/netcdf.source" -B "$out/netcdf.source/build" -DCMAKE_C_COMPILER=mpicc.mpich \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PWD/$out/netcdf" \
    -DCMAKE_INSTALL_LIBDIR=lib -DHDF5_C_LIBRARY="$hdf5/lib/libhdf5.so" \
    -DHDF5_HL_LIBRARY="$hdf5/lib/libhdf5_hl.so" -DHDF5_INCLUDE_DIR="$hdf5/include" \
    -DHDF5_VERSION=1.10.8 -DHDF5_PARALLEL=ON -DENABLE_PARALLEL4=ON -DENABLE_DAP=OFF \
    -DENABLE_NCZARR=OFF -DENABLE_TESTS=OFF -DBUILD_UTILITIES=OFF -DENABLE_PLUGINS=OFF
  cmake --build "$out/netcdf.source/build" -j "$jobs"
  cmake --install "$out/netcdf.source/build"
  rm -rf "$out/netcdf.source"
}

# ---- which ----

if [ "${1:-}" = --make ]; then
  "make_${2//-/_}"
  exit
fi

if wanted python "$@"; then get python "$(cat "$list")"; fi
if wanted mpi4py "$@"; then get mpi4py "$(pinned mpi4py)"; fi
if wanted mpi4py-abi "$@" && [ -x .mpi/mpich5/bin/mpicc_abi ]; then
  get mpi4py-abi "$(pinned mpi4py) $(cat .mpi/mpich5/stamp)"
fi
if wanted pnetcdf "$@"; then get pnetcdf "of the distribution"; fi
if wanted netcdf "$@"; then get netcdf "of the distribution"; fi
exit $failed
