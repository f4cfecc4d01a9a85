#!/usr/bin/env bash
# Puts the libraries that are measured beside Penstock, and that the distribution has not or not for
# every MPI library, into .peers/, for bench/peers:
#
#   pnetcdf   PnetCDF for MPICH and for Open MPI: the newest source package that Debian lists and this
#             machine's mirror holds. Intra-node aggregation (nc_num_aggrs_per_node) needs 1.14; where
#             only an older one can be had, that is said, and the peer refuses the hint.
#   adios2    ADIOS2 with BP5 on MPI. The wheel brings the library built without MPI; what it lacks,
#             the communicator on MPI, is compiled from the source archive of the same version.
#   mpich5    names under which MPICH 5 (scripts/get_mpis.sh mpich5) serves what was built for the
#             distribution's MPICH: LD_LIBRARY_PATH=.peers/mpich5
#
#   scripts/get_peers.sh            all of them
#   scripts/get_peers.sh adios2     some
#
# PENSTOCK_PNETCDF_SOURCE=FILE takes that source archive of PnetCDF instead. Needs libtool, autoconf
# and m4 for PnetCDF. A second run finds its stamps and returns at once.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly out=$PWD/.peers
readonly adios2=adios2==2.12.1.1001
readonly jobs=${PENSTOCK_JOBS:-$(nproc)}
readonly flavours="mpich openmpi"
readonly program=get_peers
. scripts/stamped.sh
echo '*' >"$out/.gitignore"

present_flavours() {
  local flavour
  for flavour in $flavours; do
    if command -v "mpicc.$flavour" >/dev/null; then echo "$flavour"; fi
  done
}

# ---- PnetCDF ----

# What apt knows of Debian's newer releases' sources, in a state of its own: nothing of the system
# is changed. bookworm last, as the one that is certainly there.
readonly apt=$out/apt
readonly apt_options=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$apt/sources"
  -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache")
update_sources() {
  local release
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
  for release in sid trixie bookworm; do
    printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' \
      "$(debian_mirror)" "$release"
  done >"$apt/sources/source.list"
  apt-get "${apt_options[@]}" update
}

# The mirror that this machine uses.
debian_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1
}

# The newest version whose archive can be fetched, into $1.
fetch_pnetcdf() {
  local directory=$1 version
  if [ -n "${PENSTOCK_PNETCDF_SOURCE:-}" ]; then
    cp "$PENSTOCK_PNETCDF_SOURCE" "$directory"/given.orig.tar
    return
  fi
  update_sources
  for version in $(apt-cache "${apt_options[@]}" showsrc pnetcdf | sed -n 's/^Version: //p' |
    sort --version-sort --reverse); do
    if (cd "$directory" && apt-get "${apt_options[@]}" source --tar-only "pnetcdf=$version"); then
      return
    fi
    say "pnetcdf $version is listed, but this machine's mirror does not hold it"
  done
  return 1
}

make_pnetcdf() {
  local source=$out/pnetcdf.source flavour
  rm -rf "$source" "$out/pnetcdf"
  mkdir -p "$source/archive" "$source/tree"
  fetch_pnetcdf "$source/archive"
  tar xf "$source"/archive/*.orig.tar* -C "$source/tree" --strip-components=1
  (cd "$source/tree" && autoreconf -i)
  for flavour in $(present_flavours); do
    mkdir -p "$source/$flavour"
    (
      cd "$source/$flavour"
      ../tree/configure --prefix="$out/pnetcdf/$flavour" --disable-fortran --disable-cxx \
        --enable-shared --disable-static MPICC="mpicc.$flavour"
      make -j"$jobs" -C src
      make -C src install
    )
  done
  rm -rf "$source"
  say_aggregation
}

say_aggregation() {
  local version
  version=$(sed -n 's/^#define PNETCDF_VERSION *"\(.*\)"/\1/p' "$out"/pnetcdf/*/include/pnetcdf.h |
    head -n 1)
  if [ "$(printf '%s\n' 1.14 "$version" | sort --version-sort | head -n 1)" = 1.14 ]; then
    say "pnetcdf $version, with intra-node aggregation"
  else
    say "pnetcdf $version, WITHOUT intra-node aggregation, which needs 1.14:" \
      "PENSTOCK_PNETCDF_SOURCE=FILE takes a newer source archive"
  fi
}

# ---- ADIOS2 ----

make_adios2() {
  local prefix=$out/adios2 source=$out/adios2.source flavour
  rm -rf "$prefix" "$source"
  mkdir -p "$source/archive" "$source/tree"
  .venv/bin/python -m pip --disable-pip-version-check install --no-deps --target "$prefix" "$adios2"
  .venv/bin/python -m pip --disable-pip-version-check download --no-deps --no-binary adios2 \
    --no-build-isolation --dest "$source/archive" "$adios2"
  tar xf "$source"/archive/adios2-*.tar.gz -C "$source/tree" --strip-components=1
  # The wheel's headers refuse MPI because it was built without: the one thing that is changed.
  sed -i 's/^#define ADIOS2_HAVE_SST$/#define ADIOS2_HAVE_MPI\n&/' \
    "$prefix/adios2/include/adios2/common/ADIOSConfig.h"
  grep -q '^#define ADIOS2_HAVE_MPI$' "$prefix/adios2/include/adios2/common/ADIOSConfig.h"
  for flavour in $(present_flavours); do adios2_on_mpi "$flavour"; done
  rm -rf "$source"
}

# libadios2_c_mpi-FLAVOUR.so: what ADIOS2 calls core_mpi and c_mpi, without the engine SSC, which is
# all that RegisterMPIEngines would add.
adios2_on_mpi() {
  local flavour=$1 tree=$out/adios2.source/tree prefix=$out/adios2/adios2
  local show
  read -r -a show <<<"$("mpicc.$flavour" -show 2>/dev/null | tr ' ' '\n' |
    grep -E '^-(I|L)|^-lmpich$|^-lmpi$' | tr '\n' ' ')"
  cat >"$out/adios2.source/no_ssc.cpp" <<'CPP'
namespace adios2::core {
void RegisterMPIEngines() {}
}
CPP
  g++ -std=c++17 -O2 -fPIC -shared -DADIOS2_USE_MPI=1 -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX \
    -I"$prefix/include" -I"$tree/source" -I"$tree/bindings/C" -I"$tree/bindings/CXX" \
    "$tree/source/adios2/helper/adiosCommMPI.cpp" \
    "$tree/bindings/C/adios2/c/adios2_c_adios_mpi.cpp" \
    "$tree/bindings/C/adios2/c/adios2_c_io_mpi.cpp" "$out/adios2.source/no_ssc.cpp" \
    -o "$prefix/libadios2_c_mpi-$flavour.so" -L"$prefix" -ladios2_c -ladios2_core "${show[@]}" \
    -Wl,--enable-new-dtags -Wl,-rpath,"\$ORIGIN" -Wl,-soname,"libadios2_c_mpi-$flavour.so"
}

# ---- MPICH 5 ----

# What the distribution's MPICH built asks for libmpich.so.12, everybody else's for libmpi.so.12. All
# that lies beside the library too, because it looks for that beside itself.
make_mpich5() {
  local file real=$PWD/.mpi/mpich5/lib
  rm -rf "$out/mpich5"
  mkdir -p "$out/mpich5"
  for file in "$real"/*; do ln -s "$file" "$out/mpich5/"; done
  ln -s "$real/libmpi.so.12" "$out/mpich5/libmpich.so.12"
}

# A source that was given once is kept until another is given, or "newest".
pnetcdf_source() {
  local made
  made=$(cat "$out/pnetcdf.stamp" 2>/dev/null || true)
  if [ -n "${PENSTOCK_PNETCDF_SOURCE:-}" ]; then
    echo "$PENSTOCK_PNETCDF_SOURCE"
  elif [ "$made" != "${made% for "$mpis"}" ]; then
    echo "${made% for "$mpis"}"
  else
    echo newest
  fi
}

# ---- which ----

if [ "${1:-}" = --make ]; then
  "make_$2"
  exit
fi

mpis=$(present_flavours | tr '\n' ' ')
if wanted pnetcdf "$@"; then get pnetcdf "$(pnetcdf_source) for $mpis"; fi
if wanted adios2 "$@"; then get adios2 "$adios2 for $mpis"; fi
if wanted mpich5 "$@" && [ -e .mpi/mpich5/stamp ]; then get mpich5 "$(cat .mpi/mpich5/stamp)"; fi
exit $failed
