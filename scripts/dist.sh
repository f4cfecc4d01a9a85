#!/usr/bin/env bash
# Makes dist/penstock-VERSION.tar.gz and its checksum: the sources at HEAD, and in third_party/ the
# libraries that are compiled in, so that a machine without network and without their packages builds it
# (cmake -DPENSTOCK_DEPS=bundled). The same commit and packages give the same bytes.
#
# Beside it the recipes of Spack and EasyBuild, with its checksum.
#
# The libraries are those of this machine's Debian packages and of .venv: what the suites ran with.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -nE 's/^project\(penstock VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
readonly version archive=penstock-$version
readonly out=$PWD/dist
readonly tree=$out/tree/$archive

stop() {
  printf 'dist: %s\n' "$@" >&2
  exit 1
}

# Directory | Debian package | what of /usr/include is the library
readonly libraries=(
  "tomlplusplus|libtomlplusplus-dev|toml++"
  "nlohmann-json|nlohmann-json3-dev|nlohmann"
  "expected|libexpected-dev|tl"
  "cli11|libcli11-dev|CLI")

take_library() {
  local name package headers installed
  IFS='|' read -r name package headers <<<"$1"
  installed=$(dpkg-query -W -f='${Version}' "$package" 2>/dev/null) && [ -d "/usr/include/$headers" ] ||
    stop "the sources of $name are taken from $package, which is not installed: apt-get install $package"
  mkdir -p "$tree/third_party/$name/include"
  cp -rL "/usr/include/$headers" "$tree/third_party/$name/include/"
  cp -L "/usr/share/doc/$package/copyright" "$tree/third_party/$name/LICENSE"
  echo "$name $installed Debian:$package" >>"$tree/third_party/VERSIONS"
}

# The licence that a package refers to by its place in Debian's own collection.
take_common_licence() {
  [ -r "/usr/share/common-licenses/$1" ] || stop "there is no /usr/share/common-licenses/$1"
  cp -L "/usr/share/common-licenses/$1" "$tree/third_party/$2/$1.txt"
}

take_nanobind() {
  local home licence installed
  read -r home licence installed < <(.venv/bin/python - <<'PYTHON'
import importlib.metadata as metadata
from pathlib import Path

import nanobind

files = metadata.files("nanobind") or []
licence = next(f.locate() for f in files if f.name == "LICENSE")
print(Path(nanobind.__file__).parent, licence, metadata.version("nanobind"))
PYTHON
  ) || stop "nanobind is taken from .venv, which has none: make bootstrap"
  local target=$tree/third_party/nanobind
  mkdir -p "$target"
  cp -r "$home"/{cmake,include,src,ext} "$target/"
  find "$target" -name __pycache__ -prune -exec rm -rf {} +
  cp "$licence" "$target/LICENSE"
  # robin-map's own licence stands at the top of each of its files.
  sed -n '/^\/\*\*/,/\*\//p;/\*\//q' "$target/ext/robin_map/include/tsl/robin_map.h" >"$target/ext/robin_map/LICENSE"
  grep -q 'Permission is hereby granted' "$target/ext/robin_map/LICENSE" || stop "robin_map.h has no licence"
  echo "nanobind $installed wheel:nanobind" >>"$tree/third_party/VERSIONS"
}

# What is compiled in and named nowhere would be a licence broken.
check_notice() {
  local one
  for one in "$tree"/third_party/*/; do
    one=$(basename "$one")
    [ -s "$tree/third_party/$one/LICENSE" ] || stop "third_party/$one has no LICENSE"
    grep -qE "^$one .*\[archive\]" "$tree/NOTICE" || stop "NOTICE does not list $one as [archive]"
  done
}

# The archive holds the recipes, so their checksum of it can only be known outside.
write_recipes() {
  local sum
  sum=$(cut -d ' ' -f 1 "$out/$archive.tar.gz.sha256")
  rm -rf "$out/spack_repo"
  cp -r packaging/spack/spack_repo "$out/"
  cp packaging/easybuild/*.eb "$out/"
  sed -i "s/@SHA256@/$sum/" "$out"/*.eb "$out"/spack_repo/penstock/packages/penstock/package.py
}

git rev-parse -q --verify HEAD >/dev/null || stop "run it in a git checkout: the sources are those of HEAD"
rm -rf "$out/tree"
mkdir -p "$tree"
git archive HEAD | tar -x -C "$tree"
for library in "${libraries[@]}"; do take_library "$library"; done
take_common_licence CC0-1.0 expected
take_nanobind
check_notice

when=$(git log -1 --format=%ct)
(cd "$out/tree" && tar --sort=name --mtime="@$when" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
  -cf - "$archive") | gzip -9n >"$out/$archive.tar.gz"
rm -rf "$out/tree"
(cd "$out" && sha256sum "$archive.tar.gz" >"$archive.tar.gz.sha256")
write_recipes
echo "dist: dist/$archive.tar.gz ($(stat -c %s "$out/$archive.tar.gz") bytes)"
cat "$out/$archive.tar.gz.sha256"
