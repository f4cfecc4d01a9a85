"""bench/limit/processors.py: what samples of processors say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.errors import PenstockError

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench" / "limit"), str(ROOT / "bench" / "peers")]
from processors import HZ, Sample, group_of, parsed, shares  # noqa: E402

SAID = """\
penstock measur  4711 [001] 26558.656054:
\tffffffff81000000 copy_folio_from_iter_atomic
\tffffffff81000001 generic_perform_write
\tffffffff81000002 vfs_write

swapper     0 [000] 26558.657055:
\tffffffff81000003 pv_native_safe_halt
"""


def test_samples_are_read_from_what_perf_prints() -> None:
    write, idle = parsed(SAID.splitlines())
    assert (write.comm, write.cpu, write.at) == ("penstock measur", 1, 26558.656054)
    assert (group_of(write), group_of(idle)) == ("page cache", "idle")


def busy(cpu: int, moment: int, chain: str = "vfs_write") -> Sample:
    return Sample("app", cpu, moment / HZ, chain)


def test_a_processor_that_gives_no_sample_is_not_run() -> None:
    samples = [busy(0, i) for i in range(101)]
    samples += [busy(1, i, "do_idle") for i in range(101) if not 20 < i < 60]
    found = shares(samples, 2)
    assert found["ms"] == pytest.approx(1e5 / HZ)
    assert found["not run"] == pytest.approx(39 / 200)
    assert found["other"] == pytest.approx(1 - 39 / 200)


def test_the_longest_stretch_of_writes_counts() -> None:
    before = [busy(0, i) for i in range(10)]
    after = [busy(0, 5 * HZ + i, "vfs_write blk_mq_submit_bio") for i in range(50)]
    assert shares(before + after, 1)["block layer"] == pytest.approx(1.0)


def test_where_nobody_writes_nothing_is_said() -> None:
    with pytest.raises(PenstockError, match="no sample is inside a write"):
        shares([busy(0, 1, "do_idle")], 1)
