/* PnetCDF: records appended to several record variables of doubles, as climate models do. Every
 * iteration adds one record to each variable; every rank holds a block of each record. Read back
 * without PnetCDF: the file is big-endian and its places are asked before it is closed. */
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

enum { MAX_VARIABLES = 64 };

static struct Peer peer = {.program = "peer-pnetcdf",
                           .summary = "records appended to record variables of PnetCDF"};
static const char* access_mode = "collective";
static const char* calls = "blocking";
static int64_t variables = 4;
static int64_t slab_bytes = 0;

static const struct PeerOption options[] = {
    {"variables", PEER_COUNT, &variables, NULL, "record variables, which share --bufsize"},
    {"access", PEER_CHOICE, &access_mode, "collective|independent", "how records are written"},
    {"calls", PEER_CHOICE, &calls, "blocking|nonblocking",
     "put_vara for each variable, or iput_vara for all and one wait"},
    {"slab", PEER_BYTES, &slab_bytes, NULL, "rows of so many bytes a put_vara; 0: a rank's block"},
};

static int variable_ids[MAX_VARIABLES];
static MPI_Offset places[MAX_VARIABLES], record_bytes;

static bool ok(const char* where, int code) {
  if (code == NC_NOERR) return true;
  const bool full = code == NC_ENO_SPACE || code == NC_EQUOTA;
  peer_fail(&peer, where, full ? "MPI_ERR_NO_SPACE" : "MPI_ERR_IO", "PnetCDF: %s",
            ncmpi_strerror(code));
  return false;
}

static struct PeerArray record(void) { return peer_array(&peer, 2, peer.bufsize / 8 / variables); }

static bool has_aggregation(void) {
  int major = 0, minor = 0;
  sscanf(ncmpi_inq_libvers(), "%d.%d", &major, &minor);
  return major > 1 || (major == 1 && minor >= 14);
}

/* The library takes hints that it does not know without a word: a measurement of nothing. */
static const char* unknown_hint(void) {
  for (int i = 0; i < peer.hints; ++i) {
    if (!strcmp(peer.hint_keys[i], "nc_num_aggrs_per_node") && !has_aggregation())
      return "nc_num_aggrs_per_node needs PnetCDF 1.14";
  }
  return NULL;
}

/* ---- writing ---- */

static void define(int file, const struct PeerArray* array) {
  int dims[3];
  ok("define", ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  ok("define", ncmpi_def_dim(file, "y", array->global[0], &dims[1]));
  ok("define", ncmpi_def_dim(file, "x", array->global[1], &dims[2]));
  for (int v = 0; v < variables; ++v) {
    char name[16];
    snprintf(name, sizeof name, "v%d", v);
    ok("define", ncmpi_def_var(file, name, NC_DOUBLE, 3, dims, &variable_ids[v]));
  }
  ok("define", ncmpi_enddef(file));
  if (!strcmp(access_mode, "independent")) ok("define", ncmpi_begin_indep_data(file));
}

static int put_part(int file, int variable, int64_t iteration, const struct PeerArray* part,
                    const double* values) {
  const MPI_Offset start[3] = {iteration, part->start[0], part->start[1]};
  const MPI_Offset count[3] = {1, part->count[0], part->count[1]};
  ++peer.calls;
  if (!strcmp(access_mode, "collective"))
    return ncmpi_put_vara_double_all(file, variable_ids[variable], start, count, values);
  return ncmpi_put_vara_double(file, variable_ids[variable], start, count, values);
}

static void put_block(int file, int variable, int64_t iteration, const struct PeerArray* array,
                      const double* values) {
  struct PeerArray part;
  for (int64_t i = 0; peer_array_part(array, slab_bytes / 8, i, &part); ++i) {
    ok("write", put_part(file, variable, iteration, &part, values));
    values += peer_array_elements(&part);
  }
}

static int put_later(int file, int variable, int64_t iteration, const struct PeerArray* array,
                     const double* values, int* request) {
  const MPI_Offset start[3] = {iteration, array->start[0], array->start[1]};
  const MPI_Offset count[3] = {1, array->count[0], array->count[1]};
  ++peer.calls;
  return ncmpi_iput_vara_double(file, variable_ids[variable], start, count, values, request);
}

static void wait_for(int file, int* requests) {
  int states[MAX_VARIABLES];
  const bool together = !strcmp(access_mode, "collective");
  ok("write", together ? ncmpi_wait_all(file, (int)variables, requests, states)
                       : ncmpi_wait(file, (int)variables, requests, states));
  for (int v = 0; v < variables; ++v) ok("write", states[v]);
}

static void append_record(int file, const struct PeerArray* array, int64_t iteration,
                          const double* values) {
  const int64_t block = peer_array_elements(array);
  int requests[MAX_VARIABLES];
  const bool later = !strcmp(calls, "nonblocking");
  for (int v = 0; v < variables; ++v) {
    const double* mine = values + v * block;
    if (later)
      ok("write", put_later(file, v, iteration, array, mine, &requests[v]));
    else
      put_block(file, v, iteration, array, mine);
    peer.bytes += block * 8;
  }
  if (later) wait_for(file, requests);
}

static void find_places(int file) {
  for (int v = 0; v < variables; ++v)
    ok("inquire", ncmpi_inq_varoffset(file, variable_ids[v], &places[v]));
  ok("inquire", ncmpi_inq_recsize(file, &record_bytes));
}

static void write_file(const double* buffer) {
  const struct PeerArray array = record();
  MPI_Info info = peer_info(&peer);
  int file;
  peer_begin(&peer);
  const bool opened =
      ok("open", ncmpi_create(MPI_COMM_WORLD, peer.file, NC_CLOBBER | NC_64BIT_DATA, info, &file));
  if (opened) define(file, &array);
  peer_lap(&peer, PEER_OPEN);
  if (opened) {
    for (int64_t i = 0; i < peer.iters; ++i)
      append_record(file, &array, i, buffer + i * PEER_SHIFT);
    peer_lap(&peer, PEER_WRITE);
    if (!strcmp(access_mode, "independent")) ok("write", ncmpi_end_indep_data(file));
    if (!strcmp(peer.end, "sync")) ok("sync", ncmpi_sync(file));
    peer_lap(&peer, PEER_SYNC);
    find_places(file);
    ok("close", ncmpi_close(file));
    peer_lap(&peer, PEER_CLOSE);
  }
  peer_end(&peer);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

/* ---- reading back ---- */

static bool read_all(int fd, void* to, size_t bytes, off_t offset) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd, (char*)to + done, bytes - done, offset + (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      peer_fail(&peer, "verify", "MPI_ERR_IO", "pread: %s", strerror(errno));
    else if (n == 0) /* a file that ends too soon holds wrong bytes: zeros are compared */
      return true;
    if (n < 0) return false;
    done += (size_t)n;
  }
  return true;
}

static void to_host_order(double* values, int64_t n) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t word;
  for (int64_t i = 0; i < n; ++i) {
    memcpy(&word, &values[i], sizeof word);
    word = bswap_64(word);
    memcpy(&values[i], &word, sizeof word);
  }
#else
  (void)values, (void)n;
#endif
}

static void check_record(int fd, const struct PeerArray* array, int v, int64_t iteration) {
  int64_t begin, end;
  char name[16];
  peer_share(&peer, array->global[0], &begin, &end);
  if (begin == end) return;
  const int64_t row = array->global[1], n = (end - begin) * row;
  double* values = calloc((size_t)n, sizeof(double));
  const off_t place = places[v] + iteration * record_bytes + begin * row * 8;
  snprintf(name, sizeof name, "v%d", v);
  if (values && read_all(fd, values, (size_t)n * 8, place)) {
    to_host_order(values, n);
    peer_check_planes(&peer, array, begin, end, values, v * peer_array_elements(array), iteration,
                      name);
  }
  free(values);
}

static void verify(void) {
  const struct PeerArray array = record();
  const int fd = open(peer.file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    peer_fail(&peer, "verify", "MPI_ERR_IO", "open %s: %s", peer.file, strerror(errno));
    return;
  }
  for (int64_t i = 0; i < peer.iters; ++i)
    for (int v = 0; v < variables; ++v) check_record(fd, &array, v, i);
  close(fd);
}

int main(int argc, char** argv) {
  char version[64];
  snprintf(version, sizeof version, "PnetCDF %.*s", (int)strcspn(ncmpi_inq_libvers(), " "),
           ncmpi_inq_libvers());
  peer.version = version;
  const int code = peer_start(&peer, argc, argv, options, sizeof options / sizeof *options);
  if (code >= 0) return code;
  if (variables < 1 || variables > MAX_VARIABLES || peer.bufsize < 8 * variables)
    return peer_usage(&peer, "--variables must be 1 to %d and at most --bufsize / 8, got %" PRId64,
                      MAX_VARIABLES, variables);
  if (slab_bytes > 0 && !strcmp(calls, "nonblocking"))
    return peer_usage(&peer, "--slab cuts put_vara: it goes with --calls blocking");
  const char* unknown = unknown_hint();
  if (unknown) return peer_usage(&peer, "--hint: %s, this is %s", unknown, version);
  double* buffer = peer_buffer(&peer, peer.bufsize / 8);
  if (!peer_any_failed(&peer)) write_file(buffer);
  if (!peer_any_failed(&peer) && !strcmp(peer.verify, "all")) verify();
  free(buffer);
  return peer_finish(&peer);
}
