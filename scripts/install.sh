#!/usr/bin/env bash
# Builds Penstock and installs it into a prefix; no root is needed.
#
#   scripts/install.sh PREFIX [cmake options...]
#
# Variables:
#   DEPS=bundled     take the C++ libraries from third_party/ (an archive of `make dist`); default: bundled
#                    where that directory is there, else system
#   PYTHON=PROGRAM   the Python (3.11 or newer) of the command line; PYTHON=none leaves the command line out
#   PYTHON_DEPS=no   do not install typer, rich, pydantic, numpy, scipy, polars and jinja2 into the prefix: PYTHON has them
#   JOBS=N           compilers at once; default: one per core
#
# The same by hand is in docs/install.md. What the tools said is in build/install/install.log.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly build=build/install
readonly log=$build/install.log

say() { printf 'install: %s\n' "$*"; }
stop() {
  printf 'install: %s\n' "$@" >&2
  exit 1
}

# When it fails, what this step said of that: no status lines of CMake, which also breaks its messages over lines.
run() {
  local begin said
  echo "+ $*" >>"$log"
  begin=$(stat -c %s "$log")
  "$@" >>"$log" 2>&1 </dev/null && return
  said=$(tail -c "+$((begin + 1))" "$log" | sed '/^-- /d')
  grep -E -m 5 -A 4 --no-group-separator \
    '[Ee]rror:|ERROR:|CMake Error|FAILED:|undefined reference|cannot find' <<<"$said" >&2 ||
    tail -n 15 <<<"$said" >&2
  stop "this failed: $*" "(the whole story is in $log)"
}

# The interpreter itself and not an environment's: environments of a checkout do not outlive it.
base_python() {
  "$1" -c 'import os, sys, sysconfig, venv, ensurepip
ok = sys.version_info >= (3, 11) and os.path.exists(sysconfig.get_path("include") + "/Python.h")
print(os.path.realpath(sys._base_executable)) if ok else sys.exit(1)' 2>/dev/null
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-/usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$candidate" >/dev/null && base_python "$candidate"; then return; fi
  done
  if [ -n "${PYTHON:-}" ]; then
    stop "PYTHON must be Python 3.11 or newer with its headers and venv, got $PYTHON"
  fi
  stop "no Python 3.11 or newer with its headers and venv was found (Debian: python3-dev python3-venv)." \
    "Name one (PYTHON=/path/to/python3), or leave the command line out (PYTHON=none):" \
    "penstock-exec and the engines need no Python"
}

# Builds with an environment of its own: pip and nanobind are not everybody's.
make_environment() {
  local python=$1
  if [ "$(cat $build/venv/made-with 2>/dev/null)" != "$python" ]; then
    run "$python" -m venv --clear $build/venv
    printf '%s' "$python" >$build/venv/made-with
  fi
  [ "$deps" = bundled ] && return
  $build/venv/bin/python -c 'import nanobind' 2>/dev/null ||
    run $build/venv/bin/python -m pip install --quiet --disable-pip-version-check 'nanobind>=2.4'
}

# The packages that pyproject.toml asks for, beside Penstock's own in the prefix.
install_python_packages() {
  local target=$1 wanted
  mapfile -t wanted < <($build/venv/bin/python -c 'import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")')
  say "installing ${wanted[*]} beside it"
  run $build/venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
    --target "$target" "${wanted[@]}"
  rm -rf "$target/bin"  # their commands, which would start the build's environment
}

# Whether others have something in the prefix: what is neither listed nor in the directory that pip and Python fill.
is_shared() {
  [ -n "$(find -H "$prefix" -path "$prefix/lib/penstock" -prune -o \( ! -type d -o -empty \) -print |
    grep -vxFf "$manifest" | head -n 1)" ]
}

say_how_to_uninstall() {
  if is_shared; then
    say "Uninstall (others use $prefix too):"
    say "  xargs -d '\n' rm -f <$manifest; rm -rf $prefix/lib/penstock"
  else
    say "Uninstall by removing it:   rm -rf $prefix"
  fi
}

[ -n "${1:-}" ] || stop "say where to: scripts/install.sh PREFIX (make install PREFIX=\$HOME/penstock)"
case $1 in
*[[:space:]:]*)
  stop "PREFIX must be without blanks and colons, got '$1': the loader preloads nothing from there" ;;
/*) prefix=${1%/} ;;
*) stop "PREFIX must be an absolute path, got '$1'" ;;
esac
[ -z "${DESTDIR:-}" ] ||
  stop "DESTDIR is not taken, got '$DESTDIR': what is installed is run, and pip fills its directory." \
    "Install to PREFIX itself, or by hand (docs/install.md: cmake --install)"
shift
deps=${DEPS:-$([ -d third_party ] && echo bundled || echo system)}
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] ||
  stop "PREFIX must be a directory that you may write to, got '$prefix'; one of your own will do:" \
    "  make install PREFIX=\$HOME/penstock"
mkdir -p "$build" 2>/dev/null && { : >"$log"; } 2>/dev/null ||
  stop "the sources must be in a directory that you may write to, got $PWD; copy them to one of your own," \
    "or build elsewhere by hand (docs/install.md: cmake -B)"

options=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=$prefix" -DCMAKE_INSTALL_LIBDIR=lib
  -DPENSTOCK_TESTS=OFF -DPENSTOCK_MPI=REQUIRED "-DPENSTOCK_DEPS=$deps")
if [ "${PYTHON:-}" = none ]; then
  options+=(-DPENSTOCK_PYTHON=OFF)
  say "PYTHON=none: without the command line; penstock-exec alone starts programs"
else
  python=$(find_python)
  make_environment "$python"
  options+=(-DPENSTOCK_PYTHON=ON -DPENSTOCK_PYTHON_INPLACE=OFF
    "-DPython_EXECUTABLE=$PWD/$build/venv/bin/python" "-DPENSTOCK_PYTHON_INTERPRETER=$python")
fi
command -v cmake >/dev/null || stop "no cmake; install CMake 3.25 or newer (python3 -m pip install --user cmake)"
command -v ninja >/dev/null && options+=(-G Ninja)
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

say "building for $prefix (libraries: $deps)"
# What an earlier installation found (compilers, MPI libraries, Python) may be another's by now. Not by --fresh:
# a CMake that is too old refuses that, before the sources say which they need.
run rm -rf "$build/cmake/CMakeCache.txt" "$build/cmake/CMakeFiles"
run cmake -S . -B "$build/cmake" "${options[@]}" "$@"
run cmake --build "$build/cmake" --parallel "${JOBS:-$(nproc)}"
run cmake --install "$build/cmake"
# Beside what it lists: the next installation elsewhere has one of its own.
manifest=$prefix/lib/penstock/install_manifest.txt
run mkdir -p "$prefix/lib/penstock"
run cp "$build/cmake/install_manifest.txt" "$manifest"
run "$prefix/bin/penstock-exec" --version
if [ "${PYTHON:-}" != none ] && [ "${PYTHON_DEPS:-yes}" = no ]; then
  say "PYTHON_DEPS=no: bin/penstock needs the typer, rich, pydantic, numpy, scipy, polars and jinja2 of $python"
elif [ "${PYTHON:-}" != none ]; then
  install_python_packages "$prefix/lib/penstock/python"
  run "$prefix/bin/penstock" --version
fi
say "done. Put it in your path:  export PATH=$prefix/bin:\$PATH"
say "or load its module:         module use $prefix/share/modulefiles && module load penstock"
say_how_to_uninstall
