/* The grid of NAS BT-IO and the part of it that each rank has. No MPI and no files: the program
 * and the test of liao-2007's table 1 (tests/btio) use the same. */
#ifndef PENSTOCK_BTIO_GRID_H
#define PENSTOCK_BTIO_GRID_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BTIO_WORDS = 5 };       /* doubles of a point */
enum { BTIO_MOST_CELLS = 64 }; /* of a rank: 4096 ranks */

/* A problem class of NAS. */
struct BtioClass {
  const char* name;
  int edge;    /* the grid has edge^3 points */
  int outputs; /* arrays that are appended: one every fifth time step */
};

/* A box of points; z, y, x: x is the fastest in the file. */
struct BtioCell {
  int start[3], count[3];
};

/* What one rank has: cells on the grid's diagonals, one in every layer of every direction. */
struct BtioGrid {
  int edge;
  int cells; /* of each rank, and along an edge of the grid: the root of the number of ranks */
  struct BtioCell cell[BTIO_MOST_CELLS];
};

/* By its name; NULL: there is none. */
const struct BtioClass* btio_class(const char* name);
/* The root of a square number; 0: it is none. */
int btio_root(int ranks);
/* REQUIRES 1 <= cells <= BTIO_MOST_CELLS, cells <= edge and 0 <= rank < cells^2. */
struct BtioGrid btio_grid(int edge, int cells, int rank);

/* Where cell number `at` of an edge begins: the first edge % cells have a point more. */
int btio_cell_start(int edge, int cells, int at);
int64_t btio_array_words(int edge);
int64_t btio_rank_words(const struct BtioGrid* grid);
/* Rows of points that are contiguous in the file: BT-IO simple writes each by a call of its own. */
int64_t btio_rank_rows(const struct BtioGrid* grid);
/* Where row (z, y) of a cell begins, in doubles from the beginning of its array. */
int64_t btio_row_place(const struct BtioGrid* grid, const struct BtioCell* cell, int z, int y);

#ifdef __cplusplus
}
#endif
#endif
