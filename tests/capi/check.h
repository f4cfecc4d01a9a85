/* Checks of the C API's test programs, made by many threads at once; every failure is printed. */
#ifndef PENSTOCK_TESTS_CAPI_CHECK_H
#define PENSTOCK_TESTS_CAPI_CHECK_H

#include <penstock/penstock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_int g_checks, g_failures;

bool check(bool holds, const char* condition, const char* file, int line);
/* Says which code came instead, and the last error's text. */
bool check_code(int code, int expected, const char* call, const char* file, int line);
/* The last error's text has `part`. */
bool check_says(const char* part, const char* file, int line);

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CODE(expected, call) check_code((call), (expected), #call, __FILE__, __LINE__)
#define OK(call) CODE(PENSTOCK_OK, call)
#define SAYS(part) check_says((part), __FILE__, __LINE__)

/* A rank at work: it, its number, how many there are, its index in this process, and where files of
 * the test may be. */
struct place {
  penstock_rank* rank;
  int number, ranks, index;
  const char* directory;
};

/* What belongs at a file offset, whoever writes it; never the zero of a hole. */
unsigned char value_at(int64_t offset);
/* `bytes` values from file offset `offset` on. */
void fill(unsigned char* memory, int64_t offset, int64_t bytes);
void* need(size_t bytes); /* zeroed; ends the program when there is none */

/* A picture of what the file must hold, by plain stores. */
struct picture {
  unsigned char* bytes;
  int64_t size, room;
};
void paint(struct picture* picture, int64_t offset, int64_t bytes);
/* The file is the picture, byte for byte, read by pread(2). Frees the picture. */
bool matches(const char* path, struct picture* picture);
/* How many bytes of value_at() the file has from `offset` on, at most `bytes`. */
int64_t prefix_in_file(const char* path, int64_t offset, int64_t bytes);

/* DIRECTORY/NAME */
const char* name_in(const struct place* p, const char* name, char path[4096]);
/* Opens with these texts, either may be NULL; NULL when that fails, which is a failed check. */
penstock_file* opened(const struct place* p, const char* path, const char* method,
                      const char* config);

struct test_case {
  const char* name;
  void (*body)(const struct place*);
};
extern const struct test_case cases[];     /* ends with a NULL name; run on every team */
extern const struct test_case on_faults[]; /* likewise; run alone, with calls that fail */

/* Runs `body` on `threads` threads, as the ranks of `team` that live in this process. */
void run_on_team(penstock_team* team, int threads, const char* directory,
                 void (*body)(const struct place*));

#endif
