"""How to get what Penstock can do without."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path

import penstock


def pip_install(package: str) -> str:
    """The command that installs a package for this Penstock, wherever that is from.

    Never by an extra of Penstock's own name: a checkout and an installed prefix are nothing that
    pip knows, and it would look for a stranger's package of that name.
    """
    words = [sys.executable, "-m", "pip", "install"]
    if not _is_pips_place():
        words += ["--target", str(_place())]
    return shlex.join([*words, package])


def _is_pips_place() -> bool:
    """Whether what pip installs by itself is found by this Python as well."""
    in_environment = sys.prefix != sys.base_prefix
    return in_environment or _place() in {
        Path(sysconfig.get_path(n)) for n in ("purelib", "platlib")
    }


def _place() -> Path:
    return Path(penstock.__file__).resolve().parent.parent
