"""Runs one MPI program with Penstock and asserts on what its log says.

The program prints ``written N``: the bytes that it wrote, by its own account. The log must say that
the engine wrote exactly these, that nothing passed through (with --passthrough: what the program
says must, by ``passed N``), and that the job is finished. ``read N``: so many bytes the engine has
read.
"""

import argparse
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))
from crash import crash_problems
from matrix_record import Record, Recorder
from mpis import MPIS


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--native", type=Path, required=True, help="where penstock-exec lies")
    parser.add_argument("--mpi", required=True, choices=list(MPIS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--passthrough", action="store_true", help="some writes may pass through")
    parser.add_argument("--unlaunched", action="store_true", help="as without penstock run")
    # exits: without MPI_Finalize; stops: likewise, when all files are closed
    ends = ["closed", "left-open", "killed", "exits", "stops"]
    parser.add_argument("--ends", choices=ends, default="closed")
    parser.add_argument("--ulfm", action="store_true", help="the job goes on without who dies")
    parser.add_argument("--says", default="penstock: ", help="what the line at the end must say")
    parser.add_argument("--config", type=Path, help="a copy of it is the job's configuration")
    parser.add_argument("--also", help="what another line, before the end, must say")
    parser.add_argument("--tells", help="what an ending without MPI_Finalize must say")
    parser.add_argument("--lost", action="store_true", help="no byte is written, and the log says")
    parser.add_argument("--turns", type=int, help="bytes of each rank in turn: a, b...")
    parser.add_argument("--progress", help="that the log must name for the file")
    parser.add_argument("--degraded", help="what the log must say was not done as usual")
    parser.add_argument("--fault", help="of the program's calls, as libpenstock_fault.so takes it")
    parser.add_argument("--fault-library", type=Path)
    parser.add_argument("--timeout-s", type=float, default=110)
    parser.add_argument("program", nargs="+", help="its last argument will be a fresh file name")
    return parser.parse_args()


def run(args: argparse.Namespace, directory: Path) -> str:
    options = [] if args.passthrough else ["--require"]
    environment = os.environ | MPIS[args.mpi].environment() | {"PENSTOCK_LOG_DIR": str(directory)}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if args.config:
        environment["PENSTOCK_CONFIG"] = str(private_copy(args.config, directory))
    file = directory / "file.dat"
    fault = f"PENSTOCK_TEST_FAULT={args.fault},path={file}"
    before = ["env", f"LD_PRELOAD={args.fault_library}", fault] if args.fault else []
    goes_on = ["--with-ft", "ulfm"] if args.ulfm else []
    command = [*MPIS[args.mpi].mpiexec(args.ranks), *goes_on, *before]
    command += [str(args.native / "penstock-exec"), *options]
    everybody = [] if args.unlaunched else ["--all-ranks"]
    command += [*everybody, "--", *args.program, str(file)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=args.timeout_s,
        check=False,
    )
    sys.stderr.write(done.stdout + done.stderr)
    # Penstock ends a job by abort(3), and says so.
    meant = args.tells is not None and "ending the job" in args.tells
    if not meant and (crashed := crash_problems(done.stdout + done.stderr)):
        sys.exit(crashed[0])
    if args.ends in ("exits", "stops"):  # which some launchers let pass
        check_told(done.stderr, args.tells)
        return done.stdout
    if (done.returncode != 0) != (args.ends == "killed"):
        sys.exit(f"exit code {done.returncode}")
    if args.ends == "killed":
        check_told(done.stderr, args.tells)
    else:
        check_line(done.stderr, args.says, args.also)
    return done.stdout


def private_copy(config: Path, directory: Path) -> Path:
    """That nobody else may write, whatever a checkout's files allow."""
    copy = directory / config.name
    copy.touch(mode=0o600)
    copy.write_bytes(config.read_bytes())
    return copy


def check_told(stderr: str, tells: str | None) -> None:
    if "does not hold" in stderr:
        sys.exit("a check of the program failed")
    if tells and tells not in stderr:
        sys.exit(f"nothing said {tells!r}")


def check_line(stderr: str, says: str, also: str | None) -> None:
    lines = [line for line in stderr.splitlines() if line.startswith("penstock: ")]
    if also:
        if not any(also in line for line in lines):
            sys.exit(f"nothing said {also!r}: {lines}")
        lines = [line for line in lines if also not in line]
    if len(lines) != 1 or says not in lines[0]:
        sys.exit(f"the line at the end is {lines}, and is to say {says!r}")


def read_log(directory: Path) -> dict[str, object]:
    logs = list(directory.glob("*.json"))
    if len(logs) != 1:
        sys.exit(f"expected one log, got {[log.name for log in logs]}")
    if stat.S_IMODE(logs[0].stat().st_mode) != 0o600:
        sys.exit("the log is not private")
    return json.loads(logs[0].read_text())


def check(args: argparse.Namespace, log: dict, written: int, passing: int) -> None:
    # A job that was killed leaves a log that is whole and says how far it had come.
    unfinished = args.ends in ("killed", "exits", "stops")
    state = "running" if unfinished else "finished"
    if log["state"] != state:
        sys.exit(f"the log's state is {log['state']}, not {state}")
    if not str(log["mpi_library"]).isprintable():
        sys.exit(f"the log names the MPI library {log['mpi_library']!r}")
    all_closed = args.ends in ("closed", "stops")
    if any(file["closed"] != all_closed for file in log["files"]):
        sys.exit("the log is wrong about which files were closed")
    if (log["totals"]["mismatched_bytes"] > 0) != (args.says == "DIFFER"):
        sys.exit("the log is wrong about what differs")
    engine = sum(file["engine_bytes"] for file in log["files"])
    passed = sum(file["passthrough_bytes"] for file in log["files"])
    expected = (0 if args.lost else written - passing, passing)
    if (engine, passed) != expected and (all_closed or not unfinished):
        sys.exit(f"(engine, passed through) is {(engine, passed)}, not {expected}")


def check_progress(log: dict, progress: str) -> None:
    told = {file["write_behind_progress"] for file in log["files"]}
    if told != {progress}:
        sys.exit(f"write_behind_progress is {told}, not {progress}")


def check_degraded(log: dict, why: str) -> None:
    if not any(why in reason for reason in log["totals"]["degraded"]):
        sys.exit(f"the log says {log['totals']['degraded']}, not {why!r}")


def check_lost(log: dict, written: int) -> None:
    """Nothing of what was accepted is in the file: the log alone tells, and where it was to be."""
    errors = log["totals"]["errors"]
    if errors == 0 or not all(file["first_error"] for file in log["files"]):
        sys.exit(f"the log says {errors} errors, and of a file not which was the first")
    why = f"{written} bytes that earlier writes had accepted are not in the file"
    check_degraded(log, why)
    told = next(reason for reason in log["totals"]["degraded"] if why in reason)
    ranges = [(int(begin), int(end)) for begin, end in re.findall(r"\[(\d+), (\d+)\)", told)]
    if sum(end - begin for begin, end in ranges) != written:
        sys.exit(f"of {written} bytes the log says that they are lost in {ranges}")


def check_turns(file: Path, written: int, ranks: int, turn_bytes: int) -> None:
    """Every byte is where its rank wrote it."""
    turn = b"".join(bytes([ord("a") + rank]) * turn_bytes for rank in range(ranks))
    if file.read_bytes() != turn * (written // len(turn)):
        sys.exit("the file is not what the ranks wrote")


def check_reads(log: dict, read: int, *, passed: bool) -> None:
    """Every byte that the program read collectively was the engine's, or with ``passed`` none."""
    engine = sum(file["engine_read_bytes"] for file in log["files"])
    if engine != (0 if passed else read):
        sys.exit(f"the engine read {engine} bytes, of {read}")
    reads = [why for why in log["totals"]["degraded"] if why.startswith("read")]
    if reads:
        sys.exit(f"the log says that reads passed through: {reads}")


BINDINGS = {"MPIF": "Fortran, mpif.h", "MPI": "Fortran, use mpi", "F08": "Fortran, use mpi_f08"}


def record(args: argparse.Namespace, log: dict) -> None:
    """A line for the support matrix, in the directory that PENSTOCK_TEST_RECORDS names."""
    records = os.environ.get("PENSTOCK_TEST_RECORDS")
    if not records:
        return
    program = Path(args.program[0]).name.removeprefix("pmpi_").rpartition("_")[0]
    case = " ".join([program, *(Path(word).name for word in args.program[1:])])
    binding = BINDINGS.get(program.removeprefix("fortran_"), "C")
    totals = log["totals"]
    passed_through = totals["passthrough_bytes"]
    with Recorder(Path(records) / f"pmpi-{args.mpi}-{case}-{args.ranks}.jsonl") as recorder:
        recorder.add(
            Record(
                suite="conformance",
                mpi=args.mpi,
                binding=binding,
                library="MPI-IO",
                case=case,
                ranks=args.ranks,
                outcome="passed_through" if passed_through else "passed",
                engine_bytes=totals["engine_bytes"],
                passthrough_bytes=passed_through,
                reason="; ".join(sorted(totals["degraded"])) if passed_through else "",
            )
        )


def main() -> None:
    args = parse()
    with tempfile.TemporaryDirectory(prefix="penstock-pmpi-") as name:
        directory = Path(name)
        output = run(args, directory)
        said = re.search(r"written (\d+)", output)
        if said is None:
            sys.exit("the program did not say what it wrote")
        passing = re.search(r"passed (\d+)", output)
        if (passing is not None) != args.passthrough:
            sys.exit("the program has to say what passes through, and only then")
        of_library = int(passing.group(1)) if passing is not None else 0
        log = read_log(directory)
        if args.turns:
            check_turns(directory / "file.dat", int(said.group(1)), args.ranks, args.turns)
        check(args, log, int(said.group(1)), of_library)
        if args.lost:
            check_lost(log, int(said.group(1)))
        if args.progress:
            check_progress(log, args.progress)
        if args.degraded:
            check_degraded(log, args.degraded)
        if (read := re.search(r"read (\d+)", output)) is not None:
            check_reads(log, int(read.group(1)), passed="PENSTOCK_READ" in os.environ)
        record(args, log)


if __name__ == "__main__":
    main()
