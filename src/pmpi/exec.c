/* penstock-exec: starts one program with the shim that fits it. It comes between the launcher and
 * the program (mpiexec -n 64 penstock-exec ./app), so only the program is preloaded, on every node,
 * and the launcher and its remote shells never are. Static and libc only. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec_elf.h"
#include "exec_privileges.h"
#include "launched_rank.h"
#include "switched_off.h"

static const char usage[] =
    "Usage: penstock-exec [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
    "Starts an MPI program whose MPI-IO writes go through Penstock:\n"
    "  mpiexec -n 64 penstock-exec ./app\n"
    "\n"
    "  --method METHOD   write method (penstock list); off: a true no-op\n"
    "  --observe         take over nothing, time the program's own MPI-IO\n"
    "  --verify          read back and compare checksums at close\n"
    "  --require         stop wherever a write would pass Penstock by\n"
    "  --quiet           no line on stderr at the end\n"
    "  --log-dir DIR     where the job's log goes\n"
    "  --config FILE     configuration (TOML)\n"
    "  --writers N       ranks that write\n"
    "  --cycle SIZE      bytes that a writer gathers at once, for example 16MiB\n"
    "  --no-log          write no log of the job\n"
    "  --isolated        read no configuration file of the system, the user or the project\n"
    "  --thread-multiple MPI_Init grants MPI_THREAD_MULTIPLE, for write_behind_progress = thread\n"
    "  --all-ranks       every rank of the job is started so: logs are merged at the end\n"
    "  --resolved TEXT   the configuration that `penstock run` made of all its sources\n"
    "  --mpi FLAVOUR     mpich, openmpi or abi, where it cannot be told from the program\n"
    "  --dry-run         print what would be set and started\n"
    "  --version, --help\n";

struct option {
  const char* name;
  const char* variable;
  const char* value; /* NULL: the next argument */
};

static const char resolved[] = "PENSTOCK_RESOLVED";
static const char noted[] = "PENSTOCK_OPTIONS";
static const struct option options[] = {
    {"--method", "PENSTOCK_METHOD", NULL}, {"--observe", "PENSTOCK_OBSERVE", "1"},
    {"--verify", "PENSTOCK_VERIFY", "1"},  {"--require", "PENSTOCK_REQUIRE", "1"},
    {"--quiet", "PENSTOCK_QUIET", "1"},    {"--log-dir", "PENSTOCK_LOG_DIR", NULL},
    {"--config", "PENSTOCK_CONFIG", NULL}, {"--writers", "PENSTOCK_WRITERS", NULL},
    {"--cycle", "PENSTOCK_CYCLE", NULL},   {"--all-ranks", "PENSTOCK_ALL_RANKS", "1"},
    {"--no-log", "PENSTOCK_LOG", "0"},     {"--isolated", "PENSTOCK_ISOLATED", "1"},
    {"--resolved", resolved, NULL},
};
enum { OPTIONS = sizeof options / sizeof *options };

/* Settings that have no option here: with `options`, all of engine/config.cpp. */
static const char* const without_option[] = {"PENSTOCK_READ",
                                             "PENSTOCK_VISIBILITY",
                                             "PENSTOCK_WRITE_BEHIND",
                                             "PENSTOCK_WRITE_BEHIND_PAGE",
                                             "PENSTOCK_WRITE_BEHIND_LIMIT",
                                             "PENSTOCK_WRITE_BEHIND_SECONDS",
                                             "PENSTOCK_WRITE_BEHIND_PROGRESS",
                                             "PENSTOCK_WRITE_BEHIND_SUBBUFFER",
                                             NULL};

static const char* set_here[OPTIONS + 6] = {
    "PENSTOCK_METHOD",   "PENSTOCK_OBSERVE",   "PENSTOCK_VERIFY", "PENSTOCK_REQUIRE",
    "PENSTOCK_QUIET",    "PENSTOCK_LOG_DIR",   "PENSTOCK_CONFIG", "PENSTOCK_WRITERS",
    "PENSTOCK_CYCLE",    "PENSTOCK_ALL_RANKS", "PENSTOCK_LOG",    "PENSTOCK_ISOLATED",
    "PENSTOCK_RESOLVED", "PENSTOCK_OPTIONS",   "LD_PRELOAD"};
static const char** next_set_here = set_here + OPTIONS + 2; /* three beside these, then a NULL */

static enum mpi_flavour asked_flavour = FLAVOUR_UNKNOWN;
static int dry_run = 0;

static void set_beside(const char* variable, const char* value) {
  setenv(variable, value, 1);
  *next_set_here++ = variable;
}

static void die(int status, const char* what, const char* detail) {
  fprintf(stderr, "penstock-exec: %s%s%s\n", what, *detail != '\0' ? ": " : "", detail);
  exit(status);
}

/* "--name=VALUE" or "--name VALUE"; NULL when `argument` is not `name`. */
static const char* value_of(const char* name, char** argv, int* i) {
  const size_t n = strlen(name);
  if (strncmp(argv[*i], name, n) != 0) return NULL;
  if (argv[*i][n] == '=') return argv[*i] + n + 1;
  if (argv[*i][n] != '\0') return NULL;
  if (argv[*i + 1] == NULL) die(2, "an option lacks its value", name);
  return argv[++*i];
}

/* An option wins over hints and files, which a variable does not: the engine is told of each. */
static void note_option(const char* variable) {
  const char* others = getenv(noted);
  const char* name = variable + strlen("PENSTOCK_");
  char* all = NULL;
  if (others == NULL || *others == '\0') {
    setenv(noted, name, 1);
  } else if (asprintf(&all, "%s,%s", others, name) > 0) {
    setenv(noted, all, 1);
    free(all);
  }
}

/* It holds what the variables of the launching node said, so that those of this node, which a
 * shell's start-up file may set, say nothing. */
static void drop_variables(void) {
  for (int k = 0; k < OPTIONS; ++k) unsetenv(options[k].variable);
  for (const char* const* v = without_option; *v != NULL; ++v) unsetenv(*v);
  unsetenv(noted);
}

static int take_option(char** argv, int* i) {
  for (int k = 0; k < OPTIONS; ++k) {
    const struct option* o = &options[k];
    const char* value = o->value;
    if (value == NULL) {
      value = value_of(o->name, argv, i);
    } else if (strcmp(argv[*i], o->name) != 0) {
      value = NULL;
    }
    if (value == NULL) continue;
    if (o->variable == resolved) {
      drop_variables();
    } else {
      note_option(o->variable);
    }
    setenv(o->variable, value, 1);
    return 1;
  }
  return 0;
}

static const struct {
  enum mpi_flavour flavour;
  const char *name, *title;
} flavours[] = {{FLAVOUR_MPICH, "mpich", "MPICH"},
                {FLAVOUR_OPENMPI, "openmpi", "Open MPI"},
                {FLAVOUR_ABI, "abi", "the standard ABI"}};
enum { FLAVOURS = sizeof flavours / sizeof *flavours };

static void choose_flavour(const char* name) {
  for (int i = 0; i < FLAVOURS; ++i) {
    if (strcmp(name, flavours[i].name) == 0) asked_flavour = flavours[i].flavour;
  }
  if (asked_flavour == FLAVOUR_UNKNOWN) die(2, "--mpi is mpich, openmpi or abi, got", name);
}

static int index_of(enum mpi_flavour flavour) {
  int i = 0;
  while (flavours[i].flavour != flavour) ++i;
  return i;
}

/* What MPI_Init grants where the program does not say: MPICH and those made from it, Open MPI. A
 * library that knows neither grants what it did; the engine asks. */
static void raise_thread_level(void) {
  static int is_raised = 0; /* the option may be given twice */
  if (is_raised) return;
  is_raised = 1;
  set_beside("MPIR_CVAR_DEFAULT_THREAD_LEVEL", "MPI_THREAD_MULTIPLE");
  set_beside("OMPI_MPI_THREAD_LEVEL", "3");
}

static void take_other_option(char** argv, int* i) {
  const char* flavour = value_of("--mpi", argv, i);
  if (flavour != NULL) {
    choose_flavour(flavour);
  } else if (strcmp(argv[*i], "--dry-run") == 0) {
    dry_run = 1;
  } else if (strcmp(argv[*i], "--thread-multiple") == 0) {
    raise_thread_level();
  } else if (strcmp(argv[*i], "--help") == 0) {
    fputs(usage, stdout);
    exit(0);
  } else if (strcmp(argv[*i], "--version") == 0) {
    puts("penstock-exec " PENSTOCK_VERSION);
    exit(0);
  } else {
    die(2, "unknown option (penstock-exec --help lists them)", argv[*i]);
  }
}

/* The index of the program in argv. */
static int parse(char** argv) {
  int i = 1;
  for (; argv[i] != NULL && argv[i][0] == '-'; ++i) {
    if (strcmp(argv[i], "--") == 0) {
      ++i;
      break;
    }
    if (!take_option(argv, &i)) take_other_option(argv, &i);
  }
  if (argv[i] == NULL) die(2, "no program given (penstock-exec --help)", "");
  return i;
}

/* A directory may be "executed", too, and execvp(3) goes on to the next. */
static int is_runnable(const char* path) {
  struct stat st;
  return access(path, X_OK) == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* As execvp will look for it. 0 when there is none. */
static int find_program(const char* name, char* path, size_t size) {
  if (strchr(name, '/') != NULL) {
    snprintf(path, size, "%s", name);
    return access(path, F_OK) == 0;
  }
  const char* rest = getenv("PATH");
  if (rest == NULL) rest = "/usr/local/bin:/bin:/usr/bin";
  for (;;) {
    const size_t n = strcspn(rest, ":");
    snprintf(path, size, "%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? rest : ".", name);
    if (is_runnable(path)) return 1;
    if (rest[n] == '\0') return 0;
    rest += n + 1;
  }
}

static int any_set(const char* const* variables) {
  for (; *variables != NULL; ++variables) {
    if (getenv(*variables) != NULL) return 1;
  }
  return 0;
}

/* Hydra speaks PMI, Open MPI's launchers name themselves; PMIx alone is taken for Open MPI's. */
static enum mpi_flavour flavour_of_launcher(void) {
  static const char* const openmpi[] = {"OMPI_COMM_WORLD_SIZE", "OMPI_MCA_ess", "PRTE_LAUNCHED",
                                        NULL};
  static const char* const mpich[] = {"PMI_FD", "PMI_RANK", "HYDI_CONTROL_FD", "HYDRA_LAUNCHER",
                                      NULL};
  static const char* const pmix[] = {"PMIX_RANK", NULL};
  if (any_set(openmpi)) return FLAVOUR_OPENMPI;
  if (any_set(mpich)) return FLAVOUR_MPICH;
  return any_set(pmix) ? FLAVOUR_OPENMPI : FLAVOUR_UNKNOWN;
}

/* Without /proc, as a chroot may be: by the name that we were started by. */
static int find_self(char* path) {
  return realpath("/proc/self/exe", path) != NULL ||
         realpath((const char*)getauxval(AT_EXECFN), path) != NULL;
}

/* Beside this program (build tree), or in the library directories of its prefix (installed). */
static int find_shim(const char* flavour, char* path, size_t size) {
  static const char* const places[] = {".", "../lib/penstock", "../lib64/penstock",
                                       "../lib/x86_64-linux-gnu/penstock",
                                       "../lib/aarch64-linux-gnu/penstock"};
  char self[PATH_MAX], candidate[2 * PATH_MAX];
  if (!find_self(self)) return 0;
  *strrchr(self, '/') = '\0';
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    snprintf(candidate, sizeof candidate, "%s/%s/libpenstock-%s.so", self, places[i], flavour);
    char* real = realpath(candidate, NULL);
    if (real == NULL) continue;
    snprintf(path, size, "%s", real);
    free(real);
    return 1;
  }
  return 0;
}

static int is_shim(const char* path, size_t length) {
  static const char begin[] = "libpenstock-";
  const char* name = path;
  for (const char* c = path; c < path + length; ++c)
    if (*c == '/') name = c + 1;
  return strncmp(name, begin, sizeof begin - 1) == 0;
}

/* First, and in place of any other shim of Penstock, which would be a second one in the job. */
static void preload(const char* shim) {
  const char* before = getenv("LD_PRELOAD");
  if (before == NULL) before = "";
  char* all = malloc(strlen(shim) + 1 + strlen(before) + 1);
  if (all == NULL) die(1, "no memory", "");
  char* end = stpcpy(all, shim);
  for (const char* at = before; *at != '\0'; at += *at != '\0') {
    const size_t length = strcspn(at, ": ");
    if (length > 0 && !is_shim(at, length)) {
      *end++ = ':';
      end = mempcpy(end, at, length);
    }
    at += length;
  }
  *end = '\0';
  setenv("LD_PRELOAD", all, 1);
  free(all);
}

/* Its library must find malloc before any other does, and the shim has none; but it asks to be the
 * very first. */
static void put_up_with_asan(void) {
  const char* options = getenv("ASAN_OPTIONS");
  char* all = NULL;
  if (asprintf(&all, "%s%sverify_asan_link_order=0", options != NULL ? options : "",
               options != NULL && *options != '\0' ? ":" : "") > 0) {
    set_beside("ASAN_OPTIONS", all);
    free(all);
  }
}

/* Why Penstock cannot serve this program; NULL when it may. */
static const char* why_not(const char* path, const struct program_file* file) {
  static char text[512];
  const int is_script = !file->is_elf && access(path, R_OK) == 0; /* by which nothing is gained */
  const char* const gains = is_script ? NULL : gains_privileges_as(path);
  if (gains != NULL) {
    snprintf(text, sizeof text, "%s take no preloaded library", gains);
    return text;
  }
  if (file->is_foreign) {
    return "programs of another machine, word size or C library take no preloaded library of this "
           "one";
  }
  if (file->is_elf && file->is_static) {
    return file->has_own_mpi
               ? "statically linked: no library can be put before its MPI (link it with the shared "
                 "MPI library, no -static)"
               : "statically linked programs take no preloaded library";
  }
  if (file->has_own_mpi) {
    return "its MPI library is linked statically, so its calls cannot be taken over (link it with "
           "the shared MPI library)";
  }
  if (file->flavour == FLAVOUR_OTHER && asked_flavour == FLAVOUR_UNKNOWN) {
    snprintf(text, sizeof text,
             "needs %s, an MPI library that Penstock has no build for (it has MPICH from 4.0 and "
             "Intel MPI, Open MPI 4 and 5, and the standard ABI)",
             file->library);
    return text;
  }
  return NULL;
}

/* A program of one library under the launcher of another runs as so many jobs of one rank. */
static void warn_of_launcher(const struct program_file* file, const char* path) {
  const char* rank = getenv("OMPI_COMM_WORLD_RANK");
  if (rank == NULL && getenv("HYDI_CONTROL_FD") != NULL) rank = getenv("PMI_RANK");
  const enum mpi_flavour launcher = rank != NULL ? flavour_of_launcher() : FLAVOUR_UNKNOWN;
  const int is_mpich = file->flavour == FLAVOUR_MPICH || file->flavour == FLAVOUR_ABI;
  const int differ = (launcher == FLAVOUR_OPENMPI && is_mpich) ||
                     (launcher == FLAVOUR_MPICH && file->flavour == FLAVOUR_OPENMPI);
  if (!differ || strcmp(rank, "0") != 0) return;
  fprintf(stderr,
          "penstock-exec: %s is built for %s (%s), and was started by the launcher of %s: if every "
          "rank believes that it is alone, start it with its own mpiexec\n",
          path, flavours[index_of(file->flavour)].title, file->library,
          flavours[index_of(launcher)].title);
}

static int is_off(void) {
  const char* disable = getenv("PENSTOCK_DISABLE");
  return is_method_off(getenv("PENSTOCK_METHOD"), getenv(noted)) ||
         (disable != NULL && *disable != '\0' && strcmp(disable, "0") != 0 &&
          strcmp(disable, "false") != 0);
}

/* What was asked for, else what the program needs, else what started it. */
static enum mpi_flavour flavour_for(const struct program_file* file, const char* path) {
  enum mpi_flavour flavour = asked_flavour;
  if (flavour == FLAVOUR_UNKNOWN) flavour = file->flavour;
  if (flavour == FLAVOUR_UNKNOWN) flavour = flavour_of_launcher();
  if (flavour == FLAVOUR_UNKNOWN) {
    die(2,
        "which MPI? Neither the program nor the launcher tells: start it by its MPI's mpiexec, or "
        "say --mpi mpich (openmpi, abi)",
        path);
  }
  return flavour;
}

/* Hydra waits for ever when some ranks leave before MPI_Init and others do not, whatever the exit
 * code, unless a signal ended them; and then it drops what it has not passed on yet of our words.
 */
static void leave_the_job(void) {
  if (getenv("PMI_FD") != NULL) {
    usleep(500 * 1000);
    raise(SIGTERM);
  }
  exit(2);
}

static void require_shim(int chosen, const char* path, char* shim, size_t size) {
  if (find_shim(flavours[chosen].name, shim, size)) return;
  fprintf(stderr,
          "penstock-exec: %s needs the build for %s (libpenstock-%s.so), which this installation "
          "lacks: build Penstock where that MPI's compiler wrapper is on the PATH, or say --mpi\n",
          path, flavours[chosen].title, flavours[chosen].name);
  leave_the_job();
}

/* A rank without its engine would leave the others waiting in MPI_File_open, so it is not started:
 * the launcher ends the job, and this says where the file is missing. */
static void require_engine(const char* shim, const char* flavour) {
  char engine[2 * PATH_MAX], host[256] = "this node";
  snprintf(engine, sizeof engine, "%.*s/penstock-engine-%s.so", (int)(strrchr(shim, '/') - shim),
           shim, flavour);
  if (access(engine, R_OK) == 0) return;
  gethostname(host, sizeof host - 1);
  fprintf(stderr,
          "penstock-exec: the engine %s cannot be read on %s (%s): install Penstock where every "
          "node sees it, or say --method off\n",
          engine, host, strerror(errno));
  leave_the_job();
}

/* The loader takes a blank or a colon for the end of a library's name, and goes on without it. */
static void require_plain(const char* shim) {
  if (strpbrk(shim, " \t\n:;") == NULL) return;
  fprintf(stderr,
          "penstock-exec: the loader preloads nothing whose path has a blank or a colon, as in %s: "
          "install Penstock elsewhere, or say --method off\n",
          shim);
  leave_the_job();
}

/* It sets up what it starts by itself, and has the options as variables. */
static int is_penstock_exec(const char* path) {
  const char* slash = strrchr(path, '/');
  return strcmp(slash != NULL ? slash + 1 : path, "penstock-exec") == 0;
}

static const char* variable(const char* name) { return getenv(name); }

/* `penstock run` has asked for every program, and starts none or all of them alone: rank 0 says it
 * for the job. Of ranks that were started by hand each may be another program's. */
static void go_alone(const char* path, const char* reason) {
  const char* require = getenv("PENSTOCK_REQUIRE");
  const int stops = require != NULL && (strcmp(require, "1") == 0 || strcmp(require, "true") == 0);
  if (stops || getenv("PENSTOCK_ALL_RANKS") == NULL || speaks_for_job(&variable))
    fprintf(stderr, "penstock-exec: %s: %s; %s\n", path, reason,
            stops ? "not started, since --require is given" : "it runs without Penstock");
  if (stops) leave_the_job();
}

static void set_up(const char* path) {
  if (is_penstock_exec(path)) return;
  const struct program_file file = inspect_program(path);
  const char* reason = why_not(path, &file);
  if (reason != NULL) {
    go_alone(path, reason);
    return;
  }
  warn_of_launcher(&file, path);
  const int chosen = index_of(flavour_for(&file, path));
  char shim[PATH_MAX];
  require_shim(chosen, path, shim, sizeof shim);
  require_engine(shim, flavours[chosen].name);
  require_plain(shim);
  preload(shim);
  if (file.has_asan) put_up_with_asan();
}

static void print_plan(char** command) {
  for (const char* const* v = set_here; *v != NULL; ++v) {
    if (getenv(*v) != NULL) printf("%s=%s\n", *v, getenv(*v));
  }
  for (; *command != NULL; ++command) printf("%s%s", *command, command[1] != NULL ? " " : "\n");
}

int main(int argc, char** argv) {
  (void)argc;
  char** command = argv + parse(argv);
  char path[PATH_MAX];
  if (!find_program(command[0], path, sizeof path)) die(127, "no such program", command[0]);
  if (!is_off()) set_up(path);
  if (dry_run) {
    print_plan(command);
    return 0;
  }
  execvp(command[0], command);
  die(errno == ENOENT ? 127 : 126,
      errno == EACCES ? "may not be executed (chmod +x)" : strerror(errno), command[0]);
  return 126;
}
