"""A sweep as a job array of Slurm: each element measures one part of it, into the same directory.

The script that is submitted stays in the results directory, with `submit.json`, which knows the
array jobs and the number of parts. So the same command again submits only the parts that are not
queued, and each of these resumes where it was stopped.
"""

from __future__ import annotations

import getpass
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from penstock.errors import ArgumentError, PenstockError, UnsupportedError, WriteError

SCHEMA = "penstock.submit/1"
SCRIPT = "submit.sh"
STATE = "submit.json"
_ASK_S = 60.0
# What an element must have as it is, or parts would be measured twice or not at all.
_OURS = {"--array": "-a", "--output": "-o", "--error": "-e", "--chdir": "-D", "--open-mode": ""}


class SlurmError(PenstockError):
    """Slurm refused; the message is its own."""

    error_class = "io"


@dataclass(frozen=True)
class SubmitOptions:
    """How an array is submitted.

    Parameters
    ----------
    directory : Path
        The results directory: the script, its state and the elements' logs lie there.
    working_directory : Path
        Where the command runs; relative paths on its command line are read from there.
    sbatch : sequence of str
        Options of sbatch, one each: ``--partition=debug``.
    at_once : int
        Elements that run at the same time. More than one spoil each other where they share a file
        system.
    name : str
        The job's name.
    dry_run : bool
        Make the script, and neither write nor submit it.
    """

    directory: Path
    working_directory: Path
    sbatch: Sequence[str] = ()
    at_once: int = 1
    name: str = "penstock-bench"
    dry_run: bool = False


@dataclass(frozen=True)
class State:
    """What `submit.json` holds: the jobs that were submitted, the last one last, and the parts."""

    jobs: tuple[str, ...]
    parts: int


@dataclass(frozen=True)
class Submitted:
    """What was submitted. ``job`` is None for a dry run; ``queued`` are parts of an earlier job."""

    script: str
    path: Path
    parts: tuple[int, ...]
    of: int
    queued: tuple[int, ...]
    job: str | None
    gather: str

    def text(self) -> str:
        """For a person: what happened, how to watch, stop, resume and gather."""
        if self.job is None:
            return self.script
        still = ""
        if self.queued:
            still = f"; {listed(self.queued)} of an earlier job still wait or run"
        logs = self.path.parent / f"slurm-{self.job}_*.log"
        return "\n".join(
            [
                f"job {self.job}: {listed(self.parts)} of {self.of}{still}",
                f"  watch    squeue -j {self.job}; tail -f {shlex.quote(str(logs)[:-5])}*.log",
                f"  stop     scancel {self.job}",
                "  resume   the same command: parts that are not queued are submitted again",
                f"  gather   {self.gather}",
                f"  script   {self.path}",
            ]
        )


def submit(command: Sequence[str], parts: int, options: SubmitOptions) -> Submitted:
    """Submit ``command`` as an array whose element I runs it with ``--part I/parts``.

    Parameters
    ----------
    command : words
        The whole ``penstock bench`` command, without ``--submit``; run once more without
        ``--part`` it shows the whole of the results.
    parts : int
        Elements of the array, at least 1.
    options : SubmitOptions
        Where and how.

    Raises
    ------
    ArgumentError
        If an option cannot be served, the sweep was submitted in another number of parts, or all
        its parts are queued.
    UnsupportedError
        If there is no Slurm here.
    SlurmError
        If Slurm refuses.
    WriteError
        If the results directory cannot be written.
    """
    check(parts, options)
    script = options.directory / SCRIPT
    gather = shlex.join(_as_typed(command))
    if options.dry_run:
        wanted = tuple(range(parts))
        text = script_text(command, wanted, parts, options)
        return Submitted(text, script, wanted, parts, (), None, gather)
    _need_slurm()
    jobs = _earlier_jobs(options.directory, parts)
    queued = _queued_parts(jobs) if jobs else ()
    wanted = tuple(part for part in range(parts) if part not in queued)
    if not wanted:
        raise ArgumentError(
            f"every part of {options.directory} is queued or running already (job {jobs[-1]}): "
            f"wait for it, or end it with scancel {jobs[-1]}"
        )
    text = script_text(command, wanted, parts, options)
    _write(script, text)
    job = _sbatch(script)
    _remember(options.directory / STATE, [*jobs, job], parts)
    return Submitted(text, script, wanted, parts, queued, job, gather)


def script_text(
    command: Sequence[str], wanted: Sequence[int], parts: int, options: SubmitOptions
) -> str:
    """The job script; a pure function, so that a dry run shows what would be submitted."""
    log = f"{_literal(options.directory)}/slurm-%A_%a.log"
    directives = [
        f"--job-name={options.name}",
        f"--array={_ranges(wanted)}%{options.at_once}",
        f"--output={_quoted(log)}",
        "--open-mode=append",
        "--requeue",
        "--exclusive",
        *options.sbatch,
    ]
    return "\n".join(
        [
            "#!/bin/bash",
            "# Written by penstock bench --submit. Each element of the array measures one part of",
            "# the sweep; one that was stopped resumes when it is submitted again.",
            *(f"#SBATCH {directive}" for directive in directives),
            "",
            f"cd -- {shlex.quote(str(options.working_directory))} || exit 1",
            "# exec: what Slurm sends when time is up reaches the sweep, which keeps its samples.",
            f"exec {_with_part(command, parts)}",
            "",
        ]
    )


def _with_part(command: Sequence[str], parts: int) -> str:
    """The command's line; behind a -- there are no options."""
    end = command.index("--") if "--" in command else len(command)
    words = [shlex.join(command[:end]), f'--part "$SLURM_ARRAY_TASK_ID/{parts}"']
    return " ".join([*words, *map(shlex.quote, command[end:])])


# ---- what was asked for ----


def check(parts: int, options: SubmitOptions) -> None:
    """Refuse what is no array of parts, or an option that would break it.

    Raises
    ------
    ArgumentError
        Naming the option.
    """
    if parts < 1:
        raise ArgumentError(f"--submit must be a number of parts, at least 1, got {parts}")
    if options.at_once < 1:
        raise ArgumentError(f"at_once must be at least 1, got {options.at_once}")
    if re.search(r"[\n\\]", str(options.directory)):
        raise ArgumentError(
            "--submit cannot have Slurm write logs where a newline or a backslash is in the path, "
            f"got {str(options.directory)!r}: give another --out"
        )
    for option in options.sbatch:
        _check_option(option)


def _check_option(option: str) -> None:
    if "\n" in option or not option.startswith("-"):
        raise ArgumentError(
            f"--sbatch must be one option of sbatch, as --sbatch=--partition=debug, got {option!r}"
        )
    name = re.split(r"[= ]", option, maxsplit=1)[0]
    for long, short in _OURS.items():
        if name == long or (short and option.startswith(short) and not option.startswith("--")):
            raise ArgumentError(f"--sbatch may not set {long}, which --submit sets; got {option!r}")


def _need_slurm() -> None:
    if shutil.which("sbatch") is None:
        raise UnsupportedError(
            "--submit needs Slurm, and there is no sbatch in PATH: submit on a login node of the "
            "cluster, see the script with --dry-run, or measure here without --submit"
        )


# ---- the state of a sweep that was submitted before ----


def submitted_before(directory: Path) -> State | None:
    """What is known of a sweep that was submitted into a results directory; None if none was.

    Raises
    ------
    ArgumentError
        If it cannot be read.
    """
    path = directory / STATE
    try:
        values = json.loads(path.read_text())
        schema, state = (
            values["schema"],
            State(tuple(map(str, values["jobs"])), int(values["parts"])),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{path} cannot be read ({error}); remove it if no job runs") from error
    if schema != SCHEMA:
        raise ArgumentError(f"{path} has schema {schema!r}, and this penstock reads {SCHEMA!r}")
    return state


def _earlier_jobs(directory: Path, parts: int) -> tuple[str, ...]:
    state = submitted_before(directory)
    if state is None:
        return ()
    if state.parts != parts:
        raise ArgumentError(
            f"{directory} was submitted in {state.parts} parts, and each knows its own cells: "
            f"submit it in {state.parts} again, got {parts}, or give another --out"
        )
    return state.jobs


def _remember(path: Path, jobs: Sequence[str], parts: int) -> None:
    """A job that nobody knows of would be submitted twice: without its state it does not stay."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    values = {"schema": SCHEMA, "jobs": list(jobs), "parts": parts, "submitted": now}
    try:
        _write(path, json.dumps(values, indent=2) + "\n")
    except WriteError:
        _ask(["scancel", jobs[-1]])
        raise


def _queued_parts(jobs: Sequence[str]) -> tuple[int, ...]:
    """Parts that wait or run. All jobs of the user are asked for: of one long gone Slurm knows
    nothing, and says so as an error."""
    told = _ask(
        ["squeue", "--noheader", "--array", f"--user={getpass.getuser()}", "--format=%F %K"]
    )
    lines = [line.split() for line in told.splitlines()]
    mine = [words[1] for words in lines if len(words) == 2 and words[0] in jobs]
    return tuple(sorted(int(index) for index in mine if index.isdigit()))


# ---- doing it ----


def _sbatch(script: Path) -> str:
    """The array job's number; a cluster's name may follow it."""
    told = _ask(["sbatch", "--parsable", str(script)]).strip()
    job = told.split(";")[0]
    if not job.isdigit():
        raise SlurmError(f"sbatch did not tell the job's number, but: {told[:300]!r}")
    return job


def _ask(command: list[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - Slurm's own clients
            command, capture_output=True, text=True, check=False, timeout=_ASK_S
        )
    except subprocess.TimeoutExpired as error:
        raise SlurmError(
            f"{command[0]} did not answer within {_ASK_S:g} s; nothing was submitted"
        ) from error
    except OSError as error:
        raise SlurmError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise SlurmError(
            f"{shlex.join(command)} failed: {why}\n"
            "Submit where sbatch works by itself (sinfo tells), or measure here without --submit"
        )
    return done.stdout


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a state that is half written would hide a running job."""
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(exist_ok=True)
        fresh.write_text(text)
        fresh.replace(path)
    except OSError as error:
        raise WriteError(error.errno, f"{path} cannot be written: {error.strerror}") from error


def command_of(arguments: Sequence[str]) -> list[str]:
    """A command line that runs ``penstock`` with ``arguments`` as this one runs."""
    main = str(getattr(sys.modules["__main__"], "__file__", ""))
    own = [main] if main.endswith("/command_line.py") else ["-m", "penstock"]  # of an installation
    return [sys.executable, "-P", *own, *arguments]


def _as_typed(command: Sequence[str]) -> Sequence[str]:
    """What a person types where an element of the array needs a path."""
    if command[1:4] == ["-P", "-m", "penstock"]:
        return ["penstock", *command[4:]]
    if command[1:2] == ["-P"] and command[2].endswith("/command_line.py"):
        return ["penstock", *command[3:]]
    return command


def _ranges(numbers: Sequence[int]) -> str:
    """``[0, 1, 2, 5]`` as Slurm spells it: ``0-2,5``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in spans)


def listed(parts: Sequence[int]) -> str:
    """``part 3``, ``parts 0-2,5``."""
    return f"part{'s' if len(parts) > 1 else ''} {_ranges(parts)}"


def _literal(path: Path) -> str:
    """Slurm replaces % in file names."""
    return str(path).replace("%", "%%")


def _quoted(text: str) -> str:
    """As sbatch reads directives, which no shell sees: # begins a comment, quotes are removed."""
    if not re.search(r"[\s\"'#]", text):
        return text
    return '"' + text.replace('"', '\\"') + '"'
