# For every MPI library found: the shim libpenstock-FLAVOUR.so, the engine
# penstock-engine-FLAVOUR.so, and an interface target mpi_FLAVOUR for tests.
# Written by the pmpi layer's owner.
