/* Threads draw a picture into one file: POSIX threads and penstock_write_strided_all.
 *
 *   ./picture FILE.pgm [THREADS]
 *
 * Thread t of n computes rows t, t + n, t + 2n, ... of the Mandelbrot set, so that all have as much
 * to do, and all rows go into the file by one collective call. */
#include <penstock/penstock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWidth = 360, kHeight = 240, kSteps = 96, kMostThreads = 64 };

struct worker {
  penstock_rank* rank;
  const char* path;
  int failed;
};

/* Whole numbers in units of 1/4096, so that every machine draws the same picture. */
static unsigned char shade(int column, int row) {
  const long x0 = -10240L + column * 14336L / kWidth, y0 = -4800L + row * 9600L / kHeight;
  long x = 0, y = 0;
  int step = 0;
  for (; step < kSteps && x * x + y * y < 4L * 4096 * 4096; ++step) {
    const long next = (x * x - y * y) / 4096 + x0;
    y = 2 * x * y / 4096 + y0;
    x = next;
  }
  return (unsigned char)(step == kSteps ? 0 : 255 - 2 * step);
}

static int report(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_last_error());
  return 1;
}

static int draw(penstock_file* file, penstock_rank* rank) {
  int number, threads;
  penstock_rank_place(rank, &number, &threads);
  char header[32];
  const int header_bytes = snprintf(header, sizeof header, "P5 %d %d 255\n", kWidth, kHeight);
  int failed = 0; /* and on: the others wait for this thread's rows */
  if (number == 0 && penstock_write_at(file, 0, header, header_bytes, NULL))
    failed = report("header");

  const int rows = (kHeight - number + threads - 1) / threads;
  unsigned char* pixels = malloc((size_t)kWidth * kHeight);
  if (pixels == NULL) abort();
  for (int i = 0; i < rows; ++i)
    for (int column = 0; column < kWidth; ++column)
      pixels[i * kWidth + column] = shade(column, number + i * threads);

  const int64_t first = header_bytes + (int64_t)number * kWidth;
  if (penstock_write_strided_all(file, first, kWidth, (int64_t)threads * kWidth, rows, pixels,
                                 NULL))
    failed = report("rows");
  free(pixels);
  return failed;
}

static void* work(void* argument) {
  struct worker* self = argument;
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  options.flags |= PENSTOCK_TRUNCATE;
  penstock_file* file;
  if (penstock_open(self->rank, self->path, &options, &file)) {
    self->failed = report("open");
    return NULL;
  }
  self->failed = draw(file, self->rank);
  if (penstock_close(file)) self->failed = report("close");
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 2 ? atoi(argv[2]) : 4;
  if (argc < 2 || threads < 1 || threads > kMostThreads) {
    fprintf(stderr, "usage: picture FILE.pgm [THREADS, 1 to %d]\n", kMostThreads);
    return 2;
  }
  penstock_team* team;
  if (penstock_team_threads(threads, &team)) return report("team");
  pthread_t ids[kMostThreads];
  struct worker workers[kMostThreads];
  for (int i = 0; i < threads; ++i) {
    workers[i] = (struct worker){NULL, argv[1], 0};
    penstock_team_rank(team, i, &workers[i].rank);
    if (pthread_create(&ids[i], NULL, work, &workers[i]))
      abort(); /* the others would wait for it */
  }
  int failed = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    failed |= workers[i].failed;
  }
  if (penstock_team_free(team)) failed = report("free");
  if (!failed) printf("%d threads drew %d x %d points\n", threads, kWidth, kHeight);
  return failed;
}
