#!/bin/sh
# Writes python/penstock/_core.pyi from the built module; python/tests/test_core.py compares.
set -eu
cd "$(dirname "$0")/.."
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -m nanobind.stubgen -q -m penstock._core \
  -o "${1:-python/penstock/_core.pyi}"
