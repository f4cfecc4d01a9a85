/* The C API on teams of threads.
 *
 *   capi_threads                    every case on teams of 1, 2, 3, 4 and 8, in a directory of its
 * own capi_threads --alone CASE DIR   a case whose system calls fail, on a team of 3 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { kNobody = 65534, kAlone = 3 };

static void run_team(int ranks, const char* directory, void (*body)(const struct place*)) {
  penstock_team* team = NULL;
  if (!OK(penstock_team_threads(ranks, &team))) return;
  run_on_team(team, ranks, directory, body);
  OK(penstock_team_free(team));
}

/* ---- what needs no team, or several */

static void strings(void) {
  CHECK(penstock_api_version() == PENSTOCK_API_VERSION);
  CHECK(strchr(penstock_version(), '.') != NULL);
  for (int code = PENSTOCK_OK; code >= PENSTOCK_EEXISTS; --code) {
    CHECK(*penstock_strerror(code) != '\0');
    for (int other = code + 1; other <= PENSTOCK_OK; ++other)
      CHECK(strcmp(penstock_strerror(code), penstock_strerror(other)) != 0);
  }
  CHECK(strstr(penstock_strerror(-1000), "not a code") != NULL);
  CHECK(strstr(penstock_strerror(1), "not a code") != NULL);
  CHECK(strcmp(penstock_last_error(), "") == 0 && penstock_last_errno() == 0);
}

static void wrong_teams(void) {
  penstock_team* team = (penstock_team*)1;
  penstock_rank* rank = (penstock_rank*)1;
  CODE(PENSTOCK_EARGUMENT, penstock_team_threads(0, &team));
  CHECK(team == NULL);
  SAYS("got 0");
  CODE(PENSTOCK_EARGUMENT, penstock_team_threads(-1, &team));
  CODE(PENSTOCK_EARGUMENT, penstock_team_threads(65537, &team));
  CODE(PENSTOCK_EARGUMENT, penstock_team_threads(1, NULL));
  if (!OK(penstock_team_threads(2, &team))) return;
  CODE(PENSTOCK_EARGUMENT, penstock_team_rank(team, 2, &rank));
  CHECK(rank == NULL);
  SAYS("0 to 1");
  CODE(PENSTOCK_EARGUMENT, penstock_team_rank(team, -1, &rank));
  CODE(PENSTOCK_EARGUMENT, penstock_team_rank(NULL, 0, &rank));
  CODE(PENSTOCK_EARGUMENT, penstock_team_rank(team, 0, NULL));
  CODE(PENSTOCK_EARGUMENT, penstock_rank_place(NULL, NULL, NULL));
  OK(penstock_team_rank(team, 1, &rank));
  OK(penstock_rank_place(rank, NULL, NULL));
  OK(penstock_team_free(team));
  OK(penstock_team_free(NULL));
}

/* A team is not freed under an open file. */
static void freed_too_early(const char* directory) {
  penstock_team* team = NULL;
  penstock_rank* rank = NULL;
  penstock_file* file = NULL;
  char path[4096];
  snprintf(path, sizeof path, "%s/early", directory);
  OK(penstock_team_threads(1, &team));
  OK(penstock_team_rank(team, 0, &rank));
  if (!OK(penstock_open(rank, path, NULL, &file))) return;
  CODE(PENSTOCK_EARGUMENT, penstock_team_free(team));
  SAYS("1 files of the team are open");
  OK(penstock_write_at(file, 0, "x", 1, NULL));
  OK(penstock_close(file));
  OK(penstock_team_free(team));
}

/* What a user's configuration says holds here; what it says of MPI-IO does not. */
static void configured(const struct place* p) {
  char path[4096];
  penstock_options options = PENSTOCK_OPTIONS_INIT;
  penstock_file* file = NULL;
  CODE(PENSTOCK_EARGUMENT, penstock_open(p->rank, name_in(p, "configured", path), &options, &file));
  SAYS("PENSTOCK_CYCLE");
}

static void left_alone(const struct place* p) {
  char path[4096];
  unsigned char data[10];
  fill(data, p->number * 10, 10);
  penstock_file* file = opened(p, name_in(p, "left_alone", path), NULL, NULL);
  if (file == NULL) return;
  OK(penstock_write_at_all(file, p->number * 10, data, 10, NULL));
  OK(penstock_close(file));
  CHECK(prefix_in_file(path, p->number * 10, 10) == 10);
}

static void environment(const char* directory) {
  setenv("PENSTOCK_CYCLE", "3", 1);
  run_team(2, directory, configured);
  setenv("PENSTOCK_METHOD", "off", 1);
  run_team(2, directory, configured);
  unsetenv("PENSTOCK_CYCLE");
  run_team(2, directory, left_alone);
  unsetenv("PENSTOCK_METHOD");
  char config[4096];
  snprintf(config, sizeof config, "%s/off.toml", directory);
  FILE* toml = fopen(config, "w");
  CHECK(toml != NULL && fputs("method = \"off\"\n", toml) >= 0 && fclose(toml) == 0);
  setenv("PENSTOCK_CONFIG", config, 1);
  setenv("PENSTOCK_REQUIRE", "1", 1);
  run_team(2, directory, left_alone);
  unsetenv("PENSTOCK_REQUIRE");
  unsetenv("PENSTOCK_CONFIG");
  setenv("PENSTOCK_METHOD", "observe", 1);
  run_team(2, directory, left_alone);
  unsetenv("PENSTOCK_METHOD");
}

/* ---- all of it */

static int removes(const char* path, const struct stat* s, int type, struct FTW* where) {
  (void)s, (void)type, (void)where;
  return remove(path);
}

static void run_all(void) {
  char directory[] = "/tmp/penstock-capi-XXXXXX";
  if (mkdtemp(directory) == NULL) abort();
  strings();
  wrong_teams();
  freed_too_early(directory);
  environment(directory);
  static const int sizes[] = {1, 2, 3, 4, 8};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
    for (const struct test_case* c = cases; c->name != NULL; ++c) {
      const int before = g_failures;
      run_team(sizes[i], directory, c->body);
      if (g_failures != before) fprintf(stderr, "in %s on %d threads\n", c->name, sizes[i]);
    }
  nftw(directory, removes, 8, FTW_DEPTH | FTW_PHYS);
}

/* A file that this user may not write; root becomes somebody else for it. */
static void run_denied(const char* directory, void (*body)(const struct place*)) {
  char path[4096];
  snprintf(path, sizeof path, "%s/denied-%d", directory, kAlone);
  unlink(path);
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
  CHECK(fd >= 0);
  close(fd);
  const bool root = geteuid() == 0;
  if (root) CHECK(seteuid(kNobody) == 0);
  run_team(kAlone, directory, body);
  if (root) CHECK(seteuid(0) == 0);
}

static void run_alone(const char* name, const char* directory) {
  mkdir(directory, 0755);
  for (const struct test_case* c = on_faults; c->name != NULL; ++c) {
    if (strcmp(c->name, name) != 0) continue;
    if (strcmp(name, "denied") == 0)
      run_denied(directory, c->body);
    else
      run_team(kAlone, directory, c->body);
    return;
  }
  fprintf(stderr, "no case %s\n", name);
  abort();
}

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN);
  if (argc == 4 && strcmp(argv[1], "--alone") == 0)
    run_alone(argv[2], argv[3]);
  else
    run_all();
  printf("result {\"checks\": %d, \"failed\": %d}\n", (int)g_checks, (int)g_failures);
  return g_failures != 0;
}
