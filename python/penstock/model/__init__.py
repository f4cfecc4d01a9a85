"""Laws of I/O systems: of buffers between a program and a disk, and laws fitted to measurements.

`buffers` are gotwals-1995's three models (the formulas are in `penstock._core`), `scaling` and
`messages` fit barro-2002's forms to samples, `published` holds the coefficients that it printed.
docs/models.md explains them. Bytes and seconds throughout.
"""
