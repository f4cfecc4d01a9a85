#define _GNU_SOURCE
#include "page_reports.h"

#include <stdio.h>
#include <time.h>

static const long kLook_ms = 10;
static const long kNothingToTell_ms = 2150; /* it would have told by now */
static const long kHasEnded_ms = 150;       /* it pauses for up to 120 ms */
static const long kMost_ms = 10000;

/* -1 where the kernel does not say. */
static long long read_number(const char* path) {
  long long number = -1;
  FILE* const text = fopen(path, "r");
  if (text == NULL) return -1;
  if (fscanf(text, "%lld", &number) != 1) number = -1;
  fclose(text);
  return number;
}

static void look_later(long ms) {
  const struct timespec time = {.tv_nsec = ms * 1000000};
  nanosleep(&time, NULL);
}

int wait_for_page_reports(const char* reported) {
  long long last = read_number(reported);
  int told = 0;
  if (last < 0) return 0;
  for (long ms = 0, same_ms = 0; ms < kMost_ms; ms += kLook_ms) {
    if (same_ms >= (told ? kHasEnded_ms : kNothingToTell_ms)) break;
    look_later(kLook_ms);
    const long long now = read_number(reported);
    same_ms = now == last ? same_ms + kLook_ms : 0;
    told |= now != last;
    last = now;
  }
  return told;
}
