"""bench/peers: the committed cells, who takes part, the search, and a run from begin to end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from made_samples import header, result, sample
from peers_bench import PEERS, Bench, module
from penstock.bench.store import Results, load
from penstock.errors import ArgumentError

pytestmark = pytest.mark.skipif(not PEERS.is_dir(), reason="only in a checkout")

# ---- the committed files ----------------------------------------------------------------------


def committed() -> Any:
    return module("spec").load(PEERS)


def test_gate_set_is_at_most_40_cells_of_every_family() -> None:
    spec = committed()
    assert len(spec.cells.cell) <= 40
    families = {spec.family(cell) for cell in spec.cells.cell}
    assert families == set(spec.families)
    assert len(families) == 10
    works = {cell.work for cell in spec.cells.cell}
    assert works == set(spec.cells.work)


def test_gate_set_holds_every_way_of_writing() -> None:
    cells = committed().cells.cell
    assert {c.access for c in cells} == {"collective", "independent"}
    assert {c.end for c in cells} == {"sync", "close"}
    assert {c.regime for c in cells} == {"warm", "cold"}


def all_searched(spec: Any) -> Any:
    """As if a search had found something better than every default."""
    best = module("spec").Best
    found = [
        best(
            family=spec.family(cell), access=cell.access, ranks=cell.ranks, library=key,
            setting={"x": "y"}, ratio_to_default=1.1, found="", machine="",
        )
        for cell in spec.cells.cell
        for key in spec.peers.library
    ]  # fmt: skip
    return replace(spec, bests=module("spec").Bests(best=found))


def test_arithmetic_of_the_gate_set_is_as_written_down() -> None:
    spec = all_searched(committed())
    number = sum(len(module("variants").of_cell(spec, cell)) for cell in spec.cells.cell)
    samples = number * (spec.cells.design.rounds + 1) + spec.cells.design.rounds
    text = (PEERS / "cells.toml").read_text()
    assert f"{number} variants" in text
    assert f"= {samples} samples" in text


def test_every_library_is_met_at_default_and_best_in_each_family_it_is_fair_in() -> None:
    spec = all_searched(committed())
    seen: dict[str, set[str]] = {}
    for cell in spec.cells.cell:
        names = {c.name for c in module("variants").of_cell(spec, cell)}
        seen.setdefault(spec.family(cell), set()).update(names)
        assert "penstock" in names
    for family, names in seen.items():
        ranks = {c.ranks for c in spec.cells.cell if spec.family(c) == family}
        for key, library in spec.peers.library.items():
            if ranks & set(library.ranks):
                assert {key, f"{key}-best"} <= names, family


def test_mpich_is_never_run_with_more_ranks_than_2() -> None:
    spec = committed()
    for library in spec.peers.library.values():
        if library.flavour == "mpich":
            assert library.ranks == library.full_ranks == [2]


def test_committed_best_settings_are_of_the_committed_grid() -> None:
    spec = committed()
    for best in spec.bests.best:
        grid = spec.peers.grid[spec.peers.library[best.library].grid]
        assert best.setting in grid.settings(best.ranks)


def test_grid_begins_with_the_default_and_repeats_nothing() -> None:
    settings = committed().peers.grid["romio"].settings(2)
    assert settings[0] == {}
    assert len(settings) == 8
    assert {"cb_nodes": "2", "cb_config_list": "*:2"} in settings


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("cells.toml", 'work = "even"', 'work = "odd"', "must be one of even, got odd"),
        ("cells.toml", "rounds = 6", 'rounds = "six"', "cells.toml: design.rounds"),
        ("cells.toml", "iters = 4", "iter = 4", "cells.toml: work.even"),
        ("cells.toml", 'end = "sync"', 'ends = "sync"', "no cell has"),
        ("cells.toml", "[design]", "[design", "cannot be read"),
        ("peers.toml", 'grid = "mca"', 'grid = "mac"', "must be one of hints, mca, got mac"),
        ("peers.toml", 'on = { 2 = "a" }', 'on = { 2 = "z" }', "must be one of a, b, c, got z"),
    ],
)
def test_wrong_files_are_refused_by_file_key_and_value(
    bench: Bench, file: str, old: str, new: str, says: str
) -> None:
    path = bench.folder / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ArgumentError, match=says):
        module("spec").load(bench.folder)


# ---- the full design --------------------------------------------------------------------------


def test_the_limit_is_another_specification_of_the_same_program() -> None:
    limit = module("spec").load(PEERS.parent / "limit")
    for cell in limit.cells.cell:
        kinds = Counter(c.kind for c in module("variants").of_cell(limit, cell))
        settings = 9 if cell.work == "contiguous" else 6  # what may be the best there
        assert kinds == {"penstock": 1, "ceiling": 1, "instead": settings}, cell.name


def test_full_design_is_the_same_for_a_seed_and_grows_by_appending() -> None:
    spec, draw = committed(), module("full").draw
    assert draw(spec, 10, 3) == draw(spec, 20, 3)[:10]
    assert draw(spec, 20, 3) != draw(spec, 20, 4)


def test_full_design_repeats_no_gate_cell_and_covers_levels_about_equally() -> None:
    spec = committed()
    cells = module("full").draw(spec, 28, 1)
    names = [cell.name for cell in cells]
    assert len(set(names)) == 28
    assert not set(names) & {cell.name for cell in spec.cells.cell}
    for key in ("access", "end", "regime"):
        counts = Counter(getattr(cell, key) for cell in cells)
        assert max(counts.values()) - min(counts.values()) <= 2, key
    assert set(Counter(cell.work for cell in cells).values()) <= {1, 2, 3}


# ---- who takes part, and how ------------------------------------------------------------------


def test_run_measures_everybody_and_says_who_is_missing(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run() == 0
    names = {v["name"] for v in bench.report()["cells"][0]["variants"]}
    assert names == {"a", "b", "penstock", "ceiling", "file-per-process"}
    assert "Library C: there is no no-such-launcher" in capsys.readouterr().err
    assert any("no-such-launcher" in notice for notice in bench.report()["notices"])
    assert any("not searched" in notice for notice in bench.report()["notices"])


def test_programs_get_the_cells_properties_that_they_take(bench: Bench) -> None:
    bench.run("--rounds", "1")
    by_who = {call[0]: call for call in bench.calls() if "per_worker" not in call}
    assert by_who["b"][4:] == [
        "--pattern", "contiguous", "--iters", "4", "--bufsize", "65536", "--end", "sync",
        "--route", "mpi",
    ]  # fmt: skip
    assert by_who["ceiling"][4:] == ["--pattern", "contiguous"]


def test_a_smaller_size_writes_less_and_says_that_nothing_follows(bench: Bench) -> None:
    bench.run("--rounds", "1", "--size", "tiny")
    call = next(call for call in bench.calls() if call[0] == "b")
    assert call[call.index("--bufsize") + 1] == "1024"
    assert "nothing to conclude" in bench.report()["name"]


def test_best_settings_take_part_beside_the_defaults(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=100, ceiling=200, gains={"cb_nodes": 1.5, "fcoll=fast": 2})
    assert bench.run("--search") == 0
    assert bench.run() == 1  # both are faster than Penstock now
    cell = bench.report()["cells"][0]
    settings = {v["name"]: v["setting"] for v in cell["variants"]}
    assert settings["a-best"] == {"cb_nodes": "2"}
    assert settings["b-best"] == {"fcoll": "fast"}
    assert settings["a"] == {}
    assert cell["best_peer"] == "b-best"
    calls = bench.calls()
    assert any(c[0] == "a" and "cb_nodes=2" in c for c in calls)
    assert any(c[0] == "b" and c[1] == " fcoll=fast" for c in calls)


def test_search_keeps_the_default_where_nothing_is_better_by_more_than_the_margin(
    bench: Bench,
) -> None:
    bench.rates(a=100, b=80, gains={"cb_nodes": 1.02, "fcoll=slow": 0.5})
    bench.run("--search")
    best = {b.library: b for b in module("spec").load(bench.folder).bests.best}
    assert best["a"].setting == best["b"].setting == {}
    assert best["a"].machine in best["b"].machine
    bench.rates(a=100, b=80, penstock=100, ceiling=200)
    bench.run()
    variants = {v["name"]: v for v in bench.report()["cells"][0]["variants"]}
    assert variants["a"]["is_best"]
    assert "a-best" not in variants


def test_settings_that_another_machine_was_searched_for_are_told(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=100, ceiling=200)
    bench.run("--search")
    path = bench.folder / "best.toml"
    machine = module("spec").load(bench.folder).bests.best[0].machine
    assert bench.run("--rounds", "1") == 0
    assert not any("searched on" in notice for notice in bench.report()["notices"])
    path.write_text(path.read_text().replace(machine, "another machine"))
    bench.run("--rounds", "1")
    assert any("searched on another machine" in notice for notice in bench.report()["notices"])


def test_what_is_known_need_not_be_searched_again(bench: Bench) -> None:
    bench.rates(a=100, b=80, dies="a")
    bench.run("--search")  # finds nothing of a
    bench.rates(a=100, b=80, gains={"cb_nodes": 1.5, "fcoll=fast": 2})
    before = len(bench.calls())
    assert bench.run("--search", "--unsearched") == 0
    asked = {call[0] for call in bench.calls()[before:]}
    assert "a" in asked
    assert "b" not in asked
    best = {b.library: b for b in module("spec").load(bench.folder).bests.best}
    assert best["a"].setting == {"cb_nodes": "2"}
    assert best["b"].setting == {}
    assert bench.run("--unsearched") == 2


def test_a_folder_without_settings_of_its_own_keeps_what_was_found(bench: Bench) -> None:
    (bench.folder / "best.toml").unlink()
    bench.rates(a=100, b=80, gains={"fcoll=fast": 2})
    assert bench.run("--search", "--family", "even") == 0
    best = {b.library: b for b in module("spec").load(bench.folder).bests.best}
    assert best["b"].setting == {"fcoll": "fast"}


def test_what_the_system_refuses_is_no_failed_conclusion(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.run("--rounds", "1")
    assert bench.run("--table", str(bench.out), "--page", "/proc/none/page.md") == 2
    assert "/proc/none" in capsys.readouterr().err


def test_search_takes_no_setting_that_fails(bench: Bench) -> None:
    bench.rates(a=100, b=80, dies="a")
    assert bench.run("--search") == 0
    assert [b.library for b in module("spec").load(bench.folder).bests.best] == ["b"]


def test_a_program_that_is_too_old_is_missing_not_measured(bench: Bench) -> None:
    path = bench.folder / "peers.toml"
    path.write_text(path.read_text().replace("same_file = false", 'least_version = "1.14"'))
    bench.run("--rounds", "1")
    names = {v["name"] for v in bench.report()["cells"][0]["variants"]}
    assert "file-per-process" not in names
    assert any("needs 1.14, and here is fake 1.2" in n for n in bench.report()["notices"])


# ---- a run ------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_with_the_same_command(bench: Bench) -> None:
    bench.run()
    samples = bench.out / "samples.jsonl"
    lines = samples.read_text().splitlines(keepends=True)
    complete = {s.key for s in load(bench.out).samples}
    samples.write_text("".join(lines[: len(lines) // 2]))
    assert bench.run() == 0
    assert {s.key for s in load(bench.out).samples} == complete


# ---- tables -----------------------------------------------------------------------------------


def test_page_is_made_again_from_the_raw_samples_alone(bench: Bench) -> None:
    bench.run()
    page, raw = bench.folder / "docs" / "peers.md", bench.folder / "docs" / "raw" / "x.jsonl"
    assert bench.run("--table", str(bench.out), "--raw", str(raw), "--page", str(page)) == 0
    first = page.read_text()
    shutil.rmtree(bench.out)
    assert bench.run("--table", str(raw), "--page", str(page)) == 0
    assert page.read_text() == first
    assert "| even-2 | a | 100 [100-100] | 100 [100-100] | 1.00 [1.00-1.00] n=6 |" in first
    assert "| even-2 | 2, 10, 0, 1 | 2, 10, 0, 1 | 2, 5, 0, 1 |" in first
    assert "raw in raw/x.jsonl: .venv/bin/python bench/peers/run.py" in first


def test_a_page_tells_what_was_asked_before_the_first_sample(bench: Bench) -> None:
    """And says so where samples do not hold it: what is asked today was not asked then."""
    bench.run()
    cells = bench.folder / "cells.toml"
    asked_later = cells.read_text().replace('predicted = "holds"', 'predicted = "fails"')
    cells.write_text(asked_later.replace("at_least = 0.9\n", "at_least = 5.0\n"))
    page = bench.folder / "page.md"
    assert bench.run("--table", str(bench.out), "--page", str(page)) == 0
    assert "| keeps up | at least 0.9 | **holds** | holds |" in page.read_text()
    samples = bench.out / "samples.jsonl"
    first, *rest = samples.read_text().splitlines()
    header = json.loads(first)
    del header["plan"]["conclusions"]
    samples.write_text("\n".join([json.dumps(header), *rest]) + "\n")
    assert bench.run("--table", str(bench.out), "--page", str(page)) == 1
    assert "do not hold the conclusions that were asked" in page.read_text()
    assert "**fails** | not kept with these samples |" in page.read_text()


def test_a_page_of_some_cells_has_a_title_of_its_own(bench: Bench) -> None:
    bench.run()
    page = bench.folder / "some.md"
    title = "What nobody syncs"
    assert bench.run("--table", str(bench.out), "--page", str(page), "--title", title) == 0
    assert page.read_text().startswith(f"# {title}\n\n## Conclusions")


@pytest.mark.parametrize(
    "note",
    [
        "regime cold: 5 bytes of warm memory are left on a node",
        "page-reports wait: nothing was waited for",
    ],
)
def test_samples_out_of_their_regime_are_told(note: str) -> None:
    own = [sample("a", block, result=result(1e9, notes=[note])) for block in (1, 2)]
    found = Results(headers=[header()], provenances={}, samples=own)
    told = module("measured").about(found, ())["notices"]
    assert told == [f"c, a: not in its regime: 2 samples, the last: {note}"]


def test_raw_samples_are_compact_and_tell_no_path_of_the_machine(bench: Bench) -> None:
    bench.run()
    raw = bench.folder / "raw.jsonl"
    bench.run("--table", str(bench.out), "--raw", str(raw), "--page", str(bench.folder / "p.md"))
    text = raw.read_text()
    assert str(bench.folder / "build") not in text
    assert str(bench.out) not in text
    full, small = load(bench.out).samples, load(raw).samples
    assert [s.key for s in small] == [s.key for s in full]
    assert [s.rate("application") for s in small] == [s.rate("application") for s in full]
    assert len(text) < (bench.out / "samples.jsonl").stat().st_size / 2


def test_readme_section_names_the_best_peer_and_the_conclusions(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.run()
    capsys.readouterr()
    bench.run("--table", str(bench.out), "--readme")
    told = capsys.readouterr().out
    assert "Library A" in told
    assert "*keeps up* holds" in told


# ---- the command line -------------------------------------------------------------------------


def test_dry_run_lists_and_estimates_and_measures_nothing(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.run("--dry-run") == 0
    told = capsys.readouterr().out
    assert "even-2: a, b, penstock, ceiling, file-per-process" in told
    assert "1 cells, 5 variants, 41 samples: about 1 min 2 s" in told
    assert bench.run("--search", "--dry-run") == 0
    assert "samples: about" in capsys.readouterr().out
    assert not bench.out.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cells", "odd-2"], "--cells must be of even-2; got odd-2"),
        (["--family", "odd"], "--family must be of even; got odd"),
        (["--table", "/no/such/results"], "there are no results at /no/such/results"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    bench: Bench, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert bench.run(*words) == 2
    assert says in capsys.readouterr().err


def test_nothing_built_is_exit_code_2_with_the_remedy(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("measure-x", "ring-x"):
        (bench.native / name).unlink()
    assert bench.run() == 2
    assert "make build" in capsys.readouterr().err
