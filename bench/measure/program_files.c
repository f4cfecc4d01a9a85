#define _GNU_SOURCE
#include "program_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMostEntries = 256 };

/* Paths, each once; of few: looked through one by one. */
struct Paths {
  char** path;
  size_t count, room;
};

static bool add_path(struct Paths* paths, const char* path) {
  for (size_t i = 0; i < paths->count; ++i)
    if (strcmp(paths->path[i], path) == 0) return false;
  if (paths->count == paths->room) {
    const size_t room = paths->room == 0 ? 64 : 2 * paths->room;
    char** const more = realloc(paths->path, room * sizeof *more);
    if (more == NULL) return false;
    paths->path = more;
    paths->room = room;
  }
  char* const own = strdup(path);
  if (own == NULL) return false;
  paths->path[paths->count++] = own;
  return true;
}

static void forget(struct Paths* paths) {
  for (size_t i = 0; i < paths->count; ++i) free(paths->path[i]);
  free(paths->path);
}

/* Devices and memory of a name are no files of the program. */
static bool is_program_file(const char* path) {
  return path[0] == '/' && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/memfd:", 7) != 0 &&
         strstr(path, " (deleted)") == NULL;
}

static void add_mapped(struct Paths* files) {
  char line[PATH_MAX + 128];
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    line[strcspn(line, "\n")] = '\0';
    const char* const path = strchr(line, '/');
    if (path != NULL && is_program_file(path)) add_path(files, path);
  }
  if (maps) fclose(maps);
}

static bool ends_in_so(const char* name) {
  const size_t length = strlen(name);
  return length > 3 && strcmp(name + length - 3, ".so") == 0;
}

static void add_libraries_of(const char* directory, struct Paths* files) {
  char path[PATH_MAX];
  struct Paths found = {0};
  int entries = 0;
  DIR* const listing = opendir(directory);
  for (struct dirent* e = listing ? readdir(listing) : NULL; e != NULL; e = readdir(listing)) {
    if (++entries > kMostEntries) break;
    if (ends_in_so(e->d_name) &&
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name) < (int)sizeof path)
      add_path(&found, path);
  }
  if (listing) closedir(listing);
  for (size_t i = 0; entries <= kMostEntries && i < found.count; ++i)
    add_path(files, found.path[i]);
  forget(&found);
}

static void add_beside(struct Paths* files) {
  struct Paths directories = {0};
  const size_t mapped = files->count;
  for (size_t i = 0; i < mapped; ++i) {
    char* const directory = strdup(files->path[i]);
    if (directory == NULL) continue;
    *strrchr(directory, '/') = '\0';
    if (add_path(&directories, directory)) add_libraries_of(directory, files);
    free(directory);
  }
  forget(&directories);
}

static int64_t read_whole(const char* path) {
  char buffer[1 << 15];
  int64_t bytes = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) bytes += n;
  close(fd);
  return bytes;
}

int64_t read_program_files(void) {
  struct Paths files = {0};
  int64_t bytes = 0;
  add_mapped(&files);
  add_beside(&files);
  for (size_t i = 0; i < files.count; ++i) bytes += read_whole(files.path[i]);
  forget(&files);
  return bytes;
}
