/* Parallel HDF5: one file, one dataset of doubles per iteration, each cut into equal blocks, one
 * per rank and written as a hyperslab. The kinds of datasets follow each other in turn. Read back
 * without MPI-IO, by HDF5's POSIX driver, in whole planes. */
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

static struct Peer peer = {.program = "peer-hdf5",
                           .summary = "datasets of parallel HDF5, a hyperslab per rank"};
static const char* kinds = "2d,3d,chunked";
static const char* access_mode = "collective";
static int64_t chunk_bytes = INT64_C(1) << 20;
static int64_t alignment_bytes = 0;
static int64_t slab_bytes = 0;

enum { MAX_KINDS = 8 };
struct Kind {
  const char* name;
  int dims;
  bool chunked;
};
static const struct Kind known[] = {{"2d", 2, false}, {"3d", 3, false}, {"chunked", 3, true}};
static struct Kind wanted[MAX_KINDS];
static int wanted_count;

static const struct PeerOption options[] = {
    {"datasets", PEER_TEXT, &kinds, NULL, "of 2d, 3d, chunked (3d), in turn, separated by commas"},
    {"access", PEER_CHOICE, &access_mode, "collective|independent", "the transfer of the raw data"},
    {"chunk", PEER_BYTES, &chunk_bytes, NULL, "about so many bytes per chunk of a chunked dataset"},
    {"alignment", PEER_BYTES, &alignment_bytes, NULL,
     "H5Pset_alignment for what is larger; 0: none"},
    {"slab", PEER_BYTES, &slab_bytes, NULL, "rows of so many bytes a H5Dwrite; 0: a rank's block"},
};

static bool parse_kinds(void) {
  char text[256];
  snprintf(text, sizeof text, "%s", kinds);
  for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
    const int before = wanted_count;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
      if (!strcmp(known[i].name, word) && wanted_count < MAX_KINDS)
        wanted[wanted_count++] = known[i];
    }
    if (wanted_count == before) return false;
  }
  return wanted_count > 0;
}

/* ---- errors: the innermost entry of HDF5's stack says what happened ---- */

struct Reason {
  char text[320];
};

static herr_t add_reason(unsigned n, const H5E_error2_t* entry, void* to) {
  struct Reason* reason = to;
  const size_t used = strlen(reason->text);
  if (n < 3 && entry->desc)
    snprintf(reason->text + used, sizeof reason->text - used, "%s%s", used ? "; " : "",
             entry->desc);
  return 0;
}

static bool ok(const char* where, int64_t code) {
  if (code >= 0) return true;
  struct Reason reason = {""};
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, add_reason, &reason);
  const bool full = strstr(reason.text, "NO_SPACE") || strstr(reason.text, "No space");
  peer_fail(&peer, where, full ? "MPI_ERR_NO_SPACE" : "MPI_ERR_IO", "HDF5: %s", reason.text);
  H5Eclear2(H5E_DEFAULT);
  return false;
}

/* ---- writing ---- */

static const struct Kind* kind_of(int64_t iteration) { return &wanted[iteration % wanted_count]; }

static hid_t open_file(void) {
  const hid_t how = H5Pcreate(H5P_FILE_ACCESS);
  MPI_Info info = peer_info(&peer);
  ok("open", H5Pset_fapl_mpio(how, MPI_COMM_WORLD, info));
  if (alignment_bytes > 0)
    ok("open", H5Pset_alignment(how, (hsize_t)alignment_bytes, (hsize_t)alignment_bytes));
  const hid_t file = H5Fcreate(peer.file, H5F_ACC_TRUNC, H5P_DEFAULT, how);
  ok("open", file);
  H5Pclose(how);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  return file;
}

/* Every byte is written anyway: no fill values. */
static hid_t creation_list(const struct Kind* kind, const struct PeerArray* array) {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  if (!kind->chunked) return list;
  hsize_t chunk[3];
  const double edge = pow((double)chunk_bytes / 8, 1.0 / kind->dims);
  for (int d = 0; d < kind->dims; ++d)
    chunk[d] = (hsize_t)fmax(1, fmin(edge, (double)array->global[d]));
  H5Pset_chunk(list, kind->dims, chunk);
  return list;
}

static void copy_dims(hsize_t* to, const int64_t* from, int dims) {
  for (int d = 0; d < dims; ++d) to[d] = (hsize_t)from[d];
}

static hid_t create_dataset(hid_t file, const struct PeerArray* array, int64_t iteration) {
  const struct Kind* kind = kind_of(iteration);
  hsize_t global[3];
  char name[32];
  copy_dims(global, array->global, kind->dims);
  snprintf(name, sizeof name, "d%" PRId64, iteration);
  const hid_t space = H5Screate_simple(kind->dims, global, NULL);
  const hid_t list = creation_list(kind, array);
  const hid_t data =
      H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  ok("create dataset", data);
  H5Pclose(list);
  H5Sclose(space);
  return data;
}

/* A part of the rank's block, whose place and extents are `array`'s. */
static void write_part(hid_t data, const struct PeerArray* array, hid_t transfer,
                       const double* values) {
  hsize_t start[3], count[3];
  copy_dims(start, array->start, array->dims);
  copy_dims(count, array->count, array->dims);
  const hid_t file_space = H5Dget_space(data);
  H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL);
  const hid_t memory = H5Screate_simple(array->dims, count, NULL);
  ok("write", H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, file_space, transfer, values));
  H5Sclose(memory);
  H5Sclose(file_space);
  ++peer.calls;
}

static void write_block(hid_t data, const struct PeerArray* array, hid_t transfer,
                        const double* values) {
  struct PeerArray part;
  for (int64_t i = 0; peer_array_part(array, slab_bytes / 8, i, &part); ++i) {
    write_part(data, &part, transfer, values);
    values += peer_array_elements(&part);
  }
}

static void write_datasets(hid_t file, const double* buffer) {
  const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  const bool together = !strcmp(access_mode, "collective");
  H5Pset_dxpl_mpio(transfer, together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  for (int64_t i = 0; i < peer.iters; ++i) {
    const struct PeerArray array = peer_array(&peer, kind_of(i)->dims, peer.bufsize / 8);
    const hid_t data = create_dataset(file, &array, i);
    if (data >= 0) {
      write_block(data, &array, transfer, buffer + i * PEER_SHIFT);
      ok("close dataset", H5Dclose(data));
    }
    peer.bytes += peer_array_elements(&array) * 8;
  }
  H5Pclose(transfer);
}

static void write_file(const double* buffer) {
  peer_begin(&peer);
  const hid_t file = open_file();
  peer_lap(&peer, PEER_OPEN);
  if (peer_any_failed(&peer)) { /* whoever has the file open cannot close it alone */
    peer_end(&peer);
    return;
  }
  write_datasets(file, buffer);
  peer_lap(&peer, PEER_WRITE);
  if (!strcmp(peer.end, "sync")) ok("sync", H5Fflush(file, H5F_SCOPE_GLOBAL));
  peer_lap(&peer, PEER_SYNC);
  ok("close", H5Fclose(file));
  peer_lap(&peer, PEER_CLOSE);
  peer_end(&peer);
}

/* ---- reading back ---- */

static void check_dataset(hid_t file, int64_t iteration) {
  const struct PeerArray array = peer_array(&peer, kind_of(iteration)->dims, peer.bufsize / 8);
  char name[32];
  int64_t begin, end;
  snprintf(name, sizeof name, "d%" PRId64, iteration);
  peer_share(&peer, array.global[0], &begin, &end);
  if (begin == end) return;
  hsize_t start[3] = {(hsize_t)begin, 0, 0}, count[3];
  copy_dims(count, array.global, array.dims);
  count[0] = (hsize_t)(end - begin);
  const size_t bytes = (size_t)((end - begin) * array.global[1] * array.global[2]) * sizeof(double);
  double* values = calloc(1, bytes);
  const hid_t data = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(data), memory = H5Screate_simple(array.dims, count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  if (values && ok("verify", H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values)))
    peer_check_planes(&peer, &array, begin, end, values, 0, iteration, name);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(data);
  free(values);
}

static void verify(void) {
  const hid_t file = H5Fopen(peer.file, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (!ok("verify", file)) return;
  for (int64_t i = 0; i < peer.iters; ++i) check_dataset(file, i);
  H5Fclose(file);
}

int main(int argc, char** argv) {
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0); /* many ranks open one file to read it back */
  H5dont_atexit(); /* after a failed write HDF5 would try again, with MPI gone */
  char version[32];
  unsigned major, minor, release;
  H5get_libversion(&major, &minor, &release);
  snprintf(version, sizeof version, "HDF5 %u.%u.%u", major, minor, release);
  peer.version = version;
  const int code = peer_start(&peer, argc, argv, options, sizeof options / sizeof *options);
  if (code >= 0) return code;
  if (!parse_kinds())
    return peer_usage(&peer, "--datasets must name at most 8 of 2d, 3d and chunked, got %s", kinds);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  double* buffer = peer_buffer(&peer, peer.bufsize / 8);
  if (!peer_any_failed(&peer)) write_file(buffer);
  if (!peer_any_failed(&peer) && !strcmp(peer.verify, "all")) verify();
  free(buffer);
  return peer_finish(&peer);
}
