"""The doctor: it finds what is there, names what is to be mended, and needs nothing itself."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import doctor
from penstock.doctor import ask, machine, mpis, storage
from penstock.doctor.finding import Finding
from penstock.errors import ArgumentError
from support import Cli

FAKE_MPI = """
#include <string.h>
int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "VERSION"); *length = (int)strlen(text); return 0;
}
"""


def texts(findings: list[Finding] | tuple[Finding, ...], topic: str) -> str:
    return "\n".join(f"{f.level}: {f.text}" for f in findings if f.topic == topic)


@pytest.fixture
def bare(tmp_path: Path, native_dir: Path) -> dict[str, str]:
    """Variables of a machine without any MPI in PATH or LD_LIBRARY_PATH."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    return {
        "PATH": str(nothing),
        "HOME": str(tmp_path),
        "PENSTOCK_NATIVE_DIR": str(native_dir),
    }


def fake_mpi(directory: Path, soname: str, version: str) -> Path:
    """A library that calls itself an MPI."""
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "fake.c"
    source.write_text(FAKE_MPI.replace("VERSION", version))
    library = directory / soname
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize(
    ("soname", "version", "family"),
    [
        ("libmpi.so.12", "Intel(R) MPI Library 2021.17", "mpich"),
        ("libmpi.so.40", "Open MPI v5.0.9, package: whoever", "openmpi"),
        ("libmpi_abi.so.0", "MPICH Version: 5.0.0", "abi"),
        ("libmpi.so.99", "Fog MPI 1", ""),
        ("libmpi.so.20", "Open MPI v3.1.6", ""),  # as penstock-exec has it
        ("libmpi.so.400", "Open MPI v9", ""),
        ("libmpich.so.10", "MPICH Version: 3.0.4", "mpich"),
    ],
)
def test_a_library_is_known_by_its_name_and_asked_for_its_version(
    tmp_path: Path, bare: dict[str, str], soname: str, version: str, family: str
) -> None:
    library = fake_mpi(tmp_path / "lib", soname, version)
    environ = bare | {"LD_LIBRARY_PATH": str(library.parent)}
    found = next(x for x in mpis.find_libraries(environ) if x.path == library)
    assert found.family == family
    assert found.version == version.partition(", package")[0]


def test_modules_in_the_working_directory_are_not_ours(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = fake_mpi(tmp_path / "lib", "libmpi.so.12", "MPICH Version: 4.0")
    (tmp_path / "ctypes.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    environ = bare | {"LD_LIBRARY_PATH": str(library.parent)}
    found = next(x for x in mpis.find_libraries(environ) if x.path == library)
    assert found.version == "MPICH Version: 4.0"
    assert not (tmp_path / "imported").exists()


def test_an_open_mpi_that_penstock_exec_does_not_serve_is_not_told_as_served(
    tmp_path: Path, bare: dict[str, str], native_dir: Path
) -> None:
    library = fake_mpi(tmp_path / "lib", "libmpi.so.20.10.1", "Open MPI v3.0.0")
    (library.parent / "libmpi.so.20").symlink_to(library.name)
    (native_dir / "penstock-engine-openmpi.so").touch()
    told = texts(mpis.examine(bare | {"LD_LIBRARY_PATH": str(library.parent)}), "mpi")
    assert f"warn: Open MPI v3.0.0 ({library}): its binary interface is not known" in told


def test_each_library_is_told_with_its_build_or_why_there_is_none(
    tmp_path: Path, bare: dict[str, str], native_dir: Path
) -> None:
    fake_mpi(tmp_path / "a", "libmpi.so.40", "Open MPI v9")
    fake_mpi(tmp_path / "b", "libmpi_abi.so.0", "ABI MPI")
    (native_dir / "penstock-engine-openmpi.so").touch()
    environ = bare | {"LD_LIBRARY_PATH": f"{tmp_path / 'a'}:{tmp_path / 'b'}"}
    told = texts(mpis.examine(environ), "mpi")
    assert f"ok: Open MPI v9 ({tmp_path}/a/libmpi.so.40): served by the openmpi build" in told
    assert "warn: ABI MPI" in told
    assert "there is no abi build of Penstock (libpenstock-abi.so is missing)" in told


def test_a_library_that_crashes_when_it_is_asked_harms_nobody(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    library = tmp_path / "lib" / "libmpi.so.40"
    library.parent.mkdir()
    library.write_bytes(b"not a library")
    environ = bare | {"LD_LIBRARY_PATH": str(library.parent)}
    assert "does not tell its version" in texts(mpis.examine(environ), "mpi")


def test_launcher_and_compiler_of_different_libraries_are_pointed_at(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    for name, says in (("mpiexec", "HYDRA build details"), ("mpicc", "mpicc: Open MPI 5.0.9")):
        tool = tmp_path / "nothing" / name
        tool.write_text(f"#!/bin/sh\necho '{says}'\n")
        tool.chmod(0o755)
    findings = mpis.examine(bare)
    told = texts(findings, "launcher")
    assert "is of mpich, but" in told
    assert "compiles for openmpi" in told
    assert "nothing/mpicc: mpicc: Open MPI 5.0.9" in texts(findings, "compiler")


def test_every_launcher_in_path_is_told_once(tmp_path: Path, bare: dict[str, str]) -> None:
    for name, says in (
        ("mpiexec", "mpiexec (OpenRTE) 4.1.4"),
        ("mpirun", "mpiexec (OpenRTE) 4.1.4"),
        ("mpiexec.mpich", "HYDRA build details:\\n    Version: 4.0.2"),
    ):
        tool = tmp_path / "nothing" / name
        tool.write_text(f"#!/bin/sh\nprintf '{says}\\n'\n")
        tool.chmod(0o755)
    told = texts(mpis.examine(bare), "launcher").splitlines()
    assert told == [
        f"ok: {tmp_path}/nothing/mpiexec: mpiexec (OpenRTE) 4.1.4",
        f"note: {tmp_path}/nothing/mpiexec.mpich: HYDRA build details: Version: 4.0.2",
    ]


def test_libraries_of_which_none_is_served_are_a_problem(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only = mpis.Library(tmp_path / "libmpi_abi.so.1", "ABI MPI", "abi")
    monkeypatch.setattr(mpis, "find_libraries", lambda _: [only])
    assert "problem: none of these libraries is served" in texts(mpis.examine(bare), "mpi")


def test_without_any_mpi_or_build_the_remedies_are_named(
    tmp_path: Path, bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "output", lambda *_: "")  # not even ldconfig knows one
    report = doctor.examine(tmp_path, bare | {"PENSTOCK_NATIVE_DIR": str(tmp_path / "nothing")})
    assert not report.good
    assert "problem: no MPI library" in texts(report.findings, "mpi")
    assert "problem: penstock-exec is not in" in texts(report.findings, "penstock")
    assert "warn: no mpiexec or mpirun" in texts(report.findings, "launcher")
    assert all(f.remedy for f in report.findings if f.level == "problem")


def test_the_directory_is_described_and_left_as_it_was(tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    findings = storage.examine(tmp_path)
    assert findings[0].values["type"]
    assert findings[0].values["unit_bytes"] >= 512
    assert findings[1].values["free_bytes"] > 0
    assert findings[2].topic == "direct I/O"
    assert sorted(tmp_path.iterdir()) == before


def test_direct_writes_that_reads_do_not_see_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_write_and_read", lambda _, byte: byte == ord("a"))
    told = storage.examine(tmp_path)[2]
    assert told.level == "note"
    assert "reads on this mount do not see them" in told.text


def test_what_no_directory_can_be_examined_is_an_argument_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ArgumentError, match=r"mkdir -p .*/missing"):
        doctor.examine(tmp_path / "missing")
    with pytest.raises(ArgumentError, match=r"mkdir -p '.*/my data'"):
        doctor.examine(tmp_path / "my data")
    with pytest.raises(ArgumentError, match=r"got the file .*/file"):
        doctor.examine(file)


def test_a_directory_that_may_not_be_written_has_to_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(storage.tempfile, "mkstemp", refuse)
    finding = storage.examine(tmp_path)[-1]
    assert finding.level == "problem"
    assert "Read-only file system" in finding.text
    assert "directory that your programs write into" in finding.remedy
    assert not doctor.examine(tmp_path).good


@pytest.mark.usefixtures("full_disk")
def test_a_directory_that_takes_no_bytes_has_to_be_mended(tmp_path: Path) -> None:
    finding = storage.examine(tmp_path)[-1]
    assert (finding.level, finding.topic) == ("problem", "directory")
    assert finding.text == f"no file can be written in {tmp_path} (File too large)"
    assert "ulimit -f" in finding.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_quota_that_is_told_late_has_to_be_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", refuse)
    finding = storage.examine(tmp_path)[-1]
    assert (finding.level, finding.values["errno"]) == ("problem", errno.EDQUOT)
    assert "Disk quota exceeded" in finding.text


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.ENOMEM])
def test_why_io_uring_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(machine, "_try_io_uring", lambda: (False, number))
    (tmp_path / "sys" / "kernel").mkdir(parents=True)
    (tmp_path / "sys" / "kernel" / "io_uring_disabled").write_text("2\n")
    finding = machine.examine(tmp_path, tmp_path)[0]
    words = {errno.EPERM: "kernel.io_uring_disabled=2", errno.ENOSYS: "does not have it"}
    assert finding.level == "note"
    assert words.get(number, "Cannot allocate memory") in finding.text


def test_the_least_limit_of_all_memory_groups_counts(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("4:memory:/job/step\n0::/a/b\n")
    for group, name, value in (
        ("a/b", "memory.max", "max"),
        ("a", "memory.max", str(2**30)),
        ("memory/job", "memory.limit_in_bytes", str(2**29)),
        ("memory", "memory.limit_in_bytes", "9223372036854771712"),
    ):
        (cgroups / group).mkdir(parents=True, exist_ok=True)
        (cgroups / group / name).write_text(value + "\n")
    assert machine.memory_limit(proc, cgroups) == 2**29


def test_how_much_may_be_dirty_follows_ratio_or_bytes(tmp_path: Path) -> None:
    vm = tmp_path / "sys" / "vm"
    vm.mkdir(parents=True)
    (tmp_path / "meminfo").write_text("MemAvailable:    1048576 kB\n")
    for name, value in (("dirty_ratio", 20), ("dirty_bytes", 0)):
        (vm / name).write_text(f"{value}\n")
    for name, value in (("dirty_background_ratio", 0), ("dirty_background_bytes", 4096)):
        (vm / name).write_text(f"{value}\n")
    findings = {f.topic: f for f in machine.examine(tmp_path, tmp_path)}
    assert findings["write-back"].values == {
        "dirty_bytes": 2**30 * 20 // 100,
        "background_bytes": 4096,
    }


def test_a_wrong_configuration_is_a_problem_named_once(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty" / "penstock.toml").write_text("quite = true\n")
    done = cli("doctor", "--json", PENSTOCK_METHD="x")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    wrong = [f for f in told["findings"] if f["level"] == "problem"]
    assert sum('did you mean "quiet"?' in f["text"] for f in wrong) == 1
    assert told["good"] is False


def test_the_configuration_is_that_of_a_job_that_is_started_here(cli: Cli, tmp_path: Path) -> None:
    here, written = tmp_path / "empty", tmp_path / "written"
    written.mkdir()
    (here / "penstock.toml").write_text("quiet = true\n")
    (written / "penstock.toml").write_text("quite = true\n")
    told = json.loads(cli("doctor", "--json", str(written)).stdout)
    texts = [f["text"] for f in told["findings"] if f["topic"] in ("configuration", "job log")]
    assert f"goes to {here}" in texts
    (read,) = (text for text in texts if "penstock.toml" in text)
    assert read.startswith(f"{here}/penstock.toml ")


def test_the_report_for_people_and_for_programs_agree(cli: Cli, tmp_path: Path) -> None:
    told = json.loads(cli("doctor", "--json").stdout)
    done = cli("doctor")
    assert done.returncode == (0 if told["good"] else 1)
    assert told["directory"] == str(tmp_path / "empty")
    for topic in {f["topic"] for f in told["findings"]}:
        assert topic in done.stdout
    missing = cli("doctor", "no/such")
    assert missing.returncode == 2
    assert missing.stderr.startswith("penstock: DIR must be a directory")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_user_with_nothing_in_a_directory_of_others_gets_a_report(tmp_path: Path) -> None:
    """No rights, no home, no PATH: run in a child, since rights given up are gone."""
    assert tmp_path.stat().st_mode & stat.S_IWOTH == 0
    code = (
        "import os, sys; from pathlib import Path; from penstock import doctor, _core;"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        "report = doctor.examine(Path('/'), {'PATH': '/nowhere'});"
        "print(sum('no file can be made in /' in f.text for f in report.findings))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(doctor.__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
