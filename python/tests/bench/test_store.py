"""Results files: whole lines, one writer, clear words about what cannot be read."""

from __future__ import annotations

import json
import lzma
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_samples import reading, sample
from penstock.bench import store as stores
from penstock.bench.sample import Event, Header, as_line
from penstock.bench.store import Store, load, require_place
from penstock.errors import ArgumentError, WriteError

HEADER = Header(penstock="0.1.0", created="2026", name="t", seed=1, plan={})


def event(text: str) -> Event:
    return Event(at="2026", what="test", text=text)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results directory with a header and two events."""
    with Store(tmp_path / "results") as store:
        store.append(HEADER)
        store.append(event("one"))
        store.append(event("two"))
    return tmp_path / "results"


def test_what_was_appended_is_read(results: Path) -> None:
    assert [e.text for e in load(results).events] == ["one", "two"]
    assert load(results / "samples.jsonl").headers[0].name == "t"


def test_a_packed_file_is_read_by_its_content(results: Path, tmp_path: Path) -> None:
    packed = tmp_path / "kept"
    packed.write_bytes(lzma.compress((results / "samples.jsonl").read_bytes()))
    assert [e.text for e in load(packed).events] == ["one", "two"]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ArgumentError, match=r"kept cannot be unpacked: .*; copy it anew"):
        load(packed)


def test_a_copy_beside_the_results_counts_no_sample_twice(tmp_path: Path) -> None:
    extra = [
        sample(block=0, rate=5.0, warm_up=True),
        sample(block=1, rate=5.0, canary=True),
        sample(block=3, failed="no space", result=None),
    ]
    taken = [*(sample(block=block, rate=5.0) for block in (1, 2)), *extra]
    lines = [as_line(HEADER), *map(as_line, taken)]
    for name in ("samples.jsonl", "samples-backup.jsonl"):
        (tmp_path / name).write_text("".join(lines))
    read = load(tmp_path)
    assert read.samples == taken
    assert read.notices == [
        "samples.jsonl: 5 of its samples are there more than once, and count once"
    ]


def test_a_torn_last_line_is_dropped_and_said(results: Path) -> None:
    path = results / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b'{"record":"event","at":"20')
    read = load(results)
    assert len(read.events) == 2
    assert "ends within a line" in read.notices[0]


def test_a_writer_cuts_a_torn_line_off(results: Path) -> None:
    path = results / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    with Store(results) as store:
        assert "ends within a line" in store.results.notices[0]
        store.append(event("three"))
    assert [e.text for e in load(results).events] == ["one", "three"]


def test_every_cut_of_a_file_can_be_read_and_continued(results: Path) -> None:
    path = results / "samples.jsonl"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with Store(results) as store:
            if store.header is None:
                store.append(HEADER)
            store.append(event("last"))
        assert load(results).events[-1].text == "last"


def test_a_mark_is_of_a_path_however_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert stores.mark_of(tmp_path / "there" / ".." / "x") == stores.mark_of(tmp_path / "x")
    assert stores.mark_of(tmp_path / "\udcff") != stores.mark_of(tmp_path / "x")


def test_a_second_writer_is_refused(results: Path) -> None:
    with Store(results), pytest.raises(ArgumentError, match="being written by another"):
        Store(results)


def test_the_lock_ends_with_its_holder(results: Path) -> None:
    code = (
        "import sys, os, pathlib; sys.path.insert(0, sys.argv[2]);"
        "from penstock.bench.store import Store; s = Store(pathlib.Path(sys.argv[1]));"
        "os.kill(os.getpid(), 9)"
    )
    python = Path(stores.__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code, results, python], check=False, timeout=60)
    Store(results).close()


def test_another_version_is_refused_with_the_remedy(results: Path) -> None:
    path = results / "samples.jsonl"
    path.write_text(path.read_text().replace("penstock.bench/1", "penstock.bench/9"))
    with pytest.raises(ArgumentError, match=r"penstock\.bench/9.*use the penstock that wrote it"):
        load(results)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "line 1 is not JSON"),
        ("\n", "line 1 is not JSON"),
        ("{}\n", "not a results file"),
        ('{"record":"event","at":"1","what":"x","text":"y"}\n', "line 1 must be a header"),
        ('{"record":"sample"}\n', "sample.cell"),
    ],
)
def test_what_is_no_results_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=words):
        load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"machine_after": reading(0.0) | {"dirty_bytes": None}}, "dirty_bytes: input should be"),
        ({"machine_before": {"at_s": 1.0}}, "cpu_total_s is missing"),
    ],
)
def test_a_reading_of_the_machine_is_whole(
    results: Path, change: dict[str, object], words: str
) -> None:
    values = json.loads(as_line(sample())) | change
    with (results / "samples.jsonl").open("a") as file:
        file.write(json.dumps(values) + "\n")
    with pytest.raises(ArgumentError, match=f"line 4 is not a record .*: sample.machine_.*{words}"):
        load(results)


@pytest.mark.parametrize(
    "change", [{"memory_limit_bytes": "much"}, {"write_back": {"dirty_bytes": "all"}}]
)
def test_what_a_provenance_says_of_memory_are_numbers(
    results: Path, change: dict[str, object]
) -> None:
    values = {"record": "provenance", "id": "p"} | change
    with (results / "samples.jsonl").open("a") as file:
        file.write(json.dumps(values) + "\n")
    with pytest.raises(ArgumentError, match=r"line 4 is not a record .*: provenance"):
        load(results)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, v) for name in ("seconds", "bytes_per_s") for v in (-1.0, math.nan, math.inf)),
        ("bytes_per_s", 1e308),
        ("bytes_per_s", 5e-324),
    ],
)
def test_a_rate_and_its_time_are_possible(results: Path, name: str, value: float) -> None:
    values = json.loads(as_line(sample()))
    values["result"]["application"][name] = value
    with (results / "samples.jsonl").open("a") as file:
        file.write(json.dumps(values) + "\n")
    with pytest.raises(ArgumentError, match=rf"line 4 is not a record .*application.*{name}"):
        load(results)


def test_a_spoilt_line_within_is_named(results: Path) -> None:
    path = results / "samples.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "spoilt", lines[2]]) + "\n")
    with pytest.raises(ArgumentError, match="line 2 is not JSON"):
        load(results)


def test_missing_results_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="holds no results"):
        load(tmp_path)
    with pytest.raises(ArgumentError, match="there are no results at"):
        load(tmp_path / "nowhere")


def test_results_that_are_missing_are_made_by_the_command_that_is_told() -> None:
    with pytest.raises(ArgumentError, match=r"penstock bench DIR --out '/no/such results'$"):
        load(Path("/no/such results"))


def test_all_parts_of_a_directory_are_read(results: Path) -> None:
    with Store(results / "samples.2.jsonl") as store:
        store.append(HEADER)
        store.append(event("part"))
    assert sorted(e.text for e in load(results).events) == ["one", "part", "two"]


@pytest.fixture
def file_size_limit() -> Iterator[None]:
    """No room: writes past 700 bytes fail, as on a full disk (short write, then an error)."""
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("file_size_limit")
def test_a_line_that_does_not_fit_takes_no_other_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(HEADER)
    store.append(event("kept"))
    with pytest.raises(WriteError, match="every earlier sample is kept"):
        store.append(event("x" * 1000))
    store.append(event("after room was made"))
    store.close()
    read = load(tmp_path)
    assert [e.text for e in read.events] == ["kept", "after room was made"]
    assert not read.notices


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"make .* first"):
        Store(tmp_path / "missing" / "results")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(WriteError, match="cannot be made"):
            Store(tmp_path / "results")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_place_that_a_user_may_not_write_is_refused_before_the_pilot(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir(0o700)
    os.seteuid(65534)
    try:
        for out in (Path("/"), Path("/r")):
            with pytest.raises(WriteError, match="cannot be made: Permission denied; give another"):
                require_place(out)
        with pytest.raises(WriteError, match="cannot be made: Permission denied; give another"):
            require_place(hidden / "r")
    finally:
        os.seteuid(0)


def test_a_line_is_json_on_its_own(results: Path) -> None:
    for line in (results / "samples.jsonl").read_text().splitlines():
        assert "record" in json.loads(line)
