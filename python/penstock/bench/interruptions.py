"""Ctrl-C, SIGTERM and SIGHUP, and what they must not cut short."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interruptions_wait() -> Iterator[None]:
    """What must not be cut short: Ctrl-C, SIGTERM and SIGHUP interrupt at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = heeded(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those of them that whoever started this process wants to be heard (nohup does not)."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
