"""Starting: the launcher, the program, the options."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from provocation import Bench, NotHereError, Provocation, in_path

RUN = "penstock run --"


def wrote(name: str, text: str, mode: int = 0o644) -> Callable[[Bench, Path], None]:
    """A file in the directory."""

    def arrange(bench: Bench, directory: Path) -> None:
        del bench
        (directory / name).write_text(text)
        (directory / name).chmod(mode)

    return arrange


def compiled(source: str, *options: str, compiler: str = "cc") -> Callable[[Bench, Path], None]:
    """A program ``app`` in the directory."""

    def arrange(bench: Bench, directory: Path) -> None:
        del bench
        if shutil.which(compiler) is None:
            raise NotHereError(f"no {compiler}")
        (directory / "app.c").write_text(source)
        command = [compiler, "app.c", "-o", "app", *options]
        made = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=120
        )
        if made.returncode != 0:
            raise NotHereError(f"{' '.join(command)}: {made.stderr.splitlines()[:1]}")

    return arrange


def unknown_mpi(bench: Bench, directory: Path) -> None:
    library = directory / "libmpi.so.20"
    compiled(
        "int MPI_Init(void) { return 0; }\n", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"
    )(bench, directory)
    (directory / "app").rename(library)
    main = "int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n"
    compiled(main, str(library), f"-Wl,-rpath,{directory}")(bench, directory)


def static_mpi(bench: Bench, directory: Path) -> None:
    """A program with MPICH's archive inside, other libraries shared; as sites link."""
    main = (
        "#include <mpi.h>\nint main(int c, char** v) {\n  MPI_File f = MPI_FILE_NULL;\n"
        "  MPI_Init(&c, &v);\n  if (c > 5) MPI_File_close(&f);\n  return MPI_Finalize();\n}\n"
    )
    found = subprocess.run(
        ["mpicc.mpich", "-print-file-name=libmpich.a"], capture_output=True, text=True, check=False
    )
    archive = found.stdout.strip()
    if not Path(archive).is_file():
        raise NotHereError("no libmpich.a")
    shown = subprocess.run(["mpicc.mpich", "-show"], capture_output=True, text=True, check=False)
    include = [x for x in shown.stdout.split() if x.startswith("-I")]
    libraries = [f"-l:{x}" for x in shared_needs(Path(archive).with_suffix(".so"))]
    compiled(main, *include, archive, *libraries)(bench, directory)


def shared_needs(library: Path) -> list[str]:
    shown = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=False, timeout=20
    )
    lines = [x for x in shown.stdout.splitlines() if "(NEEDED)" in x]
    return [x.split("[")[1].rstrip("]") for x in lines]


def secure(bench: Bench, directory: Path) -> None:
    """Of another group, which it gains."""
    if os.geteuid() != 0:
        raise NotHereError("only root can give a program away")
    shutil.copy(bench.copies / "writer.mpich", directory / "app")
    os.chown(directory / "app", -1, 65534)
    (directory / "app").chmod(0o2755)


BOTH = in_path("mpiexec.mpich", "mpiexec.openmpi")
NOWHERE = {"PATH": "@/nothing"}
SCRIPT = "$MESSAGES_SCRIPT"  # the path of `penstock`, for cases without PATH

START = [
    Provocation("Help", "penstock", 2, ["Usage: penstock"], shown="`penstock` alone"),
    Provocation("Help", "penstock --help", 0, ["Usage: penstock"]),
    Provocation("Help", "penstock --version", 0, ["penstock <version>"]),
    Provocation("Help", "penstock-exec", 2, ["no program given", "penstock-exec --help"]),
    Provocation("Help", "penstock run", 2, ["there is no command", "penstock run -- mpiexec"]),
    Provocation("Help", "penstock rnu -- ls", 2, ["rnu", "run"]),
    Provocation("Help", "penstock ./app", 2, ["./app", "penstock -h"]),
    Provocation("Help", "penstock run --metod two_phase -- ls", 2, ["--metod", "--method"]),
    Provocation("Help", "penstock-exec --metod two_phase ls", 2, ["--metod", "--help"]),
    Provocation("Help", "penstock-exec --method", 2, ["--method", "value"]),
    Provocation("Help", "penstock run -n 4 ./app", 2, ["-n"]),
    Provocation(
        "MPI",
        f"{SCRIPT} run -- mpiexec -n 2 ./app",
        127,
        ["mpiexec", "PATH", "module"],
        shown="no MPI in `PATH`: `penstock run -- mpiexec -n 2 ./app`",
        environment=NOWHERE,
    ),
    Provocation(
        "MPI",
        f"{SCRIPT} env",
        127,
        ["no mpiexec or mpirun", "--mpi mpich"],
        shown="no MPI in `PATH`: `penstock env`",
        environment=NOWHERE,
    ),
    Provocation(
        "MPI",
        "penstock env > /dev/null",
        0,
        ["preloading for ", "--mpi chooses another"],
        shown="two MPIs are installed: `penstock env`",
        arrange=BOTH,
    ),
    Provocation("MPI", "penstock env --mpi opnmpi", 2, ["opnmpi", "openmpi"]),
    Provocation(
        "MPI",
        "mpiexec.openmpi --oversubscribe --bind-to none -n 2 penstock-exec writer.mpich out",
        0,
        ["built for MPICH", "launcher of Open MPI", "its own mpiexec"],
        shown="a program of MPICH under Open MPI's `mpiexec`",
        arrange=BOTH,
        once=False,
    ),
    Provocation(
        "MPI",
        "mpiexec.mpich -n 2 penstock-exec writer.openmpi out",
        0,
        ["built for Open MPI", "launcher of MPICH", "its own mpiexec"],
        shown="a program of Open MPI under MPICH's `mpiexec`",
        arrange=BOTH,
        once=False,
    ),
    Provocation(
        "MPI",
        "mpiexec.mpich -n 2 penstock-exec --mpi openmpi writer.mpich out",
        0,
        ["openmpi", "--mpi mpich", "MPI library"],
        shown="`--mpi openmpi` for a program of MPICH",
        arrange=BOTH,
    ),
    Provocation("MPI", "penstock-exec --mpi lam ./app", 2, ["lam", "mpich, openmpi or abi"]),
    Provocation(
        "MPI",
        "penstock-exec ./app",
        0,
        ["libmpi.so.20", "no build for", "without Penstock"],
        shown="a program of an MPI library that nobody knows (`libmpi.so.20`)",
        arrange=unknown_mpi,
    ),
    Provocation("MPI", f"{RUN} mpiexce -n 2 ./app", 127, ["mpiexce", "mpiexec"]),
    Provocation(
        "MPI", f"{RUN} mpiexec.mpich --nonsense 1 -n 2 ls", 2, ["nonsense", "penstock-exec"]
    ),
    Provocation("MPI", f"{RUN} mpiexec.mpich -n 2", 2, ["no program", "-n 2"]),
    Provocation(
        "MPI", f"{RUN} mpiexec.mpich -configfile jobs", 2, ["-configfile", "penstock-exec"]
    ),
    Provocation("Program", f"{RUN} mpiexec.mpich -n 2 ./app", 127, ["./app", "no such file"]),
    Provocation("Program", "penstock-exec --mpi mpich ./app", 127, ["./app", "no such program"]),
    Provocation(
        "Program",
        f"{RUN} mpiexec.mpich -n 2 ./app",
        126,
        ["./app", "chmod +x"],
        shown="the program may not be executed: `penstock run`",
        arrange=wrote("app", "#!/bin/sh\n"),
    ),
    Provocation(
        "Program",
        "penstock-exec --mpi mpich ./app",
        126,
        ["./app", "chmod +x"],
        shown="the program may not be executed: `penstock-exec ./app`",
        arrange=wrote("app", "#!/bin/sh\n"),
    ),
    Provocation("Program", f"{RUN} mpiexec.mpich -n 2 /etc", 126, ["/etc", "directory"]),
    Provocation("Program", f"{RUN} ls", 2, ["which MPI", "mpiexec", "--mpi mpich"]),
    Provocation("Program", f"{RUN} mpiexec.mpich -n 2 ls", 0, [], silent=True),
    Provocation(
        "Program",
        f"{RUN} mpiexec.mpich -n 2 ./app",
        0,
        ["2.0 MiB by engine"],
        shown="a script that starts the program",
        arrange=wrote("app", "#!/bin/sh\nexec writer.mpich out\n", 0o755),
    ),
    Provocation(
        "Program",
        "penstock-exec ./app",
        0,
        ["statically linked", "without Penstock"],
        shown="a static program",
        arrange=compiled("int main(void) { return 0; }\n", "-static"),
    ),
    Provocation(
        "Program",
        "penstock run -- mpiexec.mpich -n 2 ./app",
        0,
        ["statically linked", "without Penstock"],
        shown="two ranks of a static program",
        arrange=compiled("int main(void) { return 0; }\n", "-static"),
    ),
    Provocation(
        "Program",
        "penstock-exec ./app",
        0,
        ["MPI library is linked statically", "link it with the shared"],
        shown="a program with its MPI library inside",
        arrange=static_mpi,
    ),
    Provocation(
        "Program",
        "penstock-exec --require ./app",
        2,
        ["statically linked", "not started", "--require"],
        shown="a static program, with `--require`",
        arrange=compiled("int main(void) { return 0; }\n", "-static"),
    ),
    Provocation(
        "Program",
        "penstock-exec ./app out",
        0,
        ["set-user-id", "without Penstock"],
        shown="a set-user-id program",
        arrange=secure,
    ),
]
