#include "exec_privileges.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static int are_ignored(const char* path) {
  struct statvfs volume;
  return statvfs(path, &volume) == 0 && (volume.f_flag & ST_NOSUID) != 0;
}

/* Not in containers that allow no new ones; file capabilities count as gained there all the same.
 * Without the group's right to execute it, the set-group-id bit means something else. */
static int changes_user(const struct stat* st) {
  const mode_t group = S_ISGID | S_IXGRP;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return 0;
  return ((st->st_mode & S_ISUID) != 0 && st->st_uid != getuid()) ||
         ((st->st_mode & group) == group && st->st_gid != getgid());
}

const char* gains_privileges_as(const char* path) {
  struct stat st;
  if (are_ignored(path)) return NULL;
  if (stat(path, &st) == 0 && changes_user(&st)) return "set-user-id programs";
  if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
    return "programs with file capabilities";
  return NULL;
}
