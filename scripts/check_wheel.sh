#!/usr/bin/env bash
# Builds a wheel, installs it into an empty environment, and uses it from an empty directory: what
# works in the checkout only does not count.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly work=$PWD/build/wheel
rm -rf "$work"
mkdir -p "$work/empty"
.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" . </dev/null
"$(.venv/bin/python -c 'import sys; print(sys._base_executable)')" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$work"/penstock-*.whl </dev/null

cd "$work/empty"
penstock=$work/venv/bin/penstock
"$penstock" --version
"$penstock" list --json >list.json
grep -q '"two_phase"' list.json
"$penstock" explain --draw plan.svg >explain.txt
grep -q '<svg' plan.svg
# The native files came along, and the program that they wrap runs.
"$penstock" run --quiet -- true
"$penstock" run --dry-run -- mpiexec -n 2 true | grep -q "$work/venv/"
echo "wheel: installs and runs outside the checkout"
