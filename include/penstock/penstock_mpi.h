/* Penstock for C programs whose ranks are MPI ranks, or threads of MPI ranks. Link the library of
 * the binary interface that the program's MPI has: libpenstock-c-mpich (MPICH from 4.0, Intel MPI,
 * MVAPICH), libpenstock-c-openmpi, or libpenstock-c-abi (the standard one of MPI-5). */
#ifndef PENSTOCK_PENSTOCK_MPI_H
#define PENSTOCK_PENSTOCK_MPI_H

#include <mpi.h>
#include <penstock/penstock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* COLLECTIVE over `comm`, by one thread of each MPI rank. A team of MPI ranks times `threads`
 * threads of each, 1 or more and the same on every rank: penstock rank = MPI rank * threads +
 * thread. `comm` is duplicated, and may be freed. penstock_team_rank(team, thread, &rank) gives
 * each thread of this process its rank. More than one thread needs MPI_THREAD_MULTIPLE, else
 * PENSTOCK_EUNSUPPORTED, and tags: threads * threads * 256 are at most the library's MPI_TAG_UB + 1
 * (11 threads where that is the least allowed, 64 of 2^20 - 1, 181 of 2^23 - 1), else
 * PENSTOCK_EARGUMENT. MPI calls of Penstock are made inside collective functions and
 * penstock_team_free only. */
PENSTOCK_API int penstock_team_mpi(MPI_Comm comm, int threads, penstock_team** team);

#ifdef __cplusplus
}
#endif

#endif
