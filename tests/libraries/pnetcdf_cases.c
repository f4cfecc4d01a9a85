/* What programs do with PnetCDF: collective and independent puts, nonblocking puts of many
 * variables, lists of places, record variables that grow, and defining more later, which moves
 * what was written. */
#include <pnetcdf.h>

#include "cases.h"

enum { COLUMNS = 23, ROWS_EACH = 10, RECORDS = 4, VARIABLES = 12 };

#define HOLDS(call)                                                            \
  do {                                                                         \
    const int status_ = (call);                                                \
    if (status_ != NC_NOERR) fprintf(stderr, "%s\n", ncmpi_strerror(status_)); \
    CHECK(status_ == NC_NOERR);                                                \
  } while (0)

/* ---- the file ---- */

static int create_file(const char* path) {
  int file = -1;
  HOLDS(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  return file;
}

static int open_file(const char* path, int mode) {
  int file = -1;
  HOLDS(ncmpi_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
  return file;
}

/* A table `name` of all ranks' rows. */
static int define_table(int file, const char* name, int first_dimension) {
  int dimensions[2] = {first_dimension, -1}, variable = -1;
  if (ncmpi_inq_dimid(file, "column", &dimensions[1]) != NC_NOERR)
    HOLDS(ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]));
  HOLDS(ncmpi_def_var(file, name, NC_INT, 2, dimensions, &variable));
  return variable;
}

static int define_rows(int file) {
  int rows = -1;
  HOLDS(ncmpi_def_dim(file, "row", (MPI_Offset)ranks * ROWS_EACH, &rows));
  return rows;
}

/* `rows` rows from `first`, of array `array`. */
static int* block_of(int array, long first, long rows) {
  int* block = allocate((size_t)rows * COLUMNS * sizeof *block);
  for (long i = 0; i < rows * COLUMNS; ++i) block[i] = value_at(array, first * COLUMNS + i);
  return block;
}

static void check_rows(int file, const char* name, int array, long rows) {
  int variable = -1;
  HOLDS(ncmpi_inq_varid(file, name, &variable));
  const MPI_Offset start[2] = {0, 0}, count[2] = {rows, COLUMNS};
  int* all = allocate((size_t)rows * COLUMNS * sizeof *all);
  HOLDS(ncmpi_get_vara_int_all(file, variable, start, count, all));
  for (long i = 0; i < rows * COLUMNS; ++i) CHECK(all[i] == value_at(array, i));
  free(all);
}

/* ---- fixed tables ---- */

static void write_collective(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", define_rows(file));
  HOLDS(ncmpi_put_att_text(file, table, "units", 5, "volts"));
  HOLDS(ncmpi_enddef(file));
  const MPI_Offset start[2] = {rank * ROWS_EACH, 0}, count[2] = {ROWS_EACH, COLUMNS};
  int* mine = block_of(0, rank * ROWS_EACH, ROWS_EACH);
  HOLDS(ncmpi_put_vara_int_all(file, table, start, count, mine));
  free(mine);
  HOLDS(ncmpi_close(file));
}

/* Columns: many small pieces of the file on every rank. */
static void write_columns(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", define_rows(file));
  HOLDS(ncmpi_enddef(file));
  const int first = rank * COLUMNS / ranks, end = (rank + 1) * COLUMNS / ranks;
  const long rows = (long)ranks * ROWS_EACH, width = end - first;
  const MPI_Offset start[2] = {0, first}, count[2] = {rows, width};
  int* mine = allocate((size_t)(rows * width) * sizeof *mine);
  for (long i = 0; i < rows * width; ++i)
    mine[i] = value_at(0, i / width * COLUMNS + first + i % width);
  HOLDS(ncmpi_put_vara_int_all(file, table, start, count, mine));
  free(mine);
  HOLDS(ncmpi_close(file));
}

static void write_independent(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", define_rows(file));
  HOLDS(ncmpi_enddef(file));
  HOLDS(ncmpi_begin_indep_data(file));
  for (int i = 0; i < ROWS_EACH; ++i) {
    const long row = i * ranks + rank;
    const MPI_Offset start[2] = {row, 0}, count[2] = {1, COLUMNS};
    int* mine = block_of(0, row, 1);
    HOLDS(ncmpi_put_vara_int(file, table, start, count, mine));
    free(mine);
  }
  HOLDS(ncmpi_end_indep_data(file));
  HOLDS(ncmpi_close(file));
}

/* One call with a list of places: every second row forwards, then the others. */
static void write_varn(const char* path) {
  const int file = create_file(path), table = define_table(file, "data", define_rows(file));
  HOLDS(ncmpi_enddef(file));
  MPI_Offset starts[ROWS_EACH][2], counts[ROWS_EACH][2];
  MPI_Offset *start[ROWS_EACH], *count[ROWS_EACH];
  int mine[ROWS_EACH * COLUMNS];
  for (int i = 0; i < ROWS_EACH; ++i) {
    const int turn = i < ROWS_EACH / 2 ? 2 * i : 2 * (i - ROWS_EACH / 2) + 1;
    const long row = turn * ranks + rank;
    starts[i][0] = row, starts[i][1] = 0, counts[i][0] = 1, counts[i][1] = COLUMNS;
    start[i] = starts[i], count[i] = counts[i];
    for (int k = 0; k < COLUMNS; ++k) mine[i * COLUMNS + k] = value_at(0, row * COLUMNS + k);
  }
  HOLDS(ncmpi_put_varn_int_all(file, table, ROWS_EACH, start, count, mine));
  HOLDS(ncmpi_close(file));
}

static void read_table(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "data", 0, (long)ranks * ROWS_EACH);
  HOLDS(ncmpi_close(file));
}

/* ---- many variables, nonblocking ---- */

static void variable_name(char* name, size_t size, int i) { snprintf(name, size, "data%d", i); }

static void write_nonblocking(const char* path) {
  const int file = create_file(path), rows = define_rows(file);
  int tables[VARIABLES], requests[VARIABLES], statuses[VARIABLES];
  int* blocks[VARIABLES];
  for (int i = 0; i < VARIABLES; ++i) {
    char name[32];
    variable_name(name, sizeof name, i);
    tables[i] = define_table(file, name, rows);
  }
  HOLDS(ncmpi_enddef(file));
  const MPI_Offset start[2] = {rank * ROWS_EACH, 0}, count[2] = {ROWS_EACH, COLUMNS};
  for (int i = 0; i < VARIABLES; ++i) {
    blocks[i] = block_of(i, rank * ROWS_EACH, ROWS_EACH);
    HOLDS(ncmpi_iput_vara_int(file, tables[i], start, count, blocks[i], &requests[i]));
  }
  HOLDS(ncmpi_wait_all(file, VARIABLES, requests, statuses));
  for (int i = 0; i < VARIABLES; ++i) {
    CHECK(statuses[i] == NC_NOERR);
    free(blocks[i]);
  }
  HOLDS(ncmpi_close(file));
}

static void read_nonblocking(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  for (int i = 0; i < VARIABLES; ++i) {
    char name[32];
    variable_name(name, sizeof name, i);
    check_rows(file, name, i, (long)ranks * ROWS_EACH);
  }
  HOLDS(ncmpi_close(file));
}

/* ---- records ---- */

/* Two record variables: their records alternate in the file. Each rank writes records in turn. */
static void put_records(int file, int first, int end) {
  int one = -1, two = -1;
  HOLDS(ncmpi_inq_varid(file, "one", &one));
  HOLDS(ncmpi_inq_varid(file, "two", &two));
  for (int i = first; i < end; ++i) {
    const long record = (long)i * ranks + rank;
    const MPI_Offset start[2] = {record, 0}, count[2] = {1, COLUMNS};
    int *of_one = block_of(1, record, 1), *of_two = block_of(2, record, 1);
    HOLDS(ncmpi_put_vara_int_all(file, one, start, count, of_one));
    HOLDS(ncmpi_put_vara_int_all(file, two, start, count, of_two));
    free(of_one);
    free(of_two);
  }
}

static void write_records(const char* path) {
  int file = create_file(path), time = -1;
  HOLDS(ncmpi_def_dim(file, "time", NC_UNLIMITED, &time));
  define_table(file, "one", time);
  define_table(file, "two", time);
  HOLDS(ncmpi_enddef(file));
  put_records(file, 0, RECORDS / 2);
  HOLDS(ncmpi_sync(file));
  HOLDS(ncmpi_close(file));
  file = open_file(path, NC_WRITE);
  put_records(file, RECORDS / 2, RECORDS);
  HOLDS(ncmpi_close(file));
}

static void read_records(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "one", 1, (long)ranks * RECORDS);
  check_rows(file, "two", 2, (long)ranks * RECORDS);
  HOLDS(ncmpi_close(file));
}

/* ---- defining more later ---- */

static void put_table(int file, int variable, int array) {
  const MPI_Offset start[2] = {rank * ROWS_EACH, 0}, count[2] = {ROWS_EACH, COLUMNS};
  int* mine = block_of(array, rank * ROWS_EACH, ROWS_EACH);
  HOLDS(ncmpi_put_vara_int_all(file, variable, start, count, mine));
  free(mine);
}

/* The header grows, so the library moves the first table: it reads it and writes it again. */
static void write_redefinition(const char* path) {
  int file = create_file(path);
  const int rows = define_rows(file), first = define_table(file, "first", rows);
  HOLDS(ncmpi_enddef(file));
  put_table(file, first, 1);
  HOLDS(ncmpi_redef(file));
  char text[2000];
  memset(text, 'x', sizeof text);
  HOLDS(ncmpi_put_att_text(file, NC_GLOBAL, "history", sizeof text, text));
  const int second = define_table(file, "second", rows);
  HOLDS(ncmpi_enddef(file));
  put_table(file, second, 2);
  HOLDS(ncmpi_close(file));
}

static void read_redefinition(const char* path) {
  const int file = open_file(path, NC_NOWRITE);
  check_rows(file, "first", 1, (long)ranks * ROWS_EACH);
  check_rows(file, "second", 2, (long)ranks * ROWS_EACH);
  HOLDS(ncmpi_close(file));
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"collective", write_collective, read_table},
      {"columns", write_columns, read_table},
      {"independent", write_independent, read_table},
      {"varn", write_varn, read_table},
      {"nonblocking", write_nonblocking, read_nonblocking},
      {"records", write_records, read_records},
      {"redefinition", write_redefinition, read_redefinition},
      {NULL, NULL, NULL},
  };
  char number[32] = "?", version[64];
  const char* digits = strpbrk(ncmpi_inq_libvers(), "0123456789");
  if (digits != NULL) (void)sscanf(digits, "%31[0-9.]", number);
  snprintf(version, sizeof version, "PnetCDF %s", number);
  return run_cases(argc, argv, cases, ".nc", version);
}
