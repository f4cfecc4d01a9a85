#!/bin/sh
# penstock: starts the command line of the prefix that this file lies in, wherever that is now.
# Nothing is exported: what `penstock run` starts sees the environment that the user has.
self=$(readlink -f -- "$0") || exit 127
python='@PENSTOCK_PYTHON_INTERPRETER@'
if ! [ -x "$python" ]; then
  echo "penstock: $python, the Python that it was installed with, is not there any more;" \
    "install Penstock again, or use penstock-exec, which needs no Python" >&2
  exit 127
fi
# -P: a file of the working directory (random.py, say) must not come before Python's own.
exec "$python" -P "${self%/*}/@PENSTOCK_BIN_TO_LIBRARY@/command_line.py" "$@"
