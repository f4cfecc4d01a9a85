"""Explains a plan by example: who holds, sends and writes which bytes, per cycle.

`example` reads a small described job, a file's or one of those that are `shipped`; `story` asks
`penstock._core` for its plan and collects what the plan says, `table` and `svg` render that.
Nothing here decides who writes what.
"""
