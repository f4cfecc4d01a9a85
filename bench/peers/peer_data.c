/* What the peers' programs write, and how it is checked: doubles that follow from the worker and
 * the position in its buffer, and arrays of them that are cut into equal blocks. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

/* ---- contents ---- */

static uint64_t worker_base(int64_t seed, int worker) {
  uint64_t x = (uint64_t)seed * UINT64_C(0xbf58476d1ce4e5b9) + (uint64_t)worker + 1;
  x = (x ^ (x >> 30)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* Finite, and exact in a double: 53 bits of a multiplicative hash. */
static double value_at(uint64_t base, int64_t position) {
  const uint64_t x = (base + (uint64_t)position) * UINT64_C(0x9e3779b97f4a7c15);
  return (double)((x ^ (x >> 29)) >> 11);
}

double peer_value(int64_t seed, int worker, int64_t position) {
  return value_at(worker_base(seed, worker), position);
}

void peer_fill(double* values, int64_t n, int64_t seed, int worker, int64_t position) {
  const uint64_t base = worker_base(seed, worker);
  for (int64_t i = 0; i < n; ++i) values[i] = value_at(base, position + i);
}

int64_t peer_compare(const double* values, int64_t n, int64_t seed, int worker, int64_t position,
                     int64_t* first) {
  const uint64_t base = worker_base(seed, worker);
  int64_t wrong = 0;
  for (int64_t i = n - 1; i >= 0; --i) {
    const double expected = value_at(base, position + i);
    if (memcmp(&values[i], &expected, sizeof expected) == 0) continue; /* a NaN equals nothing */
    ++wrong;
    *first = i;
  }
  return wrong;
}

double* peer_buffer(struct Peer* peer, int64_t elements) {
  const int64_t n = elements + peer->iters * PEER_SHIFT;
  double* values = aligned_alloc(4096, ((size_t)n * sizeof(double) + 4095) / 4096 * 4096);
  if (values == NULL) {
    peer_fail(peer, "allocate", "MPI_ERR_NO_MEM", "a buffer of %" PRId64 " elements", n);
    return NULL;
  }
  peer_fill(values, n, peer->seed, peer->rank, 0);
  if (peer->rank == 0 && peer->spoil >= 0)
    ((unsigned char*)values)[peer->spoil % (elements * (int64_t)sizeof(double))] ^= 1;
  return values;
}

/* ---- arrays ---- */

struct PeerArray peer_array(const struct Peer* peer, int dims, int64_t elements) {
  struct PeerArray a = {.dims = dims, .global = {1, 1, 1}, .count = {1, 1, 1}, .ranks = {1, 1, 1}};
  int cut[3] = {0, 0, 0};
  MPI_Dims_create(peer->ranks, dims, cut); /* largest first; ours last, for the fastest dimension */
  const int64_t edge = (int64_t)pow((double)elements + 0.5, 1.0 / dims);
  int64_t slowest = elements;
  for (int d = 1; d < dims; ++d) slowest /= edge > 0 ? edge : 1;
  int rank = peer->rank;
  for (int d = dims - 1; d >= 0; --d) {
    a.ranks[d] = cut[dims - 1 - d];
    a.count[d] = d == 0 ? (slowest > 0 ? slowest : 1) : (edge > 0 ? edge : 1);
    a.global[d] = a.count[d] * a.ranks[d];
    a.start[d] = a.count[d] * (rank % a.ranks[d]);
    rank /= a.ranks[d];
  }
  return a;
}

int64_t peer_array_elements(const struct PeerArray* array) {
  return array->count[0] * array->count[1] * array->count[2];
}

bool peer_array_part(const struct PeerArray* array, int64_t elements, int64_t index,
                     struct PeerArray* part) {
  *part = *array;
  if (elements == 0) return index == 0;
  const int along = array->dims - 2; /* the dimension that rows follow each other in */
  const int64_t rows = array->count[along], most = elements / array->count[array->dims - 1];
  const int64_t height = most < 1 ? 1 : most;
  const int64_t parts = (rows + height - 1) / height; /* of a plane */
  const int64_t plane = index / parts, first = index % parts * height;
  if (plane >= (along == 0 ? 1 : array->count[0])) return false;
  if (along == 1) {
    part->start[0] += plane;
    part->count[0] = 1;
  }
  part->start[along] += first;
  part->count[along] = first + height < rows ? height : rows - first;
  return true;
}

void peer_share(const struct Peer* peer, int64_t total, int64_t* begin, int64_t* end) {
  *begin = total * peer->rank / peer->ranks;
  *end = total * (peer->rank + 1) / peer->ranks;
}

/* Which rank's block holds an element, and where in the block it lies. */
static int owner_of(const struct PeerArray* a, const int64_t at[3], int64_t* local) {
  int owner = 0;
  *local = 0;
  for (int d = 0; d < 3; ++d) {
    owner = owner * a->ranks[d] + (int)(at[d] / a->count[d]);
    *local = *local * a->count[d] + at[d] % a->count[d];
  }
  return owner;
}

/* With two dimensions the third is one element wide: rows then run along the second. */
static int64_t row_piece(const struct PeerArray* a) {
  return a->dims == 3 ? a->count[2] : a->count[1];
}

void peer_check_planes(struct Peer* peer, const struct PeerArray* a, int64_t begin, int64_t end,
                       const double* values, int64_t offset, int64_t iteration, const char* name) {
  const int64_t plane = a->global[1] * a->global[2], piece = row_piece(a);
  const int64_t shift = offset + iteration * PEER_SHIFT;
  int64_t wrong = 0, first_wrong = -1;
  for (int64_t i = 0; i < (end - begin) * plane; i += piece) {
    const int64_t linear = begin * plane + i;
    const int64_t at[3] = {linear / plane, linear / a->global[2] % a->global[1],
                           linear % a->global[2]};
    int64_t local, first = 0;
    const int owner = owner_of(a, at, &local);
    const int64_t bad = peer_compare(values + i, piece, peer->seed, owner, local + shift, &first);
    if (bad > 0 && first_wrong < 0) first_wrong = linear + first;
    wrong += bad;
  }
  char text[96];
  snprintf(text, sizeof text, "%s, iteration %" PRId64 ", element %" PRId64, name, iteration,
           first_wrong);
  peer_verified(peer, (end - begin) * plane * (int64_t)sizeof(double),
                wrong * (int64_t)sizeof(double), text);
}
