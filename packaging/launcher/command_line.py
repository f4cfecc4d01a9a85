"""Started by bin/penstock: puts the installed package first in the path, and begins."""

import sys
from pathlib import Path
from typing import NoReturn

PACKAGES = Path(__file__).resolve().parent / "@PENSTOCK_LIBRARY_TO_PYTHON@"


def start() -> None:
    """Runs the command; a command imports what only it needs when it begins (`bench`: numpy)."""
    from penstock.__main__ import main

    main()


def refuse(why: str) -> NoReturn:
    """Ends as penstock.sh does without a Python. Not with 1: of `compare` that is a verdict."""
    print(f"penstock: {why}", file=sys.stderr)
    sys.exit(127)


sys.path.insert(0, str(PACKAGES.resolve()))
sys.argv[0] = "penstock"
try:
    start()
except ModuleNotFoundError as missing:
    refuse(
        f"the Python package {missing.name!r} is not there for {sys.executable}. "
        f"Install what the command line needs beside it:\n"
        f"  {sys.executable} -m pip install --target {PACKAGES.resolve()} typer rich pydantic"
        " numpy scipy polars jinja2\n"
        "penstock-exec works without it."
    )
except ImportError as error:
    refuse(f"it does not load in {sys.executable} (Python {sys.version.split()[0]}): {error}")
