"""Reads test runners' JUnit reports and the list of skips that are foreseen."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


# What a line of the list may demand of the machine before its skip is foreseen.
def private_checkout() -> bool:
    """Whether other users cannot reach this checkout (one below root's home, say)."""
    here = Path(__file__).resolve()
    return any(not parent.stat().st_mode & 0o001 for parent in here.parents)


def linux() -> tuple[int, ...]:
    """The kernel's version: (6, 1)."""
    return tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])


def temporary_type() -> str:
    """The type of the file system of the temporary directory, as stat(1) names it."""
    stat = ["stat", "-f", "-c", "%T", tempfile.gettempdir()]
    return subprocess.run(stat, capture_output=True, text=True, check=False).stdout.strip()


def without_cold_files() -> bool:
    """Whether no file in the temporary directory goes past the page cache when memory is cold."""
    return linux() < (6, 5) or temporary_type() in {"overlayfs", "ramfs", "zfs"}


def without_disk() -> bool:
    """Whether the temporary directory or this checkout lies on no disk that the kernel counts."""
    return any(os.major(Path(p).stat().st_dev) == 0 for p in (tempfile.gettempdir(), __file__))


def no_namespaces() -> bool:
    """Whether this process may make no namespaces of mounts and networks."""
    one_of_users = [] if os.geteuid() == 0 else ["--map-root-user"]
    made = subprocess.run(
        ["unshare", *one_of_users, "--mount", "--net", "true"], capture_output=True, check=False
    )
    return made.returncode != 0


def small_shared_memory() -> bool:
    """Whether segments that are kept would be less than two ranks' share."""
    free = os.statvfs("/dev/shm")  # noqa: S108
    return free.f_bavail * free.f_frsize < 512 * 2**20


CONDITIONS: dict[str, Callable[[], bool]] = {
    "always": lambda: True,
    "not-root": lambda: os.geteuid() != 0,
    "private-checkout": private_checkout,
    "no-tmpfs-mount": lambda: os.geteuid() != 0 or not can_mount(),
    "before-linux-6.3": lambda: linux() < (6, 3),
    "before-linux-6.5": lambda: linux() < (6, 5),
    "not-on-ext4": lambda: temporary_type() != "ext2/ext3",
    "no-cold-files": without_cold_files,
    "no-disk": without_disk,
    "small-shm": small_shared_memory,
    "no-namespaces": no_namespaces,
    "no-lmod": lambda: not Path("/etc/profile.d/lmod.sh").exists(),
    "no-chromium": lambda: not (shutil.which("chromium") or shutil.which("chromium-browser")),
}


@dataclass(frozen=True)
class Case:
    """One test case: `state` is passed, failed or skipped; `reason` of a failure may be lines."""

    name: str
    state: str
    reason: str = ""


@dataclass(frozen=True)
class Foreseen:
    """A skip that may happen, and why that is acceptable."""

    condition: str
    step: str
    pattern: str
    why: str

    def covers(self, step: str, case: Case) -> bool:
        """Whether this entry foresees that skip, on this machine."""
        here = fnmatch.fnmatchcase(step.replace(" ", "-"), self.step)
        return (
            here and fnmatch.fnmatchcase(case.name, self.pattern) and CONDITIONS[self.condition]()
        )


def can_mount() -> bool:
    """Whether this process has CAP_SYS_ADMIN (containers' root often has not)."""
    match = re.search(
        r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    return bool(match and int(match.group(1), 16) >> 21 & 1)


def read_foreseen(path: Path) -> list[Foreseen]:
    """The list: CONDITION STEP PATTERN WHY... per line. A line that says less is an error."""
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=3)
        if len(words) < 4 or words[0] not in CONDITIONS:
            raise SystemExit(
                f"{path.name}:{number}: expected CONDITION STEP PATTERN WHY, where CONDITION is "
                f"one of {', '.join(CONDITIONS)}; got: {line}"
            )
        entries.append(Foreseen(*words))
    return entries


def state_of(case: ElementTree.Element) -> tuple[str, str]:
    """The state of a <testcase> and the reason, from pytest's or ctest's dialect."""
    skipped = case.find("skipped")
    if skipped is not None or case.get("status") in {"notrun", "disabled"}:
        said = (skipped.get("message") or "") if skipped is not None else ""
        return "skipped", spoken_reason(case) or said or case.get("status", "")
    failed = case.find("failure") is not None or case.find("error") is not None
    if failed or case.get("status") == "fail":
        return "failed", what_failed(case)
    return "passed", ""


def what_failed(case: ElementTree.Element, most: int = 15) -> str:
    """What a failed case said, `most` lines: from a suite's ``FAILED CASE`` on, or the last."""
    said = [case.findtext(part) or "" for part in ("failure", "error", "system-out")]
    lines = "\n".join(text.rstrip() for text in said if text.strip()).splitlines()
    named = [number for number, line in enumerate(lines) if line.startswith("FAILED ")]
    return "\n".join(lines[named[0] :][:most] if named else lines[-most:])


def spoken_reason(case: ElementTree.Element) -> str:
    """What a ctest case printed about its skip: ctest itself only knows the exit code."""
    output = case.findtext("system-out") or ""
    lines = [line.strip() for line in output.splitlines() if re.search(r"(?i)\bskip", line)]
    return lines[0] if lines else ""


def read_suite(output: str) -> list[Case]:
    """The cases of a suite that prints its failures, its skips and the counts; none without counts.

    Of what passed the output tells only how many.
    """
    counts = re.findall(r"^(.+): (\d+) passed, (\d+) failed, \d+ skipped", output, re.MULTILINE)
    if not counts:
        return []
    name, passed, failed = counts[-1][0], int(counts[-1][1]), int(counts[-1][2])
    cases = [Case(f"{name}.{i}", "passed") for i in range(passed)]
    broken = re.findall(r"^FAILED (.+)$", output, re.MULTILINE)
    broken += ["without a name"] * (failed - len(broken))
    cases += [Case(f"{name}: {case}", "failed") for case in broken]
    skips = re.findall(r"^SKIPPED (.+?): (.+)$", output, re.MULTILINE)
    return cases + [Case(f"{name}: {case}", "skipped", why) for case, why in skips]


def skips_inside(case: ElementTree.Element) -> list[Case]:
    """What a suite that is one ctest case left out, by its lines ``SKIPPED CASE: WHY``."""
    output = case.findtext("system-out") or ""
    lines = re.findall(r"^SKIPPED (.+?): (.+)$", output, re.MULTILINE)
    return [Case(f"{case.get('name', '')}: {name}", "skipped", why) for name, why in lines]


def read_junit(path: Path) -> list[Case]:
    """The cases of a report; none when there is no whole report."""
    try:
        root = ElementTree.parse(path).getroot()  # noqa: S314  (we wrote it)
    except (OSError, ElementTree.ParseError):
        return []
    cases = []
    for case in root.iter("testcase"):
        state, reason = state_of(case)
        cases.append(Case(f"{case.get('classname', '')}.{case.get('name', '')}", state, reason))
        if state == "passed":
            cases += skips_inside(case)
    return cases
