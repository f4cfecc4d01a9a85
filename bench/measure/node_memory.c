#define _GNU_SOURCE
#include "node_memory.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "page_reports.h"
#include "program_files.h"

static const int64_t kPage = 4096, kHuge = (int64_t)2 << 20, kRecent = (int64_t)2 << 30;
static const int kHugeOrder = 9;
/* Until the processors have given back what they keep of freed pages, and until those are cold. */
static const time_t kSettles_s = 2, kGoesCold_s = 6;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void rest(time_t seconds) {
  const struct timespec time = {.tv_sec = seconds};
  nanosleep(&time, NULL);
}

/* INT64_MAX where the file says "max", or is not there. */
static int64_t limit_in(const char* path) {
  long long bytes = INT64_MAX;
  FILE* text = fopen(path, "r");
  if (text && fscanf(text, "%lld", &bytes) != 1) bytes = INT64_MAX;
  if (text) fclose(text);
  return (int64_t)bytes;
}

/* Of the group and all above it. */
static int64_t limit_of_groups(const char* root, char* group, const char* name) {
  char path[4096];
  int64_t limit = INT64_MAX;
  for (char* slash = group + strlen(group); slash != NULL; slash = strrchr(group, '/')) {
    *slash = '\0';
    if (snprintf(path, sizeof path, "%s%s/%s", root, group, name) < (int)sizeof path)
      limit = least(limit, limit_in(path));
  }
  return limit;
}

/* What the job's memory cgroup, of version 2 or 1, lets it have: a batch system sets it. */
static int64_t limit_of_cgroup(void) {
  char line[4096];
  int64_t limit = INT64_MAX;
  FILE* text = fopen("/proc/self/cgroup", "r");
  while (text && fgets(line, sizeof line, text)) {
    line[strcspn(line, "\n")] = '\0';
    char* const group = strchr(line, '/');
    const char* const memory = strstr(line, "memory");
    if (group == NULL) continue;
    if (strncmp(line, "0::", 3) == 0)
      limit = least(limit, limit_of_groups("/sys/fs/cgroup", group, "memory.max"));
    else if (memory != NULL && memory < group)
      limit =
          least(limit, limit_of_groups("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  if (text) fclose(text);
  return limit;
}

static int64_t available_bytes(void) {
  unsigned long long kib = 1 << 20;
  char line[128];
  FILE* text = fopen("/proc/meminfo", "r");
  while (text && fgets(line, sizeof line, text) && sscanf(line, "MemAvailable: %llu", &kib) != 1) {
  }
  if (text) fclose(text);
  return least((int64_t)kib << 10, limit_of_cgroup());
}

/* "Node 0, zone Normal 123 49 ..": how many free blocks there are of 1, 2, 4, .. pages. */
static int64_t small_bytes_of_zone(const char* line) {
  char zone[32];
  int at = 0, used = 0;
  if (sscanf(line, "Node %*d, zone %31s%n", zone, &at) != 1) return 0;
  int64_t bytes = 0;
  long long blocks = 0;
  for (int order = 0; order < kHugeOrder; ++order, at += used) {
    if (sscanf(line + at, "%lld%n", &blocks, &used) != 1) break;
    bytes += blocks * (kPage << order);
  }
  return bytes;
}

static int64_t bytes_in_small_blocks(void) {
  int64_t bytes = 0;
  char line[512];
  FILE* text = fopen("/proc/buddyinfo", "r");
  while (text && fgets(line, sizeof line, text)) bytes += small_bytes_of_zone(line);
  if (text) fclose(text);
  return bytes;
}

/* Touched, in pages of the kind that is asked for; NULL when there is none. */
static void* take(int64_t bytes, int advice) {
  if (bytes <= 0) return NULL;
  void* const memory =
      mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  madvise(memory, (size_t)bytes, advice);
  for (int64_t at = 0; at < bytes; at += kPage) ((volatile char*)memory)[at] = 1;
  return memory;
}

int64_t warm_node_memory(int64_t node_bytes, int workers_of_node, bool after_reports) {
  int64_t bytes = 0;
  void* memory = NULL;
  if (node_bytes > 0) {
    const int64_t share = least(node_bytes, available_bytes() / 2) / workers_of_node;
    bytes = share < kHuge ? kHuge : share / kHuge * kHuge;
    memory = take(bytes, MADV_HUGEPAGE);
    if (memory == NULL) return 0;
  }
  if (after_reports) wait_for_page_reports(PENSTOCK_REPORTED);
  read_program_files();
  if (memory != NULL) munmap(memory, (size_t)bytes);
  return bytes;
}

struct KeptMemory cool_node_memory(int64_t warm_bytes, bool after_reports) {
  rest(kSettles_s);
  const int64_t most = available_bytes() / 3 * 2, small = bytes_in_small_blocks();
  const int64_t recent = kRecent + (warm_bytes > 0 ? warm_bytes : 0);
  struct KeptMemory kept = {0};
  kept.small_bytes = least(small, most);
  kept.recent_bytes = least(recent, most - kept.small_bytes);
  kept.small = take(kept.small_bytes, MADV_NOHUGEPAGE);
  kept.recent = take(kept.recent_bytes, MADV_HUGEPAGE);
  if (kept.small == NULL) kept.small_bytes = 0;
  if (kept.recent == NULL) kept.recent_bytes = 0;
  kept.left_bytes = small + recent - kept.small_bytes - kept.recent_bytes;
  rest(kGoesCold_s);
  if (after_reports) wait_for_page_reports(PENSTOCK_REPORTED);
  return kept;
}

void give_back_memory(struct KeptMemory* kept) {
  if (kept->small != NULL) munmap(kept->small, (size_t)kept->small_bytes);
  if (kept->recent != NULL) munmap(kept->recent, (size_t)kept->recent_bytes);
  memset(kept, 0, sizeof *kept);
}
