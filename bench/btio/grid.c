/* Diagonal multi-partitioning, as NAS BT cuts its grid: P. Wong and R. F. Van der Wijngaart, "NAS
 * Parallel Benchmarks I/O Version 2.4", NAS-03-002. */
#include "grid.h"

#include <stddef.h>
#include <string.h>

static const struct BtioClass classes[] = {
    {"S", 12, 12}, {"W", 24, 40}, {"A", 64, 40}, {"B", 102, 40}, {"C", 162, 40}};

const struct BtioClass* btio_class(const char* name) {
  for (size_t i = 0; i < sizeof classes / sizeof *classes; ++i)
    if (strcmp(classes[i].name, name) == 0) return &classes[i];
  return NULL;
}

int btio_root(int ranks) {
  int root = 0;
  while (root * root < ranks) ++root;
  return root * root == ranks ? root : 0;
}

int btio_cell_start(int edge, int cells, int at) {
  const int more = edge % cells;
  return at * (edge / cells) + (at < more ? at : more);
}

static struct BtioCell cell_at(int edge, int cells, const int at[3]) {
  struct BtioCell cell;
  for (int d = 0; d < 3; ++d) {
    cell.start[d] = btio_cell_start(edge, cells, at[d]);
    cell.count[d] = btio_cell_start(edge, cells, at[d] + 1) - cell.start[d];
  }
  return cell;
}

/* From layer to layer one further in x and one back in y. */
struct BtioGrid btio_grid(int edge, int cells, int rank) {
  struct BtioGrid grid = {.edge = edge, .cells = cells};
  for (int c = 0; c < cells; ++c) {
    const int at[3] = {c, (rank / cells - c + cells) % cells, (rank % cells + c) % cells};
    grid.cell[c] = cell_at(edge, cells, at);
  }
  return grid;
}

int64_t btio_array_words(int edge) { return (int64_t)edge * edge * edge * BTIO_WORDS; }

int64_t btio_rank_words(const struct BtioGrid* grid) {
  int64_t points = 0;
  for (int c = 0; c < grid->cells; ++c) {
    const int* n = grid->cell[c].count;
    points += (int64_t)n[0] * n[1] * n[2];
  }
  return points * BTIO_WORDS;
}

int64_t btio_rank_rows(const struct BtioGrid* grid) {
  int64_t rows = 0;
  for (int c = 0; c < grid->cells; ++c)
    rows += (int64_t)grid->cell[c].count[0] * grid->cell[c].count[1];
  return rows;
}

int64_t btio_row_place(const struct BtioGrid* grid, const struct BtioCell* cell, int z, int y) {
  const int64_t line = (int64_t)(cell->start[0] + z) * grid->edge + cell->start[1] + y;
  return (line * grid->edge + cell->start[2]) * BTIO_WORDS;
}
