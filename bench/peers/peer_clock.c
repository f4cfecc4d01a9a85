/* The clock of the peers' programs, and what surrounds it: the old file removed, disk and memory in
 * the regime asked for, and after the clock the drain that gives the actual rate. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../measure/node_memory.h"
#include "peer.h"
#include "peer_internal.h"

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- before ---- */

static int remove_entry(const char* path, const struct stat* s, int flag, struct FTW* where) {
  (void)s, (void)flag, (void)where;
  return remove(path);
}

static void remove_file(struct Peer* peer) {
  if (unlink(peer->file) != 0)
    peer_fail(peer, "unlink", "MPI_ERR_IO", "%s: %s", peer->file, strerror(errno));
}

/* A directory is removed only when it holds what such a program leaves, a device or a fifo never.
 */
static void remove_old(struct Peer* peer) {
  struct stat s;
  char marker[4096];
  const char* name = peer->marker ? peer->marker : "md.idx";
  if (lstat(peer->file, &s) != 0) return;
  if (S_ISREG(s.st_mode) || S_ISLNK(s.st_mode)) {
    remove_file(peer);
    return;
  }
  snprintf(marker, sizeof marker, "%s/%s", peer->file, name);
  if (!S_ISDIR(s.st_mode))
    peer_fail(peer, "unlink", "MPI_ERR_FILE_EXISTS", "%s is neither a file nor a link", peer->file);
  else if (access(marker, F_OK) != 0)
    peer_fail(peer, "unlink", "MPI_ERR_FILE_EXISTS", "%s is a directory that holds no %s",
              peer->file, name);
  else if (nftw(peer->file, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
    peer_fail(peer, "unlink", "MPI_ERR_IO", "%s: %s", peer->file, strerror(errno));
}

/* Step 2 of benson-2003's template: the disk is awake and its journal open. */
static void warm_disk(struct Peer* peer) {
  char path[4096];
  snprintf(path, sizeof path, "%s.warm", peer->file);
  char* data = calloc(1, (size_t)peer->warm_disk);
  const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  /* What goes wrong here goes wrong in the measured open too, and is told there. */
  if (fd >= 0 && data && write(fd, data, (size_t)peer->warm_disk) >= 0) fsync(fd);
  if (fd >= 0) close(fd);
  unlink(path);
  free(data);
}

static struct KeptMemory kept; /* of regime cold */

/* The words are those of bench/measure/regime.cpp. */
static void note_warm(struct Peer* peer, int64_t touched_each) {
  const int64_t touched = touched_each * peer->node_ranks;
  if (touched < peer->warm_memory / 10 * 9)
    snprintf(peer->note, sizeof peer->note,
             "regime warm: only %" PRId64 " bytes of memory were touched on a node", touched);
}

static void note_cold(struct Peer* peer, int64_t left) {
  if (left > 0)
    snprintf(peer->note, sizeof peer->note,
             "regime cold: %" PRId64 " bytes of warm memory are left on a node", left);
}

void peer_begin(struct Peer* peer) {
  if (peer->rank == 0) remove_old(peer);
  if (peer->error.failed) peer_give_up(peer); /* what stays is not written to */
  if (peer->rank == 0 && peer->warm_disk > 0) warm_disk(peer);
  MPI_Barrier(MPI_COMM_WORLD);
  const bool waits = strcmp(peer->page_reports, "wait") == 0;
  if (strcmp(peer->regime, "warm") == 0)
    note_warm(peer, warm_node_memory(peer->warm_memory, peer->node_ranks, waits));
  if (strcmp(peer->regime, "cold") == 0 && peer->node_rank == 0) {
    kept = cool_node_memory(peer->warm_memory, waits);
    note_cold(peer, kept.left_bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  peer->begun_s = peer->lap_s = now_s();
}

void peer_lap(struct Peer* peer, enum PeerPhase phase) {
  const double now = now_s();
  peer->phase_s[phase] += now - peer->lap_s;
  peer->lap_s = now;
}

/* ---- after ---- */

static int fsync_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int code = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return code;
}

static int fsync_entry(const char* path, const struct stat* s, int flag, struct FTW* where) {
  (void)s, (void)where;
  const int code = flag == FTW_F ? fsync_file(path) : 0;
  if (code != 0) errno = code;
  return code != 0 ? -1 : 0;
}

int peer_fsync_tree(const char* path) {
  return nftw(path, fsync_entry, 16, FTW_PHYS) == 0 ? 0 : errno;
}

void peer_end(struct Peer* peer) {
  peer->ended_s = now_s();
  MPI_Barrier(MPI_COMM_WORLD); /* whose bytes came last is drained too */
  const int code = peer->node_rank == 0 ? peer_fsync_tree(peer->file) : 0;
  peer->drained_s = now_s();
  give_back_memory(&kept);
  if (code != 0)
    peer_fail(peer, "drain", code == ENOSPC ? "MPI_ERR_NO_SPACE" : "MPI_ERR_IO", "fsync of %s: %s",
              peer->file, strerror(code));
}
