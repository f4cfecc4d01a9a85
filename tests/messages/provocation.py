"""A provocation: something that a new user may do, what it exits with, and what it has to say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 60
ANY = -1  # MPICH's launcher ends by 0 or by 2 after one and the same Ctrl-C
KILLED = "killed before its end"  # penstock log's heading
VERSION = re.compile(r"^penstock(-exec)? \d+\.\d+\.\d+$")
BOX = re.compile(r"^[╭╰─╮╯]+.*[─╮╯]+$")
OURS = (
    "penstock: ",
    "penstock-exec: ",
    "Usage:",
    "Try ",
    "Error",
    "No such",
    "Invalid",
    "Missing",
    "Got ",
    "writer:",
)


class NotHereError(Exception):
    """What a provocation needs is not on this machine; the text says what."""


@dataclass(frozen=True)
class Bench:
    """Where things are. ``copies`` holds what provocations start; it has no spaces."""

    native: Path
    penstock: Path
    copies: Path

    @property
    def exec(self) -> Path:
        return self.native / "penstock-exec"


@dataclass(frozen=True)
class Provocation:
    """One of them.

    ``command`` is what the user types, in a shell whose working directory is the case's own, with
    ``penstock`` and ``penstock-exec`` in PATH. ``says``: the words that must be in the message: the
    thing, its value, the remedy. ``arrange`` prepares the directory. ``shown``: what the table
    says was done, where the command alone does not tell.
    """

    section: str
    command: str
    code: int | None  # None: not 0, whatever the MPI library makes of it; ANY: 0 as well
    says: Sequence[str]
    shown: str = ""
    arrange: Callable[[Bench, Path], None] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    interrupt_after: str = ""  # Ctrl-C as soon as this file is there
    once: bool = True  # its first words may not be said twice
    silent: bool = False  # Penstock has nothing to say

    @property
    def name(self) -> str:
        return self.shown or self.command


@dataclass(frozen=True)
class Answer:
    """What came of a provocation."""

    code: int
    text: str  # Penstock's own lines, paths and numbers made equal between runs
    hung: bool

    def problems(self, asked: Provocation) -> list[str]:
        if self.hung:
            return [f"hangs (stopped after {PATIENCE_S} s): {self.text}"]
        problems = []
        if asked.code is None and self.code == 0:
            problems.append("exit code 0")
        if asked.code not in (None, ANY, self.code):
            problems.append(f"exit code {self.code}, not {asked.code}")
        problems += [f"does not say {word!r}" for word in asked.says if word not in self.text]
        if asked.silent and self.text:
            problems.append("there is nothing to say")
        if "Traceback" in self.text:
            problems.append("a traceback is no message")
        lines = self.text.splitlines()
        if asked.once and len(lines) != len(set(lines)):
            problems.append("the same is said twice")
        return [*problems, *(f"| {line}" for line in lines)] if problems else []


def environment(bench: Bench, asked: Provocation, directory: Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "PMI", "OMPI_"))}
    env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env |= {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "400", "LC_ALL": "C.UTF-8"}
    env |= {"PATH": f"{bench.copies}/bin:{os.environ['PATH']}"}
    env |= {"PENSTOCK_NATIVE_DIR": str(bench.native), "HOME": str(directory)}
    env["MESSAGES_SCRIPT"] = str(bench.penstock)
    env.pop("XDG_CONFIG_HOME", None)
    given = {k: v.replace("@", str(directory)) for k, v in asked.environment.items()}
    return {k: v for k, v in (env | given).items() if v}  # an empty one is taken away


def provoke(bench: Bench, asked: Provocation, directory: Path) -> Answer:
    """Runs it in ``directory``, which is empty; raises NotHereError with what is missing."""
    if asked.arrange is not None:
        asked.arrange(bench, directory)
    out = directory.with_suffix(".out")
    with out.open("wb") as sink:
        process = subprocess.Popen(
            ["/bin/bash", "-c", asked.command],
            cwd=directory,
            env=environment(bench, asked, directory),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        hung = not ended(
            process, directory / asked.interrupt_after if asked.interrupt_after else None
        )
    text = out.read_text(errors="replace")
    code = process.returncode
    return Answer(code if code >= 0 else 128 - code, plain(text, bench, directory), hung)


def ended(process: subprocess.Popen[bytes], sign: Path | None) -> bool:
    """Waits, with a Ctrl-C when ``sign`` appears; ends the whole session of what does not end."""
    deadline = time.monotonic() + PATIENCE_S
    while sign is not None and time.monotonic() < deadline and process.poll() is None:
        if sign.exists() and sign.stat().st_size > 0:
            time.sleep(0.5)  # the ranks are on their way into what is to be interrupted
            os.killpg(process.pid, signal.SIGINT)
            break
        time.sleep(0.05)
    try:
        process.wait(max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def plain(text: str, bench: Bench, directory: Path) -> str:
    """Penstock's lines of an output, as they read on any machine and in any run."""
    text = text.replace(str(directory), "<dir>").replace(str(bench.native), "<prefix>")
    text = text.replace(f"{bench.copies}/bin/", "<bin>/").replace(socket.gethostname(), "<host>")
    lines = [line.strip("│ ").rstrip() for line in text.splitlines() if not BOX.match(line)]
    ours = [x for x in lines if x.startswith(OURS) or KILLED in x or VERSION.match(x)]
    return "\n".join(equalised(line) for line in ours)


def equalised(line: str) -> str:
    for pattern, to in (
        (r"-\d{9,}-\d+(\.rank\d+)?\.json", r"-<job>\1.json"),
        (r"job \d+-\d+", "job <job>"),
        (r"\.json\.\d+\.\d+\.tmp", ".json.<n>.tmp"),
        (r"penstock(-exec)? \d+\.\d+\.\d+$", r"penstock\1 <version>"),
        (r"-\d+-[\w-]*\d{9,}\.json", "-<job>.json"),
        (r"(Version:|\((?:OpenRTE|Open MPI)\)) +\d[\w.]*", r"\1 <version>"),
        (r"\w{8}-<job>|penstock-writer-[\w.-]+?\.json", "penstock-writer-<job>.json"),
        (r"(/usr)?/bin/mpiexec(\.\w+)?", "mpiexec"),
    ):
        line = re.sub(pattern, to, line)
    return line


def in_path(*names: str) -> Callable[[Bench, Path], None]:
    """Requires programs."""

    def arrange(bench: Bench, directory: Path) -> None:
        del bench, directory
        for name in names:
            if shutil.which(name) is None:
                raise NotHereError(f"no {name}")

    return arrange
