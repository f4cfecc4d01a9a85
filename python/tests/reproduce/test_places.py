"""Several file systems in one session: told apart, compared in the same blocks, judged by type."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from made_samples import header, result, sample
from penstock.bench.sample import CpuTimes, Provenance
from penstock.bench.store import Results
from penstock.errors import ArgumentError
from penstock.reproduce import conclusions, places, plan, render
from penstock.reproduce.report import Report, conclude, report

NOISE = (1.0, 1.02, 0.98, 1.01, 0.99, 1.03)
TYPES = {"ext4": "ext4", "nfs": "fuse.nfsfuse", "parallel": "fuse.glusterfs", "raw": "ext4"}
WRITES = [f"interleaved write,ranks={p},total=16MiB" for p in (2, 4, 8)]
READS = [cell.replace("write", "read") for cell in WRITES]


def made(
    paper: str, rates: dict[tuple[str, str, str], float], names: Sequence[str] = tuple(TYPES)
) -> Results:
    """Six samples around each rate of (place, cell, variant), on idle CPUs."""
    planned = [
        {"cell": places.at(place, cell), "variant": variant, "parameters": {}}
        for place, cell, variant in rates
    ]
    first = header(
        name=f"reproduce {paper} full on {','.join(names)}", plan={"measurements": planned}
    )
    where = {n: Provenance(id=n, file_system={"type": TYPES[n]}) for n in names}
    reading = {"at_s": 0, "cpu_steal_s": 0, "own_cpu_s": 0, "dirty_bytes": 0}
    reading |= {"writeback_bytes": 0, "memory_available_bytes": 1, "cpu_busy_s": 0}
    samples = [
        sample(
            variant,
            block,
            cell=places.at(place, cell),
            provenance=place,
            result=result(rate * NOISE[block - 1]),
            machine_before={**reading, "cpu_total_s": 1.0},
            machine_after={**reading, "cpu_total_s": 2.0},
        )
        for (place, cell, variant), rate in rates.items()
        for block in range(1, 7)
    ]
    return Results(headers=[first], provenances=where, samples=samples)


def verdict(said: Report, name: str) -> str:
    return next(one.verdict for one in said.conclusions if one.id == name)


def barro(read: float, write: float) -> Report:
    """A parallel file system so many times as fast as NFS."""
    rates = {("nfs", cell, "collective"): 2e7 for cell in (*READS, *WRITES)}
    rates |= {("parallel", cell, "collective"): 2e7 * read for cell in READS}
    rates |= {("parallel", cell, "collective"): 2e7 * write for cell in WRITES}
    return report(made("barro2002", rates))


@pytest.mark.parametrize(
    ("read", "write", "expected"),
    [
        (1.5, 3.0, "holds"),
        (1.5, 1.5, "does not hold"),  # not more so for writes
        (0.7, 3.0, "does not hold"),  # NFS reads faster
        (1.5, 0.7, "does not hold"),
    ],
)
def test_two_file_systems_are_compared_in_the_same_blocks(
    read: float, write: float, expected: str
) -> None:
    assert verdict(barro(read, write), "barro2002-parallel-beats-nfs") == expected


def busy(results: Results, cell: str, variant: str, fraction: float, total_s: float) -> None:
    """So busy were the CPUs in a variant of a cell of each place, and so long it took."""
    for i, one in enumerate(results.samples):
        if one.cell.endswith(f": {cell}") and one.variant == variant and one.result:
            cpus = CpuTimes(busy_s=fraction * total_s, total_s=total_s)
            told = one.result.model_copy(update={"cpus": cpus})
            results.samples[i] = one.model_copy(update={"result": told})


def test_a_long_cell_does_not_hide_that_the_cpus_were_busy_in_a_short_one() -> None:
    """Only what they were busy in is invalid: with the rest it is undecided, not decided."""
    rates = {("nfs", cell, "collective"): 2e7 for cell in (*READS, *WRITES)}
    rates |= {("parallel", cell, "collective"): 3e7 for cell in READS}
    rates |= {("parallel", cell, "collective"): 6e7 for cell in WRITES}
    results = made("barro2002", rates)
    busy(results, READS[0], "collective", 0.95, 0.01)
    one = next(c for c in report(results).conclusions if c.id == "barro2002-parallel-beats-nfs")
    assert one.verdict == "undecided"
    assert "INVALID: the CPUs were 95 % busy" in one.why
    verdicts = [found.verdict for found in one.findings]
    assert verdicts.count("cannot be tested here") == 1
    assert verdicts.count("holds") == 4


def test_who_is_not_asked_about_does_not_count_as_idle() -> None:
    """POSIX waits for the device in a claim about MPI calls alone."""
    variants = ("collective", "independent", "POSIX")
    rates = {("ext4", cell, v): 2e7 for cell in (*READS, *WRITES) for v in variants}
    results = made("barro2002", rates, ["ext4"])
    for cell in (*READS, *WRITES):
        busy(results, cell, "collective", 0.9, 1.0)
        busy(results, cell, "POSIX", 0.0, 100.0)
    said = report(results)
    one = next(c for c in said.conclusions if c.id == "barro2002-interleaved-few-processes")
    assert one.verdict == "cannot be tested here"
    assert "collective: INVALID: the CPUs were 90 % busy" in one.why


@pytest.mark.parametrize("where", [0, 2])
def test_a_trend_with_a_point_of_busy_cpus_is_not_judged(where: int) -> None:
    cells = [cell.replace("interleaved", "contiguous") for cell in (*READS, *WRITES)]
    rates = {
        ("parallel", cell, v): 2e7 * (1 + i % 3)
        for v in ("collective", "independent")
        for i, cell in enumerate(cells)
    }
    results = made("barro2002", rates, ["parallel"])
    assert verdict(report(results), "barro2002-pvfs-scales") == "holds"
    busy(results, cells[where], "independent", 0.9, 1.0)
    assert verdict(report(results), "barro2002-pvfs-scales") == "undecided"


def test_a_file_system_that_is_missing_is_named() -> None:
    rates = {("nfs", cell, "collective"): 2e7 for cell in WRITES}
    said = report(made("barro2002", rates, ["nfs"]))
    one = next(o for o in said.conclusions if o.id == "barro2002-parallel-beats-nfs")
    assert one.verdict == "cannot be tested here"
    assert "needs a parallel file system among the directories" in one.why


def test_a_conclusion_about_nfs_is_judged_there_and_nowhere_else() -> None:
    cells = [cell.replace("interleaved", "contiguous") for cell in WRITES]
    rates = {
        (place, cell, variant): rate
        for place in ("ext4", "nfs")
        for cell in cells
        for variant, rate in (("POSIX", 4e7 if place == "nfs" else 1e7), ("collective", 2e7))
    }
    rates |= {(place, cell, "independent"): 2e7 for place in ("ext4", "nfs") for cell in cells}
    said = report(made("barro2002", rates, ["ext4", "nfs"]))
    one = next(o for o in said.conclusions if o.id == "barro2002-posix-beats-mpi-io-on-nfs")
    assert [(p.place, p.verdict) for p in one.places] == [
        ("ext4", "cannot be tested here"),
        ("nfs", "holds"),
    ]
    assert one.verdict == "holds"
    assert {t.place for t in said.tables} == {"ext4", "nfs"}
    assert said.places == {"ext4": "ext4", "nfs": "fuse.nfsfuse"}


def test_one_file_system_where_it_does_not_hold_is_enough() -> None:
    cells = ["segment 2 MB", "segment 10 MB", "segment 20 MB"]
    rates = {
        (place, cell, variant): 2e7 * (1.5**i if place == "ext4" else 0.8**i)
        for place in ("ext4", "parallel")
        for i, cell in enumerate(cells)
        for variant in ("dynamic 1", "dynamic all", "individual")
    }
    said = report(made("chaarawi2009", rates, ["ext4", "parallel"]))
    one = next(o for o in said.conclusions if o.id == "chaarawi2009-larger-segments-faster")
    assert one.verdict == "does not hold"
    assert [p.verdict for p in one.places] == ["holds", "does not hold"]
    out = io.StringIO()
    render.print_report(said, Console(file=out, width=200))
    assert "ext4: holds" in out.getvalue()
    json.dumps(said.as_json())


ALGORITHMS = ("dynamic 1", "dynamic all", "static", "individual", "ROMIO")


def chaarawi(best: dict[str, str]) -> Report:
    rates = {
        (place, "segment 2 MB", variant): 3e7 if variant == best[place] else 2e7
        for place in best
        for variant in ALGORITHMS
    }
    rates |= {("raw", "segment 2 MB", v): 1e8 for v in ALGORITHMS}
    return report(made("chaarawi2009", rates, ["nfs", "parallel", "raw"]))


def test_none_wins_everywhere_is_asked_of_both_file_systems() -> None:
    differ = chaarawi({"nfs": "static", "parallel": "individual"})
    assert verdict(differ, "chaarawi2009-none-wins-everywhere") == "holds"
    alike = chaarawi({"nfs": "static", "parallel": "static"})
    assert verdict(alike, "chaarawi2009-none-wins-everywhere") == "does not hold"


def test_nfs_is_held_against_the_disk_of_its_server() -> None:
    below = chaarawi({"nfs": "static", "parallel": "individual"})
    assert verdict(below, "chaarawi2009-nfs-below-a-disk") == "holds"
    rates = {("nfs", "segment 2 MB", v): 2e8 for v in ALGORITHMS}
    rates |= {("raw", "segment 2 MB", v): 1e8 for v in ALGORITHMS}
    above = report(made("chaarawi2009", rates, ["nfs", "raw"]))
    assert verdict(above, "chaarawi2009-nfs-below-a-disk") == "does not hold"


def test_directories_are_one_or_have_names(tmp_path: Path) -> None:
    assert places.directories([]) == {"": Path()}
    assert places.directories([str(tmp_path)]) == {"": tmp_path}
    assert places.directories(["nfs=/a", "ext4=/b"]) == {"nfs": Path("/a"), "ext4": Path("/b")}
    assert places.directories(["nfs=/a"]) == {"nfs": Path("/a")}
    with pytest.raises(ArgumentError, match="--dir must be NAME=DIR where there are several"):
        places.directories(["/a", "nfs=/b"])
    with pytest.raises(ArgumentError, match="--dir names nfs twice"):
        places.directories(["nfs=/a", "nfs=/b"])


@pytest.mark.parametrize(
    ("predicate", "more", "said"),
    [
        ("faster", {"over": ["b"], "on": "nfs"}, "give on and over_on"),
        ("faster", {"over": ["b"], "on": "nfs", "over_on": "nfs"}, "give on and over_on"),
        (
            "scales_better",
            {"over": ["b"], "along_cells": ["c", "d"], "on": ["nfs"]},
            "must be as many",
        ),
    ],
)
def test_claims_about_places_are_checked(
    predicate: str, more: dict[str, object], said: str
) -> None:
    values = {"predicate": predicate, "of": ["a"]} | more
    if predicate == "faster":
        values |= {"cells": ["c"]}
    with pytest.raises(ValueError, match=said):
        conclusions.PREDICATES[predicate].model_validate(values)


def test_what_was_planned_for_a_budget_and_is_not_there_is_undecided() -> None:
    one = next(o for o in conclusions.of_paper("liao2007") if o.id.endswith("-meets-collective"))
    for budget_s, expected in ((None, "cannot be tested here"), (480.0, "undecided")):
        results = made("liao2007", {}, [])
        results.headers[0].plan["budget_s"] = budget_s
        said = conclude(one, places.of(plan.evidence_of(results), []))
        assert said.verdict == expected
    assert "not measured within the budget of 480 s" in said.why


def test_what_one_file_system_lacks_of_an_interrupted_session_is_not_measured_yet() -> None:
    names = ["nfs", "parallel"]
    results = made("barro2002", {(n, c, "collective"): 2e7 for n in names for c in WRITES}, names)
    gone = places.at("nfs", WRITES[0])
    results.samples = [s for s in results.samples if s.cell != gone]
    nfs, parallel = places.of(plan.evidence_of(results), names).each
    why = nfs.evidence.why_left_out(WRITES[0], ["collective"])
    assert why == "not measured yet: the same command goes on"
    assert not parallel.evidence.why_left_out(WRITES[0], ["collective"])


@pytest.mark.parametrize("budget_s", [None, 480.0])
def test_a_directory_of_which_the_warm_ups_took_the_time_is_there(budget_s: float | None) -> None:
    results = made("barro2002", {("nfs", cell, "collective"): 2e7 for cell in WRITES})
    results.headers[0].plan["budget_s"] = budget_s
    first = places.at("parallel", WRITES[0])
    results.samples.append(sample("collective", 0, cell=first, provenance="parallel", warm_up=True))
    one = next(o for o in report(results).conclusions if o.id == "barro2002-parallel-beats-nfs")
    if budget_s is None:
        assert one.verdict == "cannot be tested here"
    else:
        assert (one.verdict, one.why) == ("undecided", "not measured within the budget of 480 s")


def test_a_directory_without_a_sample_is_told_and_judges_nothing() -> None:
    results = made("barro2002", {("nfs", WRITES[0], "collective"): 100.0}, ["nfs", "ext4"])
    said = report(results)
    assert list(said.places) == ["nfs"]
    assert "nothing was measured on ext4" in said.notes
    assert all(at.place == "nfs" for one in said.conclusions for at in one.places)
