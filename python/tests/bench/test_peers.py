"""bench/peers: the committed cells, who takes part, the search, and what a run concludes."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.store import load
from penstock.errors import ArgumentError

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "bench" / "peers"

pytestmark = pytest.mark.skipif(not PEERS.is_dir(), reason="only in a checkout")

# Prints the line of a measuring program. How fast it is, is read from the file "rates" beside it:
# {"LIBRARY or penstock or ceiling": MB/s}, a setting's gain after a +.
PROGRAM = """#!{python} -IS
import json, os, sys
from pathlib import Path
here = Path(__file__).resolve().parent
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
who = os.environ.get("FAKE_AS") or os.environ["FAKE_LIBRARY"]
if "ring" in sys.argv[0]:
    who = "ceiling"
rates = json.loads((here / "rates").read_text())
with open(here / "calls", "a") as calls:
    calls.write(json.dumps([who, os.environ.get("FAKE_MCA", ""), *sys.argv[1:]]) + "\\n")
rate = rates[who]
for setting, factor in rates.get("gains", {{}}).items():
    if setting in " ".join(sys.argv) + os.environ.get("FAKE_MCA", ""):
        rate *= factor
wrong = 5 if rates.get("wrong") == who else 0
size = 1000000
seconds = size / (rate * 1e6)
print(json.dumps({{"schema": "penstock.measure/1", "program": "fake", "version": "fake 1.2",
  "mpi": who, "parameters": {{"verify": "all"}}, "workers": 2, "ranks": 2, "bytes": size,
  "application": {{"seconds": seconds, "bytes_per_s": rate * 1e6}},
  "actual": {{"seconds": seconds, "bytes_per_s": rate * 1e6}},
  "verified": {{"bytes": size, "wrong_bytes": wrong, "first_wrong": None}}, "error": None}}))
sys.exit(1 if wrong or rates.get("dies") == who else 0)
"""
# A launcher: mpi NAME [--mca K V ..] -n N program ..
LAUNCHER = """#!{python} -IS
import os, sys
words = sys.argv[1:]
mca = ""
while words[0] == "--mca":
    mca += " " + "=".join(words[1:3])
    words = words[3:]
os.environ["FAKE_LIBRARY"], os.environ["FAKE_MCA"] = words[0], mca
os.execv(words[3], words[3:])
"""
# penstock-exec: writes a job's log and runs the program.
EXEC = """#!{python} -IS
import json, os, sys
from pathlib import Path
here = Path(__file__).resolve().parent
logs = Path(sys.argv[sys.argv.index("--log-dir") + 1])
log = json.loads((here / "log").read_text())
(logs / "log.json").write_text(json.dumps(log))
os.environ["FAKE_AS"] = "penstock"
program = sys.argv.index("--") + 1
os.execv(sys.argv[program], sys.argv[program:])
"""
CELLS = """
[design]
rounds = 6
seed = 1
full_cells = 2
[work.even]
family = "even"
program = "measure"
pattern = "contiguous"
bufsize = { 2 = "64KiB" }
iters = 4
file_per_process = true
[[cell]]
work = "even"
ranks = 2
expected = [0.9, 1.1]
[[conclusion]]
name = "keeps up"
says = "at least 0.9"
of = { end = "sync" }
at_least = 0.9
gate = true
predicted = "holds"
[[conclusion]]
name = "every byte"
says = "no sample failed"
every_sample = true
gate = true
predicted = "holds"
[[conclusion]]
name = "ceiling"
says = "the ring is one"
ceiling = true
at_least = 0.97
gate = false
predicted = "holds"
"""
SPEC_PEERS = """
[library.a]
title = "Library A"
flavour = "x"
start = ["LAUNCHER", "a", "-n", "{ranks}"]
ranks = [2]
full_ranks = [2]
grid = "hints"
[library.b]
title = "Library B"
flavour = "x"
start = ["LAUNCHER", "b", "-n", "{ranks}"]
ranks = [2]
full_ranks = [2]
grid = "mca"
[library.c]
title = "Library C"
flavour = "x"
start = ["no-such-launcher", "c", "-n", "{ranks}"]
ranks = [2]
full_ranks = [2]
grid = "mca"
[penstock]
title = "Penstock"
on = { 2 = "a" }
[ceiling]
title = "page ring"
program = "ring"
on = { 2 = "a" }
[instead.file-per-process]
title = "file per process"
program = "measure"
options = { files = "per_worker" }
on = { 2 = "a" }
same_file = false
[program.measure]
path = "native/measure-{flavour}"
takes = ["pattern", "iters", "bufsize", "end"]
options = { route = "mpi" }
[program.ring]
path = "native/ring-{flavour}"
takes = ["pattern"]
[grid.hints]
how = "hint"
axes = [[{}, { cb_nodes = "{ranks}" }], [{}, { cb_buffer_size = "4" }, { cb_buffer_size = "64" }]]
[grid.mca]
how = "mca"
axes = [[{}, { fcoll = "fast" }, { fcoll = "slow" }]]
"""


@pytest.fixture(scope="module", autouse=True)
def path_of_peers() -> Iterator[None]:
    """run.py is a script beside its package."""
    sys.path.insert(0, str(PEERS))
    yield
    sys.path.remove(str(PEERS))


def module(name: str) -> Any:
    return importlib.import_module(name if name == "run" else f"beside.{name}")


class Bench:
    """A folder with files of its own, programs that are stand-ins, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.native = folder, folder / "build" / "native"
        self.native.mkdir(parents=True)
        launcher = self._script("launcher", LAUNCHER)
        (folder / "cells.toml").write_text(CELLS)
        (folder / "peers.toml").write_text(SPEC_PEERS.replace("LAUNCHER", str(launcher)))
        (folder / "best.toml").touch()
        for name in ("measure-x", "ring-x"):
            self._script(name, PROGRAM)
        self._script("penstock-exec", EXEC)
        log = json.loads((ROOT / "python/tests/data/job-log.json").read_text())
        log["totals"].update(engine_bytes=1000000, passthrough_bytes=0)
        self.log(log)
        self.rates(a=100, b=80, penstock=100, ceiling=200)
        self.out = folder / "out"

    def _script(self, name: str, text: str) -> Path:
        path = self.native / name
        path.write_text(text.format(python=sys.executable))
        path.chmod(0o755)
        return path

    def log(self, values: dict[str, Any]) -> None:
        (self.native / "log").write_text(json.dumps(values))

    def rates(self, **rates: Any) -> None:
        (self.native / "rates").write_text(json.dumps(rates))

    def calls(self) -> list[list[str]]:
        return [json.loads(x) for x in (self.native / "calls").read_text().splitlines()]

    def run(self, *words: str) -> int:
        given = ["--spec", str(self.folder), "--build", str(self.folder / "build")]
        code: int = module("run").main([*given, "--out", str(self.out), *words])
        return code

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "peers.json").read_text())
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# ---- the committed files ----------------------------------------------------------------------


def committed() -> Any:
    return module("spec").load(PEERS)


def test_gate_set_is_at_most_30_cells_of_every_family() -> None:
    spec = committed()
    assert len(spec.cells.cell) <= 30
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
    return module("spec").Specification(spec.cells, spec.peers, module("spec").Bests(best=found))


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


# ---- what follows -----------------------------------------------------------------------------


def test_conclusion_holds_when_the_whole_interval_is_above(bench: Bench) -> None:
    assert bench.run() == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts == {"keeps up": "holds", "every byte": "holds", "ceiling": "holds"}
    ratio = bench.report()["cells"][0]["ratio"]
    assert (ratio["median"], ratio["n"]) == (pytest.approx(1.0), 6)
    assert bench.report()["cells"][0]["as_expected"] is True


def test_a_failing_conclusion_that_gates_is_exit_code_1(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    assert bench.run() == 1
    assert "failed: keeps up" in capsys.readouterr().err


def test_a_conclusion_that_does_not_gate_is_only_shown(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=300, ceiling=200)
    assert bench.run() == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts["ceiling"] == "fails"


def test_few_blocks_decide_nothing(bench: Bench) -> None:
    bench.rates(a=100, b=80, penstock=50, ceiling=200)
    assert bench.run("--rounds", "2") == 0
    verdicts = {c["name"]: c["verdict"] for c in bench.report()["conclusions"]}
    assert verdicts["keeps up"] == "undecided"


def test_a_peer_that_writes_wrong_bytes_is_shown_and_is_not_the_best(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.rates(a=100, b=80, penstock=100, ceiling=200, wrong="a")
    bench.run()
    cell = bench.report()["cells"][0]
    assert cell["best_peer"] == "b"
    assert next(v for v in cell["variants"] if v["name"] == "a")["wrong"]
    assert "bytes of the file are wrong" in capsys.readouterr().out


def test_a_sample_that_the_engine_did_not_write_whole_fails_every_byte(bench: Bench) -> None:
    log = json.loads((bench.native / "log").read_text())
    log["totals"]["passthrough_bytes"] = 7
    bench.log(log)
    assert bench.run() == 1
    conclusion = next(c for c in bench.report()["conclusions"] if c["name"] == "every byte")
    assert conclusion["verdict"] == "fails"
    assert "7 bytes passed Penstock by" in conclusion["cells"][0]["why"]


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
    assert "(raw/x.jsonl)" in first


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
