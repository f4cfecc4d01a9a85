/* The preload library: MPI_File_x and PMPI_File_x for every x of entry_points.def, and
 * MPI_Finalize and PMPI_Finalize. It mentions no MPI symbol (one such mention kills every process
 * that is not an MPI program) and serves nothing until one of these functions is called. Then it
 * finds the MPI library that the process has loaded, tells its flavour (its binary interface), and
 * opens the engine of that flavour. There is one shim per flavour only because each must export
 * what its libraries export; which engine serves is decided by the library found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pmpi/engine_interface.h"
#include "pmpi/launched_rank.h"
#include "pmpi/shim_ahead.h"
#include "pmpi/shim_environment.h"
#include "pmpi/shim_loaded.h"
#include "pmpi/switched_off.h"

/* Every function of the table has at most six integer or pointer arguments. In these two calling
 * conventions they travel in registers, and a callee that has fewer looks at none of the others. */
#if !defined(__x86_64__) && !defined(__aarch64__)
#error "penstock: forwarding of arguments was checked for x86-64 and AArch64 only"
#endif
typedef uintptr_t word;
typedef int (*forwarded)(word, word, word, word, word, word);

#define EXPORT __attribute__((visibility("default")))

static penstock_function real[PENSTOCK_ENTRIES];  /* the library's */
static penstock_function table[PENSTOCK_ENTRIES]; /* the engine's, or the library's */
/* By an offset that is known from the start: this library is there when the program starts. */
static _Thread_local int inside __attribute__((tls_model("initial-exec")));
/* The frame of the first call under way: what lies above it is none of its. */
static _Thread_local const char* first_frame __attribute__((tls_model("initial-exec")));
static pthread_once_t library_once = PTHREAD_ONCE_INIT, engine_once = PTHREAD_ONCE_INIT;
static atomic_int ready, any_open;
static void* library;                  /* NULL when none is known by name */
static const char* library_name = "?"; /* its path */
static penstock_function librarys_finalize;
static atomic_int finalizing;

static const char* const names[PENSTOCK_ENTRIES] = {
#define PENSTOCK_ENTRY(name, arguments, treatment) "PMPI_File_" #name,
#include "pmpi/entry_points.def"
    "PMPI_Finalize"};

/* The words of the configuration; what is neither counts as set, and the engine complains of it. */
static int is_set(const char* variable) {
  const char* value = penstock_variable(variable);
  return value != NULL && *value != '\0' && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static int is_switched_off(void) {
  return is_set("PENSTOCK_DISABLE") ||
         is_method_off(penstock_variable("PENSTOCK_METHOD"), penstock_variable("PENSTOCK_OPTIONS"));
}

static int speaks(void) { return speaks_for_job(&penstock_variable); }

/* ---- messages ---- */

static struct stat stderr_at_start;
static int had_stderr;

__attribute__((constructor)) static void look_at_stderr(void) {
  had_stderr = fstat(STDERR_FILENO, &stderr_at_start) == 0;
}

/* Who writes to a pipe that nobody reads any more is ended. */
static int has_reader(int fd) {
  struct pollfd it = {fd, 0, 0};
  return poll(&it, 1, 0) <= 0 || (it.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

/* A program that closes its descriptor 2 may have a file of data there, its own or the MPI
 * library's. */
static int may_speak(void) {
  struct stat now;
  if (fstat(STDERR_FILENO, &now) != 0 || !has_reader(STDERR_FILENO)) return 0;
  if (!S_ISREG(now.st_mode) && !S_ISBLK(now.st_mode)) return 1;
  return had_stderr && now.st_dev == stderr_at_start.st_dev && now.st_ino == stderr_at_start.st_ino;
}

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  if (!may_speak()) return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
}

static void pass_all_through(const char* why, const char* detail) {
  const int fatal = is_set("PENSTOCK_REQUIRE");
  if (fatal || speaks()) {
    say("penstock: %s (%s): %s\n", why, detail,
        fatal ? "PENSTOCK_REQUIRE is set, stopping"
              : "all MPI-IO of this job goes to the MPI library");
  }
  if (fatal) _Exit(1);
  memcpy(table, real, sizeof table);
}

/* Where every rank was started with Penstock, the others may have an engine, and it would wait in
 * MPI_File_open for this rank's for ever. */
static void refuse_engine(const char* why, const char* detail) {
  if (!is_set("PENSTOCK_ALL_RANKS")) {
    pass_all_through(why, detail);
    return;
  }
  say("penstock: %s (%s): ending the job, because other ranks would wait for this one; mend the "
      "installation on this node, or run with --method off\n",
      why, detail);
  _Exit(1);
}

/* ---- which MPI library, and of which flavour ---- */

static const char* file_of(void* symbol) {
  Dl_info info;
  return symbol != NULL && dladdr(symbol, &info) != 0 ? info.dli_fname : NULL;
}

/* A library that answers with file functions of its own, and not with ours. */
static int is_mpi_library(void* handle) {
  const char* file = handle != NULL ? file_of(dlsym(handle, names[0])) : NULL;
  return file != NULL && strcmp(file, file_of((void*)&is_mpi_library)) != 0;
}

/* What tells an MPI library from a tool in front of it: tools export file functions and
 * MPI_Finalize in both names, but not this one. */
static const char not_of_tools[] = "PMPI_Get_library_version";

/* Where the program's calls would go without us: a process may have another MPI library besides,
 * which only a plugin uses. */
static void* library_behind_us(void) {
  const char* file = file_of(dlsym(RTLD_NEXT, not_of_tools));
  return file != NULL ? penstock_opened(file) : NULL;
}

static const char* const usual[] = {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40",
                                    "libmpi_abi.so.1", "libmpi_abi.so.0"};
enum { USUAL = sizeof usual / sizeof *usual };

/* The names in turn, from that of our own flavour on. */
static const char* usual_name(size_t i) {
  const size_t own = strcmp(PENSTOCK_FLAVOUR, "openmpi") == 0 ? 2
                     : strcmp(PENSTOCK_FLAVOUR, "abi") == 0   ? 3
                                                              : 0;
  return usual[(own + i) % USUAL];
}

/* Python loads the MPI library out of RTLD_NEXT's sight, so loaded libraries are asked by name. */
static void* find_library(void) {
  void* handle = library_behind_us();
  for (size_t i = 0; i < USUAL && handle == NULL; ++i)
    handle = penstock_find_loaded(usual_name(i), PENSTOCK_WHOLE_NAME, NULL);
  for (size_t i = 0; i < USUAL && handle == NULL; ++i) handle = penstock_opened(usual_name(i));
  if (handle == NULL) handle = penstock_find_loaded("mpi", PENSTOCK_ANYWHERE, &is_mpi_library);
  return handle;
}

static void resolve_library(void) {
  library = find_library();
  for (int i = 0; i < PENSTOCK_ENTRIES; ++i) {
    *(void**)&real[i] = dlsym(library != NULL ? library : RTLD_NEXT, names[i]);
  }
  const char* file = file_of(*(void**)&real[0]);
  if (file != NULL) library_name = file;
  librarys_finalize = real[PENSTOCK_ENTRY_finalize];
}

/* The engine's name, "" when no engine knows this library's binary interface. Interfaces carry the
 * number of the library's name: .12 is what MPICH and its derivatives agreed on, .40 Open MPI's
 * since its version 3. */
static const char* flavour_of_library(void) {
  const char* name = penstock_base_name(library_name);
  const int is_open_mpi = library != NULL && dlsym(library, "ompi_mpi_comm_world") != NULL;
  if (strncmp(name, "libmpi_abi.so", 13) == 0) return "abi";
  if (is_open_mpi) return strstr(name, ".so.40") != NULL ? "openmpi" : "";
  return strstr(name, ".so.12") != NULL ? "mpich" : "";
}

/* What keeps every engine from serving; NULL when nothing does. */
static const char* why_unserved(const char* flavour, char* text, size_t size) {
  const int has_large_counts = library != NULL && dlsym(library, "PMPI_File_write_c") != NULL;
  if (library == NULL) return "the MPI library is not a shared one";
  if (*flavour == '\0') return "this MPI library is none that Penstock knows";
#ifdef PENSTOCK_LARGE_COUNTS
  const int takes_large_counts = 1;
#else
  const int takes_large_counts = 0;
#endif
  if (has_large_counts == takes_large_counts) return NULL;
  if (strcmp(flavour, PENSTOCK_FLAVOUR) != 0) {
    snprintf(text, size, "started with Penstock for " PENSTOCK_FLAVOUR ", so say --mpi %s",
             flavour);
    return text;
  }
  return has_large_counts ? "this MPI library has large-count functions, and the one that Penstock "
                            "was built with had none: build it with this one"
                          : "this MPI library lacks the large-count functions of MPI-4: use a "
                            "newer one";
}

/* ---- the engine ---- */

/* It lies beside us. */
static void name_engine(const char* flavour, char* path, size_t size) {
  const char* own = file_of((void*)&name_engine);
  const char* slash = own != NULL ? strrchr(own, '/') : NULL;
  const int directory = slash != NULL ? (int)(slash - own) : 1;
  snprintf(path, size, "%.*s/penstock-engine-%s.so", directory, slash != NULL ? own : ".", flavour);
}

/* An MPI program's first MPI_File_open would wait for what nobody has read lately; now MPI starts,
 * which takes longer. Python loads its MPI library later, but has been launched as a rank. */
__attribute__((constructor)) static void read_engine_ahead(void) {
  char path[4096];
  const int is_rank =
      launched_rank(&penstock_variable) != NULL || dlsym(RTLD_NEXT, not_of_tools) != NULL;
  (void)dlerror(); /* the program hears of no failure that is not its own */
  if (!is_rank || is_switched_off()) return;
  name_engine(PENSTOCK_FLAVOUR, path, sizeof path);
  penstock_read_ahead(path);
}

/* The engine has no MPI library among its needs, because libraries of one flavour have many names;
 * it finds the one in this process because that is made visible to all here. */
static penstock_engine_function open_engine(const char* flavour, char* path, size_t size) {
  name_engine(flavour, path, size);
  if (dlopen(library_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_GLOBAL) == NULL) return NULL;
  void* engine = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return engine != NULL ? (penstock_engine_function)dlsym(engine, "penstock_engine") : NULL;
}

static void start_engine(const char* flavour) {
  static struct penstock_shim shim;
  shim = (struct penstock_shim){PENSTOCK_ENGINE_ABI,
                                real,
                                &may_speak,
                                speaks(),
                                &penstock_variable,
                                penstock_start_variables(),
                                penstock_start_directory(),
                                atomic_load(&finalizing)};
  char path[4096] = "?";
  const penstock_engine_function engine = open_engine(flavour, path, sizeof path);
  if (engine == NULL) {
    const char* error = dlerror();
    refuse_engine("the engine cannot be loaded", error != NULL ? error : path);
    return;
  }
  const int answer = engine(&shim, table);
  if (answer == PENSTOCK_OFF) memcpy(table, real, sizeof table);
  if (answer == PENSTOCK_REFUSES) refuse_engine("the engine is of another build", path);
}

static void choose_engine(void) {
  char text[256];
  const char* flavour = flavour_of_library();
  const char* why = why_unserved(flavour, text, sizeof text);
  if (why != NULL) {
    pass_all_through(why, library_name);
  } else {
    start_engine(flavour);
  }
}

static void resolve_engine(void) {
  pthread_once(&library_once, &resolve_library);
  ++inside; /* what the loader's constructors call is not the program's */
  if (is_switched_off()) {
    memcpy(table, real, sizeof table);
  } else {
    choose_engine();
  }
  --inside;
  atomic_store_explicit(&ready, 1, memory_order_release);
}

static forwarded needed(const penstock_function* from, int entry) {
  if (from[entry] == NULL) { /* without us, the program would not have started */
    say("penstock: %s is missing in %s\n", names[entry], library_name);
    abort();
  }
  return (forwarded)from[entry];
}

/* ---- what writes past MPI-IO ---- */

typedef const char* (*version_function)(void);

static int is_pnetcdf(void* handle) { return dlsym(handle, "ncmpi_inq_libvers") != NULL; }

/* PnetCDF has a driver of its own since 1.15, and uses it unless its hint says otherwise. Such a
 * job gives us nothing to serve, so it is told of that hint: in its log there would be nothing. */
static void tell_of_other_driver(void) {
  version_function version = NULL;
  int major = 0, minor = 0, patch = 0;
  *(void**)&version = dlsym(RTLD_DEFAULT, "ncmpi_inq_libvers");
  void* const pnetcdf =
      version == NULL ? penstock_find_loaded("pnetcdf", PENSTOCK_ANYWHERE, &is_pnetcdf) : NULL;
  if (pnetcdf != NULL) *(void**)&version = dlsym(pnetcdf, "ncmpi_inq_libvers");
  if (version == NULL || is_switched_off() || is_set("PENSTOCK_QUIET") || !speaks()) return;
  const char* said = version();
  const char* number = said != NULL ? strpbrk(said, "0123456789") : NULL;
  if (number == NULL || sscanf(number, "%d.%d.%d", &major, &minor, &patch) < 2) return;
  if (major < 1 || (major == 1 && minor < 15)) return;
  say("penstock: this job opened no file with MPI-IO, and PnetCDF %d.%d.%d in it writes by a "
      "driver of its own: set PNETCDF_HINTS=nc_driver=mpiio, and Penstock serves it\n",
      major, minor, patch);
}

/* ---- whose call it is ---- */

static const void* object_of(const void* address) {
  Dl_info info;
  return address != NULL && dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

/* Open MPI's components are libraries of their own. */
static int is_component(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && strncmp(penstock_base_name(info.dli_fname), "mca_", 4) == 0;
}

/* Of calls that come while one is under way: the MPI library's own go straight to it, and those of
 * what it or we have called back (error handlers, attribute callbacks) are the program's. A call
 * that was jumped to seems to come from whoever called the jumping function, which may be the
 * engine, or the library: a callback that ends by closing its file. So a close is the engine's,
 * which passes on what it does not know. */
static int is_the_librarys(int entry, const void* caller) {
  if (!atomic_load_explicit(&ready, memory_order_acquire)) return 1;
  if (entry == PENSTOCK_ENTRY_close) return 0;
  const void* object = object_of(caller);
  return object != NULL &&
         (object == object_of(*(void**)&real[0]) || object == object_of(*(void**)&table[0]) ||
          object == object_of((void*)&is_the_librarys) || is_component(caller));
}

/* A handler may have left the first call by longjmp. */
static void forget_what_was_left(const char* frame) {
  if (first_frame == NULL || frame < first_frame) return;
  inside = 0;
  first_frame = NULL;
}

static int call(int entry, const void* caller, word a, word b, word c, word d, word e, word f) {
  const char* const frame = __builtin_frame_address(0);
  forget_what_was_left(frame);
  if (inside != 0 && is_the_librarys(entry, caller)) {
    pthread_once(&library_once, &resolve_library);
    return needed(real, entry)(a, b, c, d, e, f);
  }
  if (!atomic_load_explicit(&ready, memory_order_acquire)) {
    pthread_once(&engine_once, &resolve_engine);
  }
  if (entry == PENSTOCK_ENTRY_open) atomic_store_explicit(&any_open, 1, memory_order_relaxed);
  const int before = inside;
  if (before == 0) first_frame = frame;
  inside = 1;
  const int rc = needed(table, entry)(a, b, c, d, e, f);
  inside = before;
  if (before == 0) first_frame = NULL;
  return rc;
}

#define PENSTOCK_ENTRY(name, arguments, treatment)                                     \
  EXPORT int MPI_File_##name(word a, word b, word c, word d, word e, word f) {         \
    return call(PENSTOCK_ENTRY_##name, __builtin_return_address(0), a, b, c, d, e, f); \
  }                                                                                    \
  EXPORT int PMPI_File_##name(word, word, word, word, word, word)                      \
      __attribute__((alias("MPI_File_" #name)));
#include "pmpi/entry_points.def"

/* ---- the end ---- */

/* The library itself, and no tool in front of it. */
static int is_of_an_mpi_library(void* symbol) {
  const char* file = file_of(symbol);
  void* handle = file != NULL ? penstock_opened(file) : NULL;
  if (handle == NULL) return 0;
  const char* below = file_of(dlsym(handle, not_of_tools));
  dlclose(handle);
  return below != NULL && strcmp(below, file) == 0;
}

/* A profiler that wraps MPI_Finalize, and was loaded behind us, ends its own work there. */
static penstock_function tools_finalize(void) {
  void* next = dlsym(RTLD_NEXT, "MPI_Finalize");
  if (next == NULL || is_of_an_mpi_library(next)) return librarys_finalize;
  penstock_function function;
  *(void**)&function = next;
  return function;
}

static void go_on_with(penstock_function next) {
  const int passes = table[PENSTOCK_ENTRY_finalize] == real[PENSTOCK_ENTRY_finalize];
  real[PENSTOCK_ENTRY_finalize] = next;
  if (passes) table[PENSTOCK_ENTRY_finalize] = next;
}

/* A job that used no file has nothing to say, and loads no engine for it, unless every rank
 * is known to be preloaded: then the ranks meet here to merge their logs. */
static int finalize(penstock_function next) {
  if (atomic_load_explicit(&any_open, memory_order_relaxed) == 0) tell_of_other_driver();
  go_on_with(next);
  if (atomic_load_explicit(&ready, memory_order_acquire) || is_set("PENSTOCK_ALL_RANKS")) {
    return call(PENSTOCK_ENTRY_finalize, NULL, 0, 0, 0, 0, 0, 0);
  }
  return needed(real, PENSTOCK_ENTRY_finalize)(0, 0, 0, 0, 0, 0);
}

EXPORT int MPI_Finalize(void) {
  pthread_once(&library_once, &resolve_library);
  atomic_store(&finalizing, 1);
  return finalize(tools_finalize());
}

/* By a program, or by the tool that MPI_Finalize has gone on with. */
EXPORT int PMPI_Finalize(void) {
  pthread_once(&library_once, &resolve_library);
  if (atomic_exchange(&finalizing, 1) == 0) return finalize(librarys_finalize);
  real[PENSTOCK_ENTRY_finalize] = librarys_finalize;
  return needed(real, PENSTOCK_ENTRY_finalize)(0, 0, 0, 0, 0, 0);
}
