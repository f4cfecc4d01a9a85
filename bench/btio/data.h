/* A rank's arrays as BT has them in memory, and what is in them: between btio.c and check.c. */
#ifndef PENSTOCK_BTIO_DATA_H
#define PENSTOCK_BTIO_DATA_H

#include <mpi.h>
#include <stdint.h>

#include "grid.h"
#include "peer.h"

/* One array per cell, each as large as the largest cell with two points around it: BT's solver
 * keeps its neighbours' values there, so rows are not contiguous in memory. */
struct BtioData {
  struct BtioGrid grid;
  int side; /* points along a side of a cell's array */
  double* values;
};

/* Allocates and fills; on failure peer_fail() and values NULL. */
struct BtioData btio_data(struct Peer* peer, const struct BtioGrid* grid);
double* btio_row(const struct BtioData* data, int cell, int z, int y);

/* Every double follows from its place in its array; the first of each row from the output too, so
 * that no output equals another and hardly anything is filled while the clock runs. */
void btio_stamp(struct Peer* peer, struct BtioData* data, int64_t output);
/* How many of the `n` doubles of a row as read are wrong; the first wrong one in *first. */
int64_t btio_compare(const struct Peer* peer, const double* row, int64_t n, int64_t place,
                     int64_t output, int64_t* first);

/* Subarrays of all cells: in the file, and in memory. The caller frees them. */
MPI_Datatype btio_file_type(const struct BtioGrid* grid);
MPI_Datatype btio_memory_type(const struct BtioData* data);

/* Reads everything back plainly and compares; peer_verified(). */
void btio_check_shared(struct Peer* peer, const struct BtioGrid* grid, int64_t outputs);
void btio_check_own(struct Peer* peer, const struct BtioGrid* grid, int64_t outputs,
                    const char* path);

#endif
