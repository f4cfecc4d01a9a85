/* OpenMP threads write records of different lengths, in order, into one file.
 *
 *   ./collatz FILE.txt [LAST]
 *
 * Line n of the file says how many steps n takes to come to 1. Each thread formats the lines of its
 * numbers in memory; where they begin in the file follows from how long those of the threads before
 * are. */
#include <inttypes.h>
#include <omp.h>
#include <penstock/penstock.h>
#include <stdio.h>
#include <stdlib.h>

static int steps_of(uint64_t n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

static int report(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_last_error());
  return 1;
}

/* The lines of numbers first to last; gives their bytes. */
static int64_t format_lines(int64_t first, int64_t last, char* text, size_t room) {
  int64_t bytes = 0;
  for (int64_t n = first; n <= last; ++n)
    bytes +=
        snprintf(text + bytes, room - (size_t)bytes, "%" PRId64 " %d\n", n, steps_of((uint64_t)n));
  return bytes;
}

static int write_lines(penstock_rank* rank, const char* path, int64_t offset, const char* text,
                       int64_t bytes) {
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  penstock_file* file;
  if (penstock_open(rank, path, &options, &file)) return report("open");
  int failed = 0;
  if (penstock_write_at_all(file, offset, text, bytes, NULL)) failed = report("write");
  if (penstock_sync(file)) failed = report("sync");
  if (penstock_close(file)) failed = report("close");
  return failed;
}

int main(int argc, char** argv) {
  const int64_t last = argc > 2 ? atoll(argv[2]) : 20000;
  if (argc < 2 || last < 1) {
    fprintf(stderr, "usage: collatz FILE.txt [LAST]\n");
    return 2;
  }
  int failed = 0;
  penstock_team* team = NULL;
  int64_t* lengths = NULL;
#pragma omp parallel reduction(| : failed)
  {
    const int threads = omp_get_num_threads(), self = omp_get_thread_num();
#pragma omp single
    {
      /* As many ranks as threads that are really there. */
      lengths = calloc((size_t)threads, sizeof *lengths);
      if (lengths == NULL || penstock_team_threads(threads, &team)) abort();
    }
    const int64_t first = 1 + last * self / threads, end = last * (self + 1) / threads;
    const size_t room = 32 * (size_t)(end - first + 1) + 1;
    char* text = malloc(room);
    if (text == NULL) abort();
    lengths[self] = format_lines(first, end, text, room);
#pragma omp barrier
    int64_t offset = 0;
    for (int i = 0; i < self; ++i) offset += lengths[i];
    penstock_rank* rank;
    penstock_team_rank(team, self, &rank);
    failed |= write_lines(rank, argv[1], offset, text, lengths[self]);
    free(text);
  }
  if (penstock_team_free(team)) failed = report("free");
  free(lengths);
  if (!failed) printf("%" PRId64 " lines\n", last);
  return failed;
}
