"""The other commands: log, explain, doctor, list, completion."""

from __future__ import annotations

from provocation import Provocation
from start import wrote

GARBAGE = wrote("penstock-app-1.json", "not a log\n")
STRANGER = wrote("penstock-app-1.json", '{"name": "something else"}\n')
LATER = wrote("penstock-app-1.json", '{"schema_version": 99}\n')
LOG = "penstock log penstock-app-1.json"

TOOLS = [
    Provocation("Other commands", "penstock log", 2, ["FILE"]),
    Provocation("Other commands", LOG, 2, ["penstock-app-1.json", "cannot be read"]),
    Provocation("Other commands", "penstock log .", 2, [". cannot be read", "directory"]),
    Provocation("Other commands", LOG, 2, ["not JSON"], f"`{LOG}`: not a log", GARBAGE),
    Provocation("Other commands", LOG, 2, ["no job log"], f"`{LOG}`: another JSON file", STRANGER),
    Provocation(
        "Other commands",
        LOG,
        2,
        ["schema_version 99", "penstock that wrote it"],
        f"`{LOG}`: of a later version",
        LATER,
    ),
    Provocation("Other commands", "penstock explain haet", 2, ["haet", "heat"]),
    Provocation("Other commands", "penstock explain none.toml", 2, ["none.toml"]),
    Provocation(
        "Other commands",
        "penstock explain app.toml",
        2,
        ["app.toml"],
        "`penstock explain app.toml`: not TOML",
        wrote("app.toml", "ranks = = 3\n"),
    ),
    Provocation(
        "Other commands", "penstock explain --method two_fase", 2, ["two_fase", "two_phase"]
    ),
    Provocation("Other commands", "penstock explain --draw none/plan.svg", 1, ["none/plan.svg"]),
    Provocation("Other commands", "penstock doctor none", 2, ["none"]),
    Provocation("Other commands", "penstock list algoritms", 2, ["algoritms", "list -h"]),
    Provocation("Other commands", "penstock completion tcsh", 2, ["tcsh", "bash"]),
    Provocation("Other commands", "penstock config --writers x", 2, ["writers", "x"]),
]
