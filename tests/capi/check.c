#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_int g_checks, g_failures;

bool check(bool holds, const char* condition, const char* file, int line) {
  ++g_checks;
  if (holds) return true;
  ++g_failures;
  fprintf(stderr, "FAIL %s:%d: does not hold: %s\n", file, line, condition);
  return false;
}

bool check_code(int code, int expected, const char* call, const char* file, int line) {
  ++g_checks;
  if (code == expected) return true;
  ++g_failures;
  fprintf(stderr, "FAIL %s:%d: %s gave %d (%s; %s) instead of %d (%s)\n", file, line, call, code,
          penstock_strerror(code), code == PENSTOCK_OK ? "" : penstock_last_error(), expected,
          penstock_strerror(expected));
  return false;
}

bool check_says(const char* part, const char* file, int line) {
  ++g_checks;
  if (strstr(penstock_last_error(), part) != NULL) return true;
  ++g_failures;
  fprintf(stderr, "FAIL %s:%d: the last error does not say \"%s\" but \"%s\"\n", file, line, part,
          penstock_last_error());
  return false;
}

unsigned char value_at(int64_t offset) {
  return (unsigned char)(((uint64_t)offset * 0x9e3779b97f4a7c15u) >> 56 | 1);
}

void fill(unsigned char* memory, int64_t offset, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i) memory[i] = value_at(offset + i);
}

void* need(size_t bytes) {
  void* memory = calloc(bytes > 0 ? bytes : 1, 1);
  if (memory == NULL) abort();
  return memory;
}

void paint(struct picture* picture, int64_t offset, int64_t bytes) {
  if (bytes == 0) return;
  if (offset + bytes > picture->room) {
    const int64_t room = 2 * (offset + bytes);
    picture->bytes = realloc(picture->bytes, (size_t)room);
    if (picture->bytes == NULL) abort();
    memset(picture->bytes + picture->room, 0, (size_t)(room - picture->room));
    picture->room = room;
  }
  fill(picture->bytes + offset, offset, bytes);
  if (offset + bytes > picture->size) picture->size = offset + bytes;
}

/* All of the file, and how long it is; NULL when it cannot be read. */
static unsigned char* contents(const char* path, int64_t* size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  *size = lseek(fd, 0, SEEK_END);
  unsigned char* bytes = need((size_t)*size);
  int64_t have = 0;
  while (have < *size) {
    const ssize_t n = pread(fd, bytes + have, (size_t)(*size - have), have);
    if (n <= 0) break;
    have += n;
  }
  close(fd);
  *size = have;
  return bytes;
}

bool matches(const char* path, struct picture* picture) {
  int64_t size = 0;
  unsigned char* bytes = contents(path, &size);
  bool good = bytes != NULL && size == picture->size;
  if (!good)
    fprintf(stderr, "%s has %lld bytes instead of %lld\n", path, (long long)size,
            (long long)picture->size);
  for (int64_t i = 0; good && i < size; ++i) {
    good = bytes[i] == picture->bytes[i];
    if (!good)
      fprintf(stderr, "%s: byte %lld is %d instead of %d\n", path, (long long)i, bytes[i],
              picture->bytes[i]);
  }
  free(bytes);
  free(picture->bytes);
  *picture = (struct picture){NULL, 0, 0};
  return good;
}

int64_t prefix_in_file(const char* path, int64_t offset, int64_t bytes) {
  int64_t size = 0, n = 0;
  unsigned char* all = contents(path, &size);
  if (all == NULL) return -1;
  while (n < bytes && offset + n < size && all[offset + n] == value_at(offset + n)) ++n;
  free(all);
  return n;
}

const char* name_in(const struct place* p, const char* name, char path[4096]) {
  snprintf(path, 4096, "%s/%s-%d", p->directory, name, p->ranks);
  return path;
}

penstock_file* opened(const struct place* p, const char* path, const char* method,
                      const char* config) {
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  options.method = method;
  options.config = config;
  penstock_file* file = NULL;
  if (!OK(penstock_open(p->rank, path, &options, &file))) return NULL;
  CHECK(file != NULL);
  return file;
}

struct work {
  struct place place;
  void (*body)(const struct place*);
};

static void* work(void* argument) {
  struct work* w = argument;
  w->body(&w->place);
  return NULL;
}

void run_on_team(penstock_team* team, int threads, const char* directory,
                 void (*body)(const struct place*)) {
  pthread_t* ids = need(sizeof(pthread_t) * (size_t)threads);
  struct work* all = need(sizeof(struct work) * (size_t)threads);
  for (int i = 0; i < threads; ++i) {
    struct place* p = &all[i].place;
    p->directory = directory;
    p->index = i;
    all[i].body = body;
    OK(penstock_team_rank(team, i, &p->rank));
    OK(penstock_rank_place(p->rank, &p->number, &p->ranks));
  }
  if (threads == 1) {
    body(&all[0].place); /* MPI may allow its first thread only */
  } else {
    for (int i = 0; i < threads; ++i)
      if (pthread_create(&ids[i], NULL, work, &all[i]) != 0) abort();
    for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  }
  free(ids);
  free(all);
}
