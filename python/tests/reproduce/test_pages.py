"""Pages of a run: whole, without this machine's paths, and the same again from the raw samples."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from made_runs import results
from penstock.bench.store import Results, load
from penstock.errors import ArgumentError
from penstock.reproduce import pages

CELL = "contiguous, 0 s"
EVEN = [1e9, 1.01e9, 0.99e9, 1e9, 1.02e9, 0.98e9]


def run(faster: float = 2.0) -> Results:
    rates = {
        (CELL, "threads S1A write,syncsize=0"): [faster * rate for rate in EVEN],
        (CELL, "ranks S1A write,syncsize=0"): EVEN,
    }
    made = results(rates, "reproduce benson2003 quick")
    made.headers[0].plan["measurements"][0]["command"] = ["/opt/here/bin/mpiexec", "-n", "2"]
    made.samples[0] = made.samples[0].model_copy(
        update={"command": ["/home/me/x", "--file", "/t/y"]}
    )
    return made


def test_a_page_has_tables_verdicts_machine_and_the_command(tmp_path: Path) -> None:
    written = pages.write(run(), tmp_path)
    names = {path.relative_to(tmp_path).as_posix() for path in written}
    assert names == {"benson2003.md", "benson2003-report.html", "raw/benson2003.jsonl.xz"}
    text = (tmp_path / "benson2003.md").read_text(encoding="utf-8")
    assert "| 0 | paper | 4.97 64Mf |" in text
    assert "0.0671 (4%, 6)" in text
    assert "penstock reproduce benson2003 --size quick --dir DIR\n" in text
    assert "--table docs/reproductions/raw/benson2003.jsonl.xz" in text
    assert "- file system: type ext4" in text
    assert "Not measured." in text
    assert (
        "<!doctype html>"
        in (tmp_path / "benson2003-report.html").read_text(encoding="utf-8").lower()
    )


def test_a_page_says_how_many_nodes_there_were(tmp_path: Path) -> None:
    from penstock.reproduce.report import report

    found = run()
    assert " nodes" not in pages.markdown(report(found), found).split("## Conclusions")[0]
    first = found.samples[0]
    assert first.result is not None
    found.samples[0] = first.model_copy(
        update={"result": first.result.model_copy(update={"nodes": 4})}
    )
    text = pages.markdown(report(found), found)
    assert ", across 4 nodes." in text
    assert "--launcher 'LAUNCHER -n {ranks}'    # across 4 nodes\n" in text
    assert "--table docs/reproductions/raw/benson2003-nodes.jsonl.xz" in text
    written = pages.write(found, tmp_path)  # beside the page of one node
    names = {path.relative_to(tmp_path).as_posix() for path in written}
    assert names == {
        "benson2003-nodes.md",
        "benson2003-nodes-report.html",
        "raw/benson2003-nodes.jsonl.xz",
    }


@pytest.mark.parametrize(("faster", "verdict"), [(2.0, "undecided"), (0.5, "does not hold")])
def test_a_false_conclusion_is_red_on_the_page(faster: float, verdict: str) -> None:
    from penstock.reproduce.report import report

    found = run(faster)
    text = pages.markdown(report(found), found)
    line = next(one for one in text.splitlines() if "The best code with threads beats" in one)
    assert line.startswith(f"| **{verdict}** |")


def test_raw_samples_name_no_path_and_make_the_same_page_again(tmp_path: Path) -> None:
    pages.write(run(), tmp_path / "one")
    raw = tmp_path / "one" / "raw" / "benson2003.jsonl.xz"
    text = lzma.decompress(raw.read_bytes()).decode()
    shown = (tmp_path / "one" / "benson2003-report.html").read_text(encoding="utf-8")
    assert "/opt/here" not in text + shown
    assert "/home/me" not in text + shown
    assert '"mpiexec"' in text
    assert "penstock report raw/benson2003.jsonl.xz --rate" in shown
    assert "penstock reproduce benson2003 --size quick --dir DIR --seed 7" in shown
    again = load(raw)
    written = pages.write(again, tmp_path / "two")
    page = Path("benson2003.md")
    assert (tmp_path / "two" / page).read_text() == (tmp_path / "one" / page).read_text()
    assert len(written) == 3
    assert len(pages.write(again, tmp_path / "one")) == 2  # the raw samples are what was read


def test_samples_of_an_earlier_design_make_no_page(tmp_path: Path) -> None:
    """Today's tables would be empty of them, and stand where a measured page is."""
    told = run()
    for one in told.headers[0].plan["measurements"]:
        one["cell"] = f"{one['cell']}, as it was"
    with pytest.raises(ArgumentError, match=r"are of an earlier design: .* as it was, are not in"):
        pages.write(told, tmp_path)
    assert not list(tmp_path.iterdir())


def test_raw_samples_are_of_one_session() -> None:
    two = run()
    two.headers.append(two.headers[0])
    with pytest.raises(ArgumentError, match="of one session, got 2"):
        pages.raw_samples(two)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("S1A + pwrite at 20 MB/s, 1/2", "S1A + pwrite at 20 MB/s, 1/2"),
        ("/a/b/c: no space", "c: no space"),
        ("open /dir/data failed", "open data failed"),
        ("--file=/dir/data", "--file=data"),
        ("/", "/"),
    ],
)
def test_only_absolute_paths_are_shortened(text: str, kept: str) -> None:
    assert pages._without_paths(text) == kept


def test_the_samples_in_the_raw_file_are_those_of_the_run() -> None:
    found = run()
    lines = pages.raw_samples(found).splitlines()
    assert len(lines) == 1 + 1 + len(found.samples)
    assert '"bytes_per_s":2000000000.0' in lines[2]
