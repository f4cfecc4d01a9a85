/* Errors: who is told what, in which code and words, and which bytes are in the file all the same.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define EXACT " + shm + pwrite + anticipate=1MiB + written"

static int open_with(const struct place* p, const char* path, const penstock_options* options) {
  penstock_file* file = (penstock_file*)1;
  const int code = penstock_open(p->rank, path, options, &file);
  if (code != PENSTOCK_OK) {
    CHECK(file == NULL);
  } else {
    OK(penstock_close(file));
  }
  return code;
}

static int open_method(const struct place* p, const char* path, const char* method,
                       const char* config) {
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.method = method;
  options.config = config;
  return open_with(p, path, &options);
}

/* Files that cannot be opened: by rank 0, and everybody is told. */
static void unopenable(const struct place* p, const char* path) {
  char missing[4200];
  strcpy(missing, path);
  strcat(missing, ".no/file");
  CODE(PENSTOCK_ENOFILE, open_with(p, missing, NULL));
  if (p->number == 0) {
    SAYS(missing);
    CHECK(penstock_last_errno() == ENOENT);
  } else {
    SAYS("another rank failed");
    CHECK(penstock_last_errno() == 0);
  }
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags = 0;
  CODE(PENSTOCK_ENOFILE, open_with(p, path, &options));
  CODE(PENSTOCK_EIO, open_with(p, p->directory, NULL));
  if (p->number == 0) CHECK(penstock_last_errno() == EISDIR);
}

/* Nobody holds its other end. */
static void a_pipe(const struct place* p) {
  char pipe[4096];
  name_in(p, "a_pipe", pipe);
  if (p->number == 0) CHECK(mkfifo(pipe, 0600) == 0);
  CODE(PENSTOCK_EUNSUPPORTED, open_with(p, pipe, NULL));
  if (p->number == 0) SAYS("bytes of a pipe have no places");
  if (p->number == 0) CHECK(unlink(pipe) == 0);
}

/* Options that are wrong on every rank. */
static void wrong_options(const struct place* p, const char* path) {
  CODE(PENSTOCK_EARGUMENT, open_method(p, path, "two_fase", NULL));
  SAYS("two_fase");
  CODE(PENSTOCK_EARGUMENT, open_method(p, path, "off", NULL));
  SAYS("options->method");
  CODE(PENSTOCK_EARGUMENT, open_method(p, path, NULL, "writerz = 3\n"));
  SAYS("options->config:1");
  CODE(PENSTOCK_EARGUMENT, open_with(p, "", NULL));
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.size = 1;
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &options));
  SAYS("options->size");
  options = (penstock_options)PENSTOCK_OPTIONS_INIT;
  options.flags = 1 << 20;
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &options));
  SAYS("options->flags");
  options.flags = PENSTOCK_EXCLUSIVE;
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &options));
  SAYS("PENSTOCK_CREATE");
  options = (penstock_options)PENSTOCK_OPTIONS_INIT;
  options.permissions = 010000;
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &options));
  SAYS("options->permissions");
  options.permissions = 0444;
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &options));
  if (p->number == 0) SAYS("0444");
}

/* Ranks fail in different ways: the gravest is every rank's code, and each is told of its own. */
static void own_words(const struct place* p, const char* path) {
  const bool first = p->number == 0;
  CODE(PENSTOCK_EUNSUPPORTED,
       first ? open_method(p, path, "two_phase + shm(later=1)", NULL) : open_with(p, "", NULL));
  SAYS(first ? "has no option" : "path must not be");
}

/* A program of a later version may say what this library does not know only by saying nothing. */
static void options_of_later_versions(const struct place* p, const char* path) {
  struct {
    penstock_options known;
    const char* later;
  } newer = {PENSTOCK_OPTIONS_INIT, NULL};
  newer.known.size = sizeof newer;
  OK(open_with(p, path, &newer.known));
  newer.later = "x";
  CODE(PENSTOCK_EARGUMENT, open_with(p, path, &newer.known));
  SAYS("does not know");
}

/* One rank is wrong, and everybody is told. */
static void one_is_wrong(const struct place* p, const char* path) {
  const bool wrong = p->number == p->ranks - 1;
  CODE(PENSTOCK_EARGUMENT, open_with(p, wrong ? NULL : path, NULL));
  SAYS(wrong ? "path must not be NULL" : "another rank failed");
  if (p->ranks == 1) return;
  CODE(PENSTOCK_EUNSUPPORTED, open_method(p, path, wrong ? "individual" : NULL, NULL));
  SAYS("different methods");
}

static off_t bytes_in(const char* path) {
  struct stat file;
  return stat(path, &file) == 0 ? file.st_size : -1;
}

/* Who cannot open a file leaves it as it was. */
static void refused_is_not_emptied(const struct place* p) {
  char path[4096];
  name_in(p, "not_emptied", path);
  if (p->number == 0) {
    FILE* f = fopen(path, "w");
    CHECK(f != NULL && fputs("as it was", f) >= 0 && fclose(f) == 0);
  }
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags = PENSTOCK_CREATE | PENSTOCK_TRUNCATE;
  if (p->number == p->ranks - 1) options.method = "individual";
  penstock_file* file = NULL;
  if (p->ranks > 1) CODE(PENSTOCK_EUNSUPPORTED, penstock_open(p->rank, path, &options, &file));
  if (p->ranks > 1 && p->number == 0) CHECK(bytes_in(path) == 9);
  options.method = NULL;
  OK(penstock_open(p->rank, path, &options, &file));
  if (p->number == 0) CHECK(bytes_in(path) == 0);
  OK(penstock_close(file));
}

void open_errors(const struct place* p) {
  char path[4096];
  name_in(p, "open_errors", path);
  unopenable(p, path);
  a_pipe(p);
  wrong_options(p, path);
  own_words(p, path);
  CHECK(access(path, F_OK) != 0); /* nothing was made */
  one_is_wrong(p, path);
  refused_is_not_emptied(p);
  options_of_later_versions(p, path);
  penstock_file* file = NULL;
  CODE(PENSTOCK_EARGUMENT, penstock_open(NULL, path, NULL, &file));
  CODE(PENSTOCK_EARGUMENT, penstock_open(p->rank, path, NULL, NULL));
}

/* ---- arguments of writes */

#define REFUSED(part, call)           \
  do {                                \
    written = 99;                     \
    CODE(PENSTOCK_EARGUMENT, (call)); \
    CHECK(written == 0);              \
    SAYS(part);                       \
  } while (0)

static void refused_alone(penstock_file* f, const unsigned char* data) {
  int64_t written;
  const penstock_extent falls[] = {{10, 10}, {0, 10}}, overlaps[] = {{0, 10}, {9, 1}},
                        before[] = {{-1, 10}}, less[] = {{0, 10}, {20, -1}},
                        beyond[] = {{INT64_MAX - 5, 6}};
  REFUSED("offset_bytes must not be negative, got -1", penstock_write_at(f, -1, data, 1, &written));
  REFUSED("bytes must not be negative, got -2", penstock_write_at(f, 0, data, -2, &written));
  REFUSED("memory", penstock_write_at(f, 0, NULL, 1, &written));
  REFUSED("beyond", penstock_write_at(f, INT64_MAX, data, 1, &written));
  REFUSED("file", penstock_write_at(NULL, 0, data, 1, &written));
  REFUSED("offset_bytes", penstock_write_strided(f, -5, 1, 1, 1, data, &written));
  REFUSED("block_bytes", penstock_write_strided(f, 0, -5, 1, 1, data, &written));
  REFUSED("count", penstock_write_strided(f, 0, 1, 1, -5, data, &written));
  REFUSED("stride_bytes", penstock_write_strided(f, 0, 10, 9, 2, data, &written));
  REFUSED("beyond", penstock_write_strided(f, 0, 10, INT64_MAX / 2, 4, data, &written));
  REFUSED("memory", penstock_write_strided(f, 0, 10, 20, 2, NULL, &written));
  REFUSED("extents[1]", penstock_write_extents(f, falls, 2, data, &written));
  REFUSED("at least 10", penstock_write_extents(f, overlaps, 2, data, &written));
  REFUSED("extents[0].offset_bytes", penstock_write_extents(f, before, 1, data, &written));
  REFUSED("extents[1].bytes", penstock_write_extents(f, less, 2, data, &written));
  REFUSED("beyond", penstock_write_extents(f, beyond, 1, data, &written));
  REFUSED("count", penstock_write_extents(f, falls, -1, data, &written));
  REFUSED("16777216", penstock_write_extents(f, falls, INT64_C(1) << 40, data, &written));
  REFUSED("extents", penstock_write_extents(f, NULL, 1, data, &written));
}

/* The last rank is wrong in each form: all are told, and the others' bytes are in the file. */
static void refused_together(const struct place* p, penstock_file* f, const unsigned char* data) {
  const bool wrong = p->number == p->ranks - 1;
  const int64_t n = wrong ? -1 : 100, at = (int64_t)p->number * 100;
  const penstock_extent one = {at + 20000, n};
  int64_t written[3] = {99, 99, 99};
  CODE(PENSTOCK_EARGUMENT, penstock_write_at_all(f, at, data, n, &written[0]));
  SAYS(wrong ? "bytes must not be negative" : "another rank failed");
  CODE(PENSTOCK_EARGUMENT, penstock_write_strided_all(f, at + 10000, n, 100, 1, data, &written[1]));
  CODE(PENSTOCK_EARGUMENT, penstock_write_extents_all(f, &one, 1, data, &written[2]));
  for (int i = 0; i < 3; ++i) CHECK(written[i] == (wrong ? 0 : 100));
}

void argument_errors(const struct place* p) {
  static const char* const methods[] = {"individual", "two_phase(writers=1, cycle=4KiB)"};
  for (int m = 0; m < 2; ++m) {
    char path[4096];
    penstock_file* file = opened(p, name_in(p, "argument_errors", path), methods[m], NULL);
    if (file == NULL) return;
    unsigned char data[100];
    fill(data, 0, sizeof data); /* rank 0's own; of the others any bytes do */
    if (p->number == 0) refused_alone(file, data);
    refused_together(p, file, data);
    OK(penstock_write_at_all(file, p->number * 100, data, 100, NULL)); /* it works on */
    OK(penstock_close(file));
    CHECK(prefix_in_file(path, 0, 100) == 100);
  }
  CODE(PENSTOCK_EARGUMENT, penstock_close(NULL));
  CODE(PENSTOCK_EARGUMENT, penstock_sync(NULL));
  penstock_stats stats = PENSTOCK_STATS_INIT;
  CODE(PENSTOCK_EARGUMENT, penstock_statistics(NULL, &stats));
}

/* ---- the largest file allowed (RLIMIT_FSIZE): a write of which a part enters the file */

enum { kPage = 4096, kPart = 904 };
static const int64_t kFrom = 1 << 20; /* files of others, such as output, stay below the limit */

/* Sets it in every process, and returns when it is set in all. */
static void limit_files(const struct place* p, penstock_file* file, rlim_t bytes) {
  OK(penstock_sync(file));
  if (p->index == 0) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  OK(penstock_sync(file));
}

static void too_large_with(const struct place* p, const char* method) {
  char path[4096];
  penstock_file* file = opened(p, name_in(p, "too_large", path), method, NULL);
  if (file == NULL) return;
  unsigned char data[kPage];
  const int64_t at = kFrom + (int64_t)p->number * kPage;
  const bool last = p->number == p->ranks - 1;
  fill(data, at, kPage);
  limit_files(p, file, (rlim_t)(kFrom + (int64_t)(p->ranks - 1) * kPage + kPart));
  int64_t written = -1;
  CODE(PENSTOCK_ETOOLARGE, penstock_write_at_all(file, at, data, kPage, &written));
  CHECK(*penstock_last_error() != '\0');
  CHECK(written == (last ? kPart : kPage));
  CHECK(prefix_in_file(path, at, kPage) == written);
  written = -1;
  CODE(last ? PENSTOCK_ETOOLARGE : PENSTOCK_OK, penstock_write_at(file, at, data, kPage, &written));
  CHECK(written == (last ? kPart : kPage));
  if (last) CHECK(penstock_last_errno() == EFBIG);
  limit_files(p, file, RLIM_INFINITY);
  OK(penstock_write_at_all(file, at, data, kPage, &written));
  CHECK(written == kPage);
  OK(penstock_close(file));
  CHECK(prefix_in_file(path, at, kPage) == kPage);
}

void too_large(const struct place* p) {
  too_large_with(p, "individual + none + pwrite + anticipate=1MiB + written");
  too_large_with(p, "two_phase(writers=1, cycle=4KiB)" EXACT);
  too_large_with(p, "two_phase(writers=2, cycle=64KiB)" EXACT);
}

/* ---- a device that is full */

void no_space(const struct place* p) {
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags = 0;
  options.method = "auto" EXACT;
  penstock_file* file = NULL;
  if (!OK(penstock_open(p->rank, "/dev/full", &options, &file))) return;
  unsigned char data[1000] = {0};
  int64_t written = -1;
  CODE(PENSTOCK_ENOSPACE,
       penstock_write_at_all(file, p->number * 1000, data, sizeof data, &written));
  CHECK(written == 0);
  written = -1;
  CODE(PENSTOCK_ENOSPACE,
       penstock_write_strided(file, p->number * 1000, 10, 20, 5, data, &written));
  CHECK(written == 0);
  SAYS("/dev/full");
  CHECK(penstock_last_errno() == ENOSPC);
  OK(penstock_close(file));
}

/* ---- run alone */

/* fsync fails (tests/faults): everybody is told, and at close as well. */
static void sync_fails(const struct place* p) {
  char path[4096];
  penstock_file* file = opened(p, name_in(p, "sync_fails", path), NULL, NULL);
  if (file == NULL) return;
  OK(penstock_write_at_all(file, p->number, "x", 1, NULL));
  CODE(PENSTOCK_EIO, penstock_sync(file));
  SAYS("fsync");
  CHECK(penstock_last_errno() == EIO);
  CODE(PENSTOCK_EIO, penstock_sync(file));
  CODE(PENSTOCK_EIO, penstock_close(file));
}

/* close fails: everybody is told, and the handle is gone all the same. */
static void close_fails(const struct place* p) {
  char path[4096];
  penstock_file* file = opened(p, name_in(p, "close_fails", path), NULL, NULL);
  if (file == NULL) return;
  OK(penstock_write_at_all(file, p->number, "x", 1, NULL));
  CODE(PENSTOCK_EQUOTA, penstock_close(file));
  SAYS("close");
}

/* The file is another user's, and this user may only read it. */
static void denied(const struct place* p) {
  char path[4096];
  CODE(PENSTOCK_EACCESS, open_with(p, name_in(p, "denied", path), NULL));
  if (p->number == 0) CHECK(penstock_last_errno() == EACCES);
}

const struct test_case on_faults[] = {
    {"sync_fails", sync_fails}, {"close_fails", close_fails}, {"denied", denied}, {NULL, NULL}};
