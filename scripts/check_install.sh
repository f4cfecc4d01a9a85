#!/usr/bin/env bash
# Installation as sites do it, the parts that take minutes:
#
#   offline     the archive of `make dist`, built with PENSTOCK_DEPS=bundled where there is no network and
#               where /usr/include has none of the libraries (namespaces of its own; nothing is changed)
#   prefix      tests/install/test_prefix.py on that installation
#   pip         scripts/install.sh from the checkout, packages of the command line by pip; run; uninstall
#   easybuild   EasyBuild itself reads, checks and resolves its recipe
#
#   scripts/check_install.sh [PART...]      default: all. Logs: build/check-install/PART.log
#
# The last line is "installation: N passed, N failed, N skipped"; a skip says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly top=$PWD
readonly work=$top/build/check-install
passed=0 failed=0 skipped=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A process of its own: bash heeds no `set -e` in a function whose failure is being asked about.
part() {
  local log=$work/$1.log start=$SECONDS status=0
  "$top/scripts/check_install.sh" --one "$1" >"$log" 2>&1 </dev/null || status=$?
  case $status in
    0) passed=$((passed + 1)) && printf '%-10s ok      in %d s\n' "$1" $((SECONDS - start)) ;;
    77) skipped=$((skipped + 1)) && printf 'SKIPPED %s: %s\n' "$1" "$(tail -n 1 "$log")" ;;
    *)
      failed=$((failed + 1))
      printf 'FAILED %s in %d s\n' "$1" $((SECONDS - start))
      tail -n 20 "$log" | sed 's/^/  /'
      ;;
  esac
}

# Runs a command without network and without the libraries' headers; 77 where that cannot be.
isolated() {
  local namespace=(unshare --mount --net)
  [ "$(id -u)" = 0 ] || namespace=(unshare --map-root-user --mount --net)
  if ! "${namespace[@]}" true; then
    echo "skip: this machine allows no namespaces"
    exit 77
  fi
  # shellcheck disable=SC2016  # for the inner shell
  "${namespace[@]}" bash -euo pipefail -c '
    for name in toml++ nlohmann tl CLI gtest rapidcheck; do
      [ ! -d /usr/include/$name ] || mount -t tmpfs -o ro tmpfs /usr/include/$name
    done
    for header in toml++/toml.h tl/expected.hpp nlohmann/json.hpp CLI/CLI.hpp; do
      [ ! -e /usr/include/$header ] || { echo "$header is still there"; exit 1; }
    done
    if (exec 3<>/dev/tcp/1.1.1.1/53) 2>/dev/null; then echo "there is a network"; exit 1; fi
    "$@"' isolated "$@"
}

check_offline() {
  scripts/dist.sh
  rm -rf "$work/tree" "$work/offline"
  mkdir -p "$work/tree"
  (cd dist && sha256sum -c penstock-*.tar.gz.sha256)
  tar -xzf dist/penstock-*.tar.gz -C "$work/tree" --strip-components=1
  local python
  python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
  PYTHON=$python PYTHON_DEPS=no isolated "$work/tree/scripts/install.sh" "$work/offline"
  # Every header that was read of these libraries lies in the archive's own third_party/.
  local headers
  headers=$(ninja -C "$work/tree/build/install/cmake" -t deps | grep -oE '\S*/(toml\+\+|nlohmann|tl|CLI)/\S+' | sort -u)
  [ -n "$headers" ] && ! grep -v '/third_party/' <<<"$headers"
}

# The packages of the command line come from .venv: what is missing there, pip brings (see `pip`).
check_prefix() {
  [ -d "$work/tree/build/install/cmake" ] || check_offline
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  local cmake=$work/tree/build/install/cmake
  cmake -S "$work/tree" -B "$cmake" -DPENSTOCK_PYTHON_INTERPRETER="$PWD/.venv/bin/python" >/dev/null
  [ -d "$site/typer" ]
  PENSTOCK_TEST_BUILD=$cmake .venv/bin/python -m pytest -q tests/install/test_prefix.py
  # As Spack and EasyBuild lay it out: the package among an interpreter's own.
  cmake -S "$work/tree" -B "$cmake" -DPENSTOCK_PYTHON_DIR=lib/python3/site-packages >/dev/null
  rm -rf "$work/site"
  cmake --install "$cmake" --prefix "$work/site" >/dev/null
  (cd / && "$work/site/bin/penstock" run --dry-run -- true) | grep -F "$work/site/lib/penstock/penstock-exec"
}

check_pip() {
  rm -rf "$work/pip" "$work/pip-moved"
  scripts/install.sh "$work/pip"
  mv "$work/pip" "$work/pip-moved"
  (cd / && env -i PATH=/usr/bin:/bin "$work/pip-moved/bin/penstock" list)
  (cd / && env -i PATH=/usr/bin:/bin "$work/pip-moved/bin/penstock" run --dry-run -- true) |
    grep -F "$work/pip-moved/lib/penstock/penstock-exec"
  rm -rf "$work/pip-moved"
}

check_easybuild() {
  local recipe modules=/etc/profile.d/lmod.sh
  if [ ! -e $modules ]; then
    echo "skip: EasyBuild needs Lmod: apt-get install lmod"
    exit 77
  fi
  # shellcheck disable=SC1090
  set +eu && . $modules && set -eu
  [ -f dist/penstock-*.eb ] || scripts/dist.sh
  recipe=$(echo dist/penstock-*.eb)
  local eb=$work/easybuild
  if [ ! -x "$eb/bin/eb" ]; then
    "$(.venv/bin/python -c 'import sys; print(sys._base_executable)')" -m venv "$eb"
    "$eb/bin/pip" install --quiet easybuild-framework easybuild-easyblocks easybuild-easyconfigs pycodestyle
  fi
  export PATH=$eb/bin:$PATH EASYBUILD_PREFIX=$work/easybuild-prefix EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1
  eb --check-contrib "$recipe"
  eb --dry-run --robot="$eb/easybuild/easyconfigs" "$recipe" | tee "$work/resolved.txt"
  grep -E '\(module: penstock/' "$work/resolved.txt"
}

mkdir -p "$work"
if [ "${1:-}" = --one ]; then
  "check_$2"
  exit 0
fi
for one in "${@:-offline prefix pip easybuild}"; do
  for name in $one; do
    case $name in
      offline | prefix | pip | easybuild) part "$name" ;;
      *) echo "check-install: the parts are offline, prefix, pip and easybuild; got '$name'" >&2 && exit 2 ;;
    esac
  done
done
echo "installation: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
