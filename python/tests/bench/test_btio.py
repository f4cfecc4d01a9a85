"""bench/btio: who takes part in a cell, how, and what follows from the samples."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.sample import Header, Sample, as_line
from penstock.errors import ArgumentError

ROOT = Path(__file__).resolve().parents[3]
BTIO = ROOT / "bench" / "btio"

pytestmark = pytest.mark.skipif(not BTIO.is_dir(), reason="only in a checkout")


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    """run.py as a module, under a name of its own."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("btio_run", BTIO / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


@pytest.fixture
def line(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everybody in every cell, as if everything was built, and every library was there."""
    monkeypatch.setattr("beside.place.shutil.which", lambda name: f"/bin/{name}")
    kinds = ("btio-openmpi", "btio-unsynced-openmpi", "btio-mpich", "btio-unsynced-mpich")
    for name in (*(f"bench/peer-{kind}" for kind in kinds), "native/penstock-exec"):
        path = tmp_path / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    words = ["--build", str(tmp_path / "build"), "--out", str(tmp_path / "out"), "--all"]
    words.append("--all-libraries")
    args = run.arguments(words)
    study = run.studies.load()
    peers, mpis = tmp_path / "peers", tmp_path / "mpis"
    for library in (peers / "mpich5", mpis / "openmpi5" / "lib"):
        library.mkdir(parents=True)
    site = replace(run.site_of(args), peers=peers, mpis=mpis)
    return run.studies.lineup(study, run.work_of(args, study), site)


def test_arithmetic_of_the_cells_is_as_written_down(run: Any) -> None:
    study = run.studies.load()
    peers = [peer for peer in study.peer if not peer.extra]
    cells = [c for c in run.studies.cells_of(study) if c.name in study.design.usual]
    own = sum(study.classes[cell.class_name].own_files for cell in cells)
    counts = [2 + sum(not p.ranks or c.ranks in p.ranks for p in peers) for c in cells]
    each, rounds = " or ".join(map(str, sorted(set(counts)))), study.design.rounds
    number = sum(counts) + own
    text = " ".join((BTIO / "cells.toml").read_text().replace("#", "").split())
    assert f"{len(cells)} cells of {each} variants, and {own} times a file per process" in text
    assert f"{number} variants. One warm-up and {rounds} rounds" in text
    assert f"= {number * (rounds + 1) + rounds} samples" in text


def test_the_study_of_our_own_has_our_two_ways_alone(run: Any, tmp_path: Path) -> None:
    args = run.arguments(["--study", "own", "--build", str(tmp_path)])
    study = run.studies.load(run.studies.path_of(args.study))
    cells, rounds = study.design.usual, study.design.rounds
    assert cells == run.studies.load().design.usual
    assert [(c.against, c.every_sample) for c in study.conclusion] == [
        ("penstock collective", False),
        ("penstock collective", True),
    ]
    missing = run.studies.lineup(study, run.work_of(args, study), run.site_of(args)).missing
    number = sum(missing.values())
    assert number == 2 * len(cells)
    text = " ".join((BTIO / "own.toml").read_text().replace("#", "").split())
    assert f"{number} variants. One warm-up and {rounds} rounds are" in text
    assert f"{number} * {rounds + 1} + {rounds} = {number * (rounds + 1) + rounds} samples" in text


def test_a_page_says_which_study_it_is_of(run: Any, line: Any, tmp_path: Path) -> None:
    write_results(line, tmp_path / "results", PENSTOCK)
    page = tmp_path / "own.md"
    words = ["--study", "own", "--table", str(tmp_path / "results"), "--page", str(page)]
    assert run.main(words) == run.command.DONE
    told = page.read_text()
    assert told.startswith("# BT-IO: independent writes beside collective ones\n")
    assert "(`bench/btio/own.toml`)" in told
    assert "bench/btio/run.py --study own --table docs/benchmarks/" in told
    assert told.count("own.md`") == 1


def test_usual_cells_have_each_class_and_each_number_of_ranks_once_per_end(run: Any) -> None:
    study = run.studies.load()
    cells = [c for c in run.studies.cells_of(study) if c.name in study.design.usual]
    assert len(cells) == len(study.design.usual)
    for end in run.studies.ENDS:
        assert {c.class_name for c in cells if c.end == end} == set(study.classes)
        assert {c.ranks for c in cells if c.end == end} == set(study.design.ranks)


def test_enough_rounds_for_an_interval_that_decides(run: Any) -> None:
    from penstock.bench.statistics import CONFIDENCE, median_interval

    rounds = run.studies.load().design.rounds
    assert median_interval(list(range(1, rounds + 1))).confidence >= CONFIDENCE


def test_every_library_writes_both_ways_and_each_cell_has_everybody(line: Any) -> None:
    assert line.missing == {}
    by_cell: dict[str, set[str]] = {}
    for one in line.measurements:
        by_cell.setdefault(one.cell, set()).add(one.variant)
    wanted = [f"{c}-{n}{end}" for end in ("", "-synced") for c in "ABC" for n in (4, 9, 16)]
    assert list(by_cell) == wanted
    for cell, names in by_cell.items():
        libraries = {n.removesuffix("-collective") for n in names if n.endswith("-collective")}
        everywhere = {"penstock", "romio-openmpi4", "ompio4", "romio-openmpi5", "ompio5"}
        assert libraries == everywhere | ({"romio-mpich5"} if "-4" in cell else set())
        assert {f"{library}-independent" for library in libraries} < names
        assert ("file-per-process" in names) == cell.startswith("A")


def command(line: Any, cell: str, variant: str) -> str:
    found = next(m for m in line.measurements if (m.cell, m.variant) == (cell, variant))
    return " ".join(found.command)


def test_penstock_is_preloaded_without_hints_and_must_not_be_passed_by(line: Any) -> None:
    words = command(line, "B-9", "penstock-independent")
    assert "penstock-exec --quiet --isolated --require" in words
    assert "peer-btio-unsynced-openmpi" in words
    assert "--class B --subtype simple --outputs 4 --end close --regime warm" in words
    assert "--hint" not in words
    assert " -n 9 " in words


def test_only_what_syncs_has_a_sync_in_it(line: Any) -> None:
    for one in line.measurements:
        assert ("-synced" in one.cell) == ("--end sync" in " ".join(one.command))
        assert ("-synced" in one.cell) == any(
            w.endswith(("peer-btio-openmpi", "peer-btio-mpich")) for w in one.command
        )


def test_settings_go_to_the_launcher_or_to_the_program(line: Any) -> None:
    romio = command(line, "A-4", "romio-openmpi4-collective")
    assert "--mca io romio321" in romio
    assert "--subtype full" in romio
    assert romio.endswith("--hint cb_buffer_size=4194304")
    ompio = command(line, "A-4", "ompio4-independent")
    assert "--mca fcoll dynamic_gen2 --mca io_ompio_num_aggregators 4" in ompio
    assert "penstock-exec" not in ompio + romio


def test_what_is_not_there_is_said_once_with_the_reason(run: Any, tmp_path: Path) -> None:
    args = run.arguments(["--build", str(tmp_path)])
    study = run.studies.load()
    line = run.studies.lineup(study, run.work_of(args, study), run.site_of(args))
    assert line.measurements == []
    assert line.reasons == [
        "peer-btio-unsynced-openmpi is not built (make build) (19 variants)",
        "peer-btio-unsynced-mpich is not built (make build) (2 variants)",
        "peer-btio-openmpi is not built (make build) (19 variants)",
        "peer-btio-mpich is not built (make build) (2 variants)",
    ]


def test_wrong_cells_are_refused_by_name(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--cells", "A-4,D-4", "--dry-run"]) == run.command.USAGE
    assert "--cells must be of A-4, A-9" in capsys.readouterr().err


def test_a_misspelt_key_is_refused(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "cells.toml"
    path.write_text((BTIO / "cells.toml").read_text().replace("gate = true", "gates = true"))
    with pytest.raises(ArgumentError, match=r"cells\.toml"):
        run.studies.load(path)


# ---- what follows from samples ----

PENSTOCK = {"penstock-collective": 1000.0, "penstock-independent": 950.0}
OTHERS = {
    "romio-openmpi4-collective": 900.0,
    "romio-openmpi4-independent": 300.0,
    "ompio4-collective": 800.0,
    "ompio4-independent": 310.0,
    "file-per-process": 3000.0,
}


def result_of(rate: float, wrong: int) -> dict[str, Any]:
    size = 10**8
    clock = {"seconds": size / rate / 1e6, "bytes_per_s": rate * 1e6}
    return {
        "schema": "penstock.measure/1", "program": "btio", "workers": 4, "ranks": 4,
        "bytes": size, "application": clock, "actual": None,
        "verified": {"bytes": size, "wrong_bytes": wrong, "first_wrong": None}, "error": None,
    }  # fmt: skip


def write_results(line: Any, out: Path, rates: Mapping[str, float], wrong: str = "") -> None:
    """Six blocks of A-4, each a tenth slower than the one before."""
    mine = [m for m in line.measurements if m.cell == "A-4" and m.variant in rates]
    plan = {"measurements": [m.as_plan() for m in mine]}
    records: list[Any] = [Header(penstock="0", created="2026-11-22", name="t", seed=1, plan=plan)]
    for block in range(7):
        for place, one in enumerate(mine):
            bad = one.variant == wrong
            records.append(
                Sample(
                    cell=one.cell, variant=one.variant, block=block, place=place,
                    warm_up=block == 0, started="2026-11-22", wall_s=1.0, command=[],
                    result=result_of(rates[one.variant] * 0.9**block, 8 if bad else 0),
                    failed="8 bytes of the file are wrong" if bad and block > 0 else None,
                )
            )  # fmt: skip
    out.mkdir()
    (out / "samples.jsonl").write_text("".join(as_line(r) for r in records))


def report_of(run: Any, out: Path) -> Any:
    return run.reports.report(run.load(out), run.studies.load().conclusion)


def verdicts(said: Any) -> dict[str, str]:
    return {c.name: c.verdict for c in said.conclusions}


def test_conclusions_are_decided_by_the_whole_interval(run: Any, line: Any, tmp_path: Path) -> None:
    out = tmp_path / "results"
    write_results(line, out, {**PENSTOCK, **OTHERS})
    said = report_of(run, out)
    assert verdicts(said) == {
        "collective speed": "holds",
        "faster than collective": "holds",
        "three times": "holds",
        "collective": "holds",
        "every byte": "holds",
    }
    three = said.cells[0].ratios["three times"]
    assert three.against == "ompio4-independent"
    assert three.ratio.median == pytest.approx(950 / 310)  # paired: the drift cancels
    assert three.ratio.n == 6


def test_one_slow_cell_fails_a_conclusion_and_no_gate(run: Any, line: Any, tmp_path: Path) -> None:
    out = tmp_path / "results"
    write_results(line, out, {**PENSTOCK, **OTHERS, "penstock-independent": 850.0})
    said = report_of(run, out)
    assert verdicts(said)["collective speed"] == "fails"
    assert verdicts(said)["three times"] == "fails"
    assert said.gate_failed == []


def test_a_peer_that_writes_wrong_bytes_is_not_the_best(
    run: Any, line: Any, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    write_results(line, out, {**PENSTOCK, **OTHERS}, wrong="ompio4-independent")
    three = report_of(run, out).cells[0].ratios["three times"]
    assert three.against == "romio-openmpi4-independent"


def test_a_wrong_byte_of_penstock_fails_the_gate(
    run: Any, line: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    write_results(line, out, {**PENSTOCK, **OTHERS}, wrong="penstock-independent")
    assert run.main(["--table", str(out)]) == run.command.FAILED
    assert "failed: every byte" in capsys.readouterr().err
    assert verdicts(report_of(run, out))["collective speed"] == "fails"


def test_page_names_its_samples_and_keeps_nothing_back(
    run: Any, line: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, raw, page = tmp_path / "results", tmp_path / "raw" / "btio.jsonl", tmp_path / "btio.md"
    write_results(line, out, {**PENSTOCK, **OTHERS}, wrong="ompio4-independent")
    assert (
        run.main(["--table", str(out), "--raw", str(raw), "--page", str(page)]) == run.command.DONE
    )
    text = page.read_text()
    assert "(raw/btio.jsonl)" in text
    assert "OMPIO of Open MPI 4.1, independent failed 6 times: 8 bytes" in text
    assert "0.95 [0.95-0.95] n=6 of penstock-collective" in text
    assert str(ROOT) not in raw.read_text()
    assert "0.95 [0.95-0.95]" in capsys.readouterr().out
