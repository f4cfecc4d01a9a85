"""What the checks run: the steps of `make check` (quick_steps) and of `make check-full`."""

from __future__ import annotations

import os
import subprocess
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "check"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
MPI = "mpi"  # the ctest label of what needs an MPI library
LAYER = "layer"  # ... and of the layers' own tests
OTHER_THAN_LAYERS = ["-E", "_NOT_BUILT$"]  # what ctest calls the programs of these where not built
JOBS = str(os.cpu_count() or 1)
ONE_MORE = str(int(JOBS) + 1)  # of jobs that wait for launchers, disks and each other


@dataclass(frozen=True)
class Step:
    """One command. Without a report it counts as one test."""

    name: str
    command: list[str]
    _: KW_ONLY
    junit: Path | None = None
    is_suite: bool = False  # it prints its cases as tests/lib/run_mpi.py's Suite does
    needs: Path | None = None  # a path without which the step cannot be
    timeout_s: int = 1200
    aside: bool = False  # beside the steps that follow
    waits: bool = False  # of a step aside: it mostly does, and keeps its priority
    after: str = ""  # the step aside that has to have ended before


def tracked(*patterns: str) -> list[str]:
    """Files that git knows and that are there, by pattern."""
    command = ["git", "ls-files", "-z", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.split("\0") if name and (ROOT / name).exists()]


def pytest_step(name: str, *arguments: str) -> Step:
    """A run of pytest with a JUnit report. Tests of `-n` processes must not meet in one place."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = [PYTHON, "-m", "pytest", "-q", f"--junitxml={junit}", *arguments]
    return Step(name, command, junit=junit, needs=ROOT / arguments[0])


def ctest_step(name: str, preset: str, *arguments: str, timeout_s: int = 1200) -> Step:
    """A run of ctest in a preset's build directory, with a JUnit report."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error"]
    # Whole outputs, because suites name in them what they skip.
    command += ["--output-junit", str(junit), "--test-output-size-passed", "1000000", *arguments]
    return Step(name, command, junit=junit, timeout_s=timeout_s)


def layers_step(name: str, preset: str, *selection: str) -> Step:
    """The layers' tests of a preset, many cases in a process."""
    junit = OUT / f"{name.replace(' ', '-')}.xml"
    command = [PYTHON, "scripts/layers.py", "--test-dir", f"build/{preset}", "-j", JOBS]
    command += ["--junit", str(junit), "--", *selection]
    return Step(name, command, junit=junit)


def asan_steps() -> list[Step]:
    """What runs under AddressSanitizer and UndefinedBehaviorSanitizer. Disks are waited for."""
    pairs = suite_step("file systems pairs", "tests/fs/product.py", "--tests", "build/asan")
    layers = layers_step("layers under asan", "asan", "-LE", "full")
    return [
        replace(layers, aside=True, after="build asan", timeout_s=2400),
        replace(pairs, aside=True, waits=True, after="build asan"),
    ]


def build_tests(name: str, preset: str) -> Step:
    """Everything of a preset, the layers' tests included."""
    command = ["scripts/build.sh", preset, "all", "layer_tests"]
    return Step(name, command, timeout_s=2400)


def suite_step(name: str, script: str, *arguments: str, timeout_s: int = 1200) -> Step:
    """A runner of ours that is no ctest case."""
    command = [PYTHON, script, "--build", "build/release", *arguments]
    return Step(name, command, is_suite=True, timeout_s=timeout_s)


def source_steps() -> list[Step]:
    """What is read and not run; beside the build, which waits for its linkers."""
    sources = tracked("*.cpp", "*.hpp", "*.c", "*.h")
    steps = [
        Step("includes", [PYTHON, "scripts/check_includes.py"]),
        Step("clang-format", ["clang-format", "--dry-run", "--Werror", *sources]),
        Step("ruff", [PYTHON, "-m", "ruff", "check", "."]),
        Step("ruff format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
        Step("codespell", [PYTHON, "-m", "codespell_lib", *tracked("*.md", "*.py", "src/*")]),
        Step("mypy", [PYTHON, "-m", "mypy"], needs=ROOT / "pyproject.toml"),
    ]
    return [replace(step, aside=True) for step in steps]


def waiting_steps() -> list[Step]:
    """What mostly waits: for daemons, browsers, full disks, launchers of pretended nodes."""
    steps = [
        suite_step("measure examples", "tests/instrument/examples.py"),
        suite_step("measure slurm", "tests/instrument/slurm.py"),
        suite_step("measure two nodes", "tests/instrument/two_nodes.py"),
        suite_step("measure full disk", "tests/instrument/full_disk.py"),
        suite_step("system calls", "tests/instrument/system_calls.py"),
        suite_step("stripes", "tests/instrument/stripes.py", "--quick"),
        crashes("openmpi", 1),
        suite_step("site openmpi", "tests/site/run.py", "--mpi", "openmpi"),
        suite_step("site mpich", "tests/site/run.py", "--mpi", "mpich"),
        suite_step("messages", "tests/messages/run.py", "--check"),
        suite_step("every MPI", "tests/lib/every_mpi.py"),
        pytest_step("docs site", "tests/docs_site"),
        pytest_step("install", "tests/install"),
    ]
    return [replace(step, aside=True, waits=True) for step in steps]


def instrument_steps() -> list[Step]:
    """What is held to times or takes the machine's devices; the ceiling."""
    return [
        suite_step("file systems", "tests/fs/run.py"),
        killed_sweeps(6),
        suite_step("page ring", "tests/peers/run.py", "--mpi", "mpich", "--only", "page"),
    ]


def killed_sweeps(kills: int) -> Step:
    """A sweep killed so many times has the samples of an undisturbed one."""
    command = [PYTHON, "tests/bench/kill.py", "--kills", str(kills)]
    return Step(f"killed sweeps {kills}", command, is_suite=True, timeout_s=3600)


def killed_ranks() -> Step:
    """What was synced survives a rank that is killed, whenever that is; a thousand times."""
    return suite_step(
        "killed ranks 1000",
        "tests/trials/killed.py",
        "--mpi",
        "openmpi",
        "--trials",
        "1000",
        timeout_s=3600,
    )


def crashes(mpi: str, trials: int) -> Step:
    """What was synced survives a file system that goes down, in every way to write."""
    name, script = f"crashed {mpi} {trials}", "tests/trials/crashed.py"
    return suite_step(name, script, "--mpi", mpi, "--trials", str(trials), timeout_s=3600)


def nfs_clients() -> Step:
    """Two nodes of a real NFS lose nothing, a hundred files in each of the ways to write them."""
    return suite_step("nfs clients 100", "tests/fs/nfs_clients.py", "--runs", "100", timeout_s=3600)


def beside_fio() -> Step:
    """The measuring program and fio agree where both do the same."""
    command = [PYTHON, "tests/instrument/fio.py", "--build", "build/release"]
    return Step("measure beside fio", command, is_suite=True, timeout_s=2400)


def quick_steps() -> list[Step]:
    """`make check`. The layers' tests run once, where most is checked: under the sanitizers."""
    return [
        *source_steps(),
        Step("build release", ["scripts/build.sh", "release"], timeout_s=2400),
        replace(build_tests("build asan", "asan"), aside=True),
        Step("clang", [PYTHON, "scripts/check_clang.py", "--together"], aside=True),
        Step("build examples", ["make", "-C", "examples", f"OUT={ROOT}/build/release/examples"]),
        layers_step("programs", "release", *OTHER_THAN_LAYERS, "-LE", f"^({MPI}|full|{LAYER})$"),
        ctest_step(
            "mpi", "release", "-L", f"^{MPI}$", "-LE", "full", "-j", ONE_MORE, timeout_s=2400
        ),
        *waiting_steps(),
        *asan_steps(),
        pytest_step("python", "python/tests", "-n", ONE_MORE),
        pytest_step("scripts", "scripts/tests"),
        Step("docs table", [PYTHON, "scripts/docs_table.py", "--check"]),
        Step("docs drawings", [PYTHON, "scripts/drawings.py", "--check"]),
        pytest_step("tutorial", "tests/tutorial", "-m", "not slow"),
        *instrument_steps(),
    ]


def many_views() -> Step:
    """The method product on threads, on far more random views than the quick tier draws."""
    junit = OUT / "many-views.xml"
    program = ["build/release/exec_tests", "--gtest_brief=1", "--gtest_filter=*Conformance*"]
    command = ["env", "PENSTOCK_TEST_SEEDS=200", *program, f"--gtest_output=xml:{junit}"]
    return Step("many views", command, junit=junit, timeout_s=7200)


def file_system_product() -> Step:
    """All methods on every file system that can be made here."""
    command = [PYTHON, "tests/fs/product.py", "--build", "build/release", "--full"]
    return Step("file systems product", command, is_suite=True, timeout_s=14400)


def network_file_systems() -> Step:
    """Methods in pairs on mounts of NFS and GlusterFS."""
    name = "file systems on servers"
    return suite_step(name, "tests/fs/product.py", "--network", timeout_s=3600)


def full_steps() -> list[Step]:
    """`make check-full`: the quick steps and the long ones."""
    return [
        *quick_steps(),
        build_tests("build layer tests", "release"),
        layers_step("layers", "release", "-L", f"^{LAYER}$", "-LE", "full"),
        pytest_step("tutorial built", "tests/tutorial", "-m", "slow"),
        ctest_step("long tests", "release", "-L", "full", "-j", JOBS, timeout_s=14400),
        many_views(),
        file_system_product(),
        network_file_systems(),
        killed_sweeps(50),
        killed_ranks(),
        crashes("mpich", 20),
        crashes("openmpi", 20),
        suite_step("bound", "tests/trials/bound.py", "--mpi", "openmpi"),
        nfs_clients(),
        beside_fio(),
        suite_step("stripes on 16 ranks", "tests/instrument/stripes.py"),
        suite_step("site spoiled", "tests/site/run.py", "--mpi", "openmpi", "--spoiled"),
        suite_step("peers mpich", "tests/peers/run.py", "--mpi", "mpich"),
        suite_step("peers openmpi", "tests/peers/run.py", "--mpi", "openmpi"),
        build_tests("build tsan", "tsan"),
        layers_step("layers under tsan", "tsan", "-LE", "full"),
        Step("clang by itself", [PYTHON, "scripts/check_clang.py"]),
        build_tests("build clang", "clang"),
        layers_step("layers under clang", "clang", "-LE", f"^({MPI}|full)$"),
        replace(build_tests("tidy", "tidy"), timeout_s=7200),
        Step("check-the-checks", ["make", "check-the-checks"], timeout_s=7200),
        Step("fuzz", ["scripts/fuzz.sh", "1000000"], timeout_s=7200),
        Step("wheel", ["scripts/check_wheel.sh"], timeout_s=2400),
        Step("installation", ["scripts/check_install.sh"], is_suite=True, timeout_s=3600),
        Step("compilers", ["scripts/check_compilers.sh"], timeout_s=3600),
        Step("fresh Debian", ["scripts/check_fresh.sh"], timeout_s=7200),
        Step("demo", ["make", "demo"], timeout_s=900),
    ]
