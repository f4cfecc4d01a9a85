"""Sweeps from TOML: what they expand to, and the words about what is wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from penstock.bench.cases import Case
from penstock.bench.matrix import Matrix, expand, fixed_rounds, load, parse, part, seconds
from penstock.errors import ArgumentError

PATH = Path("sweep.toml")


def matrix(text: str) -> Matrix:
    return parse(tomllib.loads(text), PATH)


def cases(text: str) -> list[Case]:
    return expand(matrix(text), str(PATH))


WHOLE = """
name = "sizes"
seed = 3
rounds = 6
budget = "10min"

[defaults]
end = "close"
bufsize = "1MiB"

[sweep]
iters = [8, 16]

[compare]
method = ["S1A", "S1B"]

[[cell]]
name = "contiguous"
pattern = "contiguous"

[[cell]]
name = "interleaved"
pattern = "interleaved:47008"

[[exclude]]
cell = "interleaved*"
iters = 16
"""


def test_cells_are_entries_times_the_sweep() -> None:
    found = cases(WHOLE)
    assert list(dict.fromkeys(c.cell for c in found)) == [
        "contiguous,iters=8",
        "contiguous,iters=16",
        "interleaved,iters=8",
    ]
    assert {c.variant for c in found} == {"method=S1A", "method=S1B"}
    assert found[0].parameters == {
        "end": "close",
        "bufsize": "1MiB",
        "iters": 8,
        "pattern": "contiguous",
        "method": "S1A",
    }


def test_a_total_is_shared_by_the_workers() -> None:
    found = cases("[defaults]\nmpi='mpich'\n[sweep]\nranks=[2, 8]\ntotal=['64KiB', 1048576]\n")
    assert {c.cell: c.parameters["bufsize"] for c in found} == {
        "ranks=2,total=64KiB": 32768,
        "ranks=2,total=1048576": 524288,
        "ranks=8,total=64KiB": 8192,
        "ranks=8,total=1048576": 131072,
    }
    assert cases("[defaults]\ntotal='1MiB'\nthreads=4")[0].parameters["bufsize"] == 262144


def test_an_exclusion_names_a_total_as_it_was_given() -> None:
    found = cases(
        "[defaults]\nmpi='mpich'\n[sweep]\nranks=[2, 8]\ntotal=['64KiB', '1MiB']\n"
        "[[exclude]]\nranks=8\ntotal='64KiB'\n"
    )
    assert [c.cell for c in found] == [
        "ranks=2,total=64KiB",
        "ranks=2,total=1MiB",
        "ranks=8,total=1MiB",
    ]


@pytest.mark.parametrize("wanted", ["['-n', '1']", "[['-n', '1'], ['-n', '2']]"])
def test_an_exclusion_names_a_list_whole(wanted: str) -> None:
    found = cases(
        "[defaults]\nmpi='mpich'\nranks=2\n"
        "[sweep]\nlauncher_options=[['-n', '1'], ['-x']]\n"
        f"[[exclude]]\nlauncher_options={wanted}\n"
    )
    assert [c.launcher_options for c in found] == [("-x",)]


def test_settings_are_read() -> None:
    made = matrix(WHOLE)
    assert (made.seed, made.budget, made.stopping) == (3, 600.0, fixed_rounds(6))


def test_variants_have_names_and_override_defaults() -> None:
    found = cases(
        """
        [defaults]
        files = "shared"
        [[variant]]
        name = "posix"
        route = "posix"
        files = "per_worker"
        [[variant]]
        name = "library"
        route = "mpi"
        mpi = "mpich"
        ranks = 2
        launcher_options = ["-genv", "X", "1"]
        """
    )
    assert [(c.cell, c.variant, c.mpi, c.ranks) for c in found] == [
        ("sweep", "posix", "none", 1),
        ("sweep", "library", "mpich", 2),
    ]
    assert found[0].parameters["files"] == "per_worker"
    assert found[1].launcher_options == ("-genv", "X", "1")


def test_dashes_and_underscores_are_the_same() -> None:
    assert cases("[defaults]\nwarm-disk = 0")[0].parameters == {"warm_disk": 0}


def test_an_empty_matrix_is_one_case() -> None:
    found = cases("")
    assert [(c.cell, c.variant, c.parameters) for c in found] == [("sweep", "default", {})]


def test_parts_share_the_cells_out() -> None:
    found = cases(WHOLE)
    parts = [part(found, i, 2) for i in range(2)]
    assert [sorted({c.cell for c in p}) for p in parts] == [
        ["contiguous,iters=8", "interleaved,iters=8"],
        ["contiguous,iters=16"],
    ]
    assert sorted(map(str, parts[0] + parts[1])) == sorted(map(str, found))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (90, 90),
        ("90s", 90),
        ("1.5min", 90),
        ("2h", 7200),
        ("5 min", 300),
        (".5h", 1800),
        ("500h", 1.8e6),
    ],
)
def test_times_have_units(value: object, expected: float) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ruonds = 3", "there is no key ruonds; did you mean rounds?"),
        ("[stop]\nminimun = 3", "there is no key stop.minimun; did you mean minimum?"),
        ("[stop]\nminimum = 40", "minimum must be at most maximum"),
        ("[stop]\nprecision = 'x'", "stop.precision"),
        ("rounds = 0", "rounds: .*greater than or equal to 1, got 0"),
        ("rounds = true", "rounds: .*valid integer, got True"),
        ("seed = true", "seed: .*valid integer, got True"),
        ("seed = -1", "seed: .*greater than or equal to 0, got -1"),
        ("[stop]\nminimum = true", r"stop\.minimum: .*valid integer, got True"),
        ("[stop]\nchecks = [0]", r"stop\.checks\.0: .*greater than or equal to 1, got 0"),
        ("[stop]\nprecision = true", r"stop\.precision: .*valid number, got True"),
        ("name = 'a/b'", "name: must be a name that a file can have, without /, got 'a/b'"),
        ("[stop]\nprecision = inf", r"stop\.precision: .*finite number, got inf"),
        ("[stop]\nprecision = nan", r"stop\.precision: .*finite number, got nan"),
        ("timeout = '600h'", "timeout: must be at most '500h', got '600h'"),
        ("timeout = inf", "timeout: must be at most '500h', got inf"),
        ("settle = 1e300", r"settle: must be at most '500h', got 1e\+300"),
        (f"budget = {'9' * 400}", "budget: must be at most '500h', got 9999"),
        ("budget = nan", "budget: must be more than 0, got nan"),
        ("budget = '.'", r"budget: must be a time such as .*, got '\.'"),
        ("budget = '1.2.3s'", r"budget: must be a time such as .*, got '1\.2\.3s'"),
        ("budget = '5 fortnights'", "budget: must be a time such as"),
        ("rate = 'net'", "rate: .*'application' or 'actual', got 'net'"),
        ("[sweep]\niters = 5", "sweep.iters: .*list, got 5"),
        ("[sweep]\niters = []", r"\[sweep\] iters must have at least one value"),
        ("[sweep]\nmethod=['a']\n[compare]\nmethod=['b']", "leave it in one of them"),
        (
            "[sweep]\nbuf-size=[1]\n[[cell]]\n[[cell]]\nbuf_size=2",
            r"buf_size is in \[\[cell\]\] \(2\) and in \[sweep\], .*: leave it in one of them",
        ),
        (
            "[compare]\nmethod=['a']\n[[variant]]\nmethod='b'",
            r"method is in \[\[variant\]\] \('b'\) and in \[compare\]",
        ),
        ("[[cell]]\nname='a'\n[[cell]]\nname='a'", "default of a is there twice"),
        ("[[cell]]\nname=3", r"name of a \[\[cell\]\] must be text, got 3"),
        ("[defaults]\nranks=0", "ranks must be a whole number, at least 1, got 0"),
        ("[defaults]\nranks=2", "ranks must be 1 without MPI, got 2"),
        ("[defaults]\nmpi=5", "mpi must be text"),
        ("total='1MiB'\n", "there is no key total"),
        ("[defaults]\ntotal='1MiB'\nbufsize=4", "give total .* or bufsize .*, not both"),
        ("[defaults]\ntotal='64KiB'\nmpi='mpich'\nranks=3", "multiple of the 3 workers"),
        ("[defaults]\ntotal=1", "multiple of the 2 workers .* got 1: 2 bytes would do"),
        ("[defaults]\ntotal='big'", "total must be a size such as '16MiB', got 'big'"),
        ("[defaults]\ntotal=4\nthreads='x'", "threads must be at least 1 beside total"),
        ("[defaults]\npreload=true", "preload needs MPI"),
        ("[defaults]\npreload=true\nmpi='mpich'", "route must be 'mpi', got 'engine'"),
        (
            "[defaults]\nmpi='mpich'\nroute='mpi'\npreload='two_phse'",
            "default of .*: preload: algorithm .two_phse. is not known; did you mean .two_phase.",
        ),
        ("[defaults]\nmpi='mpich'\nroute='mpi'\npreload=''", "preload: a choice is missing"),
        ("[defaults]\nlauncher_options='--x'", "launcher_options must be a list of words"),
        ("[defaults]\nenv='X=1'", "env must be a table"),
        ("[sweep]\niters=[1]\n[[exclude]]\niter=1", "exclude.* iter is not known; .*iters"),
        ("[sweep]\niters=[1]\n[[exclude]]\niters=2", "matches nothing"),
        ("[sweep]\niters=[1]\n[[exclude]]\niters=1", "nothing is left to measure"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as raised:
        cases(text)
    assert "sweep.toml" in str(raised.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read: No such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("rounds = \n")
    with pytest.raises(ArgumentError, match=r"broken\.toml is not TOML: .*line 1"):
        load(tmp_path / "broken.toml")
    (tmp_path / "deep.toml").write_text(f"rounds = {'[' * 5000}{']' * 5000}\n")
    with pytest.raises(ArgumentError, match=r"deep\.toml is not TOML: "):
        load(tmp_path / "deep.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="not UTF-8"):
        load(tmp_path / "binary.toml")


def test_a_matrix_whose_file_cannot_name_results_says_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a\udcff.toml"
    path.write_text("rounds = 3\n")
    with pytest.raises(ArgumentError, match=r"a\\udcff\.toml' must be UTF-8, .*: rename it, or"):
        load(path)
    path.write_text("name = 'a'\n")
    assert load(path).name == "a"


def test_a_matrix_is_called_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "stripes.toml").write_text("rounds = 3\n")
    assert load(tmp_path / "stripes.toml").name == "stripes"
