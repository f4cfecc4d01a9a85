"""The ``export`` lines of ``eval "$(penstock env)"``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path


def others_preloaded(environ: Mapping[str, str]) -> list[str]:
    """What LD_PRELOAD holds besides Penstock's; colons and blanks both part it."""
    return [
        entry
        for entry in environ.get("LD_PRELOAD", "").replace(":", " ").split()
        if not Path(entry).name.startswith("libpenstock-")
    ]


def exports(shim: Path | None, chosen: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Lines for a POSIX shell that preload ``shim`` and set the variables of ``chosen``.

    What LD_PRELOAD held stays behind the shim; a shim of Penstock that it held already goes, so
    that the command may be repeated, and so that the shell preloads none where none is given.
    """
    kept = others_preloaded(environ)
    preload = ":".join([str(shim), *kept] if shim else kept)
    values = dict(chosen)
    if preload or "LD_PRELOAD" in environ:
        values["LD_PRELOAD"] = preload
    changed = {name: value for name, value in values.items() if environ.get(name) != value}
    return [f"export {name}={shlex.quote(value)}" for name, value in sorted(changed.items())]
