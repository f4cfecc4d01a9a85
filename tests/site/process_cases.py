"""What a process must look like afterwards: exactly as without Penstock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from place import RANKS, FailsAloneError, NotHereError, Options, Place, needs, needs_root
from run_mpi import program_problems

# What penstock-exec sets for the program, and nothing else (docs/safety.md).
OWN_VARIABLES = {
    "LD_PRELOAD",
    "PENSTOCK_LOG_DIR",
    "PENSTOCK_METHOD",
    "PENSTOCK_OPTIONS",
    "PENSTOCK_REQUIRE",
}


def lines_of(place: Place, how: str, suffix: str) -> list[str]:
    """A rank's own record; its directory's name is that of the case in both runs."""
    directory = place.directory_of(how)
    lines = []
    for rank in range(RANKS):
        path = directory / f"out.{suffix}.{rank}"
        text = path.read_text(errors="replace") if path.exists() else "nothing was written"
        # Open MPI's own files bear the number of its launcher.
        text = re.sub(r"/ompi\.\d+/", "/ompi.N/", text.replace(str(directory), "DIR"))
        lines += [f"rank {rank} {x}" for x in text.splitlines()]
    return sorted(lines)


def compare(place: Place, what: str, options: Options) -> None:
    place.must_be_content(place.alone(what, "@/out", options=options), "alone")
    place.must_serve(place.served(what, "@/out", options=options))


def state_is_left_alone(place: Place) -> None:
    """Signals, locale, limits, umask and the like, between and after MPI-IO calls."""
    compare_state(place, Options(environment={"LC_ALL": "C.UTF-8"}))


def compare_state(place: Place, options: Options) -> None:
    compare(place, "state", options)
    state = {how: lines_of(place, how, "state") for how in ("alone", "served")}
    names = {
        how: {x.split(" variable ")[1] for x in lines if " variable " in x and x.count(" ") == 3}
        for how, lines in state.items()
    }
    more = names["served"] - names["alone"] - OWN_VARIABLES
    place.must(not more, f"variables that nobody documents: {sorted(more)}")
    place.must(not names["alone"] - names["served"], "variables are taken from the program")
    rest = {how: [x for x in lines if " variable " not in x] for how, lines in state.items()}
    place.must(len(rest["alone"]) > 100, f"only {len(rest['alone'])} lines were compared")
    place.must_be_same("states", rest["alone"], rest["served"])


def decimal_comma(place: Place) -> None:
    """A locale whose decimal sign is a comma stays, and gets into no number of the log."""
    needs("localedef")
    locales = place.directory / "locales"
    locales.mkdir()
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(locales / "de_DE.UTF-8")]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if not (locales / "de_DE.UTF-8").is_dir():
        raise NotHereError(f"localedef: {made.stderr.splitlines()[:1]}")
    variables = {"LOCPATH": str(locales), "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}
    compare_state(place, Options(environment=variables))
    served = lines_of(place, "served", "state")
    place.must(any("0.5 is 0,5" in x for x in served), "the locale was not in force")
    said = place.last.errors if place.last is not None else ""
    place.must("penstock: 7.8 KiB by engine" in said, f"a number obeys the locale: {said!r}")


def children_get_no_descriptor(place: Place) -> None:
    """By fork and exec, system, popen and posix_spawn, while the file is open."""
    compare(place, "children", Options())
    alone, served = (lines_of(place, how, "children") for how in ("alone", "served"))
    place.must_be_same("descriptors of children", alone, served)


def descriptors_are_given_back(place: Place) -> None:
    compare(place, "state", Options())
    closed = {
        how: [x for x in lines_of(place, how, "state") if " descriptor " in x]
        for how in ("alone", "served")
    }
    place.must_be_same("descriptors after the close", closed["alone"], closed["served"])


def forked_children_end_quietly(place: Place) -> None:
    """A child that ends by _exit or exit writes no log, says nothing, and spoils no file."""
    alone = place.alone("forks", "@/out")
    served = place.served("forks", "@/out")
    place.must_be_content(alone, "alone")
    place.must_serve(served)
    said = [x for x in served.errors.splitlines() if x.startswith("penstock:")]
    place.must(len(said) == 1, f"one closing line, not {len(said)}: {said}")
    place.must(len(served.logs) == 1, f"one log, not {len(served.logs)}")


def preloaded_tool(place: Place, source: str) -> list[str]:
    """What starts a program with a library of this source, loaded before Penstock's."""
    text, library = place.directory / "tool.c", place.directory / "tool.so"
    text.write_text(source)
    command = ["cc", "-shared", "-fPIC", str(text), "-o", str(library)]
    subprocess.run(command, check=True, timeout=60)
    return ["env", f"LD_PRELOAD={library}"]


def another_preload_stays(place: Place) -> None:
    """A tool's own library is loaded too, behind Penstock's."""
    tool = preloaded_tool(
        place,
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void hello(void) {\n"
        '  if (getenv("TOOL_HELLO")) fprintf(stderr, "tool is here\\n");\n}\n',
    )
    out = place.served("write", "@/out", options=Options(wrap=[*tool, "TOOL_HELLO=1"]))
    place.must_serve(out)
    here = out.errors.count("tool is here")
    place.must(here >= RANKS, f"the tool's library is loaded in {here} processes, not {RANKS}")


def closed_standard_streams(place: Place) -> None:
    """Descriptors 0 to 2 may then be the program's files: no message goes there."""
    wrap = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    options = Options(wrap=wrap)
    alone = place.alone("state", "@/out", options=options)
    served = place.served("state", "@/out", options=options)
    place.must(not served.hung, "hangs")
    place.must(alone.code == served.code, f"exit code {served.code}, alone {alone.code}")
    data = {how: (place.directory_of(how) / "out") for how in ("alone", "served")}
    for how, path in data.items():
        have = path.read_bytes() if path.exists() else b""
        want = bytes(i % 251 for i in range(4000 * RANKS))
        place.must(have == want, f"{how}: the file has {len(have)} bytes, or wrong ones")
    strangers = [x.name for x in place.directory_of("served").iterdir()]
    place.must(len(strangers) == 1 + RANKS, f"files are left: {strangers}")
    place.must(bool(served.logs), "no job log")


def a_file_as_descriptor_2(place: Place) -> None:
    """A program that closes its standard error has a file of its own there: no message goes in."""
    out = place.served("own-stderr", "@/out")
    place.must_serve(out)
    for rank in range(RANKS):
        data = (place.directory_of("served") / f"out.own.{rank}").read_bytes()
        place.must(data == b"data", f"rank {rank}'s file holds {data!r}")


TOOLS_THAT_END = (
    "#include <stdio.h>\nint PMPI_Finalize(void);\n"
    'int MPI_Finalize(void) {\n  fprintf(stderr, "tool ends\\n");\n'
    "  return PMPI_Finalize();\n}\n",
    # As Darshan: it has both names, of file functions too.
    "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    'int MPI_Finalize(void) {\n  fprintf(stderr, "tool ends\\n");\n'
    '  return ((int (*)(void))dlsym(RTLD_NEXT, "PMPI_Finalize"))();\n}\n'
    "int PMPI_Finalize(void) { return MPI_Finalize(); }\n"
    "int PMPI_File_open(void) { abort(); }\n",
)


def tools_end_their_work(place: Place) -> None:
    """A profiler that wraps MPI_Finalize is called, as it is alone."""
    for source in TOOLS_THAT_END:
        tool = preloaded_tool(place, source)
        for start in (place.alone, place.served):
            out = start("write", "@/out", options=Options(wrap=tool))
            ends = out.errors.count("tool ends")
            place.must(ends == RANKS, f"the tool ends in {ends} processes, not {RANKS}")
        place.must_serve(out)


def few_descriptors(place: Place) -> None:
    """With K descriptors free a job ends as it does alone, for each K."""
    for free in range(4):
        options = Options(require=False)
        word, file = f"few-{free}", f"@/out{free}"
        alone = place.alone(word, file, options=options)
        served = place.served(word, file, options=options)
        place.must(not served.hung, f"{word}: hangs")
        told = [
            sorted(x for x in out.output.splitlines() if x.startswith("few"))
            for out in (alone, served)
        ]
        place.must(bool(told[0]) or alone.code != 0, f"{word}: alone says nothing, and exits by 0")
        place.must_be_same(word, *told)
        place.must(alone.code == served.code, f"{word}: {served.code}, alone {alone.code}")


def a_killed_rank_ends_the_job(place: Place) -> None:
    """The launcher ends the job as ever; the log stays readable and says running."""
    alone, served = (start("killed", "@/out") for start in (place.alone, place.served))
    place.must(not served.hung and not alone.hung, "hangs")
    place.must(served.code != 0, "exit code 0")
    place.must(served.code == alone.code, f"exit code {served.code}, alone {alone.code}")
    states = [log["state"] for log in served.logs]
    place.must(states == ["running"], f"states of the logs: {states}")


def new_root(place: Place, how: str) -> Path:
    needs_root()
    root = place.directory_of(how) / "out.root"
    root.mkdir()
    return root


def must_lack_engine(place: Place, *words: str) -> None:
    """The job ends with the message and the remedy, and nobody hangs."""
    options = Options(require=False, environment={"PENSTOCK_ALL_RANKS": "1"})
    out = place.served(*words, options=options)
    place.must(not out.hung, "hangs")
    place.must(out.code != 0, "exit code 0")
    for said in ("penstock: the engine cannot be loaded", "run with --method off"):
        place.must(said in out.errors, f"says {out.errors!r}, and not {said!r}")


def a_new_root_before_the_first_call(place: Place) -> None:
    """The engine is not below it: that is said; with --method off a job ends as it does alone."""
    new_root(place, "served")
    must_lack_engine(place, "early-root", "@/out")
    new_root(place, "alone")
    new_root(place, "off")
    alone = place.alone("early-root", "@/out")
    off = place.start("off", ["early-root", "@/out"], Options(method="off", require=False))
    if place.site.bench.mpi.family == "mpich":  # Open MPI loads parts of itself at its first open
        place.must_be_content(alone, "alone")
    told = [
        [x for x in out.output.splitlines() if x.startswith("result")] + [f"exit code {out.code}"]
        for out in (alone, off)
    ]
    place.must_be_same("with --method off: results", *told)


def a_new_root_before_the_first_open(place: Place) -> None:
    """After another MPI-IO call the engine is there, and the log is below the new root."""
    root, here = new_root(place, "served"), place.directory_of("served")
    new_root(place, "alone")
    alone = program_problems(place.alone("asked-root", "@/out"))
    if alone and place.site.bench.mpi.family == "openmpi":
        raise FailsAloneError("Open MPI loads parts of itself at its first open")
    place.problems += [f"alone: {problem}" for problem in alone]
    out = place.served("asked-root", "@/out", options=Options(log_dir=False))
    place.must_be_content(out, "served")
    place.must("penstock: 7.8 KiB by engine" in out.errors, f"says {out.errors!r}")
    logs = [x.parent for x in place.directory.rglob("penstock-*.json")]
    place.must(logs == [root / here.relative_to("/")], f"logs lie in {logs}")


def a_new_root_while_a_file_is_open(place: Place) -> None:
    """Nothing is made below it: said once, and the log that was begun says running."""
    root = new_root(place, "served")
    out = place.served("late-root", "@/out", options=Options(log_dir=False))
    place.must_be_content(out, "served")
    place.must("penstock: 7.8 KiB by engine" in out.errors, f"says {out.errors!r}")
    said = out.errors.count("the job log cannot be written")
    place.must(said == 1, f"says {said} times that there is no log: {out.errors!r}")
    place.must("PENSTOCK_LOG_DIR" in out.errors, "the remedy is not said")
    made = [x.name for x in root.iterdir()]
    place.must(not made, f"below the new root are {made}")
    states = [log["state"] for log in out.logs]
    place.must(states == ["running"], f"states of the logs: {states}")
    data = (place.directory_of("served") / "out").read_bytes()
    want = bytes(i % 251 for i in range(4000 * RANKS))
    place.must(data == want, f"the file has {len(data)} bytes, or wrong ones")


def little_address_space(place: Place) -> None:
    """Less than the engine takes, which is 3 MiB: that is said. MPI libraries fail there too."""
    must_lack_engine(place, "little-room", "@/out", str(1 << 20))


def secure_execution(place: Place) -> None:
    """The loader drops preloads of programs that gain privileges: penstock-exec says so."""
    if os.geteuid() != 0:
        raise NotHereError("only root can give privileges to a program")
    for name, arrange, said in (
        ("setuid", ["chmod", "4755"], "set-user-id programs take no preloaded library"),
        (
            "capable",
            [needs("setcap"), "cap_net_raw+ep"],
            "programs with file capabilities take no preloaded library",
        ),
    ):
        copy = place.directory / name
        shutil.copy(place.site.program, copy)
        done = subprocess.run([*arrange, str(copy)], capture_output=True, check=False, timeout=20)
        if done.returncode != 0:
            raise NotHereError(f"{' '.join(arrange)} is not possible here")
        must_run_unserved(place, copy, said)


def must_run_unserved(place: Place, program: Path, said: str) -> None:
    command = [needs("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    command += [str(place.site.bench.penstock_exec), "--method", "two_phase"]
    env = {"PATH": os.environ["PATH"]} | place.site.bench.mpi.environment()
    for options, code in (([], 0), (["--require"], 2)):
        words = [*command, *options, str(program), "descriptors"]
        done = subprocess.run(
            words, env=env, capture_output=True, text=True, timeout=30, check=False
        )
        what = f"{program.name} {options}"
        place.must(done.returncode == code, f"{what}: exit code {done.returncode}, not {code}")
        place.must(done.stderr.count(said) == 1, f"{what}: says {done.stderr!r}")
        place.must(program.name in done.stderr, f"{what}: the program is not named")


def marks_that_change_nothing(place: Place) -> None:
    """What is set-user-id for who starts it anyway gains nothing, and is served."""
    copy = place.directory / "own"
    shutil.copy(place.site.program, copy)
    copy.chmod(0o6755)
    command = [str(place.site.bench.penstock_exec), "--require", str(copy), "descriptors"]
    env = {"PATH": os.environ["PATH"]} | place.site.bench.mpi.environment()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    place.must("take no preloaded" not in done.stderr, f"says {done.stderr!r}")
    place.must(done.returncode == 0, f"exit code {done.returncode}")


PROCESS_CASES = (
    state_is_left_alone,
    decimal_comma,
    children_get_no_descriptor,
    descriptors_are_given_back,
    forked_children_end_quietly,
    another_preload_stays,
    closed_standard_streams,
    a_file_as_descriptor_2,
    tools_end_their_work,
    few_descriptors,
    a_killed_rank_ends_the_job,
    a_new_root_before_the_first_call,
    a_new_root_before_the_first_open,
    a_new_root_while_a_file_is_open,
    little_address_space,
    secure_execution,
    marks_that_change_nothing,
)
