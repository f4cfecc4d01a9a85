"""SIGTERM and SIGHUP as an orderly end, so that what is started is also stopped.

Python dies of both at once, without a `finally`. A script that starts processes in sessions of
their own, or that mounts, calls exit_on_signals() first. Python's standard library only.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)


def exit_on_signals() -> None:
    """Turns the first into SystemExit(128 + number). One that is ignored, by nohup, stays so."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _exit)


def _exit(number: int, _: FrameType | None) -> NoReturn:
    # `timeout` and make both pass a signal on: the second must not break off the cleaning up.
    for other in ENDING:
        signal.signal(other, _nothing)  # not SIG_IGN, which programs started from now on would keep
    raise SystemExit(128 + number)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    pass
