"""scripts/endings.py: a signal ends a script in order, and another does not disturb that."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import sys, time
sys.path.insert(0, sys.argv[1])
from endings import exit_on_signals
exit_on_signals()
try:
    print("begun", flush=True)
    time.sleep(20)
finally:
    print("ending", flush=True)
    time.sleep(float(sys.argv[2]))
    print("ended", flush=True)
"""


def begin(*prefix: str, ending_s: float = 0) -> subprocess.Popen[str]:
    scripts = str(Path(__file__).parents[1])
    own = ["env", "--default-signal=HUP", *prefix]  # also where this runs under nohup
    command = [*own, sys.executable, "-c", SCRIPT, scripts, str(ending_s)]
    script = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert script.stdout is not None
    assert script.stdout.readline() == "begun\n"
    return script


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_orderly_end(number: signal.Signals) -> None:
    script = begin()
    script.send_signal(number)
    assert script.communicate(timeout=20)[0] == "ending\nended\n"
    assert script.returncode == 128 + number


def test_a_second_signal_does_not_break_off_the_ending() -> None:
    script = begin(ending_s=0.5)
    script.send_signal(signal.SIGTERM)
    assert script.stdout is not None
    assert script.stdout.readline() == "ending\n"
    script.send_signal(signal.SIGTERM)
    script.send_signal(signal.SIGHUP)
    assert script.communicate(timeout=20)[0] == "ended\n"
    assert script.returncode == 128 + signal.SIGTERM


def test_nohup_holds() -> None:
    script = begin("nohup")
    script.send_signal(signal.SIGHUP)
    script.send_signal(signal.SIGTERM)
    script.communicate(timeout=20)
    assert script.returncode == 128 + signal.SIGTERM
