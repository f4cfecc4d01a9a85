"""The experiments of five papers, run here: their tables beside ours, and a verdict per conclusion.

A paper is a file of ``papers/`` and a line of ``PAPERS``; what is to be concluded is in
docs/reproductions/conclusions.toml, written down before the first run.
"""

PAPERS = (
    "benson2003",
    "gotwals1995",
    "barro2002",
    "liao2007",
    "chaarawi2009",
)
SIZES = ("quick", "full", "paper")
