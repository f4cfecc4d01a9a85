/* The command line of the neuron network. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kUsage[] =
    "usage: mpiexec -n RANKS neurons [options]\n"
    "  --neurons N    neurons in the network (default 20000)\n"
    "  --steps N      time steps of 0.025 ms (default 400)\n"
    "  --every N      steps between records in the file (default 4)\n"
    "  --output PATH  the file (default neurons.dat)\n"
    "  --strided      write the voltages from the array of structs, by a derived datatype\n"
    "  --check        read the file back and compare\n";

static int parse_count(const char* name, const char* text, int talkative, int64_t* value) {
  char* end = NULL;
  const long long number = text ? strtoll(text, &end, 10) : 0;
  if (text == NULL || *text == '\0' || *end != '\0' || number < 1 || number > 2000000000) {
    if (talkative)
      fprintf(stderr, "neurons: %s must be from 1 to 2000000000, got %s\n", name,
              text ? text : "nothing");
    return 0;
  }
  *value = number;
  return 1;
}

/* Returns how many words were understood, 0 on error. */
static int parse_one(char** word, int talkative, struct options* o) {
  if (strcmp(word[0], "--strided") == 0) return o->strided = 1;
  if (strcmp(word[0], "--check") == 0) return o->check = 1;
  if (strcmp(word[0], "--output") == 0 && word[1] != NULL) {
    o->output = word[1];
    return 2;
  }
  if (strcmp(word[0], "--neurons") == 0)
    return 2 * parse_count(word[0], word[1], talkative, &o->neurons);
  if (strcmp(word[0], "--steps") == 0)
    return 2 * parse_count(word[0], word[1], talkative, &o->steps);
  if (strcmp(word[0], "--every") == 0)
    return 2 * parse_count(word[0], word[1], talkative, &o->every);
  if (talkative) fprintf(stderr, "neurons: unknown option %s\n%s", word[0], kUsage);
  return 0;
}

int parse_options(int argc, char** argv, int talkative, struct options* o) {
  *o = (struct options){20000, 400, 4, "neurons.dat", 0, 0};
  for (int i = 1; i < argc;) {
    if (strcmp(argv[i], "--help") == 0) {
      if (talkative) fputs(kUsage, stdout);
      return 0;
    }
    const int words = parse_one(argv + i, talkative, o);
    if (words == 0) return 2;
    i += words;
  }
  return -1;
}
