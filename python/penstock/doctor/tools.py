"""The launchers and compiler wrappers in PATH, and whether those that a plain name means agree."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock import native
from penstock.doctor import ask
from penstock.doctor.finding import Finding

_NAME = re.compile(r"(mpiexec|mpirun|mpicc)([._-]\w+)?")
FAMILY_OF_TEXT = {**native.SIGNS, "mpich": "mpich", "intel(r) mpi": "mpich", "open mpi": "openmpi"}


@dataclass(frozen=True)
class Tool:
    """A launcher or a compiler wrapper: what it says of itself, and its family ("" unknown)."""

    path: Path
    text: str
    family: str

    @property
    def compiles(self) -> bool:
        """A compiler wrapper."""
        return self.path.name.startswith("mpicc")

    @property
    def installation(self) -> tuple[bool, str, str, Path]:
        """What its other names share: mpirun is mpiexec, /bin may be /usr/bin."""
        number = re.search(r"\d+(\.\d+)+", self.text)
        version = number.group() if number else self.text
        return self.compiles, self.family, version, self.path.resolve().parent


def files(environ: Mapping[str, str]) -> Iterator[Path]:
    """Every mpiexec, mpirun and mpicc in PATH, whatever follows in its name."""
    for directory in environ.get("PATH", os.defpath).split(":"):
        try:
            entries = sorted(Path(directory).iterdir()) if directory else []
        except OSError:
            continue
        yield from (e for e in entries if _NAME.fullmatch(e.name) and os.access(e, os.X_OK))


def examine(environ: Mapping[str, str]) -> list[Finding]:
    """What plain names mean, whether they fit each other, and what else there is."""
    plain = [_plain(names, environ) for names in (("mpiexec", "mpirun"), ("mpicc",))]
    launcher, wrapper = plain
    findings = [_about(tool, "ok") for tool in plain if tool]
    if launcher is None:
        remedy = "load the MPI's module, or start jobs with srun or the like"
        findings.append(Finding("warn", "launcher", "no mpiexec or mpirun is in PATH", remedy))
    elif wrapper and launcher.family and wrapper.family not in ("", launcher.family):
        findings.append(
            Finding(
                "warn",
                "launcher",
                f"{launcher.path} is of {launcher.family}, but {wrapper.path} compiles for "
                f"{wrapper.family}",
                "a program needs the launcher of its own MPI library: name it in full, such as "
                f"mpiexec.{wrapper.family}",
            )
        )
    told = {t.installation for t in plain if t}
    for path in files(environ):
        tool = _asked(path, environ)
        if tool.installation not in told:
            told.add(tool.installation)
            findings.append(_about(tool, "note"))
    return findings


def _about(tool: Tool, level: str) -> Finding:
    topic = "compiler" if tool.compiles else "launcher"
    values = {"path": str(tool.path), "family": tool.family}
    return Finding(
        "ok" if level == "ok" else "note", topic, f"{tool.path}: {tool.text}", "", values
    )


def _plain(names: tuple[str, ...], environ: Mapping[str, str]) -> Tool | None:
    for name in names:
        if path := shutil.which(name, path=environ.get("PATH")):
            return _asked(Path(path), environ)
    return None


def _asked(path: Path, environ: Mapping[str, str]) -> Tool:
    """Open MPI's wrapper knows --showme:version; MPICH's says what it is with -v."""
    questions = ("--showme:version", "-v") if path.name.startswith("mpicc") else ("--version",)
    said = "says nothing that is known"
    for question in questions:
        lines = [
            " ".join(line.split())
            for line in ask.output([str(path), question], environ).splitlines()
        ]
        for line in lines:
            for sign, family in FAMILY_OF_TEXT.items():
                if sign in line.lower():
                    return Tool(path, _with_version(line, lines), family)
    return Tool(path, said, "")


def _with_version(line: str, lines: list[str]) -> str:
    """Hydra's first line has no number; the one that has stands below."""
    if re.search(r"\d", line):
        return line
    version = next((x for x in lines if x.lower().startswith("version")), "")
    return f"{line} {version}".strip()
