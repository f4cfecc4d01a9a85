"""The runners of tests/, which are scripts and all called run.py."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from mpis import ROOT


def suite(name: str) -> ModuleType:
    """tests/NAME/run.py, under a name of its own."""
    path = ROOT / "tests" / name / "run.py"
    spec = importlib.util.spec_from_file_location(f"{name}_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
