/* Penstock for C programs: many ranks write one file, by threads, by MPI ranks, or by both.
 *
 *   penstock_team_threads(4, &team);             one thread of the program
 *   penstock_team_rank(team, i, &rank);          each of the 4 threads takes its rank
 *   penstock_open(rank, "out.dat", NULL, &file);              collective
 *   penstock_write_at_all(file, offset, memory, n, &written); collective
 *   penstock_close(file);                                     collective
 *   penstock_team_free(team);                    one thread, when the others are done
 *
 * Link libpenstock-c (threads; needs no MPI), or in its place libpenstock-c-mpich, -openmpi or
 * -abi, which have penstock_team_mpi() besides (penstock_mpi.h). docs/c-api.md and penstock(3) say
 * more.
 *
 * Every function returns 0 or one of the negative codes below, never sets errno on purpose, never
 * ends the process because of an error in a file, and prints nothing. Only memory that runs out in
 * the middle of a collective function, where the other ranks could not be told any more, ends the
 * process, with a message, and so does MPI where it tells one rank alone that it failed. What a
 * signal does that a write brings (SIGXFSZ, where RLIMIT_FSIZE ends a file) is the program's
 * choice, as with write(2). A thread that is cancelled (pthread_cancel) in a function ends at its
 * next point behind it. Handles are opaque; strings that are passed in are copied; strings that are
 * handed out are the library's own. Offsets and sizes are bytes, times are seconds.
 *
 * COLLECTIVE functions are called by every rank of the team, in the same order, and return the same
 * code on every rank: the gravest of all. They wait for each other. A rank whose arguments are
 * wrong still takes part, so nobody hangs; but for a handle that is NULL, which leads to nobody,
 * and for a NULL where a handle is to be put.
 *
 * Threads: a rank is used by one thread at a time in collective functions, whichever files they are
 * for. penstock_write_at, _strided, _extents and penstock_statistics may be called by any thread,
 * at any time between open and close, also while another is in a collective function. */
#ifndef PENSTOCK_PENSTOCK_H
#define PENSTOCK_PENSTOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PENSTOCK_API __attribute__((visibility("default")))

/* Of this header. Grows when something is added; nothing is ever removed or changed within one
 * soname. penstock_api_version() is that of the library that runs. */
#define PENSTOCK_API_VERSION 1

/* ---- Errors ---- */

enum {
  PENSTOCK_OK = 0,
  PENSTOCK_EARGUMENT = -1,       /* a value given is wrong; penstock_last_error() names it */
  PENSTOCK_EUNSUPPORTED = -2,    /* legal, but not possible here */
  PENSTOCK_ENOFILE = -3,         /* no such file or directory */
  PENSTOCK_EACCESS = -4,         /* permission denied */
  PENSTOCK_EREADONLY = -5,       /* read-only file system */
  PENSTOCK_ENOSPACE = -6,        /* no space left on the device */
  PENSTOCK_EQUOTA = -7,          /* quota exceeded */
  PENSTOCK_ETOOLARGE = -8,       /* beyond the largest file allowed */
  PENSTOCK_EIO = -9,             /* the device failed, or any other system error */
  PENSTOCK_ENOMEMORY = -10,      /* out of memory */
  PENSTOCK_ECOMMUNICATION = -11, /* MPI, or another rank, failed */
  PENSTOCK_EINTERNAL = -12,      /* a bug of Penstock */
  PENSTOCK_EEXISTS = -13         /* there is such a file, and PENSTOCK_EXCLUSIVE was said */
};

/* What a code means, in a few words. Never NULL, for any number. */
PENSTOCK_API const char* penstock_strerror(int code);

/* What went wrong in this thread's last call that failed: operation, path, offset, reason. When
 * another rank failed and this one did not, it says so. Never NULL; valid until the thread's next
 * call of a penstock_ function. */
PENSTOCK_API const char* penstock_last_error(void);

/* The errno of the system call that failed here in that call; 0 when none did. */
PENSTOCK_API int penstock_last_errno(void);

/* ---- Version ---- */

PENSTOCK_API int penstock_api_version(void);
PENSTOCK_API const char* penstock_version(void); /* "0.1.0" */

/* ---- Teams: the ranks that write together ---- */

typedef struct penstock_team penstock_team;
typedef struct penstock_rank penstock_rank;

/* A team of `ranks` threads of this process, 1 to 65536. Called by one thread; the threads are the
 * program's own, and each becomes a rank by using it. The team is freed by penstock_team_free. */
PENSTOCK_API int penstock_team_threads(int ranks, penstock_team** team);

/* The `index`-th rank that lives in this process: of a team of threads index = number of the rank.
 * It belongs to the team. May be called by any thread. */
PENSTOCK_API int penstock_team_rank(penstock_team* team, int index, penstock_rank** rank);

/* Which rank it is, 0 to ranks - 1, and of how many. Either pointer may be NULL. */
PENSTOCK_API int penstock_rank_place(const penstock_rank* rank, int* number, int* ranks);

/* Frees a team whose files are closed; with a file open, PENSTOCK_EARGUMENT, and nothing is freed.
 * Called by one thread of the process, before MPI_Finalize. NULL is fine. */
PENSTOCK_API int penstock_team_free(penstock_team* team);

/* ---- Files ---- */

typedef struct penstock_file penstock_file;

enum {
  PENSTOCK_CREATE = 1,    /* make the file where there is none */
  PENSTOCK_EXCLUSIVE = 2, /* with CREATE: PENSTOCK_EEXISTS where there is one */
  PENSTOCK_TRUNCATE = 4   /* empty it, once every rank has opened it */
};

/* Members come only at the end; `size` tells the library which ones the program knows. Begin with
 * PENSTOCK_OPTIONS_INIT. Correctness: flags, permissions. Performance: method. */
typedef struct penstock_options {
  size_t size;          /* sizeof(penstock_options) */
  unsigned flags;       /* of rank 0; default PENSTOCK_CREATE */
  unsigned permissions; /* of rank 0: of a file it makes, less the umask; default 0666,
                           with 0200 where the flags have CREATE */
  const char* method;   /* how to write, such as "two_phase(writers=4, cycle=16MiB)"; NULL: as
                           configured, by default "auto" */
  const char* config;   /* settings as in penstock.toml, such as "verify = true"; NULL: none */
} penstock_options;

#define PENSTOCK_OPTIONS_INIT \
  { sizeof(penstock_options), PENSTOCK_CREATE, 0666, NULL, NULL }

/* COLLECTIVE. Opens `path` for writing on every rank: rank 0 makes it where that is asked for, then
 * all open it. `options` may be NULL. The file must be the same, and the method too, on every rank.
 * Penstock's configuration files and PENSTOCK_ variables hold here; `config` wins over them, a
 * `[[file]]` table of any of these over that, then `method`, and the options of `penstock run` over
 * all. Where these leave MPI-IO alone ("off",
 * "observe"), a file of this API is written by Penstock all the same: there is no other to do it.
 * On failure *file is NULL on every rank; a file that rank 0 has made stays. */
PENSTOCK_API int penstock_open(penstock_rank* rank, const char* path,
                               const penstock_options* options, penstock_file** file);

/* COLLECTIVE. All that was written is in the file, and errors that the system kept until now are
 * told. Frees `file`, whatever it returns. What is on the device only penstock_sync promises. */
PENSTOCK_API int penstock_close(penstock_file* file);

/* COLLECTIVE. When it returns 0, all that all ranks wrote before is on the device. After one that
 * failed every later one and penstock_close return its code: what was lost then stays lost. A file
 * that cannot be synced at all (/dev/null: EINVAL) has lost nothing, and its close is 0. */
PENSTOCK_API int penstock_sync(penstock_file* file);

/* ---- Writing ----
 *
 * `memory` is contiguous, stays the caller's, and is free to be changed on return. On return 0 all
 * bytes are in the file: another process that reads it gets them. *written_bytes (may be NULL) is
 * how many bytes from the beginning of `memory` are in the file for certain: all on success, on
 * failure up to the first that is missing; nothing is promised of those behind it. Zero bytes are
 * fine, with any memory. Where ranks write the same bytes in one collective call, or without a
 * collective call between them, either's may be in the file.
 *
 * The collective forms (_all) let Penstock gather and reorder: small interleaved pieces become
 * large writes. The others write this rank's bytes at once, by itself; on a network file system
 * with ranks on several nodes they are PENSTOCK_EUNSUPPORTED, because bytes could be lost. Teams of
 * different nodes may write parts of one file on NFS if penstock_team_mpi made them in one job; of
 * threads alone nobody tells Penstock that there are others (docs/c-api.md, "Several nodes"). */

/* bytes [offset_bytes, offset_bytes + bytes) of the file. */
PENSTOCK_API int penstock_write_at(penstock_file* file, int64_t offset_bytes, const void* memory,
                                   int64_t bytes, int64_t* written_bytes);
PENSTOCK_API int penstock_write_at_all(penstock_file* file, int64_t offset_bytes,
                                       const void* memory, int64_t bytes, int64_t* written_bytes);

/* `count` blocks of `block_bytes`, the i-th at offset_bytes + i * stride_bytes in the file, one
 * behind the other in memory. stride_bytes >= block_bytes. */
PENSTOCK_API int penstock_write_strided(penstock_file* file, int64_t offset_bytes,
                                        int64_t block_bytes, int64_t stride_bytes, int64_t count,
                                        const void* memory, int64_t* written_bytes);
PENSTOCK_API int penstock_write_strided_all(penstock_file* file, int64_t offset_bytes,
                                            int64_t block_bytes, int64_t stride_bytes,
                                            int64_t count, const void* memory,
                                            int64_t* written_bytes);

typedef struct penstock_extent {
  int64_t offset_bytes;
  int64_t bytes;
} penstock_extent;

/* `count` extents of the file, one behind the other in memory. They ascend and do not overlap; at
 * most 16777216 (2^24) in a call. `extents` is read during the call only. */
PENSTOCK_API int penstock_write_extents(penstock_file* file, const penstock_extent* extents,
                                        int64_t count, const void* memory, int64_t* written_bytes);
PENSTOCK_API int penstock_write_extents_all(penstock_file* file, const penstock_extent* extents,
                                            int64_t count, const void* memory,
                                            int64_t* written_bytes);

/* ---- Statistics ---- */

/* Members come only at the end. Set `size` before the call (PENSTOCK_STATS_INIT); members that the
 * library does not know become 0. */
typedef struct penstock_stats {
  size_t size;               /* sizeof(penstock_stats) */
  int64_t written_bytes;     /* that calls have put into the file, by their own account */
  int64_t collective_calls;  /* writes */
  int64_t independent_calls; /* writes */
  int64_t sync_calls;        /* penstock_sync */
  int64_t failed_calls;      /* of all these */
  int64_t file_writes;       /* pieces handed to the mechanism, each one write or more */
  int64_t cycles;            /* of exchange and write, in collective writes */
  int64_t messages;          /* between ranks */
  int64_t message_bytes;
  double call_s;     /* in write calls, until they returned; parts of it: */
  double plan_s;     /*   deciding who writes what */
  double pack_s;     /*   copying memory */
  double exchange_s; /*   with other ranks */
  double write_s;    /*   writing */
  double sync_s;     /* in syncs, of penstock_sync and of the method */
} penstock_stats;

#define PENSTOCK_STATS_INIT \
  { sizeof(penstock_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Of this rank, since open. */
PENSTOCK_API int penstock_statistics(penstock_file* file, penstock_stats* stats);
/* COLLECTIVE. Of all ranks: counts are sums, times those of the slowest rank. */
PENSTOCK_API int penstock_statistics_all(penstock_file* file, penstock_stats* stats);

#ifdef __cplusplus
}
#endif

#endif
