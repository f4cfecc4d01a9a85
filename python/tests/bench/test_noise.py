"""What disturbed a session is named, with evidence and remedy; quiet sessions find nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.bench.noise import MachineReading


def test_a_reading_tells_what_this_machine_does() -> None:
    first, second = MachineReading.read(), MachineReading.read()
    assert 0 < first.cpu_busy_s <= first.cpu_total_s
    assert second.cpu_total_s >= first.cpu_total_s
    assert first.memory_available_bytes > 0
    assert MachineReading.model_validate_json(first.model_dump_json()) == first


def proc(tmp_path: Path, *, pressure: bool) -> Path:
    (tmp_path / "stat").write_text("cpu  100 200 300 400 50 6 7 80 9 9\ncpu0 1 1 1 1 1 1 1 1\n")
    (tmp_path / "meminfo").write_text(
        "MemAvailable:  1000 kB\nDirty:  3 kB\nWriteback:  2 kB\nHugePages_Total:  0\n"
    )
    if pressure:
        (tmp_path / "pressure").mkdir()
        for what in ("io", "memory"):
            line = "some avg10=12.50 avg60=0.00 avg300=0.00 total=3000000\nfull avg10=0.00\n"
            (tmp_path / "pressure" / what).write_text(line)
    return tmp_path


def test_a_readings_numbers_are_the_kernels(tmp_path: Path) -> None:
    reading = MachineReading.read(proc(tmp_path, pressure=True))
    assert reading.cpu_busy_s == pytest.approx(6.13)  # at 100 ticks a second
    assert reading.cpu_total_s == pytest.approx(11.43)
    assert reading.cpu_steal_s == pytest.approx(0.8)
    assert (reading.dirty_bytes, reading.writeback_bytes) == (3072, 2048)
    assert reading.memory_available_bytes == 1024000
    assert (reading.io_stall_s, reading.io_pressure) == (3.0, 12.5)


def test_a_kernel_without_pressure_says_none(tmp_path: Path) -> None:
    reading = MachineReading.read(proc(tmp_path, pressure=False))
    assert (reading.io_stall_s, reading.memory_stall_s, reading.io_pressure) == (None, None, None)
