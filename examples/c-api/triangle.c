/* MPI ranks write a triangular matrix without its zeros: penstock_write_extents_all.
 *
 *   mpiexec -n 4 ./triangle FILE [ORDER]
 *
 * Row i has i + 1 numbers, of 8 bytes each, behind those of the rows before. Rank r of n has rows
 * r, r + n, r + 2n, ...: extents of different lengths at different distances. */
#include <inttypes.h>
#include <penstock/penstock_mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int report(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_last_error());
  return 1;
}

/* The rows of this rank: as extents of the file, and as numbers. */
struct rows {
  int64_t count;
  penstock_extent* extents;
  double* values;
};

static struct rows rows_of(int number, int ranks, int64_t order) {
  struct rows rows = {0, malloc(sizeof(penstock_extent) * (size_t)(order / ranks + 1)),
                      malloc(sizeof(double) * (size_t)((order / ranks + 1) * order))};
  if (rows.extents == NULL || rows.values == NULL) abort();
  double* next = rows.values;
  for (int64_t i = number; i < order; i += ranks) {
    rows.extents[rows.count++] = (penstock_extent){i * (i + 1) / 2 * 8, (i + 1) * 8};
    for (int64_t j = 0; j <= i; ++j) *next++ = (double)(i * 1000 + j);
  }
  return rows;
}

static int print_statistics(penstock_file* file, int number) {
  penstock_stats all = PENSTOCK_STATS_INIT;
  if (penstock_statistics_all(file, &all)) return report("statistics");
  if (number == 0) printf("written %" PRId64 "\n", all.written_bytes);
  return 0;
}

static int write_matrix(penstock_rank* rank, const char* path, int64_t order) {
  int number, ranks;
  penstock_rank_place(rank, &number, &ranks);
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  penstock_file* file;
  if (penstock_open(rank, path, &options, &file)) return report("open");
  const struct rows rows = rows_of(number, ranks, order);
  int failed = 0;
  if (penstock_write_extents_all(file, rows.extents, rows.count, rows.values, NULL))
    failed = report("write");
  failed |= print_statistics(file, number);
  if (penstock_close(file)) failed = report("close");
  free(rows.extents);
  free(rows.values);
  return failed;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int64_t order = argc > 2 ? atoll(argv[2]) : 200;
  if (argc < 2 || order < 1) {
    fprintf(stderr, "usage: triangle FILE [ORDER]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  penstock_team* team = NULL;
  penstock_rank* rank = NULL;
  int failed = 0;
  if (penstock_team_mpi(MPI_COMM_WORLD, 1, &team) || penstock_team_rank(team, 0, &rank))
    failed = report("team");
  else
    failed = write_matrix(rank, argv[1], order);
  if (penstock_team_free(team)) failed = report("free");
  MPI_Finalize();
  return failed;
}
