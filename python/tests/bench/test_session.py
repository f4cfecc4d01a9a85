"""Sessions: what is taken, what is stored, and going on where one was stopped."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.bench import store as store_module
from penstock.bench.sample import Event, Provenance, Sample
from penstock.bench.session import Measurement, Observer, Session, environment, process_mark
from penstock.bench.settle import Scratch, Settle
from penstock.bench.statistics import Stopping
from penstock.bench.store import Store, load
from penstock.errors import ArgumentError, WriteError

Make = Callable[..., Measurement]
MakeSession = Callable[..., Session]


def keys(samples: list[Sample]) -> list[tuple[object, ...]]:
    return sorted(s.key for s in samples)


def events(directory: Path) -> dict[str, str]:
    return {e.what: e.text for e in load(directory).events}


def test_every_measurement_is_warmed_up_and_sampled(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    ending = session([measurement("c", v) for v in "xy"]).run()
    samples = load(tmp_path / "results").samples
    assert ending.reason == "complete"
    assert Counter((s.variant, s.counts) for s in samples if not s.canary and not s.warm_up) == {
        ("x", True): 2,
        ("y", True): 2,
    }
    assert sum(s.warm_up for s in samples) == 2
    assert sum(s.canary for s in samples) == 2
    assert not (tmp_path / "scratch").exists()


def test_a_sample_knows_all_about_itself(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    session([measurement("c", "x", "--rate", "5e8")]).run()
    results = load(tmp_path / "results")
    sample = next(s for s in results.samples if s.counts)
    assert sample.rate("application") == 5e8
    assert sample.provenance in results.provenances
    assert sample.settled is not None
    assert sample.machine_before is not None
    assert sample.machine_before["dirty_bytes"] >= 0
    assert sample.command[-2:] == ["--rate", "5e8"]
    assert results.headers[0].seed == 7


def test_files_are_gone_before_the_next_sample(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    seen: list[list[str]] = []

    class Looks(Observer):
        def sample_ends(self, _: Sample) -> None:
            seen.append(sorted(p.name for p in (tmp_path / "scratch").iterdir()))

    files = [str(tmp_path / "scratch" / name) for name in ("one", "two")]
    session([measurement("c", f[-3:], "--file", f) for f in files], observer=Looks()).run()
    assert all(len(names) == 2 for names in seen)  # the marker, and one file


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_that_fills_the_disk_of_the_results_is_stored_without_its_files(
    measurement: Make,
    session: MakeSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keep: bool,
) -> None:
    data, write = tmp_path / "scratch" / "data", store_module._write_whole

    def writes_where_there_is_room(descriptor: int, line: bytes) -> None:
        if data.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(descriptor, line)

    monkeypatch.setattr(store_module, "_write_whole", writes_where_there_is_room)
    planned = [measurement("c", "x", "--file", str(data), "--exit", "1")]
    if keep:
        with pytest.raises(WriteError, match="No space left on device"):
            session(planned, keep=True).run()
        assert data.exists()
    else:
        assert session(planned).run().reason == "complete"
        assert [s.failed for s in load(tmp_path / "results").samples]


@pytest.mark.parametrize("stop_after", range(1, 9))
def test_a_session_that_was_stopped_takes_the_same_samples(
    measurement: Make, session: MakeSession, tmp_path: Path, stop_after: int
) -> None:
    class Stops(Observer):
        taken = 0

        def sample_ends(self, _: Sample) -> None:
            self.taken += 1
            if self.taken == stop_after:
                raise KeyboardInterrupt

    planned = [measurement("c", v) for v in "xy"]
    first = session(planned, observer=Stops())
    assert first.run().reason == "interrupted"
    first.store.close()
    resumed = session(planned)
    assert resumed.run().reason == "complete"
    resumed.store.close()
    whole = session(planned, store=Store(tmp_path / "undisturbed"))
    whole.run()
    assert keys(load(tmp_path / "results").samples) == keys(load(tmp_path / "undisturbed").samples)
    assert "interrupted" in events(tmp_path / "results")
    assert ("resumed" in events(tmp_path / "results")) == (stop_after < 8)  # else all were there


def test_a_session_that_goes_on_otherwise_says_so_in_its_results(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    planned = [measurement("c", "x")]
    for rounds, budget_s in ((2, 300.0), (3, None), (1, None)):
        own = session(planned, stopping=Stopping(rounds, rounds, (rounds,)), budget_s=budget_s)
        own.run()
        own.store.close()
    results = load(tmp_path / "results")
    assert results.headers[0].plan["budget_s"] == 300.0
    assert Stopping.of_plan(results.headers[0].plan).maximum == 2
    now = results.latest[0].plan  # who asked for one round took no sample
    assert (now["budget_s"], Stopping.of_plan(now).maximum) == (None, 3)
    assert now["measurements"] == results.headers[0].plan["measurements"]


@pytest.mark.parametrize("budget_s", [None, 0.0])
def test_who_only_looks_at_results_adds_nothing_to_them(
    measurement: Make, session: MakeSession, tmp_path: Path, budget_s: float | None
) -> None:
    told: list[str] = []

    class Tells(Observer):
        def event(self, event: Event) -> None:
            told.append(event.what)

    planned = [measurement("c", "good"), measurement("c", "bad", "--wrong-bytes", "9")]
    first = session(planned, budget_s=budget_s)
    first.run()
    first.store.close()
    before = load(tmp_path / "results").events
    again = session(planned, budget_s=budget_s, observer=Tells())
    again.run()
    again.store.close()
    assert load(tmp_path / "results").events == before
    assert told == (["budget"] if budget_s == 0.0 else ["dropped", "complete"])


def test_a_termination_signal_ends_the_sample_and_is_recorded(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    class Ends(Observer):
        def sample_begins(self, *_: object) -> None:
            threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGTERM)).start()

    begin_s = time.monotonic()
    measured = session([measurement("c", "x", "--sleep", "60")], observer=Ends())
    assert measured.run().reason == "interrupted"
    assert time.monotonic() - begin_s < 20
    assert events(tmp_path / "results")["interrupted"]
    assert not load(tmp_path / "results").samples
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_program_that_a_signal_to_all_ends_first_has_not_failed(
    session: MakeSession, tmp_path: Path
) -> None:
    """As scancel's: it comes to the program, and then to the session."""
    both = "(sleep 0.2; kill -TERM $PPID) >/dev/null 2>&1 & kill -TERM $$"
    measured = session([Measurement("c", "x", ["sh", "-c", both])])
    assert measured.run().reason == "interrupted"
    assert not load(tmp_path / "results").samples


@pytest.fixture
def ignored(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that whoever started this ignores, as nohup does."""
    before = signal.signal(request.param, signal.SIG_IGN)
    yield request.param
    signal.signal(request.param, before)


@pytest.mark.parametrize("ignored", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT], indirect=True)
def test_a_signal_that_is_ignored_ends_nothing(
    measurement: Make,
    session: MakeSession,
    monkeypatch: pytest.MonkeyPatch,
    ignored: signal.Signals,
) -> None:
    class Raises(Observer):
        def sample_ends(self, _: Sample) -> None:
            signal.raise_signal(ignored)

    interrupted_in(monkeypatch, "mkdir", ignored)
    assert session([measurement("c", "x")], observer=Raises()).run().reason == "complete"
    assert signal.getsignal(ignored) is signal.SIG_IGN


def test_what_a_run_left_that_has_no_header_is_ended_and_recorded(
    measurement: Make,
    session: MakeSession,
    tmp_path: Path,
    leftover: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    made = session([measurement("c", "x")])
    left = leftover(process_mark(made.store.path, tmp_path / "scratch"))
    made.run()
    assert left.wait(timeout=10) == -signal.SIGKILL
    assert events(tmp_path / "results")["leftovers"] == (
        "1 process of an earlier run was still there and was ended"
    )


def test_a_dry_run_in_the_same_directory_is_not_taken_for_leftovers(
    measurement: Make,
    session: MakeSession,
    tmp_path: Path,
    leftover: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    first = session([measurement("c", "x")])
    first.run()
    first.store.close()
    dry_run = Scratch(tmp_path / "scratch")
    dry_run.make()
    at_work = leftover(process_mark(first.store.path, dry_run.path))
    with pytest.raises(ArgumentError, match="is in use by another penstock bench"):
        session([measurement("c", "x")]).run()
    assert at_work.poll() is None
    dry_run.remove()


def interrupted_in(monkeypatch: pytest.MonkeyPatch, method: str, number: signal.Signals) -> None:
    """The first call of a method of Path gets a signal in its midst."""
    wrapped = getattr(Path, method)

    def call(path: Path, *words: object, **more: object) -> object:
        done = wrapped(path, *words, **more)
        if path.name == "scratch" or path.parent.name == "scratch":
            monkeypatch.setattr(Path, method, wrapped)
            signal.raise_signal(number)
        return done

    monkeypatch.setattr(Path, method, call)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("method", ["mkdir", "touch"])
def test_an_interruption_before_the_header_spoils_nothing(
    measurement: Make,
    session: MakeSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    number: signal.Signals,
) -> None:
    interrupted_in(monkeypatch, method, number)
    first = session([measurement("c", "x")])
    assert first.run().reason == "interrupted"
    first.store.close()
    assert not (tmp_path / "scratch").exists()
    assert not load(tmp_path / "results").headers
    assert session([measurement("c", "x")]).run().reason == "complete"


def test_a_finished_session_run_again_takes_nothing(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    first = session([measurement("c", "x")])
    first.run()
    before = keys(load(tmp_path / "results").samples)
    first.store.close()
    session([measurement("c", "x")]).run()
    assert keys(load(tmp_path / "results").samples) == before


def test_a_failed_sample_is_kept_with_its_reason(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    planned = [measurement("c", "good"), measurement("c", "bad", "--wrong-bytes", "9")]
    ending = session(planned).run()
    samples = load(tmp_path / "results").samples
    bad = [s for s in samples if s.variant == "bad"]
    assert all("9 bytes of the file are wrong" in str(s.failed) for s in bad)
    assert ending.dropped == {("c", "bad"): bad[-1].failed}
    assert "failed 2 times in a row" in events(tmp_path / "results")["dropped"]
    assert sum(s.counts for s in samples if s.variant == "good") == 2


def test_expectations_judge_a_run_that_went_well(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    planned = [measurement("c", "x", expect=lambda _: "the engine wrote nothing")]
    session(planned).run()
    assert {s.failed for s in load(tmp_path / "results").samples} == {"the engine wrote nothing"}


def test_a_budget_ends_it_and_more_of_it_goes_on(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    class Spends(Observer):
        def sample_ends(self, _: object) -> None:
            first.budget_s = 0.0

    planned = [measurement("c", v, "--sleep", "0.1") for v in "xy"]
    first = session(planned, budget_s=100.0, observer=Spends())
    assert first.run().reason == "budget"
    assert first.run().decisions["c", "x"] == "not converged"
    first.store.close()
    assert 1 <= len(load(tmp_path / "results").samples) < 8
    assert session(planned, budget_s=100.0).run().reason == "complete"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"seed": 8}, "its seed is 7, not 8"),
        ({"rate": "actual"}, "its rate is application"),
    ],
)
def test_another_plan_is_refused(
    measurement: Make, session: MakeSession, change: dict[str, object], why: str
) -> None:
    first = session([measurement("c", "x")])
    first.run()
    first.store.close()
    with pytest.raises(ArgumentError, match=why):
        session([measurement("c", "x")], **change).run()


def test_other_measurements_are_refused(measurement: Make, session: MakeSession) -> None:
    first = session([measurement("c", "x")])
    first.run()
    for planned, why in (
        ([measurement("c", "x"), measurement("c", "y")], "y of c is new"),
        ([measurement("c", "y")], "x of c is no longer"),
        ([measurement("c", "x", "--rate", "1")], "the command of x of c differs"),
    ):
        with pytest.raises(ArgumentError, match=why):
            session(planned, store=first.store).run()


def test_results_in_which_nothing_was_measured_may_be_removed(
    measurement: Make, session: MakeSession
) -> None:
    first = session([measurement("c", "x", "--exit", "2")])
    first.run()
    with pytest.raises(ArgumentError, match=r"of x of c differs\. Nothing in it was .* remove it"):
        session([measurement("c", "x")], store=first.store).run()


@pytest.mark.parametrize(
    ("kernels", "changes"),
    [
        (["1", "2", "1", "2"], ["1 -> 2", "2 -> 1", "1 -> 2"]),
        (["1", "2", "1", "1"], ["1 -> 2", "2 -> 1"]),
    ],
)
def test_a_changed_machine_is_said_and_recorded(
    measurement: Make, session: MakeSession, tmp_path: Path, kernels: list[str], changes: list[str]
) -> None:
    def kernel(version: str) -> Callable[[Path], Provenance]:
        return lambda _: Provenance(id=version, kernel=version)

    told: list[str] = []

    class Listens(Observer):
        def event(self, event: Event) -> None:
            if event.what == "provenance":
                told.append(event.text)

    for rounds, version in enumerate(kernels, start=1):
        rule = Stopping(minimum=rounds, maximum=rounds, checks=(rounds,))
        made = [measurement("c", "x")]
        run = session(made, collect=kernel(version), stopping=rule, observer=Listens())
        run.run()
        run.store.close()
    assert told == [f"changed since the last run: kernel {change}" for change in changes]
    assert {s.provenance for s in load(tmp_path / "results").samples} == {"1", "2"}


def test_results_on_a_full_disk_lose_nothing(
    measurement: Make, session: MakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session([measurement("c", "x")])
    append, taken = Store.append, []

    def full(self: Store, record: object) -> None:
        if isinstance(record, Sample) and len(taken) == 2:
            raise WriteError(28, "the results' disk is full")
        taken.append(record) if isinstance(record, Sample) else None
        append(self, record)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "append", full)
    with pytest.raises(WriteError, match="disk is full"):
        made.run()
    monkeypatch.undo()
    made.store.close()
    assert len(load(tmp_path / "results").samples) == 2
    assert not (tmp_path / "scratch").exists()
    assert session([measurement("c", "x")]).run().reason == "complete"


def test_results_that_cannot_even_be_begun_leave_nothing(
    measurement: Make, session: MakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Store, record: object) -> None:
        raise WriteError(28, "the results' disk is full")

    monkeypatch.setattr(Store, "append", full)
    with pytest.raises(WriteError, match="disk is full"):
        session([measurement("c", "x")]).run()
    assert not (tmp_path / "scratch").exists()


def test_an_unsettled_machine_is_said(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    readings = iter([0, 0])
    settle = Settle(limit_s=0.01, tolerance_bytes=1, waiting=lambda: next(readings, 10**9))
    session([measurement("c", "x")], settle=settle).run()
    assert "something else writes" in events(tmp_path / "results")["unsettled"]


def test_a_users_settings_do_not_reach_the_measured_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_METHOD", "off")
    monkeypatch.setenv("LD_PRELOAD", "/x/libpenstock-mpich.so")
    made = environment({"PENSTOCK_QUIET": "1"})
    assert made["PENSTOCK_QUIET"] == "1"
    assert "PENSTOCK_METHOD" not in made
    assert "LD_PRELOAD" not in made
    for others in ("/a.so /x/libpenstock-mpich.so", "/x/libpenstock-abi.so:/a.so"):
        monkeypatch.setenv("LD_PRELOAD", others)
        assert environment({})["LD_PRELOAD"] == "/a.so"
    monkeypatch.setenv("LD_PRELOAD", "/home/me/libpenstock-work/a.so")
    assert environment({})["LD_PRELOAD"] == "/home/me/libpenstock-work/a.so"


def test_equal_names_are_refused(measurement: Make, session: MakeSession) -> None:
    with pytest.raises(ArgumentError, match="same cell and variant"):
        session([measurement("c", "x"), measurement("c", "x")])


def test_an_empty_plan_is_refused(session: MakeSession) -> None:
    with pytest.raises(ArgumentError, match="nothing to measure"):
        session([])


def test_stopping_can_be_looser_when_it_goes_on(
    measurement: Make, session: MakeSession, tmp_path: Path
) -> None:
    first = session([measurement("c", "x")])
    first.run()
    first.store.close()
    more = Stopping(minimum=3, maximum=3, checks=(3,))
    session([measurement("c", "x")], stopping=more).run()
    assert sum(s.counts for s in load(tmp_path / "results").samples) == 3
