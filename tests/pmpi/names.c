/* Which file a name leads to: `names FILE`, any number of ranks. Libraries differ in what they take
 * for a prefix, and somebody else may put another file under the name while it is opened. Penstock
 * writes to the one that the library has open, or leaves it alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "past.h"

enum { piece = 1000, most_ranks = 64, opens = 300, last_kept = 64 };

static long long written;

static void make(const char* name) {
  FILE* f = fopen(name, "wb");
  CHECK(f != NULL && fputs("precious", f) >= 0 && fclose(f) == 0);
}

/* What is there before, of both that the name may mean. */
static void prepare(const char* name, int bare_is_there, int literal_is_there) {
  if (rank == 0) {
    remove(strchr(name, ':') + 1);
    remove(name);
    if (bare_is_there) make(strchr(name, ':') + 1);
    if (literal_is_there) make(name);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The library's own reading, past Penstock. */
static void check_by_library(const char* name) {
  static char got[most_ranks * piece];
  MPI_File file;
  CHECK(PMPI_File_open(MPI_COMM_SELF, (char*)name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS);
  CHECK(PMPI_File_read_at(file, 0, got, ranks * piece, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < ranks * piece; ++i) CHECK(got[i] == 'A' + i / piece);
  PMPI_File_close(&file);
}

/* Of the two the other is as it was. */
static void check_other(const char* name, int bare_is_there, int literal_is_there) {
  struct stat bare, literal;
  const int has_bare = stat(strchr(name, ':') + 1, &bare) == 0;
  const int has_literal = stat(name, &literal) == 0;
  const int is_bare = has_bare && bare.st_size == ranks * piece;
  CHECK(is_bare || (has_literal && literal.st_size == ranks * piece));
  if (is_bare)
    CHECK(has_literal == literal_is_there && (!has_literal || literal.st_size == 8));
  else
    CHECK(has_bare == bare_is_there && (!has_bare || bare.st_size == 8));
}

static void write_under(const char* name, int bare_is_there, int literal_is_there) {
  char mine[piece];
  MPI_File file;
  memset(mine, 'A' + rank, sizeof mine);
  prepare(name, bare_is_there, literal_is_there);
  if (MPI_File_open(MPI_COMM_WORLD, (char*)name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS) {
    /* A driver that this library lacks. */
    CHECK(open_past_penstock(name, MPI_MODE_CREATE | MPI_MODE_RDWR, &file) != MPI_SUCCESS);
    return;
  }
  CHECK(MPI_File_write_at_all(file, rank * piece, mine, piece, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  written += piece;
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  if (rank == 0) {
    check_by_library(name);
    check_other(name, bare_is_there, literal_is_there);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static atomic_int done;

/* The last ones keep their inodes by a second name: a file system gives numbers again at once, and
 * by number alone the next file would be the one before. */
static void* replace(void* name) {
  char kept[32];
  for (int i = 0; !done; ++i) {
    snprintf(kept, sizeof kept, "kept.%d", i % last_kept);
    remove(kept);
    make("new");
    CHECK(link("new", kept) == 0);
    rename("new", name);
  }
  return NULL;
}

/* Of the descriptors under this path; and whether all lead to one file. */
static int descriptors_of(const char* name, int* is_one_file) {
  char link[512], target[512];
  ino_t first = 0;
  int found = 0;
  *is_one_file = 1;
  for (int fd = 3; fd < 200; ++fd) {
    struct stat file;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, sizeof target - 1);
    if (n <= 0) continue;
    target[n] = '\0';
    if (strstr(target, name) == NULL || fstat(fd, &file) != 0) continue;
    if (found > 0 && file.st_ino != first) *is_one_file = 0;
    first = file.st_ino;
    ++found;
  }
  CHECK(found > 0);
  return found;
}

static MPI_File open_alone(char* name) {
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS);
  return file;
}

/* A library that opens a file twice itself, as Intel's does, may have two. */
static int opens_it_once(char* name) {
  int is_one_file;
  MPI_File file = open_alone(name);
  const int found = descriptors_of(name, &is_one_file);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  return found <= 2; /* one is Penstock's */
}

static void open_while_replaced(char* name) {
  pthread_t other;
  int is_one_file;
  make(name);
  if (!opens_it_once(name)) return;
  CHECK(pthread_create(&other, NULL, replace, name) == 0);
  for (int i = 0; i < opens; ++i) {
    MPI_File file = open_alone(name);
    descriptors_of(name, &is_one_file);
    CHECK(is_one_file);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  }
  done = 1;
  pthread_join(other, NULL);
}

int main(int argc, char** argv) {
  char directory[4096], replaced[] = "replaced.dat";
  start_job(argc, argv);
  CHECK(ranks <= most_ranks);
  snprintf(directory, sizeof directory, "%s", path);
  CHECK(chdir(dirname(directory)) == 0);
  const char* names[] = {"ufs:a.dat", "nfs:a.dat", "UFS:a.dat", "xfs:a.dat", "a:b.dat"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    for (int there = 0; there < 4; ++there) write_under(names[i], there & 1, there >> 1);
  if (rank == 0) open_while_replaced(replaced);
  return end_job(written, 0);
}
