"""Names that several tests import; fixtures are in conftest.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
