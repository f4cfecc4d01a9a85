/* An MPI program that looks at itself: `site WHAT FILE [BYTES]`, any number of ranks.
 *   write        collective writes of BYTES by each rank (default 4000), then a read by itself
 *   state        the same; what the process looks like before, between and after goes to
 *                FILE.state.RANK
 *   children     children by fork, posix_spawn, system and popen, while the file is open, list
 *                their descriptors to FILE.children.RANK
 *   forks        children that only fork end by _exit and by exit; then the parent goes on
 *   full-shm     rank 0 fills /dev/shm first, and calls are short
 *   few-K        leaves K descriptors free first
 *   later-shm    a small file, then as full-shm, and a larger one; both are only written
 *   killed       rank 1 dies by SIGKILL while the others are inside a collective write
 *   own-stderr   FILE.own.RANK is its descriptor 2 while MPI ends
 *   own-files    each rank's FILE is another one: a write by each, and a read by itself
 *   early-root   write, of /out, after FILE.root has become its root
 *   late-root    the same of FILE, and the root is another one when the file is open
 *   asked-root   as early-root, and an MPI-IO call came before it
 *   little-room  write, with BYTES more of address space than it has
 *   result       opens only, and prints the error class (for names that do not fit)
 *   descriptors  no MPI: lists its own descriptors on stdout (it is its own child) */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "state.h"

extern char** environ;

enum { CALL_BYTES = 4 << 20 };

static long long call_bytes = CALL_BYTES; /* at most */

static int rank, ranks;
static long checks, failed, calls, own_calls;
static long long written;

static void check(int holds, const char* what) {
  ++checks;
  if (holds) return;
  ++failed;
  printf("FAIL rank %d: %s\n", rank, what);
}
#define CHECK(condition) check((condition), #condition)

static MPI_File open_as(const char* path, int mode) {
  MPI_File fh = MPI_FILE_NULL;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | mode, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  if (fh == MPI_FILE_NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return fh;
}

static MPI_File open_file(const char* path) { return open_as(path, MPI_MODE_RDWR); }

/* Bytes whose value tells where they belong. */
static void fill(unsigned char* to, long long offset, long long n) {
  for (long long i = 0; i < n; ++i) to[i] = (unsigned char)((offset + i) % 251);
}

/* Ranks take turns by calls of at most call_bytes; `begin` is where the first call starts. */
static void write_turns(MPI_File fh, long long begin, long long bytes) {
  unsigned char* data = malloc((size_t)call_bytes);
  for (long long done = 0; done < bytes;) {
    const long long n = bytes - done < call_bytes ? bytes - done : call_bytes;
    const long long offset = begin + done * ranks + n * rank;
    MPI_Status status;
    int count = -1;
    fill(data, offset, n);
    CHECK(MPI_File_write_at_all(fh, offset, data, (int)n, MPI_BYTE, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == n);
    done += n;
    ++calls;
  }
  written += bytes;
  free(data);
}

/* The same by short calls of each rank alone. */
static void write_alone(MPI_File fh, long long begin, long long bytes) {
  enum { SHORT_BYTES = 1000 };
  unsigned char data[SHORT_BYTES];
  for (long long done = 0; done < bytes; done += SHORT_BYTES) {
    const long long n = bytes - done < SHORT_BYTES ? bytes - done : SHORT_BYTES;
    const long long offset = begin + done * ranks + n * rank;
    fill(data, offset, n);
    CHECK(MPI_File_write_at(fh, offset, data, (int)n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    ++own_calls;
  }
  written += bytes;
}

/* The program's own reading, not MPI's. */
static void check_file(const char* path, long long bytes) {
  unsigned char have[65536], want[65536];
  FILE* f = fopen(path, "rb");
  CHECK(f != NULL);
  long long at = 0;
  for (size_t n; f != NULL && (n = fread(have, 1, sizeof have, f)) > 0; at += (long long)n) {
    fill(want, at, (long long)n);
    if (memcmp(have, want, n) != 0) break;
  }
  CHECK(at == bytes);
  if (f != NULL) fclose(f);
}

static void write_all(const char* path, long long bytes) {
  MPI_File fh = open_file(path);
  write_turns(fh, 0, bytes);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check_file(path, bytes * ranks);
}

/* ---- far apart ---- */

/* Short pieces, each rank's alone, in a file that nobody reads meanwhile. */
enum { PIECE_BYTES = 1000, APART_BYTES = 65536, MOST_FILES = 8 };

static void check_far_apart(const char* path, long long pieces) {
  unsigned char data[PIECE_BYTES], have[PIECE_BYTES];
  FILE* f = fopen(path, "rb");
  for (long long i = rank; i < pieces; i += ranks) {
    fill(data, i * APART_BYTES, PIECE_BYTES);
    CHECK(f != NULL && fseek(f, (long)(i * APART_BYTES), SEEK_SET) == 0 &&
          fread(have, 1, PIECE_BYTES, f) == PIECE_BYTES && memcmp(have, data, PIECE_BYTES) == 0);
  }
  if (f != NULL) fclose(f);
}

/* Files that are all open before the first is written. */
static void write_far_apart(const char* path, long long bytes, int files) {
  const long long pieces = bytes / files / PIECE_BYTES * ranks;
  char names[MOST_FILES][PATH_MAX];
  unsigned char data[PIECE_BYTES];
  MPI_File fh[MOST_FILES];
  for (int f = 0; f < files; ++f) {
    snprintf(names[f], sizeof names[f], f == 0 ? "%s" : "%s.%d", path, f);
    fh[f] = open_as(names[f], MPI_MODE_WRONLY);
  }
  for (int f = 0; f < files; ++f)
    for (long long i = rank; i < pieces; i += ranks, ++own_calls) {
      fill(data, i * APART_BYTES, PIECE_BYTES);
      CHECK(MPI_File_write_at(fh[f], i * APART_BYTES, data, PIECE_BYTES, MPI_BYTE,
                              MPI_STATUS_IGNORE) == MPI_SUCCESS);
      written += PIECE_BYTES;
    }
  for (int f = 0; f < files; ++f) CHECK(MPI_File_close(&fh[f]) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int f = 0; f < files; ++f) check_far_apart(names[f], pieces);
}

/* ---- crumbs ---- */

/* Short pieces of all ranks, by turns, with gaps that nobody writes. */
static void write_crumbs(const char* path, long long bytes) {
  enum { CRUMB_BYTES = 48, STEP_BYTES = 2038 };
  const long long n = bytes / CRUMB_BYTES;
  unsigned char *data = malloc((size_t)bytes), have[CRUMB_BYTES];
  MPI_File fh = open_file(path);
  MPI_Datatype crumb, turn;
  MPI_Type_contiguous(CRUMB_BYTES, MPI_BYTE, &crumb);
  MPI_Type_create_resized(crumb, 0, (MPI_Aint)STEP_BYTES * ranks, &turn);
  MPI_Type_commit(&turn);
  CHECK(MPI_File_set_view(fh, (MPI_Offset)STEP_BYTES * rank, MPI_BYTE, turn, "native",
                          MPI_INFO_NULL) == MPI_SUCCESS);
  fill(data, rank, bytes);
  CHECK(MPI_File_write_all(fh, data, (int)(n * CRUMB_BYTES), MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  ++calls;
  written += n * CRUMB_BYTES;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  FILE* f = fopen(path, "rb");
  for (long long i = 0; i < n; ++i)
    CHECK(f != NULL && fseek(f, (long)((i * ranks + rank) * STEP_BYTES), SEEK_SET) == 0 &&
          fread(have, 1, CRUMB_BYTES, f) == CRUMB_BYTES &&
          memcmp(have, data + i * CRUMB_BYTES, CRUMB_BYTES) == 0);
  if (f != NULL) fclose(f);
  MPI_Type_free(&turn);
  MPI_Type_free(&crumb);
  free(data);
}

/* ---- own files ---- */

static void write_own_file(const char* path) {
  enum { BYTES = 1000 };
  unsigned char want[BYTES], have[BYTES];
  MPI_File fh = open_as(path, MPI_MODE_WRONLY);
  write_alone(fh, 0, BYTES);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  fill(want, (long long)BYTES * rank, BYTES);
  FILE* f = fopen(path, "rb");
  CHECK(f != NULL && fseek(f, (long)BYTES * rank, SEEK_SET) == 0 &&
        fread(have, 1, BYTES, f) == BYTES && memcmp(have, want, BYTES) == 0);
  if (f != NULL) fclose(f);
}

/* ---- state ---- */

static void write_looked_at(const char* path, long long bytes) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s.state.%d", path, rank);
  FILE* out = fopen(name, "w");
  if (out == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  provoke_state();
  remember_environment();
  print_names_of_variables(out);
  print_state(out, "before");
  MPI_File fh = open_file(path);
  print_state(out, "opened");
  write_turns(fh, 0, bytes);
  print_state(out, "written");
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  print_state(out, "closed");
  print_descriptors(out, "closed");
  int level = -1;
  MPI_Query_thread(&level);
  fprintf(out, "thread level %d\n", level);
  fclose(out);
}

/* ---- children ---- */

static void wait_for(pid_t pid, int code) {
  int status = -1;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

static void redirected_child(const char* self, const char* to) {
  const int fd = open(to, O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(fd, STDOUT_FILENO);
  close(fd);
  execl(self, self, "descriptors", (char*)NULL);
  _exit(126);
}

static void start_children(const char* path) {
  char self[PATH_MAX], to[PATH_MAX], command[3 * PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = '\0';
  snprintf(to, sizeof to, "%s.children.%d", path, rank);
  const pid_t forked = fork();
  if (forked == 0) redirected_child(self, to);
  wait_for(forked, 0);
  snprintf(command, sizeof command, "'%s' descriptors >> '%s'", self, to);
  CHECK(system(command) == 0);
  FILE* pipe = popen(command, "r");
  CHECK(pipe != NULL && pclose(pipe) == 0);
  char* const words[] = {"sh", "-c", command, NULL};
  pid_t spawned = -1;
  CHECK(posix_spawn(&spawned, "/bin/sh", NULL, NULL, words, environ) == 0);
  wait_for(spawned, 0);
}

static void write_with_children(const char* path, long long bytes) {
  MPI_File fh = open_file(path);
  write_turns(fh, 0, bytes);
  start_children(path);
  write_turns(fh, bytes * ranks, bytes);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check_file(path, 2 * bytes * ranks);
}

static void write_with_forks(const char* path, long long bytes) {
  MPI_File fh = open_file(path);
  write_turns(fh, 0, bytes);
  for (int at_once = 0; at_once < 2; ++at_once) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0 && at_once) _exit(7);
    if (child == 0) exit(7);
    wait_for(child, 7);
  }
  write_turns(fh, bytes * ranks, bytes);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check_file(path, 2 * bytes * ranks);
}

/* ---- scarcity ---- */

static void fill_shared_memory(void) {
  static const char name[] = "/dev/shm/penstock-site-filler";
  static char block[65536];
  if (rank == 0) {
    const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0) continue;
    while (write(fd, block, 1) > 0) continue;
    CHECK(errno == ENOSPC);
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Every descriptor but `left` of those that the limit allows is taken. */
static void leave_descriptors(int left) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_cur < 256 ? limit.rlim_cur : 256;
  setrlimit(RLIMIT_NOFILE, &limit);
  int last[256], n = 0;
  while (n < 256 && (last[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) ++n;
  for (int i = 0; i < left && n > 0; ++i) close(last[--n]);
}

/* How it ends is compared with how it ends alone: it may fail, it may not hang or lie. */
static void write_with_few(const char* path, int left) {
  MPI_File fh = MPI_FILE_NULL;
  unsigned char data[1000];
  leave_descriptors(left);
  const int opened =
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh);
  int wrote = -1, closed = -1;
  if (opened == MPI_SUCCESS) {
    fill(data, 1000L * rank, 1000);
    wrote = MPI_File_write_at_all(fh, 1000L * rank, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    closed = MPI_File_close(&fh);
    written += 1000, ++calls;
  }
  printf("few %d rank %d: open %d write %d close %d\n", left, rank, opened == MPI_SUCCESS,
         wrote == MPI_SUCCESS, closed == MPI_SUCCESS);
}

static void leave_address_space(long long bytes) {
  long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  CHECK(f != NULL && fscanf(f, "%ld", &pages) == 1);
  if (f != NULL) fclose(f);
  const rlim_t most = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + bytes);
  CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
}

/* FILE.root, which is empty. */
static void change_root(const char* path) {
  char root[PATH_MAX];
  snprintf(root, sizeof root, "%s.root", path);
  CHECK(chroot(root) == 0 && chdir("/") == 0);
}

static void change_root_while_open(const char* path, long long bytes) {
  MPI_File fh = open_as(path, MPI_MODE_WRONLY);
  change_root(path);
  write_turns(fh, 0, bytes);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

static void die_inside(const char* path) {
  MPI_File fh = open_file(path);
  write_turns(fh, 0, 4000);
  if (rank == 1) {
    usleep(300 * 1000); /* the others are in the call by now, or will find it dead: either is one */
    raise(SIGKILL);
  }
  write_turns(fh, 4000L * ranks, 4000);
  MPI_File_close(&fh);
}

static void write_with_own_stderr(const char* path, long long bytes) {
  char own[PATH_MAX];
  snprintf(own, sizeof own, "%s.own.%d", path, rank);
  write_all(path, bytes);
  close(STDERR_FILENO);
  CHECK(open(own, O_CREAT | O_RDWR, 0600) == STDERR_FILENO);
  CHECK(write(STDERR_FILENO, "data", 4) == 4);
}

static void print_result_of_opening(const char* path) {
  MPI_File fh = MPI_FILE_NULL;
  const int rc =
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh);
  int class = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
  if (rank == 0) printf("opening gives class %d\n", class);
  if (rc == MPI_SUCCESS) {
    write_turns(fh, 0, 1000);
    MPI_File_close(&fh);
  }
}

/* What the small file leaves is enough for none of the larger one's pages. */
static void write_two(const char* path) {
  enum { SMALL = 4000, ALONE = 3000000, TOGETHER = 200000 };
  char first[PATH_MAX];
  snprintf(first, sizeof first, "%s.first", path);
  MPI_File fh = open_as(first, MPI_MODE_WRONLY);
  write_alone(fh, 0, SMALL);
  write_turns(fh, (long long)SMALL * ranks, SMALL);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  fill_shared_memory();
  fh = open_as(path, MPI_MODE_WRONLY);
  write_alone(fh, 0, ALONE);
  write_turns(fh, (long long)ALONE * ranks, TOGETHER);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    check_file(first, 2LL * SMALL * ranks);
    check_file(path, (long long)(ALONE + TOGETHER) * ranks);
  }
}

static void run(const char* what, const char* path, long long bytes) {
  if (strcmp(what, "state") == 0) {
    write_looked_at(path, bytes);
  } else if (strcmp(what, "far-apart") == 0) {
    write_far_apart(path, bytes, 1);
  } else if (strcmp(what, "far-apart-many") == 0) {
    write_far_apart(path, bytes, MOST_FILES);
  } else if (strcmp(what, "crumbs") == 0) {
    write_crumbs(path, bytes);
  } else if (strcmp(what, "children") == 0) {
    write_with_children(path, bytes);
  } else if (strcmp(what, "forks") == 0) {
    write_with_forks(path, bytes);
  } else if (strncmp(what, "few-", 4) == 0) {
    write_with_few(path, atoi(what + 4));
  } else if (strcmp(what, "killed") == 0) {
    die_inside(path);
  } else if (strcmp(what, "later-shm") == 0) {
    write_two(path);
  } else if (strcmp(what, "own-stderr") == 0) {
    write_with_own_stderr(path, bytes);
  } else if (strcmp(what, "own-files") == 0) {
    write_own_file(path);
  } else if (strcmp(what, "late-root") == 0) {
    change_root_while_open(path, bytes);
  } else if (strcmp(what, "result") == 0) {
    print_result_of_opening(path);
  } else {
    if (strcmp(what, "full-shm") == 0) {
      fill_shared_memory();
      call_bytes = 100; /* so many calls that their ranks would have memory to meet in */
    }
    if (strcmp(what, "little-room") == 0) leave_address_space(bytes);
    if (strcmp(what, "asked-root") == 0) (void)MPI_File_delete(path, MPI_INFO_NULL);
    if (strstr(what, "-root") != NULL) {
      change_root(path);
      path = "/out";
    }
    write_all(path, bytes);
  }
}

static void print_result(void) {
  long mine[] = {checks, failed, (long)written, calls, own_calls}, all[5];
  MPI_Reduce(mine, all, 5, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(
        "result {\"checks\": %ld, \"failed\": %ld, \"bytes\": %ld, \"collective\": %ld, "
        "\"independent\": %ld}\n",
        all[0], all[1], all[2], all[3], all[4]);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "descriptors") == 0) {
    print_descriptors(stdout, "child");
    return 0;
  }
  if (argc < 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  run(argv[1], argv[2], argc > 3 ? atoll(argv[3]) : 4000);
  print_result();
  MPI_Finalize();
  return 0;
}
