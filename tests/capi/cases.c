/* What every function of penstock.h promises, on a team of whatever kind and size: the bytes of the
 * file, counts, statistics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* Each way to write once for this method; `name` is of the file. */
static const char* const methods[] = {NULL,
                                      "individual",
                                      "two_phase(writers=1, cycle=4KiB)",
                                      "two_phase(writers=2, cycle=64KiB) + shm + pwritev",
                                      "two_phase(writers=2, cycle=64KiB) + messages + mmap",
                                      "cyclic(writers=2, cycle=64KiB)",
                                      "designated_writer(cycle=64KiB) + shm"};
enum { kMethods = sizeof methods / sizeof methods[0] };

static const char* path_of(const struct place* p, const char* name, int method, char path[4096]) {
  char one[64];
  snprintf(one, sizeof one, "%s-%d", name, method);
  return name_in(p, one, path);
}

/* Closes, and lets rank 0 compare: after close all bytes of all ranks are in the file. */
static void close_and_compare(const struct place* p, penstock_file* file, const char* path,
                              void (*paint_rank)(struct picture*, int number, int ranks)) {
  OK(penstock_close(file));
  if (p->number != 0) return;
  struct picture picture = {NULL, 0, 0};
  for (int r = 0; r < p->ranks; ++r) paint_rank(&picture, r, p->ranks);
  CHECK(matches(path, &picture));
}

/* ---- contiguous: one piece alone, then one together */

enum { kPiece = 10007 };

static void paint_contiguous(struct picture* picture, int number, int ranks) {
  paint(picture, (int64_t)number * kPiece, kPiece);
  paint(picture, (int64_t)(ranks + number) * kPiece, kPiece);
}

static void contiguous(const struct place* p) {
  for (int m = 0; m < kMethods; ++m) {
    char path[4096];
    penstock_file* file = opened(p, path_of(p, "contiguous", m, path), methods[m], NULL);
    if (file == NULL) return;
    unsigned char* data = need(kPiece);
    int64_t written = -1, at = (int64_t)p->number * kPiece;
    fill(data, at, kPiece);
    OK(penstock_write_at(file, at, data, kPiece, &written));
    CHECK(written == kPiece);
    CHECK(prefix_in_file(path, at, kPiece) == kPiece); /* at once */
    at += (int64_t)p->ranks * kPiece;
    fill(data, at, kPiece);
    written = -1;
    OK(penstock_write_at_all(file, at, data, kPiece, &written));
    CHECK(written == kPiece);
    memset(data, 0, kPiece); /* the memory is the caller's again */
    CHECK(prefix_in_file(path, at, kPiece) == kPiece);
    free(data);
    close_and_compare(p, file, path, paint_contiguous);
  }
}

/* ---- strided: interleaved blocks together, then blocks with holes alone */

enum { kBlock = 100, kBlocks = 57 };

struct stride {
  int64_t offset, stride;
};

static struct stride interleaved(int number, int ranks) {
  return (struct stride){13 + (int64_t)number * kBlock, (int64_t)ranks * kBlock};
}

static struct stride with_holes(int number, int ranks) {
  const int64_t behind = 13 + (int64_t)ranks * kBlock * kBlocks;
  return (struct stride){behind + (int64_t)number * (kBlock + 31),
                         (int64_t)ranks * (kBlock + 31) + 7};
}

static void paint_strided(struct picture* picture, int number, int ranks) {
  const struct stride both[] = {interleaved(number, ranks), with_holes(number, ranks)};
  for (int k = 0; k < 2; ++k)
    for (int64_t i = 0; i < kBlocks; ++i)
      paint(picture, both[k].offset + i * both[k].stride, kBlock);
}

static void fill_strided(unsigned char* data, struct stride s) {
  for (int64_t i = 0; i < kBlocks; ++i) fill(data + i * kBlock, s.offset + i * s.stride, kBlock);
}

static void strided(const struct place* p) {
  for (int m = 0; m < kMethods; ++m) {
    char path[4096];
    penstock_file* file = opened(p, path_of(p, "strided", m, path), methods[m], NULL);
    if (file == NULL) return;
    unsigned char* data = need(kBlock * kBlocks);
    struct stride s = interleaved(p->number, p->ranks);
    int64_t written = -1;
    fill_strided(data, s);
    OK(penstock_write_strided_all(file, s.offset, kBlock, s.stride, kBlocks, data, &written));
    CHECK(written == kBlock * kBlocks);
    s = with_holes(p->number, p->ranks);
    fill_strided(data, s);
    written = -1;
    OK(penstock_write_strided(file, s.offset, kBlock, s.stride, kBlocks, data, &written));
    CHECK(written == kBlock * kBlocks);
    free(data);
    close_and_compare(p, file, path, paint_strided);
  }
}

/* ---- extents: of different lengths, at different distances, empty ones among them */

enum { kExtents = 201, kSlot = 64 };

/* The i-th extent of a rank, in the first half of the file or in the second. */
static penstock_extent extent_of(int number, int ranks, int64_t i, int half) {
  const int64_t slot = (half * kExtents + i) * ranks + number;
  penstock_extent e = {slot * kSlot + i % 3, 1 + (i * 7) % 50};
  if (i % 10 == 4) e = (penstock_extent){0, 0}; /* says nothing, wherever */
  return e;
}

static void paint_extents(struct picture* picture, int number, int ranks) {
  for (int half = 0; half < 2; ++half)
    for (int64_t i = 0; i < kExtents; ++i) {
      const penstock_extent e = extent_of(number, ranks, i, half);
      paint(picture, e.offset_bytes, e.bytes);
    }
}

static int64_t fill_extents(const struct place* p, int half, penstock_extent* extents,
                            unsigned char* data) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < kExtents; ++i) {
    extents[i] = extent_of(p->number, p->ranks, i, half);
    fill(data + bytes, extents[i].offset_bytes, extents[i].bytes);
    bytes += extents[i].bytes;
  }
  return bytes;
}

static void extents(const struct place* p) {
  for (int m = 0; m < kMethods; ++m) {
    char path[4096];
    penstock_file* file = opened(p, path_of(p, "extents", m, path), methods[m], NULL);
    if (file == NULL) return;
    penstock_extent list[kExtents];
    unsigned char* data = need(kExtents * kSlot);
    int64_t written = -1, bytes = fill_extents(p, 0, list, data);
    OK(penstock_write_extents_all(file, list, kExtents, data, &written));
    CHECK(written == bytes);
    bytes = fill_extents(p, 1, list, data);
    written = -1;
    OK(penstock_write_extents(file, list, kExtents, data, &written));
    CHECK(written == bytes);
    free(data);
    close_and_compare(p, file, path, paint_extents);
  }
}

/* ---- nothing to write, on some ranks and on all */

static void paint_nothing(struct picture* picture, int number, int ranks) {
  (void)ranks;
  if (number == 0) paint(picture, 500, 300);
}

static void nothing(const struct place* p) {
  for (int m = 0; m < kMethods; ++m) {
    char path[4096];
    penstock_file* file = opened(p, path_of(p, "nothing", m, path), methods[m], NULL);
    if (file == NULL) return;
    const penstock_extent empty[] = {{7, 0}, {3, 0}};
    unsigned char data[300];
    int64_t written = -1;
    fill(data, 500, sizeof data);
    OK(penstock_write_at(file, 0, NULL, 0, &written));
    CHECK(written == 0);
    OK(penstock_write_at_all(file, 12345, NULL, 0, NULL));
    OK(penstock_write_strided_all(file, 0, 0, 0, 1000, NULL, NULL));
    OK(penstock_write_strided(file, 0, 10, 20, 0, NULL, NULL));
    OK(penstock_write_extents_all(file, NULL, 0, NULL, NULL));
    OK(penstock_write_extents(file, empty, 2, NULL, NULL));
    written = -1;
    OK(penstock_write_at_all(file, 500, data, p->number == 0 ? 300 : 0, &written));
    CHECK(written == (p->number == 0 ? 300 : 0));
    close_and_compare(p, file, path, paint_nothing);
  }
}

/* ---- forms may differ between the ranks of one collective call, and calls may be repeated */

enum { kRounds = 5 };

static int64_t round_offset(int round, int ranks) { return (int64_t)round * ranks * 1000; }

static void paint_mixed(struct picture* picture, int number, int ranks) {
  for (int round = 0; round < kRounds; ++round)
    for (int64_t i = 0; i < 10; ++i)
      paint(picture, round_offset(round, ranks) + (i * ranks + number) * 100, 100);
}

static void mixed(const struct place* p) {
  char path[4096];
  penstock_file* file =
      opened(p, name_in(p, "mixed", path), "two_phase(writers=2, cycle=4KiB)", "verify = true\n");
  if (file == NULL) return;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t base = round_offset(round, p->ranks);
    unsigned char data[1000];
    penstock_extent list[10];
    for (int64_t i = 0; i < 10; ++i) {
      list[i] = (penstock_extent){base + (i * p->ranks + p->number) * 100, 100};
      fill(data + i * 100, list[i].offset_bytes, 100);
    }
    int64_t written = -1;
    if (p->number % 2 == 0)
      OK(penstock_write_extents_all(file, list, 10, data, &written));
    else
      OK(penstock_write_strided_all(file, list[0].offset_bytes, 100, (int64_t)p->ranks * 100, 10,
                                    data, &written));
    CHECK(written == 1000);
  }
  close_and_compare(p, file, path, paint_mixed); /* and what --verify reads back is right */
}

/* Another handle of the rank, by another name, writes the same bytes later: no damage of the first
 * one's. */
static void two_handles(const struct place* p) {
  char path[4096];
  name_in(p, "two_handles", path);
  penstock_file* first = opened(p, path, NULL, "verify = true\n");
  char other_name[4200];
  snprintf(other_name, sizeof other_name, "%s.link", path);
  if (p->number == 0) CHECK(link(path, other_name) == 0);
  penstock_file* second = opened(p, other_name, NULL, "verify = true\n");
  if (first == NULL || second == NULL) return;
  unsigned char data[1000];
  memset(data, 'a', sizeof data);
  OK(penstock_write_at_all(first, (int64_t)p->number * 1000, data, 1000, NULL));
  OK(penstock_sync(first));
  memset(data, 'b', sizeof data);
  OK(penstock_write_at_all(second, (int64_t)p->number * 1000, data, 1000, NULL));
  OK(penstock_close(second));
  OK(penstock_close(first));
}

/* Another handle empties the file: what the first one wrote is gone, and no damage of it. */
static void emptied_beside(const struct place* p) {
  char path[4096];
  name_in(p, "emptied_beside", path);
  penstock_file* first = opened(p, path, NULL, "verify = true\n");
  if (first == NULL) return;
  unsigned char data[1000];
  memset(data, 'a', sizeof data);
  OK(penstock_write_at_all(first, (int64_t)p->number * 1000, data, 1000, NULL));
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  options.config = "verify = true\n";
  penstock_file* second;
  OK(penstock_open(p->rank, path, &options, &second));
  OK(penstock_write_at_all(second, (int64_t)p->number * 10, data, 10, NULL));
  OK(penstock_close(second));
  OK(penstock_close(first));
}

/* What a handle writes over the other's bytes that is not verified itself is no damage either. */
static void written_over_unverified(const struct place* p) {
  char path[4096];
  name_in(p, "over_unverified", path);
  penstock_file* first = opened(p, path, NULL, NULL);
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  options.config = "verify = true\n";
  penstock_file* second;
  OK(penstock_open(p->rank, path, &options, &second));
  unsigned char data[1000];
  memset(data, 'b', sizeof data);
  OK(penstock_write_at_all(second, (int64_t)p->number * 1000, data, 1000, NULL));
  memset(data, 'a', sizeof data);
  OK(penstock_write_at_all(first, (int64_t)p->number * 1000, data, 1000, NULL));
  OK(penstock_close(second));
  OK(penstock_close(first));
}

/* ---- sync and statistics; several files at a time */

static void statistics(const struct place* p) {
  char path[4096], other_path[4096];
  penstock_file* file = opened(p, name_in(p, "statistics", path), NULL, NULL);
  penstock_file* other = opened(p, name_in(p, "other", other_path), NULL, NULL);
  if (file == NULL || other == NULL) return;
  unsigned char data[2000];
  memset(data, 1, sizeof data);
  OK(penstock_write_at(file, p->number * 1000, data, 1000, NULL));
  OK(penstock_write_at_all(other, p->number * 10, data, 10, NULL));
  OK(penstock_write_at_all(file, 100000 + p->number * 2000, data, 2000, NULL));
  OK(penstock_sync(file));
  CODE(PENSTOCK_EARGUMENT, penstock_write_at(file, -1, data, 1, NULL));

  penstock_stats s = PENSTOCK_STATS_INIT;
  OK(penstock_statistics(file, &s));
  CHECK(s.size == sizeof s && s.written_bytes == 3000);
  CHECK(s.collective_calls == 1 && s.independent_calls == 2 && s.sync_calls == 1);
  CHECK(s.failed_calls == 1);
  CHECK(s.file_writes >= 1 && s.call_s > 0);
  CHECK(s.plan_s >= 0 && s.pack_s >= 0 && s.exchange_s >= 0 && s.write_s >= 0 && s.sync_s >= 0);

  struct {
    penstock_stats known;
    int64_t later;
  } newer = {PENSTOCK_STATS_INIT, 77};
  newer.known.size = sizeof newer;
  OK(penstock_statistics_all(file, &newer.known));
  CHECK(newer.known.size == sizeof newer && newer.later == 0);
  CHECK(newer.known.written_bytes == 3000 * (int64_t)p->ranks);
  CHECK(newer.known.collective_calls == p->ranks && newer.known.failed_calls == p->ranks);
  CHECK(newer.known.call_s >= s.call_s);

  s.size = 3;
  CODE(PENSTOCK_EARGUMENT, penstock_statistics(file, &s));
  SAYS("stats->size");
  CODE(PENSTOCK_EARGUMENT, penstock_statistics_all(file, p->number == 0 ? NULL : &newer.known));
  OK(penstock_close(other));
  OK(penstock_close(file));
}

/* ---- opening what is there, emptying it, and keeping it */

static void opening(const struct place* p) {
  char path[4096];
  name_in(p, "opening", path);
  unsigned char data[100];
  fill(data, 0, sizeof data);
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags = PENSTOCK_CREATE | PENSTOCK_EXCLUSIVE;
  options.permissions = 0600;
  penstock_file* file = NULL;
  OK(penstock_open(p->rank, path, &options, &file));
  OK(penstock_write_at_all(file, p->number * 100, data, p->number == 0 ? 100 : 0, NULL));
  OK(penstock_close(file));
  CODE(PENSTOCK_EEXISTS, penstock_open(p->rank, path, &options, &file));
  CHECK(file == NULL);
  options.flags = 0; /* it is there, and its bytes stay */
  OK(penstock_open(p->rank, path, &options, &file));
  OK(penstock_close(file));
  CHECK(prefix_in_file(path, 0, 100) == 100);
  OK(penstock_open(p->rank, path, NULL, &file));
  OK(penstock_close(file));
  CHECK(prefix_in_file(path, 0, 100) == 100);
  penstock_file* emptied = opened(p, path, NULL, NULL);
  OK(penstock_close(emptied));
  CHECK(prefix_in_file(path, 0, 100) == 0);
}

extern void open_errors(const struct place*), argument_errors(const struct place*),
    too_large(const struct place*), no_space(const struct place*);

const struct test_case cases[] = {{"contiguous", contiguous},
                                  {"strided", strided},
                                  {"extents", extents},
                                  {"nothing", nothing},
                                  {"mixed", mixed},
                                  {"two_handles", two_handles},
                                  {"emptied_beside", emptied_beside},
                                  {"written_over_unverified", written_over_unverified},
                                  {"statistics", statistics},
                                  {"opening", opening},
                                  {"open_errors", open_errors},
                                  {"argument_errors", argument_errors},
                                  {"too_large", too_large},
                                  {"no_space", no_space},
                                  {NULL, NULL}};
