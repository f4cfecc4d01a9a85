"""``penstock completion``: scripts for shells, made from the commands themselves.

The scripts hold all words, so that completing starts no Python. Those that packages install are
committed (``penstock completion bash > packaging/completion/penstock.bash``); a test compares.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from penstock import catalogue
from penstock.explain.shipped import shipped
from penstock.reproduce import PAPERS
from penstock.simulate import SYSTEMS


class Shell(StrEnum):
    """The shells that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


@dataclass(frozen=True)
class Option:
    """An option: its names, its help, and the words that may follow (None: it takes no value).

    ``or_file``: where none of the words fits, a file may.
    """

    names: tuple[str, ...]
    summary: str
    values: tuple[str, ...] | None
    or_file: bool = False


@dataclass(frozen=True)
class Command:
    """A command: its help, its options, and the words that may be its argument.

    ``or_file``: a file or directory may be, too, so options are offered behind a dash alone.
    """

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    or_file: bool


def commands() -> list[Command]:
    """Every command of the command line."""
    from penstock.cli import app

    group: Any = typer.main.get_command(app)
    return [_command(name, command) for name, command in group.commands.items()]


def _command(name: str, command: Any) -> Command:
    options = [_option(name, p) for p in command.params if p.param_type_name == "option"]
    options.append(Option(("--help", "-h"), "Show the options", None))
    words: dict[str, tuple[str, ...]] = {
        "completion": tuple(Shell),
        "explain": tuple(shipped()),
        "reproduce": PAPERS,
        "simulate": SYSTEMS,
    }
    summary = _first_sentence(command.help)
    return Command(name, summary, tuple(options), words.get(name, ()), name in _OF_FILES)


_OF_FILES = ("bench", "compare", "doctor", "explain", "log", "report")


def _option(command: str, parameter: Any) -> Option:
    return Option(
        tuple(parameter.opts),
        _first_sentence(parameter.help or ""),
        None if parameter.is_flag else _values(command, parameter),
        or_file=parameter.metavar == "MPI",
    )


def _values(command: str, parameter: Any) -> tuple[str, ...]:
    """What may follow an option; nothing means a file or something only the user knows."""
    if parameter.metavar == "METHOD":
        algorithms = next(f for f in catalogue.families() if f.name == "algorithm").entries
        names = ("auto", *(a.name for a in algorithms if not a.unavailable))
        return names if command == "explain" else (*names, "observe", "off")
    if parameter.metavar in _WORDS:
        return _WORDS[parameter.metavar]
    return tuple(parameter.metavar.split("|")) if "|" in (parameter.metavar or "") else ()


# By what an option's value is called in its help.
_WORDS = {
    "MPI": ("none", "mpich", "openmpi", "abi"),
    "FORMATS": ("parquet", "csv", "parquet,csv"),
}


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def script(shell: Shell) -> str:
    """The completion script for a shell."""
    make: dict[Shell, Callable[[list[Command]], str]] = {
        Shell.bash: _bash,
        Shell.zsh: _zsh,
        Shell.fish: _fish,
    }
    return make[shell](commands())


_BASH = """\
# Completion of penstock for bash. Made by `penstock completion bash`.
_penstock() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command= options= words= or_file= i
  COMPREPLY=()
  if [[ $current == "=" ]]; then # --option=: bash takes = for a word of its own
    current=
  elif [[ $previous == "=" ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # the program's own words: commands, then files
      [[ $previous == -- ]] && COMPREPLY=($(compgen -c -- "$current"))
      return
    fi
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  case $command:$previous in
@VALUES@
  esac
  case $command in
@WORDS@
  esac
  [[ -n $or_file && $current != -* ]] && options= # files, where none of the words fits
  COMPREPLY=($(compgen -W "$options $words" -- "$current"))
}
"""
_BASH_END = "complete -o default -F _penstock penstock\n"
_GLOBAL = ("--version", "--help")


def _bash(all_commands: list[Command]) -> str:
    after: dict[tuple[str, ...], list[str]] = {}  # the words that may follow: after which options
    for command in all_commands:
        for option in command.options:
            if option.values is not None:
                patterns = [f"{command.name}:{name}" for name in option.names]
                after.setdefault(option.values, []).extend(patterns)
    values = [
        f"    {'|'.join(patterns)}) {_offer(words)}return ;;" for words, patterns in after.items()
    ]
    words = [f'    "") words="{" ".join([*(c.name for c in all_commands), *_GLOBAL])}" ;;']
    for command in all_commands:
        names = " ".join(n for o in command.options for n in o.names)
        text = f'options="{names}"'
        text += f' words="{" ".join(command.words)}"' if command.words else ""
        text += " or_file=1" if command.or_file else ""
        words.append(f"    {command.name}) {text} ;;")
    text = _BASH.replace("@VALUES@", "\n".join(values)).replace("@WORDS@", "\n".join(words))
    return text + _BASH_END


def _offer(words: tuple[str, ...]) -> str:
    """Nothing offered: the shell offers files."""
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current")); ' if words else ""


def _zsh(all_commands: list[Command]) -> str:
    """Bash's function under zsh's own emulation; as an autoloaded file it completes at once."""
    function = _bash(all_commands).split("\n", 1)[1].removesuffix(_BASH_END)
    return (
        "#compdef penstock\n"
        "# Completion of penstock for zsh. Made by `penstock completion zsh`.\n"
        "autoload -Uz bashcompinit && bashcompinit\n"
        + function.replace("_penstock()", "_penstock_words()")
        + _BASH_END.replace("_penstock ", "_penstock_words ")
        + "[[ $funcstack[1] == _penstock ]] && _bash_complete -o default -F _penstock_words\n"
        + "return 0\n"
    )


def _fish(all_commands: list[Command]) -> str:
    names = " ".join(c.name for c in all_commands)
    none_yet = f"'not __fish_seen_subcommand_from {names}'"
    lines = ["# Completion of penstock for fish. Made by `penstock completion fish`."]
    for flag in _GLOBAL:
        lines.append(f"complete -c penstock -n {none_yet} -l {flag.removeprefix('--')}")
    for command in all_commands:
        about = shlex.quote(command.summary)
        lines.append(f"complete -c penstock -f -n {none_yet} -a {command.name} -d {about}")
        seen = f"'__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(
                f"complete -c penstock -n {seen} -a {shlex.quote(' '.join(command.words))}"
            )
        lines += [f"complete -c penstock -n {seen}{_fish_option(o)}" for o in command.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: Option) -> str:
    text = ""
    for name in option.names:
        text += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    if option.values is not None:
        text += " -r"
    if option.values:
        text += "" if option.or_file else " -f"
        text += f" -a {shlex.quote(' '.join(option.values))}"
    return f"{text} -d {shlex.quote(option.summary)}"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Which shell's script.")],
) -> None:
    """Print a script by which a shell completes penstock's commands, options and values.

    Examples:

        eval "$(penstock completion bash)"

        penstock completion zsh > ~/.zfunc/_penstock

        penstock completion fish > ~/.config/fish/completions/penstock.fish
    """
    typer.echo(script(shell), nl=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("completion")(completion)
