"""scripts/check.py: steps that run beside others, and a check that is broken off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import check
import skips

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that was broken off begins no other process."""
    monkeypatch.setattr(check, "RUNNING", check.Running())


def step(name: str, *, aside: bool = False, waits: bool = False, after: str = "") -> check.Step:
    return check.Step(name, ["true"], aside=aside, waits=waits, after=after)


def test_a_step_aside_runs_beside_the_steps_that_follow() -> None:
    follows = threading.Event()
    met = []

    def one(this: check.Step) -> None:
        if this.aside:
            met.append(follows.wait(PATIENCE_S))
        else:
            follows.set()

    check.run_in_order([step("aside", aside=True), step("follows")], one)
    assert met == [True]


def test_a_step_waits_for_the_one_that_it_is_after() -> None:
    ended = []

    def one(this: check.Step) -> None:
        time.sleep(0.2 if this.aside else 0)
        ended.append(this.name)

    check.run_in_order([step("build", aside=True), step("tests", after="build")], one)
    assert ended == ["build", "tests"]


def test_a_step_aside_begins_when_the_steps_before_it_have_ended() -> None:
    ended = []

    def one(this: check.Step) -> None:
        time.sleep(0 if this.aside else 0.2)
        ended.append(this.name)

    check.run_in_order([step("first"), step("aside", aside=True)], one)
    assert ended == ["first", "aside"]


def test_steps_aside_run_one_at_a_time() -> None:
    running = threading.Semaphore(1)

    def one(_: check.Step) -> None:
        assert running.acquire(blocking=False)
        time.sleep(0.05)
        running.release()

    check.run_in_order([step("a", aside=True), step("b", aside=True)], one)


def test_what_waits_runs_beside_what_is_busy_but_not_before_what_it_is_after() -> None:
    waits_began, ended = threading.Event(), []

    def one(this: check.Step) -> None:
        if this.name == "waits":
            waits_began.set()
        elif this.name == "build":
            assert waits_began.wait(PATIENCE_S)
        ended.append(this.name)

    build, waits = step("build", aside=True), step("waits", aside=True, waits=True)
    check.run_in_order([build, waits, step("uses", aside=True, waits=True, after="build")], one)
    assert ended.index("build") < ended.index("uses")


def test_an_error_in_a_step_aside_is_not_lost() -> None:
    def one(this: check.Step) -> None:
        if this.aside:
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        check.run_in_order([step("aside", aside=True), step("follows")], one)


def test_a_step_aside_has_a_low_priority(tmp_path: Path) -> None:
    told = [sys.executable, "-c", "import os; print(os.nice(0))"]
    check.run_command(check.Step("aside", told, aside=True), tmp_path / "log")
    assert (tmp_path / "log").read_text() == f"{min(19, os.nice(0) + 10)}\n"


def test_a_step_aside_that_waits_keeps_its_priority(tmp_path: Path) -> None:
    told = [sys.executable, "-c", "import os; print(os.nice(0))"]
    check.run_command(check.Step("waits", told, aside=True, waits=True), tmp_path / "log")
    assert (tmp_path / "log").read_text() == f"{os.nice(0)}\n"


def test_a_check_that_is_broken_off_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    aside = check.Step("aside", ["sh", "-c", "echo $$; exec sleep 60"], aside=True)
    ended = threading.Event()

    def one(this: check.Step) -> None:
        if this.aside:
            check.run_command(this, log)
            ended.set()
            return
        while not (log.exists() and log.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check.run_in_order([aside, step("follows")], one)
    assert ended.wait(PATIENCE_S)
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text()), 0)


BROKEN_OFF = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import check
told = ["sh", "-c", f"sleep 0.5; echo $$ >{sys.argv[1]}/pid; exec sleep 60"]
check.OUT = Path(sys.argv[1])
check.quick_steps = lambda: [check.Step("sleeps", told)]
sys.argv = ["check.py", "quick"]
sys.exit(check.main())
"""


# make passes on SIGTERM alone; `timeout` and a terminal that goes away signal the whole group.
@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("check", signal.SIGTERM),
        ("check", signal.SIGHUP),
        ("make", signal.SIGTERM),
        ("group", signal.SIGTERM),
        ("group", signal.SIGHUP),
    ],
)
def test_a_signal_leaves_no_process(tmp_path: Path, whom: str, number: signal.Signals) -> None:
    (tmp_path / "main.py").write_text(BROKEN_OFF)
    scripts = Path(__file__).parents[1]
    command = [sys.executable, str(tmp_path / "main.py"), str(tmp_path), str(scripts)]
    (tmp_path / "Makefile").write_text(f"check:\n\t@{' '.join(command)}\n")
    if whom != "check":
        command = ["make", "-C", str(tmp_path), "check"]
    command = ["env", "--default-signal=HUP", *command]  # also where this runs under nohup
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    pid = int(eventually(tmp_path / "pid"))
    (os.killpg if whom == "group" else os.kill)(process.pid, number)
    try:
        assert process.wait(PATIENCE_S) == (128 + number if whom == "check" else -number)
        assert ended(pid)
    finally:
        for group in (process.pid, pid):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        process.wait()


def ended(pid: int) -> bool:
    """Whether a process that was killed is gone, or waits for init to read its exit code."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def eventually(path: Path) -> str:
    """What is in a file as soon as there is a line in it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text()).endswith("\n"):
            return text
        time.sleep(0.01)
    raise TimeoutError(f"nothing in {path}")


def times_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: check.Outcome, *users: str
) -> int:
    """How often a step runs whose check is begun by these, one after the other, on one tree."""
    ran = []

    def run(this: check.Step) -> check.Outcome:
        ran.append(this.name)
        return outcome

    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "tree_digest", lambda: "tree")
    for user in users:
        monkeypatch.setitem(skips.CONDITIONS, "not-root", lambda user=user: user != "root")
        check.resumable(run)(step("disks"))
    return len(ran)


def test_a_step_that_passed_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passed = check.Outcome(passed=2, skipped=1)
    assert times_run(monkeypatch, tmp_path, passed, "somebody", "somebody") == 1


def test_what_only_root_can_do_is_run_when_root_comes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passed = check.Outcome(passed=2, skipped=1)
    assert times_run(monkeypatch, tmp_path, passed, "somebody", "root") == 2


def test_a_step_of_which_everything_was_skipped_is_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skipped = check.Outcome(skipped=3)
    assert times_run(monkeypatch, tmp_path, skipped, "somebody", "somebody") == 2


def test_no_step_passes_by_the_stamp_of_another() -> None:
    names = [one.name for one in check.full_steps()]
    assert sorted(names) == sorted(set(names))


def test_the_quick_tier_waits_for_what_it_tests() -> None:
    steps = check.quick_steps()
    before: list[str] = []
    for one in steps:
        assert not one.after or one.after in before, one.name
        before.append(one.name)
    assert any(one.after == "build asan" for one in steps)


def test_nothing_is_kept_of_what_ran_behind_a_build_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "tree_digest", lambda: "tree")
    built, ran = [False, True], []

    def run(this: check.Step) -> check.Outcome:
        if check.builds(this):
            good = built.pop(0)
            return check.Outcome(passed=int(good), failed=int(not good))
        ran.append(this.name)
        return check.Outcome(passed=1)

    for _ in range(2):
        once = check.resumable(run)
        once(step("build tsan"))
        once(step("layers under tsan"))
    assert ran == ["layers under tsan"] * 2


def test_what_is_committed_is_part_of_the_tree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    check.git("init", "--quiet")
    check.git(*who, "commit", "--quiet", "--allow-empty", "--message", "first")
    (tmp_path / "new.cpp").write_text("int x;\n")
    told = [check.tree_digest()]
    check.git("add", "new.cpp")
    told.append(check.tree_digest())
    check.git(*who, "commit", "--quiet", "--message", "second")
    told.append(check.tree_digest())
    assert len(set(told)) == 3
