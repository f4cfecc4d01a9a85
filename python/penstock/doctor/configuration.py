"""The configuration that a run would have here, and whether its log can be written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from penstock import _core
from penstock.doctor.finding import Finding
from penstock.errors import PenstockError
from penstock.launch.request import (
    Options,
    reader_arguments,
    reader_variables,
    variables,
)


def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Files found, settings that are wrong, and the directory of the log."""
    findings: list[Finding] = []
    try:
        read = reader_variables(variables(Options(), environ), environ)
        place = reader_arguments(environ)
        findings += [_about(file) for file in _core.config_files(read, **place) if file.exists]
        config = _core.load_config(read, **place)
    except PenstockError as error:
        return _without_twins([*findings, Finding("problem", "configuration", str(error))])
    if not findings:
        findings = [Finding("ok", "configuration", "no configuration file: defaults")]
    findings += [Finding("warn", "configuration", notice) for notice in config.notices]
    if config.mode == _core.Mode.off:
        why = config.left_alone or "PENSTOCK_DISABLE is set"
        findings.append(Finding("note", "configuration", f"nothing is served: {why}"))
    return [*findings, _log(config, Path.cwd())]


def _about(file: _core.ConfigFile) -> Finding:
    values = {"path": file.path, "layer": file.layer}
    if file.problem:
        return Finding("problem", "configuration", file.problem, "", values)
    return Finding("ok", "configuration", f"{file.path} ({file.layer}) is valid", "", values)


def _without_twins(findings: list[Finding]) -> list[Finding]:
    """A file's problem is also what loading says."""
    return list({f.text: f for f in reversed(findings)}.values())[::-1]


def _log(config: _core.Config, directory: Path) -> Finding:
    if not config.log:
        return Finding("note", "job log", "switched off")
    where = directory / config.log_dir if config.log_dir else directory
    there = next(one for one in (where, *where.parents) if os.access(one, os.F_OK))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        new = "" if there == where else ", which the first job makes"
        return Finding("ok", "job log", f"goes to {where}{new}")
    why = "may not be written" if there == where else f"cannot be made in {there}"
    remedy = "give a directory that you may write with --log-dir, or --no-log"
    return Finding("warn", "job log", f"{where} {why}: jobs run, their logs are lost", remedy)
