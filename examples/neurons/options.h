/* The command line of the neuron network. */
#ifndef NEURONS_OPTIONS_H
#define NEURONS_OPTIONS_H

#include <stdint.h>

struct options {
  int64_t neurons, steps, every;
  const char* output;
  int strided; /* write out of the array of structs, by a derived datatype */
  int check;   /* read the file back */
};

/* Returns -1 to go on, else the exit code to stop with. Only one rank should be `talkative`. */
int parse_options(int argc, char** argv, int talkative, struct options* options);

#endif
