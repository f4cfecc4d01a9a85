"""``eval "$(penstock env)"``: what the lines set, and that they may be repeated."""

from __future__ import annotations

from pathlib import Path

from penstock.launch.shell import exports
from support import Cli

SHIM = Path("/opt/penstock/libpenstock-mpich.so")


def test_the_shim_goes_before_what_was_preloaded() -> None:
    lines = exports(SHIM, {}, {"LD_PRELOAD": "/a.so /b.so"})
    assert lines == [f"export LD_PRELOAD={SHIM}:/a.so:/b.so"]


def test_another_shim_of_penstock_is_replaced() -> None:
    lines = exports(SHIM, {}, {"LD_PRELOAD": "/x/libpenstock-openmpi.so:/a.so"})
    assert lines == [f"export LD_PRELOAD={SHIM}:/a.so"]


def test_values_are_quoted_for_the_shell() -> None:
    lines = exports(SHIM, {"PENSTOCK_METHOD": "two_phase(writers=2) + messages"}, {})
    assert "export PENSTOCK_METHOD='two_phase(writers=2) + messages'" in lines


def test_what_is_exported_already_is_not_repeated() -> None:
    environ = {"LD_PRELOAD": str(SHIM), "PENSTOCK_VERIFY": "1"}
    assert exports(SHIM, {"PENSTOCK_VERIFY": "1"}, environ) == []


def test_without_a_shim_the_shell_preloads_none_of_penstock() -> None:
    environ = {"LD_PRELOAD": f"{SHIM} /a.so"}
    assert exports(None, {"PENSTOCK_METHOD": "off"}, environ) == [
        "export LD_PRELOAD=/a.so",
        "export PENSTOCK_METHOD=off",
    ]
    assert exports(None, {}, {"LD_PRELOAD": str(SHIM)}) == ["export LD_PRELOAD=''"]
    assert exports(None, {}, {}) == []


def test_off_takes_out_of_a_shell_what_it_had(cli: Cli, native_dir: Path) -> None:
    before = {"LD_PRELOAD": str(native_dir / "libpenstock-mpich.so")}
    done = cli("env", "--method", "off", **before)
    assert (done.returncode, done.stderr.count("nothing is preloaded")) == (0, 1)
    lines = done.stdout.splitlines()
    assert lines == ["export LD_PRELOAD=''"]
