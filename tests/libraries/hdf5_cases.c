/* What programs do with parallel HDF5: collective and independent writes, contiguous, chunked and
 * compressed datasets, many small ones, attributes, selections of all kinds, compound types,
 * growing and reopening. */
#include "cases.h"
#include "hdf5_file.h"

enum { COLUMNS = 37, ROWS_EACH = 12 };

/* The selected block of a table of COLUMNS columns, from a buffer of just that block. */
static void write_block(hid_t dataset, const hsize_t* start, const hsize_t* size,
                        H5FD_mpio_xfer_t mode) {
  int* mine = allocate(size[0] * size[1] * sizeof *mine);
  for (hsize_t i = 0; i < size[0] * size[1]; ++i) {
    const hsize_t row = start[0] + i / size[1], column = start[1] + i % size[1];
    mine[i] = value_at(0, (long)(row * COLUMNS + column));
  }
  hid_t space = H5Dget_space(dataset);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
  hid_t memory = H5Screate_simple(2, size, NULL);
  write_selected(dataset, H5T_NATIVE_INT, memory, space, mode, mine);
  free(mine);
}

static hsize_t table_count(void) { return (hsize_t)ranks * ROWS_EACH * COLUMNS; }

static void read_table(const char* path) { check_whole(path, table_count()); }

static hid_t create_table(hid_t file, const hsize_t* chunk) {
  const hsize_t sizes[2] = {(hsize_t)ranks * ROWS_EACH, COLUMNS};
  return create_dataset(file, "data", 2, sizes, chunk);
}

/* ---- tables ---- */

static void write_contiguous_collective(const char* path) {
  hid_t file = create_file(path), dataset = create_table(file, NULL);
  const hsize_t start[2] = {(hsize_t)rank * ROWS_EACH, 0}, size[2] = {ROWS_EACH, COLUMNS};
  write_block(dataset, start, size, H5FD_MPIO_COLLECTIVE);
  H5Dclose(dataset);
  close_file(file);
}

/* Rows dealt out in turn, each a call of its own. */
static void write_contiguous_independent(const char* path) {
  hid_t file = create_file(path), dataset = create_table(file, NULL);
  for (int i = 0; i < ROWS_EACH; ++i) {
    const hsize_t start[2] = {(hsize_t)(i * ranks + rank), 0}, size[2] = {1, COLUMNS};
    write_block(dataset, start, size, H5FD_MPIO_INDEPENDENT);
  }
  H5Dclose(dataset);
  close_file(file);
}

static void write_columns(hid_t dataset) {
  const hsize_t first = (hsize_t)(rank * COLUMNS / ranks);
  const hsize_t end = (hsize_t)((rank + 1) * COLUMNS / ranks);
  const hsize_t start[2] = {0, first}, size[2] = {(hsize_t)ranks * ROWS_EACH, end - first};
  write_block(dataset, start, size, H5FD_MPIO_COLLECTIVE);
}

/* Blocks of columns cross every chunk. */
static void write_chunked_collective(const char* path) {
  const hsize_t chunk[2] = {5, 8};
  hid_t file = create_file(path), dataset = create_table(file, chunk);
  write_columns(dataset);
  H5Dclose(dataset);
  close_file(file);
}

static void write_chunked_independent(const char* path) {
  const hsize_t chunk[2] = {ROWS_EACH, 8};
  hid_t file = create_file(path), dataset = create_table(file, chunk);
  for (int i = 0; i < ROWS_EACH; i += 5) {
    const hsize_t start[2] = {(hsize_t)(rank * ROWS_EACH + i), 0};
    const hsize_t size[2] = {(hsize_t)(i + 5 > ROWS_EACH ? ROWS_EACH - i : 5), COLUMNS};
    write_block(dataset, start, size, H5FD_MPIO_INDEPENDENT);
  }
  H5Dclose(dataset);
  close_file(file);
}

/* Chunks of a compressed dataset move when they are written: their size is known only then. */
static void write_compressed(const char* path) {
  const hsize_t sizes[2] = {(hsize_t)ranks * ROWS_EACH, COLUMNS}, chunk[2] = {5, 8};
  hid_t file = create_file(path), list = creation_list(2, chunk);
  CHECK(H5Pset_deflate(list, 4) >= 0);
  hid_t space = H5Screate_simple(2, sizes, NULL);
  hid_t dataset = H5Dcreate2(file, "data", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  write_columns(dataset);
  H5Sclose(space);
  H5Pclose(list);
  H5Dclose(dataset);
  close_file(file);
}

/* Collective metadata and aligned objects, as codes tuned for parallel file systems set them. */
static void write_aligned(const char* path) {
  hid_t list = access_list();
  CHECK(H5Pset_alignment(list, 1, 4096) >= 0);
  CHECK(H5Pset_coll_metadata_write(list, 1) >= 0);
  CHECK(H5Pset_all_coll_metadata_ops(list, 1) >= 0);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  hid_t dataset = create_table(file, NULL);
  write_columns(dataset);
  H5Dclose(dataset);
  H5Pclose(list);
  close_file(file);
}

/* Rank 0 takes no part in the data of a call that it makes all the same. */
static void write_empty_ranks(const char* path) {
  hid_t file = create_file(path), dataset = create_table(file, NULL);
  const hsize_t rows = (hsize_t)ranks * ROWS_EACH;
  const hsize_t start[2] = {0, 0}, size[2] = {rank == ranks - 1 ? rows : 0, COLUMNS};
  write_block(dataset, start, size, H5FD_MPIO_COLLECTIVE);
  H5Dclose(dataset);
  close_file(file);
}

/* ---- large ---- */

enum { LARGE_EACH = 3 << 18 }; /* 3 MiB of ints */

static void write_large(const char* path) {
  const hsize_t total = (hsize_t)ranks * LARGE_EACH, each = LARGE_EACH;
  const hsize_t start = (hsize_t)rank * LARGE_EACH;
  hid_t file = create_file(path), dataset = create_dataset(file, "data", 1, &total, NULL);
  int* mine = allocate(LARGE_EACH * sizeof *mine);
  for (hsize_t i = 0; i < each; ++i) mine[i] = value_at(0, (long)(start + i));
  hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &each, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &each, NULL);
  write_selected(dataset, H5T_NATIVE_INT, memory, space, H5FD_MPIO_COLLECTIVE, mine);
  H5Dclose(dataset);
  free(mine);
  close_file(file);
}

static void read_large(const char* path) { check_whole(path, (hsize_t)ranks * LARGE_EACH); }

/* ---- many small datasets and attributes ---- */

enum { DATASETS = 40, SMALL = 32 };

static void small_name(char* name, size_t size, int i) {
  snprintf(name, size, "/group%d/data%d", i % 4, i);
}

static void write_attribute(hid_t object, const char* name, int value) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(object, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0);
  H5Aclose(attribute);
  H5Sclose(space);
}

static int read_attribute(hid_t file, const char* object, const char* name) {
  int value = 0;
  hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Aread(attribute, H5T_NATIVE_INT, &value) >= 0);
  H5Aclose(attribute);
  return value;
}

/* Made by all, written by one. */
static void write_small(hid_t file, int i) {
  const hsize_t size = SMALL;
  char name[64];
  int values[SMALL];
  small_name(name, sizeof name, i);
  hid_t dataset = create_dataset(file, name, 1, &size, NULL);
  write_attribute(dataset, "number", i);
  for (int k = 0; k < SMALL; ++k) values[k] = value_at(i, k);
  if (i % ranks == rank) {
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  }
  H5Dclose(dataset);
}

static void write_many_datasets(const char* path) {
  hid_t file = create_file(path);
  for (int i = 0; i < 4; ++i) {
    char name[64];
    snprintf(name, sizeof name, "/group%d", i);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    write_attribute(group, "group", i);
    H5Gclose(group);
  }
  for (int i = 0; i < DATASETS; ++i) write_small(file, i);
  close_file(file);
}

static void read_many_datasets(const char* path) {
  hid_t file = open_file(path, H5F_ACC_RDONLY);
  for (int i = 0; i < DATASETS; ++i) {
    char name[64];
    small_name(name, sizeof name, i);
    int* all = read_whole(file, name, SMALL);
    for (int k = 0; k < SMALL; ++k) CHECK(all[k] == value_at(i, k));
    CHECK(read_attribute(file, name, "number") == i);
    free(all);
  }
  for (int i = 0; i < 4; ++i) {
    char name[64];
    snprintf(name, sizeof name, "/group%d", i);
    CHECK(read_attribute(file, name, "group") == i);
  }
  close_file(file);
}

/* ---- selections ---- */

enum { PLACES_EACH = 60, GHOSTS = 2 };

/* Every second element of a line, dealt out in turn, and a second, irregular selection on top;
 * in memory there are ghost cells at both ends. */
static void select_places(hid_t space) {
  const hsize_t start = (hsize_t)(2 * rank), stride = (hsize_t)(2 * ranks);
  const hsize_t count = PLACES_EACH / 2;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, NULL);
  const hsize_t more = (hsize_t)(2 * ranks * PLACES_EACH / 2 + rank * (PLACES_EACH / 2));
  H5Sselect_hyperslab(space, H5S_SELECT_OR, &more, NULL, &count, NULL);
}

static void write_hyperslabs(const char* path) {
  const hsize_t total = (hsize_t)(2 * ranks * PLACES_EACH), each = PLACES_EACH;
  hid_t file = create_file(path), dataset = create_dataset(file, "data", 1, &total, NULL);
  int mine[PLACES_EACH + 2 * GHOSTS];
  for (int i = 0; i < PLACES_EACH + 2 * GHOSTS; ++i) mine[i] = value_at(rank, i);
  const hsize_t with_ghosts = PLACES_EACH + 2 * GHOSTS, first = GHOSTS;
  hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &with_ghosts, NULL);
  select_places(space);
  H5Sselect_hyperslab(memory, H5S_SELECT_SET, &first, NULL, &each, NULL);
  write_selected(dataset, H5T_NATIVE_INT, memory, space, H5FD_MPIO_COLLECTIVE, mine);
  H5Dclose(dataset);
  close_file(file);
}

static void read_hyperslabs(const char* path) {
  hid_t file = open_file(path, H5F_ACC_RDONLY);
  const int total = 2 * ranks * PLACES_EACH, half = PLACES_EACH / 2;
  int* all = read_whole(file, "data", (hsize_t)total);
  for (int i = 0; i < ranks * PLACES_EACH; ++i) {
    const int turn = i / 2, owner = turn % ranks, k = turn / ranks;
    CHECK(all[i] == (i % 2 == 0 ? value_at(owner, GHOSTS + k) : UNTOUCHED));
  }
  for (int i = 0; i < ranks * half; ++i) {
    CHECK(all[ranks * PLACES_EACH + i] == value_at(i / half, GHOSTS + half + i % half));
  }
  for (int i = ranks * (PLACES_EACH + half); i < total; ++i) CHECK(all[i] == UNTOUCHED);
  free(all);
  close_file(file);
}

/* Single points, backwards, each rank alone. */
static void write_points(const char* path) {
  const hsize_t total = (hsize_t)(ranks * PLACES_EACH), each = PLACES_EACH;
  hid_t file = create_file(path), dataset = create_dataset(file, "data", 1, &total, NULL);
  hsize_t places[PLACES_EACH];
  int mine[PLACES_EACH];
  for (int i = 0; i < PLACES_EACH; ++i) {
    places[i] = (hsize_t)((PLACES_EACH - 1 - i) * ranks + rank);
    mine[i] = value_at(0, (long)places[i]);
  }
  hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &each, NULL);
  H5Sselect_elements(space, H5S_SELECT_SET, PLACES_EACH, places);
  write_selected(dataset, H5T_NATIVE_INT, memory, space, H5FD_MPIO_INDEPENDENT, mine);
  H5Dclose(dataset);
  close_file(file);
}

static void read_points(const char* path) { check_whole(path, (hsize_t)(ranks * PLACES_EACH)); }

/* ---- compound types ---- */

struct particle {
  int id;
  double place[3];
  char kind;
};

enum { PARTICLES_EACH = 25 };

static hid_t particle_type(void) {
  const hsize_t three = 3;
  hid_t place = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &three);
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct particle));
  H5Tinsert(type, "id", HOFFSET(struct particle, id), H5T_NATIVE_INT);
  H5Tinsert(type, "place", HOFFSET(struct particle, place), place);
  H5Tinsert(type, "kind", HOFFSET(struct particle, kind), H5T_NATIVE_CHAR);
  H5Tclose(place);
  return type;
}

static struct particle particle_at(long i) {
  struct particle p;
  memset(&p, 0, sizeof p);
  p.id = value_at(3, i);
  for (int k = 0; k < 3; ++k) p.place[k] = 0.5 * value_at(k, i);
  p.kind = (char)(i % 100);
  return p;
}

static hid_t create_particles(hid_t file, hid_t type) {
  const hsize_t total = (hsize_t)(ranks * PARTICLES_EACH);
  hid_t packed = H5Tcopy(type);
  CHECK(H5Tpack(packed) >= 0);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(list, 0);
  hid_t space = H5Screate_simple(1, &total, NULL);
  hid_t dataset = H5Dcreate2(file, "particles", packed, space, H5P_DEFAULT, list, H5P_DEFAULT);
  CHECK(dataset >= 0);
  H5Sclose(space);
  H5Pclose(list);
  H5Tclose(packed);
  return dataset;
}

static void write_compound(const char* path) {
  const hsize_t each = PARTICLES_EACH, start = (hsize_t)(rank * PARTICLES_EACH);
  struct particle mine[PARTICLES_EACH];
  for (int i = 0; i < PARTICLES_EACH; ++i) mine[i] = particle_at((long)start + i);
  hid_t file = create_file(path), type = particle_type();
  hid_t dataset = create_particles(file, type);
  hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &each, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &each, NULL);
  write_selected(dataset, type, memory, space, H5FD_MPIO_COLLECTIVE, mine);
  H5Dclose(dataset);
  H5Tclose(type);
  close_file(file);
}

static void read_compound(const char* path) {
  const size_t total = (size_t)(ranks * PARTICLES_EACH);
  struct particle* all = allocate(total * sizeof *all);
  hid_t file = open_file(path, H5F_ACC_RDONLY), type = particle_type();
  hid_t dataset = H5Dopen2(file, "particles", H5P_DEFAULT);
  CHECK(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
  for (size_t i = 0; i < total; ++i) {
    const struct particle wanted = particle_at((long)i);
    CHECK(all[i].id == wanted.id && all[i].kind == wanted.kind);
    CHECK(memcmp(all[i].place, wanted.place, sizeof wanted.place) == 0);
  }
  H5Dclose(dataset);
  H5Tclose(type);
  free(all);
  close_file(file);
}

/* ---- growing ---- */

enum { STEPS = 3, GROWTH_EACH = 50 };

static hid_t create_growing(hid_t file) {
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = 64;
  hid_t list = creation_list(1, &chunk), space = H5Screate_simple(1, &none, &unlimited);
  hid_t dataset = H5Dcreate2(file, "data", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  CHECK(dataset >= 0);
  H5Sclose(space);
  H5Pclose(list);
  return dataset;
}

static void append_step(hid_t dataset, int step) {
  const hsize_t size = (hsize_t)((step + 1) * ranks * GROWTH_EACH), each = GROWTH_EACH;
  const hsize_t start = (hsize_t)((step * ranks + rank) * GROWTH_EACH);
  int mine[GROWTH_EACH];
  for (int i = 0; i < GROWTH_EACH; ++i) mine[i] = value_at(0, (long)start + i);
  CHECK(H5Dset_extent(dataset, &size) >= 0);
  hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &each, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &each, NULL);
  write_selected(dataset, H5T_NATIVE_INT, memory, space,
                 step % 2 == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT, mine);
}

/* After a flush, what every rank wrote is there for every rank. */
static void check_flushed(hid_t file, int steps) {
  CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int count = steps * ranks * GROWTH_EACH;
  int* all = read_whole(file, "data", (hsize_t)count);
  for (int i = 0; i < count; ++i) CHECK(all[i] == value_at(0, i));
  free(all);
}

static void write_append(const char* path) {
  hid_t file = create_file(path), dataset = create_growing(file);
  append_step(dataset, 0);
  H5Dclose(dataset);
  close_file(file);
  for (int step = 1; step < STEPS; ++step) {
    file = open_file(path, H5F_ACC_RDWR);
    dataset = H5Dopen2(file, "data", H5P_DEFAULT);
    append_step(dataset, step);
    H5Dclose(dataset);
    check_flushed(file, step + 1);
    close_file(file);
  }
}

static void read_append(const char* path) {
  check_whole(path, (hsize_t)(STEPS * ranks * GROWTH_EACH));
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"contiguous_collective", write_contiguous_collective, read_table},
      {"contiguous_independent", write_contiguous_independent, read_table},
      {"chunked_collective", write_chunked_collective, read_table},
      {"chunked_independent", write_chunked_independent, read_table},
      {"compressed", write_compressed, read_table},
      {"aligned", write_aligned, read_table},
      {"empty_ranks", write_empty_ranks, read_table},
      {"large", write_large, read_large},
      {"many_datasets", write_many_datasets, read_many_datasets},
      {"hyperslabs", write_hyperslabs, read_hyperslabs},
      {"points", write_points, read_points},
      {"compound", write_compound, read_compound},
      {"append", write_append, read_append},
      {NULL, NULL, NULL},
  };
  unsigned major = 0, minor = 0, release = 0;
  char version[64];
  H5get_libversion(&major, &minor, &release);
  snprintf(version, sizeof version, "HDF5 %u.%u.%u", major, minor, release);
  return run_cases(argc, argv, cases, ".h5", version);
}
