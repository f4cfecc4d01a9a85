"""What files must look like afterwards: mode, owner, and names that do not fit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from place import Options, Place, needs, needs_root, with_mounts


def shape(path: Path) -> str:
    if not path.exists():
        return "not there"
    st = path.stat()
    return f"{stat.S_IMODE(st.st_mode):04o} {st.st_uid}:{st.st_gid} {st.st_size} bytes"


def modes_are_the_library_s(place: Place) -> None:
    """The umask is obeyed as the MPI library does; nobody changes an existing file's mode."""
    for mask in ("000", "022", "077"):
        options = Options(wrap=["sh", "-c", f'umask {mask}; exec "$@"', "sh"])
        shapes = []
        for start, how in ((place.alone, "alone"), (place.served, "served")):
            existing = place.directory_of(how) / f"existing{mask}"
            existing.write_bytes(b"")
            existing.chmod(0o604)
            out = start("write", f"@/new{mask}", options=options)
            place.must_be_content(out, how)
            place.must_be_content(start("write", f"@/existing{mask}", options=options), how)
            new = existing.with_name(f"new{mask}")
            shapes.append([f"new {shape(new)}", f"existing {shape(existing)}"])
        place.must_be_same(f"modes under umask {mask}", *shapes)
        place.must(shapes[1][1].startswith("existing 0604 "), f"not kept: {shapes[1][1]}")


def logs_are_the_owner_s_alone(place: Place) -> None:
    """A log names paths and rates: others need not read it, whatever the umask."""
    options = Options(wrap=["sh", "-c", 'umask 000; exec "$@"', "sh"], log_dir=False)
    out = place.served("write", "@/out", options=options)
    place.must_serve(out)
    modes = [shape(x)[:4] for x in place.directory_of("served").glob("penstock-*.json")]
    place.must(modes == ["0600"], f"modes of the logs: {modes}")
    left = [x.name for x in place.directory_of("served").iterdir() if x.name.startswith(".")]
    place.must(not left, f"left behind: {left}")


def names_that_do_not_fit(place: Place) -> None:
    """A component of 255 bytes and a path just below PATH_MAX work or fail as alone."""
    for length in (255, 256):
        results = []
        for start, how in ((place.alone, "alone"), (place.served, "served")):
            out = start("result", "@/" + "n" * length, options=Options(require=False))
            place.must(not out.hung, f"{how}: hangs with a name of {length}")
            told = [x for x in out.output.splitlines() if x.startswith("opening")]
            files = sorted(x.stat().st_size for x in place.directory_of(how).iterdir())
            results.append([*told, f"files {files}", f"exit code {out.code}"])
        place.must_be_same(f"a name of {length} bytes", *results)


def paths_near_the_limit(place: Place) -> None:
    """Not 4095 bytes, the longest there is: MPICH hangs on it, also alone."""
    for length in (4000, 4096):
        results = []
        for start, how in ((place.alone, "alone"), (place.served, "served")):
            path = deep_path(place.directory_of(how), length)
            out = start("result", path, options=Options(require=False))
            place.must(not out.hung, f"{how}: hangs with a path of {length}")
            told = [x for x in out.output.splitlines() if x.startswith("opening")]
            results.append([*told, f"exit code {out.code}"])
        place.must_be_same(f"a path of {length} bytes", *results)


def deep_path(directory: Path, length: int) -> str:
    """A path of exactly ``length`` bytes whose directories exist."""
    base = str(directory)
    while len(base) + 202 < length:
        base += "/" + "d" * 199
        os.makedirs(base, exist_ok=True)  # noqa: PTH103 - a str is what has the length
    return base + "/" + "f" * (length - len(base) - 1)


def a_file_system_of_each_rank(place: Place) -> None:
    """Where one name is another file on each rank, every rank's bytes are in its own."""
    said = ""
    for start, how in ((place.alone, "alone"), (place.served, "served")):
        own = place.directory_of(how) / "own"
        own.mkdir()
        script = f"mount -t tmpfs none '{own}' && touch '{own}/out'"
        options = Options(wrap=with_mounts(script), require=False)
        out = start("own-files", "@/own/out", options=options)
        place.must_be_content(out, how)
        said = out.errors
    place.must("ranks see different files under this name" in said, f"says {said!r}")


def as_another_user(place: Place) -> None:
    """Without root, in that user's directory, with the log where such a user finds it."""
    needs_root()
    before = [needs("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    variables = {"HOME": str(place.directory), "USER": "nobody"}
    for how in ("alone", "served"):
        os.chown(place.directory_of(how), 65534, 65534)
    options = Options(before=before, environment=variables, log_dir=False)
    place.must_be_content(place.alone("write", "@/out", options=options), "alone")
    place.must_serve(place.served("write", "@/out", options=options))
    shapes = [[shape(place.directory_of(how) / "out")] for how in ("alone", "served")]
    place.must_be_same("files", *shapes)
    place.must(" 65534:65534 " in shapes[1][0], f"not that user's: {shapes[1][0]}")


def configuration_of_others_is_refused(place: Place) -> None:
    """On the ranks: said once, obeyed by none, and fatal only with --require."""
    needs_root()
    for mode, owner, remedy in ((0o664, 0, "chmod go-w"), (0o644, 65534, "belongs to user 65534")):
        file = place.directory_of("served") / "penstock.toml"
        file.write_text("method = 'individual'\n")
        file.chmod(mode)
        os.chown(file, owner, owner)
        loose = place.served("write", "@/out", options=Options(require=False))
        place.must_be_content(loose, "served")
        told = [x for x in loose.errors.splitlines() if x.startswith("penstock: configuration")]
        place.must(len(told) == 1, f"said {len(told)} times: {loose.errors!r}")
        place.must(all(remedy in x and str(file) in x for x in told), f"says {told}")
        place.must("penstock: 0 B by engine" in loose.errors, "taken over all the same")
        strict = place.served("write", "@/out", options=Options(require=True))
        place.must(strict.code != 0 and not strict.hung, f"--require: exit code {strict.code}")
        file.unlink()


FILE_CASES = (
    modes_are_the_library_s,
    logs_are_the_owner_s_alone,
    names_that_do_not_fit,
    paths_near_the_limit,
    a_file_system_of_each_rank,
    as_another_user,
    configuration_of_others_is_refused,
)
