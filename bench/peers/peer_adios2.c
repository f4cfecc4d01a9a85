/* ADIOS2's BP5 writer on MPI: a step per iteration, a 3-D array cut into blocks or a particle dump.
 * Everybody's bytes go into a directory of files of ADIOS2's own choosing, so --file names a
 * directory. BP5 never syncs: with --end sync the first rank of each node fsyncs the files after
 * the close, while the clock runs. Read back by ADIOS2 without MPI. */
#define ADIOS2_USE_MPI 1
#include <adios2_c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

enum { PARTICLE_VARIABLES = 7 };
static const char* const particle_names[PARTICLE_VARIABLES] = {"x",  "y",  "z", "vx",
                                                               "vy", "vz", "id"};
/* The library takes parameters that it does not know without a word: a measurement of nothing. */
static const char* const known_parameters[] = {
    "AggregationType", "NumAggregators",      "NumSubFiles",         "AggregatorRatio",
    "MaxShmSize",      "BufferVType",         "BufferChunkSize",     "InitialBufferSize",
    "MinDeferredSize", "GrowthFactor",        "AsyncOpen",           "AsyncWrite",
    "DirectIO",        "DirectIOAlignOffset", "DirectIOAlignBuffer", "StatsLevel"};

static struct Peer peer = {.program = "peer-adios2",
                           .summary = "steps of ADIOS2's BP5 writer; --file names a directory",
                           .version = "ADIOS2 " ADIOS2_VERSION_STR};
static const char* pattern = "cubes3d";

static const struct PeerOption options[] = {
    {"pattern", PEER_CHOICE, &pattern, "cubes3d|particles",
     "one 3-D array, or seven variables of which every rank has another number"},
};

static bool ok(const char* where, adios2_error code) {
  if (code == adios2_error_none) return true;
  peer_fail(&peer, where, "MPI_ERR_IO", "ADIOS2: error %d (its own words are on stderr)",
            (int)code);
  return false;
}

static bool have(const char* where, const void* handle) {
  return handle != NULL || ok(where, adios2_error_exception);
}

static const char* unknown_parameter(void) {
  const size_t n = sizeof known_parameters / sizeof *known_parameters;
  for (int i = 0; i < peer.hints; ++i) {
    size_t k = 0;
    while (k < n && strcmp(known_parameters[k], peer.hint_keys[i]) != 0) ++k;
    if (k == n) return peer.hint_keys[i];
  }
  return NULL;
}

/* ---- what is written: one selection of each variable ---- */

struct Selection {
  int variables, dims;
  size_t shape[3], start[3], count[3];
  int64_t elements; /* of one variable */
};

static struct PeerArray cube(void) { return peer_array(&peer, 3, peer.bufsize / 8); }

/* Between half and three halves of --bufsize. */
static int64_t particles_of(int rank) {
  const uint64_t draw = (uint64_t)peer_value(peer.seed + 1, rank, 0) % 1001;
  const int64_t n = peer.bufsize / 8 / PARTICLE_VARIABLES * (int64_t)(500 + draw) / 1000;
  return n > 0 ? n : 1;
}

static int64_t particles_before(int rank) {
  int64_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += particles_of(r);
  return sum;
}

static struct Selection particle_selection(void) {
  struct Selection s = {.variables = PARTICLE_VARIABLES, .dims = 1};
  s.elements = particles_of(peer.rank);
  s.shape[0] = (size_t)particles_before(peer.ranks);
  s.start[0] = (size_t)particles_before(peer.rank);
  s.count[0] = (size_t)s.elements;
  return s;
}

static struct Selection cube_selection(void) {
  const struct PeerArray a = cube();
  struct Selection s = {.variables = 1, .dims = 3, .elements = peer_array_elements(&a)};
  for (int d = 0; d < 3; ++d) {
    s.shape[d] = (size_t)a.global[d];
    s.start[d] = (size_t)a.start[d];
    s.count[d] = (size_t)a.count[d];
  }
  return s;
}

static bool particles(void) { return !strcmp(pattern, "particles"); }
static struct Selection selection(void) {
  return particles() ? particle_selection() : cube_selection();
}
static const char* variable_name(int v) { return particles() ? particle_names[v] : "field"; }

/* ---- writing ---- */

struct Writer {
  adios2_adios* adios;
  adios2_engine* engine;
  adios2_variable* variables[PARTICLE_VARIABLES];
};

static void open_writer(struct Writer* w, const struct Selection* s) {
  w->adios = adios2_init(MPI_COMM_WORLD);
  adios2_io* io = w->adios ? adios2_declare_io(w->adios, "output") : NULL;
  if (!have("open", io)) return;
  ok("open", adios2_set_engine(io, "BP5"));
  for (int i = 0; i < peer.hints; ++i)
    ok("open", adios2_set_parameter(io, peer.hint_keys[i], peer.hint_values[i]));
  for (int v = 0; v < s->variables; ++v) {
    w->variables[v] =
        adios2_define_variable(io, variable_name(v), adios2_type_double, (size_t)s->dims, s->shape,
                               s->start, s->count, adios2_constant_dims_true);
    have("define", w->variables[v]);
  }
  w->engine = adios2_open(io, peer.file, adios2_mode_write);
  have("open", w->engine);
}

static void write_step(struct Writer* w, const struct Selection* s, const double* values) {
  adios2_step_status status;
  ok("write", adios2_begin_step(w->engine, adios2_step_mode_append, -1.0F, &status));
  for (int v = 0; v < s->variables; ++v) {
    ok("write",
       adios2_put(w->engine, w->variables[v], values + v * s->elements, adios2_mode_deferred));
    peer.bytes += s->elements * 8;
  }
  ok("write", adios2_end_step(w->engine));
}

static void sync_files(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const int code = peer.node_rank == 0 ? peer_fsync_tree(peer.file) : 0;
  if (code != 0)
    peer_fail(&peer, "sync", "MPI_ERR_IO", "fsync of %s: %s", peer.file, strerror(code));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_file(const double* buffer) {
  const struct Selection s = selection();
  struct Writer w = {0};
  peer_begin(&peer);
  open_writer(&w, &s);
  peer_lap(&peer, PEER_OPEN);
  if (peer_any_failed(&peer)) return peer_end(&peer);
  for (int64_t i = 0; i < peer.iters && !peer.error.failed; ++i)
    write_step(&w, &s, buffer + i * PEER_SHIFT);
  peer_lap(&peer, PEER_WRITE);
  /* An engine that has thrown cannot be used again, nor closed while others write. */
  if (peer_any_failed(&peer)) return peer_end(&peer);
  ok("close", adios2_close(w.engine));
  peer_lap(&peer, PEER_CLOSE);
  if (!peer_any_failed(&peer) && !strcmp(peer.end, "sync")) sync_files();
  peer_lap(&peer, PEER_SYNC);
  peer_end(&peer);
  ok("close", adios2_finalize(w.adios));
}

/* ---- reading back ---- */

static bool read_part(adios2_io* io, adios2_engine* engine, int v, int64_t step, int dims,
                      const size_t* start, const size_t* count, double* values) {
  adios2_variable* variable = adios2_inquire_variable(io, variable_name(v));
  return have("verify", variable) &&
         ok("verify", adios2_set_step_selection(variable, (size_t)step, 1)) &&
         ok("verify", adios2_set_selection(variable, (size_t)dims, start, count)) &&
         ok("verify", adios2_get(engine, variable, values, adios2_mode_sync));
}

static void check_cube(adios2_io* io, adios2_engine* engine, int64_t step) {
  const struct PeerArray a = cube();
  int64_t begin, end;
  peer_share(&peer, a.global[0], &begin, &end);
  if (begin == end) return;
  const size_t start[3] = {(size_t)begin, 0, 0};
  const size_t count[3] = {(size_t)(end - begin), (size_t)a.global[1], (size_t)a.global[2]};
  double* values = calloc(count[0] * count[1] * count[2], sizeof(double));
  if (values && read_part(io, engine, 0, step, 3, start, count, values))
    peer_check_planes(&peer, &a, begin, end, values, 0, step, "field");
  free(values);
}

/* Every rank looks at its neighbour's particles. */
static void check_particles(adios2_io* io, adios2_engine* engine, int v, int64_t step) {
  const int whose = (peer.rank + 1) % peer.ranks;
  const int64_t n = particles_of(whose);
  const size_t start = (size_t)particles_before(whose), count = (size_t)n;
  double* values = calloc(count, sizeof(double));
  char text[96];
  int64_t first = 0;
  if (values && read_part(io, engine, v, step, 1, &start, &count, values)) {
    const int64_t wrong =
        peer_compare(values, n, peer.seed, whose, v * n + step * PEER_SHIFT, &first);
    snprintf(text, sizeof text, "%s, iteration %" PRId64 ", element %" PRId64, particle_names[v],
             step, (int64_t)start + first);
    peer_verified(&peer, n * 8, wrong * 8, text);
  }
  free(values);
}

static void verify(void) {
  adios2_adios* adios = adios2_init_serial();
  adios2_io* io = adios2_declare_io(adios, "input");
  adios2_engine* engine = adios2_open(io, peer.file, adios2_mode_readRandomAccess);
  if (have("verify", engine)) {
    for (int64_t i = 0; i < peer.iters; ++i) {
      if (!particles()) check_cube(io, engine, i);
      for (int v = 0; particles() && v < PARTICLE_VARIABLES; ++v) check_particles(io, engine, v, i);
    }
    adios2_close(engine);
  }
  adios2_finalize(adios);
}

int main(int argc, char** argv) {
  const int code = peer_start(&peer, argc, argv, options, sizeof options / sizeof *options);
  if (code >= 0) return code;
  const char* unknown = unknown_parameter();
  if (unknown)
    return peer_usage(&peer,
                      "--hint: %s is no parameter of BP5 that is known here "
                      "(known_parameters in peer_adios2.c lists them)",
                      unknown);
  if (particles() && peer.bufsize < 8 * 2 * PARTICLE_VARIABLES)
    return peer_usage(&peer, "--bufsize must be at least %d for particles, got %" PRId64,
                      8 * 2 * PARTICLE_VARIABLES, peer.bufsize);
  const struct Selection s = selection();
  double* buffer = peer_buffer(&peer, s.elements * s.variables);
  if (!peer_any_failed(&peer)) write_file(buffer);
  if (!peer_any_failed(&peer) && !strcmp(peer.verify, "all")) verify();
  free(buffer);
  return peer_finish(&peer);
}
