"""Stands in for a measuring program: prints the line of one, after doing what a test asks for."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

OPTIONS = [
    {"name": "file", "kind": "text", "choices": []},
    {"name": "route", "kind": "choice", "choices": ["engine", "mpi", "posix"]},
    {"name": "method", "kind": "text", "choices": []},
    {"name": "files", "kind": "choice", "choices": ["shared", "per_worker", "per_node"]},
    {"name": "pattern", "kind": "text", "choices": []},
    {"name": "access", "kind": "choice", "choices": ["collective", "independent"]},
    {"name": "threads", "kind": "count", "choices": []},
    {"name": "iters", "kind": "count", "choices": []},
    {"name": "bufsize", "kind": "size", "choices": []},
    {"name": "syncsize", "kind": "size", "choices": []},
    {"name": "comptime", "kind": "seconds", "choices": []},
    {"name": "sync-each", "kind": "flag", "choices": []},
    {"name": "each-call", "kind": "flag", "choices": []},
    {"name": "op", "kind": "choice", "choices": ["write", "read"]},
    {"name": "end", "kind": "choice", "choices": ["sync", "close"]},
    {"name": "hint", "kind": "list", "choices": []},
    {"name": "regime", "kind": "choice", "choices": ["warm", "cold", "asis"]},
    {"name": "warm-disk", "kind": "size", "choices": []},
    {"name": "verify", "kind": "choice", "choices": ["all", "none"]},
]
LISTED = {
    "default_method": "auto + shm + pwrite + anticipate=1MiB + written",
    "strategies": [
        {"name": "S1A", "available": True, "files": "per_worker", "least_workers": 1},
        {"name": "S2", "available": False, "why": "not in this version", "least_workers": 2},
    ],
    "algorithms": [
        {"name": "auto", "available": True},
        {"name": "two_phase", "available": True, "owns_blocks": True},
    ],
    "mechanisms": [
        {"name": "pwrite", "available": True, "writes_file": True},
        {"name": "null", "available": True, "writes_file": False},
        {"name": "mmap", "available": True, "writes_file": True, "alignment_bytes": 4096},
        {"name": "uring", "available": True, "writes_file": True},
    ],
}


def describe() -> int:
    print(json.dumps({"schema": "penstock.measure-options/1", "options": OPTIONS}))
    return 0


def tell_what_there_is() -> int:
    print(json.dumps({"schema": "penstock.measure-list/1", **LISTED}))
    return 0


def check() -> int:
    wrong = "no-such-method" in sys.argv
    if wrong:
        print("penstock-measure-threads: method: no-such-method is not known", file=sys.stderr)
    return 2 if wrong else 0


QUESTIONS = {"--describe": describe, "--list": tell_what_there_is, "--check": check}


def main() -> int:
    answer = next((told for word, told in QUESTIONS.items() if word in sys.argv), None)
    if answer is not None:
        return answer()
    parser = argparse.ArgumentParser()
    for option in OPTIONS:
        if option["kind"] != "flag" and option["name"] != "file":
            parser.add_argument(f"--{option['name']}")
    for name in ("--sync-each", "--each-call"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--rate", type=float, default=1e9)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--sleep", type=float, default=0.0)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--wrong-bytes", type=int, default=0)
    parser.add_argument("--error")
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--schema", default="penstock.measure/1")
    parser.add_argument("--fail-when", type=Path, help="fail as long as this file is there")
    args = parser.parse_args()
    if args.file:
        args.file.write_bytes(b"x" * args.bytes)
    time.sleep(args.sleep or float(args.comptime or 0))
    if args.fail_when and args.fail_when.exists():
        print("it was told to fail", file=sys.stderr)
        return 3
    if not args.silent:
        print("a launcher's own line")
        print(json.dumps(line(args)), flush=True)
    if args.exit < 0:
        os.kill(os.getpid(), -args.exit)
    return args.exit


def line(args: argparse.Namespace) -> dict[str, object]:
    rate = args.rate * (1 + args.noise * random.uniform(-1, 1))  # noqa: S311
    application = {"seconds": args.bytes / rate, "bytes_per_s": rate}
    actual = {"seconds": 2 * args.bytes / rate, "bytes_per_s": rate / 2, "source": "fake"}
    error = {"worker": 1, "where": "write", "class": "MPI_ERR_NO_SPACE", "text": args.error}
    verified = {"bytes": args.bytes, "wrong_bytes": args.wrong_bytes, "first_wrong": None}
    return {
        "schema": args.schema,
        "program": "fake",
        "version": "0",
        "parameters": {"verify": "all"},
        "workers": 1,
        "ranks": 1,
        "bytes": args.bytes,
        "application": application,
        "actual": actual,
        "verified": verified,
        "error": error if args.error else None,
    }


if __name__ == "__main__":
    sys.exit(main())
