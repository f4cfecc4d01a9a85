"""Rewrites a launcher's command line so that only the program is preloaded.

``mpiexec -n 4 ./app`` becomes ``mpiexec -n 4 penstock-exec OPTIONS -- ./app``, in every
``:``-separated part. The launcher itself, its proxies and its remote shells never see the shim.
"""

from __future__ import annotations

import os.path
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from penstock import _core
from penstock.errors import LaunchError
from penstock.launch import launchers
from penstock.launch.launchers import WRAPPERS, Launcher, find

_MAY_NOT, _NOT_FOUND = 126, 127  # the exit codes of a shell
_ELSEWHERE = (
    "start it yourself with `penstock-exec` before the program: mpiexec ... penstock-exec ./app"
)
_COPIES = (
    "the launcher would copy penstock-exec, not the program: "
    "copy the program to every node first, and start the copy"
)
_ASSIGNMENT = re.compile(r"-{0,2}[\w-]+=")  # env's A=/x/srun, or --output=/x/srun of a wrapper


@dataclass(frozen=True)
class Part:
    """One application context: ``options`` of the launcher, then the program and its arguments."""

    options: tuple[str, ...]
    program: tuple[str, ...]
    moved: bool  # an option may have changed where the program is looked for
    directory: str = ""  # the one that an option names for the ranks to start in
    copied: str = ""  # the option by which the launcher copies what it starts to the nodes


@dataclass(frozen=True)
class Command:
    """A command line, taken apart. ``launcher`` is None when the program is started directly."""

    prefix: tuple[str, ...]  # wrappers, the launcher and its sub-command
    launcher: Launcher | None
    parts: tuple[Part, ...]


def parse(words: Sequence[str]) -> Command:
    """Find the launcher and the programs of a command line.

    Raises
    ------
    LaunchError
        If there is no program, an option is not known, or the programs are named in a file.
    """
    if not words:
        raise LaunchError("there is no command to run: penstock run -- mpiexec -n 4 ./app")
    found = _find_launcher(words)
    if found is None:
        return Command((), None, (Part((), tuple(words), moved=False),))
    at, launcher = found
    begin = at + 1 + _subcommand_length(launcher, words[at + 1 :])
    parts = tuple(_parse_part(launcher, part) for part in _split(launcher, words[begin:]))
    return Command(tuple(words[:begin]), launcher, parts)


def rewrite(command: Command, preload: Sequence[str]) -> list[str]:
    """The words to execute: ``preload``, penstock-exec and its options, before each program."""
    words = list(command.prefix)
    for number, part in enumerate(command.parts):
        if number:
            words.append(":")
        words += part.options
        if not _is_penstock_exec(part):
            words += [*preload, "--"]
        words += [spelt_for_exec(part), *part.program[1:]]
    return words


def spelt_for_exec(part: Part) -> str:
    """Open MPI also finds a bare ``app`` in the working directory; execvp does not."""
    name = part.program[0]
    if "/" not in name and not part.moved and not _exists(name) and _exists(f"./{name}"):
        return f"./{name}"
    return name


def starts_penstock_exec(words: Sequence[str]) -> bool:
    """Whether a program of the command is penstock-exec, to which `rewrite` adds nothing."""
    return _some_part(words, _is_penstock_exec)


def wraps_penstock_exec(words: Sequence[str]) -> bool:
    """Whether a program of the command is a wrapper, such as env, with penstock-exec behind it."""
    return _some_part(words, _is_wrapped_penstock_exec)


def require_commands(command: Command) -> None:
    """Raise LaunchError, as a shell, when a launcher or program is not there (exit code 127) or
    may not be executed (126)."""
    for wrapper in command.prefix[:1]:
        if not _exists(wrapper):
            raise _missing("launcher", wrapper)
    found = _find_launcher(command.prefix)
    if found and not _exists(command.prefix[found[0]]):
        raise _missing("launcher", command.prefix[found[0]])
    for part in command.parts:
        name = part.program[0]
        if not part.moved and not _exists(name) and not _exists(spelt_for_exec(part)):
            raise _missing("program", name)


def require_in_place(command: Command, environ: Mapping[str, str]) -> None:
    """Raise LaunchError where the launcher is asked to copy what it starts to the nodes."""
    if command.launcher is None:
        return
    for part in command.parts:
        if part.copied:
            raise LaunchError(f"{command.launcher.name} {part.copied} cannot be obeyed: {_COPIES}")
    for name in sorted(command.launcher.copies_by_variable & environ.keys()):
        raise LaunchError(f"{name} cannot be obeyed: {_COPIES}; unset {name}")


def _some_part(words: Sequence[str], holds: Callable[[Part], bool]) -> bool:
    try:
        return any(holds(part) for part in parse(words).parts)
    except LaunchError:  # said where the command is taken apart; when off, it is not
        return False


def _is_penstock_exec(part: Part) -> bool:
    return PurePath(part.program[0]).name == "penstock-exec"


def _is_wrapped_penstock_exec(part: Part) -> bool:
    first, *others = (PurePath(word).name for word in part.program)
    return first in WRAPPERS and "penstock-exec" in others


def launcher_length(words: Sequence[str]) -> int:
    """How many words come before the launcher's options: wrappers, it, and what it is to do."""
    found = _find_launcher(words)
    if found is None:
        return 1
    at, launcher = found
    try:
        return at + 1 + _subcommand_length(launcher, words[at + 1 :])
    except LaunchError:
        return at + 1


def _find_launcher(words: Sequence[str]) -> tuple[int, Launcher] | None:
    """The launcher and its index: the first word, or one behind wrappers such as ``timeout 10``.

    A wrapper's options have values, such as the file of ``strace -o mpiexec.trace``: what cannot be
    started behind an option is one, where there is another, or it is called like no launcher.
    """
    wrapped = bool(words) and PurePath(words[0]).name in WRAPPERS
    found = [
        (at, launcher)
        for at, word in enumerate(words if wrapped else words[:1])
        if not _ASSIGNMENT.match(word) and (launcher := find(word)) is not None
    ]
    sure = [one for one in found if not _may_be_a_value(words, one[0])]
    named = [one for one in found if PurePath(words[one[0]]).name in launchers.names()]
    return next(iter(sure or named), None)


def _may_be_a_value(words: Sequence[str], at: int) -> bool:
    return at > 0 and words[at - 1].startswith("-") and not _exists(words[at])


def _subcommand_length(launcher: Launcher, words: Sequence[str]) -> int:
    if not launcher.subcommands:
        return 0
    for subcommand in launcher.subcommands:
        expected = subcommand.split()
        if list(words[: len(expected)]) == expected:
            return len(expected)
    raise LaunchError(
        f"penstock run knows `{launcher.name}` of flux, got `flux {' '.join(words[:1])}`; "
        "for a batch script, call penstock run inside it"
    )


def _split(launcher: Launcher, words: Sequence[str]) -> list[list[str]]:
    """The application contexts: `:` alone separates them."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":" and launcher.has_contexts:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _parse_part(launcher: Launcher, words: Sequence[str]) -> Part:
    at = 0
    moved, directory, copied = False, "", ""
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            at += 1
            break
        option, length = _measure(launcher, words, at)
        moved = moved or option in launcher.changes_path
        if option in launcher.changes_directory:
            directory = _value(launcher, option, words[at : at + length])
        if option in launcher.copies:
            copied = words[at]
        at += length
    if at >= len(words):
        raise LaunchError(f"{launcher.name} is given no program: {' '.join(words) or '(nothing)'}")
    return Part(tuple(words[:at]), tuple(words[at:]), moved, directory, copied)


def _value(launcher: Launcher, option: str, words: Sequence[str]) -> str:
    """What ``-wdir /x``, ``--chdir=/x`` or ``-D/x`` says behind the option."""
    if len(words) > 1:
        return words[1]
    long = launcher.single_dash_long or words[0].startswith("--")
    return words[0].partition("=" if long else option)[2]


def _measure(launcher: Launcher, words: Sequence[str], at: int) -> tuple[str, int]:
    """The option at ``words[at]``, without dashes, and how many words it takes with its values."""
    word = words[at]
    if launcher.single_dash_long or word.startswith("--"):
        option, equals, _ = word.lstrip("-").partition("=")
        option = _complete(launcher, word, option)
        values = 0 if equals else launcher.arity.get(option, 0)
    else:
        option, values = _short(launcher, word)
    if option in launcher.elsewhere:
        remedy = launcher.elsewhere[option]
        raise LaunchError(f"{launcher.name} {word} cannot be rewritten: {remedy}")
    if values == 2 and option in launcher.assignments and "=" in "".join(words[at + 1 : at + 2]):
        values = 1
    return option, 1 + values


def _short(launcher: Launcher, word: str) -> tuple[str, int]:
    """A short option as getopt reads it: ``-n 4``, ``-n4``, ``-lu`` or aprun's ``-cc list``.

    Digits behind a letter that takes no value of its own are one that it may have: srun's ``-K1``.
    """
    if word[1:] in launcher.arity:
        return word[1:], launcher.arity[word[1:]]
    for i, letter in enumerate(word[1:], start=1):
        if letter not in launcher.arity and letter not in launcher.elsewhere:
            raise LaunchError(_unknown(launcher, word, letter))
        rest = word[i + 1 :]
        if launcher.arity.get(letter, 0):
            return letter, 0 if rest else launcher.arity[letter]
        if rest.isdecimal():
            return letter, 0
    return word[1], 0


def _complete(launcher: Launcher, word: str, option: str) -> str:
    """The option itself, or the only one that it abbreviates (getopt_long allows that)."""
    known = [*launcher.arity, *launcher.elsewhere]
    if option in known:
        return option
    longer = sorted({name for name in known if name.startswith(option) and len(option) > 1})
    if len(longer) == 1 and not launcher.single_dash_long:
        return longer[0]
    raise LaunchError(_unknown(launcher, word.partition("=")[0], option))


def _unknown(launcher: Launcher, word: str, option: str) -> str:
    near = _core.nearest(option, [name for name in launcher.arity if len(name) > 1])
    hint = f" (did you mean {near}?)" if near else ""
    return (
        f"{launcher.name} option {word} is not known to penstock run{hint}, so it cannot tell "
        f"where the program begins; {_ELSEWHERE}"
    )


def _exists(name: str) -> bool:
    return shutil.which(name) is not None


def _missing(what: str, name: str) -> LaunchError:
    # Not Path's methods, which raise where a directory on the way may not be searched.
    if "/" in name and os.path.isdir(name):  # noqa: PTH112
        said = f"{what} {name} is a directory: name the {what} in it"
        return LaunchError(said, exit_code=_MAY_NOT)
    if "/" in name and os.path.exists(name):  # noqa: PTH110
        said = f"{what} {name} may not be executed: chmod +x {name}"
        return LaunchError(said, exit_code=_MAY_NOT)
    return LaunchError(_not_found(what, name), exit_code=_NOT_FOUND)


def _not_found(what: str, name: str) -> str:
    if "/" in name:
        return f"{what} {name} was not found: there is no such file"
    if what == "launcher":
        remedy = "; load the module of your MPI, or give the launcher's path"
    else:
        near = _core.nearest(name, launchers.names())
        remedy = f"; did you mean {near}?" if near else f" (./{name} names one of this directory)"
    return f"{what} {name} was not found: it is not in PATH{remedy}"
