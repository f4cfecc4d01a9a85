"""The commands that reports give to repeat a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from made_samples import header
from penstock.bench import quick
from penstock.report import anew

ASKED = quick.record(
    quick.Wish(Path(), 20.0, ("none", "openmpi"), threads=2, launcher="mpirun -n {ranks}")
)
FIXED = {"stopping": {"minimum": 3, "maximum": 3, "checks": [3]}}


@pytest.mark.parametrize(
    ("name", "plan", "command"),
    [
        ("sizes", {}, "penstock bench DIR --matrix FILE.toml"),
        ("sizes", FIXED, "penstock bench DIR --matrix FILE.toml --rounds 3"),
        ("quick", {"stopping": vars(quick.STOPPING)}, "penstock bench DIR"),  # of an early version
        ("quick", quick.record(quick.Wish(Path(), ranks=3)), "penstock bench DIR --ranks 3"),
        (
            "quick",
            ASKED | FIXED,
            "penstock bench DIR --mpi none --mpi openmpi --threads 2 "
            "--launcher 'mpirun -n {ranks}' --budget 20s --rounds 3",
        ),
        (
            "reproduce liao2007 quick",
            {"budget_s": None},
            "penstock reproduce liao2007 --size quick --dir DIR",
        ),
        (
            "reproduce liao2007 quick",
            FIXED,
            "penstock reproduce liao2007 --size quick --dir DIR --rounds 3",
        ),
        (
            "reproduce barro2002 full on ext4,nfs",
            {"budget_s": 480.0},
            "penstock reproduce barro2002 --size full --dir ext4=DIR --dir nfs=DIR --budget 480s",
        ),
        ("reproduce nobody", {}, "penstock bench DIR --matrix FILE.toml"),
    ],
)
def test_a_session_is_repeated_as_it_was_asked_for(
    name: str, plan: dict[str, Any], command: str
) -> None:
    assert anew.line(header(name=name, plan=plan)) == f"{command} --seed 7"


def test_parts_have_seeds_of_their_own() -> None:
    made = [header(seed=seed) for seed in (4, 5, 4)]
    told = [(c.what, c.line.rpartition(" ")[2]) for c in anew.commands(made, "A anew")]
    what = "A anew, in the same order of a part"
    assert told == [(what, "4"), (what, "5")]
