/* An NFS client in user space: a mount by FUSE of what a server exports, by libnfs.
 *
 *   nfs_client URL MOUNTPOINT [options of FUSE]      as nfs://10.80.0.254/export?version=3
 *
 * For machines whose kernel has no NFS client. What FUSE asks goes to the server at once: a write
 * is a WRITE that the server may keep in memory, fsync and close are a COMMIT. A libnfs context
 * serves one thread at a time, so that each open file has one of its own, which is a connection,
 * and names have one more. Locks and appends are the kernel's own business: they hold within this
 * mount and not beyond it. */
#define _GNU_SOURCE /* O_DIRECT */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <nfsc/libnfs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

typedef struct fuse_file_info Info;

typedef struct {
  struct nfs_context* nfs;
  pthread_mutex_t lock;
  struct nfsfh* file; /* none for names */
} Connection;

enum { kTransfer = 1 << 20 };

static Connection names;
static const char* url;

/* ---- connections ---- */

static int mount_export(struct nfs_context* nfs) {
  struct nfs_url* parts = nfs_parse_url_dir(nfs, url);
  if (!parts) return -EINVAL;
  nfs_umask(nfs, 0); /* the kernel has applied the caller's */
  const int rc = nfs_mount(nfs, parts->server, parts->path);
  nfs_destroy_url(parts);
  return rc;
}

static struct nfs_context* connect_to_server(void) {
  struct nfs_context* nfs = nfs_init_context();
  if (!nfs) return NULL;
  if (mount_export(nfs) == 0) return nfs;
  fprintf(stderr, "nfs_client: %s: %s\n", url, nfs_get_error(nfs));
  nfs_destroy_context(nfs);
  return NULL;
}

static Connection* of(const Info* info) { return (Connection*)(uintptr_t)info->fh; }

static void disconnect(Connection* c) {
  nfs_destroy_context(c->nfs);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

/* A call on a connection that no other thread uses meanwhile. */
#define ON(connection, call)                   \
  ({                                           \
    pthread_mutex_lock(&(connection)->lock);   \
    const int rc_ = (call);                    \
    pthread_mutex_unlock(&(connection)->lock); \
    rc_;                                       \
  })
#define BY_NAME(call) ON(&names, call)

/* ---- files ---- */

static int open_with(const char* path, mode_t mode, Info* info) {
  Connection* c = calloc(1, sizeof *c);
  if (!c) return -ENOMEM;
  pthread_mutex_init(&c->lock, NULL);
  c->nfs = connect_to_server();
  if (!c->nfs) {
    free(c);
    return -EIO;
  }
  const int flags = info->flags & ~(O_APPEND | O_DIRECT);
  const int rc = flags & O_CREAT ? nfs_open2(c->nfs, path, flags, mode, &c->file)
                                 : nfs_open(c->nfs, path, flags, &c->file);
  if (rc != 0) {
    disconnect(c);
    return rc;
  }
  info->fh = (uintptr_t)c;
  info->direct_io = (info->flags & O_DIRECT) != 0;
  return 0;
}

/* The server takes all for the user who mounted. */
static int give_to_caller(const char* path) {
  const struct fuse_context* caller = fuse_get_context();
  return caller->uid == 0
             ? 0
             : BY_NAME(nfs_lchown(names.nfs, path, (int)caller->uid, (int)caller->gid));
}

static int open_file(const char* path, Info* info) { return open_with(path, 0, info); }

static int create_file(const char* path, mode_t mode, Info* info) {
  info->flags |= O_CREAT;
  const int rc = open_with(path, mode, info);
  return rc != 0 ? rc : give_to_caller(path);
}

static int close_file(const char* path, Info* info) {
  (void)path;
  Connection* c = of(info);
  nfs_close(c->nfs, c->file);
  disconnect(c);
  return 0;
}

/* libnfs moves no more in a call than the server takes. */
static int read_file(const char* path, char* data, size_t bytes, off_t offset, Info* info) {
  (void)path;
  Connection* c = of(info);
  size_t done = 0;
  while (done < bytes) {
    const int n =
        ON(c, nfs_pread(c->nfs, c->file, (uint64_t)offset + done, bytes - done, data + done));
    if (n < 0) return n;
    if (n == 0) break;
    done += (size_t)n;
  }
  return (int)done;
}

static int write_file(const char* path, const char* data, size_t bytes, off_t offset, Info* info) {
  (void)path;
  Connection* c = of(info);
  size_t done = 0;
  while (done < bytes) {
    const int n =
        ON(c, nfs_pwrite(c->nfs, c->file, (uint64_t)offset + done, bytes - done, data + done));
    if (n < 0) return n;
    if (n == 0) return -EIO;
    done += (size_t)n;
  }
  return (int)done;
}

static int sync_file(const char* path, int data_only, Info* info) {
  (void)path;
  (void)data_only;
  Connection* c = of(info);
  return ON(c, nfs_fsync(c->nfs, c->file));
}

/* NFS promises that who opens a file sees what was written before it was closed. */
static int flush_file(const char* path, Info* info) {
  return (info->flags & O_ACCMODE) == O_RDONLY ? 0 : sync_file(path, 0, info);
}

static int truncate_file(const char* path, off_t bytes, Info* info) {
  if (!info) return BY_NAME(nfs_truncate(names.nfs, path, (uint64_t)bytes));
  Connection* c = of(info);
  return ON(c, nfs_ftruncate(c->nfs, c->file, (uint64_t)bytes));
}

/* ---- names ---- */

static struct timespec time_of(uint64_t seconds, uint64_t nanoseconds) {
  return (struct timespec){.tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds};
}

static void to_stat(const struct nfs_stat_64* from, struct stat* to) {
  memset(to, 0, sizeof *to);
  to->st_ino = from->nfs_ino;
  to->st_mode = (mode_t)from->nfs_mode;
  to->st_nlink = from->nfs_nlink;
  to->st_uid = (uid_t)from->nfs_uid;
  to->st_gid = (gid_t)from->nfs_gid;
  to->st_size = (off_t)from->nfs_size;
  to->st_blksize = kTransfer;
  to->st_blocks = (blkcnt_t)((from->nfs_used + 511) / 512);
  to->st_atim = time_of(from->nfs_atime, from->nfs_atime_nsec);
  to->st_mtim = time_of(from->nfs_mtime, from->nfs_mtime_nsec);
  to->st_ctim = time_of(from->nfs_ctime, from->nfs_ctime_nsec);
}

static int get_attributes(const char* path, struct stat* out, Info* info) {
  struct nfs_stat_64 told;
  Connection* c = info ? of(info) : NULL;
  const int rc =
      c ? ON(c, nfs_fstat64(c->nfs, c->file, &told)) : BY_NAME(nfs_lstat64(names.nfs, path, &told));
  if (rc == 0) to_stat(&told, out);
  return rc;
}

static int list_directory(const char* path, void* into, fuse_fill_dir_t fill, off_t offset,
                          Info* info, enum fuse_readdir_flags flags) {
  (void)offset;
  (void)info;
  (void)flags;
  pthread_mutex_lock(&names.lock);
  struct nfsdir* directory;
  const int rc = nfs_opendir(names.nfs, path, &directory);
  if (rc == 0) {
    for (struct nfsdirent* e; (e = nfs_readdir(names.nfs, directory));)
      fill(into, e->name, NULL, 0, 0);
    nfs_closedir(names.nfs, directory);
  }
  pthread_mutex_unlock(&names.lock);
  return rc;
}

static int make_directory(const char* path, mode_t mode) {
  const int rc = BY_NAME(nfs_mkdir2(names.nfs, path, (int)mode));
  return rc != 0 ? rc : give_to_caller(path);
}
static int remove_directory(const char* path) { return BY_NAME(nfs_rmdir(names.nfs, path)); }
static int remove_file(const char* path) { return BY_NAME(nfs_unlink(names.nfs, path)); }
static int rename_file(const char* from, const char* to, unsigned flags) {
  return flags ? -EINVAL : BY_NAME(nfs_rename(names.nfs, from, to));
}
static int make_symlink(const char* target, const char* path) {
  return BY_NAME(nfs_symlink(names.nfs, target, path));
}
static int read_symlink(const char* path, char* target, size_t bytes) {
  return BY_NAME(nfs_readlink(names.nfs, path, target, (int)bytes));
}
static int change_mode(const char* path, mode_t mode, Info* info) {
  (void)info;
  return BY_NAME(nfs_chmod(names.nfs, path, (int)mode));
}
static int change_owner(const char* path, uid_t user, gid_t group, Info* info) {
  (void)info;
  return BY_NAME(nfs_lchown(names.nfs, path, (int)user, (int)group));
}

static struct timeval asked_time(struct timespec asked, struct timespec now,
                                 struct timespec before) {
  if (asked.tv_nsec == UTIME_NOW) asked = now;
  if (asked.tv_nsec == UTIME_OMIT) asked = before;
  return (struct timeval){.tv_sec = asked.tv_sec, .tv_usec = asked.tv_nsec / 1000};
}

static int change_times(const char* path, const struct timespec asked[2], Info* info) {
  struct stat before;
  struct timespec now;
  const int rc = get_attributes(path, &before, info);
  if (rc != 0) return rc;
  clock_gettime(CLOCK_REALTIME, &now);
  struct timeval times[] = {asked_time(asked[0], now, before.st_atim),
                            asked_time(asked[1], now, before.st_mtim)};
  return BY_NAME(nfs_utimes(names.nfs, path, times));
}

static int get_volume(const char* path, struct statvfs* out) {
  return BY_NAME(nfs_statvfs(names.nfs, path, out));
}

/* Attributes are asked anew each time: another client may have written. */
static void* begin(struct fuse_conn_info* connection, struct fuse_config* config) {
  connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
  connection->max_write = kTransfer;
  config->use_ino = 1;
  config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
  return NULL;
}

static const struct fuse_operations operations = {.init = begin,
                                                  .getattr = get_attributes,
                                                  .open = open_file,
                                                  .create = create_file,
                                                  .release = close_file,
                                                  .read = read_file,
                                                  .write = write_file,
                                                  .fsync = sync_file,
                                                  .flush = flush_file,
                                                  .truncate = truncate_file,
                                                  .readdir = list_directory,
                                                  .mkdir = make_directory,
                                                  .rmdir = remove_directory,
                                                  .unlink = remove_file,
                                                  .rename = rename_file,
                                                  .symlink = make_symlink,
                                                  .readlink = read_symlink,
                                                  .chmod = change_mode,
                                                  .chown = change_owner,
                                                  .utimens = change_times,
                                                  .statfs = get_volume};

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: nfs_client URL MOUNTPOINT [options of FUSE]\n");
    return 2;
  }
  url = argv[1];
  argv[1] = argv[0];
  pthread_mutex_init(&names.lock, NULL);
  names.nfs = connect_to_server();
  return names.nfs ? fuse_main(argc - 1, argv + 1, &operations, NULL) : 1;
}
