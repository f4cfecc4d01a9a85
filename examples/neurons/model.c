/* Hodgkin and Huxley (1952) with synapses whose conductances decay exponentially. */
#include "model.h"

#include <math.h>

static uint64_t mix(uint64_t x) { /* splitmix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static double uniform(uint64_t key) { return (double)(mix(key) >> 11) * 0x1p-53; }

void model_init(int64_t id, struct neuron* cell, struct synapses* input) {
  cell->voltage = -65.0 + 10.0 * uniform(3 * (uint64_t)id);
  cell->m = 0.05;
  cell->h = 0.6;
  cell->n = 0.32;
  input->current = 4.0 + 8.0 * uniform(3 * (uint64_t)id + 1); /* about 6.3 makes a lone one fire */
  input->excitation = input->inhibition = 0.0;
}

int64_t model_source(int64_t id, int k, int64_t neurons) {
  return (int64_t)(mix(((uint64_t)id * kFanIn + (uint64_t)k) ^ 0x5bf03635u) % (uint64_t)neurons);
}

int model_is_inhibitory(int64_t id) { return id % 5 == 4; }

/* x / (1 - exp(-x)), whose limit at 0 is 1. */
static double linoid(double x) { return fabs(x) < 1e-9 ? 1.0 : x / (1.0 - exp(-x)); }

static double relax(double gate, double alpha, double beta) {
  const double rest = alpha / (alpha + beta);
  return rest + (gate - rest) * exp(-(alpha + beta) * kStepMs);
}

static void step_gates(struct neuron* c) {
  const double v = c->voltage;
  c->m = relax(c->m, linoid((v + 40.0) / 10.0), 4.0 * exp(-(v + 65.0) / 18.0));
  c->h = relax(c->h, 0.07 * exp(-(v + 65.0) / 20.0), 1.0 / (1.0 + exp(-(v + 35.0) / 10.0)));
  c->n = relax(c->n, 0.1 * linoid((v + 55.0) / 10.0), 0.125 * exp(-(v + 65.0) / 80.0));
}

static void step_voltage(struct neuron* c, const struct synapses* s) {
  const double g_na = 120.0 * c->m * c->m * c->m * c->h;
  const double g_k = 36.0 * c->n * c->n * c->n * c->n;
  const double g = g_na + g_k + 0.3 + s->excitation + s->inhibition;
  const double drive = g_na * 50.0 - g_k * 77.0 - 0.3 * 54.387 - s->inhibition * 80.0 + s->current;
  const double rest = drive / g; /* excitation reverses at 0 mV and adds nothing here */
  c->voltage = rest + (c->voltage - rest) * exp(-g * kStepMs);
}

int model_step(struct neuron* cell, struct synapses* input, int excited, int inhibited) {
  static const double excitation_decay = 0.9950124791926823; /* exp(-0.025 / 5) */
  static const double inhibition_decay = 0.9975031223974601; /* exp(-0.025 / 10) */
  input->excitation = input->excitation * excitation_decay + 0.02 * excited;
  input->inhibition = input->inhibition * inhibition_decay + 0.10 * inhibited;
  const int below = cell->voltage < 0.0;
  step_gates(cell);
  step_voltage(cell, input);
  return below && cell->voltage >= 0.0;
}
