/* What BT has in memory, filled so that every byte of the file can be checked. */
#include "data.h"

#include <stdlib.h>

enum { AROUND = 2 }; /* points on each side of a cell, which belong to neighbours */

static int64_t cell_words(const struct BtioData* data) {
  return (int64_t)data->side * data->side * data->side * BTIO_WORDS;
}

double* btio_row(const struct BtioData* data, int cell, int z, int y) {
  const int64_t side = data->side;
  const int64_t point = ((z + AROUND) * side + y + AROUND) * side + AROUND;
  return data->values + cell * cell_words(data) + point * BTIO_WORDS;
}

typedef void Visit(struct Peer* peer, double* row, int64_t n, int64_t place, int64_t output);

static void visit_rows(struct Peer* peer, struct BtioData* data, int64_t output, Visit* visit) {
  for (int c = 0; c < data->grid.cells; ++c) {
    const struct BtioCell* cell = &data->grid.cell[c];
    for (int z = 0; z < cell->count[0]; ++z)
      for (int y = 0; y < cell->count[1]; ++y)
        visit(peer, btio_row(data, c, z, y), (int64_t)cell->count[2] * BTIO_WORDS,
              btio_row_place(&data->grid, cell, z, y), output);
  }
}

static void fill_row(struct Peer* peer, double* row, int64_t n, int64_t place, int64_t output) {
  (void)output;
  peer_fill(row, n, peer->seed, 0, place);
}

static double stamp_of(const struct Peer* peer, int64_t place, int64_t output) {
  return peer_value(peer->seed, (int)output + 1, place);
}

static void stamp_row(struct Peer* peer, double* row, int64_t n, int64_t place, int64_t output) {
  (void)n;
  row[0] = stamp_of(peer, place, output);
}

struct BtioData btio_data(struct Peer* peer, const struct BtioGrid* grid) {
  const int largest = btio_cell_start(grid->edge, grid->cells, 1); /* the first is */
  struct BtioData data = {*grid, largest + 2 * AROUND, NULL};
  const size_t bytes = (size_t)(cell_words(&data) * grid->cells) * sizeof(double);
  data.values = calloc(1, bytes);
  if (data.values == NULL)
    peer_fail(peer, "allocate", "MPI_ERR_NO_MEM", "arrays of %zu bytes", bytes);
  else
    visit_rows(peer, &data, 0, fill_row);
  return data;
}

/* --spoil names a byte of worker 0's first row. */
static void spoil(struct Peer* peer, const struct BtioData* data) {
  if (peer->rank != 0 || peer->spoil < 0) return;
  const int64_t bytes = (int64_t)data->grid.cell[0].count[2] * BTIO_WORDS * 8;
  ((unsigned char*)btio_row(data, 0, 0, 0))[peer->spoil % bytes] ^= 1;
}

void btio_stamp(struct Peer* peer, struct BtioData* data, int64_t output) {
  visit_rows(peer, data, output, stamp_row);
  if (output == 0) spoil(peer, data);
}

int64_t btio_compare(const struct Peer* peer, const double* row, int64_t n, int64_t place,
                     int64_t output, int64_t* first) {
  int64_t in_rest = 0;
  const int64_t wrong = peer_compare(row + 1, n - 1, peer->seed, 0, place + 1, &in_rest);
  if (wrong > 0) *first = 1 + in_rest;
  int64_t none = 0;
  if (peer_compare(row, 1, peer->seed, (int)output + 1, place, &none) == 0) return wrong;
  *first = 0;
  return wrong + 1;
}

/* ---- datatypes ---- */

/* The cells' boxes in arrays of so many points along each side, `apart` bytes from cell to cell. */
static MPI_Datatype cells_in(const struct BtioGrid* grid, int side, MPI_Aint apart,
                             int starts[][3]) {
  MPI_Datatype types[BTIO_MOST_CELLS], all;
  MPI_Aint places[BTIO_MOST_CELLS];
  int ones[BTIO_MOST_CELLS];
  const int sizes[4] = {side, side, side, BTIO_WORDS};
  for (int c = 0; c < grid->cells; ++c) {
    const int* count = grid->cell[c].count;
    const int box[4] = {count[0], count[1], count[2], BTIO_WORDS};
    const int start[4] = {starts[c][0], starts[c][1], starts[c][2], 0};
    MPI_Type_create_subarray(4, sizes, box, start, MPI_ORDER_C, MPI_DOUBLE, &types[c]);
    places[c] = c * apart;
    ones[c] = 1;
  }
  MPI_Type_create_struct(grid->cells, ones, places, types, &all);
  MPI_Type_commit(&all);
  for (int c = 0; c < grid->cells; ++c) MPI_Type_free(&types[c]);
  return all;
}

MPI_Datatype btio_file_type(const struct BtioGrid* grid) {
  int starts[BTIO_MOST_CELLS][3];
  for (int c = 0; c < grid->cells; ++c)
    for (int d = 0; d < 3; ++d) starts[c][d] = grid->cell[c].start[d];
  return cells_in(grid, grid->edge, 0, starts);
}

MPI_Datatype btio_memory_type(const struct BtioData* data) {
  int starts[BTIO_MOST_CELLS][3];
  for (int c = 0; c < data->grid.cells; ++c)
    for (int d = 0; d < 3; ++d) starts[c][d] = AROUND;
  return cells_in(&data->grid, data->side, (MPI_Aint)(cell_words(data) * 8), starts);
}
