"""What the suite of the truth makes of a fault that a job was to survive."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "truth"))
from truth_cases import Evidence, Fault

HARMLESS = Fault("eintr", "EINTR at the 2nd write", spec="call=pwrite,nth=2,errno=EINTR")


@pytest.mark.parametrize("met", [False, True])
def test_what_was_never_met_was_not_survived(tmp_path: Path, met: bool) -> None:
    (tmp_path / "rank.0").write_text("sync none\nclose none\ndone yes\n")
    if met:
        (tmp_path / "faults").write_text("pid 7: matching call 2, errno 4, short -1\n")
    assert (HARMLESS.unmet(Evidence(tmp_path, 1, hung=False)) == []) == met
