"""Penstock: faster, truthful file writes for unmodified MPI programs.

The command line is ``penstock`` (or ``python -m penstock``); `penstock._core` holds the layouts and
plans of the C++ side.
"""

from penstock import _core, errors

__version__ = _core.VERSION

__all__ = ["__version__", "errors"]
