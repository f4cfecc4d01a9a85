"""What the tests of bench/peers share: specifications of their own, programs that are stand-ins."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench" / "peers"

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
  "phases": {{"open_s": 0.002, "compute_s": 0, "write_s": seconds, "sync_s": 0, "close_s": 0.001,
    "drain_s": 0}},
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


def module(name: str) -> Any:
    """A module beside run.py, which is a script."""
    if str(PEERS) not in sys.path:
        sys.path.insert(0, str(PEERS))
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
        (folder / "opening.md").write_text("# Measured {date}, raw in {raw}: {command}\n")
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

    def conclude(self, **asked: Any) -> None:
        """One conclusion more, by the name "asked"."""
        values = {"name": "asked", "says": "x", "predicted": "holds", "gate": False, **asked}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self._add("[[conclusion]]", *lines)

    def another_cell(self, family: str) -> None:
        """The same work once more, in a family of its own."""
        work = CELLS[CELLS.index("[work.even]") : CELLS.index("[[cell]]")]
        work = work.replace("work.even", "work.other").replace('"even"', json.dumps(family))
        self._add(work, "[[cell]]", 'work = "other"', "ranks = 2")

    def _add(self, *lines: str) -> None:
        with (self.folder / "cells.toml").open("a") as cells:
            cells.write("\n".join(lines) + "\n")

    def calls(self) -> list[list[str]]:
        return [json.loads(x) for x in (self.native / "calls").read_text().splitlines()]

    def run(self, *words: str) -> int:
        given = ["--spec", str(self.folder), "--build", str(self.folder / "build")]
        code: int = module("run").main([*given, "--out", str(self.out), *words])
        return code

    def retake(self, change: Callable[[dict[str, Any]], None]) -> int:
        """What follows when the samples had been others: each is given to ``change``."""
        path = self.out / "samples.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            if record["record"] == "sample":
                change(record)
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        return self.run("--table", str(self.out))

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "peers.json").read_text())
        return found
