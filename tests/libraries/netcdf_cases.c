/* What programs do with parallel netCDF-4, which is HDF5 below: collective and independent puts,
 * chunks, groups and attributes, record variables that grow, reopening. */
#include <netcdf.h>
#include <netcdf_par.h>

#include "cases.h"

enum { COLUMNS = 23, ROWS_EACH = 10, RECORDS = 4, VARIABLES = 8 };

#define HOLDS(call)                                                         \
  do {                                                                      \
    const int status_ = (call);                                             \
    if (status_ != NC_NOERR) fprintf(stderr, "%s\n", nc_strerror(status_)); \
    CHECK(status_ == NC_NOERR);                                             \
  } while (0)

static int create_file(const char* path) {
  int file = -1;
  HOLDS(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  return file;
}

static int open_file(const char* path, int mode) {
  int file = -1;
  HOLDS(nc_open_par(path, mode, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  return file;
}

/* A table of all ranks' rows, or, with NC_UNLIMITED, one that grows. */
static int define_table(int group, const char* name, size_t rows) {
  int dimensions[2], variable = -1;
  char row[64];
  snprintf(row, sizeof row, "row_of_%s", name);
  HOLDS(nc_def_dim(group, row, rows, &dimensions[0]));
  if (nc_inq_dimid(group, "column", &dimensions[1]) != NC_NOERR)
    HOLDS(nc_def_dim(group, "column", COLUMNS, &dimensions[1]));
  HOLDS(nc_def_var(group, name, NC_INT, 2, dimensions, &variable));
  return variable;
}

static void put_rows(int group, int variable, int array, size_t first, size_t rows) {
  const size_t start[2] = {first, 0}, count[2] = {rows, COLUMNS};
  int* mine = allocate(rows * COLUMNS * sizeof *mine);
  for (size_t i = 0; i < rows * COLUMNS; ++i)
    mine[i] = value_at(array, (long)(first * COLUMNS + i));
  HOLDS(nc_put_vara_int(group, variable, start, count, mine));
  free(mine);
}

static void check_rows(int group, const char* name, int array, size_t rows) {
  int variable = -1;
  HOLDS(nc_inq_varid(group, name, &variable));
  HOLDS(nc_var_par_access(group, variable, NC_COLLECTIVE));
  const size_t start[2] = {0, 0}, count[2] = {rows, COLUMNS};
  int* all = allocate(rows * COLUMNS * sizeof *all);
  HOLDS(nc_get_vara_int(group, variable, start, count, all));
  for (size_t i = 0; i < rows * COLUMNS; ++i) CHECK(all[i] == value_at(array, (long)i));
  free(all);
}

static size_t all_rows(void) { return (size_t)ranks * ROWS_EACH; }

/* ---- tables ---- */

static void write_collective(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", all_rows());
  HOLDS(nc_put_att_text(file, table, "units", 5, "volts"));
  HOLDS(nc_enddef(file));
  HOLDS(nc_var_par_access(file, table, NC_COLLECTIVE));
  put_rows(file, table, 0, (size_t)rank * ROWS_EACH, ROWS_EACH);
  HOLDS(nc_close(file));
}

static void write_independent(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", all_rows());
  HOLDS(nc_enddef(file));
  HOLDS(nc_var_par_access(file, table, NC_INDEPENDENT));
  for (int i = 0; i < ROWS_EACH; ++i) put_rows(file, table, 0, (size_t)(i * ranks + rank), 1);
  HOLDS(nc_close(file));
}

static void write_chunked(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", all_rows());
  const size_t chunk[2] = {7, 6};
  HOLDS(nc_def_var_chunking(file, table, NC_CHUNKED, chunk));
  HOLDS(nc_enddef(file));
  HOLDS(nc_var_par_access(file, table, NC_COLLECTIVE));
  put_rows(file, table, 0, (size_t)rank * ROWS_EACH, ROWS_EACH);
  HOLDS(nc_close(file));
}

static void read_table(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "data", 0, all_rows());
  HOLDS(nc_close(file));
}

/* ---- groups ---- */

static void write_groups(const char* path) {
  const int file = create_file(path);
  int groups[VARIABLES], tables[VARIABLES];
  for (int i = 0; i < VARIABLES; ++i) {
    char name[32];
    snprintf(name, sizeof name, "group%d", i);
    HOLDS(nc_def_grp(file, name, &groups[i]));
    tables[i] = define_table(groups[i], "data", all_rows());
    HOLDS(nc_put_att_int(groups[i], NC_GLOBAL, "number", NC_INT, 1, &i));
  }
  HOLDS(nc_enddef(file));
  for (int i = 0; i < VARIABLES; ++i) {
    HOLDS(nc_var_par_access(groups[i], tables[i], i % 2 ? NC_COLLECTIVE : NC_INDEPENDENT));
    put_rows(groups[i], tables[i], i, (size_t)rank * ROWS_EACH, ROWS_EACH);
  }
  HOLDS(nc_close(file));
}

static void read_groups(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  for (int i = 0; i < VARIABLES; ++i) {
    int group = -1, number = -1;
    char name[32];
    snprintf(name, sizeof name, "group%d", i);
    HOLDS(nc_inq_ncid(file, name, &group));
    HOLDS(nc_get_att_int(group, NC_GLOBAL, "number", &number));
    CHECK(number == i);
    check_rows(group, "data", i, all_rows());
  }
  HOLDS(nc_close(file));
}

/* ---- records ---- */

static void put_records(int file, int first, int end) {
  int table = -1;
  HOLDS(nc_inq_varid(file, "data", &table));
  HOLDS(nc_var_par_access(file, table, NC_COLLECTIVE));
  for (int i = first; i < end; ++i) put_rows(file, table, 0, (size_t)(i * ranks + rank), 1);
}

static void write_records(const char* path) {
  int file = create_file(path);
  define_table(file, "data", NC_UNLIMITED);
  HOLDS(nc_enddef(file));
  put_records(file, 0, RECORDS / 2);
  HOLDS(nc_sync(file));
  HOLDS(nc_close(file));
  file = open_file(path, NC_WRITE);
  put_records(file, RECORDS / 2, RECORDS);
  HOLDS(nc_close(file));
}

static void read_records(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "data", 0, (size_t)ranks * RECORDS);
  HOLDS(nc_close(file));
}

/* ---- defining more later ---- */

static void write_redefinition(const char* path) {
  int file = create_file(path), table = define_table(file, "first", all_rows());
  HOLDS(nc_enddef(file));
  HOLDS(nc_var_par_access(file, table, NC_COLLECTIVE));
  put_rows(file, table, 1, (size_t)rank * ROWS_EACH, ROWS_EACH);
  HOLDS(nc_close(file));
  file = open_file(path, NC_WRITE);
  HOLDS(nc_redef(file));
  table = define_table(file, "second", all_rows());
  HOLDS(nc_enddef(file));
  HOLDS(nc_var_par_access(file, table, NC_COLLECTIVE));
  put_rows(file, table, 2, (size_t)rank * ROWS_EACH, ROWS_EACH);
  HOLDS(nc_close(file));
}

static void read_redefinition(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "first", 1, all_rows());
  check_rows(file, "second", 2, all_rows());
  HOLDS(nc_close(file));
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"collective", write_collective, read_table},
      {"independent", write_independent, read_table},
      {"chunked", write_chunked, read_table},
      {"groups", write_groups, read_groups},
      {"records", write_records, read_records},
      {"redefinition", write_redefinition, read_redefinition},
      {NULL, NULL, NULL},
  };
  char number[32] = "?", version[64];
  (void)sscanf(nc_inq_libvers(), "%31[0-9.]", number);
  snprintf(version, sizeof version, "netCDF-4 %s", number);
  return run_cases(argc, argv, cases, ".nc", version);
}
