/* What every peer's program shares: options, memory regime, clock, drain, agreed errors, and the
 * line of JSON (schema penstock.measure/1). A program reads, top to bottom:
 *
 *   if ((code = peer_start(&peer, argc, argv, options, n)) >= 0) return code;
 *   ... buffers ...
 *   peer_begin(&peer);                    barrier; the clock starts
 *   open, write, sync, close              each between two peer_lap()
 *   peer_end(&peer);                      the clock stops; what is not on the device yet is drained
 *   ... read back, peer_verified() ...
 *   return peer_finish(&peer);
 *
 * All functions are collective unless said otherwise. After an error a program goes on making its
 * collective calls, so that nobody waits for it; peer_finish() agrees and tells. */
#ifndef PENSTOCK_PEER_H
#define PENSTOCK_PEER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEER_MEASURED = 0, PEER_FAILED = 1, PEER_USAGE = 2 };
enum { PEER_MAX_HINTS = 32 };

enum PeerKind { PEER_TEXT, PEER_BYTES, PEER_COUNT, PEER_CHOICE };

/* One option. `to` holds the default: const char* for texts and choices, int64_t for the others. */
struct PeerOption {
  const char* name;
  enum PeerKind kind;
  void* to;
  const char* choices; /* of a PEER_CHOICE: "sync|close" */
  const char* help;
};

enum PeerPhase { PEER_OPEN, PEER_WRITE, PEER_SYNC, PEER_CLOSE, PEER_PHASES };

struct PeerError {
  bool failed;
  char where[32], error_class[48], text[400];
};

struct Peer {
  /* Set before peer_start(). */
  const char* program;
  const char* summary;
  const char* version; /* of what is measured; the program's own text, kept by the caller */
  bool own_amount;     /* its own options say how much is written: no --iters and no --bufsize */
  const char* marker;  /* an old directory with this file may be removed; NULL: md.idx, of ADIOS2 */

  /* Options that every program has. */
  const char *file, *end, *regime, *page_reports, *verify;
  int64_t iters, bufsize, seed, warm_memory, warm_disk, spoil;
  int hints;
  const char *hint_keys[PEER_MAX_HINTS], *hint_values[PEER_MAX_HINTS];

  /* Who is there. */
  int rank, ranks, node_rank, node_ranks, nodes;
  MPI_Comm node;

  /* What was measured, on this rank. */
  int64_t bytes;  /* written by this rank: set by the program before peer_finish() */
  int64_t calls;  /* that wrote them; 0: not counted. Rank 0's is told */
  char note[128]; /* of a regime that was not reached on the first node; of rank 0 */
  double begun_s, lap_s, ended_s, drained_s, phase_s[PEER_PHASES];
  struct PeerError error;
  int64_t checked_bytes, wrong_bytes;
  char first_wrong[96];

  const struct PeerOption* own;
  int own_count;
};

/* MPI_Init, then the options. -1: go on. Else the exit code, after MPI_Finalize. */
int peer_start(struct Peer* peer, int argc, char** argv, const struct PeerOption* own, int count);
/* A wrong combination of options: message to stderr, MPI_Finalize; returns the exit code. */
int peer_usage(struct Peer* peer, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the old file, warms disk and memory as asked, and starts the clock. */
void peer_begin(struct Peer* peer);
/* Not collective. The time since the last lap, or the start, belongs to `phase`. */
void peer_lap(struct Peer* peer, enum PeerPhase phase);
/* Stops the clock, then has everything of the file on the device. */
void peer_end(struct Peer* peer);

/* Not collective. Keeps the first failure of this rank. */
void peer_fail(struct Peer* peer, const char* where, const char* error_class, const char* format,
               ...) __attribute__((format(printf, 4, 5)));
/* Not collective. Keeps an MPI error with its class's name; true when `code` is a success. */
bool peer_ok_mpi(struct Peer* peer, const char* where, int code);
/* True on every rank when any has failed. A rank that failed while others stay inside a library
 * waits for some seconds, prints the line alone and ends the job. */
bool peer_any_failed(struct Peer* peer);

/* Not collective. `wrong` of `bytes` read back differ, the first at `first` (text, or NULL). */
void peer_verified(struct Peer* peer, int64_t bytes, int64_t wrong, const char* first);

/* Agrees, prints the line on rank 0, finalises; the exit code. */
int peer_finish(struct Peer* peer);

/* Not collective. fsync of a file, or of all files of a directory; 0 or an errno. */
int peer_fsync_tree(const char* path);
/* The hints as MPI_Info; MPI_INFO_NULL when there are none. The caller frees it. */
MPI_Info peer_info(const struct Peer* peer);

/* ---- contents: a double per worker and position, cheap and never the same twice ---- */

double peer_value(int64_t seed, int worker, int64_t position);
/* values[0, n) are worker's positions [position, position + n). */
void peer_fill(double* values, int64_t n, int64_t seed, int worker, int64_t position);
/* How many of values[0, n) are wrong; the first wrong one's index in *first, else unchanged. */
int64_t peer_compare(const double* values, int64_t n, int64_t seed, int worker, int64_t position,
                     int64_t* first);
/* What peers write in iteration i is their buffer from element i * PEER_SHIFT on: no iteration
 * equals another, and nothing is filled while the clock runs. */
enum { PEER_SHIFT = 8 };
/* The worker's buffer for `elements` and all iterations, filled, spoilt when asked; NULL: no
 * memory. */
double* peer_buffer(struct Peer* peer, int64_t elements);

/* ---- arrays of doubles, cut into equal blocks, one per rank ---- */

struct PeerArray {
  int dims;                    /* 2 or 3 */
  int64_t global[3], count[3]; /* elements; every rank's block has the same count */
  int64_t start[3];            /* of this rank's block */
  int ranks[3];                /* ranks along each dimension; the fastest is cut first */
};

/* Blocks of about `elements`, as near to a cube as whole numbers allow. */
struct PeerArray peer_array(const struct Peer* peer, int dims, int64_t elements);
int64_t peer_array_elements(const struct PeerArray* array); /* of one block */
/* The `index`th part of a block in the order of its elements: whole rows of one plane, `elements`
 * of them at most, but one row at least; 0: the block is one part. False after the last. */
bool peer_array_part(const struct PeerArray* array, int64_t elements, int64_t index,
                     struct PeerArray* part);
/* The share of the slowest dimension that this rank reads back: whole planes, in large reads. */
void peer_share(const struct Peer* peer, int64_t total, int64_t* begin, int64_t* end);
/* Compares planes [begin, end) of the slowest dimension, as read, with what all ranks wrote in
 * `iteration`, their buffer positions beginning at `offset`; calls peer_verified(). `name` says
 * which array, in the report. */
void peer_check_planes(struct Peer* peer, const struct PeerArray* array, int64_t begin, int64_t end,
                       const double* values, int64_t offset, int64_t iteration, const char* name);

#ifdef __cplusplus
}
#endif
#endif
