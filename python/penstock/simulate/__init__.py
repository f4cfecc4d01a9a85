"""Plays I/O systems: `output` one request, `gotwals` the experiment of gotwals-1995's figures.

The simulator is in C++ (``src/model``); nothing here decides when a byte moves.
"""

SYSTEMS = ("gotwals-1995",)
