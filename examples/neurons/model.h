/* The Hodgkin-Huxley equations and the wiring of the network: physics only, no MPI.
 *
 * Every number is computed from a neuron's global index, so the result does not depend on how
 * neurons are shared among ranks, to the last bit. Units: ms, mV, mS/cm2, uA/cm2.
 */
#ifndef NEURONS_MODEL_H
#define NEURONS_MODEL_H

#include <stdint.h>

/* 32 bytes, of which the voltage is written: the strided case of Benson, Long and Pacheco (2003).
 */
struct neuron {
  double voltage, m, h, n;
};

/* What is not written: input current and the conductances that spikes open. */
struct synapses {
  double current, excitation, inhibition;
};

enum { kFanIn = 16 };      /* synapses onto each neuron */
enum { kDelaySteps = 40 }; /* a spike arrives 1 ms after it was fired */
static const double kStepMs = 0.025;

void model_init(int64_t id, struct neuron* cell, struct synapses* input);

/* The k-th neuron that sends its spikes to neuron `id`, of `neurons` in all. */
int64_t model_source(int64_t id, int k, int64_t neurons);
int model_is_inhibitory(int64_t id);

/* One step by exponential Euler; returns 1 when the neuron fires in it. */
int model_step(struct neuron* cell, struct synapses* input, int excited, int inhibited);

#endif
