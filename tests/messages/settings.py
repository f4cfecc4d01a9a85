"""Settings: methods, options with values, configuration files, variables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from provocation import Bench, NotHereError, Provocation
from start import RUN, wrote

JOB = "mpiexec.mpich -n 2"


def configured(
    text: str, mode: int = 0o644, owner: int | None = None
) -> Callable[[Bench, Path], None]:
    """A ``penstock.toml`` in the working directory."""

    def arrange(bench: Bench, directory: Path) -> None:
        wrote("penstock.toml", text, mode)(bench, directory)
        if owner is None:
            return
        if os.geteuid() != 0:
            raise NotHereError("only root can give files away")
        os.chown(directory / "penstock.toml", owner, owner)

    return arrange


def method(value: str, *says: str) -> Provocation:
    return Provocation("Method", f"penstock run --method {value!r} -- ls", 2, [*says])


def option(words: str, *says: str) -> Provocation:
    return Provocation("Method", f"penstock run {words} -- ls", 2, [*says])


def file(
    shown: str, text: str, *says: str, mode: int = 0o644, owner: int | None = None
) -> Provocation:
    arrange = configured(text, mode, owner)
    return Provocation(
        "Configuration",
        f"{RUN} ls",
        2,
        ["penstock.toml", *says],
        f"`penstock.toml` {shown}",
        arrange,
    )


def variable(words: str, code: int, *says: str) -> Provocation:
    return Provocation("Variables", f"{words} {RUN} {JOB} writer.mpich out", code, [*says])


SETTINGS = [
    method("two_fase", "two_fase", "two_phase"),
    method("two_phase(writer=2)", "writer", "writers"),
    method("two_phase(writers=2", "two_phase(writers=2"),
    method("two_phase + uring2", "mechanism uring has its place in algorithm + exchange"),
    method("auto + shm + pwrite + cycle=1MiB", "as in individual(cycle=..)"),
    method("individual(writers=2)", "writers", "individual"),
    method("two_phase + null", "null"),
    option("--writers 0.5", "0.5", "writers"),
    option("--writers -1", "-1", "writers"),
    option("--cycle 1000", "1000", "4096"),
    option("--cycle 16MiBB", "16MiBB", "4MiB"),
    option("--observe --method two_phase", "--observe", "two_phase", "one of them"),
    option("--method off --require", "--method off", "--require", "one of them"),
    option("--no-log --log-dir logs", "--no-log", "--log-dir logs", "one of them"),
    option("--json", "--dump-config"),
    option("--dump-config --dry-run", "--dump-config", "--dry-run", "one of them"),
    option("--config none.toml", "none.toml", "readable"),
    option("--config=", "--config", "leave it out"),
    file("is not TOML", "method = two_phase\n", ":1"),
    file("has an unknown key", "metod = 'two_phase'\n", "metod", "method"),
    file("has a value of a wrong type", "writers = 'two'\n", "writers", "integer"),
    file("has a wrong method", "method = 'two_fase'\n", "two_fase", "two_phase"),
    file("may be written by everybody", "quiet = true\n", "chmod go-w", mode=0o666),
    file("is a stranger's", "quiet = true\n", "65534", "PENSTOCK_ISOLATED", owner=65534),
    Provocation(
        "Configuration",
        f"{JOB} penstock-exec writer.mpich out",
        0,
        ["penstock.toml", "metod", "method", "all writes go to the MPI library"],
        "`penstock.toml` has an unknown key: `mpiexec -n 2 penstock-exec ./app`",
        configured("metod = 'two_phase'\n"),
        once=False,
    ),
    Provocation(
        "Configuration",
        f"{RUN} {JOB} writer.mpich out",
        0,
        ["left alone", "leave_alone has"],
        "`penstock.toml` leaves the program alone: `leave_alone = 'writer*'`",
        configured("leave_alone = 'writer*'\n"),
    ),
    variable("PENSTOCK_METHDO=two_phase", 0, "PENSTOCK_METHDO", "PENSTOCK_METHOD"),
    variable("PENSTOCK_METHOD=two_fase", 2, "PENSTOCK_METHOD", "two_fase", "two_phase"),
    variable("PENSTOCK_VERIFY=yes", 2, "PENSTOCK_VERIFY", "yes"),
    variable("PENSTOCK_CONFIG=none.toml", 2, "PENSTOCK_CONFIG", "none.toml"),
    variable("PENSTOCK_NATIVE_DIR=none", 2, "PENSTOCK_NATIVE_DIR", "none", "directory"),
    variable("PENSTOCK_NATIVE_DIR=.", 2, "penstock-exec", "make build"),
]
