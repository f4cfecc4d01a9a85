/* Runs a command in memory that a regime of the measuring program has made, as a program that was
 * measured would meet it:
 *
 *   limit-in-memory warm|cold WARM_BYTES asis|wait COMMAND..
 *
 * Exit code: the command's; 127 where it cannot be started; 2 wrong usage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node_memory.h"

static int wrong_usage(void) {
  fprintf(stderr, "usage: limit-in-memory warm|cold WARM_BYTES asis|wait COMMAND..\n");
  return 2;
}

/* What is kept from the command is this process's, so it is another one that becomes it. */
static int run_and_wait(char** command) {
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    execvp(command[0], command);
    fprintf(stderr, "limit-in-memory: %s: %s\n", command[0], strerror(errno));
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  char* end = NULL;
  struct KeptMemory kept = {0};
  if (argc < 5) return wrong_usage();
  const long long warm_bytes = strtoll(argv[2], &end, 10);
  const int waits = strcmp(argv[3], "wait") == 0, is_cold = strcmp(argv[1], "cold") == 0;
  if (*end != '\0' || warm_bytes < 0 || (!waits && strcmp(argv[3], "asis") != 0) ||
      (!is_cold && strcmp(argv[1], "warm") != 0))
    return wrong_usage();
  if (is_cold) {
    kept = cool_node_memory(warm_bytes, waits);
    if (kept.left_bytes > 0) fprintf(stderr, "limit-in-memory: warm memory is left on this node\n");
  } else if (warm_node_memory(warm_bytes, 1, waits) < warm_bytes / 10 * 9) {
    fprintf(stderr, "limit-in-memory: not all of the memory could be touched\n");
  }
  const int code = run_and_wait(argv + 4);
  give_back_memory(&kept);
  return code;
}
