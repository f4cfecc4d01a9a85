#!python
"""penstock-exec of a wheel: becomes the one in the installed package, beside which its files lie.

It is started once for each rank, and imports no more than that needs.
"""

import os
import signal
import sys
from importlib.util import find_spec

found = find_spec("penstock")
packages = (found and found.submodule_search_locations) or []
programs = [os.path.join(package, "_native", "penstock-exec") for package in packages]  # noqa: PTH118
# Python ignores these, and what is ignored stays so across exec; where the locale was C it has set
# another for what it starts (PEP 538).
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
        given = file.read().split(b"\0")
    os.environb.pop(b"LC_CTYPE", None)
    os.environb.update({w[:8]: w[9:] for w in given if w.startswith(b"LC_CTYPE=")})
except OSError:
    pass  # no /proc
for program in programs:
    if os.path.exists(program):  # noqa: PTH110
        os.execv(program, [program, *sys.argv[1:]])  # noqa: S606 - that is the purpose
print(
    f"penstock-exec: no {' or '.join(programs) or 'package penstock'} for {sys.executable}: "
    "install Penstock's wheel again, or unset PYTHONPATH",
    file=sys.stderr,
)
sys.exit(127)
