#define _GNU_SOURCE
#include "pmpi/shim_loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

struct path {
  struct path* next;
  char text[];
};

struct search {
  const char* name;
  enum penstock_place where;
  struct path* first;
  struct path** end;
};

void* penstock_opened(const char* name) { return dlopen(name, RTLD_NOLOAD | RTLD_LAZY); }

const char* penstock_base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static int has_the_name(const struct search* search, const char* path) {
  if (search->where == PENSTOCK_ANYWHERE) return strstr(path, search->name) != NULL;
  return strcmp(penstock_base_name(path), search->name) == 0;
}

/* Nothing is opened in here: the loader holds a lock that a dlopen of another thread waits for,
 * which holds the one that ours would want. */
static int note(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  if (info->dlpi_name == NULL || !has_the_name(search, info->dlpi_name)) return 0;
  const size_t bytes = strlen(info->dlpi_name) + 1;
  struct path* found = malloc(sizeof *found + bytes);
  if (found == NULL) return 1;
  found->next = NULL;
  memcpy(found->text, info->dlpi_name, bytes);
  *search->end = found;
  search->end = &found->next;
  return 0;
}

static void* opened_if(const char* path, int (*suits)(void* handle)) {
  void* handle = penstock_opened(path);
  if (handle == NULL || suits == NULL || suits(handle)) return handle;
  dlclose(handle);
  return NULL;
}

/* By their paths: for a name alone the loader would look through every directory that it knows. */
void* penstock_find_loaded(const char* name, enum penstock_place where,
                           int (*suits)(void* handle)) {
  struct search search = {name, where, NULL, NULL};
  search.end = &search.first;
  dl_iterate_phdr(&note, &search);
  void* handle = NULL;
  for (struct path *path = search.first, *next; path != NULL; path = next) {
    next = path->next;
    if (handle == NULL) handle = opened_if(path->text, suits);
    free(path);
  }
  return handle;
}
