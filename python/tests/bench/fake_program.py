"""Stands in for a measuring program: prints the line of one, after doing what a test asks for."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
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
    time.sleep(args.sleep)
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
